/* SPDX-License-Identifier: Apache-2.0 */
/* A unit's figures from a /proc of the test's own. From a real one: test-probe.c. */
#include "agentd/probe/procfs.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"
#include "tests/kit/root-kit.h"

static int directory(const char *path) {
        char full[256];
        int fd;

        snprintf(full, sizeof(full), "%s%s", root_kit, path);
        fd = open(full, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        assert_true(fd >= 0);
        return fd;
}

static void fill(uint64_t values[static _TELEMETRY_MAX]) {
        _cleanup_close_ int proc = directory("/proc"), unit = directory("/unit");

        telemetry_clear(values);
        assert_int_equal(procfs_fill(proc, unit, values), 0);
}

static void task(unsigned pid, unsigned tid, char state, const char *wait) {
        char path[64], text[128];

        snprintf(path, sizeof(path), "/proc/%u/task/%u/stat", pid, tid);
        snprintf(text, sizeof(text), "%u (a) R ) %c 1 2 3", tid, state); /* whatever a program calls itself */
        root_put(path, text);
        snprintf(path, sizeof(path), "/proc/%u/task/%u/schedstat", pid, tid);
        snprintf(text, sizeof(text), "100 %s 5\n", wait);
        root_put(path, text);
}

static void test_sums(void **state) {
        const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
        uint64_t v[_TELEMETRY_MAX];

        root_put("/unit/cgroup.procs", "10\n20\n30\n");
        task(10, 10, 'R', "1000000");
        task(10, 11, 'D', "2000000");
        task(20, 20, 'T', "0");
        task(20, 21, 'Z', "9000000"); /* it has ended */
        root_put(
                "/proc/10/io",
                "rchar: 100\nwchar: 7\nsyscr: 1\nread_bytes: 4096\nwrite_bytes: 1\ncancelled_write_bytes: 3\n");
        root_put("/proc/20/io", "rchar: 1\nwchar: 1\nread_bytes: 1\nwrite_bytes: 1\n");
        root_put("/proc/10/statm", "500 100 40 1 0 1 0\n");
        fill(v); /* 30 is not there any more */
        assert_true(v[TELEMETRY_TASKS] == 3 && v[TELEMETRY_TASKS_RUNNING] == 1 &&
                    v[TELEMETRY_TASKS_BLOCKED] == 1 && v[TELEMETRY_TASKS_STOPPED] == 1);
        assert_int_equal(v[TELEMETRY_RUNQUEUE_WAIT_USEC], 3000);
        assert_true(v[TELEMETRY_READ_BYTES] == 101 && v[TELEMETRY_WRITE_BYTES] == 8);
        assert_true(v[TELEMETRY_BLOCK_READ_BYTES] == 4097 && v[TELEMETRY_BLOCK_WRITE_BYTES] == 2);
        assert_true(v[TELEMETRY_MEMORY_BYTES] == 100 * page && v[TELEMETRY_MEMORY_ANON_BYTES] == 60 * page);
}

/* What is known already stays, and what cannot be read is not 0. */
static void test_unknown(void **state) {
        _cleanup_close_ int proc = -EBADF, unit = -EBADF;
        uint64_t v[_TELEMETRY_MAX];

        root_put("/unit/cgroup.procs", "10\n");
        task(10, 10, 'S', "0");
        proc = directory("/proc");
        unit = directory("/unit");
        telemetry_clear(v);
        v[TELEMETRY_TASKS] = 77;
        assert_int_equal(procfs_fill(proc, unit, v), 0);
        assert_int_equal(v[TELEMETRY_TASKS], 77);
        assert_int_equal(v[TELEMETRY_TASKS_RUNNING], 0);
        assert_true(v[TELEMETRY_READ_BYTES] == TELEMETRY_UNKNOWN &&
                    v[TELEMETRY_MEMORY_BYTES] == TELEMETRY_UNKNOWN);
        assert_int_equal(unlinkat(unit, "cgroup.procs", 0), 0);
        assert_int_equal(procfs_fill(proc, unit, v), -ENOENT); /* the unit is gone */
}

/* Of a unit with too many, sums that would be wrong are not said. */
static void test_bounded(void **state) {
        uint64_t v[_TELEMETRY_MAX];

        root_put("/unit/cgroup.procs", "10\n");
        for (unsigned i = 0; i < PROCFS_TASKS_MAX + 5; i++)
                task(10, 100 + i, 'R', "1000000");
        fill(v);
        assert_int_equal(v[TELEMETRY_TASKS], PROCFS_TASKS_MAX);
        assert_true(v[TELEMETRY_RUNQUEUE_WAIT_USEC] == TELEMETRY_UNKNOWN);
}

/* Two levels below the slice, by what the kernel calls its id. */
static void test_find(void **state) {
        _cleanup_close_ int slice = -EBADF, found = -EBADF;
        struct stat st, other;
        char path[256];

        root_put("/slice/job-1/unit-a/x", "");
        root_put("/slice/job-2/unit-b/x", "");
        root_put("/slice/file", "");
        slice = directory("/slice");
        snprintf(path, sizeof(path), "%s/slice/job-2/unit-b", root_kit);
        assert_int_equal(stat(path, &st), 0);
        found = procfs_find(slice, st.st_ino);
        assert_true(found >= 0);
        assert_int_equal(fstat(found, &other), 0);
        assert_true(other.st_ino == st.st_ino);
        assert_int_equal(fstat(slice, &other), 0);
        assert_int_equal(procfs_find(slice, other.st_ino), -ENOENT); /* on another level */
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_sums, root_setup, root_teardown),
                cmocka_unit_test_setup_teardown(test_unknown, root_setup, root_teardown),
                cmocka_unit_test_setup_teardown(test_bounded, root_setup, root_teardown),
                cmocka_unit_test_setup_teardown(test_find, root_setup, root_teardown),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
