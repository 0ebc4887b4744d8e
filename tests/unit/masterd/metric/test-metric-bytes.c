/* SPDX-License-Identifier: Apache-2.0 */
/* The series of a job: what is kept of what was said, within how many bytes, and what comes back of its
 * bytes. */
#include "masterd/metric/metrics.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"

/* Of its own size, so that a look behind its end is found. */
static uint8_t *copy_of(const uint8_t *bytes, size_t size) {
        uint8_t *copy = malloc(MAX(size, (size_t)1));

        assert_non_null(copy);
        memcpy(copy, bytes, size);
        return copy;
}

static struct metric_budget budget = { .max = UINT64_C(1) << 30 };

static struct metric_source *source(struct metrics *m, uint32_t index) {
        struct metric_source *s;

        assert_int_equal(metrics_source(m, "worker", index, 0, &s), 0);
        return s;
}

/* One that is said at a time of its own. */
static int say(struct metrics *m, struct metric_source *s, uint32_t attempt, uint64_t step, uint64_t usec,
               double value) {
        struct metric_point p = metric_single(step, usec, value);

        return metrics_add(m, s, attempt, "loss", &p);
}

static size_t all(struct metrics *m, struct metric_source *s,
                  struct metric_point ret[static METRIC_CAP_MAX]) {
        const struct metric_series *x = metric_series_of(m, s, "loss");

        return x ? metric_series_read(x, METRIC_CAP_MAX, ret) : 0;
}

/* What is kept is what there was, whatever was said of it, and goes on as it would have. */
static void test_kept(void **state) {
        struct metric_source *s, *t;
        struct metric_point a[METRIC_CAP_MAX], b[METRIC_CAP_MAX];
        struct metrics *other, *m;
        size_t size;
        uint8_t *bytes;

        assert_int_equal(metrics_new(&budget, NULL, &m), 0);
        s = source(m, 0);
        for (uint64_t i = 0; i < 5000; i++)
                (void)say(m, s, 3, i * 7, 1000000 + i * 1000003 - i % 3,
                          i % 50 == 7 ? NAN : 1.0 / (double)(i + 1));
        assert_int_equal(metric_source_write(m, s, &bytes, &size), 0);
        assert_int_equal(metrics_new(&budget, NULL, &other), 0);
        t = source(other, 0);
        assert_int_equal(metric_source_read(other, t, bytes, size), 0);
        for (uint64_t i = 5000; i < 6000; i++) {
                assert_int_equal(say(m, s, 3, i * 7, 1000000 + i * 1000003, 5), 1);
                assert_int_equal(say(other, t, 3, i * 7, 1000000 + i * 1000003, 5), 1);
        }
        assert_int_equal(all(m, s, a), all(other, t, b));
        assert_memory_equal(a, b, all(m, s, a) * sizeof(*a));
        assert_int_equal(say(other, t, 2, 1, UINT64_C(1) << 50, 1), 0);
        metrics_free(other);
        for (size_t cut = 0; cut < size; cut += cut < 200 ? 1 : 97) { /* and no byte of it is believed */
                uint8_t *part = copy_of(bytes, cut);
                assert_int_equal(metrics_new(&budget, NULL, &other), 0);
                t = source(other, 0);
                assert_true(metric_source_read(other, t, part, cut) == (cut == 1 ? 0 : -EBADMSG));
                metrics_free(other);
                free(part);
        }
        srandom(7);
        for (unsigned round = 0; round < 3000; round++) {
                uint8_t *part = copy_of(bytes, size);
                for (unsigned k = 0; k < 3; k++)
                        part[(size_t)random() % (k == 0 ? 40 : size)] = (uint8_t)random();
                assert_int_equal(metrics_new(&budget, NULL, &other), 0);
                t = source(other, 0);
                (void)metric_source_read(other, t, part, size);
                metrics_free(other);
                free(part);
        }
        free(bytes);
        metrics_free(m);
        assert_int_equal(budget.bytes, 0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_kept),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
