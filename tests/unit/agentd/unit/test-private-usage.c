/* SPDX-License-Identifier: Apache-2.0 */
#include "agentd/unit/private-usage.h"

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

static void test_filling(void **state) {
        struct private_filling f;

        root_put("/run/primus/x/u/env", "");
        assert_int_equal(private_filling_read(root_kit, &f), 0);
        assert_true(f.total > 0 && f.used <= f.total);
        assert_false(private_filling_high(&(struct private_filling){ 512 * MiB, 128 * MiB, 1000, 250 }));
        assert_true(private_filling_high(&(struct private_filling){ 512 * MiB, 129 * MiB, 1000, 250 }));
        assert_true(private_filling_high(&(struct private_filling){ 512 * MiB, 0, 1000, 251 }));
        assert_false(private_filling_high(&(struct private_filling){ 512 * MiB, 0, 0, 100 }));
}

static void test_pick(void **state) {
        static const struct private_filling quarter = { 512 * MiB, 150 * MiB, 1000000, 100 },
                                            full = { 64 * MiB, 50 * MiB, 1000000, 100 },
                                            hidden = { 512 * MiB, 500 * MiB, 1000000, 100 },
                                            files = { 512 * MiB, 1 * MiB, 10000, 9000 };
        const struct private_share fine[] = { { 1, { 10 * MiB, 5 } },
                                              { 2, { 8 * MiB, 5 } },
                                              { 2, { 9 * MiB, 5 } } },
                                   one[] = { { 1, { 10 * MiB, 5 } }, { 2, { 17 * MiB, 5 } } },
                                   crowd[] = { { 1, { 1 * MiB, 4000 } },
                                               { 2, { 1, 3000 } },
                                               { 2, { 2, 3100 } } };

        assert_int_equal(private_usage_pick(&quarter, fine, 0), -ENOENT);
        assert_int_equal(private_usage_pick(&quarter, fine, 3), -ENOENT);
        assert_int_equal(private_usage_pick(&quarter, one, 2), 1);
        assert_int_equal(private_usage_pick(&full, fine, 3), 2); /* not the largest, but of who has most */
        assert_int_equal(private_usage_pick(&files, crowd, 3), 2);
        assert_int_equal(private_usage_pick(&full, NULL, 0), -ENODATA);
        /* Those who are seen are not ended for what somebody holds in files without a name. */
        assert_int_equal(private_usage_pick(&hidden, fine, 3), -ENODATA);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_filling, root_setup, root_teardown),
                cmocka_unit_test(test_pick),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
