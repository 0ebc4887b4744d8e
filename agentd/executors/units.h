/* SPDX-License-Identifier: Apache-2.0 */
/* The executors on this host: starting, stopping, how they ended. Everything in here can be found again after
 * a restart from systemd (units, their Environment=) and /run/primus (exit records, stop marks). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <systemd/sd-bus.h>
#include <systemd/sd-event.h>

#include "agentd/executors/executor-state.h"
#include "agentd/unit/hooks.h"
#include "lib/base/cleanup.h"
#include "lib/base/worker.h"
#include "lib/wire/messages.h"

struct units;
struct systemd;

/* r < 0: the bundle is not there and text says why; else path is its file. */
typedef void (*bundle_handler)(void *userdata, int r, const char *text, const char *path);
/* why NULL: the host serves that user. */
typedef void (*serve_handler)(const char *why, void *userdata);

struct units_ops {
        /* All that is on the host is known. */
        void (*ready)(void *userdata);
        /* An executor ended; the report stays until units_committed(). < 0: masterd cannot be told now; it is
         * part of the next registration, or units_registered() says it again. */
        int (*exited)(const struct exit_report *report, void *userdata);
        /* A unit is about to be started, has ended. */
        void (*starting)(const struct start_order *order, void *userdata);
        void (*ended)(const struct executor_id *id, void *userdata);
        /* Before that, with its report, to put in what was measured of it. May be NULL. */
        void (*account)(struct exit_report *report, void *userdata);
        /* systemd has its unit, whose start may last. May be NULL. */
        void (*taken)(const struct executor_id *id, void *userdata);
        /* It is ready; or why not, though the time for that is over. May be NULL. */
        void (*readiness)(const struct executor_id *id, bool ready, const char *why, void *userdata);
        /* SIGKILL did not end it; text: what is in the way. Told again to every master. */
        void (*unkillable)(const struct executor_id *id, const char *text, void *userdata);
        /* masterd has the end on disk. What else is kept of the executor can go; its exit record goes after
         * it. */
        void (*forgotten)(const struct executor_id *id, void *userdata);
        /* A hook of a job has ended; text: why it failed. */
        void (*hook)(const char *name, uint32_t job, bool ok, const char *text, void *userdata);
        /* Fetches a bundle and calls handler exactly once, later; < 0: it will not. NULL: bundles are
         * refused. */
        int (*bundle)(uint32_t uid, const char *sha256, bundle_handler handler, void *handler_data,
                      void *userdata);
        /* The signal is to go to those processes of a unit that catch it. NULL: there is no way to. */
        int (*signal)(const struct executor_id *id, const char *unit, int signal, void *userdata);
        /* Whether the host serves the user; calls handler exactly once, maybe at once. May be NULL: it does.
         */
        void (*serve)(uint32_t uid, serve_handler handler, void *handler_data, void *userdata);
        /* A job of systemd's, of a unit that is no executor's, is over. */
        void (*other_job)(const char *unit, const char *result, void *userdata);
        /* A unit that is no executor's is gone. */
        void (*other_removed)(const char *unit, void *userdata);
};

/* What systemd has said of the end of a unit. */
struct unit_verdict {
        char result[32], code[16]; /* as in struct exit_report */
        int32_t status;
        bool stopped; /* by somebody's job */
        uint64_t ended_real;
};

/* Where nothing else is said. */
#define ARTIFACTS_KEEP_USEC (UINT64_C(7) * 24 * 3600 * 1000000)

struct units_options {
        const char *root; /* "" in life, see lib/unit/files.h */
        const char *node;
        const struct inventory *inventory;
        uint64_t hook_usec;       /* how long a hook may take */
        uint32_t user_max;        /* executors of one user at a time; 0: no bound */
        uint64_t artifacts_max;   /* bytes of one user's; 0: no bound */
        uint64_t artifacts_usec;  /* how long what a job has left is kept */
        uint64_t unkillable_usec; /* how long after SIGKILL an executor is said not to die; 0: never */
        /* In a thread: of a unit that was made at that time or later. 1; 0: nothing is known. NULL: of none.
         */
        int (*verdict)(const char *unit, uint64_t since_real, struct unit_verdict *ret);
};

/* bus: the system bus; starter: of primus-starter; both attached. Strings and the inventory stay the
 * caller's. */
int units_new(sd_bus *bus, sd_bus *starter, struct worker *worker, const struct units_options *options,
              const struct units_ops *ops, void *userdata, struct units **ret);
/* After worker_free(). */
void units_free(struct units *u);
DEFINE_CLEANUP(struct units *, units_free)

/* How a start went. error NULL: it runs; else a D-Bus error name and message for people. */
struct start_result {
        const char *error, *message;
        sd_id128_t invocation;
        uint64_t started_real;
};
typedef void (*start_handler)(const struct start_result *result, void *userdata);

/* Carries out an order that was admitted (admission.h), calling handler exactly once. Takes the order's
 * contents (zeroed). An order for an executor that is there already joins its start. */
void units_start(struct units *u, uint64_t term, struct start_order *order, start_handler handler,
                 void *userdata);

/* -ENOENT: neither a unit nor a record. */
int units_stop(struct units *u, const struct executor_id *id, uint64_t grace_usec, const char *reason);

/* Kills all processes of an executor for what they do to the host; it has failed, and says why. -ENOENT. */
int units_kill_for(struct units *u, const struct executor_id *id, const char *why);

/* Freezes a unit that runs, or lets it go on; handler is called once, with what systemd says, unless this
 * returns < 0: -ENOENT there is none, -EAGAIN it does not run yet, -EALREADY there is nothing to thaw. */
typedef void (*freeze_handler)(int r, const char *why, void *userdata);
int units_freeze(struct units *u, const struct executor_id *id, bool freeze, freeze_handler handler,
                 void *userdata);

/* Sends a signal to those processes of an executor that catch it (a wrapper that does not would die of it,
 * and the executor with it). -ENOENT: no unit of it runs here. */
int units_signal(struct units *u, const struct executor_id *id, int signal);

/* Gives a unit other limits, or (check) only says whether it could have them. handler is called once, later:
 * error NULL, or a D-Bus error name and a sentence. -ENOENT: no unit of it runs here. */
typedef void (*limits_handler)(const char *error, const char *text, void *userdata);
int units_set_limits(struct units *u, const struct executor_id *id, const struct unit_limits *limits,
                     limits_handler handler, void *userdata);

/* Tells an executor who its peers are: its file is replaced, and its program gets the signal. An epoch that
 * it knows already changes nothing. -ENOENT as above. */
int units_set_rendezvous(struct units *u, const struct executor_id *id, const struct rendezvous_order *order);
/* The entry "epochs" of the registration's a{sv}: for the units, in their order, what their files have. */
int units_append_epochs(struct units *u, sd_bus_message *m);

/* Kills, without grace, everything that is to be stopped when the link is lost (onPartition: stop). Returns
 * how many. */
unsigned units_stop_partitioned(struct units *u);

/* The same for everything, with that much grace: the host is nobody's any more. Without those that are on
 * their way. */
unsigned units_stop_all(struct units *u, uint64_t grace_usec);

void units_committed(struct units *u, const struct executor_id *id);
void units_drop_job(struct units *u, sd_id128_t job_uid, uint32_t job);

/* Calls f for every end that masterd has not committed; its negative result ends the walk and is returned. */
int units_visit_exits(struct units *u, int (*f)(const struct exit_report *x, void *userdata), void *userdata);

/* For the registration: appends a(unit) and a(exit). */
int units_append(struct units *u, sd_bus_message *m);
/* masterd has taken the registration: reports what has ended since it was written. */
void units_registered(struct units *u);
/* The entry "work" of the registration's a{sv}: work directories, by name, of jobs without a unit here. Those
 * whose end this host has missed are dropped by masterd. */
int units_append_work(struct units *u, sd_bus_message *m);

/* What the other parts of agentd may know of an executor that has not ended. */
struct unit_facts {
        struct executor_id id;
        uint32_t uid;
        enum order_kind kind;
        enum ack_mode ack;
        uint32_t pipe_size;
        enum executor_state state;
        uint64_t started_real;
        sd_id128_t invocation;
        bool frozen;
        const char *gpus; /* uuids of its own GPUs, by spaces, until the unit ends; NULL: none */
};
/* There is a unit of that name, or an end of it that is not committed. */
bool units_known(struct units *u, const char *unit);
/* -ENOENT. */
int units_find(struct units *u, const char *unit, struct unit_facts *ret);
typedef int (*units_visitor)(const char *unit, const struct unit_facts *facts, void *userdata);
int units_visit(struct units *u, units_visitor f, void *userdata);
/* Runs a hook of the host's own; see hooks_run(). */
int units_run_hook(struct units *u, const char *name, char *const *env, hook_handler handler, void *userdata);
size_t units_count(const struct units *u);

/* Something went wrong on a GPU: executors that have it as their own say so with their end, unless that is a
 * good one. */
void units_gpu_fault(struct units *u, const char *uuid, const char *text);

/* The client of systemd that the units have; goes with them. */
struct systemd *units_systemd(struct units *u);
