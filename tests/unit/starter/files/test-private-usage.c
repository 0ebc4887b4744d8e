/* SPDX-License-Identifier: Apache-2.0 */
#include "starter/files/private-usage.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"
#include "tests/kit/root-kit.h"

#define MiB (UINT64_C(1) << 20)

static void test_read(void **state) {
        char path[512];
        struct private_usage u;

        assert_int_equal(private_usage_read(root_kit, "none", &u), -ENOENT);
        root_put("/run/primus/x/u/env", "A=1");
        root_put("/run/primus/x/u/secrets/key", "x");
        root_put("/run/primus/x/other/env", "A=1");
        /* What is elsewhere is not counted, nor gone to. */
        snprintf(path, sizeof(path), "%s/run/primus/x/u/secrets/link", root_kit);
        assert_int_equal(symlink("/usr", path), 0);
        assert_int_equal(private_usage_read(root_kit, "u", &u), 0);
        assert_int_equal(u.files, 4);
        assert_true(u.bytes < MiB);
        /* A size is no use. */
        snprintf(path, sizeof(path), "%s/run/primus/x/u/env", root_kit);
        assert_int_equal(truncate(path, 1 << 30), 0);
        assert_int_equal(private_usage_read(root_kit, "u", &u), 0);
        assert_true(u.bytes < MiB);
}

/* Whoever measures progress cuts it; by another name it counts, as it does elsewhere. */
static void test_progress(void **state) {
        struct private_usage u;
        char path[512], other[512];

        root_put("/run/primus/x/u/progress", "0123456789abcdef");
        root_put("/run/primus/x/u/secrets/progress", "x");
        assert_int_equal(private_usage_read(root_kit, "u", &u), 0);
        assert_int_equal(u.files, 2);
        snprintf(path, sizeof(path), "%s/run/primus/x/u/progress", root_kit);
        snprintf(other, sizeof(other), "%s/run/primus/x/u/secrets/other", root_kit);
        assert_int_equal(link(path, other), 0);
        assert_int_equal(private_usage_read(root_kit, "u", &u), 0);
        assert_int_equal(u.files, 4);
}

static void test_many(void **state) {
        struct private_usage u;
        char path[64];

        for (unsigned i = 0; i < PRIVATE_FILES_MAX + 10; i++) {
                snprintf(path, sizeof(path), "/run/primus/x/u/secrets/%u", i);
                root_put(path, "");
        }
        assert_int_equal(private_usage_read(root_kit, "u", &u), 0);
        assert_int_equal(u.files, PRIVATE_FILES_MAX + 1);
}

/* Nobody hides what he has by putting it deep. */
static void test_deep(void **state) {
        struct private_usage u;

        root_put("/run/primus/x/u/secrets/2/3/4/5/6/7/8/file", "x");
        assert_int_equal(private_usage_read(root_kit, "u", &u), 0);
        assert_int_equal(u.files, 9);
        root_put("/run/primus/x/u/secrets/2/3/4/5/6/7/8/9/file", "x");
        assert_int_equal(private_usage_read(root_kit, "u", &u), 0);
        assert_true(u.files > PRIVATE_FILES_MAX);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_read, root_setup, root_teardown),
                cmocka_unit_test_setup_teardown(test_progress, root_setup, root_teardown),
                cmocka_unit_test_setup_teardown(test_many, root_setup, root_teardown),
                cmocka_unit_test_setup_teardown(test_deep, root_setup, root_teardown),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
