/* SPDX-License-Identifier: Apache-2.0 */
/* Conditions of hosts, carried out. Invariant: a node that is registered has the hold HOLD_CONDITION exactly
 * while one of its conditions that nobody waved through is worth a drain here. */
#include "masterd/fleet/conditions.h"

#include <string.h>
#include <utlist.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "masterd/core/host-event.h"
#include "masterd/core/manager.h"
#include "masterd/core/notices.h"
#include "masterd/core/record.h"
#include "masterd/fleet/hooks.h"
#include "masterd/fleet/hosts.h"

/* A host says no more than that to the jobs on it. */
#define TELL_MAX 30u
#define TELL_INTERVAL (3600 * USEC_PER_SEC)

static void review(struct manager *m, struct node *node) {
        char reason[HOLD_REASON_MAX];

        if (node_conditions_text(node, m->conf.conditions, CONDITION_DRAIN, true, reason, sizeof(reason)) > 0)
                (void)hosts_hold_noticed(m, node, HOLD_CONDITION, reason);
        else
                (void)hosts_release(m, node, HOLD_CONDITION, "its agent says that it is well again");
}

/* Once for each job there. */
static void tell_jobs(struct manager *m, struct node *node, const struct host_condition *c) {
        const struct executor *e;

        if (!burst_admit(&node->bursts.conditions, now_boot(), TELL_INTERVAL, TELL_MAX))
                return;
        DL_FOREACH2 (node->executors, e, node_next)
                if (!e->node_next || e->node_next->job != e->job)
                        record_event(m, e->job, "host-condition", e, "%s: %s %s: %s", node->name,
                                     condition_kind_to_string(c->kind), c->subject, c->text);
}

/* True: the site wants to know. */
static void tell(struct manager *m, struct node *node, const struct host_condition *c,
                 enum condition_severity before) {
        const struct host_condition was = { .kind = c->kind, .severity = before };
        enum condition_severity old = node_condition_severity(&was, m->conf.conditions),
                                now = node_condition_severity(c, m->conf.conditions);
        char text[CONDITION_SUBJECT_MAX + CONDITION_TEXT_MAX + 64];

        if (now == old)
                return;
        snprintf(text, sizeof(text), "%s %s: %s", condition_kind_to_string(c->kind), c->subject,
                 c->severity == CONDITION_FINE ? "fine again" : c->text);
        if (node_may_log(node, now_boot()))
                host_event(m, node, now >= CONDITION_WARN && now > old ? LOG_WARNING : LOG_NOTICE,
                           "condition", "says %s", text);
        if (now >= CONDITION_WARN && now > old) {
                tell_jobs(m, node, c);
                hooks_notify(m, "host-condition", node, NULL, text);
        }
}

static void take(struct manager *m, struct node *node, const struct host_condition *c) {
        enum condition_severity before;
        int r = node_condition_set(node, c, &before);

        if (r == -ENOMEM)
                (void)log_oom();
        if (r >= 0)
                tell(m, node, c, before);
}

void conditions_told(struct manager *m, struct node *node, const struct host_condition *c) {
        if (c->kind < 0)
                return; /* of a newer agent */
        take(m, node, c);
        review(m, node);
        notice_node_changed(m, node);
}

void conditions_registered(struct manager *m, struct node *node, const struct host_condition *list,
                           size_t n) {
        struct node_condition *x, *next;

        DL_FOREACH (node->conditions, x)
                x->told = false;
        for (size_t i = 0; i < n; i++) {
                take(m, node, list + i);
                x = node_condition_find(node, list[i].kind, list[i].subject);
                if (x)
                        x->told = true;
        }
        DL_FOREACH_SAFE (node->conditions, x, next)
                if (!x->told) {
                        struct host_condition over = x->c;
                        over.severity = CONDITION_FINE;
                        take(m, node, &over);
                }
        review(m, node);
}

void conditions_wave(struct node *node) {
        struct node_condition *x;

        DL_FOREACH (node->conditions, x)
                x->waved = true;
}
