/* SPDX-License-Identifier: Apache-2.0 */
#include "executor/read/reader.h"

#include <errno.h>
#include <string.h>

#include "tests/kit/read-kit.h"

static const enum record_format splittable[] = { FORMAT_TEXT, FORMAT_RAW, FORMAT_FIXED, FORMAT_TFRECORD,
                                                 FORMAT_CSV };
static const enum record_format formats[] = { FORMAT_TEXT,     FORMAT_RAW, FORMAT_FIXED,
                                              FORMAT_TFRECORD, FORMAT_CSV, FORMAT_TAR };

/* Where record i begins. */
static size_t begin_of(enum record_format format, const size_t *lengths, size_t i) {
        size_t at = format == FORMAT_CSV ? 8 : 0;

        while (i-- > 0)
                at += lengths[i];
        return at;
}

/* Every format, many files, every size of a split and several of buffers: all parts together are the file,
 * and a record is in the part in which it begins. */
static void test_splits(void **state) {
        static const size_t buffers[] = { 5, 64, 4096 };

        for (size_t f = 0; f < sizeof splittable / sizeof splittable[0]; f++)
                for (unsigned seed = 0; seed < 8; seed++) {
                        enum record_format format = splittable[f];
                        struct bytes file;
                        size_t *lengths, header = format == FORMAT_CSV ? 8 : 0;
                        struct kit k;

                        kit_begin(&k, format);
                        make_file(format, seed, 12, 25, &file, &lengths);
                        kit_write(&k, file.data, file.size);
                        for (size_t split = 1; split <= file.size + 1; split += 1 + split / 20)
                                for (size_t b = 0; b < 3; b++) {
                                        struct bytes all = {};
                                        uint64_t behind = header;

                                        for (uint64_t at = 0; at < file.size; at += split) {
                                                struct delivery d;
                                                size_t expected = 0;

                                                k.task.start = k.task.offset = at;
                                                k.task.end = at + split >= file.size ? file.size : at + split;
                                                kit_read(&k, buffers[b], &d);
                                                if (d.r != 0)
                                                        fail_msg("%s", d.error);
                                                for (size_t i = 0; i < 12; i++) {
                                                        size_t begin = begin_of(format, lengths, i);

                                                        if (begin >= at && begin < k.task.end)
                                                                expected += lengths[i];
                                                }
                                                assert_int_equal(d.bytes.size, expected);
                                                assert_int_equal(d.header.size, expected > 0 ? header : 0);
                                                if (expected > 0) {
                                                        assert_int_equal(d.end, behind + expected);
                                                        behind = d.end;
                                                }
                                                bytes_add(&all, d.bytes.data, d.bytes.size);
                                                delivery_done(&d);
                                        }
                                        assert_int_equal(all.size, file.size - header);
                                        assert_memory_equal(all.data, file.data + header, all.size);
                                        bytes_done(&all);
                                }
                        bytes_done(&file);
                        free(lengths);
                        kit_end(&k);
                }
}

/* From any offset on, what comes begins at the start of the record that the offset lies in. */
static void test_resume(void **state) {
        for (size_t f = 0; f < sizeof formats / sizeof formats[0]; f++)
                for (unsigned seed = 0; seed < 4; seed++) {
                        enum record_format format = formats[f];
                        size_t *lengths, n = 6, step = format == FORMAT_TAR ? 97 : 1;
                        struct bytes file;
                        struct kit k;

                        kit_begin(&k, format);
                        make_file(format, seed, n, 20, &file, &lengths);
                        kit_write(&k, file.data, file.size);
                        for (uint64_t offset = 0; offset <= file.size; offset += step) {
                                struct delivery d;
                                size_t from = begin_of(format, lengths, 0);

                                for (size_t i = 0; i < n && from + lengths[i] <= offset; i++)
                                        from += lengths[i];
                                k.task.offset = offset;
                                kit_read(&k, 64, &d);
                                if (d.r != 0)
                                        fail_msg("%s", d.error);
                                assert_int_equal(d.bytes.size, file.size - from);
                                if (d.bytes.size > 0)
                                        assert_memory_equal(d.bytes.data, file.data + from, d.bytes.size);
                                delivery_done(&d);
                        }
                        bytes_done(&file);
                        free(lengths);
                        kit_end(&k);
                }
}

/* skip, and rewindSkipNum where the task has failed before. */
static void test_skip(void **state) {
        for (size_t f = 0; f < sizeof formats / sizeof formats[0]; f++) {
                enum record_format format = formats[f];
                size_t *lengths, n = 9;
                struct bytes file;
                struct kit k;

                kit_begin(&k, format);
                make_file(format, 3, n, 20, &file, &lengths);
                kit_write(&k, file.data, file.size);
                for (size_t skip = 0; skip <= n + 1; skip++)
                        for (uint32_t failures = 0; failures < 2; failures++) {
                                struct delivery d;
                                size_t left_out = skip + (failures ? 2 : 0);
                                size_t from = left_out < n ? begin_of(format, lengths, left_out) : file.size;

                                k.task.skip = skip;
                                k.task.failures = failures;
                                k.source.rewind_skip = 2;
                                kit_read(&k, 50, &d);
                                assert_int_equal(d.r, 0);
                                assert_int_equal(d.bytes.size, file.size - from);
                                if (from < file.size)
                                        assert_memory_equal(d.bytes.data, file.data + from, d.bytes.size);
                                delivery_done(&d);
                        }
                bytes_done(&file);
                free(lengths);
                kit_end(&k);
        }
}

/* What a pipe gets: a newline at the end, a header before, no end of an archive. */
static void test_pipe(void **state) {
        struct bytes file = {};
        struct delivery d;
        struct kit k;

        kit_begin(&k, FORMAT_TEXT);
        k.framed = false;
        for (size_t buffer = 1; buffer < 12; buffer++) {
                kit_write(&k, "ab\n\ncde", 7);
                kit_read(&k, buffer, &d);
                assert_int_equal(d.r, 0);
                assert_int_equal(d.bytes.size, 8);
                assert_memory_equal(d.bytes.data, "ab\n\ncde\n", 8);
                assert_int_equal(d.end, 7);
                delivery_done(&d);
        }
        kit_write(&k, "", 0);
        kit_read(&k, 100, &d);
        assert_true(d.r == 0 && d.bytes.size == 0 && d.end == 0);
        delivery_done(&d);
        kit_end(&k);

        kit_begin(&k, FORMAT_CSV);
        k.framed = false;
        kit_write(&k, "a,b\n1,2", 7);
        kit_read(&k, 3, &d);
        assert_int_equal(d.r, 0);
        assert_memory_equal(d.header.data, "a,b\n", 4);
        assert_int_equal(d.bytes.size, 4);
        assert_memory_equal(d.bytes.data, "1,2\n", 4);
        delivery_done(&d);
        kit_write(&k, "a,b", 3); /* a header, and nothing to put it before */
        kit_read(&k, 3, &d);
        assert_true(d.r == 0 && d.bytes.size == 0 && d.header.size == 0);
        delivery_done(&d);
        kit_end(&k);

        kit_begin(&k, FORMAT_TAR);
        k.framed = false;
        add_tar_member(&file, "1.a", "x", 1);
        add_tar_member(&file, "2.a", "yy", 2);
        add_tar_end(&file);
        add_tar_member(&file, "2.b", "z", 1);
        add_tar_end(&file);
        kit_write(&k, file.data, file.size);
        for (size_t buffer = 100; buffer < 9000; buffer += 700) {
                kit_read(&k, buffer, &d);
                if (d.r != 0)
                        fail_msg("%s", d.error);
                assert_int_equal(d.bytes.size, 3 * 1024);
                assert_memory_equal(d.bytes.data, file.data, 2 * 1024);
                assert_memory_equal(d.bytes.data + 2048, file.data + 3 * 1024, 1024);
                assert_int_equal(d.records, 3);
                delivery_done(&d);
        }
        bytes_done(&file);
        kit_end(&k);
}

/* A record may be longer than a buffer and a part, but not longer than maxRecord; the error names it. */
static void test_max_record(void **state) {
        static const size_t buffers[] = { 10, 100, 100000 };
        static char text[300000];
        struct delivery d;
        struct kit k;

        kit_begin(&k, FORMAT_TEXT);
        memset(text, 'x', sizeof text);
        text[99] = text[100 + 4999] = text[sizeof text - 1] = '\n';
        kit_write(&k, text, 5100);
        k.input.max_record = 5000;
        for (size_t b = 0; b < 3; b++) {
                kit_read(&k, buffers[b], &d);
                assert_int_equal(d.r, 0);
                assert_int_equal(d.bytes.size, 5100);
                delivery_done(&d);
        }
        k.input.max_record = 4999;
        for (size_t b = 0; b < 3; b++) {
                kit_read(&k, buffers[b], &d);
                assert_int_equal(d.r, -EMSGSIZE);
                assert_non_null(
                        strstr(d.error, ": a record at byte 100 is longer than maxRecord (4999 bytes)"));
                delivery_done(&d);
        }
        kit_write(&k, text, sizeof text);
        k.input.max_record = 100000;
        for (uint64_t start = 0; start < sizeof text; start += 50000) {
                k.task.start = k.task.offset = start;
                k.task.end = start + 50000;
                kit_read(&k, 4096, &d);
                assert_int_equal(d.r, start == 0 ? -EMSGSIZE : 0); /* of that task alone */
                if (start == 0)
                        assert_non_null(strstr(
                                d.error, ": a record at byte 5100 is longer than maxRecord (100000 bytes)"));
                delivery_done(&d);
        }
        kit_end(&k);
}

/* The task ends where it was cut, and the rest is another task. */
static void test_trim(void **state) {
        for (size_t f = 0; f < sizeof splittable / sizeof splittable[0]; f++) {
                enum record_format format = splittable[f];
                size_t *lengths, header = format == FORMAT_CSV ? 8 : 0;
                struct bytes file;
                struct kit k;

                kit_begin(&k, format);
                make_file(format, 5, 40, 25, &file, &lengths);
                kit_write(&k, file.data, file.size);
                for (uint64_t where = 0; where <= file.size + 10; where += 3)
                        for (size_t after = 0; after < 4; after++) {
                                struct reader_request q = { .input = &k.input,
                                                            .source = &k.source,
                                                            .task = &k.task,
                                                            .framed = true };
                                struct bytes all = {};
                                struct reader *r;
                                struct chunk c;
                                uint8_t buf[64];
                                char error[READ_ERROR_MAX];
                                uint64_t end;
                                struct delivery d;
                                int n;

                                k.task.start = k.task.offset = 0;
                                assert_int_equal(reader_open(&q, &r, error), 0);
                                for (size_t i = 0; (i == after ? reader_trim(r, where), 0 : 0),
                                            (n = reader_next(r, buf, sizeof buf, &c, error)) > 0;
                                     i++)
                                        if (!(c.flags & CHUNK_HEADER))
                                                bytes_add(&all, buf, c.size);
                                assert_int_equal(n, 0);
                                end = reader_end(r);
                                reader_close(r);
                                assert_int_equal(all.size + header, end);
                                assert_true(end >= where || end == file.size);

                                k.task.start = k.task.offset = end;
                                kit_read(&k, 64, &d);
                                assert_int_equal(d.r, 0);
                                bytes_add(&all, d.bytes.data, d.bytes.size);
                                assert_int_equal(all.size, file.size - header);
                                assert_memory_equal(all.data, file.data + header, all.size);
                                delivery_done(&d);
                                bytes_done(&all);
                        }
                bytes_done(&file);
                free(lengths);
                kit_end(&k);
        }
}

static void test_range(void **state) {
        static const struct {
                enum record_format format;
                bool framed;
                const char *content;
                uint64_t start, end, offset;
                int r;
                uint64_t first, last;
        } table[] = {
                { FORMAT_TEXT, true, "aa\nbb\ncc", 0, TASK_TO_END, 0, 0, 0, 8 },
                { FORMAT_TEXT, true, "aa\nbb\ncc", 1, 4, 0, 0, 3, 6 },
                { FORMAT_TEXT, true, "aa\nbb\ncc", 0, TASK_TO_END, 4, 0, 3, 8 },
                { FORMAT_TEXT, false, "aa\nbb\ncc", 0, TASK_TO_END, 0, -EOPNOTSUPP, 0, 0 },
                { FORMAT_TEXT, false, "aa\nbb\ncc", 0, 4, 0, 0, 0, 6 },
                { FORMAT_CSV, true, "aa\nbb\ncc", 0, TASK_TO_END, 0, 0, 3, 8 },
                { FORMAT_CSV, false, "aa\nbb\ncc", 0, TASK_TO_END, 0, -EOPNOTSUPP, 0, 0 },
                { FORMAT_RAW, false, "1234567890", 0, TASK_TO_END, 8, 0, 7, 10 },
                { FORMAT_FIXED, true, "1234567890", 0, TASK_TO_END, 0, -EBADMSG, 0, 0 },
                { FORMAT_FIXED, true, "1234567890", 0, 4, 0, 0, 0, 7 },
        };

        for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
                struct kit k;
                struct reader_request q = {
                        .input = &k.input, .source = &k.source, .task = &k.task, .framed = table[i].framed
                };
                char error[READ_ERROR_MAX] = "";
                uint64_t first, last;
                struct reader *r;
                int fd;

                kit_begin(&k, table[i].format);
                kit_write(&k, table[i].content, strlen(table[i].content));
                k.task.start = table[i].start;
                k.task.end = table[i].end;
                k.task.offset = table[i].offset;
                assert_int_equal(reader_open(&q, &r, error), 0);
                assert_int_equal(reader_range(r, &fd, &first, &last, error), table[i].r);
                if (table[i].r == 0) {
                        assert_true(fd >= 0);
                        assert_int_equal(first, table[i].first);
                        assert_int_equal(last, table[i].last);
                        assert_int_equal(reader_check(r, error), 0);
                }
                if (i == 0) {
                        reader_trim(r, 4);
                        assert_int_equal(reader_range(r, &fd, &first, &last, error), 0);
                        assert_int_equal(last, 6);
                        assert_int_equal(reader_end(r), 6);
                }
                reader_close(r);
                kit_end(&k);
        }
}

static void test_cancel(void **state) {
        struct delivery d;
        struct kit k;

        kit_begin(&k, FORMAT_TEXT);
        kit_write(&k, "a\n", 2);
        k.cancel = true;
        kit_read(&k, 10, &d);
        assert_int_equal(d.r, -ECANCELED);
        delivery_done(&d);
        kit_end(&k);
}

/* Data that is not what it says it is. */
static void test_corrupt(void **state) {
        static const struct {
                enum record_format format;
                bool multiline;
                const char *content;
                const char *why;
        } lines[] = {
                { FORMAT_CSV, false, "a,b\n1,\"2\n3\"\n",
                  "a quoted field goes over the end of its line: set csvInput.multiline, in the record at "
                  "byte 4" },
                { FORMAT_CSV, true, "a,b\n1,\"2\n3\n",
                  "a quoted field is open at the end, in the record at byte 4" },
                { FORMAT_FIXED, false, "123456712",
                  "the data does not end at the end of a record of recordSize, in the record at byte 7" },
        };
        struct bytes file = {};
        struct delivery d;
        struct kit k;

        for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
                kit_begin(&k, lines[i].format);
                k.source.multiline = lines[i].multiline;
                kit_write(&k, lines[i].content, strlen(lines[i].content));
                kit_read(&k, 64, &d);
                assert_int_equal(d.r, -EBADMSG);
                assert_memory_equal(d.error, k.path, strlen(k.path));
                assert_string_equal(d.error + strlen(k.path) + 2, lines[i].why);
                delivery_done(&d);
                kit_end(&k);
        }

        /* Every byte of a TFRecord file matters; what stands before the broken record is delivered. */
        kit_begin(&k, FORMAT_TFRECORD);
        for (int i = 0; i < 5; i++)
                add_tfrecord(&file, "0123456789", 10);
        for (size_t i = 0; i < file.size; i++) {
                file.data[i] ^= 0x10;
                kit_write(&k, file.data, file.size);
                kit_read(&k, 4096, &d);
                assert_int_equal(d.r, -EBADMSG);
                assert_int_equal(d.bytes.size, i / 26 * 26);
                delivery_done(&d);
                file.data[i] ^= 0x10;
        }
        for (size_t size = 1; size < file.size; size++) {
                kit_write(&k, file.data, size);
                kit_read(&k, 4096, &d);
                assert_int_equal(d.r, size % 26 == 0 ? 0 : -EBADMSG);
                assert_int_equal(d.bytes.size, size / 26 * 26);
                delivery_done(&d);
        }
        bytes_done(&file);
        kit_end(&k);

        /* A tar that is cut anywhere. */
        kit_begin(&k, FORMAT_TAR);
        for (int i = 0; i < 3; i++) {
                char name[16];

                snprintf(name, sizeof name, "%d.txt", i);
                add_tar_member(&file, name, "0123456789", 10);
        }
        add_tar_end(&file);
        for (size_t size = 1; size < 3 * 1024 + 512; size += 37) {
                kit_write(&k, file.data, size);
                kit_read(&k, 8192, &d);
                assert_int_equal(d.r, -EBADMSG);
                delivery_done(&d);
        }
        kit_write(&k, file.data, 3 * 1024 + 512);
        kit_read(&k, 8192, &d);
        assert_int_equal(d.r, 0);
        assert_int_equal(d.records, 3);
        delivery_done(&d);
        bytes_done(&file);
        kit_end(&k);
}

/* A TFRecord file whose records hold TFRecords: a part that begins within one finds the inner ones, and the
 * part before it notices. */
static void test_nested(void **state) {
        struct bytes inner = {}, file = {};
        struct delivery d;
        struct kit k;

        for (int i = 0; i < 20; i++)
                add_tfrecord(&inner, "0123456789", 10);
        for (int i = 0; i < 4; i++)
                add_tfrecord(&file, inner.data, inner.size);
        kit_begin(&k, FORMAT_TFRECORD);
        kit_write(&k, file.data, file.size);
        k.task.end = 700;
        kit_read(&k, 4096, &d);
        assert_int_equal(d.r, -EBADMSG);
        assert_non_null(strstr(d.error, "set split to 0"));
        delivery_done(&d);
        k.task.end = TASK_TO_END;
        kit_read(&k, 4096, &d);
        assert_int_equal(d.r, 0);
        assert_int_equal(d.records, 4);
        delivery_done(&d);
        bytes_done(&inner);
        bytes_done(&file);
        kit_end(&k);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_splits),     cmocka_unit_test(test_resume),
                cmocka_unit_test(test_skip),       cmocka_unit_test(test_pipe),
                cmocka_unit_test(test_max_record), cmocka_unit_test(test_trim),
                cmocka_unit_test(test_range),      cmocka_unit_test(test_cancel),
                cmocka_unit_test(test_corrupt),    cmocka_unit_test(test_nested),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
