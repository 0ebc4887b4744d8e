/* SPDX-License-Identifier: Apache-2.0 */
#include "agentd/cgroup/cgroup.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "lib/base/file.h"

#define SLICE "/sys/fs/cgroup/primus.slice/primus-7.slice/"
#define UNIT SLICE "primus-7-w-0.1.service/"

static char root[] = "/tmp/primus-cgroup-XXXXXX";

static int setup(void **state) {
        return mkdtemp(root) ? 0 : -1;
}

static int teardown(void **state) {
        return remove_tree(root);
}

/* In place: what is open stays what is there. */
static void put(const char *path, const char *text) {
        _cleanup_free_ char *full = NULL, *directory = NULL;
        _cleanup_fclose_ FILE *f = NULL;

        assert_true(asprintf(&full, "%s%s", root, path) >= 0);
        directory = strndup(full, (size_t)(strrchr(full, '/') - full));
        assert_int_equal(make_directories(directory, 0755), 0);
        f = fopen(full, "we");
        assert_non_null(f);
        assert_true(fputs(text, f) >= 0);
}

static struct cgroup *open_unit(void) {
        _cleanup_free_ char *top = NULL;
        struct cgroup *c = NULL;

        assert_int_equal(cgroup_root(root, &top), 0);
        assert_int_equal(cgroup_open(top, "primus.slice/primus-7.slice/primus-7-w-0.1.service", &c), 0);
        return c;
}

static void test_root(void **state) {
        _cleanup_free_ char *top = NULL;
        struct cgroup *c = NULL;

        assert_int_equal(cgroup_root(root, &top), -ENOENT);
        put("/sys/fs/cgroup/unified/cgroup.controllers", "");
        assert_int_equal(cgroup_root(root, &top), 0);
        assert_string_equal(top + strlen(root), "/sys/fs/cgroup/unified");
        assert_int_equal(cgroup_open(top, "primus.slice/x", &c), -ENOENT);
        put("/sys/fs/cgroup/cgroup.controllers", "cpu memory\n");
        free(TAKE_PTR(top));
        assert_int_equal(cgroup_root(root, &top), 0);
        assert_string_equal(top + strlen(root), "/sys/fs/cgroup");
}

static void test_nothing_there(void **state) {
        _cleanup_(cgroup_free_p) struct cgroup *c = NULL;
        uint64_t values[_TELEMETRY_MAX];
        struct stat st;

        put(UNIT "cgroup.procs", "");
        c = open_unit();
        assert_int_equal(fstat(cgroup_fd(c), &st), 0);
        assert_true(cgroup_id(c) == st.st_ino);
        telemetry_clear(values);
        values[TELEMETRY_TASKS] = 3; /* somebody else's */
        cgroup_fill(c, values);
        for (size_t i = 0; i < _TELEMETRY_MAX; i++)
                assert_true(values[i] == (i == TELEMETRY_TASKS ? 3 : TELEMETRY_UNKNOWN));
}

static void test_all(void **state) {
        _cleanup_(cgroup_free_p) struct cgroup *c = NULL;
        uint64_t values[_TELEMETRY_MAX];

        put(UNIT "cpu.stat", "usage_usec 100\nuser_usec 60\nsystem_usec 40\nnr_periods 7\nnr_throttled 4\n"
                             "throttled_usec 33\n");
        put(UNIT "cpu.max", "50000 100000\n");
        put(UNIT "memory.current", "4096\n");
        put(UNIT "memory.peak", "8192\n");
        put(UNIT "memory.max", "max\n");
        put(UNIT "memory.swap.current", "0\n");
        put(UNIT "memory.stat", "anon 4096\nfile 999424\nanon_thp 0\n");
        put(UNIT "memory.events", "low 0\nhigh 1\nmax 2\noom 3\noom_kill 4\noom_group_kill 0\n");
        put(UNIT "pids.current", "5\n");
        put(UNIT "cpu.pressure",
            "some avg10=0.00 avg60=0.00 avg300=0.00 total=11\nfull avg10=0.00 total=1\n");
        put(UNIT "memory.pressure", "some total=0 total=12\nfull total=0 total=13\n");
        put(UNIT "io.pressure", "some avg10=0.00 total=14\nfull avg10=0.00 total=15\n");
        put(UNIT "io.stat", "8:0 rbytes=16 wbytes=17 rios=1 wios=1 dbytes=0 dios=0\n");
        c = open_unit();
        telemetry_clear(values);
        cgroup_fill(c, values);
        assert_true(values[TELEMETRY_CPU_USEC] == 100);
        assert_true(values[TELEMETRY_CPU_THROTTLED_USEC] == 33);
        assert_true(values[TELEMETRY_CPU_LIMIT_USEC] == 500000);
        assert_true(values[TELEMETRY_MEMORY_BYTES] == 4096);
        assert_true(values[TELEMETRY_MEMORY_PEAK_BYTES] == 8192);
        assert_true(values[TELEMETRY_MEMORY_LIMIT_BYTES] == TELEMETRY_UNKNOWN);
        assert_true(values[TELEMETRY_MEMORY_SWAP_BYTES] == 0);
        assert_int_equal(values[TELEMETRY_MEMORY_ANON_BYTES], 4096);
        assert_true(values[TELEMETRY_MEMORY_HIGH_EVENTS] == 1 && values[TELEMETRY_MEMORY_MAX_EVENTS] == 2);
        assert_true(values[TELEMETRY_OOM_KILLS] == 4);
        assert_true(values[TELEMETRY_TASKS] == 5);
        assert_true(values[TELEMETRY_PRESSURE_CPU_USEC] == 11);
        assert_true(values[TELEMETRY_PRESSURE_IO_USEC] == 14 &&
                    values[TELEMETRY_PRESSURE_IO_FULL_USEC] == 15);
        assert_true(values[TELEMETRY_BLOCK_READ_BYTES] == 16 && values[TELEMETRY_BLOCK_WRITE_BYTES] == 17);

        /* The quick ones with every look, the others within CGROUP_SLOW_CALLS; and between they do not
         * vanish. */
        put(UNIT "cpu.stat", "usage_usec 200\n");
        put(UNIT "memory.current", "1\n");
        put(UNIT "pids.current", "6\n");
        for (unsigned i = 0; i < CGROUP_SLOW_CALLS; i++) {
                telemetry_clear(values);
                cgroup_fill(c, values);
                assert_true(values[TELEMETRY_CPU_USEC] == 200 && values[TELEMETRY_MEMORY_BYTES] == 1);
                assert_true(values[TELEMETRY_TASKS] == 5 || values[TELEMETRY_TASKS] == 6);
                assert_true(values[TELEMETRY_CPU_THROTTLED_USEC] == TELEMETRY_UNKNOWN);
        }
        assert_true(values[TELEMETRY_TASKS] == 6);
}

static void test_too_long(void **state) {
        _cleanup_(cgroup_free_p) struct cgroup *c = NULL;
        uint64_t values[_TELEMETRY_MAX];
        static char text[9000];

        /* Half a table of devices would be a wrong sum. */
        for (size_t i = 0; i + 60 < sizeof(text); i += 30)
                memcpy(text + i, "8:0 rbytes=1111111 wbytes=222\n", 30);
        put(UNIT "io.stat", text);
        c = open_unit();
        telemetry_clear(values);
        cgroup_fill(c, values);
        assert_true(values[TELEMETRY_BLOCK_READ_BYTES] == TELEMETRY_UNKNOWN);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_root),
                cmocka_unit_test(test_nothing_there),
                cmocka_unit_test(test_all),
                cmocka_unit_test(test_too_long),
        };

        return cmocka_run_group_tests(tests, setup, teardown);
}
