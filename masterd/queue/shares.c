/* SPDX-License-Identifier: Apache-2.0 */
/* Pools and what their users have used. Invariant: the policy's pools are those of the configuration, and
 * those that were taken out of it while they may still have jobs. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/worker.h"
#include "masterd/core/manager.h"
#include "masterd/queue/placement-parts.h"

#define SHARES_USEC (30 * USEC_PER_SEC) /* what a crash may forget of usage */

int queueing_set_pools(struct manager *m) {
        struct pools *pools = &m->conf.pools;
        int r = 0;

        for (size_t i = 0; r >= 0 && i < pools->n; i++)
                r = policy_pool_set(m->placement->policy, &pools->items[i]->policy, &pools->items[i]->index);
        policy_configure(m->placement->policy, &pools->policy);
        return r;
}

static const char *pool_name(const struct manager *m, uint32_t index) {
        for (size_t i = 0; i < m->conf.pools.n; i++)
                if (m->conf.pools.items[i]->index == index)
                        return m->conf.pools.items[i]->policy.name;
        return NULL;
}

/* ---- usage on disk ---- */

static void record_share(void *arg, const struct policy_share *s) {
        struct manager *m = arg;
        const char *pool = pool_name(m, s->pool);

        if (!pool || s->usage <= 0)
                return;
        store_put_share(m->store, &(struct share_record){ .pool = pool,
                                                          .user = s->user,
                                                          .usage_micro = (uint64_t)(s->usage * 1e6),
                                                          .at_real = queueing_real(s->at) });
        manager_touch(m);
}

void queueing_record_shares(struct manager *m) {
        policy_shares(m->placement->policy, queueing_now(), record_share, m);
}

static void any_held(void *arg, const struct policy_share *s) {
        bool *any = arg;

        *any |= s->running > 0;
}

static int on_shares(sd_event_source *s, uint64_t usec, void *userdata) {
        struct manager *m = userdata;
        bool any = false;

        /* What has been used only decays while nothing runs; that follows from what is on disk. */
        policy_shares(m->placement->policy, queueing_now(), any_held, &any);
        if (any || m->placement->shares_unwritten)
                queueing_record_shares(m);
        m->placement->shares_unwritten = any;
        (void)sd_event_source_set_time_relative(s, SHARES_USEC);
        return sd_event_source_set_enabled(s, SD_EVENT_ONESHOT);
}

static int load_share(void *userdata, const struct share_record *r) {
        struct manager *m = userdata;
        const struct pool *pool = pools_find(&m->conf.pools, r->pool);

        if (!pool) /* it is no more */
                return 0;
        return policy_share_restore(m->placement->policy, pool->index, r->user, (double)r->usage_micro / 1e6,
                                    queueing_at(r->at_real));
}

int queueing_load(struct manager *m) {
        int r = store_load_shares(m->store, load_share, m);

        if (r >= 0)
                r = sd_event_add_time_relative(m->event, &m->placement->share_timer, CLOCK_BOOTTIME,
                                               SHARES_USEC, USEC_PER_SEC, on_shares, m);
        return r;
}

/* ---- reading the configuration again ---- */

struct reload {
        struct manager *manager;
        struct conf conf;
        char *unknown;
        int r;
};

static void reload_free(struct reload *l) {
        conf_done(&l->conf);
        free(l->unknown);
        free(l);
}

static void run_resolve(void *data) {
        struct reload *l = data;

        l->r = conf_resolve(&l->conf, &l->unknown);
}

/* A pool that is gone from the files goes on with what is in it. */
static int keep_closed(struct pools *old, struct pools *new) {
        for (size_t i = 0; i < old->n; i++) {
                struct pool **bigger;
                if (pools_find(new, old->items[i]->policy.name))
                        continue;
                bigger = reallocarray(new->items, new->n + 1, sizeof(struct pool *));
                if (!bigger)
                        return -ENOMEM;
                new->items = bigger;
                new->items[new->n++] = old->items[i];
                if (old->items[i]->defined)
                        log_notice("Pool %s is no longer in masterd.conf: it takes no new jobs, what is in "
                                   "it goes "
                                   "on",
                                   old->items[i]->policy.name);
                old->items[i]->defined = false;
                old->items[i] = old->items[--old->n];
                i--;
        }
        return 0;
}

static bool exceeds(const struct policy_amount *held, const struct policy_amount *limit) {
        return held->cpu_milli > limit->cpu_milli || held->memory > limit->memory || held->gpus > limit->gpus;
}

static void warn_exceeded(void *arg, const struct policy_share *s) {
        struct manager *m = arg;
        const char *name = pool_name(m, s->pool);
        const struct pool *pool = name ? pools_find(&m->conf.pools, name) : NULL;
        const struct policy_amount *limit;
        char has[POLICY_AMOUNT_TEXT_MAX], may[POLICY_AMOUNT_TEXT_MAX];

        if (!pool)
                return;
        limit = s->user == UINT32_MAX ? &pool->policy.limit : &pool->policy.user_limit;
        if (!exceeds(&s->held, limit))
                return;
        (void)policy_amount_text(&s->held, has, sizeof(has));
        (void)policy_amount_text(limit, may, sizeof(may));
        if (s->user == UINT32_MAX)
                log_warning(
                        "Pool %s holds %s, more than its new limit (%s): nothing is stopped, and nothing new "
                        "starts in it until it is below",
                        name, has, may);
        else
                log_warning("User %u holds %s in pool %s, more than the new limit for users (%s): nothing is "
                            "stopped, and nothing new of theirs starts there until it is below",
                            s->user, has, name, may);
}

static void on_resolved(void *data) {
        struct reload *l = data;
        struct manager *m = l->manager;
        struct relay_conf relay;
        struct layers *layers;
        struct pools old;
        int r = l->r;

        m->placement->reloading = false;
        if (r >= 0)
                r = keep_closed(&m->conf.pools, &l->conf.pools);
        if (r < 0) {
                (void)log_error_errno(r, "masterd.conf was not read again; the settings stay as they are");
                reload_free(l);
                return;
        }
        pools_say_unknown(l->unknown);
        old = m->conf.pools;
        m->conf.pools = l->conf.pools;
        l->conf.pools = old;
        relay = m->conf.relay;
        m->conf.relay = l->conf.relay;
        l->conf.relay = relay;
        layers = m->conf.layers;
        m->conf.layers = l->conf.layers;
        l->conf.layers = layers; /* freed with it */
        m->conf.jobs_max = l->conf.jobs_max;
        m->conf.jobs_per_user_max = l->conf.jobs_per_user_max;
        m->conf.bytes_per_user_max = l->conf.bytes_per_user_max;
        m->conf.keep_usec = l->conf.keep_usec;
        m->conf.keep_jobs = l->conf.keep_jobs;
        m->conf.keep_bytes = l->conf.keep_bytes;
        m->conf.keep_free = l->conf.keep_free;
        m->conf.bundle_max = l->conf.bundle_max;
        m->conf.bundles_per_user_max = l->conf.bundles_per_user_max;
        m->conf.placement = l->conf.placement;
        if (placement_configure(m->placement->sched, &m->conf.placement) < 0)
                log_error("Topology= and Licences= of masterd.conf could not be set up: out of memory");
        if (queueing_set_pools(m) < 0)
                log_error("A pool of masterd.conf could not be set up: out of memory, or more than %u pools "
                          "since the "
                          "start",
                          POLICY_POOLS_MAX);
        for (struct job *j = m->jobs.by_number; j; j = j->hh.next)
                if (!job_state_ended(j->state))
                        queueing_changed(m, j);
        policy_shares(m->placement->policy, queueing_now(), warn_exceeded, m);
        log_notice("masterd.conf was read again: %zu pools", m->conf.pools.n);
        manager_schedule(m);
        reload_free(l);
}

void queueing_reload(struct manager *m) {
        struct placement *p = m->placement;
        struct reload *l;
        int r;

        if (p->reloading)
                return; /* the files are read in the loop: what comes now was read, or comes with another
                           signal */
        l = calloc(1, sizeof(*l));
        if (!l) {
                log_oom();
                return;
        }
        l->manager = m;
        r = conf_read(&l->conf, NULL);
        if (r >= 0 && !p->worker)
                r = worker_new(m->event, &p->worker);
        if (r >= 0)
                r = worker_submit(p->worker, run_resolve, on_resolved, l);
        if (r < 0) {
                (void)log_error_errno(r, "masterd.conf cannot be read again; the settings stay as they are");
                reload_free(l);
                return;
        }
        p->reloading = true;
}
