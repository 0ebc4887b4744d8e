/* SPDX-License-Identifier: Apache-2.0 */
#include "masterd/search/search.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"

static const struct search_settings three_rungs = { .method = SEARCH_ASHA,
                                                    .max_trials = 10,
                                                    .max_concurrent = 3,
                                                    .divisor = 3,
                                                    .max_rungs = 3,
                                                    .max_time = 900 };

static struct search *begin(const struct search_settings *settings) {
        struct search *s;

        assert_int_equal(search_new(settings, &s), 0);
        return s;
}

static uint32_t make(struct search *s) {
        uint32_t trial;

        assert_int_equal(search_created(s, &trial), 0);
        return trial;
}

static int report(struct search *s, uint32_t trial, uint64_t time, double metric) {
        struct search_reason reason;

        return search_validated(s, trial, time, metric, &reason);
}

/* d 3: the first goes on, a better one too, one that is neither does not. */
static void test_rule(void **state) {
        _cleanup_(search_free_p) struct search *s = begin(&three_rungs);
        struct search_reason why;

        make(s), make(s), make(s);
        assert_false(search_wants(s));
        assert_int_equal(report(s, 0, 50, 0.9), SEARCH_GOES_ON); /* before the rung */
        assert_int_equal(report(s, 0, 100, 0.5), SEARCH_GOES_ON);
        assert_int_equal(report(s, 1, 100, 0.4), SEARCH_GOES_ON);
        assert_int_equal(search_validated(s, 2, 100, 0.6, &why), SEARCH_STOP);
        assert_true(why.ranked && why.rung == 0 && why.n_rungs == 3 && why.units == 100 && why.place == 2 &&
                    why.of == 3 && why.keep == 1);
        assert_true(search_wants(s)); /* instead of the one that stops */
        assert_int_equal(make(s), 3);
        assert_false(search_wants(s));
        assert_int_equal(search_exited(s, 2, SEARCH_SUCCEEDED), 0);
        assert_false(search_wants(s));
        assert_int_equal(report(s, 3, 100, 0.4), SEARCH_GOES_ON); /* ties pass */
        assert_int_equal(report(s, 1, 900, 0.3), SEARCH_STOP);    /* two rungs in one report, the top one */
        assert_int_equal(search_rung_count(s, 0, 1), 1);
        assert_int_equal(search_rung_count(s, 0, 2), 1);
        uint32_t best;
        assert_true(search_best(s, &best) && best == 1);
}

/* 10 trials, each worse than the one before, a report each 100: the first to the top, the others to the first
 * rung. */
static void run(const struct search_settings *settings, uint64_t every, uint64_t *times, uint32_t n) {
        _cleanup_(search_free_p) struct search *s = begin(settings);
        uint64_t at[32] = {};
        bool over[32] = {};

        while (!search_over(s)) {
                while (search_wants(s))
                        make(s);
                for (uint32_t i = 0; i < search_n_trials(s); i++) {
                        if (over[i])
                                continue;
                        at[i] += every;
                        if (report(s, i, at[i], i) == SEARCH_STOP) {
                                over[i] = true;
                                assert_int_equal(search_exited(s, i, SEARCH_SUCCEEDED), 0);
                        }
                }
        }
        assert_int_equal(search_n_trials(s), n);
        for (uint32_t i = 0; i < n; i++)
                times[i] = at[i];
}

static uint32_t count(const uint64_t *times, uint32_t n, uint64_t time) {
        uint32_t k = 0;

        for (uint32_t i = 0; i < n; i++)
                k += times[i] == time;
        return k;
}

static void test_runs(void **state) {
        static const struct {
                struct search_settings settings;
                uint64_t every;
                uint64_t times[3];
                uint32_t ended[3]; /* so many trials, at each of these */
        } cases[] = {
                { { .method = SEARCH_ASHA,
                    .max_trials = 10,
                    .max_concurrent = 3,
                    .divisor = 3,
                    .max_rungs = 3,
                    .max_time = 900 },
                  100,
                  { 100, 300, 900 },
                  { 9, 0, 1 } },
                { { .method = SEARCH_ADAPTIVE,
                    .max_trials = 9,
                    .max_concurrent = 3,
                    .divisor = 3,
                    .max_rungs = 5,
                    .max_time = 90 },
                  10,
                  { 10, 30, 90 },
                  { 5, 2, 2 } },
                { { .method = SEARCH_ADAPTIVE,
                    .max_trials = 10,
                    .max_concurrent = 5,
                    .divisor = 3,
                    .max_rungs = 10,
                    .max_time = 900 },
                  100,
                  { 100, 300, 900 },
                  { 6, 2, 2 } },
        };
        uint64_t t[32];

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                uint32_t n = cases[i].settings.max_trials;

                run(&cases[i].settings, cases[i].every, t, n);
                assert_int_equal(t[0], cases[i].settings.max_time); /* the best of all */
                for (size_t k = 0; k < ELEMENTSOF(cases[i].times); k++)
                        assert_int_equal(count(t, n, cases[i].times[k]), cases[i].ended[k]);
        }
}

static void test_late(void **state) {
        _cleanup_(search_free_p) struct search *s = begin(&three_rungs);
        struct search_trial t;

        make(s), make(s);
        assert_int_equal(report(s, 0, 100, 1), SEARCH_GOES_ON);
        assert_int_equal(report(s, 1, 100, 2), SEARCH_STOP);
        /* What comes behind the end changes nothing: neither a rung nor how many there are to be. */
        for (int i = 0; i < 5; i++) {
                assert_int_equal(report(s, 1, 200 + (uint64_t)i, 0), SEARCH_PAST);
                assert_int_equal(search_rung_count(s, 0, 0), 2);
        }
        make(s), make(s);
        assert_false(search_wants(s));
        /* A trial that went back to a checkpoint reports again what it had: once is enough. */
        assert_int_equal(report(s, 0, 100, 3), SEARCH_PAST);
        assert_int_equal(report(s, 0, 50, 3), SEARCH_PAST);
        assert_true(search_trial(s, 0, &t) && t.last == 1 && t.time == 100 && t.rung == 1);
        assert_int_equal(report(s, 7, 100, 3), -ENOENT);
        assert_int_equal(search_exited(s, 7, SEARCH_FAILED), -ENOENT);
        assert_int_equal(search_exited(s, 1, SEARCH_FAILED),
                         0); /* it was stopped, and how it took that is the same */
        assert_int_equal(search_exited(s, 1, SEARCH_FAILED), -ENOENT);
        assert_true(search_trial(s, 1, &t) && t.state == SEARCH_TRIAL_SUCCEEDED);
        assert_int_equal(search_rung_count(s, 0, 0), 2);
}

static void test_no_number(void **state) {
        _cleanup_(search_free_p) struct search *s = begin(&(struct search_settings){ .method = SEARCH_ASHA,
                                                                                     .larger = true,
                                                                                     .max_trials = 9,
                                                                                     .max_concurrent = 9,
                                                                                     .divisor = 3,
                                                                                     .max_rungs = 2,
                                                                                     .max_time = 3 });
        struct search_trial t;
        uint32_t best;

        for (int i = 0; i < 9; i++)
                make(s);
        assert_int_equal(report(s, 0, 1, NAN), SEARCH_GOES_ON); /* the first */
        assert_false(search_best(s, &best));
        assert_int_equal(report(s, 1, 1, -5), SEARCH_GOES_ON);
        assert_true(search_best(s, &best) && best == 1);
        assert_int_equal(report(s, 2, 1, NAN), SEARCH_STOP);
        assert_int_equal(report(s, 3, 1, INFINITY), SEARCH_GOES_ON); /* larger is better */
        assert_int_equal(report(s, 4, 1, 7), SEARCH_STOP);
        assert_int_equal(report(s, 5, 1, -INFINITY), SEARCH_STOP);
        assert_int_equal(report(s, 6, 1, 8), SEARCH_GOES_ON); /* the second of 7: two may */
        assert_true(search_trial(s, 0, &t) && isnan(t.best) && isnan(t.last) && t.reported);
        assert_true(search_best(s, &best) && best == 3);
}

static void test_exits(void **state) {
        _cleanup_(search_free_p) struct search *s = begin(&three_rungs);
        uint32_t best;

        make(s), make(s), make(s);
        assert_int_equal(search_exited(s, 0, SEARCH_FAILED),
                         0); /* the worst of its rung, which the next one beats */
        assert_int_equal(search_rung_count(s, 0, 0), 1);
        assert_int_equal(make(s), 3);
        assert_int_equal(report(s, 1, 100, 1e300), SEARCH_GOES_ON);
        assert_int_equal(search_exited(s, 1, SEARCH_SUCCEEDED),
                         0); /* below the top, by itself: counts, and there is another */
        assert_int_equal(make(s), 4);
        assert_int_equal(report(s, 2, 100, 1), SEARCH_GOES_ON);
        assert_int_equal(report(s, 3, 100, 0), SEARCH_GOES_ON);
        assert_int_equal(report(s, 3, 300, 0), SEARCH_GOES_ON);
        assert_int_equal(search_rung_count(s, 0, 0), 4);
        assert_true(search_best(s, &best) && best == 3);
        assert_int_equal(search_exited(s, 3, SEARCH_INVALID), 0); /* as if it had not been */
        assert_int_equal(search_rung_count(s, 0, 0), 3);
        assert_int_equal(search_rung_count(s, 0, 1), 0);
        assert_true(search_best(s, &best) && best == 2);
        assert_int_equal(make(s), 5);
        assert_int_equal(search_n_invalid(s), 1);
        while (!search_over(s)) { /* all others: 10 and the invalid one */
                while (search_wants(s))
                        make(s);
                for (uint32_t i = 0; i < search_n_trials(s); i++)
                        (void)search_exited(s, i, SEARCH_SUCCEEDED);
        }
        assert_int_equal(search_n_trials(s), 11);
        assert_false(search_gave_up(s));
}

/* A space of which nothing is valid ends. */
static void test_all_invalid(void **state) {
        _cleanup_(search_free_p) struct search *s =
                begin(&(struct search_settings){ .max_trials = 10, .max_concurrent = 2 });

        while (!search_over(s)) {
                while (search_wants(s))
                        make(s);
                for (uint32_t i = 0; i < search_n_trials(s); i++)
                        (void)search_exited(s, i, SEARCH_INVALID);
        }
        assert_true(search_gave_up(s));
        assert_in_range(search_n_trials(s), 21, 23);
}

static void test_refused(void **state) {
        static const struct search_settings bad[] = {
                { .max_trials = 0 },
                { .max_trials = SEARCH_TRIALS_MAX + 1 },
                { .method = SEARCH_ASHA, .max_trials = 1, .divisor = 1, .max_rungs = 1, .max_time = 1 },
                { .method = SEARCH_ASHA, .max_trials = 1, .divisor = 2, .max_rungs = 0, .max_time = 1 },
                { .method = SEARCH_ASHA,
                  .max_trials = 1,
                  .divisor = 2,
                  .max_rungs = SEARCH_RUNGS_MAX + 1,
                  .max_time = 1 },
                { .method = SEARCH_ASHA, .max_trials = 1, .divisor = 2, .max_rungs = 1, .max_time = 0 },
                { .method = SEARCH_ASHA,
                  .max_trials = 1,
                  .divisor = 2,
                  .max_rungs = 1,
                  .max_time = SEARCH_TIME_MAX + 1 },
                { .method = _SEARCH_METHOD_MAX, .max_trials = 1 },
                { .method = SEARCH_ADAPTIVE,
                  .max_trials = 1,
                  .divisor = 2,
                  .max_rungs = 1,
                  .max_time = 1,
                  .rungs = { 0 },
                  .n_rungs = 1 },
        };
        struct search *s;

        for (size_t i = 0; i < ELEMENTSOF(bad); i++)
                assert_int_equal(search_new(bad + i, &s), -EINVAL);
}

/* More trials, while it goes on and behind its end: as if there had been so many from the beginning. */
static void test_grown(void **state) {
        _cleanup_(search_free_p) struct search *s = begin(&three_rungs);
        struct search_settings grid = { .method = SEARCH_GRID, .max_trials = 4 }, promotes = three_rungs;
        _cleanup_(search_free_p) struct search *points = begin(&grid), *few = NULL;
        struct search_reason why;

        promotes.variant = SEARCH_VARIANT_PROMOTE;
        few = begin(&promotes);
        assert_int_equal(search_grow(points, 5), -EINVAL);
        assert_int_equal(search_grow(few, SEARCH_PROMOTE_MAX + 1), -EINVAL);
        assert_int_equal(search_grow(s, SEARCH_TRIALS_MAX + 1), -EINVAL);
        assert_int_equal(search_grow(s, 9), -EINVAL);
        assert_int_equal(search_grow(s, 10), -EALREADY);
        for (uint32_t i = 0; i < 10; i++) {
                assert_int_equal(make(s), i);
                if (i == 0)
                        assert_int_equal(report(s, 0, 100, 0.5), SEARCH_GOES_ON);
                else
                        assert_int_equal(report(s, i, 100, 0.6 + i), SEARCH_STOP);
                assert_int_equal(search_exited(s, i, SEARCH_SUCCEEDED), 0);
        }
        assert_true(search_over(s));
        assert_int_equal(search_grow(s, 12), 0);
        assert_false(search_over(s));
        assert_int_equal(make(s), 10);
        assert_int_equal(make(s), 11);
        assert_false(search_wants(s));
        /* Among all that were there. */
        assert_int_equal(search_validated(s, 10, 100, 0.55, &why), SEARCH_GOES_ON);
        assert_true(why.of == 11 && why.place == 1 && why.keep == 3);
        assert_int_equal(search_exited(s, 10, SEARCH_SUCCEEDED), 0);
        assert_int_equal(search_exited(s, 11, SEARCH_FAILED), 0);
        assert_true(search_over(s));
}

/* Brackets stay what they are, also where a search of that size would have more of them. */
static void test_grown_brackets(void **state) {
        struct search_settings few = { .method = SEARCH_ADAPTIVE,
                                       .mode = SEARCH_CONSERVATIVE,
                                       .max_trials = 3,
                                       .divisor = 3,
                                       .max_rungs = 4,
                                       .max_time = 81 },
                               alike = few;
        struct search_bracket before[SEARCH_BRACKETS_MAX], after[SEARCH_BRACKETS_MAX],
                wanted[SEARCH_BRACKETS_MAX];
        _cleanup_(search_free_p) struct search *s = begin(&few), *more = NULL;
        size_t n = search_plans(s, before);

        assert_int_equal(search_grow(s, 60), 0);
        assert_int_equal(search_plans(s, after), n);
        assert_int_equal(n, 2);
        assert_true(after[0].trials == before[0].trials + 57 && after[1].trials == before[1].trials);
        assert_true(after[0].n_rungs == before[0].n_rungs && after[1].n_rungs == before[1].n_rungs);
        alike.max_trials = 60;
        more = begin(&alike);
        assert_int_equal(search_grow(more, 90), 0);
        alike.max_trials = 90;
        n = search_brackets(&alike, wanted);
        assert_int_equal(search_plans(more, after), n);
        for (size_t i = 0; i < n; i++)
                assert_true(after[i].trials == wanted[i].trials && after[i].n_rungs == wanted[i].n_rungs);
}

/* Whatever happens in whatever order: bounds hold, every trial ends in one state, and the same events decide
 * the same. */
enum {
        CREATED,
        VALIDATED,
        EXITED,
        STOPPED, /* by its searcher */
        CLOSED,
        GROWN /* to time trials */
};
struct event {
        int kind;
        uint32_t trial;
        uint64_t time;
        double metric;
        enum search_exit exit;
        int decision;
        uint64_t others;
};

static int follow(struct search *s, struct event *e) {
        uint32_t trial;

        switch (e->kind) {
        case CREATED:
                return search_created(s, &trial) < 0 ? -1 : (int)trial;
        case VALIDATED:
                return report(s, e->trial, e->time, e->metric);
        case STOPPED:
                return search_stopped(s, e->trial);
        case CLOSED:
                return search_closed(s);
        case GROWN:
                return search_grow(s, (uint32_t)e->time);
        default:
                return search_exited(s, e->trial, e->exit);
        }
}

/* All that an event decided of others, as one number. */
static uint64_t take_others(struct search *s) {
        struct search_other o;
        uint64_t sum = 0;

        while (search_take_other(s, &o))
                sum = sum * 31 + 2 * o.trial + o.promoted + 1;
        return sum;
}

static void test_any_order(void **state) {
        enum {
                EVENTS = 60000
        };
        struct event *log = calloc(EVENTS, sizeof(*log));

        for (unsigned round = 0; round < 84; round++) {
                unsigned seed = round + 1;
                struct search_settings settings = {
                        .method = round % _SEARCH_METHOD_MAX,
                        .mode = round % _SEARCH_MODE_MAX,
                        .larger = round % 2,
                        .max_trials = 1 + (unsigned)rand_r(&seed) % 100,
                        .max_concurrent = 1 + (unsigned)rand_r(&seed) % 20,
                        .divisor = 2 + (unsigned)rand_r(&seed) % 3,
                        .max_rungs = 1 + (unsigned)rand_r(&seed) % 5,
                        .max_time = 1 + (unsigned)rand_r(&seed) % 100,
                        .searcher = round % _SEARCH_METHOD_MAX == SEARCH_EXTERNAL ||
                                    (search_has_rungs(round % _SEARCH_METHOD_MAX) && round % 2),
                };
                uint32_t trials = settings.max_trials, growths = round % 3;
                bool full = false;
                if (search_has_rungs(settings.method) && !settings.searcher && round % 4 == 0)
                        settings.variant = SEARCH_VARIANT_PROMOTE;
                _cleanup_(search_free_p) struct search *s = begin(&settings), *again = begin(&settings);
                uint32_t running = 0, n = 0;
                struct search_bracket b[SEARCH_BRACKETS_MAX];
                size_t n_brackets = search_brackets(&settings, b);

                if (settings.searcher || settings.method == SEARCH_GRID || settings.method == SEARCH_LIST)
                        growths = 0;
                while (n < EVENTS && (!search_over(s) || growths > 0)) {
                        struct event *e = log + n++;

                        struct search_trial t;
                        uint32_t trial = (unsigned)rand_r(&seed) % (search_n_trials(s) + 2);

                        while (rand_r(&seed) % 4 && search_trial(s, trial, &t) &&
                               t.state > SEARCH_TRIAL_STOPPED)
                                trial = (trial + 1) % search_n_trials(s);
                        *e = (struct event){ .kind = search_wants(s) && rand_r(&seed) % 2
                                                             ? CREATED
                                                             : 1 + rand_r(&seed) % 20 / 19,
                                             .trial = trial,
                                             .time = (unsigned)rand_r(&seed) % 120,
                                             .metric = rand_r(&seed) % 10 ? rand_r(&seed) % 50 : NAN,
                                             .exit = (unsigned)rand_r(&seed) % _SEARCH_EXIT_MAX };
                        if (growths > 0 && (search_over(s) || rand_r(&seed) % 100 == 0)) {
                                e->kind = GROWN;
                                e->time = trials += 1 + (unsigned)rand_r(&seed) % 40;
                                growths--;
                        } else if (settings.searcher && full)
                                e->kind = CLOSED;
                        else if (settings.searcher && running < settings.max_concurrent && rand_r(&seed) % 2)
                                e->kind = CREATED;
                        else if (settings.searcher && rand_r(&seed) % 5 == 0)
                                e->kind = STOPPED;
                        e->decision = follow(s, e);
                        e->others = take_others(s);
                        full = e->kind == CREATED ? e->decision < 0 : full && e->kind != CLOSED;
                        running += e->kind == CREATED && e->decision >= 0;
                        running -= e->kind == EXITED && e->decision == 0;
                        /* One more of each may have been told to stop. */
                        uint32_t going = 0;
                        for (uint32_t i = 0; search_trial(s, i, &t); i++)
                                going += t.state == SEARCH_TRIAL_RUNS;
                        assert_true(going <= MAX(settings.max_concurrent, (uint32_t)n_brackets));
                }
                assert_true(search_over(s));
                assert_int_equal(running, 0);
                if (settings.searcher) /* the last may have made room that nobody asked for */
                        assert_in_range(search_n_trials(s), trials, trials + search_n_invalid(s));
                else if (!search_gave_up(s))
                        assert_int_equal(
                                search_n_trials(s),
                                trials + (settings.method == SEARCH_GRID || settings.method == SEARCH_LIST
                                                  ? 0
                                                  : search_n_invalid(s)));
                for (uint32_t i = 0; i < n; i++) {
                        assert_int_equal(follow(again, log + i), log[i].decision);
                        assert_int_equal(take_others(again), log[i].others);
                }
                assert_true(search_over(again));
                assert_true(search_bytes(s) == search_bytes(again) && search_bytes(s) > 0);
        }
        free(log);
}

/* ---- the variant that promotes ---- */

static bool take(struct search *s, uint32_t *promoted, uint32_t *ended) {
        struct search_other o;

        *promoted = *ended = UINT32_MAX;
        if (!search_take_other(s, &o))
                return false;
        *(o.promoted ? promoted : ended) = o.trial;
        return true;
}

/* d 3: who comes first is parked, and goes on when three are there and it is the best of them. */
static void test_promotion(void **state) {
        struct search_settings settings = three_rungs;
        struct search_reason why;
        uint32_t on, ended;

        settings.variant = SEARCH_VARIANT_PROMOTE;
        _cleanup_(search_free_p) struct search *s = begin(&settings);
        make(s), make(s), make(s);
        assert_int_equal(search_validated(s, 0, 100, 0.5, &why), SEARCH_PARK);
        assert_true(why.ranked && why.rung == 0 && why.place == 0 && why.of == 1 && why.keep == 0);
        assert_false(take(s, &on, &ended));
        assert_int_equal(make(s), 3); /* in its place */
        assert_false(search_wants(s));
        assert_int_equal(report(s, 0, 200, 0.1), SEARCH_PAST); /* it is late, and counts nowhere */
        assert_int_equal(report(s, 1, 100, 0.6), SEARCH_PARK);
        assert_int_equal(make(s), 4);
        assert_int_equal(report(s, 2, 100, 0.7), SEARCH_PARK);
        assert_true(take(s, &on, &ended) && on == 0 && ended == UINT32_MAX);
        assert_false(take(s, &on, &ended));
        assert_false(search_wants(s));                            /* the one that goes on has the place */
        assert_int_equal(report(s, 3, 100, 0.4), SEARCH_GOES_ON); /* the best of four */
        assert_int_equal(report(s, 0, 300, 0.4), SEARCH_PARK);    /* the first of the next rung */
        assert_int_equal(make(s), 5);
        assert_int_equal(report(s, 4, 100, 0.8), SEARCH_PARK);
        assert_int_equal(make(s), 6);
        assert_int_equal(report(s, 5, 100, 0.9), SEARCH_PARK); /* six: two places, and both are taken */
        assert_false(take(s, &on, &ended));
        assert_int_equal(make(s), 7);
        assert_int_equal(report(s, 6, 100, 0.45), SEARCH_GOES_ON); /* or better than one of them */
        assert_int_equal(report(s, 7, 100, 0.95), SEARCH_PARK);
        assert_int_equal(make(s), 8);
        assert_int_equal(report(s, 8, 100, 0.99),
                         SEARCH_PARK); /* nine: three places, the third has its own */
        assert_false(take(s, &on, &ended));
}

/* What of a bracket is parked when nothing runs any more ends; but one is trained to the end. */
static void test_parked_end(void **state) {
        struct search_settings settings = three_rungs;
        uint32_t on, ended;

        settings.variant = SEARCH_VARIANT_PROMOTE;
        settings.max_trials = 2;
        _cleanup_(search_free_p) struct search *s = begin(&settings);
        make(s), make(s);
        assert_int_equal(report(s, 0, 100, 0.5), SEARCH_PARK);
        assert_int_equal(report(s, 1, 100, 0.6), SEARCH_PARK);
        assert_true(take(s, &on, &ended) && on == 0);
        assert_int_equal(report(s, 0, 300, 0.4), SEARCH_GOES_ON); /* alone */
        assert_int_equal(report(s, 0, 900, 0.4), SEARCH_STOP);
        assert_true(take(s, &on, &ended) && ended == 1);
        assert_false(take(s, &on, &ended));
        assert_false(search_over(s));
        assert_int_equal(search_exited(s, 0, SEARCH_SUCCEEDED), 0);
        assert_int_equal(search_exited(s, 1, SEARCH_SUCCEEDED), 0);
        assert_true(search_over(s));
        assert_false(search_take_other(s, &(struct search_other){}));
}

/* Who is parked and ends all the same (somebody killed it) leaves its result where it is; promoted, it is the
 * worst of the rung above, and another goes on. */
static void test_parked_exits(void **state) {
        struct search_settings settings = three_rungs;
        uint32_t on, ended;

        settings.variant = SEARCH_VARIANT_PROMOTE;
        _cleanup_(search_free_p) struct search *s = begin(&settings);
        make(s), make(s), make(s);
        assert_int_equal(report(s, 0, 100, 0.1), SEARCH_PARK);
        assert_int_equal(search_exited(s, 0, SEARCH_FAILED), 0);
        assert_int_equal(make(s), 3);
        assert_false(search_wants(s));
        assert_int_equal(report(s, 1, 100, 0.2), SEARCH_PARK);
        make(s);
        assert_int_equal(report(s, 2, 100, 0.3), SEARCH_PARK); /* three: 0 would go on, and is no more */
        assert_false(take(s, &on, &ended));
        assert_true(search_wants(s)); /* nobody has taken the place */
        assert_int_equal(search_rung_count(s, 0, 1), 1);
        /* One that fails as it runs is the worst of its rung, and may make room for another. */
        make(s);
        assert_int_equal(search_exited(s, 3, SEARCH_FAILED), 0);
        assert_false(take(s, &on, &ended));
        make(s);
        assert_int_equal(search_exited(s, 4, SEARCH_FAILED), 0);
        make(s);
        assert_int_equal(search_exited(s, 5, SEARCH_FAILED), 0); /* six */
        assert_true(take(s, &on, &ended) && on == 1);
        assert_false(search_wants(s));
        /* One that was parked turns out to be invalid: as if it had not been. */
        assert_int_equal(search_exited(s, 2, SEARCH_INVALID), 0);
        assert_int_equal(search_rung_count(s, 0, 0), 5);
}

/* Those of Determined, of the variant that it had first. */
static void test_promotion_runs(void **state) {
        static const struct {
                uint32_t trials, concurrent, ended[3];
                bool better; /* each one than those before it */
        } cases[] = {
                { 12, 12, { 8, 3, 1 }, false },
                { 12, 3, { 8, 3, 1 }, false },
                { 12, 3, { 8, 3, 1 }, true },
        };

        for (size_t c = 0; c < ELEMENTSOF(cases); c++) {
                struct search_settings settings = { .method = SEARCH_ASHA,
                                                    .variant = SEARCH_VARIANT_PROMOTE,
                                                    .max_trials = cases[c].trials,
                                                    .max_concurrent = cases[c].concurrent,
                                                    .divisor = 3,
                                                    .max_rungs = 3,
                                                    .max_time = 90 };
                _cleanup_(search_free_p) struct search *s = begin(&settings);
                uint64_t at[16] = {};
                uint32_t n[3] = {}, on, ended;
                struct search_trial t;

                for (int turns = 0; !search_over(s); turns++) {
                        assert_true(turns < 1000);
                        while (search_wants(s))
                                make(s);
                        for (uint32_t i = 0; search_trial(s, i, &t); i++) {
                                if (t.state != SEARCH_TRIAL_RUNS)
                                        continue;
                                at[i] += 10;
                                if (report(s, i, at[i], cases[c].better ? -(double)i : i) == SEARCH_STOP)
                                        assert_int_equal(search_exited(s, i, SEARCH_SUCCEEDED), 0);
                                while (take(s, &on, &ended))
                                        if (ended != UINT32_MAX)
                                                assert_int_equal(search_exited(s, ended, SEARCH_SUCCEEDED),
                                                                 0);
                        }
                }
                for (uint32_t i = 0; i < cases[c].trials; i++)
                        n[at[i] == 10 ? 0 : at[i] == 30 ? 1 : 2]++;
                for (int i = 0; i < 3 && !cases[c].better; i++)
                        assert_int_equal(n[i], cases[c].ended[i]);
                assert_true(n[2] >= 1 && n[0] <= 8);
        }
}

static void test_names(void **state) {
        for (int i = 0; i < _SEARCH_TRIAL_STATE_MAX; i++)
                assert_non_null(search_trial_state_to_string((enum search_trial_state)i));
        assert_null(search_trial_state_to_string(_SEARCH_TRIAL_STATE_MAX));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_rule),           cmocka_unit_test(test_runs),
                cmocka_unit_test(test_late),           cmocka_unit_test(test_no_number),
                cmocka_unit_test(test_exits),          cmocka_unit_test(test_all_invalid),
                cmocka_unit_test(test_refused),        cmocka_unit_test(test_any_order),
                cmocka_unit_test(test_names),          cmocka_unit_test(test_promotion),
                cmocka_unit_test(test_parked_end),     cmocka_unit_test(test_parked_exits),
                cmocka_unit_test(test_promotion_runs), cmocka_unit_test(test_grown),
                cmocka_unit_test(test_grown_brackets),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
