/* SPDX-License-Identifier: Apache-2.0 */
/* Who has been silent for too long. Invariant: one timer, set to the earliest deadline of all nodes. */
#include "masterd/fleet/liveness.h"

#include <string.h>
#include <utlist.h>

#include "lib/base/clock.h"
#include "lib/base/format.h"
#include "lib/base/log.h"
#include "masterd/core/host-event.h"
#include "masterd/core/manager.h"
#include "masterd/core/notices.h"
#include "masterd/core/record.h"
#include "masterd/feed/feeding.h"
#include "masterd/fleet/blaming.h"
#include "masterd/fleet/fleet-parts.h"
#include "masterd/fleet/hooks.h"
#include "masterd/fleet/stuck.h"
#include "masterd/life/attempts.h"
#include "masterd/link/link.h"
#include "masterd/queue/placement.h"

char *liveness_text(const struct manager *m, const struct node *node, char *buf, size_t size) {
        uint64_t silent = usec_sub(now_boot(), node->seen.boot);
        char since[FORMAT_DURATION_MAX], left[FORMAT_DURATION_MAX];

        /* In seconds: nobody wants to know more. */
        format_duration(MAX(silent / USEC_PER_SEC, UINT64_C(1)) * USEC_PER_SEC, since, sizeof(since));
        format_duration(usec_sub(m->conf.lost_usec, silent) / USEC_PER_SEC * USEC_PER_SEC, left,
                        sizeof(left));
        if (node->refused)
                snprintf(buf, size, "the agent on %s is refused: %s", node->name, node->refused);
        else
                snprintf(buf, size, "nothing has been heard of %s for %s; it is given up in %s", node->name,
                         since, left);
        return buf;
}

/* To each job that has executors there, which the host stands for. */
static void tell_jobs(struct manager *m, const struct node *node, const char *kind, const char *text) {
        struct executor *e;

        DL_FOREACH2 (node->executors, e, node_next)
                if (liveness_stands_for(e))
                        record_event(m, e->job, kind, e, "%s", text);
}

bool liveness_stands_for(const struct executor *e) {
        const struct executor *x;

        DL_FOREACH2 (e->node->executors, x, node_next)
                if (x->job == e->job)
                        return x == e;
        return false;
}

static void change(struct manager *m, struct node *node, enum node_event event) {
        enum node_state next = node_next(node->state, event);
        char text[LIVENESS_TEXT_MAX];

        if (next < 0 || next == node->state)
                return;
        if (next == NODE_SUSPECT)
                tell_jobs(m, node, "host-silent", liveness_text(m, node, text, sizeof(text)));
        else if (node->state == NODE_SUSPECT && next == NODE_READY) {
                snprintf(text, sizeof(text), "%s is heard again", node->name);
                tell_jobs(m, node, "host-heard", text);
        }
        if (node_may_log(node, now_boot()))
                host_event(m, node, next == NODE_LOST || next == NODE_SUSPECT ? LOG_WARNING : LOG_NOTICE,
                           "state", "is %s (was %s)", node_state_to_string(next),
                           node_state_to_string(node->state));
        node->state = next;
        record_node(m, node);
        placement_node_changed(m, node);
        notice_node_changed(m, node);
        manager_schedule(m);
}

static void arm(struct manager *m) {
        uint64_t when;

        if (!nodes_next_deadline(&m->nodes, m->conf.suspect_usec, m->conf.lost_usec, &when)) {
                (void)sd_event_source_set_enabled(m->fleet->live_timer, SD_EVENT_OFF);
                return;
        }
        (void)sd_event_source_set_time(m->fleet->live_timer, when);
        (void)sd_event_source_set_enabled(m->fleet->live_timer, SD_EVENT_ONESHOT);
}

void liveness_lost(struct manager *m, struct node *node, bool declared) {
        bool expected = node->holds[HOLD_PROVIDER].set && node->n_executors == 0;
        struct executor *e, *next;

        nodes_unwatch(&m->nodes, node);
        change(m, node, NODE_EVENT_EXPIRED);
        link_drop(node, "the node is LOST");
        DL_FOREACH_SAFE2 (node->executors, e, next, node_next)
                attempts_node_lost(m, e, declared);
        feeding_node_gone(m, node, false);
        if (declared)
                stuck_forget(m, node);
        if (expected) /* it was given back, or put to sleep: nobody is to be woken for it */
                return;
        if (!declared)
                blaming_strike(m, node, STRIKE_LINK, NULL, "the host was LOST");
        if (!declared)
                hooks_fence(m, node);
        hooks_notify(m, declared ? "host-dead" : "host-lost", node, NULL,
                     declared ? "it was declared dead" : "nothing was heard of it for LostSec");
}

static int on_deadline(sd_event_source *s, uint64_t usec, void *userdata) {
        struct manager *m = userdata;
        struct node *node;
        uint64_t when, now = now_boot();

        while ((node = nodes_next_deadline(&m->nodes, m->conf.suspect_usec, m->conf.lost_usec, &when)) &&
               when <= now)
                if (node->state == NODE_SUSPECT)
                        liveness_lost(m, node, false);
                else
                        change(m, node, NODE_EVENT_SILENT);
        arm(m);
        return 0;
}

void liveness_watch(struct manager *m, struct node *node) {
        bool first = !m->nodes.fresh; /* whose silence counts by SuspectSec */

        nodes_heard(&m->nodes, node, now_boot(), now_real());
        /* A sign of life of one that is well only moves deadlines back, so a timer that is set need not be
         * touched: it finds nothing due and sets itself anew. Of one that was given time to become LOST it
         * brings them forward. */
        if (first || sd_event_source_get_enabled(m->fleet->live_timer, NULL) == SD_EVENT_OFF)
                arm(m);
}

void liveness_heard(struct manager *m, struct node *node) {
        struct executor *e;
        bool suspect;

        /* LOST is left by registering only. */
        if (node->state == NODE_LOST || node->state == NODE_JOINING)
                return;
        suspect = node->state == NODE_SUSPECT;
        change(m, node, NODE_EVENT_HEARD); /* before its silence counts by SuspectSec again */
        liveness_watch(m, node);
        if (!suspect)
                return;
        /* What could not be listed while nobody was well. */
        DL_FOREACH2 (node->executors, e, node_next)
                if (!e->node_next || e->node_next->job != e->job)
                        feeding_start(m, e->job);
}

void liveness_refused(struct manager *m, struct node *node, const char *why) {
        bool first = !node->refused;

        if (first || strcmp(node->refused, why) != 0) {
                char *copy = strdup(why);
                if (!copy) {
                        log_oom();
                        return;
                }
                free(node->refused);
                node->refused = copy;
        }
        /* Once, whatever it calls itself from then on, which it may do as fast as it can. */
        if (first)
                log_full(LOG_WARNING, 0, &(struct log_fields){ .node = node->name },
                         "Refused the agent on %s: %s. What runs there runs on and cannot be stopped from "
                         "here; nothing new "
                         "is placed there",
                         node->name, why);
        if (node->state != NODE_LOST && node->state != NODE_JOINING) {
                liveness_watch(m, node);
                change(m, node, NODE_EVENT_SILENT);
        }
        notice_node_changed(m, node);
}

int liveness_start(struct manager *m) {
        struct node *node, *next;
        int r = sd_event_add_time(m->event, &m->fleet->live_timer, CLOCK_BOOTTIME, USEC_INFINITY,
                                  50 * USEC_PER_MSEC, on_deadline, m);

        if (r < 0)
                return r;
        /* Nodes that were there before we came up have the usual time from now, and the spread in which they
         * dial. */
        HASH_ITER (hh, m->nodes.by_name, node, next)
                if (node->state == NODE_LOST && node->n_executors > 0)
                        hooks_fence(m, node); /* of which the master before may not have heard the answer */
                else if (node->state == NODE_SUSPECT)
                        nodes_heard(&m->nodes, node, usec_add(m->serving_boot, m->conf.spread_usec),
                                    node->seen.real);
        arm(m);
        return 0;
}

void liveness_stop(struct manager *m) {
        m->fleet->live_timer = sd_event_source_disable_unref(m->fleet->live_timer);
}
