/* SPDX-License-Identifier: Apache-2.0 */
/* Rendezvous epochs. Invariants: an epoch is on disk before anybody is told of it; what is told under an
 * epoch is the membership that raised it, or a later one. */
#include "masterd/life/epochs.h"

#include <inttypes.h>
#include <utlist.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "masterd/core/manager.h"
#include "masterd/core/record.h"
#include "masterd/job/peers.h"
#include "masterd/link/orders.h"
#include "masterd/node/node.h"

/* So long further changes are waited for before anybody is told: a scaled job is placed in a few steps. */
#define SETTLE_USEC (200 * USEC_PER_MSEC)

static bool tell(struct manager *m, struct executor *e) {
        return e->state == EXECUTOR_RUNNING && e->epoch != e->job->rendezvous.epoch &&
               orders_rendezvous_later(m, e) >= 0;
}

static int on_settled(sd_event_source *s, uint64_t usec, void *userdata) {
        struct job *j = userdata;
        uint32_t n = 0;

        j->rendezvous.timer = sd_event_source_disable_unref(j->rendezvous.timer);
        for (uint32_t i = 0; i < j->n_executors; i++)
                n += tell(j->manager, j->executors[i]);
        if (n > 0)
                record_event(j->manager, j, "rendezvous", NULL,
                             "epoch %" PRIu64 ": %" PRIu32 " executor%s told who the peers are now",
                             j->rendezvous.epoch, n, PLURAL(n));
        return 0;
}

static void settle(struct manager *m, struct job *j) {
        if (!j->rendezvous.timer &&
            sd_event_add_time_relative(m->event, &j->rendezvous.timer, CLOCK_BOOTTIME, SETTLE_USEC,
                                       10 * USEC_PER_MSEC, on_settled, j) < 0)
                log_oom(); /* the next change tells them */
}

void epochs_update(struct manager *m, struct job *j) {
        uint64_t membership;

        if (j->state != JOB_STARTING && !job_state_up(j->state))
                return;
        membership = job_membership(j);
        if (membership == j->rendezvous.membership)
                return;
        job_peers_drop(j);
        j->rendezvous.membership = membership;
        j->rendezvous.epoch++;
        record_job(m, j, false);
        settle(m, j);
}

void epochs_running(struct manager *m, struct executor *e) {
        if (e->epoch != e->job->rendezvous.epoch)
                settle(m, e->job);
}

void epochs_registered(struct manager *m, struct node *node) {
        struct executor *e;

        DL_FOREACH2 (node->executors, e, node_next) {
                if (!e->node_next || e->node_next->job != e->job)
                        epochs_update(m, e->job); /* its address may be another one */
                epochs_running(m, e);
        }
}
