/* SPDX-License-Identifier: Apache-2.0 */
/* Hosts may say anything: verdicts stay sentences, and their numbers such as the store and JSON can hold. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "masterd/health/health.h"

#define SECOND UINT64_C(1000000)
#define MEMBERS 4u

static uint64_t state_of_random = 1;

static uint64_t random_next(void) {
        state_of_random ^= state_of_random << 13;
        state_of_random ^= state_of_random >> 7;
        state_of_random ^= state_of_random << 17;
        return state_of_random;
}

static uint64_t absurd(uint64_t before) {
        static const uint64_t values[] = {
                0, 1, UINT64_MAX - 1, UINT64_C(1) << 63, INT64_MAX, TELEMETRY_UNKNOWN
        };
        uint64_t r = random_next();

        switch (r % 4) {
        case 0:
                return values[(r >> 8) % (sizeof(values) / sizeof(values[0]))];
        case 1:
                return random_next();
        default: /* as a counter that stands, or nearly */
                return before + r % 2;
        }
}

static void on_verdict(const struct health_verdict *v, void *userdata) {
        assert_true(v->n_numbers <= HEALTH_NUMBERS_MAX);
        assert_non_null(memchr(v->text, 0, sizeof(v->text)));
        for (size_t i = 0; i < v->n_numbers; i++)
                assert_true(v->numbers[i].value <= INT64_MAX);
        ++*(unsigned *)userdata;
}

static void one(uint64_t seed, unsigned *verdicts) {
        const struct health_facts facts = { .gpus = (uint32_t)(seed % 3),
                                            .cpu_milli = seed % 5 ? 1000 : UINT64_MAX,
                                            .memory = seed % 2 ? UINT64_MAX - 1 : 0 };
        uint64_t values[MEMBERS][_TELEMETRY_MAX] = {};
        struct health_gang *g;

        state_of_random = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
        assert_int_equal(health_gang_new(&g), 0);
        for (uint32_t i = 0; i < MEMBERS; i++)
                assert_int_equal(health_join(g, 0, i, SECOND, &facts), 0);
        for (uint64_t t = 2; t < 3600; t += 5) {
                for (uint32_t i = 0; i < MEMBERS; i++) {
                        for (size_t f = 0; f < _TELEMETRY_MAX; f++)
                                values[i][f] = absurd(values[i][f]);
                        /* Also two of them within a microsecond. */
                        health_observe(g, 0, i, t * SECOND, values[i]);
                        for (size_t f = 0; f < _TELEMETRY_MAX; f++)
                                values[i][f] = absurd(values[i][f]);
                        health_observe(g, 0, i, t * SECOND + 1 + seed % 2, values[i]);
                }
                for (uint32_t i = 0; i < MEMBERS + 1; i++) {
                        enum health_wait waits[256];
                        bool mains[256];
                        size_t n = random_next() % 257;

                        for (size_t k = 0; k < n; k++) {
                                waits[k] = (enum health_wait)(random_next() % _WAIT_MAX);
                                mains[k] = random_next() % 2;
                        }
                        health_look(g, 0, i, waits, mains, n,
                                    random_next() % 2   ? NULL
                                    : random_next() % 2 ? "a (b:1)"
                                                        : "");
                }
                health_judge(g, t * SECOND + 10, on_verdict, verdicts);
        }
        health_gang_free(g);
}

static void test_absurd(void **state) {
        unsigned verdicts = 0;

        for (uint64_t seed = 1; seed <= 60; seed++)
                one(seed, &verdicts);
        assert_true(verdicts > 0);
}

/* Memory that grows evenly, by more than there is. */
static void test_steep(void **state) {
        const struct health_facts facts = { .cpu_milli = 1000, .memory = UINT64_MAX - 1 };
        uint64_t values[_TELEMETRY_MAX];
        struct health_gang *g;
        unsigned verdicts = 0;

        assert_int_equal(health_gang_new(&g), 0);
        assert_int_equal(health_join(g, 0, 0, SECOND, &facts), 0);
        for (uint64_t t = 2; t < 7200; t += 5) {
                memset(values, 0xff, sizeof(values)); /* not known */
                values[TELEMETRY_MEMORY_BYTES] = (UINT64_C(1) << 50) * t;
                values[TELEMETRY_CPU_USEC] = t * SECOND;
                health_observe(g, 0, 0, t * SECOND, values);
                health_judge(g, t * SECOND + 10, on_verdict, &verdicts);
        }
        assert_true(verdicts > 0);
        health_gang_free(g);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_absurd),
                cmocka_unit_test(test_steep),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
