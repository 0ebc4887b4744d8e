/* SPDX-License-Identifier: Apache-2.0 */
/* Bundles that must not be unpacked, and one that must. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#include <archive.h>
#include <archive_entry.h>
#include <sys/stat.h>

#include "executor/files/stage.h"
#include "lib/base/cleanup.h"
#include "lib/base/file.h"

struct item {
        const char *path;
        unsigned type;      /* AE_IF* */
        const char *target; /* of links */
        bool hard;
        unsigned mode;
        const char *content;
};

static char directory[64];

static char *path_of(const char *name) {
        char *s;

        assert_true(asprintf(&s, "%s/%s", directory, name) > 0);
        return s;
}

static int setup(void **state) {
        _cleanup_free_ char *out = NULL;

        strcpy(directory, "/tmp/primus-stage-XXXXXX");
        assert_non_null(mkdtemp(directory));
        out = path_of("out");
        return mkdir(out, 0755);
}

static int teardown(void **state) {
        return remove_tree(directory);
}

static void pack(const struct item *items, size_t n) {
        _cleanup_free_ char *bundle = path_of("bundle");
        struct archive *a = archive_write_new();

        archive_write_set_format_pax_restricted(a);
        archive_write_add_filter_zstd(a);
        assert_int_equal(archive_write_open_filename(a, bundle), ARCHIVE_OK);
        for (size_t i = 0; i < n; i++) {
                struct archive_entry *e = archive_entry_new();
                size_t size = items[i].content ? strlen(items[i].content) : 0;

                archive_entry_set_pathname(e, items[i].path);
                if (items[i].hard)
                        archive_entry_set_hardlink(e, items[i].target);
                else
                        archive_entry_set_filetype(e, items[i].type);
                if (!items[i].hard && items[i].target)
                        archive_entry_set_symlink(e, items[i].target);
                archive_entry_set_perm(e, items[i].mode ? items[i].mode : 0644);
                archive_entry_set_size(e, (la_int64_t)size);
                assert_int_equal(archive_write_header(a, e), ARCHIVE_OK);
                if (size > 0)
                        archive_write_data(a, items[i].content, size);
                archive_entry_free(e);
        }
        archive_write_free(a);
}

static int unpack(const struct stage_limits *limits, char **ret_error) {
        _cleanup_free_ char *bundle = path_of("bundle"), *out = path_of("out");

        return stage_unpack(bundle, out, limits ? limits : &stage_limits_default, ret_error);
}

static void test_good(void **state) {
        static const struct item items[] = {
                { "d", AE_IFDIR, .mode = 0755 },
                { "d/a.py", AE_IFREG, .mode = 04755, .content = "print(1)\n" },
                { "d/link", AE_IFLNK, .target = "../b" },
                { "./b", AE_IFREG, .content = "b" },
                { "c", AE_IFREG, .target = "d/a.py", .hard = true },
                { "e", AE_IFLNK, .target = "d/./a.py" },
                { "deep/er/still", AE_IFREG, .content = "x" },
        };
        _cleanup_free_ char *error = NULL, *text = NULL, *a = path_of("out/d/a.py"),
                            *c = path_of("out/d/link");
        struct stat st;

        pack(items, ELEMENTSOF(items));
        assert_int_equal(unpack(NULL, &error), 0);
        assert_int_equal(stat(a, &st), 0);
        assert_int_equal(st.st_mode & 07777, 0755); /* without setuid */
        assert_int_equal(st.st_nlink, 2);
        assert_int_equal(read_file(c, 100, &text, NULL), 0);
        assert_string_equal(text, "b");
        assert_int_equal(unpack(NULL, &error), 0); /* again, over itself */
}

static const struct {
        struct item items[3];
        size_t n;
        int r;
} bad[] = {
        { { { "/etc/x", AE_IFREG } }, 1, -EBADMSG },
        { { { "../x", AE_IFREG } }, 1, -EBADMSG },
        { { { "a/../../x", AE_IFREG } }, 1, -EBADMSG },
        { { { "a/..", AE_IFDIR } }, 1, -EBADMSG },
        { { { "l", AE_IFLNK, .target = "/etc/passwd" } }, 1, -EBADMSG },
        { { { "l", AE_IFLNK, .target = ".." } }, 1, -EBADMSG },
        { { { "a/l", AE_IFLNK, .target = "../../x" } }, 1, -EBADMSG },
        { { { "a/l", AE_IFLNK, .target = ".." }, { "m", AE_IFLNK, .target = "a/l/.." } }, 2, -EBADMSG },
        { { { "h", AE_IFREG, .target = "/etc/passwd", .hard = true } }, 1, -EBADMSG },
        { { { "h", AE_IFREG, .target = "../../x", .hard = true } }, 1, -EBADMSG },
        { { { "dev", AE_IFCHR } }, 1, -EBADMSG },
        { { { "blk", AE_IFBLK } }, 1, -EBADMSG },
        { { { "fifo", AE_IFIFO } }, 1, -EBADMSG },
        /* through a link that the bundle itself brings */
        { { { "d", AE_IFDIR, .mode = 0755 },
            { "l", AE_IFLNK, .target = "d" },
            { "l/x", AE_IFREG, .content = "x" } },
          3,
          -EBADMSG },
};

static void test_bad(void **state) {
        for (size_t i = 0; i < ELEMENTSOF(bad); i++) {
                _cleanup_free_ char *error = NULL, *out = path_of("out");

                pack(bad[i].items, bad[i].n);
                assert_int_equal(unpack(NULL, &error), bad[i].r);
                assert_non_null(error);
                assert_int_equal(remove_tree(out), 0);
                assert_int_equal(mkdir(out, 0755), 0);
        }
}

/* A link that lies there already, put by somebody else, is not followed. */
static void test_planted(void **state) {
        static const struct item items[] = { { "d/x", AE_IFREG, .content = "x" } };
        _cleanup_free_ char *error = NULL, *link = path_of("out/d"), *victim = path_of("victim"),
                            *x = path_of("victim/x");

        assert_int_equal(mkdir(victim, 0755), 0);
        assert_int_equal(symlink(victim, link), 0);
        pack(items, 1);
        assert_true(unpack(NULL, &error) < 0);
        assert_int_equal(access(x, F_OK), -1);
}

static void test_limits(void **state) {
        static const struct item items[] = {
                { "a", AE_IFREG, .content = "0123456789" },
                { "b", AE_IFREG, .content = "0123456789" },
        };
        _cleanup_free_ char *e1 = NULL, *e2 = NULL, *e3 = NULL;

        pack(items, 2);
        assert_int_equal(unpack(&(struct stage_limits){ 1, 1000 }, &e1), -E2BIG);
        assert_int_equal(unpack(&(struct stage_limits){ 2, 19 }, &e2), -E2BIG);
        assert_int_equal(unpack(&(struct stage_limits){ 2, 20 }, &e3), 0);
}

static void test_junk(void **state) {
        _cleanup_free_ char *bundle = path_of("bundle"), *error = NULL;
        char junk[4096];

        for (size_t i = 0; i < sizeof(junk); i++)
                junk[i] = (char)(i * 31 + 7);
        assert_int_equal(write_file_atomic(bundle, junk, sizeof(junk), 0600, false), 0);
        assert_int_equal(unpack(NULL, &error), -EBADMSG);
}

static void test_once(void **state) {
        static const struct item items[] = { { "a", AE_IFREG, .content = "x" } };
        _cleanup_free_ char *bundle = path_of("bundle"), *out = path_of("out"), *a = path_of("out/a");

        pack(items, 1);
        assert_int_equal(stage_run(bundle, out), 0);
        assert_int_equal(unlink(a), 0);
        assert_int_equal(stage_run(bundle, out), 0); /* done already */
        assert_int_equal(access(a, F_OK), -1);
        assert_int_equal(stage_run("/no/such/other", out), 1);
}

int main(void) {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
        const struct CMUnitTest tests[] = { T(test_good),   T(test_bad),  T(test_planted),
                                            T(test_limits), T(test_junk), T(test_once) };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
