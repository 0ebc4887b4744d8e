/* SPDX-License-Identifier: Apache-2.0 */
/* What jobs have left: whose it is, and what goes when it is too much. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"
#include "lib/unit/files.h"
#include "starter/files/artifacts.h"
#include "starter/files/private.h"
#include "tests/kit/root-kit.h"

#define JOB_UID SD_ID128_MAKE(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16)

/* A job of that user with a file of so many KiB. */
static void leave(uint32_t job, uint32_t uid, size_t kib) {
        static const char bytes[1024] = { 1 };
        _cleanup_free_ char *path = NULL;
        char file[512];
        FILE *f;

        assert_int_equal(artifacts_create(root_kit, job, JOB_UID, uid), 0);
        path = artifacts_path(root_kit, job, JOB_UID);
        assert_non_null(path);
        snprintf(file, sizeof(file), "%s/worker-0", path);
        assert_int_equal(mkdir(file, 0700), 0);
        snprintf(file, sizeof(file), "%s/worker-0/f", path);
        f = fopen(file, "w");
        assert_non_null(f);
        for (size_t i = 0; i < kib; i++)
                assert_int_equal(fwrite(bytes, 1, sizeof(bytes), f), sizeof(bytes));
        assert_int_equal(fclose(f), 0);
        /* Ages are told by ctime, whose clock ticks. */
        nanosleep(&(struct timespec){ .tv_nsec = 20000000 }, NULL);
}

static struct timespec now(void) {
        struct timespec t;

        assert_int_equal(clock_gettime(CLOCK_REALTIME_COARSE, &t), 0);
        return t;
}

static int trim(const char *root, uint64_t max, char *const *keep) {
        const struct timespec t = now();

        return artifacts_trim(root, max, keep, &t);
}

static bool is_there(uint32_t job) {
        _cleanup_free_ char *path = artifacts_path(root_kit, job, JOB_UID);

        return path && access(path, F_OK) >= 0;
}

static int setup(void **state) {
        int r = root_setup(state);

        root_put(ARTIFACTS_DIR "/stray", "not a job's");
        return r;
}

static void test_owner(void **state) {
        if (geteuid() != 0)
                skip();
        assert_int_equal(artifacts_owner(root_kit, 7, JOB_UID), 0);
        leave(7, 12, 1);
        assert_int_equal(artifacts_owner(root_kit, 7, JOB_UID), 12);
        assert_int_equal(artifacts_create(root_kit, 7, JOB_UID, 12), 0);
        assert_int_equal(artifacts_create(root_kit, 7, JOB_UID, 13), -EPERM);
}

static void test_oldest_goes_first(void **state) {
        char *const keep[] = { (char *)"2-01020304", NULL };

        if (geteuid() != 0)
                skip();
        for (uint32_t job = 1; job <= 4; job++)
                leave(job, 12, 256);
        leave(5, 13, 256);
        assert_int_equal(trim(root_kit, UINT64_C(2) << 20, keep), 0);
        for (uint32_t job = 1; job <= 5; job++)
                assert_true(is_there(job));
        /* 2 is in use, so 1 and 3 go; the other user has no more than he may. */
        assert_int_equal(trim(root_kit, 600 << 10, keep), 0);
        assert_false(is_there(1));
        assert_true(is_there(2));
        assert_false(is_there(3));
        assert_true(is_there(4));
        assert_true(is_there(5));
        assert_int_equal(trim(root_kit, 1, NULL), 0);
        for (uint32_t job = 1; job <= 5; job++)
                assert_false(is_there(job));
}

/* Removed as a whole, without what it points to. */
static void test_links_are_not_followed(void **state) {
        _cleanup_free_ char *path = NULL;
        char text[512], outside[512];

        if (geteuid() != 0)
                skip();
        leave(7, 12, 1);
        root_put("/outside/large", "something");
        path = artifacts_path(root_kit, 7, JOB_UID);
        snprintf(text, sizeof(text), "%s/link", path);
        snprintf(outside, sizeof(outside), "%s/outside", root_kit);
        assert_int_equal(symlink(outside, text), 0);
        assert_int_equal(trim(root_kit, 1, NULL), 0);
        assert_false(is_there(7));
        snprintf(outside, sizeof(outside), "%s/outside/large", root_kit);
        assert_int_equal(access(outside, F_OK), 0);
}

/* What has come while others were measured is in nobody's list. */
static void test_who_has_come_meanwhile_stays(void **state) {
        struct timespec since;

        if (geteuid() != 0)
                skip();
        for (uint32_t job = 7; job <= 9; job++)
                leave(job, 12, 64);
        since = now();
        assert_int_equal(work_create(root_kit, 7, JOB_UID, 12), 0);
        assert_int_equal(artifacts_create(root_kit, 7, JOB_UID, 12), 0);
        assert_int_equal(work_create(root_kit, 8, JOB_UID, 12), 0); /* not touched: an earlier one's */
        artifacts_touch(root_kit, 9, JOB_UID);                      /* its user can do that */
        assert_int_equal(artifacts_trim(root_kit, 1, NULL, &since), 0);
        assert_true(is_there(7));
        assert_false(is_there(8));
        assert_false(is_there(9));
}

/* Two of them, whose sum is not less than either. */
static void test_nothing_is_hidden_in_the_deep(void **state) {
        if (geteuid() != 0)
                skip();
        for (uint32_t job = 7; job <= 8; job++) {
                _cleanup_free_ char *path = NULL;
                char deep[1024];
                size_t l;

                leave(job, 12, 1);
                path = artifacts_path(root_kit, job, JOB_UID);
                l = (size_t)snprintf(deep, sizeof(deep), "%s", path);
                for (unsigned i = 0; i < 100; i++) {
                        l += (size_t)snprintf(deep + l, sizeof(deep) - l, "/d");
                        assert_int_equal(mkdir(deep, 0700), 0);
                }
        }
        assert_int_equal(trim(root_kit, UINT64_C(1) << 40, NULL), 0);
        assert_false(is_there(7));
        assert_false(is_there(8));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_owner, setup, root_teardown),
                cmocka_unit_test_setup_teardown(test_oldest_goes_first, setup, root_teardown),
                cmocka_unit_test_setup_teardown(test_who_has_come_meanwhile_stays, setup, root_teardown),
                cmocka_unit_test_setup_teardown(test_nothing_is_hidden_in_the_deep, setup, root_teardown),
                cmocka_unit_test_setup_teardown(test_links_are_not_followed, setup, root_teardown),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
