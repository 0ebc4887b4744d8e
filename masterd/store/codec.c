/* SPDX-License-Identifier: Apache-2.0 */
/* Invariant: what codec_write() wrote codec_read() reads as the same, also with a table that has more fields.
 * Reading believes nothing: every size is checked against what is there. */
#include "masterd/store/codec.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "lib/base/packed.h"

#define SIZED 1u /* in a key: a size follows, not a value */

/* ---- writing ---- */

/* Counts on beyond its size. */
struct writer {
        uint8_t *to;
        size_t n, size;
};

static void write_bytes(struct writer *w, const void *data, size_t size) {
        if (w->n <= w->size && size <= w->size - w->n && size > 0)
                memcpy(w->to + w->n, data, size);
        w->n += size;
}

static void write_varint(struct writer *w, uint64_t value) {
        uint8_t bytes[PACKED_VARINT_MAX];

        write_bytes(w, bytes, (size_t)(packed_put_varint(bytes, value) - bytes));
}

static void write_number(struct writer *w, const struct codec_field *f, uint64_t value) {
        if (value == 0)
                return;
        write_varint(w, (uint64_t)f->number << 1);
        write_varint(w, value);
}

static void write_fields(struct writer *w, const struct codec_field *fields, const void *state);

static void write_part(struct writer *w, const struct codec_field *f, const void *part, bool empty_too) {
        struct writer counted = {};

        write_fields(&counted, f->part, part);
        if (counted.n == 0 && !empty_too)
                return;
        write_varint(w, (uint64_t)f->number << 1 | SIZED);
        write_varint(w, counted.n);
        write_fields(w, f->part, part);
}

static void write_field(struct writer *w, const struct codec_field *f, const void *state) {
        const char *p = (const char *)state + f->offset;
        uint32_t n;

        switch (f->type) {
        case CODEC_BOOL:
                write_number(w, f, *(const bool *)p);
                break;
        case CODEC_U8:
                write_number(w, f, *(const uint8_t *)p);
                break;
        case CODEC_U32:
                write_number(w, f, *(const uint32_t *)p);
                break;
        case CODEC_U64:
                write_number(w, f, *(const uint64_t *)p);
                break;
        case CODEC_TEXT:
                n = (uint32_t)strnlen(p, f->size - 1u);
                if (n == 0)
                        break;
                write_varint(w, (uint64_t)f->number << 1 | SIZED);
                write_varint(w, n);
                write_bytes(w, p, n);
                break;
        case CODEC_PART:
                write_part(w, f, p, false);
                break;
        case CODEC_LIST:
                n = *(const uint32_t *)((const char *)state + f->n);
                assert(n <= f->max);
                for (uint32_t i = 0; i < n; i++)
                        write_part(w, f, p + (size_t)i * f->size, true);
                break;
        case CODEC_END:
                break;
        }
}

static void write_fields(struct writer *w, const struct codec_field *fields, const void *state) {
        for (const struct codec_field *f = fields; f->type != CODEC_END; f++)
                write_field(w, f, state);
}

ssize_t codec_write(const struct codec_field *fields, const void *state, void *buf, size_t size) {
        struct writer w = { .to = buf, .size = size };

        write_bytes(&w, &(uint8_t){ CODEC_VERSION }, 1);
        write_fields(&w, fields, state);
        return w.n <= size ? (ssize_t)w.n : -ENOBUFS;
}

/* ---- reading ---- */

struct reader {
        const uint8_t *from;
        size_t left;
};

static int read_varint(struct reader *r, uint64_t *ret) {
        const uint8_t *behind = packed_varint(r->from, r->from + r->left, ret);

        if (!behind)
                return -EBADMSG;
        r->left -= (size_t)(behind - r->from);
        r->from = behind;
        return 0;
}

static void clear_fields(const struct codec_field *fields, void *state) {
        for (const struct codec_field *f = fields; f->type != CODEC_END; f++) {
                char *p = (char *)state + f->offset;
                if (f->type == CODEC_LIST)
                        *(uint32_t *)((char *)state + f->n) = 0;
                memset(p, 0, f->type == CODEC_LIST ? (size_t)f->size * f->max : f->size);
        }
}

static int set_number(const struct codec_field *f, void *state, uint64_t value) {
        char *p = (char *)state + f->offset;

        switch (f->type) {
        case CODEC_BOOL:
                *(bool *)p = value != 0;
                return value <= 1 ? 0 : -EBADMSG;
        case CODEC_U8:
                *(uint8_t *)p = (uint8_t)value;
                return value <= UINT8_MAX ? 0 : -EBADMSG;
        case CODEC_U32:
                *(uint32_t *)p = (uint32_t)value;
                return value <= UINT32_MAX ? 0 : -EBADMSG;
        case CODEC_U64:
                *(uint64_t *)p = value;
                return 0;
        default:
                return -EBADMSG;
        }
}

static int read_fields(struct reader *r, const struct codec_field *fields, void *state);

static int set_bytes(const struct codec_field *f, void *state, const uint8_t *data, size_t size) {
        char *p = (char *)state + f->offset;
        uint32_t *n;

        switch (f->type) {
        case CODEC_TEXT:
                if (size >= f->size || memchr(data, 0, size))
                        return -EBADMSG;
                memcpy(p, data, size);
                p[size] = 0;
                return 0;
        case CODEC_PART:
                return read_fields(&(struct reader){ data, size }, f->part, p);
        case CODEC_LIST:
                n = (uint32_t *)((char *)state + f->n);
                if (*n >= f->max)
                        return -EBADMSG;
                return read_fields(&(struct reader){ data, size }, f->part, p + (size_t)(*n)++ * f->size);
        default:
                return -EBADMSG;
        }
}

static const struct codec_field *find_field(const struct codec_field *fields, uint64_t number) {
        for (const struct codec_field *f = fields; f->type != CODEC_END; f++)
                if (f->number == number)
                        return f;
        return NULL;
}

static int read_fields(struct reader *r, const struct codec_field *fields, void *state) {
        while (r->left > 0) {
                const struct codec_field *f;
                uint64_t key, value;
                int k = read_varint(r, &key);

                if (k >= 0)
                        k = read_varint(r, &value);
                if (k < 0)
                        return k;
                f = find_field(fields, key >> 1);
                if (!(key & SIZED))
                        k = f ? set_number(f, state, value) : 0;
                else if (value > r->left)
                        return -EBADMSG;
                else {
                        k = f ? set_bytes(f, state, r->from, value) : 0;
                        r->from += value;
                        r->left -= value;
                }
                if (k < 0)
                        return k;
        }
        return 0;
}

int codec_read(const struct codec_field *fields, const void *data, size_t size, void *state) {
        struct reader r = { data, size };

        clear_fields(fields, state);
        if (size == 0)
                return 0;
        if (*r.from != CODEC_VERSION)
                return -EPROTONOSUPPORT;
        r.from++;
        r.left--;
        return read_fields(&r, fields, state);
}
