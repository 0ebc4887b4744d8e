/* SPDX-License-Identifier: Apache-2.0 */
/* A decision: what the queue would need (masterd/sched/demand.h), what follows for each provider
 * (masterd/provision/decide.h), carried out. Invariant: what is decided of a host holds in the turn in which
 * it is done; nothing can be placed between the look and the act. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/grow.h"
#include "lib/base/log.h"
#include "lib/base/strv.h"
#include "masterd/core/manager.h"
#include "masterd/fleet/hosts.h"
#include "masterd/providers/deciding.h"
#include "masterd/queue/placement.h"
#include "masterd/queue/queueing.h"
#include "masterd/sched/demand.h"

#define PORT_FIRST 20000u /* of an imagined host: as agentd's default */
#define PORT_LAST 29999u
#define EXECUTORS 1000u
#define BOOT_USEC (60 * USEC_PER_SEC) /* who starts by itself so soon does not bring a host */

struct decision {
        struct manager *manager;
        uint64_t now;
        struct demand_shape shapes[DEMAND_SHAPES_MAX];
        struct sched_gpu *gpus[DEMAND_SHAPES_MAX]; /* of one each */
        struct offer {
                const struct provider *provider; /* whose shape that is, and which of it */
                uint32_t shape;
        } offers[DEMAND_SHAPES_MAX];
        size_t n_shapes;
        uint32_t *coming, *back; /* shapes; slots */
        struct instance **coming_of;
        size_t n_coming, n_back;
        struct demand demand;
};

static void decision_done(struct decision *d) {
        for (size_t i = 0; i < d->n_shapes; i++)
                free(d->gpus[i]);
        free(d->coming);
        free(d->back);
        free(d->coming_of);
        demand_done(&d->demand);
}

static const struct misfit *find_misfit(const struct provider *p, uint64_t job, uint32_t shape) {
        for (size_t i = 0; i < MIN(p->n_misfits, (uint64_t)MISFITS_MAX); i++)
                if (p->misfits[i].job == job && p->misfits[i].shape == shape)
                        return p->misfits + i;
        return NULL;
}

static bool serves(const void *userdata, uint32_t pool, uint64_t job) {
        const struct offer *s = userdata;

        return pool < POLICY_POOLS_MAX && s->provider->serves[pool] &&
               !find_misfit(s->provider, job, s->shape);
}

/* ---- what is asked of the scheduler ---- */

/* So many more of a shape there may be, now. */
static uint32_t room_of(const struct provider *p, uint32_t shape, uint64_t now) {
        const struct provision_conf *c = &p->conf->policy;
        struct provider_tally has;
        uint32_t room;

        if (p->held || provision_blocked(p->trouble + shape, now))
                return 0;
        has = provider_tally(p, shape, now);
        if (has.all >= c->max || has.of_shape >= c->shapes[shape].max)
                return 0;
        room = MIN(c->max - has.all, c->shapes[shape].max - has.of_shape);
        if (c->cost_max > 0 && c->shapes[shape].cost > 0)
                room = has.cost >= c->cost_max ? 0
                                               : (uint32_t)MIN((uint64_t)room, (c->cost_max - has.cost) /
                                                                                       c->shapes[shape].cost);
        return room;
}

static int add_shape(struct decision *d, struct provider *p, uint32_t k) {
        const struct provider_shape_conf *s = p->conf->shapes[k];
        struct demand_shape *h = d->shapes + d->n_shapes;

        if (d->n_shapes == DEMAND_SHAPES_MAX)
                return 0;
        *h = (struct demand_shape){
                .capacity = { .cpu_milli = s->cpus * 1000,
                              .memory = MIN(s->memory, SCHED_MEMORY_MAX),
                              .gpus = s->gpus,
                              .port_first = PORT_FIRST,
                              .port_last = PORT_LAST,
                              .executors = EXECUTORS,
                              .shm = s->shm > 0 ? s->shm : s->memory / 2 },
                .description = { .labels = (const char *const *)s->labels,
                                 .n_labels = strings_count(s->labels) },
                .free = room_of(p, k, d->now),
                .cost = s->limits.cost,
                .serves = serves,
                .userdata = d->offers + d->n_shapes,
        };
        if (s->gpus > 0) {
                struct sched_gpu *gpus = calloc(s->gpus, sizeof(*gpus));
                if (!gpus)
                        return -ENOMEM;
                for (uint32_t g = 0; g < s->gpus; g++)
                        gpus[g] = (struct sched_gpu){ .model = s->gpu_model,
                                                      .memory_mib = (uint32_t)(s->gpu_memory >> 20) };
                d->gpus[d->n_shapes] = gpus;
                h->description.gpus = gpus;
                h->description.n_gpus = s->gpus;
        }
        d->offers[d->n_shapes++] = (struct offer){ p, k };
        return 0;
}

static void look_up_pools(struct manager *m, struct provider *p) {
        memset(p->serves, 0, sizeof(p->serves));
        for (size_t i = 0; i < m->conf.pools.n; i++) {
                const struct pool *pool = m->conf.pools.items[i];
                if (pool->index < POLICY_POOLS_MAX)
                        p->serves[pool->index] = provider_conf_serves(p->conf, pool->policy.name);
        }
}

/* Where among the shapes that are asked about; UINT32_MAX: nowhere. */
static uint32_t asked_shape(const struct decision *d, const struct instance *i) {
        uint32_t shape = instance_shape(i);

        for (uint32_t k = 0; k < d->n_shapes; k++)
                if (d->offers[k].provider == i->provider && d->offers[k].shape == shape)
                        return k;
        return UINT32_MAX;
}

/* Kept, it would take executors at once. */
static bool is_held_by_provider_alone(const struct node *node) {
        for (int i = 0; i < _HOLD_MAX; i++)
                if (i != HOLD_PROVIDER && node->holds[i].set)
                        return false;
        return true;
}

static int add_instance(struct decision *d, struct instance *i) {
        struct node *node = instance_node(i);
        uint32_t shape = asked_shape(d, i);

        if (i->state <= INSTANCE_JOINED && shape != UINT32_MAX && !(node && node_usable(node))) {
                if (ARRAY_DOUBLE(d->coming, d->n_coming) < 0 || ARRAY_DOUBLE(d->coming_of, d->n_coming) < 0)
                        return -ENOMEM;
                d->coming[d->n_coming] = shape;
                d->coming_of[d->n_coming++] = i;
        } else if (i->state == INSTANCE_DRAINING && !i->leaves && i->seen != SEEN_STOPPING && node &&
                   node->in_sched && node->state == NODE_READY && is_held_by_provider_alone(node)) {
                if (ARRAY_DOUBLE(d->back, d->n_back) < 0)
                        return -ENOMEM;
                d->back[d->n_back++] = node->slot;
        }
        return 0;
}

/* What the queue would need, and which of the hosts that there are it would use. */
static int ask_scheduler(struct decision *d) {
        struct manager *m = d->manager;
        struct demand_ask a = { .shapes = d->shapes, .boot_usec = BOOT_USEC };
        struct instance *i;
        int r = 0;

        for (struct provider *p = m->providers->all; p && r >= 0; p = p->next) {
                if (!p->conf)
                        continue;
                look_up_pools(m, p);
                for (uint32_t k = 0; k < p->conf->n_shapes && r >= 0; k++)
                        r = add_shape(d, p, k);
        }
        for (struct provider *p = m->providers->all; p; p = p->next)
                DL_FOREACH (p->instances, i)
                        r = r < 0 ? r : add_instance(d, i);
        if (r < 0)
                return r;
        a.n_shapes = d->n_shapes;
        a.coming = d->coming;
        a.n_coming = d->n_coming;
        a.back = d->back;
        a.n_back = d->n_back;
        r = policy_demand(queueing_policy(m), queueing_now(), &a, &d->demand);
        if (r < 0)
                return r;
        for (struct provider *p = m->providers->all; p; p = p->next)
                DL_FOREACH (p->instances, i) {
                        const struct node *node = instance_node(i);
                        i->wanted = node && node->in_sched && node->slot < d->demand.n_slots &&
                                    d->demand.slots[node->slot];
                }
        for (size_t k = 0; k < d->n_coming; k++)
                if (d->demand.coming[k] > 0) {
                        d->coming_of[k]->wanted = true;
                        d->coming_of[k]->job = (uint32_t)d->demand.coming[k];
                }
        return 0;
}

/* It was made for this job, is there and empty, and the job would be placed on one that is imagined but not
 * on this: what its shape says is not what its hosts have (whom they serve, say), and the next one would not
 * do either. */
static void note_misfit(const struct decision *d, struct instance *i) {
        const struct node *node = instance_node(i);
        struct provider *p = i->provider;
        uint32_t k = asked_shape(d, i);
        struct misfit *x;

        if (i->state != INSTANCE_READY || i->job == 0 || i->used || i->wanted || k == UINT32_MAX || !node ||
            !node_usable(node) || find_misfit(p, i->job, d->offers[k].shape))
                return;
        for (size_t j = 0; j < d->demand.n; j++)
                if (d->demand.jobs[j].id == i->job && d->demand.jobs[j].verdict == DEMAND_NEW &&
                    d->demand.jobs[j].n[k] > 0) {
                        x = p->misfits + p->n_misfits++ % MISFITS_MAX;
                        *x = (struct misfit){ .job = i->job, .shape = d->offers[k].shape };
                        snprintf(x->node, sizeof(x->node), "%s", i->node);
                        log_warning(
                                "Host %s of provider %s was made for job %u, which cannot be placed there: what "
                                "[Shape %s] says is not what it has; none is made for that job any more until "
                                "the settings are read again",
                                i->node, p->name, i->job, i->shape);
                        return;
                }
}

/* True: there are new ones, and what was asked for was asked in vain. */
static bool note_misfits(const struct decision *d) {
        uint64_t before = 0, after = 0;
        struct instance *i;

        for (struct provider *p = d->manager->providers->all; p; p = p->next) {
                before += p->n_misfits;
                DL_FOREACH (p->instances, i)
                        note_misfit(d, i);
                after += p->n_misfits;
        }
        return after > before;
}

/* ---- a provider ---- */

static struct provision_instance look_at_instance(struct instance *i, uint64_t now) {
        const struct node *node = instance_node(i);
        bool empty = node && node->n_executors == 0 && node->n_stuck == 0;

        /* What has joined and is no node any more is as good as lost: nobody will hear of it. */
        if (node ? node->state != NODE_LOST : i->state < INSTANCE_JOINED)
                i->lost_since = 0;
        else if (i->lost_since == 0)
                i->lost_since = now;
        if (!empty || (i->state != INSTANCE_READY && i->state != INSTANCE_DRAINING))
                i->idle_since = 0;
        else if (i->idle_since == 0)
                i->idle_since = now;
        return (struct provision_instance){ .state = i->state,
                                            .shape = instance_shape(i),
                                            .made = i->made_real,
                                            .since = i->since_real,
                                            .idle_since = i->idle_since,
                                            .lost_since = i->lost_since,
                                            .seen = i->seen,
                                            .absent = i->absent,
                                            .wanted = i->wanted,
                                            .held = i->held,
                                            .leaves = i->leaves,
                                            .stuck = i->state == INSTANCE_STOPPING && instance_counts(i, now),
                                            .failing = node && i->state == INSTANCE_READY &&
                                                       !node_usable(node) };
}

static void carry_out(struct provider *p, struct instance **instances, const struct provision_action *a,
                      uint64_t now) {
        struct manager *m = p->manager;
        struct instance *i = a->verb == PROVISION_UP ? NULL : instances[a->instance];
        uint32_t shape = i ? instance_shape(i) : a->shape;
        struct node *node = i ? instance_node(i) : NULL;

        if (a->failed && shape < PROVISION_SHAPES_MAX)
                provision_failed(p->trouble + shape, a->why, now);
        /* It was made for a job, and did not do: more of the same would not, either. */
        else if (a->verb == PROVISION_DRAIN && !i->used && i->job > 0 && shape < PROVISION_SHAPES_MAX)
                provision_failed(p->trouble + shape, "nothing was placed on the last ones", now);
        switch (a->verb) {
        case PROVISION_UP:
                if (instance_make(p, a->shape, a->job, a->why) < 0)
                        log_oom();
                break;
        case PROVISION_DRAIN:
                if (node && instance_go(i, INSTANCE_LEAVES, a->why) >= 0)
                        (void)instance_empty(i, 0, HOLD_THEN_NOTHING, a->why);
                break;
        case PROVISION_KEEP:
                if (instance_go(i, INSTANCE_KEPT, a->why) >= 0 && node)
                        (void)hosts_release(m, node, HOLD_PROVIDER, a->why);
                break;
        case PROVISION_STOP:
                if (instance_lives(i) && node->n_executors > 0)
                        log_warning("Host %s of provider %s is not given back (%s): %u executors run there",
                                    i->node, p->name, a->why, node->n_executors);
                else
                        instance_give_back(i, a->why);
                break;
        case PROVISION_FORGET:
                instance_forget(i, a->why);
                break;
        default:
                break;
        }
}

/* Those demands that are for this provider, in the queue's order. */
static size_t demands_of(const struct decision *d, const struct provider *p, struct provision_demand **ret) {
        struct provision_demand *list = NULL;
        size_t n = 0;

        for (size_t j = 0; j < d->demand.n; j++)
                for (size_t k = 0; k < d->n_shapes; k++) {
                        const struct demand_job *job = d->demand.jobs + j;
                        if (d->offers[k].provider != p || job->verdict != DEMAND_NEW || job->n[k] == 0)
                                continue;
                        if (ARRAY_DOUBLE(list, n) < 0) {
                                log_oom();
                                *ret = list;
                                return n;
                        }
                        list[n++] =
                                (struct provision_demand){ d->offers[k].shape, job->n[k], (uint32_t)job->id };
                }
        *ret = list;
        return n;
}

/* *ret: its instances as they were, by the numbers of the plan. */
static int plan_for(struct decision *d, struct provider *p, const struct provision_demand *demand,
                    size_t n_demand, struct provision_plan *plan, struct instance ***ret) {
        struct provision_instance *seen = calloc(p->n + 1, sizeof(*seen));
        struct instance **instances = calloc(p->n + 1, sizeof(*instances)), *i;
        const struct provision_pace pace = { p->asked, MIN(p->n_asked, (uint64_t)PACE_MAX) };
        uint32_t n = 0;
        int r = -ENOMEM;

        if (seen && instances) {
                DL_FOREACH (p->instances, i) {
                        seen[n] = look_at_instance(i, d->now);
                        instances[n++] = i;
                }
                r = provision_decide(&p->conf->policy, p->trouble, seen, n, demand, n_demand, &pace, d->now,
                                     plan);
        }
        free(seen);
        if (r < 0) {
                free(instances);
                return r;
        }
        p->cost = plan->cost;
        *ret = instances;
        return 0;
}

/* ---- why no host comes for a job ---- */

void deciding_words_drop(struct providers *ps) {
        struct job_word *w, *next;

        HASH_ITER (hh, ps->words, w, next) {
                HASH_DEL(ps->words, w);
                free(w);
        }
}

static void say_of_job(struct providers *ps, uint32_t job, const char *text) {
        struct job_word *w;

        HASH_FIND(hh, ps->words, &job, sizeof(job), w);
        if (w)
                return;
        w = calloc(1, sizeof(*w));
        if (!w)
                return;
        w->job = job;
        snprintf(w->text, sizeof(w->text), "%s", text);
        HASH_ADD(hh, ps->words, job, sizeof(w->job), w);
}

/* What stands in the way of more hosts at all, of the first provider that could have them. */
static void say_full(const struct decision *d, uint32_t job) {
        char text[JOB_WORD_MAX];

        snprintf(text, sizeof(text),
                 "no provider may make as many hosts as it needs (Max=, MaxCostPerHour=)");
        for (size_t k = 0; k < d->n_shapes; k++) {
                const struct provider *p = d->offers[k].provider;
                const struct provision_trouble *t = p->trouble + d->offers[k].shape;
                if (p->held) {
                        snprintf(text, sizeof(text), "provider %s is held: it makes no hosts", p->name);
                        break;
                }
                if (provision_blocked(t, d->now)) {
                        snprintf(text, sizeof(text),
                                 "provider %s makes no host of shape %s for another %" PRIu64 " s: %s",
                                 p->name, p->conf->shapes[d->offers[k].shape]->name,
                                 (t->blocked_until - d->now) / USEC_PER_SEC + 1, t->why);
                        break;
                }
        }
        say_of_job(d->manager->providers, job, text);
}

static void say_misfits(struct providers *ps) {
        char text[JOB_WORD_MAX];

        for (const struct provider *p = ps->all; p; p = p->next)
                for (size_t k = 0; k < MIN(p->n_misfits, (uint64_t)MISFITS_MAX) && p->conf; k++) {
                        const struct misfit *x = p->misfits + k;
                        snprintf(
                                text, sizeof(text),
                                "%s was made for it and did not do: what provider %s says of shape %s is not "
                                "what its hosts have",
                                x->node, p->name, p->conf->shapes[x->shape]->name);
                        say_of_job(ps, x->job, text);
                }
}

static void say_all(const struct decision *d) {
        struct providers *ps = d->manager->providers;

        for (size_t j = 0; j < d->demand.n; j++) {
                const struct demand_job *job = d->demand.jobs + j;
                if (job->verdict == DEMAND_FULL)
                        say_full(d, (uint32_t)job->id);
                else if (job->verdict == DEMAND_NO_SHAPE)
                        say_of_job(ps, (uint32_t)job->id, "no host that a provider could make would do");
        }
}

static void say_refused(struct providers *ps, const struct provider *p, const struct provision_demand *demand,
                        size_t n, const struct provision_plan *plan) {
        char text[JOB_WORD_MAX];

        for (size_t k = 0; k < n; k++) {
                if (!plan->refused || !*plan->refused[k])
                        continue;
                snprintf(text, sizeof(text), "provider %s makes no host for it: %s", p->name,
                         plan->refused[k]);
                say_of_job(ps, demand[k].job, text);
        }
}

/* ---- all of it ---- */

int deciding_each(struct manager *m, deciding_function each, void *userdata, uint64_t *ret_next) {
        struct decision *d = calloc(1, sizeof(*d)); /* too much for the stack */
        int r;

        if (!d)
                return -ENOMEM;
        d->manager = m;
        d->now = now_real();
        *ret_next = UINT64_MAX;
        r = ask_scheduler(d);
        if (r >= 0 && note_misfits(d)) { /* without those */
                const uint64_t now = d->now;
                decision_done(d);
                memset(d, 0, sizeof(*d));
                d->manager = m;
                d->now = now;
                r = ask_scheduler(d);
        }
        if (r >= 0) {
                deciding_words_drop(m->providers);
                say_misfits(m->providers);
                say_all(d);
        }
        for (struct provider *p = m->providers->all; p && r >= 0; p = p->next) {
                _cleanup_free_ struct provision_demand *demand = NULL;
                _cleanup_free_ struct instance **instances = NULL;
                struct provision_plan plan = {};
                size_t n;
                if (!p->conf || p->held)
                        continue;
                n = demands_of(d, p, &demand);
                r = plan_for(d, p, demand, n, &plan, &instances);
                for (size_t k = 0; k < plan.n && r >= 0; k++)
                        each(userdata, p, instances, plan.actions + k, d->now);
                if (r >= 0)
                        say_refused(m->providers, p, demand, n, &plan);
                *ret_next = MIN(*ret_next, plan.next);
                provision_plan_done(&plan);
        }
        decision_done(d);
        free(d);
        return r;
}

/* userdata: a bool, whether anything was done. */
static void act(void *userdata, struct provider *p, struct instance **instances,
                const struct provision_action *a, uint64_t now) {
        *(bool *)userdata = true;
        carry_out(p, instances, a, now);
}

void deciding_promote(struct instance *i) {
        const struct node *node = instance_node(i);
        uint32_t shape = instance_shape(i);

        if (i->state != INSTANCE_JOINED || !node || !node_usable(node))
                return;
        if (instance_go(i, INSTANCE_USABLE, "") >= 0 && shape < PROVISION_SHAPES_MAX)
                provision_succeeded(i->provider->trouble + shape);
}

static void promote(struct manager *m) {
        struct instance *i;

        for (struct provider *p = m->providers->all; p; p = p->next)
                DL_FOREACH (p->instances, i)
                        deciding_promote(i);
}

uint64_t deciding_run(struct manager *m) {
        uint64_t next = UINT64_MAX;
        bool acted = false;
        int r;

        promote(m);
        r = deciding_each(m, act, &acted, &next);
        if (r < 0)
                log_error_errno(r, "Hosts by demand: nothing could be decided");
        /* What was done may be followed by more. */
        return r < 0 ? now_real() + 10 * USEC_PER_SEC : acted ? now_real() : next;
}
