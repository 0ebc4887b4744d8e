/* SPDX-License-Identifier: Apache-2.0 */
/* Reads masterd's messages about jobs. Invariant: an output struct is complete or untouched. */
#include "tools/primusctl/bus/job.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/strv.h"
#include "tools/primusctl/cli/cli.h"

void job_properties_done(struct job_properties *p) {
        free(p->name);
        free(p->state);
        free(p->uid);
        *p = (struct job_properties){ 0 };
}

int job_properties_read(sd_bus_message *m, struct job_properties *p) {
        static const struct field fields[] = {
                { "Number", "u", offsetof(struct job_properties, number) },
                { "Owner", "u", offsetof(struct job_properties, owner) },
                { "Attempt", "u", offsetof(struct job_properties, attempt) },
                { "ExitStatus", "u", offsetof(struct job_properties, exit_status) },
                { "Name", "s", offsetof(struct job_properties, name) },
                { "State", "s", offsetof(struct job_properties, state) },
                { "Uid", "s", offsetof(struct job_properties, uid) },
                { "SubmittedAt", "t", offsetof(struct job_properties, submitted) },
                { "StartedAt", "t", offsetof(struct job_properties, started) },
                { "EndedAt", "t", offsetof(struct job_properties, ended) },
        };

        return read_fields(m, fields, ELEMENTSOF(fields), p);
}

int job_exit(const struct job_properties *p) {
        int status = p->state ? job_state_exit(p->state) : -1;

        /* A masterd of before --exit-status says nothing with the state. */
        return status == CLI_KILLED && p->exit_status > 0 && p->exit_status < UINT8_MAX ? (int)p->exit_status
                                                                                        : status;
}

void job_status_done(struct job_status *s) {
        free(s->reason);
        free(s->first_error);
        free(s->visible);
        free(s->visible_to);
        free(s->lockstep);
        free(s->cwd);
        for (size_t i = 0; i < s->n_roles; i++)
                free(s->roles[i].name);
        free(s->roles);
        for (size_t i = 0; i < s->data.n_sources; i++) {
                free(s->data.sources[i].name);
                free(s->data.sources[i].kind);
                free(s->data.sources[i].waiting_for);
        }
        free(s->data.sources);
        strings_free(s->warnings);
        *s = (struct job_status){ 0 };
}

static int read_roles(sd_bus_message *m, void *target) {
        struct job_status *s = target;
        int r = sd_bus_message_enter_container(m, 'v', "a(suuuuuuu)");

        if (r >= 0)
                r = sd_bus_message_enter_container(m, 'a', "(suuuuuuu)");
        if (r < 0)
                return r;
        for (;;) {
                struct role_status role = { 0 }, *bigger;
                const char *name;

                r = sd_bus_message_read(m, "(suuuuuuu)", &name, &role.wanted, &role.running, &role.pending,
                                        &role.succeeded, &role.failed, &role.killed, &role.lost);
                if (r < 0)
                        return r;
                if (r == 0)
                        break;
                bigger = realloc(s->roles, (s->n_roles + 1) * sizeof(*bigger));
                if (!bigger)
                        return -ENOMEM;
                s->roles = bigger;
                role.name = strdup(name);
                if (!role.name)
                        return -ENOMEM;
                s->roles[s->n_roles++] = role;
        }
        r = sd_bus_message_exit_container(m);
        return r < 0 ? r : sd_bus_message_exit_container(m);
}

static int read_sources(sd_bus_message *m, void *target) {
        static const struct field fields[] = {
                { "name", "s", offsetof(struct source_status, name) },
                { "kind", "s", offsetof(struct source_status, kind) },
                { "files", "t", offsetof(struct source_status, files) },
                { "tasks", "t", offsetof(struct source_status, tasks) },
                { "done", "t", offsetof(struct source_status, done) },
                { "failed", "t", offsetof(struct source_status, failed) },
                { "leased", "t", offsetof(struct source_status, leased) },
                { "bytes", "t", offsetof(struct source_status, bytes) },
                { "acked", "t", offsetof(struct source_status, acked) },
                { "records", "t", offsetof(struct source_status, records) },
                { "rate", "d", offsetof(struct source_status, rate) },
                { "recordRate", "d", offsetof(struct source_status, record_rate) },
                { "eta", "t", offsetof(struct source_status, eta) },
                { "scanned", "b", offsetof(struct source_status, scanned) },
                { "waitingFor", "s", offsetof(struct source_status, waiting_for) },
        };
        struct data_status *d = target;
        int r = sd_bus_message_enter_container(m, 'v', "aa{sv}");

        if (r >= 0)
                r = sd_bus_message_enter_container(m, 'a', "a{sv}");
        while (r >= 0 && (r = sd_bus_message_at_end(m, false)) == 0) {
                struct source_status *bigger = realloc(d->sources, (d->n_sources + 1) * sizeof(*bigger));
                if (!bigger)
                        return -ENOMEM;
                d->sources = bigger;
                bigger[d->n_sources++] = (struct source_status){ .eta = UINT64_MAX };
                r = read_fields(m, fields, ELEMENTSOF(fields), &bigger[d->n_sources - 1]);
        }
        if (r >= 0)
                r = sd_bus_message_exit_container(m);
        return r < 0 ? r : sd_bus_message_exit_container(m);
}

static int read_data(sd_bus_message *m, void *target) {
        static const struct field fields[] = {
                { "tasks", "t", offsetof(struct data_status, tasks) },
                { "done", "t", offsetof(struct data_status, done) },
                { "failed", "t", offsetof(struct data_status, failed) },
                { "leased", "t", offsetof(struct data_status, leased) },
                { "bytes", "t", offsetof(struct data_status, bytes) },
                { "read", "t", offsetof(struct data_status, read) },
                { "acked", "t", offsetof(struct data_status, acked) },
                { "records", "t", offsetof(struct data_status, records) },
                { "scanned", "b", offsetof(struct data_status, scanned) },
                { "waiting", "u", offsetof(struct data_status, waiting) },
                { "sources", "aa{sv}", 0, read_sources },
        };
        struct data_status *d = target;
        int r = sd_bus_message_enter_container(m, 'v', "a{sv}");

        if (r >= 0)
                r = read_fields(m, fields, ELEMENTSOF(fields), d);
        if (r < 0)
                return r;
        d->present = true;
        return sd_bus_message_exit_container(m);
}

static int read_array(sd_bus_message *m, void *target) {
        static const struct field fields[] = {
                { "size", "u", offsetof(struct array_status, size) },
                { "waiting", "u", offsetof(struct array_status, waiting) },
                { "running", "u", offsetof(struct array_status, running) },
                { "succeeded", "u", offsetof(struct array_status, succeeded) },
                { "failed", "u", offsetof(struct array_status, failed) },
                { "killed", "u", offsetof(struct array_status, killed) },
                { "firstFailed", "u", offsetof(struct array_status, first_failed) },
                { "of", "u", offsetof(struct array_status, of) },
                { "index", "u", offsetof(struct array_status, index) },
        };
        int r = sd_bus_message_enter_container(m, 'v', "a{sv}");

        if (r >= 0)
                r = read_fields(m, fields, ELEMENTSOF(fields), target);
        return r < 0 ? r : sd_bus_message_exit_container(m);
}

int job_status_read(sd_bus_message *m, struct job_status *ret) {
        static const struct field fields[] = {
                { "reason", "s", offsetof(struct job_status, reason) },
                { "firstError", "s", offsetof(struct job_status, first_error) },
                { "errorComing", "b", offsetof(struct job_status, error_coming) },
                { "visible", "s", offsetof(struct job_status, visible) },
                { "visibleTo", "s", offsetof(struct job_status, visible_to) },
                { "lockstep", "s", offsetof(struct job_status, lockstep) },
                { "cwd", "ay", offsetof(struct job_status, cwd) },
                { "warnings", "as", offsetof(struct job_status, warnings) },
                { "roles", "a(suuuuuuu)", 0, read_roles },
                { "data", "a{sv}", offsetof(struct job_status, data), read_data },
                { "array", "a{sv}", offsetof(struct job_status, array), read_array },
        };
        _cleanup_(job_status_done) struct job_status s = { 0 };
        int r = read_fields(m, fields, ELEMENTSOF(fields), &s);

        if (r < 0)
                return r;
        *ret = s;
        s = (struct job_status){ 0 };
        return 0;
}

void executor_done(struct executor *e) {
        free(e->role);
        free(e->state);
        free(e->node);
        free(e->unit);
        free(e->result);
        free(e->reason);
        free(e->ports.items);
        strings_free(e->gpus);
        *e = (struct executor){ 0 };
}

void executors_free(struct executor *e, size_t n) {
        for (size_t i = 0; e && i < n; i++)
                executor_done(&e[i]);
        free(e);
}

static int read_executor(sd_bus_message *m, struct executor *e) {
        static const struct field fields[] = {
                { "result", "s", offsetof(struct executor, result) },
                { "reason", "s", offsetof(struct executor, reason) },
                { "status", "i", offsetof(struct executor, status) },
                { "memoryPeak", "t", offsetof(struct executor, memory_peak) },
                { "memory", "t", offsetof(struct executor, memory) },
                { "cpu", "t", offsetof(struct executor, cpu) },
                { "readBytes", "t", offsetof(struct executor, read_bytes) },
                { "writeBytes", "t", offsetof(struct executor, write_bytes) },
                { "gpus", "as", offsetof(struct executor, gpus) },
                { "restarts", "u", offsetof(struct executor, restarts) },
                { "ports", "au", offsetof(struct executor, ports) },
                { "dataTasks", "u", offsetof(struct executor, data_tasks) },
                { "dataWait", "t", offsetof(struct executor, data_wait) },
                { "trainerWait", "t", offsetof(struct executor, trainer_wait) },
                { "dataIdle", "b", offsetof(struct executor, data_idle) },
        };
        const char *role, *state, *node, *unit;
        int r;

        r = sd_bus_message_read(m, "suusssutt", &role, &e->index, &e->attempt, &state, &node, &unit, &e->rank,
                                &e->started, &e->ended);
        if (r < 0)
                return r;
        e->role = strdup(role);
        e->state = strdup(state);
        e->node = strdup(node);
        e->unit = strdup(unit);
        if (!e->role || !e->state || !e->node || !e->unit)
                return -ENOMEM;
        e->status = INT32_MIN;
        e->data_wait = UINT64_MAX;
        r = read_fields(m, fields, ELEMENTSOF(fields), e);
        e->has_status = e->status != INT32_MIN;
        e->has_data = e->data_wait != UINT64_MAX;
        return r;
}

int executors_read(sd_bus_message *m, struct executor **ret, size_t *ret_n) {
        struct executor *list = NULL;
        size_t n = 0, allocated = 0;
        int r;

        r = sd_bus_message_enter_container(m, 'a', "(suusssutta{sv})");
        if (r < 0)
                return r;
        while ((r = sd_bus_message_enter_container(m, 'r', "suusssutta{sv}")) > 0) {
                if (n == allocated) {
                        struct executor *bigger =
                                realloc(list, (allocated ? allocated * 2 : 16) * sizeof(*bigger));
                        if (!bigger) {
                                r = -ENOMEM;
                                break;
                        }
                        list = bigger;
                        allocated = allocated ? allocated * 2 : 16;
                }
                list[n] = (struct executor){ 0 };
                r = read_executor(m, &list[n++]);
                if (r >= 0)
                        r = sd_bus_message_exit_container(m);
                if (r < 0)
                        break;
        }
        if (r >= 0)
                r = sd_bus_message_exit_container(m);
        if (r < 0) {
                executors_free(list, n);
                return r;
        }
        *ret = list;
        *ret_n = n;
        return 0;
}

char *executor_result(const struct executor *e, char *buf, size_t size) {
        const struct attempt_end end = { e->state, e->result, e->reason, e->has_status, e->status };

        return attempt_end_text(&end, buf, size);
}
