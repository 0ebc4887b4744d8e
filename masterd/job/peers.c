/* SPDX-License-Identifier: Apache-2.0 */
/* Who else is in the job, and where. Invariant: what is kept agrees with the placement, since every change of
 * it (a state that is entered or left with a place, a node's address) drops it. */
#include "masterd/job/peers.h"

#include <endian.h>
#include <string.h>
#include <utlist.h>

#include "masterd/job/job.h"
#include "masterd/job/rendezvous.h"
#include "masterd/node/network.h"
#include "masterd/node/node.h"

struct job_peers {
        struct rendezvous_job job;
        struct rendezvous_member *members;
        struct rendezvous_role *roles;
        char uid[SD_ID128_STRING_MAX];
        struct rendezvous *rendezvous;
};

static void peers_free(struct job_peers *p) {
        if (!p)
                return;
        rendezvous_free(p->rendezvous);
        free(p->members);
        free(p->roles);
        free(p);
}
DEFINE_CLEANUP(struct job_peers *, peers_free)

void job_peers_drop(struct job *j) {
        peers_free(TAKE_PTR(j->peers));
}

/* One that has ended, or comes back in a moment, keeps its place in the rank order: most come back where they
 * were. */
static bool has_place(const struct executor *e) {
        if (!e->node || e->attempt == 0)
                return false;
        return e->state != EXECUTOR_PENDING ||
               (e->placed_real >= e->job->attempt_real && e->node->state != NODE_LOST && !e->bounced);
}

static uint64_t mix(uint64_t h, const void *data, size_t size) {
        const uint8_t *p = data;

        for (size_t i = 0; i < size; i++) /* FNV-1a */
                h = (h ^ p[i]) * UINT64_C(0x100000001b3);
        return h;
}

static uint64_t mix_u32(uint64_t h, uint32_t v) {
        v = htole32(v);
        return mix(h, &v, sizeof(v));
}

uint64_t job_membership(const struct job *j) {
        uint64_t h = UINT64_C(0xcbf29ce484222325);

        for (uint32_t i = 0; i < j->n_executors; i++) {
                const struct executor *e = j->executors[i];
                if (!has_place(e))
                        continue;
                h = mix(h, executor_role(e)->name, strlen(executor_role(e)->name) + 1);
                h = mix_u32(h, e->index);
                h = mix(h, e->node->name, strlen(e->node->name) + 1);
                h = mix(h, e->node->address.bytes, sizeof(e->node->address.bytes));
                h = mix_u32(h, (uint32_t)e->place.n_ports);
                for (size_t k = 0; k < e->place.n_ports; k++)
                        h = mix_u32(h, e->place.ports[k]);
        }
        for (size_t i = 0; i < j->spec->n_roles; i++)
                h = mix_u32(h, j->spec->roles[i].num);
        return h;
}

static int peers_new(const struct job *j, struct job_peers **ret) {
        _cleanup_(peers_free_p) struct job_peers *p = calloc(1, sizeof(*p));
        _cleanup_free_ const struct node **nodes = calloc(j->n_executors + 1, sizeof(*nodes));
        struct addr_cidr network;
        bool chosen;
        int r;

        if (!p || !nodes)
                return -ENOMEM;
        p->members = calloc(j->n_executors, sizeof(*p->members));
        p->roles = calloc(j->spec->n_roles, sizeof(*p->roles));
        if (!p->members || !p->roles)
                return -ENOMEM;
        for (size_t i = 0; i < j->spec->n_roles; i++)
                p->roles[i] = (struct rendezvous_role){ j->spec->roles[i].name,
                                                        role_category_to_string(j->spec->roles[i].category),
                                                        j->spec->roles[i].num };
        for (uint32_t i = 0; i < j->n_executors; i++) {
                const struct executor *e = j->executors[i];
                if (has_place(e))
                        nodes[i] = e->node;
        }
        chosen = network_choose(nodes, j->n_executors, &network);
        for (uint32_t i = 0; i < j->n_executors; i++) {
                const struct executor *e = j->executors[i];
                /* An executor that has ended keeps its place in the rank order. */
                bool placed = has_place(e);
                p->members[i] = (struct rendezvous_member){ e->role,
                                                            e->index,
                                                            placed ? e->node->name : NULL,
                                                            !placed  ? NULL
                                                            : chosen ? network_address(e->node, &network)
                                                                     : &e->node->address,
                                                            e->place.ports,
                                                            e->place.n_ports };
        }
        p->job = (struct rendezvous_job){ .name = j->name,
                                          .uid = sd_id128_to_string(j->uid, p->uid),
                                          .submitted_real = j->submitted_real,
                                          .roles = p->roles,
                                          .n_roles = j->spec->n_roles,
                                          .members = p->members,
                                          .n_members = j->n_executors };
        r = rendezvous_new(&p->job, &p->rendezvous);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(p);
        return 0;
}

int job_peers_environment(struct executor *e, char ***ret) {
        struct job *j = e->job;

        if (!j->peers) {
                int r = peers_new(j, &j->peers);
                if (r < 0)
                        return r;
        }
        return rendezvous_environment(j->peers->rendezvous, e->rank, ret);
}

uint64_t job_memory_on_node(const struct executor *e) {
        const struct executor *other;
        uint64_t sum = 0;

        DL_FOREACH2 (e->node->executors, other, node_next) {
                if (other->job != e->job)
                        continue;
                if (executor_memory(other) == 0)
                        return 0;
                sum += executor_memory(other);
        }
        return sum;
}

uint64_t job_cpu_on_node(const struct executor *e) {
        const struct executor *other;
        uint64_t sum = 0;

        DL_FOREACH2 (e->node->executors, other, node_next) {
                if (other->job != e->job)
                        continue;
                if (executor_role(other)->cpu_milli == 0)
                        return 0;
                sum += (uint64_t)executor_role(other)->cpu_milli * 1000;
        }
        return sum;
}

uint64_t job_tasks_on_node(const struct executor *e) {
        const struct executor *other;
        uint64_t sum = 0;

        DL_FOREACH2 (e->node->executors, other, node_next)
                if (other->job == e->job)
                        sum += executor_role(other)->limits.tasks;
        return sum;
}

uint32_t job_weight_on_node(const struct executor *e) {
        const struct executor *other;
        bool given = false;
        uint64_t sum = 0;

        DL_FOREACH2 (e->node->executors, other, node_next) {
                uint32_t weight = executor_role(other)->limits.cpu_weight;
                if (other->job != e->job)
                        continue;
                given |= weight > 0;
                sum += weight > 0 ? weight : 100;
        }
        return given ? (uint32_t)MIN(sum, SPEC_WEIGHT_CGROUP_MAX) : 0;
}

uint64_t job_shm_on_node(const struct executor *e) {
        const struct executor *other;
        uint64_t sum = 0;

        DL_FOREACH2 (e->node->executors, other, node_next)
                if (other->job == e->job)
                        sum += executor_role(other)->placement.shm;
        return sum;
}

uint64_t job_gpus_on_node(const struct executor *e) {
        const struct executor *other;
        uint64_t mask = 0;

        DL_FOREACH2 (e->node->executors, other, node_next)
                if (other->job == e->job)
                        mask |= other->place.gpus;
        return mask;
}
