/* SPDX-License-Identifier: Apache-2.0 */
/* Memory → records. Invariant: a record holds everything that recover/load.c needs to build the same memory
 * again.
 */
#include "masterd/core/record.h"

#include <stdarg.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/cpulist.h"
#include "lib/base/log.h"
#include "lib/base/utf8.h"
#include "masterd/node/gpus.h"
#include "masterd/sched/sched.h"

void record_node(struct manager *m, const struct node *node) {
        char boot[SD_ID128_STRING_MAX], address[ADDR_TEXT_MAX], from[ADDR_TEXT_MAX];
        struct node_record record = {
                .name = node->name,
                .serial = node->serial,
                .epoch = node->epoch,
                .boot_id = sd_id128_to_string(node->boot_id, boot),
                .state = (uint8_t)node->state,
                .address = node->address.family ? addr_format(&node->address, address) : "",
                .cpus = node->inventory.cpus,
                .memory = node->inventory.memory,
                .joined_real = node->joined.real,
                .seen_real = node->seen.real,
                .joined_from = node->joined.from.family ? addr_format(&node->joined.from, from) : "",
                .joined_by = node->joined.by,
                .taken_over = node->joined.taken_over,
                .port_first = node->inventory.port_first,
                .port_last = node->inventory.port_last,
        };
        _cleanup_free_ char *gpus = gpus_text(&node->inventory, UINT64_MAX);

        if (!gpus) {
                (void)sd_event_exit(m->event, log_oom()); /* what is on disk stays right */
                return;
        }
        record.gpus = gpus;
        store_put_node(m->store, &record);
        manager_touch(m);
}

/* NAME=VALUE, each ended by NUL; allocated. */
static int join_env(const struct job *j, struct store_bytes *ret) {
        size_t size = 0, n = 0;
        char *env;

        for (char **p = j->given.env; p && *p; p++)
                size += strlen(*p) + 1;
        env = malloc(size + 1);
        if (!env)
                return -ENOMEM;
        for (char **p = j->given.env; p && *p; p++) {
                memcpy(env + n, *p, strlen(*p) + 1);
                n += strlen(*p) + 1;
        }
        *ret = (struct store_bytes){ env, n };
        return 0;
}

// clang-format off
/* A new field that is kept is a member of the record, and a row here: the job's field, the record's. */
#define KEPT(row) \
        row(verdict, verdict) \
        row(order_step, order_step) \
        row(attempt_real, attempt_real) \
        row(requeue.begun, requeueing) \
        row(requeue.n, requeues) \
        row(requeue.asked, asked) \
        row(requeue.leave_real, leave_real) \
        row(requeue.by, leave_for) \
        row(requeue.why, leave_why) \
        row(slot.since_real, slot_real) \
        row(queue.waits_real, waits_real) \
        row(queue.not_before_real, not_before_real) \
        row(queue.placeable_real, placeable_real) \
        row(depend.met, after_met) \
        row(array_since, array_since) \
        row(given.had_env, had_env) \
        row(given.had_secrets, had_secrets) \
        row(change.limits_real, limits_real) \
        row(rendezvous.epoch, epoch) \
        row(rendezvous.membership, membership) \
        row(rolling.since_real, rolling_real) \
        row(rolling.batch, rolling_batch) \
        row(rolling.index, rolling_index) \
        row(held.saving, saving) \
        row(held.since_real, held_real) \
        row(held.froze_real, froze_real) \
        row(held.by, held_by) \
        row(held.mode, held_mode) \
        row(kill_grace, kill_grace) \
        row(kill_status, kill_status) \
        row(parent, parent) \
        row(with_parent, with_parent)
// clang-format on

#define OF_JOB(field, kept) ret->kept = (__typeof__(ret->kept))j->field;
#define TO_JOB(field, kept) j->field = (__typeof__(j->field))data->kept;

void record_state_of_job(const struct job *j, struct job_state_record *ret) {
        *ret = (struct job_state_record){};
        KEPT(OF_JOB)
        snprintf(ret->rolling_role, sizeof(ret->rolling_role), "%s", j->rolling.role);
}

void record_state_to_job(const struct job_state_record *data, struct job *j) {
        KEPT(TO_JOB)
        snprintf(j->rolling.role, sizeof(j->rolling.role), "%s", data->rolling_role);
        if (j->queue.waits_real == 0)
                j->queue.waits_real = j->submitted_real;
}

void record_job(struct manager *m, const struct job *j, bool body) {
        struct job_body_record b = {
                .cwd = { j->given.cwd, strlen(j->given.cwd) },
                .warnings = { j->warnings, j->warnings ? strlen(j->warnings) : 0 },
                .bundle = j->given.bundle,
        };
        struct job_record record = {
                .number = j->number,
                .uid = j->uid,
                .owner = j->owner,
                .name = j->name,
                .state = (uint8_t)j->state,
                .attempt = j->attempt,
                .submitted_real = j->submitted_real,
                .started_real = j->started_real,
                .ended_real = j->ended_real,
                .reason = j->reason,
                .first_error = j->first_error,
                .array = j->element.array,
                .index = j->element.index,
                .body = body ? &b : NULL,
        };
        _cleanup_free_ char *config = NULL;

        record_state_of_job(j, &record.machine);
        if (body && (spec_effective(j->spec, &config) < 0 || join_env(j, &b.env) < 0)) {
                /* A job without its body could not be loaded any more. */
                (void)sd_event_exit(m->event, log_oom());
                return;
        }
        if (body)
                b.config = (struct store_bytes){ config, strlen(config) };
        store_put_job(m->store, &record);
        free((void *)b.env.data);
        manager_touch(m);
}

struct executor_record record_of_executor(const struct executor *e) {
        struct executor_record record = {
                .job = e->job->number,
                .role = executor_role(e)->name,
                .index = e->index,
                .attempt = e->attempt,
                .state = (uint8_t)e->state,
                .node = e->node ? e->node->name : "",
                .rank = e->rank,
                .n_ports = (uint32_t)MIN(e->place.n_ports, (size_t)STORE_PORTS_MAX),
                .invocation = e->invocation,
                .epoch = e->node ? e->node->epoch : 0,
                .placed_real = e->placed_real,
                .started_real = e->started_real,
                .ended_real = e->ended_real,
                .result = e->end.result,
                .status = e->end.status,
                .stop_requested = e->orders.stopped,
                .memory_peak = e->end.memory_peak,
                .cpu_usec = e->end.cpu_usec,
                .io_read = e->end.io_read,
                .io_write = e->end.io_write,
                .reason = e->reason,
                .fate = (uint8_t)e->end.fate,
                .memory = e->memory,
        };

        if (record.n_ports > 0)
                memcpy(record.ports, e->place.ports, record.n_ports * sizeof(record.ports[0]));
        return record;
}

char *executor_gpus(const struct executor *e) {
        return e->node ? gpus_text(&e->node->inventory, e->place.gpus) : strdup("");
}

void record_executor(struct manager *m, const struct executor *e) {
        struct executor_record record = record_of_executor(e);
        _cleanup_free_ char *cpus =
                e->place.cpus ? cpulist_format(e->place.cpus->bits, ELEMENTSOF(e->place.cpus->bits)) : NULL;
        _cleanup_free_ char *gpus = executor_gpus(e);

        if ((e->place.cpus && !cpus) || !gpus) {
                (void)sd_event_exit(m->event, log_oom()); /* what is on disk stays right */
                return;
        }
        record.cpus = cpus ?: "";
        record.gpus = gpus;
        store_put_executor(m->store, &record);
        manager_touch(m);
}

void record_event(struct manager *m, struct job *j, const char *kind, const struct executor *e,
                  const char *format, ...) {
        char formatted[1024], text[sizeof(formatted)];
        struct event_record record = { .job = j->number,
                                       .seq = ++j->event_seq,
                                       .time_real = now_real(),
                                       .kind = kind,
                                       .role = e ? executor_role(e)->name : "",
                                       .index = e ? e->index : 0,
                                       .text = text };
        va_list ap;

        va_start(ap, format);
        vsnprintf(formatted, sizeof(formatted), format, ap);
        va_end(ap);
        /* Cut in the middle of a character, it could not be shown over D-Bus any more. */
        (void)utf8_clean(formatted, strlen(formatted), text, sizeof(text));
        store_put_event(m->store, &record);
        manager_touch(m);
        if (e)
                log_full(LOG_INFO, 0,
                         &(struct log_fields){ .job = j->number,
                                               .role = record.role,
                                               .node = e->node ? e->node->name : NULL },
                         "Job %u %s/%u: %s", j->number, record.role, e->index, text);
        else
                log_full(LOG_INFO, 0, &(struct log_fields){ .job = j->number }, "Job %u: %s", j->number,
                         text);
}

void record_secrets(struct manager *m, const struct job *j) {
        for (size_t i = 0; i < j->given.n_secrets; i++)
                store_put_secret(m->store, &(struct secret_record){ .job = j->number,
                                                                    .name = j->given.secrets[i].name,
                                                                    .data = { j->given.secrets[i].data,
                                                                              j->given.secrets[i].size } });
}
