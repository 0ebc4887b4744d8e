/* SPDX-License-Identifier: Apache-2.0 */
#include "starter/files/private.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"
#include "lib/base/file.h"
#include "lib/unit/files.h"

#define UNIT "primus-1-worker-0.1.service"

static char root[] = "/tmp/primus-private-XXXXXX";

static int setup(void **state) {
        return mkdtemp(root) ? 0 : -1;
}

static int teardown(void **state) {
        return remove_tree(root);
}

static char *below(const char *path) {
        char *full;

        assert_true(asprintf(&full, "%s%s", root, path) >= 0);
        return full;
}

static void assert_mode(const char *path, mode_t mode) {
        _cleanup_free_ char *full = below(path);
        struct stat st;

        assert_int_equal(lstat(full, &st), 0);
        assert_int_equal(st.st_mode & 07777, mode);
}

static void test_environment(void **state) {
        char *const env[] = { (char *)"A=plain", (char *)"B=a \"quoted\" \\ $x `y` 'z'\nnext line\t",
                              (char *)"EMPTY=", NULL };
        char *const not_utf8[] = { (char *)"OK=1", (char *)"BAD=\xff", NULL }, *const no_name[] = {
                (char *)"1X=1", NULL
        };
        _cleanup_free_ char *text = NULL;
        const char *bad = NULL;
        size_t size;

        assert_int_equal(environment_format(env, &text, &size, &bad), 0);
        assert_string_equal(
                text, "A=\"plain\"\nB=\"a \\\"quoted\\\" \\\\ \\$x \\`y\\` 'z'\nnext line\t\"\nEMPTY=\"\"\n");
        assert_int_equal(size, strlen(text));
        free(text);
        text = NULL;
        assert_int_equal(environment_format(not_utf8, &text, &size, &bad), -EINVAL);
        assert_ptr_equal(bad, not_utf8[1]);
        assert_int_equal(environment_format(no_name, &text, &size, &bad), -EINVAL);
        assert_null(text);
}

static void test_private(void **state) {
        const struct secret secrets[] = { { (char *)"key", (char *)"s\0cret", 6 } },
                            bad[] = { { (char *)"../key", (char *)"x", 1 } };
        _cleanup_free_ char *path = below(PRIVATE_DIR "/" UNIT "/secrets/key"), *text = NULL;
        uint32_t uid = getuid();
        size_t size;

        assert_int_equal(private_create(root, UNIT, uid, "A=\"1\"\n", 6, secrets, 1), 0);
        assert_mode(PRIVATE_DIR "/" UNIT, 0711);
        assert_mode(PRIVATE_DIR "/" UNIT "/env", 0600);
        assert_mode(PRIVATE_DIR "/" UNIT "/secrets", 0500);
        assert_mode(PRIVATE_DIR "/" UNIT "/secrets/key", 0400);
        assert_int_equal(read_file(path, 100, &text, &size), 0);
        assert_int_equal(size, 6);
        assert_false(private_stop_marked(root, UNIT));
        assert_int_equal(private_put(root, UNIT, "stop", "order", 5), 0);
        assert_int_equal(private_put(root, UNIT, "stop", "order", 5), 0);
        assert_true(private_stop_marked(root, UNIT));

        assert_int_equal(private_create(root, UNIT, uid, "", 0, NULL, 0), 0); /* what was there is replaced */
        assert_false(private_stop_marked(root, UNIT));
        assert_int_equal(private_create(root, UNIT, uid, "", 0, bad, 1), -EINVAL);
        assert_int_equal(private_remove(root, UNIT), 0);
        assert_int_equal(private_remove(root, UNIT), 0);
        assert_int_equal(private_put(root, UNIT, "stop", "order", 5), -ENOENT);
}

/* Replaced as a whole, for its user alone; the epoch is found again. */
static void test_rendezvous(void **state) {
        char *const env[] = { (char *)"RANK=1", (char *)"TF_CONFIG={\"a\":1}", NULL };
        char *const bad[] = { (char *)"A=1\n2", NULL };
        _cleanup_free_ char *path = below(PRIVATE_DIR "/" UNIT "/rendezvous"), *text = NULL;
        uint32_t uid = getuid();

        assert_int_equal(private_write_rendezvous(root, UNIT, uid, 1, env), -ENOENT);
        assert_int_equal(private_create(root, UNIT, uid, "", 0, NULL, 0), 0);
        assert_int_equal(private_rendezvous_epoch(root, UNIT), 0);
        assert_int_equal(private_write_rendezvous(root, UNIT, uid, 1, env), 0);
        assert_int_equal(private_write_rendezvous(root, UNIT, uid, 12, env), 0);
        assert_mode(PRIVATE_DIR "/" UNIT "/rendezvous", 0440);
        assert_int_equal(read_file(path, 100, &text, NULL), 0);
        assert_string_equal(text, "PRIMUS_EPOCH=12\nRANK=1\nTF_CONFIG={\"a\":1}\n");
        assert_int_equal(private_write_rendezvous(root, UNIT, uid, 13, bad), -EINVAL);
        assert_int_equal(private_rendezvous_epoch(root, UNIT), 12);
        /* Its owner may put a lease on it, for which who opens it would wait 45 s. */
        {
                _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);

                if (fcntl(fd, F_SETSIG, SIGURG) >= 0 && fcntl(fd, F_SETLEASE, F_WRLCK) >= 0) {
                        alarm(20);
                        assert_int_equal(private_rendezvous_epoch(root, UNIT), 0);
                        alarm(0);
                }
        }
        assert_int_equal(private_remove(root, UNIT), 0);
}

/* The user may write into it, and it is as long as a page that is mapped needs. */
static void test_progress(void **state) {
        _cleanup_free_ char *path = below(PRIVATE_DIR "/" UNIT "/progress"), *text = NULL;
        uint32_t uid = getuid(), owner;
        size_t size;

        assert_int_equal(private_create_progress(root, UNIT, uid), -ENOENT);
        assert_int_equal(private_create(root, UNIT, uid, "", 0, NULL, 0), 0);
        assert_int_equal(private_owner(root, UNIT, &owner), -ENOENT);
        assert_int_equal(private_create_progress(root, UNIT, uid), 0);
        assert_int_equal(private_owner(root, UNIT, &owner), 0);
        assert_int_equal(owner, uid);
        assert_mode(PRIVATE_DIR "/" UNIT "/progress", 0660);
        assert_int_equal(read_file(path, 100, &text, &size), 0);
        assert_int_equal(size, 16);
        assert_memory_equal(text, "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 16);
        assert_int_equal(private_remove(root, UNIT), 0);
}

static void test_work(void **state) {
        const sd_id128_t uid = { .bytes = { 0x12, 0x34, 0x56, 0x78, 0x9a } };
        _cleanup_free_ char *path = work_path("", 418, uid);

        assert_string_equal(path, "/var/lib/primus-agent/work/418-12345678");
        assert_int_equal(work_create(root, 418, uid, getuid()), 0);
        assert_mode("/var/lib/primus-agent/work/418-12345678", 0700);
        assert_mode("/var/lib/primus-agent/work/418-12345678/tmp", 0700);
        assert_int_equal(work_create(root, 418, uid, getuid()), 0);
        if (getuid() == 0) { /* only root can give it away */
                assert_int_equal(work_create(root, 419, uid, 12345), 0);
                assert_int_equal(work_create(root, 419, uid, 12346), -EPERM);
        }
}

/* Nothing but a work directory is ever taken from its place. */
static void test_work_names(void **state) {
        static const char *const bad[] = { "",
                                           ".",
                                           "..",
                                           "../x",
                                           "418",
                                           "418-1234567",
                                           "418-12345678/x",
                                           "-12345678",
                                           ".418-12345678",
                                           ".418-12345678.",
                                           ".418-12345678.g",
                                           "418-12345678.1",
                                           "12345678901-12345678",
                                           ".418-12345678.1/../../x" };
        char *path;

        for (size_t i = 0; i < ELEMENTSOF(bad); i++)
                assert_int_equal(work_detach(root, bad[i], &path), -EINVAL);
        assert_int_equal(work_detach(root, "777-12345678", &path), 0);
        assert_null(path);
        assert_int_equal(work_detach(root, ".777-12345678.1f", &path), 0);
        assert_non_null(strstr(path, WORK_DIR "/.777-12345678.1f"));
        free(path);
}

/* remove_tree() works on what a user may have made as bad as possible. */
static void test_remove(void **state) {
        _cleanup_free_ char *top = below("/deep"), *victim = below("/victim"), *link = below("/deep/link");
        char name[64];
        int fd, next;

        assert_int_equal(mkdir(top, 0700), 0);
        assert_int_equal(write_file_atomic(victim, "x", 1, 0600, false), 0);
        assert_int_equal(symlink("../victim", link), 0);
        fd = open(top, O_RDONLY | O_DIRECTORY);
        for (int i = 0; i < 400; i++) {
                snprintf(name, sizeof(name), "d%d", i);
                assert_int_equal(mkdirat(fd, name, 0700), 0);
                next = openat(fd, name, O_RDONLY | O_DIRECTORY);
                close_fd(fd);
                fd = next;
        }
        close_fd(fd);
        assert_int_equal(remove_tree(top), 0);
        assert_int_equal(access(top, F_OK), -1);
        assert_int_equal(access(victim, F_OK), 0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_environment), cmocka_unit_test(test_private),
                cmocka_unit_test(test_rendezvous),  cmocka_unit_test(test_progress),
                cmocka_unit_test(test_work),        cmocka_unit_test(test_work_names),
                cmocka_unit_test(test_remove),
        };
        return cmocka_run_group_tests(tests, setup, teardown);
}
