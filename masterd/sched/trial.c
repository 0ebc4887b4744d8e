/* SPDX-License-Identifier: Apache-2.0 */
/* What would become of a job that came now. It is tried as a pass would try it, behind those that come before
 * it, of which each keeps what the last pass gave it. Invariant: afterwards the policy is as it was. */
#include <errno.h>
#include <uthash.h>

#include "lib/base/cleanup.h"
#include "masterd/sched/pass.h"

/* What the entry, which is not tried here, keeps from those behind it. */
static int pass_by(struct pass *pass, struct entry *at) {
        struct policy *p = pass->policy;
        struct policy_amount least;
        struct sched_gang g = {};

        pass->planned += at->reservation != NULL;
        switch (at->why.reason) {
        case POLICY_NO_FIT:
        case POLICY_RESERVED:
                if (!at->reservation)
                        pass_keep_hosts(pass, at, at->why.no_fit.lacking);
                break;
        case POLICY_POOL_LIMIT:
        case POLICY_USER_LIMIT:
        case POLICY_GUARANTEED:
                if (p->ops->gang(p->userdata, at->job.id, &g) != 0)
                        break;
                least = gang_amount(&g, false);
                pass_keep_limit(pass, at, at->why.reason, &least);
                break;
        default:
                break;
        }
        if (!at->reservation || at->reservation->claim) /* claims are there already */
                return 0;
        return pass_need_plan(pass) < 0 ? -ENOMEM : plan_add(pass->plan, at->reservation);
}

/* Up to the entry, and it. */
static int run_trial(struct pass *pass, struct entry *e, const struct sched_gang *g, uint64_t *ret_position) {
        struct cursor c = {};
        struct entry *at;
        int r = pass_add_claims(pass);

        *ret_position = 0;
        r = r < 0 ? r : cursor_begin(pass->policy, pass->now, &c);
        while (r >= 0 && (at = cursor_next(&c)) && at != e) {
                r = pass_by(pass, at);
                (*ret_position)++;
        }
        cursor_done(&c);
        return r < 0 ? r : pass_try(pass, e, g);
}

int policy_try(struct policy *p, const struct policy_job *job, const struct sched_gang *g, uint64_t now,
               struct policy_trial *ret) {
        struct account *known = account_find(p, job->pool, job->user);
        struct trial trial = {};
        struct pass *pass;
        struct entry *e;
        uint64_t position;
        int r = policy_job_add(p, job);

        if (r < 0)
                return r;
        e = policy_entry(p, job->id);
        r = pass_new(p, now, &pass);
        if (r >= 0) {
                pass->trial = &trial;
                r = run_trial(pass, e, g, &position);
                pass_free(pass); /* before the reservation, which its plan knows */
        }
        if (r >= 0) {
                *ret = (struct policy_trial){ .placed = trial.placed, .why = e->why };
                ret->why.position = position;
        }
        policy_job_remove(p, job->id);
        if (!known)
                account_drop(p, account_find(p, job->pool, job->user));
        return MIN(r, 0);
}
