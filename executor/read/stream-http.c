/* SPDX-License-Identifier: Apache-2.0 */
/* Objects on HTTP servers, in S3 and in HDFS, read by ranges. A task's range is asked for at once, with a
 * little more for the record that reaches over its end; what a reader wants behind that is asked for in
 * growing pieces. Invariant: every answer is compared with the scan and with the first answer before a byte
 * of it is handed out, and a byte is handed out from the place that it has in the object. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "executor/read/hdfs.h"
#include "executor/read/http.h"
#include "executor/read/stream.h"
#include "lib/base/cleanup.h"

#define MORE_MIN (64u << 10) /* behind the task's end, and the first piece further on */
#define MORE_MAX (16u << 20)
#define READ_OFF_MAX (256u << 10) /* so little is read off rather than asked for anew */
#define SCRATCH (64u << 10)

/* One place where bytes come from. */
struct flow {
        struct http *http;
        bool active;
        uint64_t position; /* of the next byte */
        uint64_t until;    /* of the request; TASK_TO_END */
        uint64_t more;     /* how much the next request asks for, where nothing else says so */
        unsigned failures;
};

struct stream_http {
        struct stream s;
        struct task_grant task;
        const struct input_source *source;
        struct flow main, side; /* side: read_at() */
        bool compared;          /* first is set */
        struct http_answer first;
        uint64_t total; /* of the object; TASK_UNKNOWN: not known yet */
        uint8_t scratch[SCRATCH];
};

static int fail_with(struct stream_http *h, int r, const char *what, char error[static READ_ERROR_MAX]) {
        snprintf(error, READ_ERROR_MAX, "%.350s: %s", h->s.path, what);
        return r;
}

/* 0, or -ESTALE: the answer is of another object than the scan's, or the first answer's. */
static int compare_answer(struct stream_http *h, const struct http_answer *a,
                          char error[static READ_ERROR_MAX]) {
        const struct task_grant *t = &h->task;
        bool same;

        if (!h->compared) {
                same = (t->size == TASK_UNKNOWN || a->total == TASK_UNKNOWN || t->size == a->total) &&
                       (t->inode == 0 || a->entity == 0 || t->inode == a->entity) &&
                       (t->mtime_nsec == 0 || a->mtime_nsec == 0 || t->mtime_nsec == a->mtime_nsec);
                if (!same)
                        return fail_with(h, -ESTALE, "changed since it was scanned", error);
                h->first = *a;
                h->compared = true;
        } else {
                same = h->first.entity == a->entity && h->first.mtime_nsec == a->mtime_nsec &&
                       (h->first.total == TASK_UNKNOWN || a->total == TASK_UNKNOWN ||
                        h->first.total == a->total);
                if (!same)
                        return fail_with(h, -ESTALE, "changed while it was read", error);
        }
        if (a->total != TASK_UNKNOWN)
                h->total = h->s.size = a->total;
        return 0;
}

/* Reads n bytes off. */
static int read_off(struct stream_http *h, struct flow *f, uint64_t n, char error[static READ_ERROR_MAX]) {
        while (n > 0) {
                ssize_t l = http_read(f->http, h->scratch, (size_t)MIN(n, (uint64_t)SCRATCH), error);

                if (l < 0)
                        return (int)l;
                if (l == 0)
                        return fail_with(h, -ESTALE, "is shorter than it was", error);
                n -= (uint64_t)l;
        }
        return 0;
}

/* WebHDFS says nothing of a file with its bytes: it is asked before them. */
static int compare_hdfs(struct stream_http *h, struct http *http, char error[static READ_ERROR_MAX]) {
        struct http_request q = {
                .method = HTTP_GET, .path = h->s.path, .query = "op=GETFILESTATUS", .last = TASK_TO_END
        };
        _cleanup_free_ char *json = NULL;
        struct hdfs_status s;
        struct http_answer a;
        size_t size;
        int r = http_whole(http, &q, &a, &json, &size, error);

        if (r < 0)
                return r;
        if (a.status != 200)
                return http_unwanted(http, &q, error);
        if (hdfs_status_read(json, size, &s) < 0 || !s.file)
                return fail_with(h, -EPROTO, "the server does not say what it is", error);
        a = (struct http_answer){ .total = s.size, .entity = s.id, .mtime_nsec = s.mtime_nsec };
        return compare_answer(h, &a, error);
}

/* The answer to a request from f->position on. 1: its body is what is wanted; 0: the object ends before. */
static int accept_answer(struct stream_http *h, struct flow *f, const struct http_request *q,
                         const struct http_answer *a, char error[static READ_ERROR_MAX]) {
        int r;

        if (a->status == 416 && a->total != TASK_UNKNOWN && f->position >= a->total) {
                r = compare_answer(h, a, error);
                /* Such an answer does not always name the object's tag. */
                return r < 0 && (a->entity != 0 || a->mtime_nsec != 0) ? r : 0;
        }
        if (a->status != 200 && a->status != 206)
                return http_unwanted(f->http, q, error);
        if (h->source->kind == SOURCE_HDFS)
                return 1;
        r = compare_answer(h, a, error);
        if (r < 0)
                return r;
        if (a->status == 206)
                return a->first == f->position
                               ? 1
                               : fail_with(h, -EPROTO,
                                           "the server answers with another range than the one asked for",
                                           error);
        f->until = TASK_TO_END;
        if (f->position == 0)
                return 1;
        if (h->task.start > 0)
                return fail_with(h, -EOPNOTSUPP, "the server does not serve ranges: set split to 0", error);
        r = read_off(h, f, f->position, error);
        return r < 0 ? r : 1;
}

/* Asks for what begins at f->position; want: so much at least, if there is so much. 1; 0: the end. */
static int begin_range(struct stream_http *h, struct flow *f, uint64_t want,
                       char error[static READ_ERROR_MAX]) {
        struct http_request q = { .method = HTTP_GET, .path = h->s.path, .first = f->position };
        struct http_answer a;
        int r = h->source->kind == SOURCE_HDFS && !h->compared ? compare_hdfs(h, f->http, error) : 0;

        if (r < 0)
                return r;
        if (h->total != TASK_UNKNOWN && f->position >= h->total)
                return 0;
        q.last =
                want == TASK_TO_END || want > UINT64_MAX - 1 - f->position ? TASK_TO_END : f->position + want;
        if (h->total != TASK_UNKNOWN && q.last >= h->total)
                q.last = q.first == 0 ? TASK_TO_END : h->total;
        f->until = q.last;
        r = http_ask(f->http, &q, &a, error);
        if (r >= 0)
                r = accept_answer(h, f, &q, &a, error);
        f->active = r > 0;
        if (r == 0 && h->total == TASK_UNKNOWN)
                h->total = f->position;
        return r;
}

/* How much the main flow asks for from its position on. */
static uint64_t main_want(struct stream_http *h) {
        uint64_t end = h->task.end, want;

        if (end == TASK_TO_END)
                return TASK_TO_END;
        if (h->main.position < end)
                return end - h->main.position + MORE_MIN;
        want = h->main.more;
        h->main.more = MIN(want * 2, (uint64_t)MORE_MAX);
        return want;
}

/* Bytes from f->position on, with as many tries as it takes. */
static ssize_t take_bytes(struct stream_http *h, struct flow *f, uint8_t *buf, size_t size, bool is_main,
                          char error[static READ_ERROR_MAX]) {
        for (;;) {
                ssize_t l = 0;
                int r = 1;

                if (!f->active)
                        r = begin_range(h, f, is_main ? main_want(h) : size, error);
                if (r == 0)
                        return 0;
                if (r > 0)
                        l = http_read(f->http, buf, size, error);
                if (l > 0) {
                        f->position += (uint64_t)l;
                        f->failures = 0;
                        return l;
                }
                if (r > 0 && l == 0) { /* the request is over */
                        f->active = false;
                        if (f->until == TASK_TO_END || f->position >= h->total) {
                                if (h->total != TASK_UNKNOWN && f->position < h->total)
                                        return fail_with(h, -ESTALE, "is shorter than it was", error);
                                h->total = f->position;
                                return 0;
                        }
                        if (f->position < f->until)
                                return fail_with(h, -EPROTO, "the server sends less than the range it names",
                                                 error);
                        continue;
                }
                f->active = false;
                r = http_retry(f->http, r < 0 ? r : (int)l, &f->failures, error);
                if (r < 0)
                        return r;
        }
}

static ssize_t on_read(struct stream *s, uint8_t *buf, size_t size, char error[static READ_ERROR_MAX]) {
        struct stream_http *h = (struct stream_http *)s;

        return take_bytes(h, &h->main, buf, size, true, error);
}

static ssize_t on_read_at(struct stream *s, uint8_t *buf, size_t size, uint64_t position,
                          char error[static READ_ERROR_MAX]) {
        struct stream_http *h = (struct stream_http *)s;
        int r;

        if (!h->side.http) {
                r = http_new(h->source, s->cancel, &h->side.http, error);
                if (r < 0)
                        return r;
        }
        if (!h->side.active || h->side.position != position) {
                http_drop(h->side.http);
                h->side.active = false;
                h->side.position = position;
        }
        return take_bytes(h, &h->side, buf, size, false, error);
}

static int on_seek(struct stream *s, uint64_t position, char error[static READ_ERROR_MAX]) {
        struct stream_http *h = (struct stream_http *)s;
        struct flow *f = &h->main;

        if (f->active && position >= f->position && position - f->position <= READ_OFF_MAX &&
            (f->until == TASK_TO_END || position < f->until)) {
                if (read_off(h, f, position - f->position, error) >= 0) {
                        f->position = position;
                        return 0;
                }
        }
        if (f->position != position || f->active)
                http_drop(f->http);
        f->active = false;
        f->position = position;
        return 0;
}

/* Asks once more what it is now; a server that does not answer that has nothing to say against it. */
static int on_check(struct stream *s, char error[static READ_ERROR_MAX]) {
        struct stream_http *h = (struct stream_http *)s;
        struct http_request q = { .method = HTTP_HEAD, .path = s->path, .last = TASK_TO_END };
        struct http_answer a;
        int r;

        if (!h->compared || (h->first.entity == 0 && h->first.mtime_nsec == 0))
                return 0;
        h->main.active = false;
        if (h->source->kind == SOURCE_HDFS)
                return compare_hdfs(h, h->main.http, error);
        r = http_ask(h->main.http, &q, &a, error);
        if (r == -ECANCELED)
                return r;
        if (r < 0 || a.status != 200)
                return 0;
        /* Not every server says as much about a HEAD. */
        if (a.entity == 0 && a.mtime_nsec == 0)
                return 0;
        a.total = TASK_UNKNOWN;
        return compare_answer(h, &a, error);
}

static void on_close(struct stream *s) {
        struct stream_http *h = (struct stream_http *)s;

        http_free(h->main.http);
        http_free(h->side.http);
        free(h);
}

int stream_open_http(const struct reader_request *q, struct stream **ret, char error[static READ_ERROR_MAX]) {
        static const struct stream_ops ops = {
                .read = on_read, .read_at = on_read_at, .seek = on_seek, .check = on_check, .close = on_close
        };
        struct stream_http *h = calloc(1, sizeof(*h));
        int r;

        if (!h) {
                snprintf(error, READ_ERROR_MAX, "%.350s: no memory", q->task->path);
                return -ENOMEM;
        }
        *h = (struct stream_http){
                .s = { .ops = &ops,
                       .path = q->task->path,
                       .cancel = q->cancel,
                       .size = q->task->size,
                       .fd = -EBADF },
                .task = *q->task,
                .source = q->source,
                .main = { .more = MORE_MIN },
                .total = TASK_UNKNOWN,
        };
        r = http_new(q->source, q->cancel, &h->main.http, error);
        if (r < 0) {
                free(h);
                return r;
        }
        *ret = &h->s;
        return 0;
}
