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

static void put_and_take(struct ring *r, size_t n) {
        while (n > 0) {
                uint8_t *p;
                size_t space;
                assert_int_equal(ring_space(r, &p, &space), 0);
                memset(p, 1, MIN(space, n));
                ring_fill(r, MIN(space, n));
                n -= MIN(space, n);
        }
        ring_consume(r, ring_size(r));
}

/* What a flood needed stays while there is much to carry, and goes when only little comes. */
static void test_calm(void **state) {
        struct ring r = { .max = 1 << 20 };

        put_and_take(&r, 100);
        assert_in_range(r.capacity, 100, 4096);
        for (unsigned i = 0; i < 100; i++) {
                put_and_take(&r, 20000);
                assert_in_range(r.capacity, 20000, 65536);
                put_and_take(&r, 100);
                assert_in_range(r.capacity, 20000, 65536);
        }
        for (unsigned i = 0; i < 20; i++)
                put_and_take(&r, 100);
        assert_in_range(r.capacity, 0, 4096);
        ring_done(&r);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_order_and_bound),
                cmocka_unit_test(test_full_and_empty),
                cmocka_unit_test(test_calm),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
