/* SPDX-License-Identifier: Apache-2.0 */
/* Invariant: n_events of a search is the number of its rows on disk or in the open batch, and nothing but
 * such a row's event has changed it. */
#include "masterd/life/searches.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/bits.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/try.h"
#include "lib/wire/errors.h"
#include "lib/wire/messages.h"
#include "masterd/core/manager.h"
#include "masterd/core/record.h"
#include "masterd/job/array.h"
#include "masterd/life/arrays.h"
#include "masterd/life/holdings.h"
#include "masterd/life/lifecycle.h"
#include "masterd/life/searcher.h"
#include "masterd/life/suspension.h"

/* Of a search that many events are kept for each of its trials, and altogether; results between its rungs
 * behind them are not. */
#define RESULTS_PER_TRIAL 1000u
#define RESULTS_MAX 200000u

/* Follows the event, and records it where it changed something. Returns as trials_follow(). */
static int let_happen(struct manager *m, struct job *j, struct trial_event *e, struct search_reason *why) {
        struct trials *t = j->array->trials;
        uint64_t before = t->n_events;
        int r = trials_follow(t, e, why);

        if (r == -ENOMEM) /* part of it may have happened: what is on disk stays right */
                (void)sd_event_exit(m->event, log_oom());
        if (t->n_events == before)
                return r;
        store_put_trial(m->store, &(struct trial_record){
                                          .job = j->number,
                                          .seq = t->n_events,
                                          .time_real = now_real(),
                                          .kind = (uint8_t)e->kind,
                                          .trial = e->trial,
                                          .step = e->time,
                                          .metric = double_bits(e->metric),
                                          .exit = (uint8_t)e->exit,
                                          .verdict = (uint8_t)r,
                                          .given = e->given ?: "",
                                  });
        manager_touch(m);
        searcher_tell(m, j);
        return r;
}

/* 1: it follows from those before it; 0: it does not; -ENOMEM. */
static int tell_again(struct trials *t, const struct trial_record *r) {
        struct trial_event e = {
                .kind = r->kind < _TRIAL_EVENT_MAX ? (enum trial_event_kind)r->kind : _TRIAL_EVENT_MAX,
                .trial = r->trial,
                .time = r->step,
                .metric = bits_double(r->metric),
                .exit = r->exit < _SEARCH_EXIT_MAX ? (enum search_exit)r->exit : _SEARCH_EXIT_MAX,
                .given = r->given,
        };
        struct search_reason why;
        int k = trials_follow(t, &e, &why);

        while (search_take_other(t->search, &(struct search_other){})) {
                /* what followed from it then is in the jobs' own records */
        }
        return k == -ENOMEM ? k : k == (int)r->verdict && e.trial == r->trial && t->n_events == r->seq;
}

int searches_loaded(struct job *j, const struct trial_record *r) {
        struct trials *t;
        int k;

        if (!j->array || !j->array->trials)
                return 0;
        t = j->array->trials;
        /* Whatever is wrong with it: its elements are there. */
        if (r->kind == TRIAL_CREATED && array_grow(j->array) < 0)
                return -ENOMEM;
        if (t->broken > 0)
                return 0;
        k = tell_again(t, r);
        if (k != 0)
                return MIN(k, 0);
        t->broken = r->seq;
        log_full(LOG_ERR, 0, &(struct log_fields){ .job = j->number },
                 "Search %u: its event %" PRIu64 " does not follow from those before it", j->number, r->seq);
        return 0;
}

struct replay {
        struct trials *fresh;
        searches_replayed_t done;
        void *userdata;
};

static void on_replayed(void *userdata, int error, const struct trial_record *rows, size_t n) {
        struct replay *p = userdata;
        uint64_t differs = 0;

        for (size_t i = 0; i < n && error >= 0 && differs == 0; i++) {
                int r = tell_again(p->fresh, rows + i);

                error = MIN(r, 0);
                differs = r == 0 ? rows[i].seq : 0;
        }
        p->done(p->userdata, error, n, differs);
        trials_free(p->fresh);
        free(p);
}

int searches_replay(struct manager *m, const struct job *j, searches_replayed_t done, void *userdata) {
        struct replay *p = malloc(sizeof(*p));
        int r;

        if (!p)
                return -ENOMEM;
        *p = (struct replay){ .done = done, .userdata = userdata };
        r = trials_new(&j->spec->search, &p->fresh);
        r = r < 0 ? r : store_query_trials(m->store, j->number, on_replayed, p);
        if (r < 0) {
                trials_free(p->fresh);
                free(p);
        }
        return r;
}

const char *searches_broken_text(const struct job *j, char *buf, size_t size) {
        const struct trials *t = j->array->trials;

        if (!t || t->broken == 0)
                return NULL;
        snprintf(
                buf, size,
                "what happened to its trials does not follow from its configuration (event %" PRIu64
                "): the store was changed, or this Primus decides otherwise than the one that began it; submit it anew",
                t->broken);
        return buf;
}

/* What an event has decided of other trials. A part of the same batch as the event. */
static void act_on_others(struct manager *m, struct job *j) {
        struct search_other o;

        while (search_take_other(j->array->trials->search, &o)) {
                struct job *e = o.trial < j->array->range.n ? manager_job(m, j->array->jobs[o.trial]) : NULL;

                if (e && o.promoted)
                        suspension_unpark(m, e);
                else if (e)
                        lifecycle_stop_job(m, e, JOB_EVENT_SUCCEEDED,
                                           "parked to the end: others of its rung were better");
        }
}

int searches_created(struct manager *m, struct job *j, const char *given) {
        struct trial_event e = { .kind = TRIAL_CREATED, .given = given };
        struct search_reason why;
        int r = let_happen(m, j, &e, &why);

        if (r < 0)
                return r;
        r = array_grow(j->array);
        if (r < 0) /* what is recorded is right */
                (void)sd_event_exit(m->event, log_oom());
        else if (given)
                holdings_weigh(j);
        return r;
}

int searches_grow(struct manager *m, struct job *j, uint32_t max_trials) {
        struct trial_event e = { .kind = TRIAL_GROWN, .time = max_trials };
        struct search_reason why;

        TRY(let_happen(m, j, &e, &why));
        holdings_weigh(j);
        return 0;
}

int searches_stop(struct manager *m, struct job *j, uint32_t trial) {
        struct trial_event v = { .kind = TRIAL_STOPPED, .trial = trial };
        struct job *e = trial < j->array->range.n ? manager_job(m, j->array->jobs[trial]) : NULL;
        struct search_reason why;
        int r;

        if (trial < j->array->range.n && j->array->states[trial] == ELEMENT_UNMADE)
                return -EAGAIN;
        r = let_happen(m, j, &v, &why);
        if (r >= 0 && e)
                lifecycle_stop_job(m, e, JOB_EVENT_SUCCEEDED, "stopped by its searcher");
        return r == -EALREADY ? 0 : r;
}

void searches_closed(struct manager *m, struct job *j, const struct job *searcher) {
        struct trial_event e = { .kind = TRIAL_CLOSED,
                                 .exit = searcher->state == JOB_SUCCEEDED ? SEARCH_SUCCEEDED
                                                                          : SEARCH_FAILED };
        struct search_reason why;

        (void)let_happen(m, j, &e, &why);
}

static int describe_searcher(const struct job *j, char **env) {
        const char *metric = j->spec->search.metric;

        env[0] = strdup("PRIMUS_SEARCHER=1");
        if (env[0] && asprintf(env + 1, "PRIMUS_SEARCH_METRIC=%s", metric ?: "") < 0)
                env[1] = NULL;
        return env[0] && env[1] ? 0 : -ENOMEM;
}

int searches_describe(const struct job *j, uint32_t trial, char **env) {
        _cleanup_free_ char *given = NULL;

        if (trial == ELEMENT_SEARCHER)
                return describe_searcher(j, env);
        TRY(trials_given(j->array->trials, trial, &given));
        if (asprintf(env + 0, "PRIMUS_TRIAL=%" PRIu32, trial) < 0)
                env[0] = NULL;
        if (env[0] && asprintf(env + 1, "PRIMUS_TRIAL_PARAMS=%s", given) < 0)
                env[1] = NULL;
        if (env[1] && asprintf(env + 2, "PRIMUS_TRIAL_SEED=%" PRIu32,
                               space_trial_seed(j->array->trials->seed, trial)) < 0)
                env[2] = NULL;
        if (!env[2])
                return -ENOMEM;
        if (j->spec->search.metric &&
            asprintf(env + 3, "PRIMUS_SEARCH_METRIC=%s", j->spec->search.metric) < 0) {
                env[3] = NULL;
                return -ENOMEM;
        }
        return 0;
}

void searches_ended(struct manager *m, struct job *j, const struct job *element) {
        struct trial_event e = {
                .kind = TRIAL_EXITED,
                .trial = element->element.index,
                .exit = element->state == JOB_SUCCEEDED ? SEARCH_SUCCEEDED : SEARCH_FAILED,
        };
        struct search_reason why;

        (void)let_happen(m, j, &e, &why); /* -ENOENT: it was invalid, and that is known */
        act_on_others(m, j);
}

const char *searches_best_text(const struct job *j, char *buf, size_t size) {
        const struct trials *t = j->array->trials;
        struct search_trial best;
        uint32_t trial;

        *buf = 0;
        if (t && search_best(t->search, &trial) && search_trial(t->search, trial, &best))
                snprintf(buf, size, "; best: trial %" PRIu32 ", %s %.6g at %" PRIu64, trial,
                         j->spec->search.metric, best.best, best.best_time);
        return buf;
}

/* ---- what trials say ---- */

static uint64_t results_max(const struct trials *t) {
        return MIN((uint64_t)RESULTS_PER_TRIAL * t->settings.max_trials, (uint64_t)RESULTS_MAX);
}

static struct job *search_of(struct manager *m, const struct job *e) {
        uint32_t position;
        struct job *j = arrays_of(m, e, &position);

        return j && j->array->trials ? j : NULL;
}

#define RANK_TEXT_MAX 256
static const char *rank_text(const char *what, const struct job *j, const struct trial_event *v,
                             const struct search_reason *why, char buf[static RANK_TEXT_MAX]) {
        int n = snprintf(buf, RANK_TEXT_MAX,
                         "%s at rung %" PRIu32 " of %" PRIu32 " (%" PRIu64 "): %s %.6g is rank %" PRIu32
                         " of %" PRIu32 " there, and ",
                         what, why->rung + 1, why->n_rungs, why->units, j->spec->search.metric, v->metric,
                         why->place + 1, why->of);

        if (why->keep == 0)
                snprintf(buf + n, RANK_TEXT_MAX - (size_t)n, "none of so few goes on yet");
        else
                snprintf(buf + n, RANK_TEXT_MAX - (size_t)n, "%" PRIu32 " of them go%s on", why->keep,
                         why->keep == 1 ? "es" : "");
        return buf;
}

static void park_trial(struct manager *m, struct job *j, struct job *e, const struct trial_event *v,
                       const struct search_reason *why) {
        char text[RANK_TEXT_MAX];

        suspension_park(m, e, rank_text("parked", j, v, why, text));
}

static void stop_early(struct manager *m, struct job *j, struct job *e, const struct trial_event *v,
                       const struct search_reason *why) {
        char text[RANK_TEXT_MAX];

        if (why->rung + 1 == why->n_rungs)
                snprintf(text, sizeof(text),
                         "trained to the end: %s %.6g at %" PRIu64 ", rank %" PRIu32 " of %" PRIu32,
                         j->spec->search.metric, v->metric, v->time, why->place + 1, why->of);
        else
                rank_text("stopped", j, v, why, text);
        lifecycle_stop_job(m, e, JOB_EVENT_SUCCEEDED, text);
}

static int answer_later(struct manager *m, sd_bus_message *call) {
        TRY(manager_answer_later(m, call, "a{sv}", 0));
        return 1;
}

bool searches_has(struct manager *m, const struct job *e) {
        const struct job *j = search_of(m, e);

        return j && j->array->trials->broken == 0;
}

void searches_invalid(struct manager *m, struct job *e) {
        struct trial_event v = { .kind = TRIAL_EXITED, .trial = e->element.index, .exit = SEARCH_INVALID };
        struct job *j = search_of(m, e);
        struct search_reason why;

        if (searches_has(m, e) && let_happen(m, j, &v, &why) == 0)
                record_event(m, j, "trial-invalid", NULL,
                             "trial %" PRIu32 ": its parameters make no sense, it says", v.trial);
        lifecycle_stop_job(m, e, JOB_EVENT_KILLED, "its parameters make no sense, it says");
        if (j)
                act_on_others(m, j);
}

int searches_reported(struct manager *m, const struct node *node, sd_bus_message *call,
                      const struct trial_report *report, sd_bus_error *error) {
        struct executor *x;
        struct job *e, *j;
        struct trial_event v = { .kind = TRIAL_VALIDATED, .time = report->step, .metric = report->metric };
        struct search_reason why;
        int r;

        TRY(manager_attempt_of(m, node, &report->id, &x, error));
        e = x->job;
        j = search_of(m, e);
        if (!j)
                return sd_bus_error_setf(error, LINK_ERROR_REFUSED, "job %u is no trial of a search",
                                         e->number);
        if (j->array->trials->broken > 0)
                return sd_bus_error_setf(error, LINK_ERROR_REFUSED, "search %u is being stopped", j->number);
        if (report->invalid) {
                searches_invalid(m, e);
                return answer_later(m, call);
        }
        /* Those that come to a rung, or end, are few. */
        if (j->array->trials->n_events >= results_max(j->array->trials) &&
            !search_ranks(j->array->trials->search, e->element.index, report->step))
                return answer_later(m, call);
        v.trial = e->element.index;
        r = let_happen(m, j, &v, &why);
        if (r == -ENOMEM)
                return r;
        if (r == SEARCH_STOP)
                stop_early(m, j, e, &v, &why);
        else if (r == SEARCH_PARK)
                park_trial(m, j, e, &v, &why);
        act_on_others(m, j);
        return answer_later(m, call);
}
