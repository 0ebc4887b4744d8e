/* SPDX-License-Identifier: Apache-2.0 */
#include "agentd/log/sent.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

struct seen {
        uint64_t offsets[64];
        size_t n, most;
};

static int see(void *userdata, const struct tail_chunk *c) {
        struct seen *s = userdata;

        assert_true(s->n < 64);
        s->offsets[s->n++] = c->offset;
        return s->n == s->most ? -1 : 0;
}

static void add(struct sent *s, uint64_t offset, size_t size, uint64_t now) {
        static char data[TAIL_BYTES];

        assert_true(size <= sizeof(data));
        assert_int_equal(sent_add(s,
                                  &(struct tail_chunk){
                                          .id = { .job = 7 }, .offset = offset, .data = data, .size = size },
                                  now),
                         0);
}

static void test_lately(void **state) {
        struct sent s = {};
        struct seen seen = {};

        sent_each(&s, 0, see, &seen);
        assert_int_equal(seen.n, 0);
        add(&s, 0, 10, 1000);
        add(&s, 10, 0, 2000);
        add(&s, 20, 30, 3000);
        assert_int_equal(s.bytes, 40);
        sent_each(&s, 1000 + SENT_USEC, see, &seen);
        assert_int_equal(seen.n, 3);
        assert_int_equal(seen.offsets[0], 0);
        assert_int_equal(seen.offsets[2], 20);
        seen = (struct seen){};
        sent_each(&s, 1001 + SENT_USEC, see, &seen); /* the first is old */
        assert_int_equal(seen.n, 2);
        assert_int_equal(seen.offsets[0], 10);
        assert_int_equal(s.bytes, 30);
        seen = (struct seen){ .most = 1 };
        sent_each(&s, 4000, see, &seen); /* stops when it is not taken */
        assert_int_equal(seen.n, 1);
        sent_trim(&s, 3001 + SENT_USEC);
        assert_null(s.chunks);
        assert_int_equal(s.bytes, 0);
        sent_done(&s);
}

/* The oldest make room; what is sent again is what is latest. */
static void test_bounded(void **state) {
        struct sent s = {};
        struct seen seen = {};

        for (uint64_t i = 0; i < 40; i++)
                add(&s, i * TAIL_BYTES, TAIL_BYTES, i);
        assert_true(s.bytes <= SENT_BYTES_MAX);
        sent_each(&s, 40, see, &seen);
        assert_int_equal(seen.n, SENT_BYTES_MAX / TAIL_BYTES);
        assert_int_equal(seen.offsets[seen.n - 1], 39 * (uint64_t)TAIL_BYTES);
        sent_done(&s);
        assert_int_equal(s.bytes, 0);
}

int main(void) {
        const struct CMUnitTest tests[] = { cmocka_unit_test(test_lately), cmocka_unit_test(test_bounded) };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
