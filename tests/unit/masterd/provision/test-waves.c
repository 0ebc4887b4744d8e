/* SPDX-License-Identifier: Apache-2.0 */
/* Demand that goes up and down, with a thousand instances; and how long a decision takes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "tests/kit/provision-kit.h"

#define T KIT_NOW
#define INSTANCES 1000u
#define WAVES 4u
#define STEP (30 * KIT_SECOND)

/* A square wave: half of the period everything, half of it nothing. Within idle_usec nothing is given back,
 * so all are asked for once; beyond that, once a wave. Nothing is given back while it is wanted or asked for
 * while it is not. */
static void test_square_waves(void **state) {
        struct provision_conf c = kit_conf(0, INSTANCES);

        for (uint32_t quarters = 2; quarters <= 12; quarters++) {
                uint64_t period = c.idle_usec / 4 * quarters;
                uint32_t expected = period / 2 <= c.idle_usec ? INSTANCES : WAVES * INSTANCES;
                struct kit_provider p;
                kit_provider_init(&p, &c, 2 * INSTANCES);
                for (uint64_t at = 0; at < WAVES * period; at += STEP) {
                        bool high = at % period < period / 2;
                        uint32_t up = p.did[PROVISION_UP], drain = p.did[PROVISION_DRAIN];
                        kit_provider_step(&p, T + at, high ? INSTANCES : 0);
                        assert_true(high ? p.did[PROVISION_DRAIN] == drain : p.did[PROVISION_UP] == up);
                }
                if (p.did[PROVISION_UP] != expected)
                        print_message("period %u/4 idle: %u ups\n", quarters, p.did[PROVISION_UP]);
                assert_int_equal(p.did[PROVISION_UP], expected);
                assert_int_equal(p.did[PROVISION_STOP], p.did[PROVISION_DRAIN]);
                kit_provider_done(&p);
        }
}

/* Between half of them and all: min and spare ones stay, whatever the wave. */
static void test_waves_above_min(void **state) {
        struct provision_conf c = kit_conf(100, INSTANCES);
        struct kit_provider p;

        c.spare = 50;
        kit_provider_init(&p, &c, 2 * INSTANCES);
        for (uint64_t at = 0; at < 12 * KIT_HOUR; at += STEP) {
                uint32_t tasks = at % (2 * KIT_HOUR) < KIT_HOUR ? 800 : 20, there = 0;
                kit_provider_step(&p, T + at, tasks);
                for (uint32_t k = 0; k < p.n; k++)
                        there += p.instances[k].state != INSTANCE_STOPPING;
                assert_true(there >= MAX(100u, MIN(tasks + 50, INSTANCES)) && there <= INSTANCES);
        }
        /* 850 at first, and after each ebb what it takes to be that again. */
        assert_int_equal(p.did[PROVISION_UP], 850 + 5 * (850 - 100));
        kit_provider_done(&p);
}

/* One task that comes for a moment, again and again, shortly before the host would go. */
static void test_a_trickle(void **state) {
        struct provision_conf c = kit_conf(0, INSTANCES);
        struct kit_provider p;

        kit_provider_init(&p, &c, 2 * INSTANCES);
        for (uint64_t at = 0; at < 24 * KIT_HOUR; at += STEP)
                kit_provider_step(&p, T + at, at % (19 * KIT_MINUTE) < KIT_MINUTE * 3);
        assert_int_equal(p.did[PROVISION_UP], 1);
        assert_int_equal(p.did[PROVISION_DRAIN], 0);
        kit_provider_done(&p);
}

static uint64_t fastest(const struct provision_conf *c, const struct provision_instance *list, uint32_t n,
                        const struct provision_demand *demand, size_t n_demand) {
        uint64_t best = UINT64_MAX;

        for (int k = 0; k < 5; k++) {
                uint64_t begin = clock_usec(CLOCK_THREAD_CPUTIME_ID);
                struct provision_plan p = kit_decide(c, list, n, demand, n_demand, T);
                best = MIN(best, clock_usec(CLOCK_THREAD_CPUTIME_ID) - begin);
                provision_plan_done(&p);
        }
        return best;
}

/* Some milliseconds at most; the bound is that of a sanitized build on a busy machine. */
static void test_how_long(void **state) {
        struct provision_conf c = kit_conf(0, PROVISION_INSTANCES_MAX);
        uint32_t n = PROVISION_INSTANCES_MAX;
        _cleanup_free_ struct provision_instance *list = calloc(n, sizeof(*list));
        _cleanup_free_ struct provision_demand *demand = calloc(n, sizeof(*demand));
        uint64_t usec[4];

        assert_true(list && demand);
        for (uint32_t k = 0; k < n; k++) {
                list[k] = kit_busy(T);
                demand[k] = (struct provision_demand){ .n = 1, .job = k + 1 };
        }
        usec[0] = fastest(&c, list, n, NULL, 0);
        usec[1] = fastest(&c, list, 0, demand, n);
        usec[2] = fastest(&c, list, n, demand, n);
        for (uint32_t k = 0; k < n; k++)
                list[k] = kit_ready(T, KIT_HOUR + k * UINT64_C(2654435761) % KIT_HOUR);
        usec[3] = fastest(&c, list, n, demand, 0);
        print_message("%u: busy %.1f ms, asked for %.1f ms, refused %.1f ms, drained %.1f ms\n", n,
                      (double)usec[0] / 1e3, (double)usec[1] / 1e3, (double)usec[2] / 1e3,
                      (double)usec[3] / 1e3);
        for (size_t k = 0; k < ELEMENTSOF(usec); k++)
                assert_true(usec[k] < 500000);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_square_waves),
                cmocka_unit_test(test_waves_above_min),
                cmocka_unit_test(test_a_trickle),
                cmocka_unit_test(test_how_long),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
