/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/kit/provision-kit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"

#define ROUNDS 5

struct provision_conf kit_conf(uint32_t min, uint32_t max) {
        struct provision_conf c;

        provision_conf_defaults(&c);
        c.shapes[0] = (struct provision_shape){ .max = UINT32_MAX, .cost = 1000000 };
        c.n_shapes = 1;
        c.min = min;
        c.max = max;
        return c;
}

struct provision_plan kit_decide(const struct provision_conf *conf,
                                 const struct provision_instance *instances, size_t n,
                                 const struct provision_demand *demand, size_t n_demand, uint64_t now) {
        struct provision_plan plan = { 0 };

        assert_int_equal(provision_decide(conf, NULL, instances, n, demand, n_demand, NULL, now, &plan), 0);
        return plan;
}

uint32_t kit_count(const struct provision_plan *p, enum provision_verb verb) {
        uint32_t n = 0;

        for (size_t i = 0; i < p->n; i++)
                n += p->actions[i].verb == verb;
        return n;
}

const struct provision_action *kit_action(const struct provision_plan *p, uint32_t instance) {
        for (size_t i = 0; i < p->n; i++)
                if (p->actions[i].instance == instance)
                        return p->actions + i;
        return NULL;
}

struct provision_instance kit_ready(uint64_t now, uint64_t empty_usec) {
        return (struct provision_instance){ .state = INSTANCE_READY,
                                            .seen = SEEN_RUNNING,
                                            .made = now - KIT_HOUR,
                                            .since = now - KIT_HOUR,
                                            .idle_since = now - empty_usec };
}

struct provision_instance kit_busy(uint64_t now) {
        struct provision_instance i = kit_ready(now, 0);

        i.idle_since = 0;
        return i;
}

void kit_provider_init(struct kit_provider *p, const struct provision_conf *conf, uint32_t room) {
        *p = (struct kit_provider){ .conf = *conf, .room = room, .boot_usec = 2 * KIT_MINUTE };
        p->instances = calloc(room, sizeof(*p->instances));
        assert_non_null(p->instances);
}

void kit_provider_done(struct kit_provider *p) {
        free(p->instances);
}

static void enter(struct kit_provider *p, struct provision_instance *i, enum instance_event event) {
        i->state = instance_next(i->state, event);
        i->since = p->now;
        assert_true(i->state >= 0);
}

static void boot(struct kit_provider *p) {
        for (uint32_t k = 0; k < p->n; k++) {
                struct provision_instance *i = p->instances + k;
                if (i->state == INSTANCE_WANTED)
                        enter(p, i, INSTANCE_ACCEPTED);
                if (i->state == INSTANCE_STARTING && i->made + p->boot_usec <= p->now) {
                        enter(p, i, INSTANCE_REGISTERED);
                        enter(p, i, INSTANCE_USABLE);
                        i->idle_since = p->now;
                }
                i->seen = i->state == INSTANCE_STOPPING ? SEEN_ABSENT : SEEN_RUNNING;
                i->absent = i->state == INSTANCE_STOPPING ? i->absent + 1 : 0;
        }
}

/* Tasks stay where they are, then take what is READY; the rest would take what is to become that, or is
 * drained. */
static void place(struct kit_provider *p, uint32_t tasks) {
        for (uint32_t k = 0; k < p->n; k++) {
                struct provision_instance *i = p->instances + k;
                bool runs =
                        (i->state == INSTANCE_READY || i->state == INSTANCE_DRAINING) && i->idle_since == 0;
                i->wanted = false;
                if (runs && tasks > 0)
                        tasks--;
                else if (runs)
                        i->idle_since = p->now;
        }
        for (uint32_t k = 0; k < p->n && tasks > 0; k++)
                if (p->instances[k].state == INSTANCE_READY && p->instances[k].idle_since > 0) {
                        p->instances[k].idle_since = 0;
                        tasks--;
                }
        p->waiting = tasks;
        for (uint32_t k = 0; k < p->n && tasks > 0; k++) {
                struct provision_instance *i = p->instances + k;
                if (i->state == INSTANCE_STOPPING || i->state == INSTANCE_READY)
                        continue;
                i->wanted = true;
                tasks--;
        }
}

static uint32_t unmet(const struct kit_provider *p) {
        uint32_t wanted = 0;

        for (uint32_t k = 0; k < p->n; k++)
                wanted += p->instances[k].wanted && p->instances[k].state != INSTANCE_READY;
        return (uint32_t)sub_sat(p->waiting, wanted);
}

static void carry_out(struct kit_provider *p, const struct provision_plan *plan) {
        uint32_t kept = 0, n = p->n;

        for (size_t k = 0; k < plan->n; k++) {
                const struct provision_action *a = plan->actions + k;
                struct provision_instance *i = p->instances + a->instance;
                p->did[a->verb]++;
                if (a->verb == PROVISION_DRAIN)
                        enter(p, i, INSTANCE_LEAVES);
                else if (a->verb == PROVISION_KEEP)
                        enter(p, i, INSTANCE_KEPT);
                else if (a->verb == PROVISION_STOP)
                        enter(p, i, INSTANCE_GIVEN_BACK);
                else if (a->verb == PROVISION_FORGET)
                        i->made = 0;
                else {
                        assert_true(p->n < p->room);
                        p->instances[p->n++] = (struct provision_instance){
                                .shape = a->shape, .made = p->now, .since = p->now, .wanted = a->job > 0
                        };
                }
        }
        for (uint32_t k = 0; k < p->n; k++)
                if (p->instances[k].made > 0)
                        p->instances[kept++] = p->instances[k];
        assert_true(kept <= n + plan->n);
        p->n = kept;
}

void kit_provider_step(struct kit_provider *p, uint64_t now, uint32_t tasks) {
        size_t did = 1;

        p->now = now;
        boot(p);
        for (int round = 0; did > 0; round++) {
                struct provision_plan plan;
                uint32_t missing;
                place(p, tasks);
                missing = unmet(p);
                _cleanup_free_ struct provision_demand *demand = calloc(missing + 1, sizeof(*demand));
                assert_non_null(demand);
                for (uint32_t k = 0; k < missing; k++)
                        demand[k] = (struct provision_demand){ .n = 1, .job = 1 };
                plan = kit_decide(&p->conf, p->instances, p->n, demand, missing, p->now);
                carry_out(p, &plan);
                did = plan.n;
                provision_plan_done(&plan);
                /* What it does it does not undo. */
                assert_true(round < ROUNDS);
        }
}
