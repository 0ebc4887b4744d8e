/* SPDX-License-Identifier: Apache-2.0 */
/* Invariants: a host is kept out by its hold of the cause "quarantine" and by nothing else; of a cluster at
 * most a quarter (but one host in any case) is kept out at a time, and never the last usable host. */
#include "masterd/blaming.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <utlist.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/parse.h"
#include "masterd/api/api.h"
#include "masterd/hosts.h"
#include "masterd/manager.h"
#include "masterd/placement.h"
#include "masterd/record.h"

#define STATE_VERSION 1u

struct blame_stored {
        uint32_t version, reserved;
        struct blame blame;
};

static void record(struct manager *m, const struct node *node) {
        struct blame_stored s = { .version = STATE_VERSION, .blame = *node->blame };

        store_put_blame(m->store, &(struct blame_record){ .node = node->name, .state = { &s, sizeof(s) } });
        manager_touch(m);
}

static struct blame *blame_of(struct node *node) {
        if (!node->blame)
                node->blame = calloc(1, sizeof(*node->blame));
        return node->blame;
}

/* ---- time
 * ---------------------------------------------------------------------------------------------------------
 */

static void release(struct manager *m, struct node *node, const char *why) {
        blame_release(node->blame, now_real());
        record(m, node);
        (void)hosts_release(m, node, HOLD_QUARANTINE, why);
        (void)placement_node_changed(m, node);
        manager_schedule(m);
}

/* Placed since the probation began. */
static struct executor *probe_on(const struct node *node) {
        struct executor *e;

        DL_FOREACH2(node->executors, e, node_next)
        if (e->placed_real >= node->blame->since)
                return e;
        return NULL;
}

/* What is due on the host now; when something will be. */
static uint64_t review(struct manager *m, struct node *node, uint64_t now) {
        struct blame *b = node->blame;
        struct executor *probe;

        if (blame_probe(b, now)) {
                record(m, node);
                log_full(LOG_NOTICE, 0, &(struct log_fields){ .node = node->name },
                         "Node %s is let in again with one executor, as a probe", node->name);
                (void)hosts_release(m, node, HOLD_QUARANTINE,
                                    "its quarantine is over; one executor is tried");
                (void)placement_node_changed(m, node);
                manager_schedule(m);
        }
        if (b->state == BLAME_QUARANTINED)
                return b->until;
        if (b->state != BLAME_PROBATION || !(probe = probe_on(node)) || probe->state != EXECUTOR_RUNNING)
                return UINT64_MAX;
        /* One that runs for days need not end to be a good sign. */
        if (usec_add(probe->placed_real, m->conf.blame.quarantine_usec) > now)
                return usec_add(probe->placed_real, m->conf.blame.quarantine_usec);
        release(m, node, "what was tried there runs well");
        return UINT64_MAX;
}

static int on_time(sd_event_source *s, uint64_t usec, void *userdata) {
        struct manager *m = userdata;
        uint64_t now = now_real(), next = UINT64_MAX;
        struct node *node, *following;

        HASH_ITER (hh, m->nodes.by_name, node, following)
                if (node->blame && node->blame->state != BLAME_CLEAR)
                        next = MIN(next, review(m, node, now));
        if (next == UINT64_MAX)
                return sd_event_source_set_enabled(s, SD_EVENT_OFF);
        (void)sd_event_source_set_time(s, next);
        return sd_event_source_set_enabled(s, SD_EVENT_ONESHOT);
}

/* What is due is found out by looking. */
static void arm(struct manager *m) {
        if (!m->blame_timer)
                return;
        (void)sd_event_source_set_time(m->blame_timer, 0);
        (void)sd_event_source_set_enabled(m->blame_timer, SD_EVENT_ONESHOT);
}

int blaming_start(struct manager *m) {
        return sd_event_add_time(m->event, &m->blame_timer, CLOCK_REALTIME, 0, 10 * USEC_PER_MSEC, on_time,
                                 m);
}

void blaming_stop(struct manager *m) {
        m->blame_timer = sd_event_source_disable_unref(m->blame_timer);
}

void blaming_forgive(struct manager *m, struct node *node) {
        if (!node->blame || node->blame->state == BLAME_CLEAR)
                return;
        blame_release(node->blame, now_real());
        record(m, node);
        (void)placement_node_changed(m, node);
        manager_schedule(m);
}

/* ---- strikes
 * ------------------------------------------------------------------------------------------------------ */

static bool may_quarantine(struct manager *m, const struct node *node) {
        struct node *other, *next;
        uint32_t out = 0, usable = 0;

        HASH_ITER (hh, m->nodes.by_name, other, next) {
                out += other != node && other->blame && other->blame->state == BLAME_QUARANTINED;
                usable += other != node && node_usable(other);
        }
        return usable > 0 && out < MAX(m->nodes.n / 4, 1u);
}

static void quarantine(struct manager *m, struct node *node, struct executor *e, const char *why) {
        char text[BLAME_TEXT_MAX], reason[HOLD_REASON_MAX], length[FORMAT_DURATION_MAX];
        struct blame *b = node->blame;

        if (!may_quarantine(m, node)) {
                log_full(LOG_WARNING, 0, &(struct log_fields){ .node = node->name },
                         "Node %s has failed too much (%s), but too many hosts are out already", node->name,
                         blame_text(b, text));
                return;
        }
        blame_quarantine(&m->conf.blame, b, now_real());
        record(m, node);
        format_duration(usec_sub(b->until, b->since), length, sizeof(length));
        snprintf(reason, sizeof(reason), "for %s: %s; the last: %s", length, blame_text(b, text), why);
        (void)hosts_hold(m, node, HOLD_QUARANTINE,
                         &(struct node_hold){ .deadline_real = HOLD_WHEN_THEY_END, .grace_usec = UINT64_MAX },
                         reason);
        if (e)
                record_event(m, e->job, "host-quarantined", e, "%s takes nothing new for %s: %s", node->name,
                             length, blame_text(b, text));
        arm(m);
}

static void strike(struct manager *m, struct node *node, const struct strike *s, struct executor *e,
                   const char *why) {
        bool too_much;

        if (m->conf.blame.threshold_milli == 0 || !blame_of(node))
                return;
        too_much = blame_strike(&m->conf.blame, node->blame, s, now_real());
        record(m, node);
        if (too_much)
                quarantine(m, node, e, why);
}

void blaming_strike(struct manager *m, struct node *node, enum strike_kind kind, struct executor *e,
                    const char *why) {
        struct strike s = { .kind = (uint8_t)kind };

        if (e) {
                s.job = e->job->number;
                s.user = e->job->owner;
                s.alone = true;
                for (uint32_t i = 0; s.alone && i < e->job->n_executors; i++)
                        s.alone = !e->job->executors[i]->node || e->job->executors[i]->node == node;
        }
        strike(m, node, &s, e, why);
}

/* A hook that fails on most hosts is the site's mistake, and no host's. */
static bool hook_fails_everywhere(struct manager *m) {
        struct node *node, *next;
        uint32_t held = 0, ready = 0;

        HASH_ITER (hh, m->nodes.by_name, node, next) {
                ready += node->state == NODE_READY;
                held += node->state == NODE_READY && node->holds[HOLD_HOOK].set;
        }
        return held > 1 && held * 2 > ready;
}

void blaming_prolog(struct manager *m, struct node *node, const struct job *j, const char *why) {
        struct node *other, *next;

        if (!hook_fails_everywhere(m)) {
                strike(m, node, &(struct strike){ .kind = STRIKE_PROLOG, .job = j->number, .user = j->owner },
                       NULL, why);
                return;
        }
        HASH_ITER (hh, m->nodes.by_name, other, next)
                if (other->blame && blame_withdraw_kind(other->blame, STRIKE_PROLOG))
                        record(m, other);
}

/* What the job does wherever it runs is its own fault. True: it is. */
static bool fails_everywhere(struct manager *m, struct executor *e) {
        const struct exclusions *x = &e->job->exclusions;

        if (exclusions_hosts_since(x, usec_sub(now_real(), m->conf.blame.half_life_usec)) < 2)
                return false;
        for (size_t i = 0; i < x->n; i++) {
                struct node *node = nodes_get(&m->nodes, x->hosts[i].node);
                if (node && node->blame && blame_withdraw(node->blame, e->job->number))
                        record(m, node);
        }
        return true;
}

static enum strike_kind kind_of(const struct executor *e, enum executor_state before) {
        bool signalled = strcmp(e->result, "signal") == 0 || strcmp(e->result, "core-dump") == 0;

        if (e->fate == FATE_BLAME)
                return STRIKE_RULE;
        if (e->status == (signalled ? SIGBUS : 128 + SIGBUS))
                return STRIKE_BUS;
        if (before != EXECUTOR_RUNNING || (!signalled && e->status >= 200 && e->status <= 243))
                return STRIKE_START;
        return STRIKE_EXECUTOR;
}

/* Ends by the limits that the job set itself say nothing about the host. */
static bool is_own_limit(const struct executor *e) {
        return strcmp(e->result, "oom-kill") == 0 || strcmp(e->result, "timeout") == 0 ||
               e->fate == FATE_GROWN;
}

static void exclude(struct executor *e, uint64_t when) {
        const struct blacklist_spec *b = &e->job->spec->failure.blacklist;
        int n = exclusions_failed(&e->job->exclusions, e->node->name, e->rank, when);

        if (e->fate == FATE_BLAME || (b->enabled && n > (int)b->max_failed))
                (void)exclusions_until(&e->job->exclusions, e->node->name, usec_add(when, b->timeout_usec));
}

void blaming_remember(struct executor *e) {
        if (e->attempt > 0 && e->node && e->state == EXECUTOR_FAILED && !is_own_limit(e))
                exclude(e, e->ended_real);
}

void blaming_ended(struct manager *m, struct executor *e, enum executor_event event,
                   enum executor_state before) {
        struct node *node = e->node;
        bool was_out;

        if (!node)
                return;
        if (event == EXECUTOR_EVENT_SUCCEEDED && node->blame && node->blame->state == BLAME_PROBATION &&
            e->placed_real >= node->blame->since)
                release(m, node, "what was tried there ended well");
        if (event == EXECUTOR_EVENT_LOST && strcmp(e->result, "no-record") == 0)
                blaming_strike(m, node, STRIKE_NO_RECORD, e, "an executor vanished without a record");
        if (event != EXECUTOR_EVENT_FAILED || is_own_limit(e))
                return;
        was_out = exclusions_of(&e->job->exclusions, node->name, now_real()) > 0;
        exclude(e, now_real());
        if (!was_out && exclusions_of(&e->job->exclusions, node->name, now_real()) > 0)
                record_event(m, e->job, "host-excluded", e, "the job is kept off %s for a time (%s)",
                             node->name, e->fate == FATE_BLAME ? "exitCodes: blame" : "blacklistConfig");
        if (fails_everywhere(m, e) && e->fate != FATE_BLAME)
                return;
        blaming_strike(m, node, kind_of(e, before), e, e->reason ? e->reason : "");
}

/* ---- placement
 * ---------------------------------------------------------------------------------------------------- */

uint32_t blaming_room(const struct node *node) {
        if (!node->blame || node->blame->state != BLAME_PROBATION)
                return UINT32_MAX;
        return node->n_executors + (probe_on(node) ? 0 : 1);
}

void blaming_place_changed(struct manager *m, struct node *node) {
        if (!node->blame || node->blame->state != BLAME_PROBATION)
                return;
        (void)placement_node_changed(m, node);
        arm(m);
}

static bool role_may_use(const struct role_spec *spec, const struct node *node) {
        if (spec->n_nodes == 0)
                return true;
        for (size_t i = 0; i < spec->n_nodes; i++)
                if (strcmp(spec->nodes[i], node->name) == 0)
                        return true;
        return false;
}

void blaming_excluded(struct manager *m, const struct job *j, const struct role_spec *spec, uint32_t *list,
                      size_t *n) {
        uint32_t max = j->spec->failure.blacklist.max_nodes, left = 0;
        const struct exclusions *x = &j->exclusions;
        size_t before = *n, usable_out = 0;
        struct node *node, *next;
        uint64_t now = now_real();

        for (size_t i = 0; i < x->n && *n - before < max; i++) {
                node = nodes_get(&m->nodes, x->hosts[i].node);
                if (!node || !node->in_sched || x->hosts[i].until_real <= now)
                        continue;
                usable_out += node_usable(node) && role_may_use(spec, node);
                list[(*n)++] = node->slot;
        }
        if (*n == before)
                return;
        HASH_ITER (hh, m->nodes.by_name, node, next)
                left += node_usable(node) && role_may_use(spec, node);
        if (left <= usable_out)
                *n = before; /* it would be kept off everything */
}

/* ---- the store
 * ---------------------------------------------------------------------------------------------------- */

static int load_blame(void *userdata, const struct blame_record *r) {
        struct manager *m = userdata;
        struct node *node = nodes_get(&m->nodes, r->node);
        struct blame_stored s = {};

        if (!node)
                return 0;
        memcpy(&s, r->state.data ? r->state.data : "", MIN(r->state.size, sizeof(s)));
        if (s.version != STATE_VERSION || s.blame.state >= _BLAME_STATE_MAX ||
            s.blame.n_strikes > BLAME_STRIKES_MAX)
                return -EUCLEAN;
        if (!blame_of(node))
                return -ENOMEM;
        *node->blame = s.blame;
        return placement_node_changed(m, node);
}

int blaming_load(struct manager *m) {
        return store_load_blames(m->store, load_blame, m);
}
