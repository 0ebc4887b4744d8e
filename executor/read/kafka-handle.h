/* SPDX-License-Identifier: Apache-2.0 */
/* A source's connection to its brokers, shared by what reads (kafka.c) and what asks and commits
 * (kafka-handle.c). */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "executor/read/kafka-api.h"
#include "executor/read/kafka.h"

#define KAFKA_SILENCE_MS 30000 /* without an answer */
#define KAFKA_HOLD 512u        /* messages that are taken from librdkafka at once */

/* A partition as it is read here. Of one reader's thread while it is open, but for pending and the like,
 * which are the handle's. */
struct kafka_partition {
        int32_t number;
        bool open;     /* by a reader */
        bool started;  /* librdkafka fetches it */
        bool at_end;   /* there was nothing behind what has come */
        uint64_t next; /* offset of the next message that a reader gets, as far as known */
        rd_kafka_message_t *held[KAFKA_HOLD];
        size_t held_at, held_n;
        uint64_t used_usec; /* when a reader closed it */
        /* under the lock: */
        uint64_t pending; /* to be committed; UINT64_MAX: nothing */
        uint64_t committed_usec;
        struct kafka_partition *following;
};

struct kafka_handle {
        const struct kafka_api *api;
        const struct input_source *source;
        char *topic;
        rd_kafka_t *rk;
        rd_kafka_topic_t *rkt;
        rd_kafka_queue_t *commits; /* what came of them */
        unsigned under_way;
        struct kafka_partition *partitions;
        pthread_mutex_t lock;
        char trouble[256]; /* what librdkafka complained of last */
        struct kafka_handle *following;
};

/* The source's, connected when it is asked for first. */
int kafka_handle_get(const struct input_source *s, struct kafka_handle **ret,
                     char error[static READ_ERROR_MAX]);
/* NULL: no memory. */
struct kafka_partition *kafka_handle_partition(struct kafka_handle *h, int32_t number);
/* What it complained of last, or "" . */
void kafka_handle_trouble(struct kafka_handle *h, char *buf, size_t size);
/* Sends what is pending and due. */
void kafka_handle_commit(struct kafka_handle *h, bool all);
/* Stops fetching, forgets what is held. */
void kafka_partition_stop(struct kafka_handle *h, struct kafka_partition *p);
