/* SPDX-License-Identifier: Apache-2.0 */
/* primus_progress(): the page, the watchdog's datagrams, and what a call costs. What it finds in the
 * environment holds for the process, so each case is one of its own. */
#include <fcntl.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/primus/primus.h"
#include "lib/primus/progress.h"

#define CHECK(x)                                                                                             \
        do {                                                                                                 \
                if (!(x)) {                                                                                  \
                        fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #x);                              \
                        _exit(1);                                                                            \
                }                                                                                            \
        } while (0)

struct fixture {
        char directory[64], page[96], socket[96];
        int receiver;
};

static int setup(void **state) {
        static struct fixture f;
        struct sockaddr_un a = { .sun_family = AF_UNIX };
        int fd;

        snprintf(f.directory, sizeof(f.directory), "/tmp/test-progress-XXXXXX");
        assert_non_null(mkdtemp(f.directory));
        snprintf(f.page, sizeof(f.page), "%s/progress", f.directory);
        snprintf(f.socket, sizeof(f.socket), "%s/notify", f.directory);
        fd = open(f.page, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        assert_true(fd >= 0 && ftruncate(fd, 16) == 0);
        close(fd);
        f.receiver = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        snprintf(a.sun_path, sizeof(a.sun_path), "%s", f.socket);
        assert_int_equal(bind(f.receiver, (struct sockaddr *)&a, sizeof(a)), 0);
        unsetenv("NOTIFY_SOCKET");
        unsetenv("WATCHDOG_USEC");
        setenv("PRIMUS_PROGRESS", f.page, 1);
        *state = &f;
        return 0;
}

static int teardown(void **state) {
        struct fixture *f = *state;

        close(f->receiver);
        (void)unlink(f->page);
        (void)unlink(f->socket);
        (void)rmdir(f->directory);
        return 0;
}

static void in_child(void (*run)(struct fixture *f), struct fixture *f) {
        pid_t pid = fork();
        int status;

        assert_true(pid >= 0);
        if (pid == 0) {
                run(f);
                _exit(0);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void read_page(const struct fixture *f, uint64_t ret[static 2]) {
        _cleanup_close_ int fd = open(f->page, O_RDONLY | O_CLOEXEC);

        if (fd < 0 || pread(fd, ret, 16, 0) != 16)
                ret[0] = ret[1] = UINT64_MAX;
}

static unsigned datagrams(const struct fixture *f) {
        char text[64];
        unsigned n = 0;
        ssize_t size;

        while ((size = recv(f->receiver, text, sizeof(text), 0)) > 0) {
                CHECK(size == 10 && memcmp(text, "WATCHDOG=1", 10) == 0);
                n++;
        }
        return n;
}

static void run_page(struct fixture *f) {
        uint64_t page[2], before = now_boot(), first;

        read_page(f, page);
        CHECK(page[0] == 0 && page[1] == 0);
        primus_progress(7);
        read_page(f, page);
        CHECK(page[0] == 7 && page[1] >= before && page[1] <= now_boot());
        first = page[1];
        usleep(2000);
        primus_progress(UINT64_C(1) << 40);
        read_page(f, page);
        CHECK(page[0] == UINT64_C(1) << 40 && page[1] > first);
        CHECK(datagrams(f) == 0);
        CHECK(progress_wait_msec() == -1);
}

static void test_page(void **state) {
        in_child(run_page, *state);
}

static void run_nothing(struct fixture *f) {
        for (uint64_t i = 0; i < 1000; i++)
                primus_progress(i);
        progress_waiting();
        CHECK(progress_wait_msec() == -1);
}

/* Outside of Primus, and where the file is not what it should be. */
static void test_nothing(void **state) {
        struct fixture *f = *state;

        assert_int_equal(truncate(f->page, 8), 0);
        setenv("NOTIFY_SOCKET", f->socket, 1);
        setenv("WATCHDOG_USEC", "1000", 1);
        in_child(run_nothing, f);
        setenv("PRIMUS_PROGRESS", f->directory, 1);
        in_child(run_nothing, f);
        setenv("PRIMUS_PROGRESS", "/dev/null", 1);
        in_child(run_nothing, f);
        unsetenv("PRIMUS_PROGRESS");
        in_child(run_nothing, f);
        assert_int_equal(datagrams(f), 0);
}

static void run_watchdog(struct fixture *f) {
        uint64_t until;

        CHECK(progress_wait_msec() == -1); /* who has never called does not feed by waiting */
        progress_waiting();
        CHECK(datagrams(f) == 0);
        primus_progress(1);
        CHECK(datagrams(f) == 1);
        for (uint64_t i = 0; i < 1000; i++)
                primus_progress(i);
        CHECK(datagrams(f) == 0); /* half of the interval is not over */
        CHECK(progress_wait_msec() == 100);
        usleep(110 * 1000);
        primus_progress(2);
        CHECK(datagrams(f) == 1);
        usleep(110 * 1000);
        progress_waiting();
        CHECK(datagrams(f) == 1);
        progress_waiting();
        CHECK(datagrams(f) == 0);

        /* In a second: about ten. */
        until = now_boot() + USEC_PER_SEC;
        for (uint64_t i = 0; now_boot() < until; i++)
                primus_progress(i);
        CHECK(datagrams(f) <= 11);
}

static void test_watchdog(void **state) {
        struct fixture *f = *state;

        setenv("NOTIFY_SOCKET", f->socket, 1);
        setenv("WATCHDOG_USEC", "200000", 1);
        setenv("WATCHDOG_PID", "1", 1); /* of somebody else: a shell around the trainer */
        in_child(run_watchdog, f);
        unsetenv("WATCHDOG_PID");
}

/* systemd is away, or its socket is full: nobody waits for it. */
static void run_deaf(struct fixture *f) {
        errno = 42;
        for (uint64_t i = 0; i < 2000; i++) {
                primus_progress(i);
                usleep(10);
        }
        CHECK(errno == 42);
}

static void test_deaf(void **state) {
        struct fixture *f = *state;

        setenv("WATCHDOG_USEC", "2", 1);
        setenv("NOTIFY_SOCKET", "/nowhere/notify", 1);
        in_child(run_deaf, f);
        setenv("NOTIFY_SOCKET", f->socket, 1); /* nobody reads */
        in_child(run_deaf, f);
}

static void run_cost(struct fixture *f) {
        enum {
                N = 1000000
        };
        uint64_t best = UINT64_MAX;

        for (unsigned round = 0; round < 5; round++) {
                uint64_t begin = now_boot();
                for (uint64_t i = 0; i < N; i++)
                        primus_progress(i);
                best = MIN(best, now_boot() - begin);
        }
        printf("%" PRIu64 " ns a call\n", best * 1000 / N);
        fflush(stdout);
}

static void test_cost(void **state) {
        struct fixture *f = *state;

        setenv("NOTIFY_SOCKET", f->socket, 1);
        setenv("WATCHDOG_USEC", "30000000", 1);
        in_child(run_cost, f);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_page, setup, teardown),
                cmocka_unit_test_setup_teardown(test_nothing, setup, teardown),
                cmocka_unit_test_setup_teardown(test_watchdog, setup, teardown),
                cmocka_unit_test_setup_teardown(test_deaf, setup, teardown),
                cmocka_unit_test_setup_teardown(test_cost, setup, teardown),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
