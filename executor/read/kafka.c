/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of one partition as a reader. A slice ends after KAFKA_SLICE messages, or when nothing new comes:
 * then partitions take turns. Messages that librdkafka has handed out and that no slice has delivered stay
 * with the partition. Invariant: messages are delivered in the order of their offsets, none below the task's
 * offset. */
#include "executor/read/kafka.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "executor/read/kafka-handle.h"
#include "executor/read/kind.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/record/record.h"

#define STEP_MS 50
#define QUIET_USEC (100 * USEC_PER_MSEC)   /* nothing new for so long ends a slice */
#define IDLE_STOP_USEC (10 * USEC_PER_SEC) /* a partition that somebody else has got is no longer fetched */

struct kafka_reader {
        struct reader reader;
        struct kafka_handle *handle;
        struct kafka_partition *partition;
        const char *path;
        const atomic_bool *cancel;
        const struct input_source *source;
        bool framed;
        uint64_t max_record;
        uint64_t position; /* offset behind what was delivered */
        _Atomic uint64_t end;
        uint64_t delivered; /* messages */
        size_t part;        /* bytes of the first held message, as it is delivered, that are gone */
};

static bool cancelled(const struct kafka_reader *k) {
        return k->cancel && atomic_load_explicit(k->cancel, memory_order_relaxed);
}

/* ---- messages to bytes ---- */

/* A message as it is delivered: up to four pieces, one behind the other. */
struct pieces {
        struct record_message_header header;
        struct {
                const void *data;
                size_t size;
        } list[4];
        size_t total;
};

static void pieces_add(struct pieces *p, unsigned i, const void *data, size_t size) {
        p->list[i].data = data;
        p->list[i].size = size;
        p->total += size;
}

static void pieces_make(const struct kafka_reader *k, const rd_kafka_message_t *m, struct pieces *ret) {
        static const char zeros[8];
        int64_t timestamp;

        *ret = (struct pieces){ 0 };
        if (!k->framed) {
                pieces_add(ret, 0, m->payload, m->payload ? m->len : 0);
                pieces_add(ret, 1, "\n", k->source->message_type == KAFKA_JSON);
                return;
        }
        timestamp = k->handle->api->message_timestamp(m, NULL);
        ret->header = (struct record_message_header){
                .offset = (uint64_t)m->offset,
                .timestamp_msec = timestamp,
                .key_size = m->key ? (uint32_t)m->key_len : UINT32_MAX,
                .value_size = m->payload ? (uint32_t)m->len : 0,
        };
        pieces_add(ret, 0, NULL, sizeof(ret->header));
        pieces_add(ret, 1, m->key, m->key ? m->key_len : 0);
        pieces_add(ret, 2, m->payload, m->payload ? m->len : 0);
        pieces_add(ret, 3, zeros, (8 - ret->total % 8) % 8);
}

/* Copies bytes [from, total) of the message, as many as fit. */
static size_t pieces_copy(const struct pieces *p, size_t from, uint8_t *buf, size_t size) {
        size_t copied = 0;

        for (unsigned i = 0; i < ELEMENTSOF(p->list) && copied < size; i++) {
                const uint8_t *data = p->list[i].data ? p->list[i].data : (const uint8_t *)&p->header;
                size_t n = p->list[i].size;

                if (from >= n) {
                        from -= n;
                        continue;
                }
                n = MIN(n - from, size - copied);
                memcpy(buf + copied, data + from, n);
                copied += n;
                from = 0;
        }
        return copied;
}

/* ---- what is held ---- */

static rd_kafka_message_t *held(struct kafka_reader *k) {
        struct kafka_partition *p = k->partition;

        return p->held_at < p->held_n ? p->held[p->held_at] : NULL;
}

static void held_drop(struct kafka_reader *k) {
        struct kafka_partition *p = k->partition;

        k->handle->api->message_destroy(p->held[p->held_at++]);
        k->part = 0;
}

/* The message that is first is an event: 1: dropped; 0: it is a message; negative: what it says. */
static int held_event(struct kafka_reader *k, const rd_kafka_message_t *m,
                      char error[static READ_ERROR_MAX]) {
        switch (m->err) {
        case RD_KAFKA_RESP_ERR_NO_ERROR:
                if ((uint64_t)m->offset >= k->position)
                        return 0;
                break;
        case RD_KAFKA_RESP_ERR__PARTITION_EOF:
                k->partition->at_end = true;
                break;
        case RD_KAFKA_RESP_ERR__TRANSPORT:
        case RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN:
        case RD_KAFKA_RESP_ERR__TIMED_OUT:
                break; /* librdkafka goes on trying; silence has its own end */
        case RD_KAFKA_RESP_ERR__AUTO_OFFSET_RESET:
        case RD_KAFKA_RESP_ERR_OFFSET_OUT_OF_RANGE:
                return read_error(
                        error, -ESTALE, k->path,
                        "the brokers no longer have message %llu; auto.offset.reset in config would go on "
                        "from another one",
                        (unsigned long long)k->position);
        default:
                return read_error(error, -EIO, k->path, "%s", k->handle->api->err2str(m->err));
        }
        held_drop(k);
        return 1;
}

/* Starts fetching from the position, if that is not what is fetched anyway. */
static int start_partition(struct kafka_reader *k, char error[static READ_ERROR_MAX]) {
        struct kafka_partition *p = k->partition;

        if (p->started && p->next == k->position)
                return 0;
        kafka_partition_stop(k->handle, p);
        if (k->handle->api->consume_start(k->handle->rkt, p->number, (int64_t)k->position) < 0)
                return read_error(error, -EIO, k->path, "cannot be read: %s",
                                  k->handle->api->err2str(k->handle->api->last_error()));
        p->started = true;
        p->next = k->position;
        return 0;
}

static int silence(struct kafka_reader *k, char error[static READ_ERROR_MAX]) {
        char trouble[256];

        kafka_handle_trouble(k->handle, trouble, sizeof(trouble));
        return read_error(error, -ETIMEDOUT, k->path, "no broker answers for %d s%s%.200s",
                          KAFKA_SILENCE_MS / 1000, *trouble ? ": " : "", trouble);
}

/* Until a message is held. -EAGAIN: there is none. */
static int wait_message(struct kafka_reader *k, char error[static READ_ERROR_MAX]) {
        struct kafka_partition *p = k->partition;
        uint64_t since = now_boot();

        for (;;) {
                rd_kafka_message_t *m = held(k);
                ssize_t n;

                if (m) {
                        int r = held_event(k, m, error);

                        if (r <= 0)
                                return r;
                        continue;
                }
                if (cancelled(k))
                        return -ECANCELED;
                n = k->handle->api->consume_batch(k->handle->rkt, p->number, STEP_MS, p->held, KAFKA_HOLD);
                p->held_at = 0;
                p->held_n = n > 0 ? (size_t)n : 0;
                (void)k->handle->api->poll(k->handle->rk, 0);
                if (n > 0)
                        continue;
                if (p->at_end && now_boot() >= since + QUIET_USEC)
                        return -EAGAIN;
                if (now_boot() >= since + KAFKA_SILENCE_MS * USEC_PER_MSEC)
                        return silence(k, error);
        }
}

/* ---- the reader ---- */

/* Puts messages into the buffer while they fit; the first one in parts, if need be. */
static int deliver_messages(struct kafka_reader *k, uint8_t *buf, size_t size, struct chunk *ret,
                            char error[static READ_ERROR_MAX]) {
        struct chunk c = { .position = k->position, .end = k->position };
        rd_kafka_message_t *m;

        while ((m = held(k)) && k->delivered < KAFKA_SLICE && (uint64_t)m->offset < k->end) {
                struct pieces p;
                size_t n;
                int r = held_event(k, m, error);

                if (r < 0 && c.records == 0)
                        return r;
                if (r < 0)
                        break; /* what comes before it is delivered first */
                if (r > 0)
                        continue;
                pieces_make(k, m, &p);
                if (m->len > k->max_record) {
                        if (c.records > 0)
                                break;
                        return read_error(error, -E2BIG, k->path,
                                          "message %lld has %zu bytes, more than maxRecord",
                                          (long long)m->offset, m->len);
                }
                if (c.size > 0 && p.total > size - c.size)
                        break;
                n = pieces_copy(&p, k->part, buf + c.size, size - c.size);
                c.size += n;
                if (k->part + n < p.total) {
                        c.flags = CHUNK_MORE | (k->part == 0 ? CHUNK_FIRST : 0);
                        k->part += n;
                        break;
                }
                c.records++;
                k->delivered++;
                k->position = (uint64_t)m->offset + 1;
                k->partition->next = k->position;
                k->partition->at_end = false;
                c.end = k->position;
                held_drop(k);
                if (c.size == size)
                        break;
        }
        *ret = c;
        return c.size > 0 || c.records > 0;
}

static int on_next(struct reader *reader, uint8_t *buf, size_t size, struct chunk *ret,
                   char error[static READ_ERROR_MAX]) {
        struct kafka_reader *k = (struct kafka_reader *)reader;
        int r;

        kafka_handle_commit(k->handle, false);
        for (;;) {
                if (cancelled(k))
                        return -ECANCELED;
                if (k->position >= k->end)
                        return 0;
                if (k->delivered >= KAFKA_SLICE)
                        return -EAGAIN;
                r = start_partition(k, error);
                if (r >= 0)
                        r = wait_message(k, error);
                if (r < 0)
                        return r;
                if ((uint64_t)held(k)->offset >= k->end)
                        return 0;
                r = deliver_messages(k, buf, size, ret, error);
                if (r != 0)
                        return r;
        }
}

static uint64_t on_end(const struct reader *reader) {
        const struct kafka_reader *k = (const struct kafka_reader *)reader;

        return MAX(k->end, k->position);
}

static void on_trim(struct reader *reader, uint64_t position) {
        struct kafka_reader *k = (struct kafka_reader *)reader;

        if (position < k->end)
                k->end = position; /* what is delivered already is not taken back: on_next() compares */
}

/* Partitions that nobody here has read for a while are somebody else's now. */
static void stop_idle(struct kafka_handle *h) {
        struct kafka_partition *p;
        uint64_t now = now_boot();

        (void)pthread_mutex_lock(&h->lock);
        p = h->partitions; /* the list only grows, at its head */
        (void)pthread_mutex_unlock(&h->lock);
        for (; p; p = p->following)
                if (p->started && !p->open && now >= p->used_usec + IDLE_STOP_USEC)
                        kafka_partition_stop(h, p);
}

static void on_close(struct reader *reader) {
        struct kafka_reader *k = (struct kafka_reader *)reader;

        if (k->part > 0) /* half of a message is gone: the next reader begins with a whole one */
                k->partition->next = UINT64_MAX;
        k->partition->open = false;
        k->partition->used_usec = now_boot();
        stop_idle(k->handle);
        free(k);
}

int reader_open_kafka(const struct reader_request *q, struct reader **ret,
                      char error[static READ_ERROR_MAX]) {
        static const struct reader_ops ops = {
                .next = on_next, .end = on_end, .trim = on_trim, .close = on_close
        };
        _cleanup_free_ struct kafka_reader *k = calloc(1, sizeof(*k));
        int32_t number;
        int r;

        if (!k)
                return read_error(error, -ENOMEM, q->task->path, "no memory");
        if (kafka_path_partition(q->task->path, &number) < 0)
                return read_error(error, -EINVAL, q->task->path, "must be TOPIC/PARTITION");
        *k = (struct kafka_reader){
                .reader = { .ops = &ops },
                .path = q->task->path,
                .cancel = q->cancel,
                .source = q->source,
                .framed = q->framed,
                .max_record = q->input->max_record,
                .position = q->task->offset,
                .end = q->task->end,
        };
        r = kafka_handle_get(q->source, &k->handle, error);
        if (r < 0)
                return r;
        k->partition = kafka_handle_partition(k->handle, number);
        if (!k->partition)
                return read_error(error, -ENOMEM, q->task->path, "no memory");
        k->partition->open = true;
        *ret = &k->reader;
        TAKE_PTR(k);
        return 0;
}
