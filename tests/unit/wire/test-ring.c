/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/wire/ring.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"

/* Bytes come out as they went in, whatever the sizes of the steps, and never more than max are held. */
static void test_order_and_bound(void **state) {
        struct ring r = { .max = 100000 };
        uint8_t next_in = 0, next_out = 0;
        unsigned seed = 1;
        for (int step = 0; step < 20000; step++) {
                uint8_t *p;
                size_t space;
                seed = seed * 1103515245u + 12345u;
                size_t want = seed >> 8 & 0x3fff;
                assert_int_equal(ring_space(&r, &p, &space), 0);
                assert_true(ring_size(&r) + space <= r.max);
                assert_true(space > 0 || ring_full(&r));
                size_t n = MIN(want, space);
                for (size_t i = 0; i < n; i++)
                        p[i] = next_in++;
                ring_fill(&r, n);
                seed = seed * 1103515245u + 12345u;
                n = MIN((size_t)(seed >> 8 & 0x3fff), ring_size(&r));
                for (size_t i = 0; i < n; i++)
                        assert_int_equal(r.data[r.begin + i], next_out++);
                ring_consume(&r, n);
                assert_true(r.capacity <= 2 * r.max);
        }
        ring_done(&r);
        assert_int_equal(ring_size(&r), 0);
}

static void test_full_and_empty(void **state) {
        struct ring r = { .max = 1000 };
        uint8_t *p;
        size_t space;
        assert_int_equal(ring_space(&r, &p, &space), 0);
        assert_int_equal(space, 1000);
        memset(p, 1, space);
        ring_fill(&r, 1000);
        assert_true(ring_full(&r));
        assert_int_equal(ring_space(&r, &p, &space), 0);
        assert_int_equal(space, 0);
        ring_consume(&r, 1000);
        assert_false(ring_full(&r));
        ring_done(&r);
        ring_done(&r);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_order_and_bound),
                cmocka_unit_test(test_full_and_empty),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
