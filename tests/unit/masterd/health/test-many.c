/* SPDX-License-Identifier: Apache-2.0 */
/* A gang as large as they come: comparing all with all takes no longer than asking each. */
#include "masterd/health/health.h"

#include <setjmp.h>
#include <stdarg.h>
#include <time.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"

#define SECOND UINT64_C(1000000)
#define SAMPLE 20u /* seconds */

struct seen {
        unsigned n;
        uint32_t index;
};

static void on_verdict(const struct health_verdict *v, void *userdata) {
        struct seen *s = userdata;

        assert_int_equal(v->kind, VERDICT_STRAGGLER);
        s->n++;
        s->index = v->index;
}

static double processor_seconds(void) {
        struct timespec t;

        assert_int_equal(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t), 0);
        return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Processor time of an hour of judging n that work alike, of whom one is late. */
static double judge(uint32_t n, uint32_t late) {
        _cleanup_(health_gang_free_p) struct health_gang *g = NULL;
        const struct health_facts facts = {};
        struct seen seen = {};
        double spent = 0;

        assert_int_equal(health_gang_new(&g), 0);
        for (uint32_t i = 0; i < n; i++)
                assert_int_equal(health_join(g, 0, i, SECOND, &facts), 0);
        for (uint64_t t = SAMPLE; t < 3600; t += SAMPLE) {
                double begin;

                for (uint32_t i = 0; i < n; i++) {
                        uint64_t values[_TELEMETRY_MAX];

                        telemetry_clear(values);
                        values[TELEMETRY_CPU_USEC] = t * SECOND / (i == late ? 1 : 6) + i;
                        values[TELEMETRY_NET_RX_BYTES] = values[TELEMETRY_NET_TX_BYTES] = t << 20;
                        values[TELEMETRY_TCP_CONNECTIONS] = 2;
                        values[TELEMETRY_LOOKS] = t;
                        values[TELEMETRY_LOOKS_UNREAD] = 0;
                        health_observe(g, 0, i, t * SECOND, values);
                }
                begin = processor_seconds();
                health_judge(g, t * SECOND, on_verdict, &seen);
                spent += processor_seconds() - begin;
        }
        assert_int_equal(seen.n, 1);
        assert_int_equal(seen.index, late);
        return spent;
}

static void test_many(void **state) {
        double few = judge(400, 123), many = judge(4000, 1234);

        print_message("400: %.4f s, 4,000: %.4f s\n", few, many);
        /* 10 times, and the logarithm; comparing each with all would be 100 times and more. */
        assert_true(many < 40 * few + 0.05);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_many),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
