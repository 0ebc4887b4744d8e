/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"

/* Every test in an empty directory, which is also the working directory. */
static int enter(void **state) {
        char *path = strdup("/tmp/test-file.XXXXXX");

        if (!path || !mkdtemp(path))
                return -1;
        *state = path;
        return chdir(path);
}

static int leave(void **state) {
        _cleanup_free_ char *path = *state;

        return chdir("/") < 0 ? -1 : remove_tree(path);
}

static bool exists(const char *path) {
        struct stat st;

        return lstat(path, &st) >= 0;
}

static void test_read(void **state) {
        static const struct {
                size_t size, max;
                int r;
        } table[] = {
                { 0, 0, 0 },        { 0, 10, 0 },           { 10, 10, 0 },
                { 11, 10, -EFBIG }, { 1, 0, -EFBIG },       { 4095, 4095, 0 },
                { 4096, 4096, 0 },  { 4097, 4096, -EFBIG }, { 100000, SIZE_MAX, 0 },
        };
        for (size_t i = 0; i < ELEMENTSOF(table); i++) {
                _cleanup_free_ char *data = malloc(table[i].size + 1), *content = NULL;
                size_t size = 4711;
                assert_non_null(data);
                for (size_t k = 0; k < table[i].size; k++)
                        data[k] = (char)(k * 7); /* NULs among them */
                assert_int_equal(write_file_atomic("file", data, table[i].size, 0600, false), 0);
                assert_int_equal(read_file("file", table[i].max, &content, &size), table[i].r);
                assert_int_equal(size, table[i].r < 0 ? 4711 : table[i].size);
                assert_int_equal(content != NULL, table[i].r == 0);
                if (content) {
                        assert_memory_equal(content, data, size);
                        assert_int_equal(content[size], 0);
                }
        }
}

static void test_read_odd(void **state) {
        _cleanup_close_ int dir = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        char *content = NULL;

        assert_int_equal(read_file("missing", 10, &content, NULL), -ENOENT);
        assert_int_equal(read_fd(-1, 10, &content, NULL), -EBADF);
        assert_int_equal(read_file(".", 10, &content, NULL), -EISDIR);
        assert_null(content);
        /* st_size is 0 there */
        assert_int_equal(read_file("/proc/self/status", 3, &content, NULL), -EFBIG);
        assert_int_equal(read_file("/proc/self/status", 1u << 20, &content, NULL), 0);
        assert_true(strncmp(content, "Name:", 5) == 0);
        free(content);
        /* A FIFO that nobody writes to does not hold us up. */
        assert_int_equal(mkfifo("fifo", 0600), 0);
        assert_int_equal(read_file_at(dir, "fifo", 10, &content, NULL), 0);
        assert_string_equal(content, "");
        free(content);
}

static void test_write(void **state) {
        _cleanup_free_ char *content = NULL;
        struct stat st;

        assert_int_equal(write_file_atomic("file", "one", 3, 0640, true), 0);
        assert_int_equal(write_file_atomic("file", "second", 6, 0600, false), 0);
        assert_int_equal(read_file("file", 100, &content, NULL), 0);
        assert_string_equal(content, "second");
        assert_int_equal(stat("file", &st), 0);
        assert_int_equal(st.st_mode & 07777, 0600);
        assert_int_equal(write_file_atomic("missing/file", "x", 1, 0600, false), -ENOENT);
        /* A failure leaves neither the file nor its beginnings. */
        assert_int_equal(mkdir("target", 0700), 0);
        assert_int_equal(write_file_atomic("target", "x", 1, 0600, false), -EISDIR);
        assert_int_equal(rmdir("target"), 0);
        assert_int_equal(unlink("file"), 0);
        assert_int_equal(rmdir(*state), 0); /* empty */
        assert_int_equal(mkdir(*state, 0700), 0);
}

static void *drain(void *userdata) {
        char buf[4096];
        size_t *sum = userdata;
        ssize_t l;
        int fd = (int)*sum;

        *sum = 0;
        while ((l = read(fd, buf, sizeof(buf))) > 0)
                *sum += (size_t)l;
        return NULL;
}

/* More than a pipe holds, non-blocking: waits for the reader. */
static void test_write_all(void **state) {
        static const char data[1 << 20];
        pthread_t thread;
        size_t sum;
        int fds[2];

        assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
        assert_true(fcntl(fds[1], F_SETFL, O_NONBLOCK) >= 0);
        sum = (size_t)fds[0];
        assert_int_equal(pthread_create(&thread, NULL, drain, &sum), 0);
        assert_int_equal(write_all(fds[1], data, sizeof(data)), 0);
        close_fd(fds[1]);
        assert_int_equal(pthread_join(thread, NULL), 0);
        assert_int_equal(sum, sizeof(data));
        close_fd(fds[0]);
        assert_int_equal(write_all(-1, "x", 1), -EBADF);
        assert_int_equal(write_all(-1, "", 0), 0);
}

static void test_make_directories(void **state) {
        struct stat st;

        assert_int_equal(make_directories("a/b/c", 0700), 0);
        assert_int_equal(make_directories("a/b/c", 0700), 0);
        assert_int_equal(make_directories("a//b/d/", 0750), 0);
        assert_int_equal(stat("a/b/d", &st), 0);
        assert_true(S_ISDIR(st.st_mode));
        assert_int_equal(make_directories("/", 0700), 0);
        assert_int_equal(make_directories(".", 0700), 0);
        assert_int_equal(make_directories("", 0700), -ENOENT);
        assert_int_equal(write_file_atomic("a/file", "", 0, 0600, false), 0);
        assert_int_equal(make_directories("a/file", 0700), -ENOTDIR);
        assert_int_equal(make_directories("a/file/below", 0700), -ENOTDIR);
        assert_int_equal(symlink("b", "a/link"), 0);
        assert_int_equal(make_directories("a/link/e", 0700), 0);
        assert_true(exists("a/b/e"));
}

static void test_remove_tree(void **state) {
        assert_int_equal(make_directories("outside/kept", 0700), 0);
        assert_int_equal(make_directories("tree/a/b", 0700), 0);
        assert_int_equal(write_file_atomic("tree/a/file", "x", 1, 0400, false), 0);
        assert_int_equal(symlink("../../outside", "tree/a/link"), 0);
        assert_int_equal(symlink("missing", "tree/dangling"), 0);
        assert_int_equal(mkfifo("tree/fifo", 0600), 0);
        assert_int_equal(remove_tree("tree"), 0);
        assert_false(exists("tree"));
        assert_true(exists("outside/kept"));
        /* Nothing there is fine; a link or a file in its place goes, not what it points to. */
        assert_int_equal(remove_tree("tree"), 0);
        assert_int_equal(symlink("outside", "tree"), 0);
        assert_int_equal(remove_tree("tree"), 0);
        assert_false(exists("tree"));
        assert_true(exists("outside/kept"));
        assert_int_equal(write_file_atomic("tree", "x", 1, 0600, false), 0);
        assert_int_equal(remove_tree("tree"), 0);
        assert_false(exists("tree"));
}

/* Deeper than any path, and with the names that deep directories are moved to already there. */
static void test_remove_deep(void **state) {
        assert_int_equal(make_directories("tree/.deep-0/full", 0700), 0);
        assert_int_equal(write_file_atomic("tree/.deep-1", "", 0, 0600, false), 0);
        for (int chain = 0; chain < 2; chain++) {
                assert_int_equal(chdir(*state), 0);
                assert_int_equal(chdir("tree"), 0);
                for (int i = 0; i < 1500; i++) {
                        assert_int_equal(mkdir(chain ? "second" : "0first", 0700), 0);
                        assert_int_equal(chdir(chain ? "second" : "0first"), 0);
                }
        }
        assert_int_equal(chdir(*state), 0);
        assert_int_equal(remove_tree("tree"), 0);
        assert_false(exists("tree"));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_read, enter, leave),
                cmocka_unit_test_setup_teardown(test_read_odd, enter, leave),
                cmocka_unit_test_setup_teardown(test_write, enter, leave),
                cmocka_unit_test_setup_teardown(test_write_all, enter, leave),
                cmocka_unit_test_setup_teardown(test_make_directories, enter, leave),
                cmocka_unit_test_setup_teardown(test_remove_tree, enter, leave),
                cmocka_unit_test_setup_teardown(test_remove_deep, enter, leave),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
