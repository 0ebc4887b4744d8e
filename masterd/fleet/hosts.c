/* SPDX-License-Identifier: Apache-2.0 */
/* The life of hosts. Invariants: a node is usable exactly when it is READY and nothing holds it; a host is
 * rebooted or powered off only when that is on disk and nothing is left on it. */
#include "masterd/fleet/hosts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/try.h"
#include "lib/base/utf8.h"
#include "masterd/core/host-event.h"
#include "masterd/core/manager.h"
#include "masterd/core/notices.h"
#include "masterd/core/record.h"
#include "masterd/feed/feeding.h"
#include "masterd/fleet/blaming.h"
#include "masterd/fleet/fleet-parts.h"
#include "masterd/fleet/gpus-off.h"
#include "masterd/fleet/hooks.h"
#include "masterd/fleet/maintenance.h"
#include "masterd/fleet/stuck.h"
#include "masterd/life/lifecycle.h"
#include "masterd/link/orders.h"
#include "masterd/queue/placement.h"
#include "masterd/queue/queueing.h"
#include "masterd/queue/serving.h"

/* ---- holds ---- */

static struct hold_record record_of(const struct node *node, enum hold_cause cause) {
        const struct node_hold *h = node->holds + cause;

        return (struct hold_record){ .node = node->name,
                                     .cause = (uint8_t)cause,
                                     .drain = h->drain,
                                     .reason = h->reason,
                                     .uid = h->uid,
                                     .since_real = h->since_real,
                                     .deadline_real = h->deadline_real,
                                     .grace_usec = h->grace_usec,
                                     .then = (uint8_t)h->then,
                                     .boot = h->boot };
}

static void put(struct manager *m, const struct node *node, enum hold_cause cause) {
        struct hold_record record = record_of(node, cause);

        store_put_hold(m->store, &record);
        manager_touch(m);
}

/* ---- what follows when nothing is left */

struct named {
        char node[65];
};

static void run_settle(struct manager *m, void *data) {
        struct named *n = data;
        struct node *node = nodes_get(&m->nodes, n->node);
        char text[HOLDS_TEXT_MAX];
        enum hold_cause cause;
        struct node_hold *h;

        free(n);
        if (!node || !node_left(node))
                return;
        if (!node->left_told && node_drained(node)) {
                host_event(m, node, LOG_NOTICE, "drained", "is drained");
                feeding_leave(m, node);
                notice_node_changed(m, node);
                hooks_notify(m, "host-drained", node, NULL, holds_text(node->holds, text, sizeof(text)));
        }
        node->left_told = node_drained(node);
        cause = holds_then(node->holds);
        h = cause == _HOLD_INVALID ? NULL : node->holds + cause;
        if (!h || *h->boot || sd_id128_is_null(node->boot_id) || node->state != NODE_READY)
                return;
        (void)sd_id128_to_string(node->boot_id, h->boot);
        put(m, node, cause);
        (void)orders_power_later(m, node);
}

void hosts_left(struct manager *m, struct node *node) {
        struct named *n;

        if (!node_left(node))
                return;
        n = calloc(1, sizeof(*n));
        if (!n) {
                (void)sd_event_exit(m->event, log_oom()); /* what is on disk stays right */
                return;
        }
        snprintf(n->node, sizeof(n->node), "%s", node->name);
        (void)manager_effect(m, run_settle, n);
}

void hosts_registered(struct manager *m, struct node *node) {
        const enum hold_cause cause = holds_then(node->holds);
        struct node_hold *h = cause == _HOLD_INVALID ? NULL : node->holds + cause;
        char boot[SD_ID128_STRING_MAX];

        if (h && *h->boot && strcmp(h->boot, sd_id128_to_string(node->boot_id, boot)) == 0)
                (void)orders_power_later(m, node); /* the order or its answer was lost */
        else if (h && *h->boot) {
                if (h->then == HOLD_THEN_REBOOT)
                        (void)hosts_release(m, node, cause, "it was rebooted, as was asked");
                else {
                        h->then = HOLD_THEN_NOTHING;
                        h->boot[0] = 0;
                        put(m, node, cause);
                }
        }
        hosts_review(m, node);
}

static void changed(struct manager *m, struct node *node) {
        (void)placement_node_changed(m, node);
        notice_node_changed(m, node);
        manager_schedule(m);
        hosts_arm(m);
}

int hosts_hold(struct manager *m, struct node *node, enum hold_cause cause, const struct node_hold *value,
               const char *reason) {
        struct node_hold *h = node->holds + cause;
        char text[HOLDS_TEXT_MAX];
        int r = hold_set(h, value, reason);

        if (r < 0)
                return r;
        if (h->since_real == 0)
                h->since_real = now_real();
        put(m, node, cause);
        node->left_told = false;
        (void)holds_text(node->holds, text, sizeof(text));
        if (node_may_log(node, now_boot()))
                host_event(m, node, LOG_NOTICE, h->drain ? "drains" : "held", "%s (%s)",
                           h->drain ? "drains" : "takes nothing new", text);
        changed(m, node);
        hooks_notify(m, h->drain ? "host-drains" : "host-held", node, NULL, text);
        hosts_review(m, node);
        return 0;
}

int hosts_hold_noticed(struct manager *m, struct node *node, enum hold_cause cause, const char *reason) {
        const struct node_hold *h = node->holds + cause;

        if (h->set && strcmp(h->reason, reason) == 0)
                return 0;
        return hosts_hold(m, node, cause,
                          &(struct node_hold){ .drain = true,
                                               .deadline_real = HOLD_WHEN_THEY_END,
                                               .grace_usec = UINT64_MAX,
                                               .since_real = h->set ? h->since_real : 0 },
                          reason);
}

void hosts_prolog_failed(struct manager *m, struct node *node, const struct job *j, const char *text) {
        bool known = node->holds[HOLD_HOOK].set;
        char reason[HOLD_REASON_MAX];

        snprintf(reason, sizeof(reason), "job %u: %.*s", j->number, utf8_fit(text, HOLD_REASON_MAX - 32),
                 text);
        (void)hosts_hold_noticed(m, node, HOLD_HOOK, reason);
        /* Once for each time that the host was trusted: many may have been on their way there. */
        if (!known)
                blaming_prolog(m, node, j, reason);
}

bool hosts_release(struct manager *m, struct node *node, enum hold_cause cause, const char *why) {
        struct hold_record record = record_of(node, cause);
        char text[HOLDS_TEXT_MAX];

        if (!node->holds[cause].set)
                return false;
        store_delete_hold(m->store, &record);
        manager_touch(m);
        hold_clear(node->holds + cause);
        (void)holds_text(node->holds, text, sizeof(text));
        if (node_may_log(node, now_boot()))
                host_event(m, node, LOG_NOTICE, "released", "is %s: %s%s%s%s",
                           *text ? "still held" : "in use again", why, *text ? " (" : "", text,
                           *text ? ")" : "");
        changed(m, node);
        if (!*text)
                hooks_notify(m, "host-back", node, NULL, why);
        hosts_left(m, node);
        return true;
}

/* ---- moving ---- */

static bool is_due(const struct executor *e, uint64_t now) {
        bool again = executor_role(e)->failover.restart_type != RESTART_NEVER;

        for (int i = 0; i < _HOLD_MAX; i++)
                if (hold_moves(e->node->holds + i, again, now))
                        return true;
        return false;
}

void hosts_review(struct manager *m, struct node *node) {
        uint64_t now = now_real();
        char text[HOLDS_TEXT_MAX];
        struct executor *e, *next;

        if (!holds_drain(node->holds))
                return;
        (void)holds_text(node->holds, text, sizeof(text));
        /* Nobody answers for a host that is LOST; when it is back, this is asked again. */
        if (node->state != NODE_LOST)
                DL_FOREACH_SAFE2 (node->executors, e, next, node_next)
                        if (is_due(e, now))
                                lifecycle_move(m, e, "its host drains", text);
        hosts_left(m, node);
}

static bool could_run(const struct job *j, const struct role_spec *spec, const char *without) {
        if (spec->n_nodes == 0)
                return true;
        for (size_t i = 0; i < spec->n_nodes; i++)
                if (strcmp(spec->nodes[i], without) != 0 && !job_avoids(j, spec->nodes[i]))
                        return true;
        return false;
}

static void record_avoided(struct manager *m, const struct job *j, const char *node) {
        store_put_avoid(m->store, &(struct avoid_record){ j->number, node, job_avoids(j, node),
                                                          exclusions_allowed(&j->hosts.exclusions, node) });
}

static int avoid(struct manager *m, struct job *j, struct node *node, char text[static 256]) {
        int r;

        for (size_t i = 0; i < j->spec->n_roles; i++)
                if (!could_run(j, j->spec->roles + i, node->name)) {
                        snprintf(text, 256,
                                 "Role %s of job %u is bound to hosts by its configuration (nodes), and "
                                 "without %s none would be left",
                                 j->spec->roles[i].name, j->number, node->name);
                        return -EINVAL;
                }
        r = job_avoid(j, node->name);
        if (r < 0) {
                snprintf(text, 256, "Out of memory");
                return r;
        }
        record_avoided(m, j, node->name);
        manager_touch(m);
        return 0;
}

int hosts_avoid_for(struct manager *m, struct job *j, struct node *node, const char *why,
                    char text[static 256]) {
        int r = avoid(m, j, node, text);

        if (r >= 0)
                record_event(m, j, "host-replaced", NULL, "%s is avoided from now on (%s)", node->name, why);
        return r;
}

int hosts_replace(struct manager *m, struct job *j, struct node *node, uint32_t uid, char text[static 256]) {
        int n = 0, r;

        if (job_state_ended(j->state) || j->state == JOB_STOPPING) {
                snprintf(text, 256, "Job %u is %s: there is nothing to move", j->number,
                         job_state_to_string(j->state));
                return -ESRCH;
        }
        if (j->array) {
                snprintf(text, 256, "Job %u is an array: move its elements (%u[INDEX])", j->number,
                         j->number);
                return -EINVAL;
        }
        r = avoid(m, j, node, text);
        if (r < 0)
                return r;
        record_event(m, j, "host-replaced", NULL, "%s is avoided from now on (uid %u)", node->name, uid);
        for (uint32_t i = 0; i < j->n_executors; i++) {
                struct executor *e = j->executors[i];
                if (e->node == node && executor_state_holds(e->state) && e->state != EXECUTOR_STOPPING) {
                        lifecycle_move(m, e, "its host is replaced", "the host is replaced");
                        n++;
                }
        }
        return n;
}

int hosts_allow(struct manager *m, struct job *j, const char *node, uint32_t uid, char text[static 256]) {
        bool off = job_avoids(j, node) || exclusions_of(&j->hosts.exclusions, node, now_real()) > 0;

        if (!off || job_state_ended(j->state)) {
                snprintf(text, 256,
                         "Job %u is not kept off %s ('primusctl status' shows what it is kept off)",
                         j->number, node);
                return -ESRCH;
        }
        if (exclusions_allow(&j->hosts.exclusions, node, now_real()) < 0)
                return -ENOMEM;
        job_stop_avoiding(j, node);
        record_avoided(m, j, node);
        record_event(m, j, "host-allowed", NULL, "%s may be used again (uid %u)", node, uid);
        placement_enqueue(m, j);
        queueing_changed(m, j);
        return 0;
}

/* ---- where a job does not go ---- */

/* So long an executor that starts now may run. */
static uint64_t limit_of(const struct job *j, const struct role_spec *spec, uint64_t now) {
        uint64_t limit = spec->time_limit_usec;

        if (j->spec->time_limit_usec != UINT64_MAX)
                limit = MIN(limit, usec_sub(j->spec->time_limit_usec,
                                            j->slot.since_real ? usec_sub(now, j->slot.since_real) : 0));
        return limit;
}

int hosts_excluded(struct manager *m, const struct job *j, const struct role_spec *spec, uint32_t **ret,
                   size_t *ret_n) {
        uint64_t now = now_real(), limit = limit_of(j, spec, now);
        size_t n = 0, failed = blaming_excluded_max(m, j),
               most = j->hosts.n_avoided + m->fleet->n_windows + failed + serving_most(m, j->owner);
        uint32_t *slots = NULL;
        struct window *w;

        if (most > 0) {
                slots = calloc(most, sizeof(*slots));
                if (!slots)
                        return -ENOMEM;
        }
        for (size_t i = 0; i < j->hosts.n_avoided; i++) {
                const struct node *node = nodes_get(&m->nodes, j->hosts.avoided[i]);
                if (node && node->in_sched)
                        slots[n++] = node->slot;
        }
        DL_FOREACH (m->fleet->windows, w)
                if (w->node->in_sched && window_blocks(w, limit, m->conf.maintenance_lead_usec, now))
                        slots[n++] = w->node->slot;
        if (failed > 0)
                blaming_excluded(m, j, spec, slots, &n);
        serving_exclude(m, j->owner, slots, &n);
        *ret = slots;
        *ret_n = n;
        return 0;
}

/* ---- time ---- */

static uint64_t run_due(struct manager *m) {
        uint64_t now = now_real(), next = maintenance_run(m, now);
        struct node *node, *following;

        HASH_ITER (hh, m->nodes.by_name, node, following) {
                if (!holds_drain(node->holds))
                        continue;
                hosts_review(m, node);
                for (int i = 0; i < _HOLD_MAX; i++)
                        next = MIN(next, hold_next(node->holds + i, now));
        }
        return next;
}

static int on_time(sd_event_source *s, uint64_t usec, void *userdata) {
        uint64_t next = run_due(userdata);

        if (next == UINT64_MAX)
                return sd_event_source_set_enabled(s, SD_EVENT_OFF);
        (void)sd_event_source_set_time(s, next);
        return sd_event_source_set_enabled(s, SD_EVENT_ONESHOT);
}

/* What is due is found out by looking, at once: there are few changes, and a turn has many of them. */
void hosts_arm(struct manager *m) {
        if (!m->fleet->hosts_timer)
                return; /* not yet */
        (void)sd_event_source_set_time(m->fleet->hosts_timer, 0);
        (void)sd_event_source_set_enabled(m->fleet->hosts_timer, SD_EVENT_ONESHOT);
}

int hosts_start(struct manager *m) {
        return sd_event_add_time(m->event, &m->fleet->hosts_timer, CLOCK_REALTIME, 0, 10 * USEC_PER_MSEC,
                                 on_time, m);
}

void hosts_stop(struct manager *m) {
        m->fleet->hosts_timer = sd_event_source_disable_unref(m->fleet->hosts_timer);
        maintenance_forget(m, NULL);
        stuck_free_all(m);
        gpus_off_free_all(m);
}

/* ---- from the store ---- */

static int load_hold(void *userdata, const struct hold_record *r) {
        struct manager *m = userdata;
        struct node *node = nodes_get(&m->nodes, r->node);
        struct node_hold value = {
                .drain = r->drain,
                .uid = r->uid,
                .since_real = r->since_real,
                .deadline_real = r->deadline_real,
                .grace_usec = r->grace_usec,
                .then = r->then < _HOLD_THEN_MAX ? (enum hold_then)r->then : HOLD_THEN_NOTHING,
        };

        if (!node || r->cause >= _HOLD_MAX)
                return 0;
        snprintf(value.boot, sizeof(value.boot), "%s", r->boot);
        return hold_set(node->holds + r->cause, &value, r->reason);
}

static int load_label(void *userdata, const struct label_record *r) {
        struct manager *m = userdata;
        struct node *node = nodes_get(&m->nodes, r->node);
        int k = node ? node_set_label(node, r->key, r->value) : 0;

        return k > 0 ? node_merge_labels(node, node->inventory.labels) : k;
}

static int load_avoided(void *userdata, const struct avoid_record *r) {
        struct job *j = manager_job(userdata, r->job);

        if (!j)
                return 0;
        if (r->allowed_real > 0 && exclusions_allow(&j->hosts.exclusions, r->node, r->allowed_real) < 0)
                return -ENOMEM;
        return r->avoided ? job_avoid(j, r->node) : 0;
}

int hosts_load_nodes(struct manager *m) {
        TRY(store_load_holds(m->store, load_hold, m));
        TRY(store_load_labels(m->store, load_label, m));
        TRY(host_events_load(m));
        return maintenance_load(m);
}

int hosts_load_jobs(struct manager *m) {
        return store_load_avoided(m->store, load_avoided, m);
}
