/* SPDX-License-Identifier: Apache-2.0 */
/* What is done about a verdict. Invariant: it is done once in an episode, and in the transaction that says
 * so. */
#include <inttypes.h>
#include <stdio.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "masterd/core/manager.h"
#include "masterd/core/record.h"
#include "masterd/fleet/blaming.h"
#include "masterd/fleet/hooks.h"
#include "masterd/fleet/hosts.h"
#include "masterd/life/lifecycle.h"
#include "masterd/watch/healing-parts.h"

/* "worker/2 on n3 is hung: …" */
static void sentence(const struct job *j, const struct episode *p, char *buf, size_t size) {
        const struct executor *e = healing_executor(j, p);
        const char *kind = verdict_kind_to_string(p->kind);

        if (e)
                snprintf(buf, size, "%s/%" PRIu32 " on %s: %s: %s", executor_role(e)->name, e->index,
                         e->node ? e->node->name : "?", kind, p->text);
        else
                snprintf(buf, size, "%s: %s", kind, p->text);
}

static void restart(struct manager *m, struct executor *e, enum verdict_kind k) {
        char text[64];

        snprintf(text, sizeof(text), "it is restarted: %s", verdict_kind_to_string(k));
        lifecycle_move(m, e, "it is restarted for its health", text);
}

/* On another host, where the job may go to one. */
static void replace(struct manager *m, struct executor *e, enum verdict_kind k) {
        char text[256];

        if (!e->node || hosts_avoid_for(m, e->job, e->node, verdict_kind_to_string(k), text) >= 0) {
                restart(m, e, k);
                return;
        }
        record_event(m, e->job, "not-replaced", e, "restarted, not replaced: %s", text);
        restart(m, e, k);
}

static void one(struct manager *m, struct executor *e, struct episode *p, const char *why) {
        switch (p->action) {
        case HEALTH_RESTART:
                restart(m, e, p->kind);
                return;
        case HEALTH_QUARANTINE:
                if (e->node)
                        blaming_strike(m, e->node, STRIKE_HEALTH, e, why);
                replace(m, e, p->kind);
                return;
        case HEALTH_REPLACE:
                replace(m, e, p->kind);
                return;
        default:
                return;
        }
}

/* Nobody stands out: all that stand still are started again, and no host is held responsible. */
static void everybody(struct manager *m, struct job *j, const struct episode *p) {
        for (uint32_t i = 0; i < j->n_executors; i++)
                if (healing_counts(m, j->executors[i], p->kind))
                        restart(m, j->executors[i], p->kind);
}

void healing_act(struct manager *m, struct job *j, struct episode *p) {
        struct executor *e = healing_executor(j, p);
        char why[512];

        if (p->action <= HEALTH_NOTE || p->acted_real > 0 || job_state_ended(j->state) ||
            j->state == JOB_STOPPING)
                return;
        p->acted_real = now_real();
        episode_record(m, j, p);
        sentence(j, p, why, sizeof(why));
        hooks_notify(m, "job-sick", e ? e->node : NULL, j, why);
        if (p->action == HEALTH_WARN)
                return;
        record_event(m, j, "healing", e, "%s: %s", verdict_kind_to_string(p->kind),
                     health_action_to_string(p->action));
        /* p may be gone from here on. */
        if (p->action == HEALTH_STOP)
                /* Who is idle has done nothing wrong; who is sick has failed. */
                lifecycle_stop_job(m, j, p->kind == VERDICT_IDLE ? JOB_EVENT_KILLED : JOB_EVENT_FAILED, why);
        else if (e)
                one(m, e, p, why);
        else if (p->role == EPISODE_ALL)
                everybody(m, j, p);
}
