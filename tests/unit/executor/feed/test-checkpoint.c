/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes of a trainer's checkpoint: whole, cut off, of another job, nonsense. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#include "executor/feed/checkpoint.h"
#include "lib/base/cleanup.h"

static const uint8_t job[16] = { 1, 2, 3 }, other[16] = { 1, 2, 4 };

struct bytes {
        struct client_state head;
        struct client_ack tasks[3];
};

static struct bytes sample(void) {
        struct bytes b = { .head = { .magic = CLIENT_STATE_MAGIC, .version = CLIENT_STATE_VERSION, .n = 3 },
                           .tasks = { { 7, 100, 2, 9 }, { 8, TASK_TO_END, 0, 1 }, { 7, 120, 0, 11 } } };

        memcpy(b.head.job_uid, job, sizeof(job));
        return b;
}

static void test_load(void **state) {
        struct bytes b = sample(), empty = sample();
        struct checkpoint c = {};
        struct task_mark mark;

        assert_int_equal(checkpoint_load(&c, &b, sizeof(b), job), 0);
        assert_int_equal(checkpoint_find(&c, 7, &mark), 1);
        assert_true(mark.position == 120 && mark.skip == 0); /* what was said last */
        assert_int_equal(checkpoint_find(&c, 8, &mark), 1);
        assert_true(mark.position == TASK_TO_END);
        assert_int_equal(checkpoint_find(&c, 9, &mark), 0);
        /* One that is no good leaves the other. */
        assert_int_equal(checkpoint_load(&c, &b, sizeof(b), other), -EXDEV);
        assert_int_equal(checkpoint_find(&c, 7, &mark), 1);
        empty.head.n = 0;
        assert_int_equal(checkpoint_load(&c, &empty, sizeof(empty.head), job), 0);
        assert_int_equal(checkpoint_find(&c, 7, &mark), 0);
        checkpoint_done(&c);
}

static void test_nonsense(void **state) {
        struct bytes b = sample();
        struct checkpoint c = {};

        for (size_t n = 0; n < sizeof(b); n++) {
                /* A block of its own, so that the sanitizer sees the first byte too far. */
                _cleanup_free_ uint8_t *cut = malloc(n > 0 ? n : 1);

                assert_non_null(cut);
                memcpy(cut, &b, n);
                assert_int_equal(checkpoint_size(cut, n), n < sizeof(b.head) ? 0 : (int64_t)sizeof(b));
                assert_int_equal(checkpoint_load(&c, cut, n, job), -EBADMSG);
        }
        b.head.n = UINT32_MAX;
        assert_int_equal(checkpoint_size(&b, sizeof(b)), -EBADMSG);
        b = sample();
        b.head.version++;
        assert_int_equal(checkpoint_size(&b, sizeof(b)), -EBADMSG);
        b = sample();
        b.head.magic++;
        assert_int_equal(checkpoint_load(&c, &b, sizeof(b), job), -EBADMSG);
        b = sample();
        b.tasks[1].task = 0;
        assert_int_equal(checkpoint_load(&c, &b, sizeof(b), job), -EBADMSG);
        checkpoint_done(&c);
}

int main(void) {
        const struct CMUnitTest tests[] = { cmocka_unit_test(test_load), cmocka_unit_test(test_nonsense) };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
