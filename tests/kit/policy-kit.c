/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/kit/policy-kit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define GIB (UINT64_C(1) << 30)

static int gang(void *userdata, uint64_t id, struct sched_gang *ret) {
        struct owner *o = userdata;

        *ret = (struct sched_gang){ o->shapes + id, 1 };
        return o->places[id].n > 0;
}

static void holds(void *userdata, uint64_t id, void (*each)(void *arg, const struct sched_hold *h),
                  void *arg) {
        const struct owner *o = userdata;

        for (size_t i = 0; i < o->places[id].n; i++)
                each(arg, &o->places[id].items[i].hold);
}

static struct policy_amount amount_of(const struct sched_hold *h) {
        return (struct policy_amount){ h->cpu_milli, h->memory, (uint32_t)__builtin_popcountll(h->gpus) };
}

static void placed(void *userdata, uint64_t id, const struct sched_placement *p) {
        struct owner *o = userdata;
        struct sched_placement *mine = o->places + id;

        mine->items = calloc(p->n, sizeof(*mine->items));
        assert_non_null(mine->items);
        memcpy(mine->items, p->items, p->n * sizeof(*mine->items));
        mine->n = p->n;
        o->order[o->n_order++] = id;
        for (size_t i = 0; i < p->n; i++) {
                struct policy_amount a = amount_of(&p->items[i].hold);
                policy_held(o->policy, id, &a, 1, o->now);
        }
        policy_job_runs(o->policy, id, o->now);
}

static void preempt(void *userdata, uint64_t victim, uint64_t by_id) {
}

static uint64_t cost(void *userdata, uint64_t id, uint64_t now) {
        return 0;
}

static void waits(void *userdata, uint64_t id, const struct policy_why *why) {
        struct owner *o = userdata;

        o->why[id] = *why;
        o->waits[id]++;
}

static const struct policy_ops ops = { gang, holds, placed, preempt, cost, waits };

void policy_kit_begin(struct owner *o, uint32_t hosts, uint32_t cpus, const struct policy_conf *conf) {
        struct sched_capacity c = { cpus * 1000, 64 * GIB, 0, 0, 0, 1000 };
        struct policy_conf defaults;
        uint32_t slot;

        *o = (struct owner){ .now = 1000 * SECOND };
        assert_int_equal(sched_new(&o->sched), 0);
        for (uint32_t i = 0; i < hosts; i++)
                assert_int_equal(sched_node_add(o->sched, &c, &slot), 0);
        policy_conf_defaults(&defaults);
        assert_int_equal(policy_new(o->sched, conf ?: &defaults, &ops, o, &o->policy), 0);
}

void policy_kit_end(struct owner *o) {
        policy_free(o->policy);
        sched_free(o->sched);
        for (size_t i = 0; i < JOBS; i++)
                free(o->places[i].items);
}

void policy_kit_submit(struct owner *o, uint64_t id, uint32_t pool, uint32_t user, int32_t priority,
                       uint32_t n, uint32_t cores) {
        struct policy_job job = { .id = id,
                                  .pool = pool,
                                  .user = user,
                                  .priority = priority,
                                  .submitted = o->now + id,
                                  .duration_usec = UINT64_MAX };

        o->shapes[id] = (struct sched_shape){ .min = n, .max = n, .cpu_milli = cores * 1000 };
        assert_int_equal(policy_job_add(o->policy, &job), 0);
}

int policy_kit_run(struct owner *o) {
        uint64_t next;

        return policy_run(o->policy, o->now, &next);
}

void policy_kit_finish(struct owner *o, uint64_t id) {
        for (size_t i = 0; i < o->places[id].n; i++) {
                struct policy_amount a = amount_of(&o->places[id].items[i].hold);
                sched_release(o->sched, &o->places[id].items[i].hold);
                policy_held(o->policy, id, &a, -1, o->now);
        }
        free(o->places[id].items);
        o->places[id] = (struct sched_placement){};
        policy_job_remove(o->policy, id);
}

bool policy_kit_has_places(const struct owner *o, uint64_t id) {
        return o->places[id].n > 0;
}
