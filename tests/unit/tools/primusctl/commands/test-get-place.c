/* SPDX-License-Identifier: Apache-2.0 */
/* tools/primusctl/commands/get-place.c: a host's names and bytes stay below the directory, and replace
 * nothing. */
#include "tools/primusctl/commands/get-place.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"
#include "lib/base/file.h"

static char top[64];

static int setup(void **state) {
        snprintf(top, sizeof(top), "/tmp/primus-get-place.XXXXXX");
        (void)state;
        return mkdtemp(top) ? 0 : -1;
}

static int teardown(void **state) {
        (void)state;
        return remove_tree(top);
}

static int put(struct place *p, const char *path, const char *text, uint32_t mode, uint64_t mtime) {
        int r = place_begin(p, path);

        if (r >= 0)
                r = place_data(p, text, strlen(text));
        return r < 0 ? r : place_finish(p, mode, mtime);
}

static void test_files(void **state) {
        struct place p = PLACE_EMPTY;
        char path[128];
        struct stat st;

        (void)state;
        snprintf(path, sizeof(path), "%s/new/deep", top);
        assert_int_equal(place_open(&p, path), 0);
        assert_int_equal(place_look(&p, "a/b/c", 5, 7), PLACE_MISSING);
        assert_int_equal(put(&p, "a/b/c", "hello", 04755, UINT64_C(1234567890123456789)), 0);
        snprintf(path, sizeof(path), "%s/new/deep/a/b/c", top);
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(st.st_mode & 07000, 0);
        assert_int_equal(st.st_nlink, 1);
        assert_int_equal(place_look(&p, "a/b/c", 5, UINT64_C(1234567890123456789)), PLACE_EQUAL);
        assert_int_equal(place_look(&p, "a/b/c", 5, UINT64_C(1234567890123456788)), PLACE_DIFFERS);
        assert_int_equal(place_look(&p, "a/b", 5, 7), PLACE_DIFFERS);
        assert_int_equal(put(&p, "a/b/c", "other", 0600, 1), -EEXIST);
        p.force = true;
        assert_int_equal(put(&p, "a/b/c", "other!", 0600, 1), 0);
        assert_int_equal(put(&p, "a/b", "over a directory", 0600, 1), -EISDIR);
        assert_int_equal(place_look(&p, "a/b/c", 6, 1), PLACE_EQUAL);
        /* Half of one gets no name, and leaves nothing. */
        assert_int_equal(place_begin(&p, "a/half"), 0);
        assert_int_equal(place_data(&p, "x", 1), 0);
        place_abandon(&p);
        snprintf(path, sizeof(path), "%s/new/deep/a/b", top);
        assert_int_equal(unlinkat(p.top, "a/b/c", 0), 0);
        assert_int_equal(unlinkat(p.top, "a/b", AT_REMOVEDIR), 0);
        assert_int_equal(unlinkat(p.top, "a", AT_REMOVEDIR), 0);
        place_done(&p);
}

static void test_names_that_go_elsewhere(void **state) {
        static const char *const bad[] = { "../x", "/x", "a/../../x", "", "a//x", "..", "." };
        struct place p = PLACE_EMPTY;

        (void)state;
        assert_int_equal(place_open(&p, top), 0);
        for (size_t i = 0; i < ELEMENTSOF(bad); i++) {
                assert_int_equal(put(&p, bad[i], "x", 0600, 1), -EBADMSG);
                assert_int_equal(place_directory(&p, bad[i]), -EBADMSG);
                assert_int_equal(place_look(&p, bad[i], 1, 1), -EBADMSG);
        }
        assert_int_equal(place_link(&p, "d/l", "../../etc"), -EBADMSG);
        assert_int_equal(place_link(&p, "d/l", "/etc"), -EBADMSG);
        place_done(&p);
}

static void test_links_are_not_followed(void **state) {
        struct place p = PLACE_EMPTY;

        (void)state;
        assert_int_equal(place_open(&p, top), 0);
        assert_int_equal(place_directory(&p, "w/d"), 0);
        assert_int_equal(symlinkat("/tmp", p.top, "w/out"), 0);
        assert_int_equal(put(&p, "w/out/x", "x", 0600, 1), -ELOOP);
        assert_int_equal(place_look(&p, "w/out/x", 1, 1), -ELOOP);
        assert_int_equal(place_directory(&p, "w/out"), -ENOTDIR);
        assert_int_equal(put(&p, "w/out", "x", 0600, 1), -EEXIST);
        /* With force the link goes, and not what it points to. */
        assert_int_equal(place_link(&p, "w/in", "d"), 0);
        assert_int_equal(place_link(&p, "w/in", "d"), 0);
        assert_int_equal(place_link(&p, "w/in", "d/e"), -EEXIST);
        assert_int_equal(put(&p, "w/in/x", "x", 0600, 1), -ELOOP);
        p.force = true;
        assert_int_equal(put(&p, "w/in", "x", 0600, 1), 0);
        assert_int_equal(place_look(&p, "w/in", 1, 1), PLACE_EQUAL);
        place_done(&p);
}

static void test_sparse(void **state) {
        static const char zeros[64 << 10];
        struct place p = PLACE_EMPTY;
        struct stat st;

        (void)state;
        assert_int_equal(place_open(&p, top), 0);
        assert_int_equal(place_begin(&p, "sparse"), 0);
        for (unsigned i = 0; i < 64; i++)
                assert_int_equal(place_data(&p, zeros, sizeof(zeros)), 0);
        assert_int_equal(place_finish(&p, 0600, 1), 0);
        assert_int_equal(fstatat(p.top, "sparse", &st, 0), 0);
        assert_int_equal(st.st_size, 4 << 20);
        assert_true(st.st_blocks < 1024);
        place_done(&p);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_files, setup, teardown),
                cmocka_unit_test_setup_teardown(test_names_that_go_elsewhere, setup, teardown),
                cmocka_unit_test_setup_teardown(test_links_are_not_followed, setup, teardown),
                cmocka_unit_test_setup_teardown(test_sparse, setup, teardown),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
