/* SPDX-License-Identifier: Apache-2.0 */
/* A look, at a /proc of the test's own, and at the test itself: what is written and what is made of it. */
#include "starter/observe/look.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "agentd/capture/found.h"
#include "lib/base/cleanup.h"
#include "lib/base/file.h"

static char proc[] = "/tmp/primus-look-XXXXXX";

static void put(const char *text, const char *format, ...) _printf_(2, 3);
static void put(const char *text, const char *format, ...) {
        char name[64], path[160], *slash;
        va_list ap;

        va_start(ap, format);
        vsnprintf(name, sizeof(name), format, ap);
        va_end(ap);
        snprintf(path, sizeof(path), "%s/%s", proc, name);
        slash = strrchr(path, '/');
        *slash = 0;
        assert_true(make_directories(path, 0755) >= 0);
        *slash = '/';
        if (strncmp(text, "->", 2) == 0)
                assert_int_equal(symlink(text + 2, path), 0);
        else
                assert_int_equal(write_file_atomic(path, text, strlen(text), 0644, false), 0);
}

static int setup(void **state) {
        char call[128];

        assert_non_null(mkdtemp(proc));
        put("Name:\tx\nThreads:\t2\n", "7/status");
        put("7 (python3) S 1", "7/task/7/stat");
        snprintf(call, sizeof(call), "%d 0x1 0x0 0x0 0x0 0x0 0x0 0x1 0x2\n", SYS_futex);
        put(call, "7/task/7/syscall");
        put("[<0>] futex_wait+0x1/0x2\n[<0>] do_futex+0x1/0x2\n", "7/task/7/stack");
        put("7 (reader) S 1", "7/task/8/stat");
        snprintf(call, sizeof(call), "%d 0x5 0x0 0x0 0x0 0x0 0x0 0x1 0x2\n", SYS_read);
        put(call, "7/task/8/syscall");
        put("pipe_read", "7/task/8/wchan");
        put("->pipe:[99]", "7/fd/5");
        /* An event loop with a timer and a device. */
        put("Name:\tx\nThreads:\t1\n", "20/status");
        put("20 (loop) S 1", "20/task/20/stat");
        snprintf(call, sizeof(call), "%d 0x3 0x0 0x0 0x0 0x0 0x0 0x1 0x2\n", SYS_epoll_pwait);
        put(call, "20/task/20/syscall");
        put("->anon_inode:[eventpoll]", "20/fd/3");
        put("->anon_inode:[timerfd]", "20/fd/4");
        put("->/dev/nvidia0", "20/fd/6");
        put("pos:\t0\ntfd:        4 events:       19\ntfd:        6 events: 19\ntfd: 3 events: 19\n",
            "20/fdinfo/3");
        /* One that may not be looked into, and one that stopped. */
        put("Name:\tx\nThreads:\t1\n", "30/status");
        put("30 (hidden) D 1", "30/task/30/stat");
        put("Name:\tx\nThreads:\t1\n", "31/status");
        put("31 (still) T 1", "31/task/31/stat");
        return 0;
}

static int teardown(void **state) {
        return remove_tree(proc);
}

/* The whole way, but for the process: false: the end is missing. */
static bool read_all(int fd, struct capture *ret) {
        static uint8_t buffer[4 << 20];
        static struct stream_item item;
        size_t size = 0, at = 0;
        ssize_t n;
        int l;

        while ((n = read(fd, buffer + size, sizeof(buffer) - size)) > 0)
                size += (size_t)n;
        *ret = (struct capture){};
        while ((l = stream_read(buffer + at, size - at, &item)) > 0) {
                at += (size_t)l;
                if (item.type == STREAM_END)
                        return at == size;
                assert_int_equal(found_add(ret, &item), 0);
        }
        assert_int_equal(l, 0);
        return false;
}

static void look_at(const char *where, const pid_t *pids, size_t n, struct capture *ret) {
        struct look_capture q = { .proc = where, .pids = pids, .n_pids = n };
        int fds[2], status;
        pid_t pid;

        assert_int_equal(pipe(fds), 0);
        pid = fork(); /* a pipe holds less than a look */
        if (pid == 0) {
                look_capture(&q, -1, fds[1]);
                _exit(0);
        }
        close(fds[1]);
        assert_true(read_all(fds[0], ret));
        close(fds[0]);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
}

static void test_threads(void **state) {
        const pid_t pids[] = { 7, 20, 30, 31, 99 };
        struct capture c;

        look_at(proc, pids, ELEMENTSOF(pids), &c);
        assert_int_equal(c.total, 5);
        assert_int_equal(c.n, 5);
        assert_int_equal(capture_find(&c, 7)->class, CAPTURE_FUTEX);
        assert_string_equal(capture_find(&c, 7)->stack, "futex_wait do_futex");
        assert_string_equal(capture_find(&c, 7)->name, "python3");
        assert_int_equal(capture_find(&c, 8)->class, CAPTURE_PIPE);
        assert_string_equal(capture_find(&c, 8)->call, "read");
        assert_string_equal(capture_find(&c, 8)->stack, "pipe_read");
        assert_int_equal(capture_find(&c, 8)->pid, 7);
        assert_int_equal(capture_find(&c, 20)->class, CAPTURE_DEVICE);
        assert_int_equal(capture_find(&c, 30)->class, CAPTURE_DISK);
        assert_null(capture_find(&c, 30)->stack);
        assert_string_equal(capture_find(&c, 30)->call, "");
        assert_int_equal(capture_find(&c, 31)->class, CAPTURE_STOPPED);
        capture_done(&c);
}

static void test_many_are_bounded(void **state) {
        const pid_t pids[] = { 40, 41 };
        struct capture c;

        put("Name:\tx\nThreads:\t1000\n", "40/status");
        for (unsigned i = 0; i < 400; i++)
                put("1 (many) R 1", "40/task/%u/stat", i == 0 ? 40 : 1000 + i);
        put("Name:\tx\nThreads:\t1\n", "41/status");
        put("41 (one) R 1", "41/task/41/stat");
        look_at(proc, pids, 2, &c);
        assert_int_equal(c.n, CAPTURE_THREADS_MAX);
        assert_int_equal(c.total, 1001);
        assert_non_null(capture_find(&c, 41)); /* not left out for the other's many */
        capture_done(&c);
}

static void test_self(void **state) {
        const pid_t pids[] = { getpid() };
        struct capture c;

        look_at("/proc", pids, 1, &c);
        assert_true(c.n >= 1 && c.total >= 1);
        assert_non_null(capture_find(&c, (uint32_t)getpid()));
        capture_done(&c);
}

/* Whoever reads has gone: the look ends, whatever is left to look at. */
static void test_nobody_reads(void **state) {
        const pid_t pids[] = { 7, 20 };
        struct look_capture q = { .proc = proc, .pids = pids, .n_pids = 2 };
        int fds[2];

        assert_int_equal(pipe(fds), 0);
        close(fds[0]);
        assert_true(signal(SIGPIPE, SIG_IGN) != SIG_ERR);
        look_capture(&q, -1, fds[1]);
        close(fds[1]);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_threads),
                cmocka_unit_test(test_many_are_bounded),
                cmocka_unit_test(test_self),
                cmocka_unit_test(test_nobody_reads),
        };

        return cmocka_run_group_tests(tests, setup, teardown);
}
