/* SPDX-License-Identifier: Apache-2.0 */
/* The page of an executor's progress, whatever its program made of it. */
#include "agentd/metrics/progress.h"

#include <endian.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"

static const uint64_t now = 5000000;

static void fill(const void *page, size_t size, uint64_t values[static _TELEMETRY_MAX]) {
        _cleanup_close_ int fd = memfd_create("progress", MFD_CLOEXEC);
        struct stat st;

        assert_true(fd >= 0);
        assert_int_equal(write(fd, page, size), (ssize_t)size);
        telemetry_clear(values);
        progress_fill(fd, now, values);
        assert_int_equal(fstat(fd, &st), 0);
        assert_true(st.st_size <= 16); /* what a program adds is cut off */
}

static void test_said(void **state) {
        uint64_t page[4] = { htole64(42), htole64(now - 300), UINT64_MAX, UINT64_MAX },
                 values[_TELEMETRY_MAX];

        for (size_t size = 16; size <= sizeof(page); size += 8) {
                fill(page, size, values);
                assert_true(values[TELEMETRY_PROGRESS_STEP] == 42 &&
                            values[TELEMETRY_PROGRESS_AGE_USEC] == 300);
        }
        page[1] = htole64(now + 1000000); /* a clock of its own */
        fill(page, 16, values);
        assert_true(values[TELEMETRY_PROGRESS_STEP] == 42 && values[TELEMETRY_PROGRESS_AGE_USEC] == 0);
}

static void test_not_said(void **state) {
        const uint64_t page[2] = { htole64(42), 0 };
        uint64_t values[_TELEMETRY_MAX];

        for (size_t size = 0; size <= sizeof(page); size++) { /* too short, or no time yet */
                fill(page, size, values);
                for (unsigned i = 0; i < _TELEMETRY_MAX; i++)
                        assert_true(values[i] == TELEMETRY_UNKNOWN);
        }
        progress_fill(-1, now, values);
        assert_true(values[TELEMETRY_PROGRESS_STEP] == TELEMETRY_UNKNOWN);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_said),
                cmocka_unit_test(test_not_said),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
