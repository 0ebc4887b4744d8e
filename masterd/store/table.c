/* SPDX-License-Identifier: Apache-2.0 */
/* Copies, binds and reads records by their lists of fields. Invariant: integers up to 64 bits unsigned go
 * through SQLite's signed ones and come back the same; a NULL string is "". */
#include "masterd/store/table.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "lib/base/cleanup.h"

static const void *at(const void *record, const struct field *f) {
        return (const char *)record + f->offset;
}

static const char *text_at(const void *record, const struct field *f) {
        const char *s = *(const char *const *)at(record, f);

        return s ?: "";
}

size_t fields_extra(const struct field *fields, const void *record) {
        size_t n = 0;

        for (const struct field *f = fields; f->type != FIELD_END; f++)
                if (f->type == FIELD_TEXT)
                        n += strlen(text_at(record, f)) + 1;
                else if (f->type == FIELD_BYTES)
                        n += ((const struct store_bytes *)at(record, f))->size;
        return n;
}

void fields_move(const struct field *fields, void *record, void *extra) {
        char *p = extra;

        for (const struct field *f = fields; f->type != FIELD_END; f++) {
                if (f->type == FIELD_TEXT) {
                        const char *s = text_at(record, f);
                        size_t n = strlen(s) + 1;
                        memcpy(p, s, n);
                        *(const char **)((char *)record + f->offset) = p;
                        p += n;
                } else if (f->type == FIELD_BYTES) {
                        struct store_bytes *b = (struct store_bytes *)((char *)record + f->offset);
                        if (b->size > 0)
                                memcpy(p, b->data, b->size);
                        b->data = p;
                        p += b->size;
                }
        }
}

/* A record's ports as FIELD_PORTS finds them. */
struct ports {
        uint16_t list[STORE_PORTS_MAX];
        uint32_t n;
};
static_assert(offsetof(struct executor_record, n_ports) - offsetof(struct executor_record, ports) ==
                              offsetof(struct ports, n) &&
                      offsetof(struct stuck_record, n_ports) - offsetof(struct stuck_record, ports) ==
                              offsetof(struct ports, n),
              "the number of ports stands behind them");

/* Ports are a blob of little-endian pairs of bytes. */
static int bind_ports(const struct ports *p, sqlite3_stmt *statement, int i) {
        uint8_t bytes[2 * STORE_PORTS_MAX];
        uint32_t n = MIN(p->n, STORE_PORTS_MAX);

        for (uint32_t k = 0; k < n; k++) {
                bytes[2 * k] = (uint8_t)p->list[k];
                bytes[2 * k + 1] = (uint8_t)(p->list[k] >> 8);
        }
        return sqlite3_bind_blob(statement, i, bytes, (int)(2 * n), SQLITE_TRANSIENT);
}

static int read_ports(struct ports *p, const uint8_t *bytes, size_t size) {
        if (size % 2 != 0 || size / 2 > STORE_PORTS_MAX)
                return -EBADMSG;
        p->n = (uint32_t)(size / 2);
        for (uint32_t k = 0; k < p->n; k++)
                p->list[k] = (uint16_t)(bytes[2 * k] | bytes[2 * k + 1] << 8);
        return 0;
}

static int bind_state(const struct field *f, const void *state, sqlite3_stmt *statement, int i) {
        uint8_t bytes[CODEC_SIZE_MAX];
        ssize_t n = codec_write(f->codec, state, bytes, sizeof(bytes));

        return n < 0 ? SQLITE_TOOBIG : sqlite3_bind_blob(statement, i, bytes, (int)n, SQLITE_TRANSIENT);
}

/* A zero-length value with a NULL pointer would be bound as SQL's NULL, which no column takes. */
static int bind_bytes(sqlite3_stmt *statement, int i, const void *data, size_t size) {
        return size == 0 ? sqlite3_bind_zeroblob(statement, i, 0)
                         : sqlite3_bind_blob64(statement, i, data, size, SQLITE_STATIC);
}

int fields_bind(const struct field *fields, const void *record, sqlite3_stmt *statement) {
        int n = sqlite3_bind_parameter_count(statement), i = 0, r = SQLITE_OK;

        for (const struct field *f = fields; f->type != FIELD_END && i < n && r == SQLITE_OK; f++) {
                const void *p = at(record, f);
                i++;
                switch (f->type) {
                case FIELD_BOOL:
                        r = sqlite3_bind_int(statement, i, *(const bool *)p);
                        break;
                case FIELD_U8:
                        r = sqlite3_bind_int(statement, i, *(const uint8_t *)p);
                        break;
                case FIELD_U32:
                        r = sqlite3_bind_int64(statement, i, *(const uint32_t *)p);
                        break;
                case FIELD_I32:
                        r = sqlite3_bind_int(statement, i, *(const int32_t *)p);
                        break;
                case FIELD_U64:
                        r = sqlite3_bind_int64(statement, i, (sqlite3_int64) * (const uint64_t *)p);
                        break;
                case FIELD_TEXT:
                        r = sqlite3_bind_text(statement, i, text_at(record, f), -1, SQLITE_STATIC);
                        break;
                case FIELD_BYTES:
                        r = bind_bytes(statement, i, ((const struct store_bytes *)p)->data,
                                       ((const struct store_bytes *)p)->size);
                        break;
                case FIELD_FIXED:
                        r = bind_bytes(statement, i, p, f->size);
                        break;
                case FIELD_PORTS:
                        r = bind_ports(p, statement, i);
                        break;
                case FIELD_STATE:
                        r = bind_state(f, p, statement, i);
                        break;
                case FIELD_END:
                        break;
                }
        }
        return r;
}

static int read_field(const struct field *f, void *record, sqlite3_stmt *statement, int column) {
        void *p = (char *)record + f->offset;
        sqlite3_int64 v = 0;
        const void *data = NULL;
        size_t size = 0;

        if (f->type < FIELD_TEXT)
                v = sqlite3_column_int64(statement, column);
        else if (f->type != FIELD_TEXT) {
                data = sqlite3_column_blob(statement, column);
                size = (size_t)sqlite3_column_bytes(statement, column);
        }
        switch (f->type) {
        case FIELD_BOOL:
                *(bool *)p = v != 0;
                return 0;
        case FIELD_U8:
                *(uint8_t *)p = (uint8_t)v;
                return v == *(uint8_t *)p ? 0 : -EBADMSG;
        case FIELD_U32:
                *(uint32_t *)p = (uint32_t)v;
                return v == *(uint32_t *)p ? 0 : -EBADMSG;
        case FIELD_I32:
                *(int32_t *)p = (int32_t)v;
                return v == *(int32_t *)p ? 0 : -EBADMSG;
        case FIELD_U64:
                *(uint64_t *)p = (uint64_t)v;
                return 0;
        case FIELD_TEXT:
                *(const char **)p = (const char *)sqlite3_column_text(statement, column);
                return *(const char **)p ? 0 : -EBADMSG;
        case FIELD_BYTES:
                *(struct store_bytes *)p = (struct store_bytes){ data ?: "", size };
                return 0;
        case FIELD_FIXED:
                if (size != f->size)
                        return -EBADMSG;
                memcpy(p, data, size);
                return 0;
        case FIELD_PORTS:
                return read_ports(p, data, size);
        case FIELD_STATE:
                return codec_read(f->codec, data, size, p);
        case FIELD_END:
                break;
        }
        return -EBADMSG;
}

int fields_read(const struct field *fields, void *record, sqlite3_stmt *statement, int *column) {
        int r;

        for (const struct field *f = fields; f->type != FIELD_END; f++) {
                r = read_field(f, record, statement, (*column)++);
                if (r < 0)
                        return r;
        }
        return 0;
}
