/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptor mode: the executor passes descriptors and ranges that are aligned to records, this reads them.
 * Whole records lie at the front of one buffer; what is left of a record is moved there before more is read.
 * Read-ahead is the kernel's: no thread belongs to a library that forking programs load. Where a page is not
 * in memory (RWF_NOWAIT says so), the next stretch is asked for at once, and the wait is counted. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include "lib/primus/handle.h"

#define AHEAD_BYTES (UINT64_C(8) << 20)
#define TELL_USEC (UINT64_C(100) * 1000)
#define FRAMING_MAX (64u << 10) /* what a record of max_record bytes may be longer with its framing */
#define HEADER_MAX (1u << 20)
#define SYNC_WINDOW (1u << 20)

static struct range_task *current(struct primus *p) {
        return p->descriptor.n > 0 ? &p->descriptor.queue[0] : NULL;
}

static void range_task_done(struct range_task *t) {
        t->fd = close_fd(t->fd);
        free(t->path);
        *t = (struct range_task){ .fd = -EBADF };
}

static int ask_tasks(struct primus *p, uint32_t credits) {
        struct client_next next = { .credits = credits };
        int r = client_send(p, CLIENT_NEXT, &next, sizeof(next));

        if (r >= 0)
                p->descriptor.asked += credits;
        return r;
}

/* Tasks that have been asked for come; then 1. 0: no further ones. */
static int await_task(struct primus *p) {
        struct descriptor_state *s = &p->descriptor;
        int r;

        for (;;) {
                if (s->n + s->asked < TASKS_AHEAD && !s->last && !p->gone) {
                        r = ask_tasks(p, TASKS_AHEAD - s->n - s->asked);
                        if (r < 0 && !p->gone)
                                return r;
                }
                if (s->n > 0)
                        return 1;
                if (s->last)
                        return 0;
                r = client_drain(p);
                if (r < 0)
                        return r;
                if (s->n > 0 || s->last)
                        continue;
                r = client_wait(p, -1);
                if (r < 0)
                        return r;
        }
}

static int read_some(struct primus *p, int fd, void *buf, size_t size, uint64_t position, ssize_t *ret) {
        struct descriptor_state *s = &p->descriptor;
        struct iovec part = { buf, size };
        uint64_t begin;
        ssize_t n;

        if (s->nowait) {
                n = preadv2(fd, &part, 1, (off_t)position, RWF_NOWAIT);
                if (n > 0) {
                        *ret = n;
                        return 0;
                }
                if (n < 0 && (errno == EOPNOTSUPP || errno == EINVAL || errno == ENOSYS))
                        s->nowait = false;
        }
        if (s->nowait && position + AHEAD_BYTES / 2 > s->cold_to) {
                (void)posix_fadvise(fd, (off_t)position, AHEAD_BYTES, POSIX_FADV_WILLNEED);
                s->cold_to = position + AHEAD_BYTES;
        }
        begin = feed_clock();
        do
                n = pread(fd, buf, size, (off_t)position);
        while (n < 0 && errno == EINTR);
        p->waited_usec += feed_clock() - begin;
        if (n < 0)
                return -errno;
        *ret = n;
        return 0;
}

static int begin_header(struct primus *p, const struct range_task *t) {
        const struct record_format_info *f = handle_format_of(p, t->task.source);
        _cleanup_free_ uint8_t *buf = NULL;
        struct record record;
        const char *why;
        ssize_t n;
        int r;

        buf = malloc(HEADER_MAX);
        if (!buf)
                return handle_fail(p, ENOMEM, "no memory");
        r = read_some(p, t->fd, buf, HEADER_MAX, 0, &n);
        if (r < 0)
                return r;
        r = record_next(f, buf, (size_t)n, n < (ssize_t)HEADER_MAX, &record, &why);
        if (r <= 0)
                return r == 0 ? handle_keep_header(p, buf, 0, false) : r;
        if (p->descriptor.at < record.total)
                p->descriptor.at = record.total;
        return handle_keep_header(p, buf, record.total, false);
}

static int begin_task(struct primus *p) {
        struct descriptor_state *s = &p->descriptor;
        struct range_task *t = current(p);

        s->active = true;
        s->as_range = false;
        s->at = t->task.offset;
        s->skip = t->task.skip;
        s->filled = s->piece_size = 0;
        s->cold_to = 0;
        s->nowait = true;
        s->told_usec = feed_clock();
        (void)posix_fadvise(t->fd, (off_t)s->at, 0, POSIX_FADV_SEQUENTIAL);
        if (t->task.end == TASK_TO_END) {
                struct stat st;

                if (fstat(t->fd, &st) < 0)
                        return handle_fail(p, errno, "cannot look at %.200s: %m", t->path);
                t->task.end = MAX((uint64_t)st.st_size, s->at);
        }
        if (handle_format_of(p, t->task.source)->kind == RECORD_CSV) {
                int r = begin_header(p, t);

                if (r < 0 && r != -ENOMEM)
                        return handle_task_failed(p, t->task.task, "the header line cannot be read");
                if (r < 0)
                        return r;
        }
        return 1;
}

static int make_room(struct primus *p, size_t size) {
        struct descriptor_state *s = &p->descriptor;
        uint8_t *q;

        if (size <= s->allocated)
                return 0;
        /* Aligned to pages, which copying from the page cache likes. */
        size = (size + 4095) & ~(size_t)4095;
        q = aligned_alloc(4096, size);
        if (!q)
                return handle_fail(p, ENOMEM, "no memory for a record of more than %zu bytes", s->filled);
        if (s->filled > 0)
                memcpy(q, s->buf, s->filled);
        free(s->buf);
        s->buf = q;
        s->allocated = size;
        return 0;
}

/* How much is read at once: of equal records a whole number, so that nothing is left to be moved. */
static size_t stride(const struct record_format_info *f) {
        if ((f->kind != RECORD_RAW && f->kind != RECORD_FIXED) || f->record_size > PIECE_SIZE)
                return PIECE_SIZE;
        return PIECE_SIZE - PIECE_SIZE % (size_t)f->record_size;
}

/* Reads until the buffer begins with a whole record, or the task is over. */
static int fill_buffer(struct primus *p, size_t *ret_whole, const char **ret_why) {
        struct descriptor_state *s = &p->descriptor;
        const struct range_task *t = current(p);
        const struct record_format_info *f = handle_format_of(p, t->task.source);
        size_t step = stride(f);

        for (;;) {
                uint64_t records;
                ssize_t n;
                size_t want;
                int r;

                if (s->filled > 0 || s->at >= t->task.end) {
                        r = record_last(f, s->buf, s->filled, s->at >= t->task.end, ret_whole, &records,
                                        ret_why);
                        if (r < 0)
                                return r;
                        if (*ret_whole > 0 || s->at >= t->task.end)
                                return 0;
                }
                if (s->filled > p->max_record + FRAMING_MAX) {
                        *ret_why = "a record is longer than maxRecord";
                        return -EBADMSG;
                }
                /* A long record doubles what is read, so that it is not looked through too often. */
                want = (size_t)MIN((uint64_t)MAX(step, s->filled), t->task.end - s->at);
                r = make_room(p, s->filled + want);
                if (r < 0)
                        return r;
                r = read_some(p, t->fd, s->buf + s->filled, want, s->at, &n);
                if (r < 0) {
                        *ret_why = strerror(-r);
                        return -EBADMSG;
                }
                if (n == 0) {
                        *ret_why = "the file has become shorter while it was read";
                        return -EBADMSG;
                }
                s->filled += (size_t)n;
                s->at += (size_t)n;
        }
}

/* Records that count already, or are left out, are passed over. */
static int pass_over(struct primus *p, struct piece *piece) {
        struct descriptor_state *s = &p->descriptor;
        const struct record_format_info *f = handle_format_of(p, piece->source);

        while (s->skip > 0 && piece->size > 0) {
                struct record record;
                const char *why;
                int r = handle_whole_record(f, piece->data, piece->size, &record, &why);

                if (r < 0)
                        return handle_task_failed(p, piece->task, why);
                if (r == 0)
                        record.total = piece->size;
                piece->data += record.total;
                piece->size -= record.total;
                piece->position += record.total;
                s->skip--;
        }
        return 0;
}

/* The next whole records of the current task. 1; -EBADMSG: it has failed. */
static int task_piece(struct primus *p, struct piece *ret) {
        struct descriptor_state *s = &p->descriptor;
        const struct range_task *t = current(p);
        const char *why = NULL;
        size_t whole = 0;
        int r;

        if (s->piece_size > 0) {
                s->filled -= s->piece_size;
                memmove(s->buf, s->buf + s->piece_size, s->filled);
                s->piece_size = 0;
        }
        r = fill_buffer(p, &whole, &why);
        if (r == -EBADMSG)
                return handle_task_failed(p, t->task.task, why);
        if (r < 0)
                return r;
        if (whole == 0) /* the end, or padding up to it */
                whole = s->filled;
        s->piece_size = whole;
        *ret = (struct piece){
                .data = s->buf,
                .size = whole,
                .task = t->task.task,
                .position = s->at - s->filled,
                .end = s->at - s->filled + whole,
                .source = t->task.source,
                .linear = true,
                .task_end = s->at >= t->task.end && whole == s->filled,
        };
        return 1;
}

/* Now and then: how far what has been consumed goes. */
static int tell_position(struct primus *p) {
        struct client_ack ack;
        uint64_t now;

        if (p->ack != ACK_RELEASE || !acknowledge_now(p, &ack) || ack.position == TASK_TO_END)
                return 0;
        now = feed_clock();
        if (now - p->descriptor.told_usec < TELL_USEC)
                return 0;
        p->descriptor.told_usec = now;
        return client_send(p, CLIENT_ACK, &ack, sizeof(ack));
}

static int descriptor_piece(struct primus *p, struct piece *ret) {
        struct descriptor_state *s = &p->descriptor;
        int r;

        r = client_drain(p);
        if (r < 0)
                return r;
        do {
                if (!s->active || s->n == 0) {
                        r = await_task(p);
                        if (r <= 0)
                                return r;
                        r = begin_task(p);
                } else
                        r = tell_position(p);
                if (r < 0)
                        return r;
                r = task_piece(p, ret);
                if (r < 0)
                        return r;
                r = pass_over(p, ret);
                if (r < 0)
                        return r;
        } while (ret->size == 0 && !ret->task_end);
        return 1;
}

static int descriptor_drop(struct primus *p, uint64_t task, bool failed) {
        struct descriptor_state *s = &p->descriptor;
        struct range_task *t = current(p);

        if (!t || t->task.task != task)
                return 0;
        range_task_done(t);
        s->n--;
        memmove(s->queue, s->queue + 1, s->n * sizeof(s->queue[0]));
        s->queue[s->n] = (struct range_task){ .fd = -EBADF };
        s->active = s->as_range = false;
        s->filled = s->piece_size = 0;
        if (failed)
                return 0;
        {
                struct client_ack ack = p->now;

                ack.position = TASK_TO_END;
                ack.skip = 0;
                return client_send(p, CLIENT_DONE, &ack, sizeof(ack));
        }
}

static int take_task(struct primus *p, const uint8_t *body, size_t size, int *fd) {
        struct descriptor_state *s = &p->descriptor;
        struct client_task task;
        struct range_task *t;

        if (size < sizeof(task) || !fd)
                return -EPROTO;
        memcpy(&task, body, sizeof(task));
        if (size - sizeof(task) != task.path_size || task.path_size > TASK_PATH_MAX || task.task == 0 ||
            task.source >= p->n_formats || task.start > task.offset || task.offset > task.end ||
            s->asked == 0 || s->n == TASKS_AHEAD)
                return -EPROTO;
        t = &s->queue[s->n];
        *t = (struct range_task){ .task = task, .fd = -EBADF };
        t->path = strndup((const char *)body + sizeof(task), task.path_size);
        if (!t->path)
                return handle_fail(p, ENOMEM, "no memory");
        t->fd = TAKE_FD(*fd);
        s->asked--;
        s->n++;
        return 0;
}

/* Where the first record begins at or behind want, of those that have not been read yet. False: not found. */
static bool find_cut(struct primus *p, const struct range_task *t, uint64_t want, uint64_t *ret) {
        const struct record_format_info *f = handle_format_of(p, t->task.source);
        uint64_t from = want - (want > 0 && (f->kind == RECORD_TEXT || f->kind == RECORD_CSV));
        _cleanup_free_ uint8_t *buf = NULL;
        const char *why;
        size_t distance;
        ssize_t n;

        buf = malloc(SYNC_WINDOW);
        if (!buf ||
            read_some(p, t->fd, buf, (size_t)MIN((uint64_t)SYNC_WINDOW, t->task.end - from), from, &n) < 0)
                return false;
        if (record_sync(f, buf, (size_t)n, from, false, &distance, &why) <= 0)
                return false;
        *ret = from + distance;
        return true;
}

static int trim(struct primus *p, const uint8_t *body, size_t size) {
        struct descriptor_state *s = &p->descriptor;
        struct client_trim trim;

        if (size != sizeof(trim))
                return -EPROTO;
        memcpy(&trim, body, sizeof(trim));
        for (unsigned i = 0; i < s->n; i++) {
                struct range_task *t = &s->queue[i];
                uint64_t want, cut;

                if (t->task.task != trim.task)
                        continue;
                want = MAX(trim.end, i == 0 && s->active ? s->at : t->task.offset);
                trim.end = t->task.end;
                /* A range that was handed out is the trainer's. What is to be passed over lies anywhere. */
                if (!(i == 0 && s->as_range) && t->task.skip == 0 && want < t->task.end &&
                    find_cut(p, t, want, &cut) && cut < t->task.end)
                        t->task.end = trim.end = cut;
                return client_send(p, CLIENT_TRIMMED, &trim, sizeof(trim));
        }
        return 0; /* that task is over, which has been said */
}

static int descriptor_packet(struct primus *p, uint32_t type, const uint8_t *body, size_t size, int *fd) {
        switch (type) {
        case CLIENT_TASK:
                return take_task(p, body, size, fd);
        case CLIENT_LAST:
                p->descriptor.last = true;
                return 0;
        case CLIENT_TRIM:
                return trim(p, body, size);
        default:
                return -EPROTO;
        }
}

static int descriptor_fd(struct primus *p) {
        return -1; /* tasks come over the connection */
}

static bool descriptor_ready(struct primus *p) {
        const struct descriptor_state *s = &p->descriptor;

        /* What would have to be asked for first, is. */
        if (s->n == 0 && s->asked == 0 && !s->last && ask_tasks(p, TASKS_AHEAD) < 0)
                return true;
        return s->n > 0 || s->last;
}

static void descriptor_close(struct primus *p) {
        for (unsigned i = 0; i < p->descriptor.n; i++)
                range_task_done(&p->descriptor.queue[i]);
        free(p->descriptor.buf);
}

const struct mode_ops mode_descriptor = {
        .piece = descriptor_piece,
        .drop = descriptor_drop,
        .packet = descriptor_packet,
        .data_fd = descriptor_fd,
        .ready = descriptor_ready,
        .close = descriptor_close,
};

/* Passes over what is to be left out by reading it: *ret is where the rest begins. */
static int range_begin(struct primus *p, uint64_t *ret) {
        struct piece piece;
        uint64_t at = p->descriptor.at;

        while (p->descriptor.skip > 0) {
                int r = task_piece(p, &piece);

                if (r < 0)
                        return r;
                r = pass_over(p, &piece);
                if (r < 0)
                        return r;
                at = piece.position;
                if (piece.task_end)
                        break;
        }
        *ret = at;
        return 1;
}

int descriptor_range(struct primus *p, struct piece *ret_piece, struct primus_range *ret) {
        struct descriptor_state *s = &p->descriptor;
        const struct range_task *t;
        uint64_t at = 0;
        int r;

        r = client_drain(p);
        if (r < 0)
                return r;
        r = await_task(p);
        if (r <= 0)
                return r;
        if (!s->active) {
                r = begin_task(p);
                if (r < 0)
                        return r;
        }
        t = current(p);
        if (s->piece_size > 0)
                at = s->at - s->filled + s->piece_size; /* records came before: the rest of the file */
        else
                r = range_begin(p, &at);
        if (r < 0)
                return r;
        s->as_range = true;
        *ret = (struct primus_range){
                .fd = t->fd,
                .path = t->path,
                .offset = at,
                .length = t->task.end - at,
                .task = t->task.task,
                .source = t->task.source,
        };
        *ret_piece = (struct piece){
                .size = ret->length,
                .task = t->task.task,
                .position = at,
                .end = t->task.end,
                .source = t->task.source,
                .linear = true,
                .task_end = true,
        };
        return 1;
}
