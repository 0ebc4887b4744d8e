/* SPDX-License-Identifier: Apache-2.0 */
/* Explanations by trial. Invariant: a suggestion is one with which the gang was placed on a copy a moment
 * ago. */
#include "masterd/queue/why.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/format.h"
#include "masterd/core/manager.h"
#include "masterd/job/array.h"
#include "masterd/node/node.h"
#include "masterd/queue/placement-parts.h"
#include "masterd/queue/serving.h"
#include "masterd/queue/shapes.h"

#define HOSTS_MAX 20000u /* looked at one by one */
#define MIB (UINT64_C(1) << 20)

struct asking {
        struct sched *copy;
        struct gang_data *gang;
        struct job *job;
        struct why *why;
        uint32_t shape; /* for which there is no room */
};

/* ---- trials ---- */

/* Places it on the copy and gives it back. Returns how many executors got a place, 0: none. */
static size_t try_gang(struct asking *a, const struct sched_shape *shapes, size_t n,
                       struct sched_no_fit *ret_why) {
        struct sched_gang gang = a->gang->gang;
        struct sched_placement found = {};
        size_t placed;

        gang.shapes = shapes;
        gang.n_shapes = n;
        if (sched_place(a->copy, &gang, &found, ret_why) != 0)
                return 0;
        placed = found.n;
        for (size_t i = 0; i < found.n; i++)
                sched_release(a->copy, &found.items[i].hold);
        sched_placement_done(&found);
        return placed;
}

/* The whole gang, with the shape in question as it is in h. */
static bool fits_with(struct asking *a, const struct sched_shape *h) {
        struct sched_shape shapes[SCHED_SHAPES_MAX];

        memcpy(shapes, a->gang->shapes, a->gang->n * sizeof(*shapes));
        shapes[a->shape] = *h;
        return try_gang(a, shapes, a->gang->n, NULL) > 0;
}

/* ---- hosts ---- */

static void count_host(struct why *w, const char *text) {
        size_t i = 0;

        while (i < w->n_groups && strcmp(w->groups[i].text, text) != 0)
                i++;
        if (i == w->n_groups) {
                if (w->n_groups == WHY_GROUPS_MAX)
                        i = WHY_GROUPS_MAX - 1; /* the rest of the kinds counts as the last one */
                else
                        snprintf(w->groups[w->n_groups++].text, WHY_GROUP_TEXT_MAX, "%s", text);
        }
        w->groups[i].hosts++;
}

static const char *resource_name(uint32_t bits) {
        static const char *const names[SCHED_RESOURCES] = {
                "CPU",
                "memory",
                "GPUs",
                "ports",
                "room for another executor",
                NULL,
                "shared memory",
                "whole CPUs (or CPUs and GPUs of one NUMA node)",
                "licences",
                NULL,
                NULL,
        };
        unsigned bit = bits ? (unsigned)__builtin_ctz(bits) : SCHED_RESOURCES;

        return bit < ELEMENTSOF(names) ? names[bit] : NULL;
}

static bool among(const uint32_t *slots, size_t n, uint32_t slot) {
        for (size_t i = 0; i < n; i++)
                if (slots[i] == slot)
                        return true;
        return false;
}

static void look_at_host(struct asking *a, const struct node *node) {
        struct sched_shape h = a->gang->shapes[a->shape];
        struct sched_no_fit why = {};
        char text[WHY_GROUP_TEXT_MAX];
        const char *lacks;
        size_t placed;

        if (!node_usable(node) || !node->in_sched) {
                snprintf(text, sizeof(text), "%s", node_shown_state(node));
                count_host(a->why, text);
                return;
        }
        if (h.restricted && !among(h.allowed, h.n_allowed, node->slot)) {
                count_host(a->why, "not among the job's hosts");
                return;
        }
        if (!serving_may(node, a->job->owner)) {
                count_host(a->why, "not for this user (agentd.conf there)");
                return;
        }
        if (among(h.excluded, h.n_excluded, node->slot)) {
                count_host(a->why, node->blame && blame_shunned(node->blame, a->job->owner, now_real()) > 0
                                           ? "kept from your jobs, of which too many failed there"
                                           : "avoided by the job");
                return;
        }
        h.restricted = true;
        h.allowed = &node->slot;
        h.n_allowed = 1;
        h.min = MAX(h.per_node, 1u);
        h.max = MAX(h.max, h.min);
        h.near = h.apart = 0; /* the others are not there */
        placed = try_gang(a, &h, 1, &why);
        lacks = resource_name(why.scarce);
        if (placed > 0)
                snprintf(text, sizeof(text), "with room for %zu", placed);
        else if (why.never)
                snprintf(text, sizeof(text), "too small even when empty%s%s", lacks ? ", short of " : "",
                         lacks ?: "");
        else if (why.nodes == 0 && why.unmatched > 0)
                snprintf(text, sizeof(text), "not as its constraints want it");
        else if (why.scarce == SCHED_WHOLE_HOSTS)
                snprintf(text, sizeof(text), "not empty");
        else if (lacks)
                snprintf(text, sizeof(text), "short of %s now", lacks);
        else
                snprintf(text, sizeof(text), "not fit for it");
        count_host(a->why, text);
}

static int more_hosts(const void *a, const void *b) {
        const struct why_group *x = a, *y = b;

        return x->hosts > y->hosts ? -1 : x->hosts < y->hosts;
}

static void look_at_hosts(struct manager *m, struct asking *a) {
        struct node *node, *next;
        uint32_t n = 0;

        HASH_ITER (hh, m->nodes.by_name, node, next)
                if (n++ < HOSTS_MAX)
                        look_at_host(a, node);
        qsort(a->why->groups, a->why->n_groups, sizeof(a->why->groups[0]), more_hosts);
}

/* ---- suggestions ---- */

_printf_(2, 3) static void suggest(struct asking *a, const char *format, ...) {
        struct why *w = a->why;
        char text[160];
        va_list ap;

        if (w->n_suggestions == WHY_SUGGESTIONS_MAX)
                return;
        va_start(ap, format);
        vsnprintf(text, sizeof(text), format, ap);
        va_end(ap);
        snprintf(w->suggestions[w->n_suggestions++], sizeof(w->suggestions[0]), "%s %s", w->role, text);
}

/* The greatest value in [1, most] with which it fits, or 0. set() puts it into the shape. */
static uint64_t greatest(struct asking *a, uint64_t most,
                         void (*set)(struct sched_shape *h, uint64_t value)) {
        uint64_t low = 0;

        while (low < most) {
                uint64_t middle = low + (most - low + 1) / 2;
                struct sched_shape h = a->gang->shapes[a->shape];
                set(&h, middle);
                if (fits_with(a, &h))
                        low = middle;
                else
                        most = middle - 1;
        }
        return low;
}

static void set_min(struct sched_shape *h, uint64_t value) {
        h->min = (uint32_t)value;
}
static void set_memory(struct sched_shape *h, uint64_t value) {
        h->memory = value * MIB;
}
static void set_cpu(struct sched_shape *h, uint64_t value) {
        h->cpu_milli = (uint32_t)value * 100;
}
static void set_gpus(struct sched_shape *h, uint64_t value) {
        h->gpus = (uint32_t)value;
}

static void suggest_fewer(struct asking *a) {
        const struct sched_shape *h = a->gang->shapes + a->shape;
        uint64_t n;

        if (h->per_node > 0 || h->min <= 1)
                return;
        n = greatest(a, h->min - 1, set_min);
        if (n > 0)
                suggest(a, "minNum %" PRIu64 " (instead of %u)", n, h->min);
}

/* Fewer on a host: spread over more of them. */
static void suggest_per_host(struct asking *a) {
        const struct sched_shape *wish = a->gang->shapes + a->shape;

        for (uint32_t k = wish->per_node; k-- > 1;) {
                struct sched_shape h = *wish;
                if (h.max % k != 0)
                        continue;
                h.per_node = k;
                h.min = h.max;
                if (fits_with(a, &h)) {
                        suggest(a, "on %u hosts with %u each (replicasPerNode %u; --hosts=%u --per-host=%u)",
                                h.max / k, k, k, h.max / k, k);
                        return;
                }
        }
        if (wish->per_node > 0 || wish->max_per_node > 0) {
                struct sched_shape h = *wish;
                h.per_node = h.max_per_node = 0;
                if (fits_with(a, &h))
                        suggest(a, "without %s",
                                wish->per_node > 0 ? "replicasPerNode (--per-host)" : "maxReplicasPerNode");
        }
}

static void suggest_smaller(struct asking *a) {
        const struct sched_shape *h = a->gang->shapes + a->shape;
        uint64_t n;

        if (h->memory > MIB) {
                n = greatest(a, h->memory / MIB - 1, set_memory);
                if (n >= 64 || n * 4 >= h->memory / MIB)
                        suggest(a, "memoryMb %" PRIu64 " (instead of %" PRIu64 ")", n, h->memory / MIB);
        }
        if (h->cpu_milli > 100) {
                n = greatest(a, h->cpu_milli / 100 - 1, set_cpu);
                if (n > 0)
                        suggest(a, "vcores %g (instead of %g)", (double)n / 10, (double)h->cpu_milli / 1000);
        }
        if (h->gpus > 1) {
                n = greatest(a, h->gpus - 1, set_gpus);
                if (n > 0)
                        suggest(a, "gpuNum %" PRIu64 " (instead of %u)", n, h->gpus);
        }
}

static void suggest_elsewhere(struct asking *a) {
        struct sched_shape h = a->gang->shapes[a->shape];

        if (h.restricted) {
                h.restricted = false;
                h.allowed = NULL;
                h.n_allowed = 0;
                if (fits_with(a, &h))
                        suggest(a, "on any host (without nodes)");
        }
}

/* Without one of the conditions on hosts, or all of what is said of the GPUs. */
static void suggest_without_constraint(struct asking *a) {
        const struct sched_shape *wish = a->gang->shapes + a->shape;
        const struct placement_spec *p = &a->job->spec->roles[a->gang->data[a->shape].role].placement;
        const struct constraint *rest[SCHED_CONSTRAINTS_MAX];

        for (size_t i = 0; i < wish->n_required && wish->n_required <= ELEMENTSOF(rest); i++) {
                struct sched_shape h = *wish;
                memcpy(rest, wish->required, wish->n_required * sizeof(*rest));
                rest[i] = rest[--h.n_required];
                h.required = rest;
                if (fits_with(a, &h))
                        suggest(a, "without the constraint %s",
                                i < p->n_constraints ? p->constraints[i] : "rdma");
        }
        if (wish->gpu.model || wish->gpu.mig || wish->gpu.memory_mib > 0) {
                struct sched_shape h = *wish;
                h.gpu = (struct sched_gpu_want){};
                if (fits_with(a, &h))
                        suggest(a, "any whole GPU (without gpu)");
        }
}

/* What is said of the gang as a whole. */
static void suggest_looser(struct asking *a) {
        struct sched_gang *g = &a->gang->gang;
        struct sched_gang wish = *g;

        if (wish.topology == SCHED_REQUIRE) {
                g->topology = SCHED_PACK;
                if (fits_with(a, a->gang->shapes + a->shape))
                        suggest(a, "topology pack (instead of require)");
                *g = wish;
        }
        if (wish.whole_hosts != 0) {
                g->whole_hosts = 0;
                if (fits_with(a, a->gang->shapes + a->shape))
                        suggest(a, "others on its hosts (without wholeHosts)");
                *g = wish;
        }
}

/* ---- what is not tried yet ---- */

/* The role whose turn it is in an ordered start, while others wait for it; NULL: none. */
static const char *role_in_the_way(const struct job *j) {
        bool waits = false;

        for (uint32_t step = j->order_step + 1; step < j->spec->n_order && !waits; step++)
                for (size_t i = 0; i < j->spec->n_roles; i++)
                        waits |= strcmp(j->spec->roles[i].name, j->spec->order[step].role) == 0 &&
                                 j->roles[i].n_state[EXECUTOR_PENDING] > 0;
        return waits ? j->spec->order[j->order_step].role : NULL;
}

static const struct executor *first_backing_off(const struct job *j) {
        for (uint32_t i = 0; i < j->n_executors; i++)
                if (j->executors[i]->state == EXECUTOR_PENDING && j->executors[i]->restart.timer)
                        return j->executors[i];
        return NULL;
}

/* Of a search: whether it is its searcher that others wait for. */
static bool say_searcher(const struct job *j, char *buf, size_t size) {
        const struct array *a = j->array;
        struct job *e = array_searcher_active(a) ? manager_job(j->manager, a->searcher.job) : NULL;
        char why[256];

        if (!e || array_active(a) > 0 || j->state == JOB_STOPPING)
                return false;
        if (e->state == JOB_QUEUED)
                snprintf(buf, size, "its searcher waits: primusctl why %u[" SPEC_SEARCHER "]", j->number);
        else if (why_not_tried(e, why, sizeof(why)))
                snprintf(buf, size, "%s%s%.500s", why, e->first_error ? "; first: " : "",
                         e->first_error ?: "");
        else
                snprintf(buf, size, "its searcher runs, and has asked for no further trial");
        return true;
}

bool why_not_tried(struct job *j, char *buf, size_t size) {
        const struct executor *e = first_backing_off(j);
        const char *role = role_in_the_way(j);
        char in[FORMAT_DURATION_MAX];
        uint64_t at;

        if (j->array)
                return say_searcher(j, buf, size);
        if (job_state_ended(j->state) || j->state == JOB_QUEUED || j->state == JOB_STOPPING)
                return false;
        if (e && sd_event_source_get_time(e->restart.timer, &at) >= 0)
                snprintf(buf, size, "%s/%u failed and starts again in %s (backoff)",
                         e->job->roles[e->role].spec->name, e->index,
                         format_duration(usec_sub(at, now_boot()), in, sizeof(in)));
        else if (role)
                snprintf(buf, size, "the roles behind %s wait until it is ready (orderPolicy)", role);
        else
                return false;
        return true;
}

/* What ret->policy says is looked into: which hosts lack what, and what would help. */
static int look_into(struct manager *m, struct job *j, struct gang_data *g, struct why *ret) {
        _cleanup_(sched_free_p) struct sched *copy = NULL;
        struct asking a = { .gang = g, .job = j, .why = ret };
        int r;

        if (g->n == 0)
                return 0;
        r = sched_clone(m->placement->sched, &copy);
        if (r < 0)
                return r;
        a.copy = copy;
        a.shape = MIN(ret->policy.no_fit.shape, (uint32_t)g->n - 1);
        snprintf(ret->role, sizeof(ret->role), "%s", gang_role(j, a.shape));
        ret->wanted = ret->policy.no_fit.wanted;
        ret->fits = ret->policy.no_fit.fits;
        look_at_hosts(m, &a);
        if (try_gang(&a, g->shapes, g->n, NULL) > 0)
                return 0; /* there is room by now: the next pass takes it */
        suggest_per_host(&a);
        suggest_fewer(&a);
        suggest_elsewhere(&a);
        suggest_without_constraint(&a);
        suggest_looser(&a);
        suggest_smaller(&a);
        return 0;
}

/* It is hosts that are short, and not a limit or somebody before it. */
static bool is_of_hosts(const struct policy_why *why) {
        return why->reason == POLICY_NO_FIT || why->reason == POLICY_PREEMPTING ||
               (why->reason == POLICY_NEVER && why->no_fit.waiting > 0);
}

int why_job(struct manager *m, struct job *j, struct why *ret) {
        struct gang_data *g = &m->placement->gang; /* of the pass; nothing is kept in it between passes */
        int r;

        *ret = (struct why){};
        r = queueing_why(m, j, &ret->policy);
        if (r < 0 || !is_of_hosts(&ret->policy))
                return r;
        r = gang_build(m, j, g);
        return r < 0 ? r : look_into(m, j, g, ret);
}

int why_try(struct manager *m, struct job *j, struct why *ret, uint32_t *ret_placed) {
        struct gang_data *g = calloc(1, sizeof(*g)); /* of its own: those before it are asked for theirs */
        struct policy_trial trial = {};
        int r = g ? gang_build(m, j, g) : -ENOMEM;

        *ret = (struct why){};
        r = r < 0 || g->n == 0 ? r : queueing_try(m, j, &g->gang, &trial);
        ret->policy = trial.why;
        *ret_placed = trial.placed;
        r = r < 0 || trial.placed > 0 || !is_of_hosts(&trial.why) ? r : look_into(m, j, g, ret);
        if (g)
                gang_data_done(g);
        free(g);
        return r;
}
