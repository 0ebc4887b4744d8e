/* SPDX-License-Identifier: Apache-2.0 */
/* Ring mode: a slot is a piece, without a copy; only a record that needs several slots is put together in
 * memory of its own. A slot is released when the next piece is asked for. */
#include <errno.h>
#include <string.h>

#include "lib/primus/handle.h"
#include "lib/primus/progress.h"

static void release_all(struct ring_state *s) {
        for (; s->taken > 0; s->taken--)
                ring_consumer_release(s->consumer);
}

/* The next slot, waiting. 1, 0: no more, negative. */
static int next_slot(struct primus *p, struct ring_slot *ret, const uint8_t **ret_data) {
        struct ring_state *s = &p->ring;

        for (;;) {
                uint64_t begin;
                int r = ring_consumer_next(s->consumer, ret, ret_data);

                if (r > 0)
                        s->taken++;
                if (r > 0 && ret->source >= p->n_formats)
                        r = -EPROTO;
                if (r == -EPROTO)
                        return handle_fail(p, EPROTO,
                                           "primus-executor wrote a slot that cannot be understood");
                if (r != 0)
                        return r == -EPIPE ? 0 : r;
                if (p->gone)
                        return handle_fail(p, ECONNRESET,
                                           "primus-executor has gone before the end of the data");
                begin = feed_clock();
                r = ring_consumer_wait(s->consumer, p->fd, progress_wait_msec());
                progress_waiting();
                p->waited_usec += feed_clock() - begin;
                if (r == -EINTR && !p->interruptible)
                        continue;
                if (r == -EINTR)
                        return r;
                if (r < 0)
                        return handle_fail(p, r, "cannot wait for data: %s", strerror(-r));
                /* What came before the end of the connection is in the ring by now. */
                r = client_drain(p);
                if (r < 0 && !p->gone)
                        return r;
        }
}

static int join_ring(struct primus *p, const uint8_t *data, size_t size) {
        struct ring_state *s = &p->ring;

        if (size > p->max_record + 4096 || s->joined_size > p->max_record + 4096 - size)
                return -EMSGSIZE;
        if (s->joined_size + size > s->joined_allocated) {
                size_t n = MAX(s->joined_size + size, 2 * s->joined_allocated);
                uint8_t *q = realloc(s->joined, n);

                if (!q)
                        return -ENOMEM;
                s->joined = q;
                s->joined_allocated = n;
        }
        memcpy(s->joined + s->joined_size, data, size);
        s->joined_size += size;
        return 0;
}

/* A record in several slots, of which *slot is the first. 1: *slot is what the whole of it would be; 0: it
 * does not end (its task has been broken off, and *slot is what came then); negative. */
static int join_record(struct primus *p, struct ring_slot *slot, const uint8_t **data) {
        struct ring_slot first = *slot;
        int r;

        p->ring.joined_size = 0;
        for (;;) {
                r = join_ring(p, *data, slot->size);
                if (r == -EMSGSIZE)
                        return handle_task_failed(p, slot->task, "a record is longer than maxRecord");
                if (r < 0)
                        return handle_fail(p, ENOMEM, "no memory for a record of more than %zu bytes",
                                           p->ring.joined_size);
                if (slot->flags & RING_TASK_BROKEN)
                        return 0;
                if (!(slot->flags & RING_MORE))
                        break; /* released with the record */
                release_all(&p->ring);
                r = next_slot(p, slot, data);
                if (r <= 0)
                        return r;
                if (slot->task != first.task || (slot->flags & RING_FIRST))
                        return handle_fail(p, EPROTO, "primus-executor began a record and did not end it");
        }
        first.end = slot->end;
        first.flags = slot->flags;
        *slot = first;
        *data = p->ring.joined;
        return 1;
}

static int ring_piece(struct primus *p, struct piece *ret) {
        struct ring_state *s = &p->ring;

        for (;;) {
                struct ring_slot slot;
                const uint8_t *data;
                size_t size;
                int r;

                release_all(s);
                r = next_slot(p, &slot, &data);
                if (r <= 0)
                        return r;
                if (slot.task == s->drop_task) {
                        if (slot.flags & (RING_TASK_END | RING_TASK_BROKEN))
                                s->drop_task = 0;
                        continue;
                }
                s->drop_task = 0;
                size = slot.size;
                if (slot.flags & RING_HEADER) {
                        r = handle_keep_header(p, data, size, s->in_header);
                        s->in_header = slot.flags & RING_MORE;
                        if (r < 0)
                                return r;
                        continue;
                }
                if (slot.flags & RING_MORE) {
                        r = join_record(p, &slot, &data);
                        if (r < 0)
                                return r;
                        size = r > 0 ? s->joined_size : 0;
                }
                s->flags = slot.flags;
                *ret = (struct piece){
                        .data = data,
                        .size = size,
                        .task = slot.task,
                        .position = slot.position,
                        .end = slot.end,
                        .skip = slot.skip,
                        .source = slot.source,
                        .counted = slot.flags & RING_COUNTED,
                        .linear = !(slot.flags & RING_COUNTED) &&
                                  p->formats[slot.source].kind != RECORD_MESSAGE,
                        .task_end = (slot.flags & RING_TASK_END) && !(slot.flags & RING_TASK_BROKEN),
                };
                return 1;
        }
}

static int ring_drop(struct primus *p, uint64_t task, bool failed) {
        if (failed && !(p->piece.task == task && (p->ring.flags & (RING_TASK_END | RING_TASK_BROKEN))))
                p->ring.drop_task = task;
        return 0;
}

static int ring_fd(struct primus *p) {
        return ring_consumer_fd(p->ring.consumer);
}

static bool ring_ready(struct primus *p) {
        return ring_consumer_arm(p->ring.consumer);
}

static void ring_close(struct primus *p) {
        p->ring.consumer = ring_consumer_free(p->ring.consumer);
        free(p->ring.joined);
}

const struct mode_ops mode_ring = {
        .piece = ring_piece,
        .drop = ring_drop,
        .data_fd = ring_fd,
        .ready = ring_ready,
        .close = ring_close,
};
