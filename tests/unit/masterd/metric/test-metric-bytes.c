/* SPDX-License-Identifier: Apache-2.0 */
/* What is written of a process' series, and what is read of bytes that may be anything. */
#include "tests/unit/masterd/metric/said.h"

static struct metric_budget budget = { .max = UINT64_C(1) << 30 };

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
        for (size_t i = 0; i < all(m, s, a); i++) {
                assert_true(a[i].step == b[i].step && a[i].usec == b[i].usec && a[i].count == b[i].count);
                assert_memory_equal(&a[i].last, &b[i].last, 4 * sizeof(double)); /* NaN is the same, too */
        }
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
