/* SPDX-License-Identifier: Apache-2.0 */
/* Invariants: a trial has at most one entry in each rung of its bracket, and none above the rung that it is
 * at; a bracket has made no more than its trials and the invalid ones; as long as nobody was invalid, the
 * best 1/divisor of a rung have all been promoted. */
#include "masterd/search/search.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "lib/base/cleanup.h"
#include "lib/base/heap.h"
#include "lib/base/try.h"
#include "masterd/search/rank.h"

#define INVALID_PER_TRIAL 2u /* so many times maxTrials may be invalid */

/* In a rung; node is the first member. */
struct entry {
        struct rank_node node;
        uint32_t trial;
        struct entry *next; /* of the same trial, the rung before */
};

enum pending {
        PENDING_NONE,
        PENDING_PROMOTED,
        PENDING_END,
};

struct trial {
        struct search_trial seen;
        bool exited;
        bool waits; /* for a place above its highest rung, also when it has exited there */
        uint8_t pending;
        uint32_t next_pending;
        struct entry *entries; /* the highest rung first */
};

struct bracket {
        struct search_bracket plan;
        uint32_t wanted, created, invalid;
        uint32_t n_going, n_parked; /* that have not exited */
        struct rank_node *rungs[SEARCH_RUNGS_MAX];
};

struct search {
        struct search_settings settings;
        struct bracket brackets[SEARCH_BRACKETS_MAX];
        size_t n_brackets;
        struct trial *trials;
        uint32_t n_trials, n_allocated, n_open, n_invalid;
        uint32_t best;                        /* UINT32_MAX: none */
        uint64_t age;                         /* of the next entry */
        bool closed;                          /* its searcher has ended */
        uint32_t first_pending, last_pending; /* UINT32_MAX: none */
        const struct trial *reporter;         /* whose own verdict says what becomes of it */
};

const char *const search_method_names[_SEARCH_METHOD_MAX] = {
        [SEARCH_RANDOM] = "random",       [SEARCH_GRID] = "grid", [SEARCH_LIST] = "list",
        [SEARCH_EXTERNAL] = "external",   [SEARCH_ASHA] = "asha", [SEARCH_ADAPTIVE] = "adaptive-asha",
        [SEARCH_HYPERBAND] = "hyperband",
};

const char *const search_mode_names[_SEARCH_MODE_MAX] = {
        [SEARCH_STANDARD] = "standard",
        [SEARCH_CONSERVATIVE] = "conservative",
        [SEARCH_AGGRESSIVE] = "aggressive",
};

const char *search_trial_state_to_string(enum search_trial_state s) {
        static const char *const names[_SEARCH_TRIAL_STATE_MAX] = {
                [SEARCH_TRIAL_RUNS] = "runs",       [SEARCH_TRIAL_PARKED] = "parked",
                [SEARCH_TRIAL_STOPPED] = "stopped", [SEARCH_TRIAL_SUCCEEDED] = "succeeded",
                [SEARCH_TRIAL_FAILED] = "failed",   [SEARCH_TRIAL_INVALID] = "invalid",
        };

        return s < _SEARCH_TRIAL_STATE_MAX ? names[s] : NULL;
}

struct search *search_free(struct search *s) {
        if (!s)
                return NULL;
        for (uint32_t i = 0; i < s->n_trials; i++)
                for (struct entry *e = s->trials[i].entries, *next; e; e = next) {
                        next = e->next;
                        free(e);
                }
        free(s->trials);
        free(s);
        return NULL;
}

int search_new(const struct search_settings *settings, struct search **ret) {
        struct search_bracket plans[SEARCH_BRACKETS_MAX];
        struct search *s;

        if (settings->method >= _SEARCH_METHOD_MAX || settings->mode >= _SEARCH_MODE_MAX ||
            settings->variant >= _SEARCH_VARIANT_MAX || settings->max_trials == 0 ||
            settings->max_trials > search_trials_max(settings) ||
            (settings->method == SEARCH_EXTERNAL && !settings->searcher))
                return -EINVAL;
        if (settings->variant == SEARCH_VARIANT_PROMOTE &&
            (!search_has_rungs(settings->method) || settings->searcher))
                return -EINVAL;
        if (search_has_rungs(settings->method) &&
            (settings->divisor < 2 || settings->divisor > SEARCH_DIVISOR_MAX || settings->max_rungs == 0 ||
             settings->max_rungs > SEARCH_RUNGS_MAX || settings->max_time == 0 ||
             settings->max_time > SEARCH_TIME_MAX))
                return -EINVAL;
        for (uint32_t i = 0; i < settings->n_rungs; i++)
                if (i == SEARCH_BRACKETS_MAX || settings->rungs[i] == 0 ||
                    settings->rungs[i] > SEARCH_RUNGS_MAX)
                        return -EINVAL;
        s = calloc(1, sizeof(*s));
        if (!s)
                return -ENOMEM;
        s->settings = *settings;
        s->best = s->first_pending = s->last_pending = UINT32_MAX;
        s->n_brackets = search_brackets(settings, plans);
        for (size_t i = 0; i < s->n_brackets; i++)
                s->brackets[i] = (struct bracket){ .plan = plans[i], .wanted = plans[i].at_once };
        *ret = s;
        return 0;
}

size_t search_trial_bytes(void) {
        return 2 * sizeof(struct trial) + heap_of(sizeof(struct entry));
}

size_t search_bytes(const struct search *s) {
        return heap_of(sizeof(*s)) + s->settings.max_trials * search_trial_bytes();
}

/* ---- creation ---- */

/* With a searcher one at a time is made in whichever still has room; how many run together is not ours. */
static struct bracket *next_bracket(const struct search *s) {
        for (size_t i = 0; i < s->n_brackets; i++) {
                const struct bracket *b = s->brackets + i;

                if (s->settings.searcher ? b->created - b->invalid < b->plan.trials : b->wanted > 0)
                        return (struct bracket *)b;
        }
        return NULL;
}

bool search_gave_up(const struct search *s) {
        return s->n_invalid > INVALID_PER_TRIAL * s->settings.max_trials;
}

bool search_wants(const struct search *s) {
        return !s->settings.searcher && next_bracket(s) && !search_gave_up(s);
}

bool search_to_come(const struct search *s) {
        return s->settings.searcher ? !s->closed : search_wants(s);
}

int search_created(struct search *s, uint32_t *ret_trial) {
        struct bracket *b = next_bracket(s);

        if (!b || s->closed || search_gave_up(s))
                return -EAGAIN;
        if (s->n_trials == s->n_allocated) {
                uint32_t n = MAX(2 * s->n_allocated, 16u);
                struct trial *more = reallocarray(s->trials, n, sizeof(*more));

                if (!more)
                        return -ENOMEM;
                s->trials = more;
                s->n_allocated = n;
        }
        s->trials[s->n_trials] = (struct trial){
                .seen = { .bracket = (uint32_t)(b - s->brackets), .last = NAN, .best = NAN }
        };
        b->wanted -= !s->settings.searcher;
        b->created++;
        b->n_going++;
        s->n_open++;
        *ret_trial = s->n_trials++;
        return 0;
}

/* One has ended or will: another, as long as there are to be more. */
static void want_another(const struct search *s, struct bracket *b) {
        if (!s->settings.searcher && b->created + b->wanted - b->invalid < b->plan.trials)
                b->wanted++;
}

/* As many as a search of that size would have given each bracket, where it has the same ones; else the first
 * gets them, which stops most. */
static void share_more(struct search *s, const struct search_settings *more) {
        struct search_bracket plans[SEARCH_BRACKETS_MAX];
        bool alike = search_brackets(more, plans) == s->n_brackets;

        for (size_t i = 0; i < s->n_brackets && alike; i++)
                alike = plans[i].n_rungs == s->brackets[i].plan.n_rungs &&
                        plans[i].trials >= s->brackets[i].plan.trials;
        if (!alike)
                s->brackets[0].plan.trials += more->max_trials - s->settings.max_trials;
        for (size_t i = 0; i < s->n_brackets && alike; i++) {
                s->brackets[i].plan.trials = plans[i].trials;
                s->brackets[i].plan.at_once = MAX(s->brackets[i].plan.at_once, plans[i].at_once);
        }
}

int search_grow(struct search *s, uint32_t max_trials) {
        struct search_settings more = s->settings;

        if (s->settings.searcher || s->settings.method == SEARCH_GRID || s->settings.method == SEARCH_LIST ||
            max_trials < s->settings.max_trials || max_trials > search_trials_max(&s->settings))
                return -EINVAL;
        if (max_trials == s->settings.max_trials)
                return -EALREADY;
        more.max_trials = max_trials;
        share_more(s, &more);
        s->settings = more;
        for (size_t i = 0; i < s->n_brackets; i++) {
                struct bracket *b = s->brackets + i;

                while (b->n_going + b->wanted < b->plan.at_once &&
                       b->created + b->wanted - b->invalid < b->plan.trials)
                        b->wanted++;
        }
        return 0;
}

/* ---- results ---- */

/* Smaller is better, and what is no number is worst. */
static double cost_of(const struct search *s, double metric) {
        if (isnan(metric))
                return INFINITY;
        return s->settings.larger ? -metric : metric;
}

static void set_state(struct bracket *b, struct trial *t, enum search_trial_state state) {
        b->n_going -= t->seen.state == SEARCH_TRIAL_RUNS;
        b->n_parked -= t->seen.state == SEARCH_TRIAL_PARKED;
        t->seen.state = state;
        b->n_going += state == SEARCH_TRIAL_RUNS;
        b->n_parked += state == SEARCH_TRIAL_PARKED;
}

static void tell_of(struct search *s, uint32_t trial, enum pending what) {
        struct trial *t = s->trials + trial;

        if (t == s->reporter)
                return;
        if (t->pending == PENDING_NONE) {
                t->next_pending = UINT32_MAX;
                if (s->first_pending == UINT32_MAX)
                        s->first_pending = trial;
                else
                        s->trials[s->last_pending].next_pending = trial;
                s->last_pending = trial;
        }
        t->pending = (uint8_t)what;
}

bool search_take_other(struct search *s, struct search_other *ret) {
        struct trial *t = s->first_pending == UINT32_MAX ? NULL : s->trials + s->first_pending;

        if (!t)
                return false;
        *ret = (struct search_other){ s->first_pending, t->pending == PENDING_PROMOTED };
        t->pending = PENDING_NONE;
        s->first_pending = t->next_pending;
        return true;
}

static int enter_worst(struct search *s, struct bracket *b, struct trial *t, bool *filled);

/* A trial whose turn has come: it goes on, and takes the place that became free; or it has ended meanwhile,
 * and is the worst of the rungs above. */
static int promote_trial(struct search *s, struct bracket *b, struct trial *t, bool *filled) {
        t->waits = false;
        if (t->seen.state != SEARCH_TRIAL_PARKED)
                return enter_worst(s, b, t, filled);
        set_state(b, t, SEARCH_TRIAL_RUNS);
        tell_of(s, (uint32_t)(t - s->trials), PENDING_PROMOTED);
        *filled = true;
        return 0;
}

/* It comes to its next rung. Returns enum search_verdict; filled becomes true when another goes on for it. */
static int enter_rung(struct search *s, struct bracket *b, struct trial *t, double value,
                      struct search_reason *ret, bool *filled) {
        const bool promotes = s->settings.variant == SEARCH_VARIANT_PROMOTE;
        const uint32_t rung = t->seen.rung, d = s->settings.divisor;
        struct entry *e = malloc(sizeof(*e));

        if (!e)
                return -ENOMEM;
        e->node.value = value;
        e->node.age = s->age++;
        e->trial = (uint32_t)(t - s->trials);
        e->next = t->entries;
        t->entries = e;
        t->seen.rung++;
        *ret = (struct search_reason){
                .ranked = true,
                .rung = rung,
                .n_rungs = b->plan.n_rungs,
                .units = search_units(&s->settings, b->plan.n_rungs, rung),
                .place = rank_insert(b->rungs + rung, &e->node),
                .of = rank_count(b->rungs[rung]),
        };
        ret->keep = promotes ? ret->of / d : MAX(ret->of / d, 1u);
        if (rung + 1 == b->plan.n_rungs)
                return SEARCH_STOP;
        if (ret->place < ret->keep)
                return SEARCH_GOES_ON;
        if (!promotes)
                return SEARCH_STOP;
        t->waits = true;
        if (ret->keep > (ret->of - 1) / d) { /* one place more than before it came */
                struct entry *last = (struct entry *)rank_at(b->rungs[rung], ret->keep - 1);
                struct trial *other = s->trials + last->trial;

                if (other->waits && other->entries == last)
                        TRY(promote_trial(s, b, other, filled));
        }
        return SEARCH_PARK;
}

/* One that has ended comes to its next rung all the same; and promoted to those above, too. */
static int enter_worst(struct search *s, struct bracket *b, struct trial *t, bool *filled) {
        struct search_reason why;
        int verdict;

        if (t->seen.rung == b->plan.n_rungs)
                return 0;
        do
                verdict = enter_rung(s, b, t, INFINITY, &why, filled);
        while (verdict == SEARCH_GOES_ON && s->settings.variant == SEARCH_VARIANT_PROMOTE);
        return MIN(verdict, 0);
}

static void leave_rungs(struct search *s, struct bracket *b, struct trial *t) {
        for (struct entry *e = t->entries, *next; e; e = next) {
                next = e->next;
                rank_remove(b->rungs + --t->seen.rung, &e->node);
                free(e);
        }
        t->entries = NULL;
}

static bool is_better(const struct search *s, const struct trial *t, const struct trial *than) {
        return !isnan(t->seen.best) &&
               (isnan(than->seen.best) || cost_of(s, t->seen.best) < cost_of(s, than->seen.best));
}

static void note_result(struct search *s, uint32_t trial, uint64_t time, double metric) {
        struct trial *t = s->trials + trial;

        t->seen.reported = true;
        t->seen.time = time;
        t->seen.last = metric;
        if (isnan(metric) || (!isnan(t->seen.best) && cost_of(s, metric) >= cost_of(s, t->seen.best)))
                return;
        t->seen.best = metric;
        t->seen.best_time = time;
        if (s->best == UINT32_MAX || is_better(s, t, s->trials + s->best))
                s->best = trial;
}

bool search_ranks(const struct search *s, uint32_t trial, uint64_t time) {
        const struct trial *t = trial < s->n_trials ? s->trials + trial : NULL;
        const struct search_bracket *b = t ? &s->brackets[t->seen.bracket].plan : NULL;

        return t && t->seen.state == SEARCH_TRIAL_RUNS && t->seen.rung < b->n_rungs &&
               time >= search_units(&s->settings, b->n_rungs, t->seen.rung);
}

/* The best of those that are parked highest. */
static struct trial *find_highest_parked(struct search *s, struct bracket *b) {
        for (uint32_t rung = b->plan.n_rungs; rung-- > 0;)
                for (uint32_t k = 0; k < rank_count(b->rungs[rung]); k++) {
                        struct entry *e = (struct entry *)rank_at(b->rungs[rung], k);
                        struct trial *t = s->trials + e->trial;

                        if (t->entries == e && t->seen.state == SEARCH_TRIAL_PARKED)
                                return t;
                }
        return NULL;
}

/* Where nothing runs any more, and nothing is to be made, who is parked has no hope; but one of each bracket
 * is trained to the end, also of so few that none was promoted. */
static void end_parked(struct search *s) {
        bool filled;

        for (size_t i = 0; i < s->n_brackets; i++) {
                struct bracket *b = s->brackets + i;

                if (b->n_parked == 0 || b->n_going > 0 || (b->wanted > 0 && !search_gave_up(s)))
                        continue;
                if (rank_count(b->rungs[b->plan.n_rungs - 1]) == 0) {
                        /* Cannot fail: it has not ended, and enters no rung now. */
                        (void)promote_trial(s, b, find_highest_parked(s, b), &filled);
                        continue;
                }
                for (uint32_t k = 0; k < s->n_trials; k++)
                        if (s->trials[k].seen.bracket == i &&
                            s->trials[k].seen.state == SEARCH_TRIAL_PARKED) {
                                set_state(b, s->trials + k, SEARCH_TRIAL_STOPPED);
                                tell_of(s, k, PENDING_END);
                        }
        }
}

/* It does not go on, or so it seems: alone among those that are parked it may be the one that does. */
static int leave_place(struct search *s, struct bracket *b, struct trial *t, int verdict, bool filled) {
        set_state(b, t, verdict == SEARCH_STOP ? SEARCH_TRIAL_STOPPED : SEARCH_TRIAL_PARKED);
        if (!filled)
                want_another(s, b);
        s->reporter = t;
        end_parked(s);
        s->reporter = NULL;
        if (t->seen.state == SEARCH_TRIAL_RUNS)
                return SEARCH_GOES_ON;
        return t->seen.state == SEARCH_TRIAL_STOPPED ? SEARCH_STOP : SEARCH_PARK;
}

int search_validated(struct search *s, uint32_t trial, uint64_t time, double metric,
                     struct search_reason *ret) {
        struct trial *t = trial < s->n_trials ? s->trials + trial : NULL;
        int verdict = SEARCH_GOES_ON;
        bool filled = false;
        struct bracket *b;

        *ret = (struct search_reason){ 0 };
        if (!t)
                return -ENOENT;
        if (t->seen.state != SEARCH_TRIAL_RUNS || (t->seen.reported && time <= t->seen.time))
                return SEARCH_PAST;
        b = s->brackets + t->seen.bracket;
        note_result(s, trial, time, metric);
        while (verdict == SEARCH_GOES_ON && search_ranks(s, trial, time)) {
                verdict = enter_rung(s, b, t, cost_of(s, metric), ret, &filled);
                if (verdict == SEARCH_STOP || verdict == SEARCH_PARK)
                        verdict = leave_place(s, b, t, verdict, filled);
        }
        return verdict;
}

int search_stopped(struct search *s, uint32_t trial) {
        struct trial *t = trial < s->n_trials ? s->trials + trial : NULL;

        if (!t)
                return -ENOENT;
        if (t->seen.state != SEARCH_TRIAL_RUNS)
                return -EALREADY;
        set_state(s->brackets + t->seen.bracket, t, SEARCH_TRIAL_STOPPED);
        return 0;
}

int search_closed(struct search *s) {
        if (s->closed)
                return -EALREADY;
        s->closed = true;
        return 0;
}

/* The best of all; looked for when the one that was is not any more. */
static void find_best(struct search *s) {
        s->best = UINT32_MAX;
        for (uint32_t i = 0; i < s->n_trials; i++)
                if (!isnan(s->trials[i].seen.best) &&
                    (s->best == UINT32_MAX || is_better(s, s->trials + i, s->trials + s->best)))
                        s->best = i;
}

int search_exited(struct search *s, uint32_t trial, enum search_exit e) {
        static const enum search_trial_state states[_SEARCH_EXIT_MAX] = {
                [SEARCH_SUCCEEDED] = SEARCH_TRIAL_SUCCEEDED,
                [SEARCH_FAILED] = SEARCH_TRIAL_FAILED,
                [SEARCH_INVALID] = SEARCH_TRIAL_INVALID,
        };
        struct trial *t = trial < s->n_trials ? s->trials + trial : NULL;
        bool filled = false, parked;
        struct bracket *b;

        if (!t || t->exited)
                return -ENOENT;
        b = s->brackets + t->seen.bracket;
        if (t->seen.state == SEARCH_TRIAL_STOPPED) { /* however it ended: another one was asked for then */
                set_state(b, t, SEARCH_TRIAL_SUCCEEDED);
        } else {
                parked = t->seen.state == SEARCH_TRIAL_PARKED;
                set_state(b, t, states[e]);
                if (e == SEARCH_INVALID) {
                        leave_rungs(s, b, t);
                        t->waits = false;
                        t->seen.best = NAN;
                        b->invalid += s->settings.method != SEARCH_GRID && s->settings.method != SEARCH_LIST;
                        s->n_invalid++;
                        if (s->best == trial)
                                find_best(s);
                } else if (e == SEARCH_FAILED && !parked)
                        TRY(enter_worst(s, b, t, &filled));
                /* The place of one that was parked has been taken. */
                if (!filled && (!parked || (e == SEARCH_INVALID && b->n_going + b->wanted < b->plan.at_once)))
                        want_another(s, b);
        }
        t->exited = true;
        s->n_open--;
        end_parked(s);
        return 0;
}

/* ---- how it stands ---- */

bool search_over(const struct search *s) {
        return s->n_open == 0 && !search_to_come(s);
}

bool search_trial(const struct search *s, uint32_t trial, struct search_trial *ret) {
        if (trial >= s->n_trials)
                return false;
        *ret = s->trials[trial].seen;
        return true;
}

uint32_t search_n_trials(const struct search *s) {
        return s->n_trials;
}

uint32_t search_n_invalid(const struct search *s) {
        return s->n_invalid;
}

bool search_best(const struct search *s, uint32_t *ret_trial) {
        *ret_trial = s->best;
        return s->best != UINT32_MAX;
}

size_t search_plans(const struct search *s, struct search_bracket ret[static SEARCH_BRACKETS_MAX]) {
        for (size_t i = 0; i < s->n_brackets; i++)
                ret[i] = s->brackets[i].plan;
        return s->n_brackets;
}

uint32_t search_rung_count(const struct search *s, uint32_t bracket, uint32_t rung) {
        return bracket < s->n_brackets && rung < SEARCH_RUNGS_MAX
                       ? rank_count(s->brackets[bracket].rungs[rung])
                       : 0;
}
