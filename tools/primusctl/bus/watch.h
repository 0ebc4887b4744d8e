/* SPDX-License-Identifier: Apache-2.0 */
/* Follows one job by its signals: its state and its executors, in the tool's event loop. Subscribes first and
 * reads then, so nothing is missed, and does so again when masterd comes back after a restart. */
#pragma once

#include <stdbool.h>
#include <systemd/sd-event.h>

#include "tools/primusctl/bus/job.h"
#include "tools/primusctl/cli/cli.h"

struct watch;

/* Each may be NULL. Called from the event loop only. */
struct watch_handlers {
        void (*state)(struct watch *w, void *userdata); /* the job's state is new */
        void (*executor)(struct watch *w, const struct executor *e,
                         void *userdata);                /* one is new or has changed */
        void (*synced)(struct watch *w, void *userdata); /* everything was read (again) */
        void (*away)(struct watch *w, void *userdata);   /* masterd is gone; it may come back */
};

enum watch_what {
        WATCH_STATE,     /* the job's state alone */
        WATCH_EXECUTORS, /* and the latest attempt of each executor */
        WATCH_ATTEMPTS,  /* and, at the beginning and after a restart of masterd, each earlier attempt */
};

/* Starts. The job's number and path are copied; a failure later ends the event loop with an exit status. */
int watch_new(struct cli *c, sd_event *event, const struct job_ref *job, enum watch_what what,
              const struct watch_handlers *handlers, void *userdata, struct watch **ret);
void watch_free(struct watch *w);
DEFINE_CLEANUP(struct watch *, watch_free)

const struct job_ref *watch_job(const struct watch *w);
const struct job_properties *watch_properties(const struct watch *w); /* state NULL before the first synced */
const struct executor *watch_executors(const struct watch *w, size_t *ret_n);
/* The latest answers of GetAll and ListExecutors, which are the watch's: for who shows more of them. NULL:
 * none has come, or nobody watches executors. */
void watch_replies(const struct watch *w, sd_bus_message **ret_properties, sd_bus_message **ret_executors);
bool watch_ended(const struct watch *w);

/* Reads everything again, with the details that signals do not carry; synced() follows. */
void watch_refresh(struct watch *w);

/* Calls a method of the job without waiting; the reply handler must return 0. timeout 0: the default. */
int watch_call(struct watch *w, sd_bus_message *m, sd_bus_message_handler_t reply, void *userdata,
               uint64_t timeout);

/* A failed call of anybody who uses this watch: when masterd is merely away, nothing happens (synced will
 * follow, or the loop ends when it stays away), when it is busy, everything is read again in a moment (synced
 * follows); other errors are reported and end the loop. */
void watch_call_failed(struct watch *w, const sd_bus_error *error);

/* An event loop on the bus, for one command. Returns 0 or CLI_FAILED. */
int watch_loop_new(struct cli *c, sd_event **ret);
