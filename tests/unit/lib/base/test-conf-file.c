/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/conf-file.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"
#include "tests/kit/root-kit.h"

static const char *path_of(const char *name) {
        static char path[512];

        snprintf(path, sizeof(path), "%s%s", root_kit, name);
        return path;
}

static int read_it(const char *name, const char *expected_why) {
        _cleanup_free_ char *text = NULL;
        const char *why = "";
        size_t size;
        int r = conf_file_read(path_of(name), &text, &size, &why);

        if (expected_why)
                assert_non_null(strstr(why, expected_why));
        return r;
}

static void test_which_files(void **state) {
        assert_int_equal(read_it("/none", NULL), -ENOENT);
        root_put("/fine", "x");
        assert_int_equal(read_it("/fine", NULL), 0);
        assert_int_equal(chmod(path_of("/fine"), 0666), 0);
        assert_int_equal(read_it("/fine", "everybody may write"), -EPERM);
        assert_int_equal(read_it("", "directory"), -EISDIR);
        assert_int_equal(mkfifo(path_of("/fifo"), 0644), 0);
        assert_int_equal(read_it("/fifo", "no regular file"), -EINVAL);
        assert_int_equal(symlink("loop", path_of("/loop")), 0);
        assert_int_equal(read_it("/loop", "symbolic links"), -ELOOP);
        assert_int_equal(symlink("nowhere", path_of("/dangling")), 0);
        assert_int_equal(read_it("/dangling", NULL), -ENOENT);
        assert_int_equal(symlink("/dev/null", path_of("/masked")), 0);
        assert_int_equal(read_it("/masked", NULL), 0);
        assert_int_equal(symlink("/dev/zero", path_of("/endless")), 0);
        assert_int_equal(read_it("/endless", "no regular file"), -EINVAL);
        root_put("/large", "x");
        assert_int_equal(truncate(path_of("/large"), 100 << 20), 0);
        assert_int_equal(read_it("/large", "larger than 1 MiB"), -EFBIG);
        if (geteuid() == 0) {
                root_put("/foreign", "x");
                assert_int_equal(chown(path_of("/foreign"), 65534, 65534), 0);
                assert_int_equal(read_it("/foreign", "another user"), -EPERM);
        }
}

static void test_directory(void **state) {
        const char *why = NULL;
        int fd = open(root_kit, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        assert_int_equal(conf_directory_check(fd, &why), 0);
        assert_int_equal(fchmod(fd, 0777), 0);
        assert_int_equal(conf_directory_check(fd, &why), -EPERM);
        assert_non_null(strstr(why, "everybody"));
        assert_int_equal(fchmod(fd, 0755), 0);
        (void)close(fd);
}

struct heard {
        char text[2048];
        unsigned stop_at;
};

static int on_line(void *userdata, const struct conf_line *l) {
        struct heard *h = userdata;
        size_t n = strlen(h->text);

        if (l->kind == CONF_LINE_SECTION)
                snprintf(h->text + n, sizeof(h->text) - n, "%u[%s] ", l->number, l->section);
        else if (l->kind == CONF_LINE_VALUE)
                snprintf(h->text + n, sizeof(h->text) - n, "%u %s.%s='%s' ", l->number, l->section, l->name,
                         l->value);
        else
                snprintf(h->text + n, sizeof(h->text) - n, "%u!%s ", l->number, l->name);
        return l->number == h->stop_at ? -EINTR : 0;
}

static void expect(const char *text, size_t size, const char *expected) {
        _cleanup_free_ char *copy = malloc(size + 1);
        struct heard h = {};

        assert_non_null(copy);
        memcpy(copy, text, size);
        copy[size] = 0;
        assert_int_equal(conf_text_parse(copy, size, on_line, &h), 0);
        assert_string_equal(h.text, expected);
}

static void test_lines(void **state) {
        static const struct {
                const char *text, *expected;
        } cases[] = {
                { "", "" },
                { "\n\n \t\n# x\n ; y=1\n", "" },
                { "[A]\nk=v", "1[A] 2 A.k='v' " },
                { "  [ A b ]  \r\n  k = v w  \r\n", "1[A b] 2 A b.k='v w' " },
                { "k=\n", "1 .k='' " },
                { "[A]\nk=a;b # c\n", "1[A] 2 A.k='a;b # c' " }, /* comments are lines of their own */
                { "[A]\nk=a \\\n  b \\\n  c\nl=2\n", "1[A] 2 A.k='a    b    c' 5 A.l='2' " },
                { "[A]\nk=a\\", "1[A] 2 A.k='a\\' " },
                { "[A]\n# no \\\nk=1\n", "1[A] 3 A.k='1' " },
                { "word\nUsers alice\n[A\n=x\n", "1!word 2!Users 3![A 4! " },
                { "\xef\xbb\xbf[A]\nk=1\n", "1[A] 2 A.k='1' " },
                { "[A]\nk==\n", "1[A] 2 A.k='=' " },
                { "\\", "1!\\ " },
        };

        for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
                expect(cases[i].text, strlen(cases[i].text), cases[i].expected);
        expect("[A]\nk=1\0\nl=2\n\0\0", 16, "1[A] 2!k 3 A.l='2' 4! ");
}

static void test_long(void **state) {
        size_t size = CONF_LINE_MAX + 100;
        _cleanup_free_ char *text = malloc(size + 1);
        struct heard h = {};

        assert_non_null(text);
        memset(text, 'x', size);
        memcpy(text, "Users=", 6);
        memcpy(text + size - 5, "\nk=1\n", 6);
        assert_int_equal(conf_text_parse(text, size, on_line, &h), 0);
        assert_string_equal(h.text, "1!Users 2 .k='1' ");
}

static void test_ends(void **state) {
        struct heard h = { .stop_at = 2 };
        char text[] = "a=1\nb=2\nc=3\n";

        assert_int_equal(conf_text_parse(text, strlen(text), on_line, &h), -EINTR);
        assert_string_equal(h.text, "1 .a='1' 2 .b='2' ");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_which_files, root_setup, root_teardown),
                cmocka_unit_test_setup_teardown(test_directory, root_setup, root_teardown),
                cmocka_unit_test(test_lines),
                cmocka_unit_test(test_long),
                cmocka_unit_test(test_ends),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
