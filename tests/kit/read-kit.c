/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/kit/read-kit.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/base/cleanup.h"
#include "lib/base/file.h"

void bytes_add(struct bytes *b, const void *data, size_t size) {
        if (b->allocated - b->size < size) {
                b->allocated = MAX(b->size + size, b->allocated * 2);
                b->data = realloc(b->data, b->allocated);
                assert_non_null(b->data);
        }
        if (size > 0)
                memcpy(b->data + b->size, data, size);
        b->size += size;
}

void bytes_done(struct bytes *b) {
        free(b->data);
        *b = (struct bytes){};
}

void kit_begin(struct kit *k, enum record_format format) {
        int fd;

        *k = (struct kit){
                .path = "/tmp/primus-read-XXXXXX",
                .input = { .sources = &k->source,
                           .n_sources = 1,
                           .max_record = 1 << 20,
                           .slot_size = 1 << 20 },
                .source = { .kind = SOURCE_FILES, .format = format, .record_size = 7 },
                .framed = true,
        };
        fd = mkstemp(k->path);
        assert_true(fd >= 0);
        close(fd);
        kit_scan(k);
}

void kit_scan(struct kit *k) {
        struct stat st;

        assert_int_equal(stat(k->path, &st), 0);
        k->task = (struct task_grant){
                .task = 1,
                .end = TASK_TO_END,
                .size = (uint64_t)st.st_size,
                .mtime_nsec =
                        (uint64_t)st.st_mtim.tv_sec * UINT64_C(1000000000) + (uint64_t)st.st_mtim.tv_nsec,
                .inode = st.st_ino,
                .path = k->path,
        };
}

void kit_write(struct kit *k, const void *data, size_t size) {
        int fd = open(k->path, O_WRONLY | O_TRUNC | O_CLOEXEC);

        assert_true(fd >= 0);
        assert_int_equal(write_all(fd, data, size), 0);
        close(fd);
        kit_scan(k);
}

void kit_end(struct kit *k) {
        unlink(k->path);
}

static void note(struct delivery *d, uint64_t position, uint64_t skip) {
        if (d->n_chunks == d->chunks_allocated) {
                d->chunks_allocated = d->chunks_allocated * 2 + 16;
                d->positions = reallocarray(d->positions, d->chunks_allocated, sizeof *d->positions);
                d->skips = reallocarray(d->skips, d->chunks_allocated, sizeof *d->skips);
                d->sizes = reallocarray(d->sizes, d->chunks_allocated, sizeof *d->sizes);
                assert_true(d->positions && d->skips && d->sizes);
        }
        d->positions[d->n_chunks] = position;
        d->skips[d->n_chunks] = skip;
        d->sizes[d->n_chunks++] = d->bytes.size;
}

void kit_read(struct kit *k, size_t buffer, struct delivery *ret) {
        struct reader_request q = { .input = &k->input,
                                    .source = &k->source,
                                    .task = &k->task,
                                    .cancel = &k->cancel,
                                    .framed = k->framed };
        _cleanup_(reader_close_p) struct reader *r = NULL;
        _cleanup_free_ uint8_t *buf = malloc(buffer);
        uint64_t behind = 0;
        bool more = false;

        *ret = (struct delivery){};
        assert_non_null(buf);
        ret->r = reader_open(&q, &r, ret->error);
        if (ret->r < 0) {
                r = NULL;
                return;
        }
        for (;;) {
                struct chunk c;

                ret->r = reader_next(r, buf, buffer, &c, ret->error);
                if (ret->r <= 0)
                        break;
                assert_true(c.size > 0 && c.size <= buffer);
                if (c.flags & CHUNK_HEADER) {
                        assert_int_equal(ret->bytes.size, 0);
                        assert_true(c.position == c.end && c.records == 0);
                        bytes_add(&ret->header, buf, c.size);
                        continue;
                }
                assert_true(c.end >= c.position && c.position >= behind);
                assert_true(more || !(c.flags & CHUNK_MORE) || (c.flags & CHUNK_FIRST));
                more = c.flags & CHUNK_MORE;
                bytes_add(&ret->bytes, buf, c.size);
                ret->records += c.records;
                if (c.flags & CHUNK_COUNTED) {
                        behind = c.position;
                        if (!more)
                                note(ret, c.end, c.end > c.position ? 0 : c.skip + c.records);
                } else {
                        behind = c.end;
                        note(ret, c.end, 0);
                }
        }
        assert_true(ret->r < 0 || !more);
        ret->end = reader_end(r);
        if (ret->r == 0)
                assert_true(ret->end != TASK_TO_END);
}

void delivery_done(struct delivery *d) {
        bytes_done(&d->bytes);
        bytes_done(&d->header);
        free(d->positions);
        free(d->skips);
        free(d->sizes);
}

static uint32_t masked(const void *data, size_t size) {
        uint32_t crc = crc32c(0, data, size);

        return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

void add_tfrecord(struct bytes *b, const void *data, size_t size) {
        uint64_t length = size;
        uint32_t crc = masked(&length, 8);

        bytes_add(b, &length, 8);
        bytes_add(b, &crc, 4);
        bytes_add(b, data, size);
        crc = masked(data, size);
        bytes_add(b, &crc, 4);
}

void add_tar_member(struct bytes *b, const char *name, const void *data, size_t size) {
        static const uint8_t zeros[512];
        char h[512] = {};
        unsigned sum = 0;

        memcpy(h, name, strnlen(name, 100));
        memcpy(h + 100, "0000644", 8);
        snprintf(h + 124, 12, "%011zo", size);
        memcpy(h + 136, "00000000000", 12);
        memset(h + 148, ' ', 8);
        h[156] = '0';
        memcpy(h + 257, "ustar\00000", 8);
        for (size_t i = 0; i < sizeof h; i++)
                sum += (uint8_t)h[i];
        snprintf(h + 148, 8, "%06o", sum);
        bytes_add(b, h, sizeof h);
        bytes_add(b, data, size);
        bytes_add(b, zeros, (512 - size % 512) % 512);
}

void add_tar_end(struct bytes *b) {
        static const uint8_t zeros[1024];

        bytes_add(b, zeros, sizeof zeros);
}

void make_file(enum record_format format, unsigned seed, size_t n, size_t longest, struct bytes *ret_file,
               size_t **ret_lengths) {
        size_t *lengths = calloc(n + 1, sizeof *lengths);
        struct bytes file = {};
        char *content = malloc(longest + 1);

        assert_true(lengths && content);
        srandom(seed);
        if (format == FORMAT_CSV)
                bytes_add(&file, "a,\"b\",c\n", 8);
        for (size_t i = 0; i < n; i++) {
                size_t size = (size_t)random() % 4 == 0 ? 0 : (size_t)random() % longest, before = file.size;

                for (size_t j = 0; j < size; j++)
                        content[j] = (char)('a' + random() % 26);
                switch (format) {
                case FORMAT_TEXT:
                case FORMAT_CSV:
                        if (format == FORMAT_CSV && size > 3 && random() % 2)
                                content[0] = content[size - 1] = '"';
                        bytes_add(&file, content, size);
                        /* the last one may lack it */
                        if (i + 1 < n || seed % 2 || size == 0)
                                bytes_add(&file, "\n", 1);
                        break;
                case FORMAT_RAW:
                        size = i + 1 < n ? 7 : 3;
                        memset(content, 'a' + (int)(i % 26), size);
                        bytes_add(&file, content, size);
                        break;
                case FORMAT_FIXED:
                        memset(content, 'a' + (int)(i % 26), 7);
                        bytes_add(&file, content, 7);
                        break;
                case FORMAT_TFRECORD:
                        add_tfrecord(&file, content, size);
                        break;
                case FORMAT_TAR: {
                        char name[32];

                        for (int part = 0; part < 1 + (int)(i % 3); part++) {
                                snprintf(name, sizeof name, "d.x/%06zu.p%d", i, part);
                                add_tar_member(&file, name, content, size / (size_t)(part + 1));
                        }
                        if (i + 1 == n)
                                add_tar_end(&file);
                        break;
                }
                default:
                        fail();
                }
                lengths[i] = file.size - before;
        }
        free(content);
        *ret_file = file;
        *ret_lengths = lengths;
}
