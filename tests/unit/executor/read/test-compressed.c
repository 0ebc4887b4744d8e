/* SPDX-License-Identifier: Apache-2.0 */
/* gzip and zstd: what they hold, in any pieces, and everything that can be wrong with them. */
#include <errno.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

#include "lib/base/cleanup.h"
#include "tests/kit/read-kit.h"

static void add_gzip(struct bytes *b, const void *data, size_t size) {
        uint8_t *out = malloc(size + 1000);
        z_stream z = { .next_in = (void *)(uintptr_t)data,
                       .avail_in = (uInt)size,
                       .next_out = out,
                       .avail_out = (uInt)size + 1000 };

        assert_non_null(out);
        assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
        assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
        bytes_add(b, out, z.total_out);
        deflateEnd(&z);
        free(out);
}

static void add_zstd(struct bytes *b, const void *data, size_t size) {
        ZSTD_CCtx *c = ZSTD_createCCtx();
        size_t bound = ZSTD_compressBound(size), n;
        uint8_t *out = malloc(bound);

        assert_true(c && out);
        ZSTD_CCtx_setParameter(c, ZSTD_c_checksumFlag, 1);
        n = ZSTD_compress2(c, out, bound, data, size);
        assert_false(ZSTD_isError(n));
        bytes_add(b, out, n);
        ZSTD_freeCCtx(c);
        free(out);
}

static const struct {
        enum compression compression;
        void (*add)(struct bytes *b, const void *data, size_t size);
        const char *name;
} kinds[] = {
        { COMPRESSION_GZIP, add_gzip, "gzip" },
        { COMPRESSION_ZSTD, add_zstd, "zstd" },
};

static void test_whole(void **state) {
        static const size_t buffers[] = { 17, 5000, 1 << 20 };
        static const enum record_format formats[] = { FORMAT_TEXT, FORMAT_CSV, FORMAT_TFRECORD, FORMAT_TAR,
                                                      FORMAT_RAW };

        for (size_t i = 0; i < 2; i++)
                for (size_t f = 0; f < sizeof formats / sizeof formats[0]; f++) {
                        size_t *lengths, header = formats[f] == FORMAT_CSV ? 8 : 0;
                        struct bytes file, compressed = {};
                        struct kit k;

                        make_file(formats[f], 1, 3000, 300, &file, &lengths);
                        /* several members, cut anywhere */
                        kinds[i].add(&compressed, file.data, 1000);
                        kinds[i].add(&compressed, file.data, 0);
                        kinds[i].add(&compressed, file.data + 1000, file.size - 1000);
                        kit_begin(&k, formats[f]);
                        k.source.compression = kinds[i].compression;
                        kit_write(&k, compressed.data, compressed.size);
                        for (size_t b = 0; b < 3; b++) {
                                struct delivery d;

                                kit_read(&k, buffers[b], &d);
                                if (d.r != 0)
                                        fail_msg("%s", d.error);
                                assert_int_equal(d.bytes.size, file.size - header);
                                assert_memory_equal(d.bytes.data, file.data + header, d.bytes.size);
                                assert_int_equal(d.end, file.size);
                                delivery_done(&d);
                        }
                        for (int n = 0; n < 20; n++) {
                                struct delivery d;
                                size_t from = header;

                                k.task.offset = (uint64_t)n * file.size / 19;
                                for (size_t j = 0; j < 3000 && from + lengths[j] <= k.task.offset; j++)
                                        from += lengths[j];
                                kit_read(&k, 5000, &d);
                                assert_int_equal(d.r, 0);
                                assert_int_equal(d.bytes.size, file.size - from);
                                if (d.bytes.size > 0)
                                        assert_memory_equal(d.bytes.data, file.data + from, d.bytes.size);
                                delivery_done(&d);
                        }
                        bytes_done(&file);
                        bytes_done(&compressed);
                        free(lengths);
                        kit_end(&k);
                }
}

static void test_empty(void **state) {
        for (size_t i = 0; i < 2; i++) {
                struct bytes compressed = {};
                struct delivery d;
                struct kit k;

                kit_begin(&k, FORMAT_TEXT);
                k.source.compression = kinds[i].compression;
                kinds[i].add(&compressed, "", 0);
                kit_write(&k, compressed.data, compressed.size);
                kit_read(&k, 100, &d);
                assert_true(d.r == 0 && d.bytes.size == 0 && d.end == 0);
                delivery_done(&d);
                bytes_done(&compressed);
                kit_end(&k);
        }
}

/* Every end is noticed, and every byte that is wrong. */
static void test_corrupt(void **state) {
        for (size_t i = 0; i < 2; i++) {
                struct bytes compressed = {}, longer = {};
                struct delivery d;
                struct kit k;
                char text[2000];

                srandom(1);
                for (size_t j = 0; j < sizeof text; j++)
                        text[j] = j % 50 == 49 ? '\n' : (char)('a' + random() % 26);
                kinds[i].add(&compressed, text, sizeof text);
                kit_begin(&k, FORMAT_TEXT);
                k.source.compression = kinds[i].compression;
                for (size_t size = 0; size < compressed.size; size++) {
                        kit_write(&k, compressed.data, size);
                        kit_read(&k, 700, &d);
                        assert_int_equal(d.r, -EBADMSG);
                        assert_non_null(strstr(
                                d.error, ": truncated: the file ends within the compressed data, at byte "));
                        delivery_done(&d);
                }
                for (size_t at = 0; at < compressed.size; at++) {
                        compressed.data[at] ^= 0x04;
                        kit_write(&k, compressed.data, compressed.size);
                        kit_read(&k, 700, &d);
                        /* gzip: time, system and flags of the compressor in its header mean nothing, nor do
                         * the bits that fill the last byte of the data */
                        if (d.r == 0 && !(i == 0 && ((at >= 3 && at < 10) || at == compressed.size - 9) &&
                                          d.bytes.size == sizeof text))
                                fail_msg("%s: byte %zu may be anything", kinds[i].name, at);
                        if (d.r != 0) {
                                assert_int_equal(d.r, -EBADMSG);
                                assert_non_null(strstr(d.error, " of the compressed file"));
                                assert_non_null(strstr(d.error, kinds[i].name)
                                                        ?: strstr(d.error, "truncated"));
                        }
                        delivery_done(&d);
                        compressed.data[at] ^= 0x04;
                }
                bytes_add(&longer, compressed.data, compressed.size);
                bytes_add(&longer, "some text", 9);
                kit_write(&k, longer.data, longer.size);
                kit_read(&k, 700, &d);
                assert_int_equal(d.r, -EBADMSG);
                assert_non_null(strstr(d.error, "something else follows the compressed data, at byte "));
                delivery_done(&d);
                kit_write(&k, "text\ntext\n", 10);
                kit_read(&k, 700, &d);
                assert_int_equal(d.r, -EBADMSG);
                assert_non_null(strstr(d.error, i == 0 ? ": is not compressed by gzip"
                                                       : ": is not compressed by zstd"));
                delivery_done(&d);
                bytes_done(&compressed);
                bytes_done(&longer);
                kit_end(&k);
        }
}

/* A little that becomes very much: memory stays what it is. */
static void test_bomb(void **state) {
        enum {
                SIZE = 64 << 20
        };
        char *zeros = calloc(1, SIZE);

        assert_non_null(zeros);
        for (size_t i = 0; i < 2; i++) {
                struct bytes compressed = {};
                struct delivery d;
                struct kit k;

                kinds[i].add(&compressed, zeros, SIZE);
                assert_true(compressed.size < 100000);
                kit_begin(&k, FORMAT_TEXT);
                k.source.compression = kinds[i].compression;
                kit_write(&k, compressed.data, compressed.size);
                kit_read(&k, 1 << 16, &d);
                assert_int_equal(d.r, -EMSGSIZE);
                assert_non_null(strstr(d.error, ": a record at byte 0 is longer than maxRecord (1 MiB)"));
                delivery_done(&d);
                bytes_done(&compressed);
                kit_end(&k);
        }
        free(zeros);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_whole),
                cmocka_unit_test(test_empty),
                cmocka_unit_test(test_corrupt),
                cmocka_unit_test(test_bomb),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
