/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/unitname.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void test_names(void **state) {
        char buf[UNIT_NAME_MAX];

        assert_string_equal(executor_unit_name(418, "worker", 3, 1, buf), "primus-418-worker-3.1.service");
        assert_ptr_equal(executor_unit_name(1, "ps", 0, 2, buf), buf);
        assert_string_equal(buf, "primus-1-ps-0.2.service");
        assert_string_equal(job_slice_name(418, buf), "primus-418.slice");
        assert_ptr_equal(job_slice_name(UINT32_MAX, buf), buf);
        assert_string_equal(buf, "primus-4294967295.slice");
}

/* The longest role name (32) with the largest numbers fits, or two executors would share a name. */
static void test_longest(void **state) {
        char buf[UNIT_NAME_MAX];

        executor_unit_name(UINT32_MAX, "abcdefghijklmnopqrstuvwxyzabcdef", UINT32_MAX, UINT32_MAX, buf);
        assert_string_equal(
                buf, "primus-4294967295-abcdefghijklmnopqrstuvwxyzabcdef-4294967295.4294967295.service");
}

static void test_valid(void **state) {
        static const char *const good[] = { "primus-418-worker-3.1.service", "primus-1-_p-0.2.service" };
        static const char *const bad[] = { "",
                                           "primus-",
                                           "primus-webd.service",
                                           "primus-agentd.service",
                                           "primus-1.slice",
                                           "primus-1-worker-3.1.slice",
                                           "primus-1-worker-3.service",
                                           "primus-1-wor-ker-3.1.service",
                                           "primus-1-worker-3.1.service.x",
                                           "primus-x-worker-3.1.service",
                                           "primus-1--3.1.service" };

        for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
                assert_true(executor_unit_name_valid(good[i]));
        for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
                assert_false(executor_unit_name_valid(bad[i]));
}

static void test_work(void **state) {
        char buf[WORK_NAME_MAX];
        sd_id128_t uid = SD_ID128_MAKE(9f, 86, d0, 81, 88, 4c, 7d, 65, 9a, 2f, ea, a0, c5, 5a, d0, 15), back;
        static const char *const bad[] = { "",
                                           "418",
                                           "418-",
                                           "418-9f86d08",
                                           "418-9f86d0811",
                                           "418-9F86D081",
                                           "0x1-9f86d081",
                                           " 1-9f86d081",
                                           "01-9f86d081",
                                           "99999999999-9f86d081",
                                           "4294967296-9f86d081",
                                           "1-9f86d081 " };
        uint32_t job;

        assert_string_equal(work_name(418, uid, buf), "418-9f86d081");
        assert_int_equal(work_name_parse(buf, &job, &back), 0);
        assert_int_equal(job, 418);
        assert_memory_equal(&back, &uid, 4);
        assert_string_equal(work_name(UINT32_MAX, uid, buf), "4294967295-9f86d081");
        assert_int_equal(work_name_parse(buf, &job, &back), 0);
        for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
                assert_int_equal(work_name_parse(bad[i], &job, &back), -EINVAL);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_names),
                cmocka_unit_test(test_longest),
                cmocka_unit_test(test_valid),
                cmocka_unit_test(test_work),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
