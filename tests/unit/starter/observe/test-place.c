/* SPDX-License-Identifier: Apache-2.0 */
/* No name leads out of primus.slice, whatever lies there; and what may be sent to a program. */
#include "starter/observe/place.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"
#include "lib/base/file.h"
#include "starter/observe/tell.h"

#define UNIT "primus-7-worker-0.1.service"

static char root[] = "/tmp/primus-place-XXXXXX";
static int hierarchy = -EBADF;

static void make(const char *path) {
        char full[256];

        snprintf(full, sizeof(full), "%s/sys/fs/cgroup/unified/%s", root, path);
        assert_int_equal(make_directories(full, 0755), 0);
}

static void put(const char *path, const char *text) {
        char full[256];

        snprintf(full, sizeof(full), "%s/sys/fs/cgroup/unified/%s", root, path);
        assert_int_equal(write_file_atomic(full, text, strlen(text), 0644, false), 0);
}

static int setup(void **state) {
        assert_non_null(mkdtemp(root));
        make("primus.slice/primus-7.slice/" UNIT "/below/deeper");
        make("primus.slice/primus-8.slice");
        make("system.slice/evil.service");
        put("primus.slice/primus-7.slice/" UNIT "/cgroup.procs", "0\n1\n12\n13\n");
        put("primus.slice/primus-7.slice/" UNIT "/below/deeper/cgroup.procs", "14\n");
        put("system.slice/evil.service/cgroup.procs", "99\n");
        hierarchy = place_hierarchy(root);
        return hierarchy < 0 ? -1 : 0;
}

static int teardown(void **state) {
        close_fd(hierarchy);
        return remove_tree(root);
}

static void test_unit(void **state) {
        _cleanup_close_ int fd = place_unit(hierarchy, UNIT), slice = place_slice(hierarchy);
        pid_t pids[PLACE_PROCESSES_MAX];

        assert_true(fd >= 0 && slice >= 0);
        assert_int_equal(place_job(UNIT), 7);
        assert_int_equal(place_processes(fd, pids), 3);
        assert_true(pids[0] == 12 && pids[1] == 13 && pids[2] == 14);
        assert_int_equal(place_unit(hierarchy, "primus-8-worker-0.1.service"), -ENOENT);
        assert_true(place_unit(-EBADF, UNIT) < 0);
}

static void test_bad_names(void **state) {
        static const char *const names[] = {
                "",
                ".",
                "..",
                "/",
                "evil.service",
                "../../system.slice/evil.service",
                "primus-7-worker-0.1.service/..",
                "primus-7-worker-0.1.service/below",
                "primus-7-../../..-0.1.service",
                "primus-7-worker-0.1.scope",
                "primus-7-wor/ker-0.1.service",
                "primus-session-7-worker-0.1.2.service",
                "primus-7-worker-0.1.service\n",
                "primus--worker-0.1.service",
                "/sys/fs/cgroup/system.slice",
                "system.slice",
        };

        for (size_t i = 0; i < ELEMENTSOF(names); i++)
                assert_int_equal(place_unit(hierarchy, names[i]), -EINVAL);
}

/* A link in the place of a job's slice or of a unit; in life the kernel makes none there. */
static void test_links(void **state) {
        char at[256], to[256];

        snprintf(at, sizeof(at), "%s/sys/fs/cgroup/unified/primus.slice/primus-9.slice", root);
        snprintf(to, sizeof(to), "%s/sys/fs/cgroup/unified/primus.slice/primus-7.slice", root);
        assert_int_equal(symlink(to, at), 0);
        assert_true(place_unit(hierarchy, "primus-9-worker-0.1.service") < 0);
        snprintf(at, sizeof(at),
                 "%s/sys/fs/cgroup/unified/primus.slice/primus-8.slice/primus-8-x-0.1.service", root);
        assert_int_equal(symlink("../../../system.slice/evil.service", at), 0);
        assert_int_equal(place_unit(hierarchy, "primus-8-x-0.1.service"), -ELOOP);
        assert_int_equal(place_open_below(hierarchy, "..", O_RDONLY), -EINVAL);
        assert_int_equal(place_open_below(hierarchy, "primus.slice/..", O_RDONLY), -EINVAL);
        assert_int_equal(place_open_below(hierarchy, ".", O_RDONLY), -EINVAL);
        assert_int_equal(place_open_below(hierarchy, "/etc", O_RDONLY), -EINVAL);
        assert_int_equal(place_open_below(hierarchy, "", O_RDONLY), -EINVAL);
}

static void test_signals(void **state) {
        static const int refused[] = { 0, -1, SIGKILL, SIGSTOP, 32, 33, 65, 1000, INT32_MIN };

        for (size_t i = 0; i < ELEMENTSOF(refused); i++)
                assert_false(signal_allowed(refused[i]));
        assert_true(signal_allowed(SIGUSR1) && signal_allowed(SIGTERM) && signal_allowed(SIGRTMIN) &&
                    signal_allowed(SIGRTMAX));
}

static void on_signal(int number) {
}

/* This process: it catches the one and not the other, and is of no unit. */
static void test_tell(void **state) {
        char own[96], path[64], text[128];

        assert_true(signal(SIGUSR2, on_signal) != SIG_ERR);
        assert_false(signal_process("/proc", getpid(), UNIT, SIGUSR2));
        /* A /proc in which it is. */
        snprintf(path, sizeof(path), "%s/%d", root, getpid());
        assert_int_equal(mkdir(path, 0755), 0);
        snprintf(own, sizeof(own), "%s/cgroup", path);
        snprintf(text, sizeof(text), "0::/primus.slice/primus-7.slice/%s\n", UNIT);
        assert_int_equal(write_file_atomic(own, text, strlen(text), 0644, false), 0);
        snprintf(own, sizeof(own), "%s/status", path);
        snprintf(text, sizeof(text), "Name:\tx\nSigCgt:\t%016llx\n", 1ull << (SIGUSR2 - 1));
        assert_int_equal(write_file_atomic(own, text, strlen(text), 0644, false), 0);
        assert_true(signal_process(root, getpid(), UNIT, SIGUSR2));
        assert_false(signal_process(root, getpid(), UNIT, SIGUSR1));
        assert_false(signal_process(root, getpid(), "primus-7-worker-0.10.service", SIGUSR2));
        assert_false(signal_process(root, getpid(), "primus-7-worker-0.1", SIGUSR2));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_unit),  cmocka_unit_test(test_bad_names),
                cmocka_unit_test(test_links), cmocka_unit_test(test_signals),
                cmocka_unit_test(test_tell),
        };

        return cmocka_run_group_tests(tests, setup, teardown);
}
