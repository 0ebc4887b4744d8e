/* SPDX-License-Identifier: Apache-2.0 */
/* A file that does not stay what it was. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "executor/read/stream.h"
#include "lib/base/file.h"
#include "tests/kit/read-kit.h"

static void shorten(struct kit *k) {
        assert_int_equal(truncate(k->path, 5000), 0);
}

static void lengthen(struct kit *k) {
        assert_int_equal(truncate(k->path, 200000), 0);
}

static void make_zeros(struct kit *k) {
        assert_int_equal(truncate(k->path, 50), 0);
        assert_int_equal(truncate(k->path, 100000), 0);
        assert_int_equal(usleep(10000), 0); /* times of files go by the kernel's ticks */
        assert_int_equal(utimensat(AT_FDCWD, k->path, NULL, 0), 0);
}

static void write_into(struct kit *k) {
        struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, { .tv_sec = 1000 } };

        assert_int_equal(utimensat(AT_FDCWD, k->path, times, 0), 0);
}

static void replace(struct kit *k) {
        assert_int_equal(write_file_atomic(k->path, "other\n", 6, 0644, false), 0);
}

static void remove_it(struct kit *k) {
        assert_int_equal(unlink(k->path), 0);
}

static const struct {
        void (*change)(struct kit *k);
        int opened, read;
        const char *since, *during;
} table[] = {
        { shorten, -ESTALE, -ESTALE, "became shorter since it was scanned",
          "became shorter while it was read" },
        { lengthen, -ESTALE, -ESTALE, "became longer since it was scanned",
          "became longer while it was read" },
        { make_zeros, -ESTALE, -ESTALE, "changed since it was scanned", "changed while it was read" },
        { write_into, -ESTALE, -ESTALE, "changed since it was scanned", "changed while it was read" },
        { replace, -ESTALE, -ESTALE, "was replaced by another file since it was scanned",
          "was replaced by another file while it was read" },
        { remove_it, -ENOENT, 0, "No such file or directory", "" },
};

static void test_changes(void **state) {
        static char text[100000];

        memset(text, 'x', sizeof text);
        for (size_t i = 99; i < sizeof text; i += 100)
                text[i] = '\n';
        for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
                for (int before = 0; before < 2; before++) {
                        struct kit k;
                        struct reader_request q = { .input = &k.input, .source = &k.source, .task = &k.task };
                        char error[READ_ERROR_MAX] = "";
                        struct reader *r = NULL;
                        uint8_t buf[1024];
                        struct chunk c;
                        size_t read = 0;
                        int n;

                        kit_begin(&k, FORMAT_TEXT);
                        kit_write(&k, text, sizeof text);
                        if (before)
                                table[i].change(&k);
                        n = reader_open(&q, &r, error);
                        if (before) {
                                assert_int_equal(n, table[i].opened);
                                assert_memory_equal(error, k.path, strlen(k.path));
                                assert_string_equal(error + strlen(k.path) + 2, table[i].since);
                                unlink(k.path);
                                continue;
                        }
                        assert_int_equal(n, 0);
                        while ((n = reader_next(r, buf, sizeof buf, &c, error)) > 0) {
                                for (size_t j = 0; j < c.size; j++)
                                        assert_true(buf[j] != 0);
                                if (read == 0)
                                        table[i].change(&k);
                                read += c.size;
                        }
                        assert_int_equal(n, table[i].read);
                        if (n < 0)
                                assert_string_equal(error + strlen(k.path) + 2, table[i].during);
                        reader_close(r);
                        unlink(k.path);
                }
}

static void test_not_regular(void **state) {
        struct delivery d;
        struct kit k;

        kit_begin(&k, FORMAT_TEXT);
        unlink(k.path);
        assert_int_equal(mkfifo(k.path, 0600), 0);
        kit_read(&k, 10, &d);
        assert_int_equal(d.r, -EINVAL);
        assert_non_null(strstr(d.error, "is not a regular file"));
        delivery_done(&d);
        kit_end(&k);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_changes),
                cmocka_unit_test(test_not_regular),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
