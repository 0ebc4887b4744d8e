/* SPDX-License-Identifier: Apache-2.0 */
/* The signals of org.primus.Master1: what has become of jobs, executors and hosts. Invariant: a signal leaves
 * only when what it tells is on disk, or would be found out again (RUNNING). */
#include "masterd/core/notices.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "masterd/caller/caller.h"
#include "masterd/core/changes.h"
#include "masterd/core/listeners.h"
#include "masterd/core/manager.h"

char *notice_job_path(uint32_t number, char buf[static 64]) {
        snprintf(buf, 64, MASTER_JOB_PREFIX "/%u", number);
        return buf;
}

struct notice {
        uint32_t job;
        uint32_t index, attempt;
        char role[33], state[16], name[65];
};

static struct notice *notice_alloc(const char *name) {
        struct notice *c = calloc(1, sizeof(*c));

        if (c && name)
                snprintf(c->name, sizeof(c->name), "%s", name);
        return c;
}

void notice_properties(struct manager *m, const char *path, const char *interface, const char *name,
                       const char *other) {
        sd_bus *const buses[] = { m->bus, m->far };

        for (size_t i = 0; i < ELEMENTSOF(buses); i++)
                if (buses[i])
                        (void)sd_bus_emit_properties_changed(buses[i], path, interface, name, other, NULL);
}

static void signal_job(struct manager *m, const char *member, const struct notice *c) {
        sd_bus *const buses[] = { m->bus, m->far };
        bool over = *c->state;
        char path[64];

        for (size_t i = 0; i < ELEMENTSOF(buses); i++)
                if (buses[i])
                        (void)sd_bus_emit_signal(buses[i], MASTER_PATH, MASTER_MANAGER, member,
                                                 over ? "uos" : "uo", c->job, notice_job_path(c->job, path),
                                                 c->state);
}

static void note_job(struct manager *m, uint32_t number) {
        changes_job(m->changes, number);
        m->up->changed(m);
}

static void run_job_new(struct manager *m, void *data) {
        struct notice *c = data;

        note_job(m, c->job);
        signal_job(m, "JobNew", c);
        free(c);
}

void notice_job_new(struct manager *m, const struct job *j) {
        struct notice *c = notice_alloc(NULL);

        if (!c)
                return;
        c->job = j->number;
        (void)manager_effect(m, run_job_new, c);
}

static void run_job_changed(struct manager *m, void *data) {
        struct notice *c = data;
        char path[64];

        note_job(m, c->job);
        if (manager_job(m, c->job))
                notice_properties(m, notice_job_path(c->job, path), MASTER_JOB, "State", "ExitStatus");
        free(c);
}

void notice_job_changed(struct manager *m, struct job *j) {
        struct notice *c = notice_alloc(NULL);

        if (!c)
                return;
        c->job = j->number;
        if (j->state == JOB_RUNNING && m->bus)
                run_job_changed(m, c);
        else
                (void)manager_effect(m, run_job_changed, c);
}

static void run_job_removed(struct manager *m, void *data) {
        struct notice *c = data;

        note_job(m, c->job);
        signal_job(m, "JobRemoved", c);
        free(c);
}

void notice_job_removed(struct manager *m, struct job *j) {
        struct notice *c = notice_alloc(NULL);

        if (!c)
                return;
        c->job = j->number;
        snprintf(c->state, sizeof(c->state), "%s", job_state_to_string(j->state));
        (void)manager_effect(m, run_job_removed, c);
}

static void send_executor_changed(struct manager *m, const char *watcher, const void *data) {
        const struct notice *c = data;
        sd_bus_message *signal = NULL;
        sd_bus *bus = strncmp(watcher, CALLER_FAR, strlen(CALLER_FAR)) == 0 ? m->far : m->bus;
        char path[64];
        int r = !bus ? -ENOTCONN
                     : sd_bus_message_new_signal(bus, &signal, notice_job_path(c->job, path), MASTER_JOB,
                                                 "ExecutorChanged");

        if (r >= 0)
                r = sd_bus_message_set_destination(signal, watcher);
        if (r >= 0)
                r = sd_bus_message_append(signal, "suuss", c->role, c->index, c->attempt, c->state, c->name);
        if (r >= 0)
                (void)sd_bus_send(bus, signal, NULL);
        sd_bus_message_unref(signal);
}

/* Not broadcast: what a job consists of is for those who may see into it. */
static void run_executor_changed(struct manager *m, void *data) {
        struct notice *c = data;
        struct job *j = manager_job(m, c->job);

        note_job(m, c->job);
        if (j)
                m->up->tell_watchers(j, send_executor_changed, c, sizeof(*c));
        free(c);
}

void notice_executor_changed(struct manager *m, struct executor *e) {
        struct notice *c = notice_alloc(e->node ? e->node->name : "");

        if (!c)
                return;
        c->job = e->job->number;
        c->index = e->index;
        c->attempt = e->attempt;
        snprintf(c->role, sizeof(c->role), "%s", executor_role(e)->name);
        snprintf(c->state, sizeof(c->state), "%s", executor_state_to_string(e->state));
        /* That it runs is the agent's to know, and told again by its registration: nothing to wait for. */
        if (e->state == EXECUTOR_RUNNING && m->bus)
                run_executor_changed(m, c);
        else
                (void)manager_effect(m, run_executor_changed, c);
}

static void run_node_changed(struct manager *m, void *data) {
        _cleanup_free_ char *path = NULL;
        struct notice *c = data;

        changes_node(m->changes, c->name);
        m->up->changed(m);
        if (nodes_get(&m->nodes, c->name) && sd_bus_path_encode(MASTER_NODE_PREFIX, c->name, &path) >= 0)
                notice_properties(m, path, MASTER_NODE, "State", "Conditions");
        free(c);
}

void notice_node_changed(struct manager *m, struct node *node) {
        struct notice *c = notice_alloc(node->name);

        if (c)
                (void)manager_effect(m, run_node_changed, c);
}
