/* SPDX-License-Identifier: Apache-2.0 */
/* Executors that do not die. Invariant: a stuck attempt holds in the scheduler exactly what its record says,
 * and as long as there is one, or an executor that may be one, its host has the hold of that cause. */
#include "masterd/fleet/stuck.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "lib/base/clock.h"
#include "lib/base/cpulist.h"
#include "lib/base/log.h"
#include "masterd/core/manager.h"
#include "masterd/core/record.h"
#include "masterd/fleet/hosts.h"
#include "masterd/life/attempts.h"
#include "masterd/node/gpus.h"
#include "masterd/queue/placement.h"

static struct stuck *find(const struct node *node, const struct executor_id *id) {
        struct stuck *s;

        DL_FOREACH (node->stuck, s)
                if (executor_id_equal(&s->id, id))
                        return s;
        return NULL;
}

/* As they come from the store. */
static int by_id(const struct stuck *a, const struct stuck *b) {
        int role = strcmp(a->id.role, b->id.role);

        if (a->id.job != b->id.job)
                return a->id.job < b->id.job ? -1 : 1;
        if (role != 0)
                return role;
        if (a->id.index != b->id.index)
                return a->id.index < b->id.index ? -1 : 1;
        return (a->id.attempt > b->id.attempt) - (a->id.attempt < b->id.attempt);
}

static void put(struct manager *m, const struct node *node, const struct stuck *s) {
        _cleanup_free_ char *cpus = s->cpus ? cpulist_format(s->cpus->bits, ELEMENTSOF(s->cpus->bits)) : NULL;
        _cleanup_free_ char *amounts = NULL;
        _cleanup_free_ char *gpus = gpus_text(&node->inventory, s->gpus);
        struct stuck_record record;

        if (!gpus || (s->cpus && !cpus) ||
            placement_amounts_text(m, s->amounts, s->n_amounts, &amounts) < 0) {
                (void)sd_event_exit(m->event, log_oom()); /* what is on disk stays right */
                return;
        }
        record = (struct stuck_record){ .node = node->name,
                                        .job = s->id.job,
                                        .role = s->id.role,
                                        .index = s->id.index,
                                        .attempt = s->id.attempt,
                                        .job_uid = s->id.job_uid,
                                        .since_real = s->since_real,
                                        .cpu_milli = s->cpu_milli,
                                        .memory = s->memory,
                                        .gpus = gpus,
                                        .n_ports = (uint32_t)MIN(s->n_ports, (size_t)STORE_PORTS_MAX),
                                        .reason = s->reason,
                                        .shm = s->shm,
                                        .whole = s->whole,
                                        .cpus = cpus ?: "",
                                        .amounts = amounts };
        if (record.n_ports > 0)
                memcpy(record.ports, s->ports, record.n_ports * sizeof(record.ports[0]));
        store_put_stuck(m->store, &record);
        manager_touch(m);
}

static void stuck_done(struct stuck *s) {
        free(s->ports);
        free(s->cpus);
        free(s->amounts);
        free(s->reason);
        free(s);
}

static void stuck_free(struct node *node, struct stuck *s) {
        DL_DELETE(node->stuck, s);
        node->n_stuck--;
        stuck_done(s);
}

/* Its place in the scheduler's books. */
static void place(struct manager *m, struct node *node, struct stuck *s, bool take) {
        struct sched_hold h = { .slot = node->slot,
                                .cpu_milli = (uint32_t)s->cpu_milli,
                                .memory = s->memory,
                                .gpus = s->gpus,
                                .ports = s->ports,
                                .n_ports = (uint32_t)s->n_ports,
                                .shm = s->shm,
                                .cpus = s->cpus,
                                .amounts = s->amounts,
                                .n_amounts = s->n_amounts,
                                .owner = s->whole ? s->id.job : 0 };

        if (placement_hold_beside(m, node, &h, take))
                return;
        /* Then it holds nothing, on a host that takes nothing new. */
        s->cpu_milli = s->memory = s->gpus = s->shm = 0;
        s->n_ports = 0;
        s->n_amounts = 0;
        free(s->cpus);
        s->cpus = NULL;
}

static void drop(struct manager *m, struct node *node, struct stuck *s) {
        store_delete_stuck(m->store, &(struct stuck_record){ .node = node->name,
                                                             .job = s->id.job,
                                                             .role = s->id.role,
                                                             .index = s->id.index,
                                                             .attempt = s->id.attempt });
        manager_touch(m);
        place(m, node, s, false);
        log_full(LOG_NOTICE, 0, &(struct log_fields){ .job = s->id.job, .node = node->name },
                 "%s/%u of job %u, which did not die, is gone from %s", s->id.role, s->id.index, s->id.job,
                 node->name);
        stuck_free(node, s);
}

static void hold(struct manager *m, struct node *node, const struct executor_id *id, const char *text) {
        char reason[LINK_TEXT_MAX + 128];
        unsigned others = node->n_stuck;

        if (find(node, id))
                others--;
        snprintf(reason, sizeof(reason), "%s/%u of job %u does not die: %s", id->role, id->index, id->job,
                 text);
        /* One of them is enough to go by. */
        if (others == 0 || !node->holds[HOLD_STUCK].set)
                (void)hosts_hold_noticed(m, node, HOLD_STUCK, reason);
}

/* The executor leaves its attempt behind. */
static int detach(struct manager *m, struct executor *e, const char *text) {
        struct node *node = e->node;
        struct stuck *s = calloc(1, sizeof(*s));

        if (!s)
                return -ENOMEM;
        *s = (struct stuck){ .id = { .job_uid = e->job->uid,
                                     .job = e->job->number,
                                     .index = e->index,
                                     .attempt = e->attempt },
                             .since_real = now_real(),
                             .cpu_milli = executor_role(e)->cpu_milli,
                             .memory = executor_memory(e),
                             .gpus = e->place.gpus,
                             .n_ports = e->place.n_ports,
                             .shm = executor_role(e)->placement.shm,
                             .whole = e->job->spec->whole_hosts,
                             .n_amounts = e->place.n_amounts,
                             .reason = strdup(text) };
        snprintf(s->id.role, sizeof(s->id.role), "%s", executor_role(e)->name);
        s->ports = calloc(s->n_ports + 1, sizeof(*s->ports));
        s->amounts = calloc(s->n_amounts + 1, sizeof(*s->amounts));
        if (e->place.cpus)
                s->cpus = malloc(sizeof(*s->cpus));
        if (!s->reason || !s->ports || !s->amounts || (e->place.cpus && !s->cpus)) {
                stuck_done(s);
                return -ENOMEM;
        }
        if (s->n_ports > 0)
                memcpy(s->ports, e->place.ports, s->n_ports * sizeof(*s->ports));
        if (s->n_amounts > 0)
                memcpy(s->amounts, e->place.amounts, s->n_amounts * sizeof(*s->amounts));
        if (s->cpus)
                *s->cpus = *e->place.cpus;
        /* On the list first: its host is not empty for a moment. What it holds is taken over in the same
         * turn, so nobody else gets it in between. */
        DL_INSERT_INORDER(node->stuck, s, by_id);
        node->n_stuck++;
        attempts_given_up(m, e, text);
        place(m, node, s, true);
        put(m, node, s);
        return 0;
}

static bool may_overlap(const struct job *j) {
        return j->spec->on_partition == SPEC_PARTITION_REPLACE ||
               (j->state == JOB_STOPPING && j->verdict != JOB_EVENT_REQUEUE);
}

void stuck_told(struct manager *m, struct node *node, const struct executor_id *id, const char *text) {
        struct stuck *s = find(node, id);
        struct executor *e;
        struct job *j;

        if (s) {
                hold(m, node, id, text);
                return;
        }
        e = manager_attempt(m, id);
        if (!e || e->node != node || e->state != EXECUTOR_STOPPING)
                return; /* it went on while the word was under way */
        j = e->job;
        hold(m, node, id, text);
        if (may_overlap(j)) {
                record_event(m, j, "executor-stuck", e,
                             "attempt %u does not die on %s: %s; the job goes on without it", e->attempt,
                             node->name, text);
                if (detach(m, e, text) < 0)
                        (void)log_oom(); /* it is told again */
        } else if (!e->stuck) {
                e->stuck = true;
                record_event(m, j, "executor-stuck", e,
                             "attempt %u does not die on %s: %s; it is waited for (onPartition: %s)",
                             e->attempt, node->name, text,
                             spec_on_partition_to_string((enum spec_on_partition)j->spec->on_partition));
        }
}

bool stuck_reported(struct node *node, const struct executor_id *id) {
        struct stuck *s = find(node, id);

        if (s)
                s->reported = true;
        return s;
}

bool stuck_ended(struct manager *m, struct node *node, const struct executor_id *id) {
        struct stuck *s = find(node, id);

        if (!s)
                return false;
        drop(m, node, s);
        stuck_review(m, node);
        hosts_left(m, node);
        manager_schedule(m);
        return true;
}

void stuck_registered(struct manager *m, struct node *node) {
        struct stuck *s, *next;

        DL_FOREACH_SAFE (node->stuck, s, next)
                if (s->reported)
                        s->reported = false;
                else
                        drop(m, node, s);
        stuck_review(m, node);
}

void stuck_let_go(struct manager *m, struct node *node, const struct inventory *new) {
        struct stuck *s;

        DL_FOREACH (node->stuck, s) {
                place(m, node, s, false);
                s->gpus = gpus_remap(&node->inventory, new, s->gpus);
        }
}

void stuck_take_again(struct manager *m, struct node *node) {
        struct stuck *s;

        DL_FOREACH (node->stuck, s)
                place(m, node, s, true);
}

void stuck_forget(struct manager *m, struct node *node) {
        while (node->stuck)
                drop(m, node, node->stuck);
        stuck_review(m, node);
}

/* One that is being stopped may be one that does not die, of which an agent has yet to tell. */
static bool may_be_stuck(const struct node *node) {
        const struct executor *e;

        DL_FOREACH2 (node->executors, e, node_next)
                if (e->state == EXECUTOR_STOPPING)
                        return true;
        return false;
}

void stuck_review(struct manager *m, struct node *node) {
        if (node->holds[HOLD_STUCK].set && !node->stuck && !may_be_stuck(node))
                (void)hosts_release(m, node, HOLD_STUCK, "what did not die is gone");
}

static int load(void *userdata, const struct stuck_record *r) {
        struct manager *m = userdata;
        struct node *node = nodes_get(&m->nodes, r->node);
        struct stuck *s;

        if (!node)
                return 0;
        s = calloc(1, sizeof(*s));
        if (!s)
                return -ENOMEM;
        *s = (struct stuck){
                .id = { .job_uid = r->job_uid, .job = r->job, .index = r->index, .attempt = r->attempt },
                .since_real = r->since_real,
                .cpu_milli = r->cpu_milli,
                .memory = r->memory,
                .n_ports = r->n_ports,
                .shm = r->shm,
                .whole = r->whole,
                .reason = strdup(r->reason)
        };
        int k;

        snprintf(s->id.role, sizeof(s->id.role), "%s", r->role);
        s->ports = calloc(s->n_ports + 1, sizeof(*s->ports));
        if (s->ports && s->n_ports > 0)
                memcpy(s->ports, r->ports, s->n_ports * sizeof(*s->ports));
        s->gpus = gpus_of_text(&node->inventory, r->gpus);
        DL_INSERT_INORDER(node->stuck, s, by_id);
        node->n_stuck++;
        if (!s->reason || !s->ports || (*r->cpus && !(s->cpus = calloc(1, sizeof(*s->cpus)))))
                return -ENOMEM;
        if (s->cpus && cpulist_parse(r->cpus, s->cpus->bits, ELEMENTSOF(s->cpus->bits)) < 0)
                return -EBADMSG;
        k = placement_amounts_parse(m, r->amounts, &s->amounts, &s->n_amounts);
        if (k < 0)
                return k;
        place(m, node, s, true);
        return 0;
}

void stuck_free_all(struct manager *m) {
        struct node *node, *next;

        HASH_ITER (hh, m->nodes.by_name, node, next)
                while (node->stuck)
                        stuck_free(node, node->stuck);
}

int stuck_load(struct manager *m) {
        return store_load_stuck(m->store, load, m);
}
