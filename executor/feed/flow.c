/* SPDX-License-Identifier: Apache-2.0 */
/* Stream and positions. Invariants: the pieces ascend in the stream without overlap, only the last may be
 * incomplete; a piece leaves the list when all of it counts, or, where acknowledgements name positions, when
 * it is read. */
#include "executor/feed/flow.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <utlist.h>

#include "lib/base/cleanup.h"

struct piece {
        uint64_t task, generation; /* another one of the task: what was delivered does not count */
        uint64_t begin, size;      /* bytes of the stream */
        struct task_mark from, to;
        uint64_t records;
        bool by_byte, complete;
        struct piece *prev, *next;
};

void flow_init(struct flow *f, struct tasks *tasks, uint64_t pipe_size) {
        *f = (struct flow){ .tasks = tasks, .pipe_size = pipe_size };
}

static void piece_free(struct flow *f, struct piece *p) {
        assert(f->n > 0);
        if (f->first_unread == p)
                f->first_unread = p->next;
        DL_DELETE(f->pieces, p);
        f->n--;
        free(p);
}

void flow_done(struct flow *f) {
        struct piece *p, *next;

        DL_FOREACH_SAFE (f->pieces, p, next)
                piece_free(f, p);
}

static struct task *task_of(const struct flow *f, const struct piece *p) {
        struct task *t = tasks_find(f->tasks, p->task);

        return t && t->generation == p->generation ? t : NULL;
}

static struct piece *last_piece(const struct flow *f) {
        return f->pieces ? f->pieces->prev : NULL;
}

static bool follows(const struct flow *f, const struct piece *p, uint64_t task, struct task_mark from) {
        return p && p->complete && p->task == task && task_of(f, p) && p->begin + p->size == f->written &&
               p->to.position == from.position && p->to.skip == from.skip;
}

int flow_begin(struct flow *f, uint64_t task, struct task_mark from, struct task_mark to, bool by_byte,
               uint64_t records) {
        struct piece *p = last_piece(f);
        const struct task *t = tasks_find(f->tasks, task);

        if (follows(f, p, task, from) && ((p->by_byte && by_byte) || f->n >= FLOW_PIECES_MAX)) {
                p->by_byte &= by_byte;
                p->complete = false;
                p->to = to;
                p->records += records;
                if (!f->first_unread)
                        f->first_unread = p;
                return 0;
        }
        assert(!p || p->begin + p->size <= f->written);
        p = calloc(1, sizeof(*p));
        if (!p)
                return -ENOMEM;
        *p = (struct piece){ .task = task,
                             .generation = t ? t->generation : 0,
                             .begin = f->written,
                             .from = from,
                             .to = to,
                             .records = records,
                             .by_byte = by_byte };
        DL_APPEND(f->pieces, p);
        if (!f->first_unread)
                f->first_unread = p;
        f->n++;
        return 0;
}

static struct task_mark place_in(const struct piece *p, uint64_t position) {
        uint64_t n = position > p->begin ? position - p->begin : 0;

        if (p->complete && n >= p->size)
                return p->to;
        if (!p->by_byte || n == 0)
                return p->from;
        return (struct task_mark){ MIN(p->from.position + MIN(n, p->size), p->to.position), 0 };
}

void flow_wrote(struct flow *f, uint64_t n) {
        struct piece *p = last_piece(f);
        struct task *t;

        assert(p);
        t = task_of(f, p);
        p->size += n;
        f->written += n;
        if (t && p->by_byte)
                tasks_delivered(f->tasks, t, place_in(p, f->written));
}

void flow_end(struct flow *f, struct task_mark to) {
        struct piece *p = last_piece(f);
        struct task *t;

        assert(p);
        t = task_of(f, p);
        p->to = to;
        p->complete = true;
        if (t)
                tasks_delivered(f->tasks, t, to);
        if (p->size == 0)
                piece_free(f, p);
}

void flow_skip(struct flow *f, uint64_t n) {
        f->written += n;
}

static uint64_t counting(const struct flow *f) {
        switch (f->tasks->ack) {
        case ACK_READ:
        case ACK_EXIT: /* tasks.c keeps it back until the trainer exits 0 */
        case ACK_RELEASE:
                return f->consumed;
        case ACK_LAG:
                return f->consumed > f->pipe_size ? f->consumed - f->pipe_size : 0;
        case ACK_EXPLICIT:
                return MIN(f->processed, f->consumed);
        default:
                return 0;
        }
}

static void count_pieces(struct flow *f, uint64_t upto) {
        struct piece *p, *next;

        DL_FOREACH_SAFE (f->pieces, p, next) {
                struct task *t = task_of(f, p);
                bool all = p->complete && p->begin + p->size <= upto;

                if (p->begin >= upto && !all)
                        break;
                if (t)
                        (void)tasks_ack(f->tasks, t, place_in(p, upto), all ? p->records : 0);
                if (!all)
                        break;
                piece_free(f, p);
        }
}

/* What the trainer has got of each task. */
static bool read_upto(struct flow *f, uint64_t consumed) {
        bool moved = consumed != f->consumed;
        struct piece *p;

        f->consumed = consumed;
        while ((p = f->first_unread)) {
                struct task *t = task_of(f, p);
                bool all = p->complete && p->begin + p->size <= consumed;
                struct task_mark mark = place_in(p, consumed);

                if (t && p->begin < consumed) {
                        uint64_t left = t->whole && all && !mark_before(mark, t->delivered) ? 0
                                        : t->end > mark.position && t->end != TASK_TO_END
                                                ? t->end - mark.position
                                                : 1;

                        moved |= mark.position > t->read;
                        tasks_read(f->tasks, t, mark.position, left);
                }
                if (!all)
                        break;
                f->first_unread = p->next;
                if (f->tasks->ack == ACK_CHECKPOINT) /* its acknowledgements name positions */
                        piece_free(f, p);
        }
        return moved;
}

bool flow_consumed(struct flow *f, uint64_t consumed) {
        bool moved = read_upto(f, consumed);

        count_pieces(f, counting(f));
        return moved;
}

int flow_processed(struct flow *f, uint64_t bytes) {
        if (bytes > f->written)
                return -ERANGE;
        f->processed = MAX(f->processed, bytes);
        count_pieces(f, counting(f));
        return 0;
}

void flow_finish(struct flow *f) {
        if (f->tasks->ack != ACK_EXPLICIT && f->tasks->ack != ACK_CHECKPOINT)
                count_pieces(f, f->consumed);
}
