/* SPDX-License-Identifier: Apache-2.0 */
/* The budget of data pipes: what was handed out is what is used, and beyond the limit they are ordinary ones.
 */
#include "agentd/feed/pipes.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"

static uint32_t make(struct pipe_budget *b, uint32_t size) {
        uint64_t before = b->used;
        uint32_t got;
        int fds[2];

        assert_int_equal(pipe_make(b, size, fds, &got), 0);
        assert_int_equal(fcntl(fds[0], F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
        assert_int_equal(fcntl(fds[1], F_GETPIPE_SZ), got);
        assert_true(b->used == before + got);
        (void)close(fds[0]);
        (void)close(fds[1]);
        return got;
}

static void test_sizes(void **state) {
        struct pipe_budget b = { .limit = 8 * PIPE_SIZE_MAX };

        assert_int_equal(make(&b, 0), PIPE_SIZE_DEFAULT);
        assert_in_range(make(&b, 100 << 10), 100 << 10, 256 << 10); /* the kernel rounds up */
        assert_int_equal(make(&b, UINT32_MAX), PIPE_SIZE_MAX);
        assert_in_range(make(&b, 1), 1, 4u * (uint32_t)sysconf(_SC_PAGESIZE));
}

static void test_budget(void **state) {
        struct pipe_budget b = { .limit = PIPE_SIZE_MAX + PIPE_SIZE_DEFAULT };
        uint32_t large = make(&b, PIPE_SIZE_MAX);

        assert_int_equal(large, PIPE_SIZE_MAX);
        assert_int_equal(make(&b, PIPE_SIZE_MAX), PIPE_SIZE_DEFAULT); /* no room for a second one */
        pipe_return(&b, large);
        assert_int_equal(make(&b, PIPE_SIZE_MAX), PIPE_SIZE_MAX);
        pipe_return(&b, UINT32_MAX);
        assert_true(b.used == 0); /* never below */
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_sizes),
                cmocka_unit_test(test_budget),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
