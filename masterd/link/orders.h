/* SPDX-License-Identifier: Apache-2.0 */
/* Orders to agents. Everything here sends at once and is therefore called from effects only (or repeats what
 * is on disk). */
#pragma once

#include <stdint.h>

#include "lib/wire/capture.h"
#include "lib/wire/find.h"
#include "lib/wire/messages.h"

struct manager;
struct node;
struct job;
struct executor;
struct link;

/* What became of a start. */
struct start_result {
        const char *error; /* D-Bus error name, or NULL: it runs */
        const char *message;
        sd_id128_t invocation;
        uint64_t started_real;
};

/* Of a connection that is over: what waits in it to be sent, and that its answers are waited for. The next
 * registration says it anew. */
void orders_forget(struct link *link);
/* Its agent has handed that start to systemd, where it may last: it does not keep others from being sent. */
void orders_taken(struct manager *m, struct link *link, const struct executor_id *id);

/* The id of the executor's current attempt. */
struct executor_id executor_id_of(const struct executor *e);

/* As effects: start what was placed, stop what is to stop, tell the agent that an exit is on disk, that a job
 * is over. Where the node is not connected nothing is sent; its registration brings it up again. */
int orders_start_later(struct manager *m, struct executor *e);
int orders_stop_later(struct manager *m, struct executor *e);
/* The signal of the job's configuration. */
int orders_signal_later(struct manager *m, struct executor *e);
int orders_committed_later(struct manager *m, const struct node *node, const struct executor_id *id);
/* job_uid may be its first four bytes: the files of a job are named by those. */
int orders_drop_job_later(struct manager *m, const struct node *node, sd_id128_t job_uid, uint32_t job);
/* At once, with an answer: sd_bus_call_async()'s. */
int orders_limits_send(struct manager *m, struct executor *e, const struct unit_limits *limits,
                       sd_bus_message_handler_t handler, void *userdata);
/* Gives the unit the limits that its role has now. */
int orders_limits_later(struct manager *m, struct executor *e);
/* Tells a trainer that runs who its peers are in this epoch. */
int orders_rendezvous_later(struct manager *m, struct executor *e);
/* Stops a unit that is none of ours any more (a stale attempt). */
int orders_stop_stale_later(struct manager *m, const struct node *node, const struct executor_id *id);
/* The drained host reboots or goes off, as its hold says by then. */
int orders_power_later(struct manager *m, const struct node *node);
/* Freezes a unit that runs, or thaws it, whatever holds for its job by then. */
int orders_freeze_later(struct manager *m, struct executor *e);
/* A unit that lists a source, from behind its cursor. */
int orders_scan_later(struct manager *m, struct job *j, struct node *node, uint32_t source, uint32_t attempt);

/* Asks the agent at once what the executor's threads are doing. handler is called exactly once, later, unless
 * this returns < 0 (-ENOTCONN: its host is not connected). e is NULL by then where that attempt has left
 * memory; error NULL, or a sentence, and then there are no threads. What is handed over is the caller's for
 * the call only. With CAPTURE_PYTHON, processes that catch the job's stack signal get it, and what they write
 * is in their first thread's python. */
#define CAPTURE_PYTHON 1u
typedef void (*capture_handler)(struct manager *m, struct executor *e, const struct capture_thread *threads,
                                size_t n, const char *error, void *userdata);
int orders_capture(struct manager *m, struct executor *e, uint32_t flags, capture_handler handler,
                   void *userdata);
/* The same with all that the agent answered: total, note. */
typedef void (*capture_answer)(struct manager *m, const struct capture *c, const sd_bus_error *error,
                               void *userdata);
int orders_capture_all(struct manager *m, struct executor *e, uint32_t flags, capture_answer answer,
                       void *userdata);

/* Has the host of an executor that has ended search its log, once everything is on disk. handler is called
 * exactly once, later, unless this returns < 0. r: 0, and lines has one for each pattern; -ENOTCONN: the link
 * is gone, and with it the question; -EIO: the host cannot tell. */
typedef void (*find_handler)(struct manager *m, int r, const struct found_line *lines, void *userdata);
int orders_find_later(struct manager *m, const struct executor *e, sd_id128_t invocation,
                      const char *const *patterns, size_t n, find_handler handler, void *userdata);

/* Has the agent count how long what the executor does takes (kind: "io", "runqueue"), at once and for so long
 * beyond this call; handler: sd_bus_call_async()'s, with Link1.Trace's answer. */
int orders_trace(struct manager *m, struct executor *e, const char *kind, uint64_t lease_usec,
                 sd_bus_message_handler_t handler, void *userdata);
