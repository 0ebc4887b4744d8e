/* SPDX-License-Identifier: Apache-2.0 */
/* Processes that look: what they have, that they do not pile up, and that they go. */
#include "starter/observe/child.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "lib/base/file.h"

static sd_event *event;
static struct children *children;

static int setup(void **state) {
        sigset_t signals;

        /* As a daemon has it. */
        sigemptyset(&signals);
        sigaddset(&signals, SIGTERM);
        sigaddset(&signals, SIGALRM);
        assert_int_equal(sigprocmask(SIG_BLOCK, &signals, NULL), 0);
        assert_true(sd_event_new(&event) >= 0);
        assert_int_equal(children_new(event, &children), 0);
        return 0;
}

static int teardown(void **state) {
        children_free(children);
        sd_event_unref(event);
        return 0;
}

static void say_status(void *job, int in, int out) {
        _cleanup_free_ char *status = NULL;
        size_t size;

        if (read_file("/proc/self/status", 64 << 10, &status, &size) >= 0)
                (void)write_all(out, status, size);
        if (fcntl(5, F_GETFD) < 0 && fcntl(3, F_GETFD) >= 0)
                (void)write_all(out, "closed\n", 7);
}

static void hang(void *job, int in, int out) {
        for (;;)
                (void)pause();
}

/* Until the child of that owner was reaped. */
static void run_until_room(uint32_t owner) {
        int fd = -EBADF;

        for (unsigned i = 0; i < 1000 && child_run(children, owner, 0, say_status, NULL, 0, &fd) == -EBUSY;
             i++)
                assert_true(sd_event_run(event, 20000) >= 0);
        assert_true(fd >= 0);
        close(fd);
}

static void test_powers(void **state) {
        const uint64_t kept = UINT64_C(1) << CAP_SYS_PTRACE;
        _cleanup_free_ char *text = NULL;
        char line[64];
        int fd;

        assert_int_equal(child_run(children, 1, kept, say_status, NULL, 0, &fd), 0);
        assert_int_equal(read_fd(fd, 64 << 10, &text, NULL), 0);
        close(fd);
        snprintf(line, sizeof(line), "CapEff:\t%016llx\n", geteuid() == 0 ? (unsigned long long)kept : 0ull);
        assert_non_null(strstr(text, line));
        snprintf(line, sizeof(line), "CapPrm:\t%016llx\n", geteuid() == 0 ? (unsigned long long)kept : 0ull);
        assert_non_null(strstr(text, line));
        assert_non_null(strstr(text, "NoNewPrivs:\t1\n"));
        assert_non_null(strstr(text, "SigBlk:\t0000000000000000\n"));
        assert_non_null(strstr(text, "closed\n"));
}

/* An owner's that hang have so many places, and no more; others go on. */
static void test_bounds(void **state) {
        int fds[CHILDREN_OF_OWNER_MAX], fd;

        run_until_room(7);
        while (sd_event_run(event, 50000) > 0)
                ;
        for (size_t i = 0; i < CHILDREN_OF_OWNER_MAX; i++)
                assert_int_equal(child_run(children, 7, 0, hang, NULL, 0, fds + i), 0);
        assert_int_equal(child_run(children, 7, 0, hang, NULL, 0, &fd), -EBUSY);
        assert_int_equal(child_run(children, 8, 0, say_status, NULL, 0, &fd), 0);
        close(fd);
        for (size_t i = 0; i < CHILDREN_OF_OWNER_MAX; i++)
                close(fds[i]);
}

/* Those that hang go with whoever asked. */
static void test_end(void **state) {
        char byte;
        int fd;

        assert_int_equal(child_run(children, 9, 0, hang, NULL, 0, &fd), 0);
        children_free(children);
        assert_int_equal(read(fd, &byte, 1), 0);
        close(fd);
        assert_int_equal(children_new(event, &children), 0);
        while (waitpid(-1, NULL, 0) > 0)
                ;
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_powers),
                cmocka_unit_test(test_bounds),
                cmocka_unit_test(test_end),
        };

        return cmocka_run_group_tests(tests, setup, teardown);
}
