/* SPDX-License-Identifier: Apache-2.0 */
/* How many pipes are large at a time: those that are open, by whichever end and however they were opened, and
 * not those that have been closed; and nobody who has one notices. */
#include "starter/observe/widened.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/base/clock.h"

#define KIB(n) ((uint32_t)(n) << 10)
#define LARGE KIB(256)
#define SMALLEST KIB(65)

static uint64_t now = USEC_PER_SEC;

static int take(struct widened *w, int fd, uint32_t size) {
        uint32_t got = 0;
        int r;

        now += 10 * USEC_PER_SEC;
        r = widened_take(w, fd, size, now, &got);
        if (r >= 0)
                assert_int_equal(got, fcntl(fd, F_GETPIPE_SZ));
        return r;
}

static void make(int fds[2]) {
        assert_int_equal(pipe2(fds, O_CLOEXEC | O_NONBLOCK), 0);
}

static void end(int fds[2]) {
        (void)close(fds[0]);
        (void)close(fds[1]);
}

static void test_number(void **state) {
        struct widened *w;
        int fds[4][2];

        assert_int_equal(widened_new(3, 1 << 30, &w), 0);
        for (int i = 0; i < 4; i++)
                make(fds[i]);
        for (int i = 0; i < 3; i++)
                assert_int_equal(take(w, fds[i][i % 2], LARGE), 0);
        assert_int_equal(take(w, fds[3][1], LARGE), -EDQUOT);
        assert_int_equal(fcntl(fds[3][1], F_GETPIPE_SZ), KIB(64));
        assert_int_equal(take(w, fds[3][1], KIB(4)), 0); /* it has as much already, and is none of them */
        /* One that is there may ask again, also for more, by either end. */
        assert_int_equal(take(w, fds[0][0], 2 * LARGE), 0);
        assert_int_equal(take(w, fds[0][1], 4 * LARGE), 0);
        assert_int_equal(take(w, fds[3][1], LARGE), -EDQUOT);
        end(fds[1]);
        assert_int_equal(take(w, fds[3][1], LARGE), 0);
        end(fds[0]);
        end(fds[2]);
        end(fds[3]);
        /* Many more than fit, one after another. */
        for (int i = 0; i < 1000; i++) {
                make(fds[0]);
                assert_int_equal(take(w, fds[0][1], LARGE), 0);
                end(fds[0]);
        }
        widened_free(w);
}

static void test_bytes(void **state) {
        struct widened *w;
        int fds[3][2];

        assert_int_equal(widened_new(100, 3 * LARGE, &w), 0);
        for (int i = 0; i < 3; i++)
                make(fds[i]);
        assert_int_equal(take(w, fds[0][1], LARGE), 0);
        assert_int_equal(take(w, fds[1][1], 2 * LARGE), 0);
        assert_int_equal(take(w, fds[2][1], LARGE), -EDQUOT);
        assert_int_equal(take(w, fds[0][1], 2 * LARGE), -EDQUOT);
        end(fds[1]);
        assert_int_equal(take(w, fds[0][1], 2 * LARGE), 0);
        assert_int_equal(take(w, fds[2][1], LARGE), 0);
        end(fds[0]);
        end(fds[2]);
        widened_free(w);
}

/* One end, or another that was opened by way of /proc: it is as large as it was. */
static void test_still_open(void **state) {
        struct widened *w;
        int fds[4][2], other[2], again;
        char path[64], byte = 0;

        assert_int_equal(widened_new(3, 1 << 30, &w), 0);
        for (int i = 0; i < 4; i++)
                make(fds[i]);
        for (int i = 0; i < 3; i++)
                assert_int_equal(take(w, fds[i][1], SMALLEST), 0); /* the smallest that there are */
        (void)close(fds[0][0]);
        (void)close(fds[1][1]);
        snprintf(path, sizeof(path), "/proc/self/fd/%d", fds[2][1]);
        again = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
        assert_true(again >= 0);
        end(fds[2]);
        assert_int_equal(take(w, fds[3][1], SMALLEST), -EDQUOT);
        assert_int_equal(fcntl(again, F_GETPIPE_SZ), KIB(128));

        /* A writer whose reader has gone is told so, a reader whose writer has gone too. */
        (void)signal(SIGPIPE, SIG_IGN);
        assert_true(write(fds[0][1], &byte, 1) < 0 && errno == EPIPE);
        assert_int_equal(read(fds[1][0], &byte, 1), 0);
        (void)close(again);
        assert_int_equal(take(w, fds[3][1], SMALLEST), 0);
        assert_int_equal(write(fds[3][1], "x", 1), 1);
        assert_int_equal(read(fds[3][0], &byte, 1), 1);
        (void)close(fds[0][1]);
        (void)close(fds[1][0]);
        end(fds[3]);
        make(other);
        assert_int_equal(take(w, other[1], SMALLEST), 0);
        end(other);
        widened_free(w);
}

/* Nobody makes it look all the time. */
static void test_looks_are_rare(void **state) {
        struct widened *w;
        int fds[2][2];
        uint32_t got;

        assert_int_equal(widened_new(1, 1 << 30, &w), 0);
        make(fds[0]);
        make(fds[1]);
        assert_int_equal(widened_take(w, fds[0][1], LARGE, now, &got), 0);
        assert_int_equal(widened_take(w, fds[1][1], LARGE, now, &got), -EDQUOT);
        end(fds[0]);
        assert_int_equal(widened_take(w, fds[1][1], LARGE, now + USEC_PER_SEC / 2, &got), -EDQUOT);
        assert_int_equal(widened_take(w, fds[1][1], LARGE, now + USEC_PER_SEC, &got), 0);
        end(fds[1]);
        widened_free(w);
}

static void test_no_pipe(void **state) {
        char path[] = "/tmp/primus-widened-XXXXXX";
        struct widened *w;
        uint32_t got;
        int fd;

        assert_int_equal(widened_new(1, 1 << 30, &w), 0);
        assert_int_equal(widened_take(w, -1, LARGE, now, &got), -EMEDIUMTYPE);
        fd = open("/dev/null", O_RDWR | O_CLOEXEC);
        assert_int_equal(widened_take(w, fd, LARGE, now, &got), -EMEDIUMTYPE);
        (void)close(fd);
        fd = mkstemp(path);
        (void)unlink(path);
        assert_int_equal(mkfifo(path, 0600), 0);
        (void)close(fd);
        fd = open(path, O_RDWR | O_CLOEXEC);
        assert_int_equal(widened_take(w, fd, LARGE, now, &got), -EMEDIUMTYPE);
        (void)close(fd);
        (void)unlink(path);
        widened_free(w);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_number),     cmocka_unit_test(test_bytes),
                cmocka_unit_test(test_still_open), cmocka_unit_test(test_looks_are_rare),
                cmocka_unit_test(test_no_pipe),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
