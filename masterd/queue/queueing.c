/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs as the policy sees them. Invariant: the policy knows exactly the jobs that have not ended, and of each
 * what its executors in the states PLACED to STOPPING hold. */
#include "masterd/queue/queueing.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/worker.h"
#include "masterd/core/listeners.h"
#include "masterd/core/manager.h"
#include "masterd/core/record.h"
#include "masterd/feed/feeding.h"
#include "masterd/link/orders.h"
#include "masterd/queue/placement-parts.h"
#include "masterd/queue/placement.h"
#include "masterd/queue/start-within.h"

/* The policy's clock is CLOCK_BOOTTIME, put so far ahead that what began before this boot is a time, too. */
#define CLOCK_AHEAD (UINT64_C(3650) * 86400 * USEC_PER_SEC)

uint64_t queueing_now(void) {
        return now_boot() + CLOCK_AHEAD;
}

uint64_t queueing_at(uint64_t real) {
        return usec_sub(queueing_now(), usec_sub(now_real(), real));
}

uint64_t queueing_real(uint64_t at) {
        uint64_t now = queueing_now();

        if (at == UINT64_MAX)
                return at;
        return at > now ? usec_add(now_real(), at - now) : usec_sub(now_real(), now - at);
}

/* ---- what the policy knows of a job ---- */

static struct policy_job describe(struct manager *m, const struct job *j) {
        const struct pool *pool = pools_find(&m->conf.pools, j->spec->queue);
        int32_t priority = j->spec->waits.priority;

        return (struct policy_job){
                .id = j->number,
                .pool = pool ? pool->index : 0,
                .user = j->owner,
                .priority = priority != SPEC_PRIORITY_NONE ? priority
                            : pool                         ? pool->priority
                                                           : 0,
                .submitted = queueing_at(j->queue.waits_real ?: j->submitted_real),
                .duration_usec = j->spec->time_limit_usec,
                .preemptible = j->spec->waits.preemptible || (pool && pool->preemptible),
        };
}

/* From here on the policy knows it. */
static int know(struct manager *m, struct job *j) {
        struct policy_job job;
        int r;

        if (j->queue.known)
                return 0;
        job = describe(m, j);
        r = policy_job_add(m->placement->policy, &job);
        if (r < 0)
                return log_full(LOG_ERR, r, &(struct log_fields){ .job = j->number }, "Cannot queue job %u",
                                j->number);
        j->queue.known = true;
        if (j->slot.since_real > 0 && (j->state == JOB_STARTING || job_state_up(j->state)))
                policy_job_runs(m->placement->policy, j->number, queueing_at(j->slot.since_real));
        return 0;
}

void placement_enqueue(struct manager *m, struct job *j) {
        if (job_state_ended(j->state) || j->state == JOB_STOPPING || m->up->job_not_placeable(m, j) ||
            know(m, j) < 0)
                return;
        start_within_arm(m, j);
        if (m->up->job_kept_waiting(m, j)) {
                policy_job_satisfied(m->placement->policy, j->number);
                return;
        }
        policy_job_wants(m->placement->policy, j->number);
        manager_schedule(m);
}

void placement_dequeue(struct manager *m, struct job *j) {
        start_within_disarm(j);
        if (j->queue.known)
                policy_job_satisfied(m->placement->policy, j->number);
}

void queueing_leaving(struct manager *m, struct job *j, uint64_t within_usec) {
        if (j->queue.known)
                policy_job_leaving(m->placement->policy, j->number, usec_add(queueing_now(), within_usec));
}

void queueing_stays(struct manager *m, struct job *j) {
        if (j->queue.known)
                policy_job_stays(m->placement->policy, j->number);
        manager_schedule(m);
}

void queueing_forget(struct manager *m, struct job *j) {
        if (j->queue.known)
                policy_job_remove(m->placement->policy, j->number);
        j->queue.known = false;
        manager_schedule(m);
}

void queueing_again(struct manager *m, struct job *j) {
        if (j->queue.known) {
                policy_job_runs(m->placement->policy, j->number, 0);
                queueing_changed(m, j);
        }
        placement_enqueue(m, j);
}

void queueing_changed(struct manager *m, struct job *j) {
        struct policy_job job = describe(m, j);

        if (j->queue.known)
                (void)policy_job_update(m->placement->policy, &job);
        manager_schedule(m);
}

void queueing_held(struct manager *m, const struct executor *e, int sign) {
        struct sched_hold hold = placement_hold_of(e);
        struct policy_amount a = { hold.cpu_milli, hold.memory, (uint32_t)__builtin_popcountll(hold.gpus) };

        m->placement->shares_unwritten = true; /* also what comes and goes between two looks */
        if (know(m, e->job) >= 0)
                policy_held(m->placement->policy, e->job->number, &a, sign, queueing_now());
}

/* ---- what the policy asks ---- */

static int on_gang(void *userdata, uint64_t id, struct sched_gang *ret) {
        struct manager *m = userdata;
        struct job *j = manager_job(m, (uint32_t)id);
        struct gang_data *g = &m->placement->gang;
        int r;

        if (!j || j->state == JOB_STOPPING || job_state_ended(j->state))
                return 1;
        r = gang_build(m, j, g);
        if (r < 0)
                return log_full(LOG_ERR, r, &(struct log_fields){ .job = j->number }, "Cannot place job %u",
                                j->number);
        *ret = g->gang;
        return g->n == 0;
}

static void on_holds(void *userdata, uint64_t id, void (*each)(void *arg, const struct sched_hold *h),
                     void *arg) {
        struct job *j = manager_job(userdata, (uint32_t)id);

        for (uint32_t i = 0; j && i < j->n_executors; i++) {
                const struct executor *e = j->executors[i];
                if (executor_state_holds(e->state) && e->node && e->node->in_sched) {
                        struct sched_hold hold = placement_hold_of(e);
                        each(arg, &hold);
                }
        }
}

/* To be carried out when the pass is over, for that may come back to the policy. */
static void decide(struct manager *m, uint64_t job, uint64_t by) {
        struct placement *p = m->placement;
        struct verdict_of_pass *bigger;

        if (p->n_verdicts == p->verdicts_allocated) {
                size_t n = MAX((size_t)16, p->verdicts_allocated * 2);
                bigger = reallocarray(p->verdicts, n, sizeof(*bigger));
                if (!bigger) {
                        (void)sd_event_exit(m->event, log_oom()); /* what is on disk stays right */
                        return;
                }
                p->verdicts = bigger;
                p->verdicts_allocated = n;
        }
        p->verdicts[p->n_verdicts++] =
                (struct verdict_of_pass){ (uint32_t)job, (uint32_t)by, policy_passed_over(p->policy) };
}

static void on_placed(void *userdata, uint64_t id, const struct sched_placement *found) {
        struct manager *m = userdata;
        struct job *j = manager_job(m, (uint32_t)id);

        /* The shapes are those that the policy was told: nothing has changed in this pass. */
        if (!j || gang_build(m, j, &m->placement->gang) < 0) {
                for (size_t i = 0; i < found->n; i++)
                        sched_release(m->placement->sched, &found->items[i].hold);
                return;
        }
        (void)placement_take(m, j, &m->placement->gang, found);
        decide(m, id, 0);
}

static void on_preempt(void *userdata, uint64_t victim, uint64_t by) {
        struct manager *m = userdata;
        struct job *j = manager_job(m, (uint32_t)victim);

        if (!j)
                return;
        queueing_leaving(m, j, m->up->job_time_to_stop(j));
        decide(m, victim, by);
}

static uint64_t on_cost(void *userdata, uint64_t id, uint64_t now) {
        struct manager *m = userdata;
        const struct job *j = manager_job(m, (uint32_t)id);
        uint64_t saved = j ? m->up->job_saved_real(m, j) : 0, cost = 0;

        for (uint32_t i = 0; j && i < j->n_executors; i++) {
                const struct executor *e = j->executors[i];
                if (executor_state_holds(e->state))
                        cost = usec_add(
                                cost, usec_sub(now_real(), MAX(MAX(e->placed_real, e->started_real), saved)));
        }
        return cost;
}

static void on_waits(void *userdata, uint64_t id, const struct policy_why *why) {
        struct manager *m = userdata;
        struct job *j = manager_job(m, (uint32_t)id);
        char line[QUEUEING_WHY_MAX];

        if (!j || j->state != JOB_QUEUED)
                return;
        (void)queueing_why_text(m, j, why, line, sizeof(line));
        if (j->reason && strcmp(j->reason, line) == 0)
                return;
        (void)text_set(&j->reason, "%s", line);
        record_job(m, j, false);
}

static const struct policy_ops ops = {
        .gang = on_gang,
        .holds = on_holds,
        .placed = on_placed,
        .preempt = on_preempt,
        .cost = on_cost,
        .waits = on_waits,
};

/* ---- a pass ---- */

static void begin_job(struct manager *m, struct job *j, uint64_t passed_over) {
        uint32_t n = 0;

        for (uint32_t i = 0; i < j->n_executors; i++)
                n += j->executors[i]->state == EXECUTOR_PLACED && !j->executors[i]->orders.starting;
        start_within_disarm(j);
        if (j->state == JOB_QUEUED) {
                (void)job_transition(j, JOB_EVENT_PLACED);
                (void)text_set(&j->reason, NULL);
                if (j->started_real == 0)
                        j->started_real = now_real();
                if (j->slot.since_real == 0)
                        j->slot.since_real = now_real();
                j->queue.not_before_real = 0;
                if (passed_over > 0)
                        record_event(m, j, "placed", NULL,
                                     "%u executor%s placed by backfill: %" PRIu64
                                     " before it in the queue %s not fit",
                                     n, PLURAL(n), passed_over, passed_over == 1 ? "does" : "do");
                else
                        record_event(m, j, "placed", NULL, "%u executor%s placed", n, PLURAL(n));
                m->up->job_begins(m, j);
                policy_job_runs(m->placement->policy, j->number, queueing_at(j->slot.since_real));
        }
        for (uint32_t i = 0; i < j->n_executors; i++)
                if (j->executors[i]->state == EXECUTOR_PLACED && !j->executors[i]->orders.starting)
                        (void)orders_start_later(m, j->executors[i]);
        m->up->job_places_changed(m, j);
        feeding_start(m, j);
}

static int on_pass(sd_event_source *s, uint64_t usec, void *userdata) {
        manager_schedule(userdata);
        return 0;
}

static void arm_pass(struct manager *m, uint64_t begun, uint64_t at) {
        struct placement *p = m->placement;

        p->pass_timer = sd_event_source_disable_unref(p->pass_timer);
        if (at == UINT64_MAX)
                return;
        if (at <= begun) { /* there is more to do: when others have had their turn */
                manager_schedule(m);
                return;
        }
        /* Not sooner than in a moment: a pass that asks for the next one at once would keep the loop busy. */
        (void)sd_event_add_time(m->event, &p->pass_timer, CLOCK_BOOTTIME,
                                MAX(usec_sub(at, CLOCK_AHEAD), now_boot() + 100 * USEC_PER_MSEC),
                                100 * USEC_PER_MSEC, on_pass, m);
}

void placement_run(struct manager *m) {
        struct placement *p = m->placement;
        uint64_t next = UINT64_MAX, now = queueing_now();
        int r;

        p->n_verdicts = 0;
        r = policy_run(p->policy, now, &next);
        if (r < 0)
                (void)log_error_errno(r, "A pass over the queue failed");
        for (size_t i = 0; i < p->n_verdicts; i++) {
                struct verdict_of_pass v = p->verdicts[i];
                struct job *j = manager_job(m, v.job);
                if (j && v.by == 0) {
                        begin_job(m, j, v.passed_over);
                        m->up->job_is_served(m, j);
                } else if (j)
                        m->up->job_preempt(m, j, v.by);
        }
        arm_pass(m, now, r < 0 ? now + USEC_PER_SEC : next);
}

/* ---- what people are told ---- */

int queueing_why(struct manager *m, const struct job *j, struct policy_why *ret) {
        return j->queue.known ? policy_why(m->placement->policy, j->number, ret) : -ENOENT;
}

int queueing_last_why(struct manager *m, const struct job *j, struct policy_why *ret) {
        return j->queue.known ? policy_last_why(m->placement->policy, j->number, ret) : -ENOENT;
}

int queueing_try(struct manager *m, const struct job *j, const struct sched_gang *g,
                 struct policy_trial *ret) {
        struct policy_job job = describe(m, j);

        return policy_try(m->placement->policy, &job, g, queueing_now(), ret);
}

char *queueing_why_text(struct manager *m, struct job *j, const struct policy_why *why, char *buf,
                        size_t size) {
        const struct pool *pool = pools_find(&m->conf.pools, j->spec->queue);
        char text[SCHED_NO_FIT_TEXT_MAX], limit[POLICY_AMOUNT_TEXT_MAX];

        if (why->reason == POLICY_NEVER && why->no_fit.waiting == 0) {
                snprintf(buf, size, "needs more than a limit of pool %s", j->spec->queue);
                return buf;
        }
        switch (why->reason) {
        case POLICY_NOT_TRIED:
                snprintf(buf, size, "waits for its turn");
                break;
        case POLICY_SKIPPED:
                snprintf(buf, size, "could not be tried (the master's journal says why)");
                break;
        case POLICY_GUARANTEED:
                snprintf(
                        buf, size,
                        "would fit on what other pools are guaranteed, but could not give it back: it is not "
                        "preemptible");
                break;
        case POLICY_NEVER:
        case POLICY_NO_FIT:
                snprintf(buf, size, "role %s: %s", gang_role(j, why->no_fit.shape),
                         sched_no_fit_text(&why->no_fit, text, sizeof(text)));
                break;
        case POLICY_RESERVED:
                if (why->ahead)
                        snprintf(buf, size, "would fit, but job %" PRIu64 " before it would start later",
                                 why->ahead);
                else
                        snprintf(buf, size, "would fit, but those before it would start later");
                break;
        case POLICY_POOL_LIMIT:
                snprintf(buf, size, "pool %s is at its limit (%s)", j->spec->queue,
                         pool ? policy_amount_text(&pool->policy.limit, limit, sizeof(limit)) : "?");
                break;
        case POLICY_USER_LIMIT:
                snprintf(buf, size, "its user is at the limit for users of pool %s (%s)", j->spec->queue,
                         pool ? policy_amount_text(&pool->policy.user_limit, limit, sizeof(limit)) : "?");
                break;
        case POLICY_PREEMPTING:
                snprintf(buf, size, "%u job%s being stopped for it", why->victims,
                         why->victims == 1 ? " is" : "s are");
                break;
        }
        return buf;
}

struct policy *queueing_policy(struct manager *m) {
        return m->placement->policy;
}

size_t queueing_order(struct manager *m, uint64_t *numbers, size_t n) {
        return policy_order(m->placement->policy, queueing_now(), numbers, n);
}

int queueing_new(struct manager *m) {
        struct placement *p = m->placement;
        _cleanup_free_ char *unknown = NULL;
        int r = policy_new(p->sched, &m->conf.pools.policy, &ops, m, &p->policy);

        if (r >= 0 && !m->conf.pools.resolved)
                r = conf_resolve(&m->conf, &unknown); /* nothing is served yet: it may take its time */
        if (r < 0)
                return r;
        pools_say_unknown(unknown);
        return queueing_set_pools(m);
}

void queueing_free(struct placement *p) {
        p->policy = policy_free(p->policy);
        gang_data_done(&p->gang);
        free(p->verdicts);
        sd_event_source_disable_unref(p->pass_timer);
        sd_event_source_disable_unref(p->share_timer);
        worker_free(p->worker);
}
