/* SPDX-License-Identifier: Apache-2.0 */
/* Packed tasks. Invariant: nothing behind the size given is read or written, whatever the lengths inside say,
 * and a *_next that fails or finds the end moves nothing. */
#include "lib/wire/tasks.h"

#include <endian.h>
#include <stdbool.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/utf8.h"

/* As they lie in the array, every number little-endian; the text and a NUL follow. An empty error has
 * neither. */
struct wire_grant {
        uint64_t numbers[9];
        uint32_t source, failures, text_size, reserved;
};
struct wire_progress {
        uint64_t numbers[6];
        uint32_t state, text_size;
};
struct wire_entry {
        uint64_t numbers[6];
        uint32_t text_size, reserved;
};

static void numbers_swap(uint64_t *n, size_t count) {
        for (size_t i = 0; i < count; i++)
                n[i] = le64toh(n[i]);
}

/* Puts a head and a text with its NUL at the end of what is used. */
static int put_entry(uint8_t *buf, size_t size, size_t *used, const void *head, size_t head_size,
                     const char *text, size_t text_size) {
        uint8_t *to = buf + *used;

        if (*used > size || size - *used < head_size + text_size)
                return -ENOBUFS;
        memcpy(to, head, head_size);
        if (text_size > 0) {
                memcpy(to + head_size, text, text_size - 1);
                to[head_size + text_size - 1] = 0;
        }
        *used += head_size + text_size;
        return 0;
}

/* Copies the head at the front; numbers lie in it. 1; 0: the array is over; -EBADMSG. */
static int take_head(const uint8_t *buf, size_t size, void *ret, size_t head_size, uint64_t *numbers,
                     size_t count) {
        if (size == 0)
                return 0;
        if (size < head_size)
                return -EBADMSG;
        memcpy(ret, buf, head_size);
        numbers_swap(numbers, count);
        return 1;
}

/* The text of text_size bytes and its NUL behind a head of head_size: at least min and at most max bytes. */
static bool text_fits(const uint8_t *buf, size_t size, size_t head_size, size_t text_size, size_t min,
                      size_t max) {
        return text_size >= min && text_size <= max && text_size < size - head_size &&
               buf[head_size + text_size] == 0 && !memchr(buf + head_size, 0, text_size);
}

static void advance_bytes(const uint8_t **buf, size_t *size, size_t n) {
        *buf += n;
        *size -= n;
}

/* ---- grants ---- */

int task_grant_write(const struct task_grant *g, uint8_t *buf, size_t size, size_t *used) {
        size_t path = strnlen(g->path, TASK_PATH_MAX + 1);
        struct wire_grant w = { { g->task, g->start, g->end, g->offset, g->skip, g->size, g->mtime_nsec,
                                  g->inode, g->seed },
                                htole32(g->source),
                                htole32(g->failures),
                                htole32((uint32_t)path),
                                0 };

        if (path == 0 || path > TASK_PATH_MAX)
                return -EINVAL;
        numbers_swap(w.numbers, ELEMENTSOF(w.numbers));
        return put_entry(buf, size, used, &w, sizeof(w), g->path, path + 1);
}

int task_grant_next(const uint8_t **buf, size_t *size, struct task_grant *ret) {
        struct wire_grant w;
        struct task_grant g;
        size_t path;
        int r = take_head(*buf, *size, &w, sizeof(w), w.numbers, ELEMENTSOF(w.numbers));

        if (r <= 0)
                return r;
        path = le32toh(w.text_size);
        if (!text_fits(*buf, *size, sizeof(w), path, 1, TASK_PATH_MAX))
                return -EBADMSG;
        g = (struct task_grant){ .task = w.numbers[0],
                                 .start = w.numbers[1],
                                 .end = w.numbers[2],
                                 .offset = w.numbers[3],
                                 .skip = w.numbers[4],
                                 .size = w.numbers[5],
                                 .mtime_nsec = w.numbers[6],
                                 .inode = w.numbers[7],
                                 .seed = w.numbers[8],
                                 .source = le32toh(w.source),
                                 .failures = le32toh(w.failures),
                                 .path = (const char *)*buf + sizeof(w) };
        if (g.task == 0 || g.end < g.start || g.offset < g.start)
                return -EBADMSG;
        advance_bytes(buf, size, sizeof(w) + path + 1);
        *ret = g;
        return 1;
}

/* ---- progress ---- */

/* A control character of ASCII, or one of U+0080 to U+009F, which terminals obey as well. */
static bool is_control(const uint8_t *p) {
        return *p < 0x20 || *p == 0x7f || (*p == 0xc2 && p[1] >= 0x80 && p[1] <= 0x9f);
}

static bool line_valid(const uint8_t *text, size_t n) {
        for (size_t i = 0; i < n; i++)
                if (is_control(text + i))
                        return false;
        return utf8_valid(text, n);
}

/* What any reader will take as one line. */
static void line_clean(const char *text, size_t n, char *buf, size_t size) {
        utf8_clean(text, n, buf, size);
        for (uint8_t *p = (uint8_t *)buf; *p; p++)
                if (is_control(p)) {
                        if (*p == 0xc2)
                                *p++ = '?';
                        *p = '?';
                }
}

int task_progress_write(const struct task_progress *p, uint8_t *buf, size_t size, size_t *used) {
        size_t error = p->error && p->state == TASK_FAILED ? strnlen(p->error, TASK_TEXT_MAX + 1) : 0;
        char line[TASK_TEXT_MAX + 1] = "";
        struct wire_progress w;

        if (error > TASK_TEXT_MAX || p->state >= _TASK_STATE_MAX || p->acked > p->read)
                return -EINVAL;
        if (error > 0) {
                line_clean(p->error, error, line, sizeof(line));
                error = strlen(line);
        }
        w = (struct wire_progress){ { p->task, p->read, p->acked, p->skip, p->records, p->end },
                                    htole32(p->state),
                                    htole32((uint32_t)error) };
        numbers_swap(w.numbers, ELEMENTSOF(w.numbers));
        return put_entry(buf, size, used, &w, sizeof(w), line, error > 0 ? error + 1 : 0);
}

int task_progress_next(const uint8_t **buf, size_t *size, struct task_progress *ret) {
        struct wire_progress w;
        struct task_progress p;
        uint32_t state;
        size_t error;
        int r = take_head(*buf, *size, &w, sizeof(w), w.numbers, ELEMENTSOF(w.numbers));

        if (r <= 0)
                return r;
        state = le32toh(w.state);
        error = le32toh(w.text_size);
        if (error > 0 && (!text_fits(*buf, *size, sizeof(w), error, 1, TASK_TEXT_MAX) ||
                          !line_valid(*buf + sizeof(w), error)))
                return -EBADMSG;
        p = (struct task_progress){ .task = w.numbers[0],
                                    .read = w.numbers[1],
                                    .acked = w.numbers[2],
                                    .skip = w.numbers[3],
                                    .records = w.numbers[4],
                                    .end = w.numbers[5],
                                    .state = (uint8_t)state,
                                    .error = error > 0 ? (const char *)*buf + sizeof(w) : "" };
        if (p.task == 0 || p.acked > p.read || state >= _TASK_STATE_MAX)
                return -EBADMSG;
        advance_bytes(buf, size, sizeof(w) + (error > 0 ? error + 1 : 0));
        *ret = p;
        return 1;
}

/* ---- scan entries ---- */

int scan_entry_write(const struct scan_entry *e, uint8_t *buf, size_t size, size_t *used) {
        size_t path = strnlen(e->path, TASK_PATH_MAX + 1);
        struct wire_entry w = { { e->size, e->mtime_nsec, e->inode, e->first, e->last, e->batch },
                                htole32((uint32_t)path),
                                0 };

        if (path == 0 || path > TASK_PATH_MAX)
                return -EINVAL;
        numbers_swap(w.numbers, ELEMENTSOF(w.numbers));
        return put_entry(buf, size, used, &w, sizeof(w), e->path, path + 1);
}

int scan_entry_next(const uint8_t **buf, size_t *size, struct scan_entry *ret) {
        struct wire_entry w;
        size_t path;
        int r = take_head(*buf, *size, &w, sizeof(w), w.numbers, ELEMENTSOF(w.numbers));

        if (r <= 0)
                return r;
        path = le32toh(w.text_size);
        if (!text_fits(*buf, *size, sizeof(w), path, 1, TASK_PATH_MAX) || w.numbers[4] < w.numbers[3])
                return -EBADMSG;
        *ret = (struct scan_entry){ .path = (const char *)*buf + sizeof(w),
                                    .size = w.numbers[0],
                                    .mtime_nsec = w.numbers[1],
                                    .inode = w.numbers[2],
                                    .first = w.numbers[3],
                                    .last = w.numbers[4],
                                    .batch = w.numbers[5] };
        advance_bytes(buf, size, sizeof(w) + path + 1);
        return 1;
}
