/* SPDX-License-Identifier: Apache-2.0 */
/* agentd's side of /run/primus/feed.sock (lib/wire/feed.h): takes connections of executors' processes, proves
 * which unit each is in, makes the data pipes, and passes packets between executors and the manager. It keeps
 * no task: what an executor holds, the executor knows, and says again on every new connection (first its
 * tasks by on_progress with credits 0, then on_open). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <systemd/sd-event.h>

#include "agentd/feed/identity.h"
#include "lib/wire/feed.h"
#include "lib/wire/messages.h"

struct feed_server;

/* What the manager knows about a unit. */
struct feed_unit {
        struct executor_id id;
        uint32_t uid;
        enum order_kind kind;
        enum ack_mode ack;
        uint32_t pipe_size;
};

/* Arrays and strings are valid during the call only. None of these may free the server, but each may call
 * feed_grant() and the other functions below. */
struct feed_ops {
        /* 0, or -ENOENT for a unit that is no executor of ours (the peer is told so and may try again). */
        int (*find_unit)(void *userdata, const char *unit, struct feed_unit *ret);
        /* The executor is ready for so many tasks beyond those that it has reported since it connected. */
        void (*on_open)(void *userdata, const struct executor_id *id, const struct feed_opened *opened);
        void (*on_progress)(void *userdata, const struct executor_id *id, const struct feed_report *report);
        /* A part of what it says when its trainer has ended; first: what it said before is void. 0: it is
         * kept; < 0: it is not, and the executor is to say it again. */
        int (*on_final)(void *userdata, const char *unit, const void *body, size_t size, bool first);
        /* Scan: 0, or -EAGAIN to be called again with the same entries after feed_resume(); the scanner
         * waits. */
        int (*on_entries)(void *userdata, const struct executor_id *id, const struct scan_batch *batch);
        /* No more will come. 0: all of it has been passed on, the executor may go; -EAGAIN: feed_farewell()
         * will be called for it. Its unit ends only after that, or 30 s later. */
        int (*on_bye)(void *userdata, const struct executor_id *id, bool failed, const char *text);
        /* A trial's result, in the order of a connection. feed_taken() is called for (peer, result->number)
         * when masterd has it; if it never is, the peer says it again on its next connection. */
        void (*on_result)(void *userdata, uint64_t peer, const struct executor_id *id,
                          const struct feed_result *result);
        /* A searcher's question, of at most FEED_ASK_MAX bytes, as a string. feed_told() is called for (peer,
         * number) when masterd has answered; if it never is, the peer asks again on its next connection. */
        void (*on_ask)(void *userdata, uint64_t peer, const struct executor_id *id, uint64_t number,
                       const char *text);
        /* What a process of the executor says of its training; points of lib/wire/metrics.h that nobody has
         * looked into. */
        void (*on_metrics)(void *userdata, const struct executor_id *id, uint32_t local, const void *points,
                           size_t size);
        /* See struct pipe_budget; may be NULL. */
        void (*widen)(int fd, uint32_t size, void *userdata);
};

struct feed_limits {
        uint32_t connections, per_unit; /* identified; a unit's first is taken beyond that too */
        uint32_t strangers,
                per_stranger;   /* in an executor's unit and not yet identified: in all, of one uid */
        uint64_t identify_usec; /* time to be identified in */
        uint64_t pipe_bytes;    /* of all data pipes together; beyond that a pipe has the kernel's 64 KiB */
        uint64_t queue_bytes;   /* packets for one executor that does not read */
};
extern const struct feed_limits feed_limits_default;

/* Tests put another way of naming a peer's unit here; NULL: identity_unit(). */
typedef int (*feed_identify)(const struct identity *i, char ret[static IDENTITY_UNIT_MAX]);

/* Listens at path (an old socket there is replaced, mode 0666). Call it once the host's units are known. */
int feed_server_new(sd_event *event, const char *path, const struct feed_limits *limits,
                    feed_identify identify, const struct feed_ops *ops, void *userdata,
                    struct feed_server **ret);
void feed_server_free(struct feed_server *s);

/* Passes grants to the executor; last: no further task will come. 0; -ENOTCONN: it is not connected now (when
 * it is, it says what it holds); -ENOBUFS: it does not read, and has been disconnected; -E2BIG. */
int feed_grant(struct feed_server *s, const struct executor_id *id, const struct grant_batch *batch);

/* Passes an order to the executor's feeder. Results as above. */
int feed_control(struct feed_server *s, const struct executor_id *id, const struct feed_order *order);

/* Tells the executor's feeder of a source. Results as above. */
int feed_source(struct feed_server *s, const struct executor_id *id, const struct feed_source_order *order);

/* Calls on_entries again for a scanner that was told to wait. */
int feed_resume(struct feed_server *s, const struct executor_id *id);

/* Lets an executor go whose on_bye() answered -EAGAIN. */
int feed_farewell(struct feed_server *s, const struct executor_id *id);

/* Takes what has come of the executor's packets and lies unread: its unit has ended. */
void feed_drain(struct feed_server *s, const struct executor_id *id);

/* Tells a peer that its result is on masterd's disk; or (refused not NULL) why it will not be. A peer that
 * has gone is passed over. */
void feed_taken(struct feed_server *s, uint64_t peer, uint64_t number, const char *refused);

/* Passes masterd's answer to a question on: of at most FEED_ASK_MAX bytes; refused: it is why there is none.
 * A peer that has gone is passed over. */
void feed_told(struct feed_server *s, uint64_t peer, uint64_t number, bool refused, const char *text);

/* Hangs up on all executors, which connect again at once and say everything anew: for the manager when it has
 * a new link, on which masterd knows nothing of what went over the old one. */
void feed_drop_all(struct feed_server *s);

/* For tests and metrics. */
size_t feed_n_connections(const struct feed_server *s);
uint64_t feed_pipe_bytes(const struct feed_server *s);
