/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of primus.h that deliver: pieces come from a mode, records and blocks are cut from them.
 * Invariant: p->delivered is where the trainer is in the piece, and p->now says of which task the piece is,
 * so that what counts can be told at any moment. */
#include "lib/primus/primus.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>

#include "lib/primus/handle.h"

static _Thread_local char open_error[ERROR_TEXT_MAX];

const struct record_format_info *handle_format_of(const struct primus *p, uint32_t source) {
        static const struct record_format_info text = { .kind = RECORD_TEXT };

        return source < p->n_formats ? &p->formats[source] : &text;
}

int handle_keep_header(struct primus *p, const uint8_t *data, size_t size, bool more) {
        size_t have = more ? p->csv_header_size : 0;
        uint8_t *q;

        if (size > p->max_record || have > p->max_record - size)
                return handle_fail(p, EMSGSIZE, "the header line of a CSV file is longer than maxRecord");
        q = realloc(p->csv_header, have + size + 1);
        if (!q)
                return handle_fail(p, ENOMEM, "no memory");
        memcpy(q + have, data, size);
        p->csv_header = q;
        p->csv_header_size = have + size;
        return 0;
}

/* The last record of a tar ends where no member follows, which record_next() takes for a cut. */
static int last_tar_record(const uint8_t *buf, size_t size, struct record *ret) {
        struct record_tar_member member;
        size_t at = 0, begin = 0, end = 0, n = 0;

        while (begin + 512 <= size && buf[begin] == 0)
                begin += 512;
        while (record_tar_next(buf + begin, size - begin, &at, &member) > 0) {
                end = at;
                n++;
        }
        if (n == 0)
                return 0;
        *ret = (struct record){ .data = buf + begin, .size = end, .total = size };
        return 1;
}

int handle_whole_record(const struct record_format_info *f, const uint8_t *buf, size_t size,
                        struct record *ret, const char **ret_why) {
        int r = record_next(f, buf, size, f->kind != RECORD_TAR, ret, ret_why);

        return r == 0 && f->kind == RECORD_TAR && size > 0 ? last_tar_record(buf, size, ret) : r;
}

/* ---- opening and closing ---- */

/* MADV_WIPEONFORK: a child finds zeros, so that a handle which two processes have is noticed by a load. */
static int make_marker(struct primus *p) {
        void *m = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        if (m == MAP_FAILED)
                return handle_fail(p, errno, "no memory");
        p->marker = m;
        (void)madvise(m, 4096, MADV_WIPEONFORK);
        p->marker[0] = 1;
        return 0;
}

static int nibble(char c) {
        return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static void read_job_uid(uint8_t ret[static 16]) {
        const char *s = getenv("PRIMUS_JOB_UID");

        if (!s || strlen(s) != 32)
                return;
        for (size_t i = 0; i < 16; i++) {
                int high = nibble(s[2 * i]), low = nibble(s[2 * i + 1]);

                if (high < 0 || low < 0) {
                        memset(ret, 0, 16);
                        return;
                }
                ret[i] = (uint8_t)(high << 4 | low);
        }
}

/* Without Primus: lines from standard input, so that a trainer can be tried by hand. */
static int open_plain(struct primus *p) {
        if (getenv("PRIMUS_JOB"))
                return handle_fail(p, ENOENT,
                                   "this executor has no data: its job has no inputManager, or none for "
                                   "this role (PRIMUS_FEED is not set)");
        if (isatty(STDIN_FILENO))
                return handle_fail(p, ENOENT,
                                   "not an executor of Primus (PRIMUS_FEED is not set), and standard input "
                                   "is a terminal; to try a trainer by hand: TRAINER < FILE");
        p->mode = PRIMUS_STDIN;
        p->ops = &mode_stdin;
        p->ack = ACK_READ;
        p->max_record = 64u << 20;
        return 0;
}

static int open_feed(struct primus *p, const char *feed, const void *state, size_t state_size) {
        int r;

        p->packet = malloc(CLIENT_PACKET_MAX);
        if (!p->packet)
                return handle_fail(p, ENOMEM, "no memory");
        r = client_dial(p, feed);
        if (r < 0)
                return r;
        r = client_hello(p, state, state_size);
        if (r < 0)
                return r;
        if (state_size > 0 && p->ack != ACK_CHECKPOINT)
                return handle_fail(p, EOPNOTSUPP,
                                   "there is a checkpoint to go on from, but the job's input.ack is not "
                                   "checkpoint");
        if (state_size > 0 && held_load(&p->held, state, state_size, feed_clock()) < 0)
                return handle_fail(p, ENOMEM, "no memory");
        return 0;
}

static int open_handle(struct primus *p, const struct primus_options *o) {
        const void *state = o && o->size >= sizeof(*o) ? o->checkpoint : NULL;
        size_t state_size = state ? o->checkpoint_size : 0;
        const char *feed = getenv("PRIMUS_FEED");
        int r;

        if (o && o->size < sizeof(*o))
                return handle_fail(p, EINVAL, "the size of struct primus_options is not filled in");
        p->interruptible = o && (o->flags & PRIMUS_INTERRUPTIBLE);
        r = make_marker(p);
        if (r < 0)
                return r;
        read_job_uid(p->job_uid);
        if (!feed)
                return open_plain(p);
        if (state_size > 0 && state_check(state, state_size) < 0)
                return handle_fail(p, EBADMSG,
                                   "the checkpoint is none: it must be what primus_checkpoint() returned");
        return open_feed(p, feed, state, state_size);
}

int primus_open(const struct primus_options *options, struct primus **ret) {
        struct primus *p;
        int r;

        p = calloc(1, sizeof(*p));
        if (!p) {
                (void)snprintf(open_error, sizeof(open_error), "no memory");
                return -ENOMEM;
        }
        p->fd = p->poll_fd = p->ready_fd = -EBADF;
        r = open_handle(p, options);
        if (r < 0) {
                memcpy(open_error, p->error, sizeof(open_error));
                primus_close(p);
                return r;
        }
        open_error[0] = 0;
        *ret = p;
        return 0;
}

void primus_close(struct primus *p) {
        if (!p)
                return;
        if (p->ops)
                p->ops->close(p);
        held_done(&p->held);
        close_fd(p->fd);
        close_fd(p->poll_fd);
        close_fd(p->ready_fd);
        free(p->formats);
        free(p->packet);
        free(p->csv_header);
        free(p->place_path);
        if (p->marker)
                (void)munmap(p->marker, 4096);
        free(p);
}

/* ---- delivering ---- */

int handle_check(struct primus *p) {
        if (p->marker[0] == 0)
                return handle_fail(p, ECHILD,
                                   "this handle was opened by the process that this one was forked from; "
                                   "open one here");
        return 0;
}

int handle_task_failed(struct primus *p, uint64_t task, const char *why) {
        struct client_fail head = { .task = task, .text_size = (uint32_t)strnlen(why, TASK_TEXT_MAX) };
        uint8_t body[sizeof(head) + TASK_TEXT_MAX];
        char line[TASK_TEXT_MAX + 1];
        int r = 0;

        memcpy(body, &head, sizeof(head));
        memcpy(body + sizeof(head), why, head.text_size);
        memcpy(line, why, head.text_size);
        line[head.text_size] = 0;
        /* What was delivered of it before stays told of; the piece holds nothing any more. */
        if (p->piece.task == task) {
                p->piece.size = p->delivered.at;
                p->piece.end = 0;
                p->piece.task_end = false;
                p->failed_here = true;
        }
        if (task != 0 && p->fd >= 0)
                r = client_send(p, CLIENT_FAIL, body, sizeof(head) + head.text_size);
        if (r >= 0)
                r = p->ops->drop(p, task, true);
        return r < 0 ? r : handle_fail(p, EBADMSG, "task %llu: %s", (unsigned long long)task, line);
}

/* The piece is consumed: what that says about its task. */
static int leave_piece(struct primus *p) {
        struct client_ack at;
        bool end = p->piece.task_end;
        uint64_t task = p->piece.task;
        int r = 0;

        p->marked = false; /* it was asked for what is behind it */
        if (!acknowledge_now(p, &at))
                return 0;
        if (end && p->piece.size == 0)
                r = acknowledge_end(p, &at);
        p->now = at;
        p->piece = (struct piece){};
        p->delivered = (struct place){};
        p->marked = p->failed_here = false;
        if (r >= 0 && end)
                r = p->ops->drop(p, task, false);
        return r;
}

/* Another piece has come. */
static int enter_piece(struct primus *p, const struct piece *piece) {
        struct client_ack before = p->now;

        p->piece = *piece;
        p->delivered = p->block_begin = (struct place){};
        p->block_size = 0;
        p->marked = p->failed_here = false;
        p->now = (struct client_ack){ .task = piece->task, .position = piece->position, .skip = piece->skip };
        if (before.task == piece->task && before.position != TASK_TO_END) {
                p->now.records = before.records;
                return 0;
        }
        if (p->ack != ACK_EXPLICIT && p->ack != ACK_CHECKPOINT)
                return 0;
        /* A range may have been acknowledged to its end before it was left. */
        if (before.task == p->acked.task && p->acked.position == TASK_TO_END)
                before.task = 0;
        if (before.task != 0 && held_leave(&p->held, &before) < 0)
                return handle_fail(p, ENOMEM, "no memory");
        if (piece->task != 0)
                held_resume(&p->held, &p->now);
        return 0;
}

/* Makes the piece one that has something left. 1; 0: no more data. */
static int need_piece(struct primus *p) {
        if (!p->piece.data) /* a range is left by asking for something else */
                p->delivered.at = p->piece.size;
        while (p->delivered.at == p->piece.size) {
                struct piece piece;
                int r;

                r = leave_piece(p);
                if (r < 0)
                        return r;
                if (p->ended)
                        return 0;
                r = p->ops->piece(p, &piece);
                if (r == 0) {
                        p->ended = true;
                        return 0;
                }
                if (r < 0)
                        return r;
                r = enter_piece(p, &piece);
                if (r < 0)
                        return r;
        }
        return 1;
}

static void step_over(struct place *at, const struct record_format_info *f, const struct record *record) {
        at->at += record->total;
        at->records++;
        if (f->kind == RECORD_MESSAGE)
                at->message_end = record->offset + 1;
}

int handle_next_record(struct primus *p, struct place *at, struct record *ret, const char **ret_why) {
        const struct record_format_info *f = handle_format_of(p, p->piece.source);
        int r = handle_whole_record(f, p->piece.data + at->at, p->piece.size - at->at, ret, ret_why);

        if (r > 0)
                step_over(at, f, ret);
        return r;
}

static void describe_record(const struct primus *p, const struct piece *of, size_t at,
                            const struct record *record, struct primus_record *ret) {
        *ret = (struct primus_record){
                .data = record->data,
                .size = record->size,
                .task = of->task,
                .source = of->source,
                .position = of->position + (of->linear ? at : 0),
        };
        switch (handle_format_of(p, of->source)->kind) {
        case RECORD_TEXT:
        case RECORD_CSV:
                if (ret->size > 0 && record->data[ret->size - 1] == '\n')
                        ret->size--;
                break;
        case RECORD_MESSAGE:
                ret->key = record->key;
                ret->key_size = record->key_size;
                ret->timestamp_msec = record->timestamp_msec;
                ret->position = record->offset;
                break;
        default:
                break;
        }
}

int primus_block_next(struct primus *p, const struct primus_block *block, size_t *iterator,
                      struct primus_record *ret) {
        const struct piece of = {
                .task = block->task,
                .source = block->source,
                .position = block->position,
                .linear = p->piece.linear,
        };
        size_t at = *iterator;
        struct record record;
        const char *why;
        int r;

        if (at >= block->size)
                return 0;
        r = handle_whole_record(handle_format_of(p, block->source), (const uint8_t *)block->data + at,
                                block->size - at, &record, &why);
        if (r < 0)
                return handle_fail(p, r, "%s", why);
        if (r == 0)
                return 0;
        describe_record(p, &of, at, &record, ret);
        *iterator = at + record.total;
        return 1;
}

static int next_one(struct primus *p, struct primus_record *ret) {
        int r;

        r = handle_check(p);
        if (r < 0)
                return r;
        for (;;) {
                struct place from;
                struct record record;
                const char *why;

                r = need_piece(p);
                if (r <= 0)
                        return r;
                from = p->delivered;
                p->marked = false;
                r = handle_next_record(p, &p->delivered, &record, &why);
                if (r < 0)
                        return handle_task_failed(p, p->piece.task, why);
                if (r == 0) { /* padding */
                        p->delivered.at = p->piece.size;
                        continue;
                }
                p->block_begin = from;
                p->block_size = record.total;
                describe_record(p, &p->piece, from.at, &record, ret);
                return 1;
        }
}

/* Where a block of at most max bytes ends: whole records, one at least. Counts them where that is needed. */
static int block_end(struct primus *p, size_t max, struct place *ret, const char **ret_why) {
        const struct record_format_info *f = handle_format_of(p, p->piece.source);
        size_t left = p->piece.size - p->delivered.at, size = max == 0 ? left : MIN(max, left);
        bool counting = p->ack == ACK_EXPLICIT || p->ack == ACK_CHECKPOINT || p->piece.counted;
        struct place at = p->delivered;
        int r = 1;

        *ret = (struct place){};
        if (size == left && !counting) {
                ret->at = p->piece.size;
                return 1;
        }
        if (f->kind == RECORD_TEXT && !counting) {
                const uint8_t *begin = p->piece.data + at.at, *newline = memrchr(begin, '\n', size);

                if (newline) {
                        ret->at = at.at + (size_t)(newline - begin) + 1;
                        return 1;
                }
        }
        while (at.at < p->piece.size) {
                struct place before = at;
                struct record record;

                r = handle_next_record(p, &at, &record, ret_why);
                if (r <= 0)
                        break;
                if (at.at - p->delivered.at > size && before.at > p->delivered.at) {
                        at = before;
                        break;
                }
                if (at.at - p->delivered.at >= size)
                        break;
        }
        if (at.at == p->delivered.at && r <= 0)
                return r;
        if (f->kind == RECORD_TAR && r == 0)
                at.at = p->piece.size;
        *ret = at;
        return 1;
}

static int next_block(struct primus *p, size_t max_bytes, struct primus_block *ret) {
        struct place end = {};
        const char *why;
        int r;

        r = handle_check(p);
        if (r < 0)
                return r;
        for (;;) {
                r = need_piece(p);
                if (r <= 0)
                        return r;
                p->marked = false;
                r = block_end(p, max_bytes, &end, &why);
                if (r < 0)
                        return handle_task_failed(p, p->piece.task, why);
                if (r > 0)
                        break;
                p->delivered.at = p->piece.size; /* padding */
        }
        *ret = (struct primus_block){
                .data = p->piece.data + p->delivered.at,
                .size = end.at - p->delivered.at,
                .task = p->piece.task,
                .source = p->piece.source,
                .position = p->piece.position + (p->piece.linear ? p->delivered.at : 0),
        };
        p->block_begin = p->delivered;
        p->block_size = ret->size;
        p->delivered = end;
        return 1;
}

static int next_range(struct primus *p, struct primus_range *ret) {
        struct piece piece;
        int r;

        r = handle_check(p);
        if (r < 0)
                return r;
        if (p->mode != PRIMUS_DESCRIPTOR)
                return handle_fail(p, EOPNOTSUPP, "ranges come with input.mode descriptor alone");
        do {
                p->delivered.at = p->piece.size;
                r = leave_piece(p);
                if (r < 0)
                        return r;
                r = descriptor_range(p, &piece, ret);
                if (r <= 0)
                        return r;
                r = enter_piece(p, &piece);
                if (r < 0)
                        return r;
        } while (piece.size == 0);
        return 1;
}

/* ---- asking ---- */

int primus_header(const struct primus *p, const void **ret, size_t *ret_size) {
        if (!p->csv_header)
                return 0;
        *ret = p->csv_header;
        *ret_size = p->csv_header_size;
        if (*ret_size > 0 && p->csv_header[*ret_size - 1] == '\n')
                (*ret_size)--;
        return 1;
}

enum primus_format primus_source_format(const struct primus *p, uint32_t source) {
        return (enum primus_format)handle_format_of(p, source)->kind;
}

int primus_tar_next(const struct primus_record *r, size_t *iterator, const char **ret_name,
                    size_t *ret_name_size, const void **ret_data, size_t *ret_size) {
        static _Thread_local struct record_tar_member member;
        int k = record_tar_next(r->data, r->size, iterator, &member);

        if (k <= 0)
                return k;
        *ret_name = member.name;
        *ret_name_size = member.name_size;
        *ret_data = member.data;
        *ret_size = member.size;
        return 1;
}

static int add_poll(struct primus *p, int fd) {
        struct epoll_event e = { .events = EPOLLIN };

        /* EPERM: a file, which is always readable. */
        return fd < 0 || epoll_ctl(p->poll_fd, EPOLL_CTL_ADD, fd, &e) >= 0 || errno == EPERM ? 0 : -errno;
}

/* Keeps what primus_get_fd() returned right, once somebody has asked for it. */
static void poll_update(struct primus *p) {
        uint64_t n = 1;
        bool ready;

        if (p->poll_fd < 0)
                return;
        ready = p->delivered.at < p->piece.size || p->ended || p->gone || p->ops->ready(p);
        if (ready)
                n = (uint64_t)write(p->ready_fd, &n, sizeof(n));
        else
                n = (uint64_t)read(p->ready_fd, &n, sizeof(n));
        (void)n; /* one that is set or clear already */
}

int primus_next(struct primus *p, struct primus_record *ret) {
        int r = next_one(p, ret);

        poll_update(p);
        return r;
}

int primus_next_block(struct primus *p, size_t max_bytes, struct primus_block *ret) {
        int r = next_block(p, max_bytes, ret);

        poll_update(p);
        return r;
}

int primus_next_range(struct primus *p, struct primus_range *ret) {
        int r = next_range(p, ret);

        poll_update(p);
        return r;
}

int primus_get_fd(struct primus *p) {
        int r;

        if (p->poll_fd >= 0)
                return p->poll_fd;
        r = handle_check(p);
        if (r < 0)
                return r;
        p->poll_fd = epoll_create1(EPOLL_CLOEXEC);
        p->ready_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (p->poll_fd < 0 || p->ready_fd < 0)
                r = -errno;
        if (r >= 0)
                r = add_poll(p, p->ready_fd);
        if (r >= 0)
                r = add_poll(p, p->fd);
        if (r >= 0)
                r = add_poll(p, p->ops->data_fd(p));
        if (r < 0) {
                p->poll_fd = close_fd(p->poll_fd);
                p->ready_fd = close_fd(p->ready_fd);
                return handle_fail(p, r, "cannot make a descriptor to wait for: %s", strerror(-r));
        }
        poll_update(p);
        return p->poll_fd;
}

enum primus_mode primus_get_mode(const struct primus *p) {
        return p->mode;
}

enum primus_ack_mode primus_get_ack_mode(const struct primus *p) {
        return (enum primus_ack_mode)p->ack;
}

uint64_t primus_waited_usec(const struct primus *p) {
        return p->waited_usec;
}

const char *primus_error(const struct primus *p) {
        return p ? p->error : open_error;
}
