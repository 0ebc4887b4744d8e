/* SPDX-License-Identifier: Apache-2.0 */
/* Whatever a job's user puts where the stacks are expected: only a plain file of his own is touched. */
#include "starter/observe/program.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"
#include "lib/base/file.h"
#include "lib/wire/capture.h"

static char work[] = "/tmp/primus-program-XXXXXX";
static char tmp[64], path[80], other[80];

static int setup(void **state) {
        assert_non_null(mkdtemp(work));
        snprintf(tmp, sizeof(tmp), "%s/tmp", work);
        snprintf(path, sizeof(path), "%s/stacks.7", tmp);
        snprintf(other, sizeof(other), "%s/other", work);
        assert_int_equal(mkdir(tmp, 0700), 0);
        return write_file_atomic(other, "precious", 8, 0600, false);
}

static int teardown(void **state) {
        return remove_tree(work);
}

static void other_is_whole(void) {
        _cleanup_free_ char *text = NULL;

        assert_int_equal(read_file(other, 100, &text, NULL), 0);
        assert_string_equal(text, "precious");
}

static void test_reads_and_empties(void **state) {
        struct program p;
        _cleanup_free_ char *text = NULL, *long_text = malloc(50000);
        int fd;

        assert_int_equal(program_open(work, 7, getuid(), &p), -ENOENT);
        assert_int_equal(write_file_atomic(path, "old", 3, 0600, false), 0);
        fd = open(path, O_WRONLY | O_APPEND);
        assert_int_equal(program_open(work, 7, getuid(), &p), 0);
        assert_null(program_read(&p)); /* what was there is gone */
        assert_int_equal(write(fd, "line 1\nline 2\n", 14), 14);
        programs_wait(&p, 1);
        text = program_read(&p);
        assert_string_equal(text, "line 1\nline 2\n");
        memset(long_text, 'x', 50000);
        assert_int_equal(write(fd, long_text, 50000), 50000);
        free(text);
        text = program_read(&p);
        assert_int_equal(strlen(text), CAPTURE_PYTHON_MAX);
        program_close(&p);
        close(fd);
        unlink(path);
}

static void test_traps(void **state) {
        char elsewhere[80];
        struct program p;

        assert_int_equal(symlink(other, path), 0);
        assert_int_equal(program_open(work, 7, getuid(), &p), -EPERM);
        unlink(path);
        assert_int_equal(link(other, path), 0);
        assert_int_equal(program_open(work, 7, getuid(), &p), -EPERM);
        unlink(path);
        assert_int_equal(mkfifo(path, 0600), 0);
        assert_int_equal(program_open(work, 7, getuid(), &p), -EPERM);
        unlink(path);
        assert_int_equal(mkdir(path, 0700), 0);
        assert_true(program_open(work, 7, getuid(), &p) < 0);
        rmdir(path);
        assert_int_equal(write_file_atomic(path, "theirs", 6, 0600, false), 0);
        assert_int_equal(program_open(work, 7, getuid() + 1, &p), -EPERM); /* somebody else's */
        /* The directory is the user's too. */
        snprintf(elsewhere, sizeof(elsewhere), "%s/elsewhere", work);
        assert_int_equal(rename(tmp, elsewhere), 0);
        assert_int_equal(symlink(elsewhere, tmp), 0);
        assert_int_equal(program_open(work, 7, getuid(), &p), -EPERM);
        other_is_whole();
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_reads_and_empties),
                cmocka_unit_test(test_traps),
        };

        return cmocka_run_group_tests(tests, setup, teardown);
}
