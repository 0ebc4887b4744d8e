/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/kit/data-chaos.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <utlist.h>

static const uint32_t weights[] = { 1, 3, 2 };

const struct data_config world_configs[WORLD_CONFIGS] = {
        { .n_sources = 3, .order = ORDER_LISTED, .epochs = 1, .sample_ppm = 1000000, .max_attempts = 3 },
        { .n_sources = 2,
          .order = ORDER_SHUFFLE,
          .epochs = 3,
          .sample_ppm = 1000000,
          .max_attempts = 3,
          .seed = 7 },
        { .n_sources = 3,
          .order = ORDER_LISTED,
          .epochs = 2,
          .sample_ppm = 1000000,
          .max_attempts = 3,
          .weights = weights },
        { .n_sources = 3,
          .order = ORDER_SHUFFLE,
          .epochs = 2,
          .sample_ppm = 400000,
          .max_attempts = 3,
          .weights = weights,
          .seed = 9 },
        { .n_sources = 1, .order = ORDER_LISTED, .epochs = 4, .sample_ppm = 300000, .max_attempts = 1 },
};

static struct held *some_held(struct world *w, size_t *ret_holder) {
        struct held *h, *found = NULL;
        uint64_t n = 0;

        for (size_t i = 0; i < w->n_holders; i++)
                DL_FOREACH (w->holders[i].held, h)
                        if (!h->done && world_random(w, ++n) == 0) {
                                found = h;
                                *ret_holder = i;
                        }
        return found;
}

static bool dice(struct world *w, unsigned one_in) {
        return one_in > 0 && world_random(w, one_in) == 0;
}

void world_step(struct world *w, const struct world_chaos *c, bool exact) {
        size_t holder = world_random(w, w->n_holders);
        struct held *h;

        switch (world_random(w, 8)) {
        case 0:
                world_list(w, (uint32_t)world_random(w, w->config.n_sources), world_random(w, 40));
                return;
        case 1:
                (void)world_prepare(w, (uint32_t)world_random(w, 200));
                return;
        case 2:
                if (data_urgent(w->d) || world_random(w, 3) == 0)
                        world_flush(w);
                return;
        case 3:
                world_durable(w, world_random(w, 4));
                return;
        case 4 ... 5:
                (void)world_lease(w, holder);
                return;
        default:
                if (!(h = some_held(w, &holder)))
                        return;
                enum task_state state = dice(w, c->fail)          ? TASK_FAILED
                                        : dice(w, 20)             ? TASK_RETURNED
                                        : world_random(w, 3) == 0 ? TASK_DONE
                                                                  : TASK_RUNNING;
                world_progress(w, holder, h, world_random(w, 40), state);
                if (exact && state == TASK_RETURNED) /* nobody is left who knows */
                        world_sync(w);
        }
}

static void trim(struct world *w) {
        size_t holder;
        uint64_t end;
        struct held *h = some_held(w, &holder);
        struct task *t;

        if (world_random(w, 2) == 0 && (t = data_slowest(w->d, w->now, 4, &end)))
                for (size_t i = 0; i < w->n_holders; i++) {
                        DL_FOREACH (w->holders[i].held, h)
                                if (h->id == t->id)
                                        break;
                        if (h) {
                                assert_true(end >= h->acked && end < h->end);
                                world_trim(w, i, h, end);
                                return;
                        }
                }
        if (h && data_task(w->d, h->id)->end != TASK_TO_END)
                world_trim(w, holder, h, h->acked + world_random(w, 20));
}

/* The truth cannot know which bytes of a task that is skipped count. */
static void skip_or_retry(struct world *w) {
        struct data_totals totals;
        struct task *t = data_next_task(w->d, world_random(w, 300));

        data_totals(w->d, &totals);
        if (t && t->place == TASK_GAVE_UP)
                assert_int_equal(data_retry(w->d, t), 0);
        else if (t && t->place == TASK_PENDING && world_random(w, 4) == 0) {
                data_skip(w->d, t, NULL);
                w->n_skipped++;
                world_sync(w);
        }
}

/* None of a source that is paused is given out, until it goes on. */
static void steer(struct world *w) {
        uint32_t source = (uint32_t)world_random(w, w->config.n_sources);
        struct data_steering before, after,
                how = { .weight = (uint32_t)world_random(w, 4), .paused = world_random(w, 2) };
        int r;

        data_steering(w->d, source, &before);
        r = data_steer(w->d, source, &how);
        assert_int_equal(r, 0);
        data_steering(w->d, source, &after);
        assert_int_equal(after.paused, how.paused);
        assert_int_equal(after.weight, how.weight ? how.weight : before.weight);
}

void world_resume_all(struct world *w) {
        for (uint32_t i = 0; i < w->config.n_sources; i++)
                assert_int_equal(data_steer(w->d, i, &(struct data_steering){}), 0);
}

void world_run(struct world *w, const struct world_chaos *c, unsigned steps, bool exact) {
        for (unsigned i = 0; i < steps; i++) {
                world_step(w, c, exact);
                if (dice(w, c->restart))
                        world_restart(w);
                if (dice(w, c->die)) {
                        world_die(w, world_random(w, w->n_holders));
                        if (exact)
                                world_sync(w);
                }
                if (dice(w, c->trim))
                        trim(w);
                if (dice(w, c->skip))
                        skip_or_retry(w);
                if (dice(w, c->steer))
                        steer(w);
                if (w->config.n_sources < w->n_all && dice(w, c->append))
                        assert_int_equal(world_append(w), 0);
                if (i % 64 == 0)
                        world_check_totals(w, exact);
        }
        while (w->config.n_sources < w->n_all)
                assert_int_equal(world_append(w), 0);
        world_resume_all(w);
        world_finish(w);
        world_check_totals(w, exact);
}
