/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/record/record.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void test_crc32c(void **state) {
        static uint8_t data[20000];
        uint8_t ones[32], rising[32];

        /* RFC 3720, B.4 */
        memset(ones, 0xff, sizeof ones);
        for (uint8_t i = 0; i < 32; i++)
                rising[i] = i;
        assert_int_equal(crc32c(0, data, 32), 0x8a9136aa);
        assert_int_equal(crc32c(0, ones, 32), 0x62a8ab43);
        assert_int_equal(crc32c(0, rising, 32), 0x46dd794e);
        assert_int_equal(crc32c(0, "123456789", 9), 0xe3069283);

        srandom(1);
        for (size_t i = 0; i < sizeof data; i++)
                data[i] = (uint8_t)random();
        for (size_t n = 0; n < sizeof data; n += 1 + n / 10)
                for (size_t at = 0; at < 9 && at + n <= sizeof data; at++) {
                        uint32_t crc = crc32c(0, data + at, n);

                        assert_int_equal(crc, crc32c_tables(0, data + at, n));
                        assert_int_equal(crc,
                                         crc32c(crc32c(0, data + at, n / 3), data + at + n / 3, n - n / 3));
                }
}

/* What the records of some text are: "|" ends each; what remains behind the last "|" is more than is wanted,
 * or an error. */
static const struct {
        struct record_format_info format;
        bool last;
        const char *text, *records;
        const char *why;
} table[] = {
        { { RECORD_TEXT }, false, "a\n\nbc\nd", "a\n|\n|bc\n|", NULL },
        { { RECORD_TEXT }, true, "a\n\nbc\nd", "a\n|\n|bc\n|d|", NULL },
        { { RECORD_TEXT }, true, "", "", NULL },
        { { RECORD_RAW, .record_size = 3 }, false, "abcdefg", "abc|def|", NULL },
        { { RECORD_RAW, .record_size = 3 }, true, "abcdefg", "abc|def|g|", NULL },
        { { RECORD_FIXED, .record_size = 3 }, false, "abcdefg", "abc|def|", NULL },
        { { RECORD_FIXED, .record_size = 3 },
          true,
          "abcdefg",
          "abc|def|",
          "the data does not end at the end of a record of recordSize" },
        { { RECORD_RAW }, true, "a", "", "records of size 0" },
        { { RECORD_CSV }, true, "a,b\n1,2", "a,b\n|1,2|", NULL },
        { { RECORD_CSV }, false, "\"a\",\"b,\"\"c\"\"\"\n1", "\"a\",\"b,\"\"c\"\"\"\n|", NULL },
        { { RECORD_CSV }, false, "3.5\" disk\n2\n", "3.5\" disk\n|2\n|", NULL },
        { { RECORD_CSV },
          false,
          "1\n\"a\nb\"\n",
          "1\n|",
          "a quoted field goes over the end of its line: set csvInput.multiline" },
        { { RECORD_CSV }, false, "1\n\"a", "1\n|", NULL },
        { { RECORD_CSV },
          true,
          "1\n\"a",
          "1\n|",
          "a quoted field goes over the end of its line: set csvInput.multiline" },
        { { RECORD_CSV, .multiline = true }, false, "1;\"a\nb\"\n\"\n", "1;\"a\nb\"\n|", NULL },
        { { RECORD_CSV, .multiline = true }, false, "1\t\"a\"\"\n\"", "", NULL },
        { { RECORD_CSV, .multiline = true }, true, "1\t\"a\"\"\n\"", "1\t\"a\"\"\n\"|", NULL },
        { { RECORD_CSV, .multiline = true }, true, "1\n\"a\n", "1\n|", "a quoted field is open at the end" },
};

static void test_lines(void **state) {
        for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
                const uint8_t *text = (const uint8_t *)table[i].text;
                size_t size = strlen(table[i].text), at = 0, n = 0, bytes = 0;
                char records[100];
                uint64_t counted;
                const char *why = NULL;
                struct record r;
                int k;

                while ((k = record_next(&table[i].format, text + at, size - at, table[i].last, &r, &why)) >
                       0) {
                        assert_true(r.total > 0 && r.total <= size - at && r.size == r.total &&
                                    r.data == text + at);
                        memcpy(records + n, r.data, r.size);
                        n += r.size;
                        records[n++] = '|';
                        at += r.total;
                }
                records[n] = 0;
                assert_string_equal(records, table[i].records);
                assert_int_equal(k, table[i].why ? -EBADMSG : 0);
                if (table[i].why)
                        assert_string_equal(why, table[i].why);
                k = record_last(&table[i].format, text, size, table[i].last, &bytes, &counted, &why);
                assert_int_equal(k, table[i].why && at == 0 ? -EBADMSG : 0);
                if (k == 0)
                        assert_int_equal(bytes, at);
        }
}

static void test_sync(void **state) {
        static const struct {
                struct record_format_info format;
                const char *text;
                uint64_t position;
                bool last;
                int r;
                size_t at;
        } syncs[] = {
                { { RECORD_TEXT }, "a\nb", 5, false, 1, 2 },
                { { RECORD_TEXT }, "\nb", 5, false, 1, 1 },
                { { RECORD_TEXT }, "ab", 5, false, 0, 0 },
                { { RECORD_TEXT }, "ab", 5, true, 1, 2 },
                { { RECORD_CSV }, "a\nb", 5, false, 1, 2 },
                { { RECORD_CSV, .multiline = true }, "a\nb", 5, false, -EOPNOTSUPP, 0 },
                { { RECORD_RAW, .record_size = 4 }, "abcd", 8, false, 1, 0 },
                { { RECORD_RAW, .record_size = 4 }, "abcd", 9, false, 1, 3 },
                { { RECORD_FIXED, .record_size = 9 }, "abcd", 1, false, 0, 0 },
                { { RECORD_FIXED, .record_size = 9 }, "abcd", 1, true, 1, 4 },
                { { RECORD_FIXED }, "abcd", 1, true, -EBADMSG, 0 },
                { { RECORD_TAR }, "abcd", 1, true, -EOPNOTSUPP, 0 },
                { { RECORD_MESSAGE }, "abcd", 1, true, -EOPNOTSUPP, 0 },
        };

        for (size_t i = 0; i < sizeof syncs / sizeof syncs[0]; i++) {
                const char *why;
                size_t at = 0;
                int r = record_sync(&syncs[i].format, (const uint8_t *)syncs[i].text, strlen(syncs[i].text),
                                    syncs[i].position, syncs[i].last, &at, &why);

                assert_int_equal(r, syncs[i].r);
                assert_int_equal(at, syncs[i].at);
        }
}

static size_t add_tfrecord(uint8_t *p, const char *text) {
        uint64_t length = strlen(text);
        uint32_t crc = crc32c(0, &length, 8);

        crc = (crc >> 15 | crc << 17) + 0xa282ead8u;
        memcpy(p, &length, 8);
        memcpy(p + 8, &crc, 4);
        memcpy(p + 12, text, length);
        crc = crc32c(0, text, length);
        crc = (crc >> 15 | crc << 17) + 0xa282ead8u;
        memcpy(p + 12 + length, &crc, 4);
        return length + 16;
}

/* The first record is found from every place, however little is shown at a time. */
static void test_tfrecord_sync(void **state) {
        static const char *const texts[] = { "one", "", "threeeeeeeeeeeeeeeeeeeeeeeeeeee", "4", "5" };
        struct record_format_info f = { .kind = RECORD_TFRECORD };
        size_t begins[6], size = 0;
        uint8_t buf[200];

        for (size_t i = 0; i < 5; i++) {
                begins[i] = size;
                size += add_tfrecord(buf + size, texts[i]);
        }
        begins[5] = size;
        for (size_t from = 0; from <= size; from++)
                for (size_t step = 1; step < 50; step += 7) {
                        size_t have = 0, at, expected = 0;
                        const char *why;
                        int r;

                        while (begins[expected] < from)
                                expected++;
                        while ((r = record_sync(&f, buf + from, have, from, from + have == size, &at,
                                                &why)) == 0) {
                                assert_true(from + have < size);
                                have = from + have + step > size ? size - from : have + step;
                        }
                        assert_int_equal(r, 1);
                        assert_int_equal(from + at, begins[expected]);
                }
}

static void test_message(void **state) {
        struct record_format_info f = { .kind = RECORD_MESSAGE };
        struct record_message_header h = {
                .offset = 42, .timestamp_msec = -1, .key_size = 3, .value_size = 6
        };
        uint8_t buf[64] = {};
        struct record r;
        const char *why;

        memcpy(buf, &h, sizeof h);
        memcpy(buf + sizeof h, "keyvalue..", 9);
        assert_int_equal(record_next(&f, buf, sizeof buf, true, &r, &why), 1);
        assert_int_equal(r.total, 40);
        assert_int_equal(r.offset, 42);
        assert_int_equal(r.timestamp_msec, -1);
        assert_int_equal(r.key_size, 3);
        assert_memory_equal(r.key, "key", 3);
        assert_memory_equal(r.data, "value.", 5);
        assert_int_equal(record_next(&f, buf, 39, false, &r, &why), 0);
        assert_int_equal(record_next(&f, buf, 39, true, &r, &why), -EBADMSG);
        h.key_size = UINT32_MAX;
        memcpy(buf, &h, sizeof h);
        assert_int_equal(record_next(&f, buf, sizeof buf, false, &r, &why), 1);
        assert_null(r.key);
        assert_int_equal(r.total, 32);
        h.value_size = UINT32_MAX;
        memcpy(buf, &h, sizeof h);
        assert_int_equal(record_next(&f, buf, sizeof buf, false, &r, &why), -EBADMSG);
}

/* Archives as tar programs write them, in the formats that there are. */
static void test_tar(void **state) {
        static const char *const formats[] = { "v7", "ustar", "gnu", "oldgnu", "pax" };
        static const char script[] =
                "set -e; cd \"$1\"; m=150; [ $2 != ustar ] || m=80; mkdir -p deep.dir; echo one > "
                "deep.dir/0001.txt; echo 1 > "
                "deep.dir/0001.cls;"
                "l=; [ \"$2\" = v7 ] || l=$(printf 'n%.0s' $(seq 1 60))/$(printf 'm%.0s' $(seq 1 $m));"
                "mkdir -p \"${l%/*}x\"; : > \"${l%/*}x/0002${l##*/}.seg.png\"; seq 1 1000 > "
                "\"${l%/*}x/0002${l##*/}.json\";"
                "ln -s 0001.txt deep.dir/0003.link; : > 0004;"
                "tar --format=$2 -cf out.tar deep.dir \"${l%/*}x\" 0004; tar -tf out.tar > names";

        for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
                char directory[] = "/tmp/primus-tar-XXXXXX", command[1024], path[100];
                static uint8_t buf[1 << 20];
                struct record_format_info f = { .kind = RECORD_TAR };
                size_t size, at = 0, records = 0, members = 0;
                const char *why = "";
                struct record r;
                FILE *file;
                int k;

                assert_non_null(mkdtemp(directory));
                snprintf(path, sizeof path, "%s/script", directory);
                file = fopen(path, "w");
                assert_non_null(file);
                fputs(script, file);
                fclose(file);
                snprintf(command, sizeof command, "sh %s %s %s", path, directory, formats[i]);
                assert_int_equal(system(command), 0);
                snprintf(path, sizeof path, "%s/out.tar", directory);
                file = fopen(path, "r");
                assert_non_null(file);
                size = fread(buf, 1, sizeof buf, file);
                fclose(file);
                while ((k = record_next(&f, buf + at, size - at, true, &r, &why)) > 0) {
                        struct record_tar_member m;
                        size_t iterator = 0;

                        while ((k = record_tar_next(r.data, r.size, &iterator, &m)) > 0) {
                                members++;
                                if (m.name_size > 5 && memcmp(m.name + m.name_size - 5, ".json", 5) == 0)
                                        assert_int_equal(m.size, 3893);
                                if (m.name_size > 8 && memcmp(m.name + m.name_size - 8, "0001.txt", 8) == 0)
                                        assert_memory_equal(m.data, "one\n", 4);
                        }
                        assert_int_equal(k, 0);
                        at += r.total;
                        records++;
                }
                if (k < 0)
                        fail_msg("%s: %s", formats[i], why);
                assert_int_equal(at, size);
                assert_int_equal(records, 3);
                assert_int_equal(members, 5);
                snprintf(command, sizeof command, "rm -r %s", directory);
                assert_int_equal(system(command), 0);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_crc32c),  cmocka_unit_test(test_lines),
                cmocka_unit_test(test_sync),    cmocka_unit_test(test_tfrecord_sync),
                cmocka_unit_test(test_message), cmocka_unit_test(test_tar),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
