/* SPDX-License-Identifier: Apache-2.0 */
/* Follows the journal of all executors on the host, so that masterd has the last 256 KiB of each within
 * seconds, also when the host is gone afterwards. Bytes are counted from each executor's first line on; one
 * that prints more than 256 KiB between two deliveries is skipped ahead, so that neither it nor its followers
 * cost more than that. The journal itself is the buffer: when deliveries are not taken, nothing is read. A
 * thread does the reading (see journal.h). */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <systemd/sd-event.h>

#include "lib/wire/messages.h"

#define TAIL_BYTES LINK_CHUNK_MAX /* of one executor kept between two deliveries */
#define TAIL_TOTAL_MAX (8u << 20) /* of all executors; then a delivery is made at once */
#define TAIL_PERIOD_USEC UINT64_C(1000000)

struct tail;

struct tail_options {
        const char *directory;   /* tests: journal files instead of the host's */
        const char *sync_socket; /* tests: instead of primus-starter's */
        const char *state; /* file that keeps positions over a restart of agentd, "/run/primus/agent/tail";
                              NULL: none */
};

/* Bytes [offset, offset + size) of what the executor has printed. */
struct tail_chunk {
        struct executor_id id;
        uint64_t offset;
        const char *data;
        size_t size;
};

/* Called from the event loop. 0: taken; -EAGAIN: call again after tail_resume(), with the same chunks. */
typedef int (*tail_handler)(void *userdata, const struct tail_chunk *chunks, size_t n);

/* Positions of an earlier agentd are read from the state file. Nothing is followed before tail_start(). */
int tail_new(sd_event *event, const struct tail_options *options, tail_handler handler, void *userdata,
             struct tail **ret);
/* Waits for the thread. */
void tail_free(struct tail *t);

/* Follows an executor, which has not started yet or is one that the earlier agentd followed. Known ones are
 * ignored. */
int tail_add(struct tail *t, const struct executor_id *id);

/* The executor has ended: when its last line has been delivered it is forgotten. */
int tail_ended(struct tail *t, const struct executor_id *id);

/* Begins; call it when the executors that run already have been added. */
int tail_start(struct tail *t);

/* Deliveries are taken again. */
void tail_resume(struct tail *t);
