/* SPDX-License-Identifier: Apache-2.0 */
/* Standard input: a stream in which the tasks follow each other. With spans it is known which byte is of
 * which task; without them (input.ack lag, read, exit, or no executor at all) everything is of one nameless
 * task. */
#include <errno.h>
#include <string.h>

#include "lib/primus/handle.h"

#define FRAMING_MAX (64u << 10)

/* Spans that lie wholly in front of what is to be consumed are of no use any more. */
static void spans_pass(struct stdin_state *s) {
        size_t n = 0;

        while (n + 1 < s->n_spans && s->spans[n + 1].stream <= s->stream)
                n++;
        /* What follows the end of a task that was given up is another one, or the same one once more. */
        for (size_t i = 0; i <= n && i < s->n_spans; i++)
                if (s->spans[i].stream <= s->stream &&
                    (s->spans[i].task != s->drop_task || (s->spans[i].flags & CLIENT_SPAN_END)))
                        s->drop_task = 0;
        if (n == 0)
                return;
        s->n_spans -= n;
        memmove(s->spans, s->spans + n, s->n_spans * sizeof(s->spans[0]));
}

/* The span that the next byte is of; NULL: of none. */
static const struct client_span *span_now(const struct stdin_state *s) {
        return s->n_spans > 0 && s->spans[0].stream <= s->stream && !(s->spans[0].flags & CLIENT_SPAN_END)
                       ? &s->spans[0]
                       : NULL;
}

/* Where in the stream something else begins. */
static uint64_t span_limit(const struct stdin_state *s) {
        for (size_t i = 0; i < s->n_spans; i++)
                if (s->spans[i].stream > s->stream)
                        return s->spans[i].stream;
        return UINT64_MAX;
}

static int take_spans(struct primus *p, const uint8_t *body, size_t size) {
        struct stdin_state *s = &p->in;

        if (size % sizeof(struct client_span) != 0)
                return -EPROTO;
        for (; size > 0; body += sizeof(struct client_span), size -= sizeof(struct client_span)) {
                struct client_span span;

                memcpy(&span, body, sizeof(span));
                if (span.task == 0 || span.source >= p->n_formats ||
                    (s->n_spans > 0 && span.stream < s->spans[s->n_spans - 1].stream))
                        return -EPROTO;
                if (s->n_spans == s->spans_allocated) {
                        size_t n = MAX(2 * s->spans_allocated, (size_t)16);
                        struct client_span *q = reallocarray(s->spans, n, sizeof(*q));

                        if (!q)
                                return handle_fail(p, ENOMEM, "no memory");
                        s->spans = q;
                        s->spans_allocated = n;
                }
                s->spans[s->n_spans++] = span;
        }
        return 0;
}

static int stdin_packet(struct primus *p, uint32_t type, const uint8_t *body, size_t size, int *fd) {
        return type == CLIENT_SPAN ? take_spans(p, body, size) : -EPROTO;
}

static int make_room(struct primus *p) {
        struct stdin_state *s = &p->in;
        size_t have = s->filled - s->begin;

        if (s->begin > 0) {
                memmove(s->buf, s->buf + s->begin, have);
                s->begin = 0;
                s->filled = have;
        }
        if (s->allocated - s->filled < PIECE_SIZE) {
                size_t n = MAX(2 * s->allocated, 2 * (size_t)PIECE_SIZE);
                uint8_t *q = realloc(s->buf, n);

                if (!q)
                        return handle_fail(p, ENOMEM, "no memory for a record of more than %zu bytes", have);
                s->buf = q;
                s->allocated = n;
        }
        return 0;
}

static int read_more(struct primus *p) {
        struct stdin_state *s = &p->in;
        uint64_t begin;
        ssize_t n;
        int r;

        r = make_room(p);
        if (r < 0)
                return r;
        /* Beside the pipe, answers to commits come. */
        while (p->fd >= 0 && !p->gone) {
                r = client_wait(p, STDIN_FILENO);
                if (r < 0)
                        return r;
                if (r > 0)
                        break;
                r = client_drain(p);
                if (r < 0 && !p->gone)
                        return r;
        }
        begin = feed_clock();
        do
                n = read(STDIN_FILENO, s->buf + s->filled, s->allocated - s->filled);
        while (n < 0 && errno == EINTR && !p->interruptible);
        p->waited_usec += feed_clock() - begin;
        if (n < 0)
                return errno == EINTR ? -EINTR : handle_fail(p, errno, "cannot read standard input: %m");
        if (n == 0)
                s->eof = true;
        s->filled += (size_t)n;
        /* Spans come in front of the bytes that they are about. */
        if (p->fd >= 0 && !p->gone) {
                r = client_drain(p);
                if (r < 0 && !p->gone)
                        return r;
        }
        return 0;
}

/* What has been handed out, or is of no use, is over. */
static void advance_bytes(struct stdin_state *s, size_t n) {
        s->begin += n;
        s->stream += n;
        spans_pass(s);
}

static void describe_piece(struct primus *p, const struct client_span *span, size_t size, struct piece *ret) {
        struct stdin_state *s = &p->in;

        *ret = (struct piece){ .data = s->buf + s->begin, .size = size, .linear = true };
        ret->position = s->stream;
        ret->end = s->stream + size;
        if (!span)
                return;
        ret->task = span->task;
        ret->source = span->source;
        ret->position = span->position + (s->stream - span->stream);
        if (span->flags & CLIENT_SPAN_COUNTED) {
                bool goes_on = s->stream > span->stream && p->now.task == span->task;

                ret->linear = false;
                ret->counted = true;
                ret->position = span->position;
                ret->skip = goes_on ? p->now.skip : span->skip;
        }
        ret->end = ret->position + size;
        /* What follows says where it ends: the stream may hold more (a header, a newline) than the file. */
        for (size_t i = 0; i < s->n_spans; i++)
                if (s->spans[i].stream == s->stream + size && s->spans[i].task == span->task) {
                        ret->end = s->spans[i].position;
                        ret->task_end = s->spans[i].flags & CLIENT_SPAN_END;
                        break;
                }
}

static bool all_zero(const uint8_t *p, size_t size) {
        return size == 0 || (p[0] == 0 && memcmp(p, p + 1, size - 1) == 0);
}

/* As record_last(). primus-executor leaves out the blocks that end a tar, so what the stream or a task ends
 * with may be a record: if nothing of it is cut off. */
static int last_records(const struct record_format_info *f, const uint8_t *buf, size_t size, bool last,
                        size_t *ret_whole, const char **ret_why) {
        struct record record;
        uint64_t records;
        int r;

        r = record_last(f, buf, size, last && f->kind != RECORD_TAR, ret_whole, &records, ret_why);
        if (r < 0 || *ret_whole > 0 || !last || f->kind != RECORD_TAR || size == 0)
                return r;
        r = handle_whole_record(f, buf, size, &record, ret_why);
        if (r > 0 && !all_zero(record.data + record.size, size - (size_t)(record.data - buf) - record.size))
                r = 0;
        if (r == 0 && !all_zero(buf, size)) {
                *ret_why = "truncated: the data ends within a member of the tar";
                return -EBADMSG;
        }
        *ret_whole = r > 0 ? size : 0;
        return r < 0 ? r : 0;
}

static int stdin_piece(struct primus *p, struct piece *ret) {
        struct stdin_state *s = &p->in;

        if (s->piece_size > 0) {
                advance_bytes(s, s->piece_size);
                s->piece_size = 0;
        }
        for (;;) {
                const struct client_span *span;
                const struct record_format_info *f;
                const char *why;
                size_t have = s->filled - s->begin, whole = 0;
                uint64_t limit;
                bool last;
                int r;

                spans_pass(s);
                span = span_now(s);
                limit = span_limit(s) - s->stream;
                last = have >= limit || s->eof;
                have = (size_t)MIN((uint64_t)have, limit);
                if (s->broken || (span && span->task == s->drop_task)) {
                        advance_bytes(s, have);
                        if (s->eof && s->begin == s->filled)
                                return 0;
                        r = have > 0 ? 0 : read_more(p);
                        if (r < 0)
                                return r;
                        continue;
                }
                if (have > 0) {
                        f = handle_format_of(p, span ? span->source : 0);
                        r = last_records(f, s->buf + s->begin, have, last, &whole, &why);
                        if (r < 0)
                                return handle_task_failed(p, span ? span->task : 0, why);
                        if (whole == 0 && last)
                                whole = have; /* padding */
                        if (whole > 0) {
                                describe_piece(p, span, whole, ret);
                                s->piece_size = whole;
                                return 1;
                        }
                        if (have > p->max_record + FRAMING_MAX)
                                return handle_task_failed(p, span ? span->task : 0,
                                                          "a record is longer than maxRecord");
                }
                if (s->eof)
                        return 0;
                r = read_more(p);
                if (r < 0)
                        return r;
        }
}

static int stdin_drop(struct primus *p, uint64_t task, bool failed) {
        if (failed && task != 0)
                p->in.drop_task = task;
        else if (failed) /* nobody knows where another task begins */
                p->in.broken = true;
        return 0;
}

static int stdin_fd(struct primus *p) {
        return STDIN_FILENO;
}

static bool stdin_ready(struct primus *p) {
        return p->in.eof || p->in.filled > p->in.begin + p->in.piece_size;
}

static void stdin_close(struct primus *p) {
        free(p->in.buf);
        free(p->in.spans);
}

const struct mode_ops mode_stdin = {
        .piece = stdin_piece,
        .drop = stdin_drop,
        .packet = stdin_packet,
        .data_fd = stdin_fd,
        .ready = stdin_ready,
        .close = stdin_close,
};
