/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of primus.h that say what counts. Invariant: nothing is told that was not handed out. */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include "lib/primus/handle.h"

#define ACKS_MAX ((CLIENT_PACKET_MAX - sizeof(struct client_header)) / sizeof(struct client_ack))

static void where(const struct primus *p, const struct place *at, struct client_ack *ret) {
        const struct piece *piece = &p->piece;

        *ret = p->now;
        ret->records += at->records;
        if (at->at >= piece->size && !p->failed_here && piece->task_end) {
                ret->position = TASK_TO_END;
                ret->skip = 0;
        } else if (piece->counted) {
                ret->position = piece->position;
                ret->skip = piece->skip + at->records;
        } else if (at->at == 0 && (piece->size > 0 || p->failed_here)) {
                ret->position = piece->position;
                ret->skip = piece->skip;
        } else {
                ret->skip = 0;
                ret->position = at->at >= piece->size && !p->failed_here ? piece->end
                                : piece->linear                          ? piece->position + at->at
                                : at->message_end != 0                   ? at->message_end
                                                                         : piece->position;
        }
}

bool acknowledge_now(const struct primus *p, struct client_ack *ret) {
        if (p->piece.task == 0) {
                if (p->now.task == 0)
                        return false;
                *ret = p->now;
                return true;
        }
        where(p, p->marked ? &p->mark : &p->delivered, ret);
        return true;
}

/* Everything held, and *now. */
static int send_acks(struct primus *p, const struct client_ack *now) {
        const struct held_list *lists[] = { &p->held.whole, &p->held.partial };
        _cleanup_free_ struct client_ack *acks = NULL;
        size_t n = 0;
        int r;

        if (p->held.whole.n + p->held.partial.n == 0)
                return client_send(p, CLIENT_ACK, now, sizeof(*now));
        acks = calloc(ACKS_MAX, sizeof(*acks));
        if (!acks)
                return handle_fail(p, ENOMEM, "no memory");
        for (size_t l = 0; l < ELEMENTSOF(lists); l++)
                for (size_t i = 0; i < lists[l]->n; i++) {
                        acks[n++] = lists[l]->tasks[i].at;
                        if (n < ACKS_MAX)
                                continue;
                        r = client_send(p, CLIENT_ACK, acks, n * sizeof(*acks));
                        if (r < 0)
                                return r;
                        n = 0;
                }
        acks[n++] = *now;
        r = client_send(p, CLIENT_ACK, acks, n * sizeof(*acks));
        if (r >= 0)
                held_clear(&p->held);
        return r;
}

static int acknowledge(struct primus *p) {
        struct client_ack now;
        int r;

        if (p->ack != ACK_EXPLICIT)
                return 0;
        if (p->mode == PRIMUS_STDIN) {
                struct client_stream stream = {
                        .bytes = p->in.stream + (p->marked ? p->mark.at : p->delivered.at),
                };
                return client_send(p, CLIENT_STREAM, &stream, sizeof(stream));
        }
        if (!acknowledge_now(p, &now))
                return 0;
        r = send_acks(p, &now);
        if (r >= 0)
                p->acked = now;
        return r;
}

int acknowledge_end(struct primus *p, const struct client_ack *end) {
        /* p->now is still as of the piece that the end was: behind the last record. */
        if (p->ack != ACK_EXPLICIT || p->mode == PRIMUS_STDIN || p->acked.task != end->task ||
            p->acked.position == TASK_TO_END || p->acked.position != p->piece.position)
                return 0;
        p->acked = *end;
        return client_send(p, CLIENT_ACK, end, sizeof(*end));
}

int primus_ack(struct primus *p) {
        int r = handle_check(p);

        if (r < 0)
                return r;
        p->marked = false;
        return acknowledge(p);
}

int primus_ack_records(struct primus *p, uint64_t n) {
        int r = handle_check(p);

        if (r < 0)
                return r;
        if (p->ack != ACK_EXPLICIT && p->ack != ACK_CHECKPOINT)
                return 0;
        if (!p->marked) {
                p->mark = p->block_begin;
                p->marked = true;
        }
        /* Asked for less than before: begun anew. */
        if (p->mark.records > p->block_begin.records + n)
                p->mark = p->block_begin;
        while (p->mark.records < p->block_begin.records + n) {
                struct record record;
                const char *why;

                if (p->mark.at >= p->block_begin.at + p->block_size ||
                    handle_next_record(p, &p->mark, &record, &why) <= 0)
                        return handle_fail(p, EINVAL, "the block has %llu records, not %llu",
                                           (unsigned long long)(p->mark.records - p->block_begin.records),
                                           (unsigned long long)n);
        }
        return acknowledge(p);
}

int primus_ack_position(struct primus *p, uint64_t task, uint64_t position) {
        struct client_ack now;
        int r = handle_check(p);

        if (r < 0)
                return r;
        if (p->piece.task != task || p->piece.data)
                return handle_fail(p, EINVAL, "task %llu is not that of the latest range",
                                   (unsigned long long)task);
        if (position < p->piece.position || position > p->piece.end)
                return handle_fail(p, EINVAL, "position %llu lies outside of the range [%llu, %llu)",
                                   (unsigned long long)position, (unsigned long long)p->piece.position,
                                   (unsigned long long)p->piece.end);
        p->delivered.at = (size_t)(position - p->piece.position);
        if (p->ack == ACK_EXPLICIT)
                return acknowledge(p);
        if (p->ack != ACK_RELEASE || !acknowledge_now(p, &now))
                return 0;
        return client_send(p, CLIENT_ACK, &now, sizeof(now));
}

int primus_fail(struct primus *p, const char *why) {
        int r = handle_check(p);

        if (r < 0)
                return r;
        if (p->piece.task == 0)
                return handle_fail(p, EINVAL, "nothing has been delivered that could have failed");
        /* The latest record is what cannot be used: it does not count. */
        p->delivered = p->marked ? p->mark : p->block_begin;
        r = handle_task_failed(p, p->piece.task, why);
        return r == -EBADMSG ? 0 : r;
}

int primus_checkpoint(struct primus *p, void **ret, size_t *ret_size) {
        struct client_ack now;
        bool any;
        int r = handle_check(p);

        if (r < 0)
                return r;
        if (p->fd >= 0 && p->ack != ACK_CHECKPOINT)
                return handle_fail(p, EOPNOTSUPP, "the job's input.ack is not checkpoint");
        if (p->fd >= 0 && !p->gone) {
                r = client_drain(p);
                if (r < 0)
                        return r;
        }
        held_expire(&p->held, feed_clock());
        any = acknowledge_now(p, &now);
        r = held_state(&p->held, p->job_uid, any ? &now : NULL, ret, ret_size);
        if (r == -E2BIG)
                return handle_fail(p, r,
                                   "more than %zu tasks have been delivered since the last commit; commit "
                                   "checkpoints more often",
                                   (size_t)HELD_STATE_TASKS_MAX);
        return r < 0 ? handle_fail(p, r, "no memory") : 0;
}

int primus_checkpoint_commit(struct primus *p, const void *checkpoint, size_t size) {
        int r = handle_check(p);

        if (r < 0)
                return r;
        if (state_check(checkpoint, size) < 0)
                return handle_fail(p, EBADMSG, "not the bytes that primus_checkpoint() returned");
        if (p->fd < 0)
                return 0;
        if (p->ack != ACK_CHECKPOINT)
                return handle_fail(p, EOPNOTSUPP, "the job's input.ack is not checkpoint");
        r = client_send_state(p, CLIENT_COMMIT, NULL, 0, checkpoint, size);
        if (r < 0)
                return r;
        held_commit(&p->held, checkpoint, size, ++p->commits);
        return client_drain(p);
}
