/* SPDX-License-Identifier: Apache-2.0 */
/* What masterd tells about a job, read from its messages into structs. Strings in a struct are its own;
 * X_done releases them. Readers return 0 or negative errno and ignore keys that they do not know. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <systemd/sd-bus.h>

#include "lib/json/ends.h"
#include "tools/primusctl/bus/fields.h"

struct job_properties {
        uint32_t number, owner, attempt, exit_status;
        char *name, *state, *uid;
        uint64_t submitted, started, ended;
};
void job_properties_done(struct job_properties *p);
/* The answer of org.freedesktop.DBus.Properties.GetAll, or (partial: only what changed) the a{sv} of
 * PropertiesChanged. */
int job_properties_read(sd_bus_message *m, struct job_properties *p);
/* What a command about the job exits with; -1: it has not ended. */
int job_exit(const struct job_properties *p);

struct role_status {
        char *name;
        uint32_t wanted, running, pending, succeeded, failed, killed, lost;
};

struct source_status {
        char *name, *kind;
        uint64_t files, tasks, done, failed, leased, bytes, acked, records;
        double rate, record_rate; /* a second */
        uint64_t eta;             /* UINT64_MAX: not known */
        bool scanned;
        char *waiting_for; /* "" or NULL: nothing */
};

struct data_status {
        bool present, scanned;
        uint64_t tasks, done, failed, leased, bytes, read, acked, records;
        uint32_t waiting; /* executors that have no task and want one */
        struct source_status *sources;
        size_t n_sources;
};

/* It is an array (size > 0), or an element of one (of > 0). first_failed: where failed > 0, the lowest index
 * of them.
 */
struct array_status {
        uint32_t size, waiting, running, succeeded, failed, killed, of, index, first_failed;
};

struct job_status {
        struct array_status array;
        char *reason, *first_error, *cwd;
        char *visible, *visible_to; /* who may look at it, as a word and in words; NULL of older masters */
        char *lockstep;             /* NULL: it is not */
        bool error_coming;          /* the last words of one that failed are still awaited */
        struct role_status *roles;
        size_t n_roles;
        struct data_status data;
        char **warnings; /* NULL-ended or NULL */
};
void job_status_done(struct job_status *s);
int job_status_read(sd_bus_message *m, struct job_status *ret); /* the answer of GetStatus */

struct executor {
        char *role, *state, *node, *unit;
        uint32_t index, attempt, rank, restarts;
        uint64_t started, ended;
        char *result, *reason;
        int32_t status;
        bool has_status;
        uint64_t memory_peak, memory, cpu, read_bytes, write_bytes; /* memory: now, of one that runs */
        struct number_list ports;
        char **gpus; /* NULL-ended or NULL */
        bool has_data, data_idle;
        uint32_t data_tasks;
        uint64_t data_wait, trainer_wait; /* its trainer waited for data; it was busy with data */
};
void executor_done(struct executor *e);
void executors_free(struct executor *e, size_t n);
int executors_read(sd_bus_message *m, struct executor **ret, size_t *ret_n); /* the answer of ListExecutors */

/* How an attempt ended, in words: "exit 3", "signal SEGV", "killed: out of memory", the reason otherwise; ""
 * while it runs. Into buf, which is returned. */
char *executor_result(const struct executor *e, char *buf, size_t size);
