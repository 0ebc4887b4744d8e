/* SPDX-License-Identifier: Apache-2.0 */
/* Invariants: a host is kept out by its hold of the cause "quarantine" and by nothing else; of a cluster at
 * most a quarter (but one host in any case) is kept out at a time, and never the last usable host. What one
 * user's jobs say keeps it from that user's jobs alone, and these never from all hosts. */
#include "masterd/fleet/blaming.h"

#include <assert.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <utlist.h>

#include "lib/base/clock.h"
#include "lib/base/format.h"
#include "lib/base/log.h"
#include "masterd/core/host-event.h"
#include "masterd/core/manager.h"
#include "masterd/core/record.h"
#include "masterd/fleet/fleet-parts.h"
#include "masterd/fleet/hooks.h"
#include "masterd/fleet/hosts.h"
#include "masterd/queue/placement.h"

static_assert(BLAME_STRIKES_MAX <= STORE_STRIKES_MAX && BLAME_SHUNS_MAX <= STORE_SHUNS_MAX,
              "the store has room for all of it");

static void record(struct manager *m, const struct node *node) {
        const struct blame *b = node->blame;
        struct blame_record r = { .node = node->name,
                                  .state = { .state = b->state,
                                             .times = b->times,
                                             .since_real = b->since,
                                             .until_real = b->until,
                                             .n_strikes = b->n_strikes,
                                             .n_shuns = b->n_shuns } };

        for (uint32_t i = 0; i < b->n_strikes; i++)
                r.state.strikes[i] = (struct strike_record){ .real = b->strikes[i].when,
                                                             .job = b->strikes[i].job,
                                                             .user = b->strikes[i].user,
                                                             .kind = b->strikes[i].kind,
                                                             .alone = b->strikes[i].alone };
        for (uint32_t i = 0; i < b->n_shuns; i++)
                r.state.shuns[i] = (struct shun_record){ .user = b->shuns[i].user,
                                                         .times = b->shuns[i].times,
                                                         .until_real = b->shuns[i].until };
        store_put_blame(m->store, &r);
        manager_touch(m);
}

/* ---- hosts that are kept from one user's jobs */

/* Users of whom any host may be kept, so that the others' jobs are placed without looking. */
struct shunner {
        uint32_t user;
        uint64_t until; /* not before */
        UT_hash_handle hh;
};

static int remember_shunner(struct manager *m, uint32_t user, uint64_t until) {
        struct shunner *x;

        HASH_FIND(hh, m->fleet->shunners, &user, sizeof(user), x);
        if (!x) {
                x = calloc(1, sizeof(*x));
                if (!x)
                        return -ENOMEM;
                x->user = user;
                HASH_ADD(hh, m->fleet->shunners, user, sizeof(x->user), x);
        }
        x->until = MAX(x->until, until);
        return 0;
}

static void forget_shunners(struct manager *m, uint64_t before) {
        struct shunner *x, *next;

        HASH_ITER (hh, m->fleet->shunners, x, next)
                if (x->until <= before) {
                        HASH_DEL(m->fleet->shunners, x);
                        free(x);
                }
}

static bool is_shunner(const struct manager *m, uint32_t user) {
        struct shunner *x;

        HASH_FIND(hh, m->fleet->shunners, &user, sizeof(user), x);
        return x != NULL;
}

static struct blame *blame_of(struct node *node) {
        if (!node->blame)
                node->blame = calloc(1, sizeof(*node->blame));
        return node->blame;
}

/* ---- time ---- */

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

        DL_FOREACH2 (node->executors, e, node_next)
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
                host_event(m, node, LOG_NOTICE, "probe", "is let in again with one executor, as a probe");
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

/* When the next host is there again for a user; those for whom one is are placed anew. */
static uint64_t review_shuns(struct manager *m, struct node *node, uint64_t now) {
        uint64_t next = UINT64_MAX;
        bool over = false;

        for (uint32_t i = 0; i < node->blame->n_shuns; i++) {
                if (node->blame->shuns[i].until > now)
                        next = MIN(next, node->blame->shuns[i].until);
                over |= node->blame->shuns[i].until <= now;
        }
        if (over && placement_node_changed(m, node) >= 0)
                manager_schedule(m);
        return next;
}

static int on_time(sd_event_source *s, uint64_t usec, void *userdata) {
        struct manager *m = userdata;
        uint64_t now = now_real(), next = UINT64_MAX;
        struct node *node, *following;

        HASH_ITER (hh, m->nodes.by_name, node, following) {
                if (node->blame && node->blame->n_shuns > 0)
                        next = MIN(next, review_shuns(m, node, now));
                if (node->blame && node->blame->state != BLAME_CLEAR)
                        next = MIN(next, review(m, node, now));
        }
        forget_shunners(m, now);
        if (next == UINT64_MAX)
                return sd_event_source_set_enabled(s, SD_EVENT_OFF);
        (void)sd_event_source_set_time(s, next);
        return sd_event_source_set_enabled(s, SD_EVENT_ONESHOT);
}

/* What is due is found out by looking. */
static void arm(struct manager *m) {
        if (!m->fleet->blame_timer)
                return;
        (void)sd_event_source_set_time(m->fleet->blame_timer, 0);
        (void)sd_event_source_set_enabled(m->fleet->blame_timer, SD_EVENT_ONESHOT);
}

int blaming_start(struct manager *m) {
        return sd_event_add_time(m->event, &m->fleet->blame_timer, CLOCK_REALTIME, 0, 10 * USEC_PER_MSEC,
                                 on_time, m);
}

void blaming_stop(struct manager *m) {
        m->fleet->blame_timer = sd_event_source_disable_unref(m->fleet->blame_timer);
        forget_shunners(m, UINT64_MAX);
}

void blaming_forgive(struct manager *m, struct node *node) {
        if (!node->blame || (node->blame->state == BLAME_CLEAR && node->blame->n_shuns == 0))
                return;
        blame_release(node->blame, now_real());
        record(m, node);
        (void)placement_node_changed(m, node);
        manager_schedule(m);
}

/* ---- strikes ---- */

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
                host_event(m, node, LOG_WARNING, "blamed",
                           "has failed too much (%s), but too many hosts are out already",
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

/* As for quarantine: a program with a mistake of its own is not to be left without hosts. */
static bool may_shun(struct manager *m, const struct node *node, uint32_t user, uint64_t now) {
        struct node *other, *next;
        uint32_t out = 0;

        if (!is_shunner(m, user))
                return true;
        HASH_ITER (hh, m->nodes.by_name, other, next)
                out += other != node && other->blame && blame_shunned(other->blame, user, now) > 0;
        return out < MAX(m->nodes.n / 4, 1u);
}

static void shun(struct manager *m, struct node *node, uint32_t user, struct executor *e, const char *why) {
        char length[FORMAT_DURATION_MAX], text[HOLD_REASON_MAX];
        uint64_t now = now_real(), until;

        if (!may_shun(m, node, user, now))
                return;
        until = blame_shun(&m->conf.blame, node->blame, user, now);
        if (remember_shunner(m, user, until) < 0)
                return; /* after a restart */
        snprintf(text, sizeof(text),
                 "jobs of uid %u are kept off %s for %s, since too many failed there; the last: %s", user,
                 node->name, format_duration(usec_sub(until, now), length, sizeof(length)), why);
        log_full(LOG_NOTICE, 0, &(struct log_fields){ .node = node->name }, "%c%s", text[0] - 'a' + 'A',
                 text + 1);
        hooks_notify(m, "host-avoided", node, e ? e->job : NULL, text);
        if (e)
                record_event(m, e->job, "host-avoided", e, "%s", text);
        (void)placement_node_changed(m, node);
        manager_schedule(m);
        arm(m);
}

static void strike(struct manager *m, struct node *node, const struct strike *s, struct executor *e,
                   const char *why) {
        enum blame_due due;

        if (m->conf.blame.threshold_milli == 0 || !blame_of(node))
                return;
        due = blame_strike(&m->conf.blame, node->blame, s, now_real());
        if (due == BLAME_SHUN)
                shun(m, node, s->user, e, why);
        record(m, node);
        if (due == BLAME_QUARANTINE)
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
        const struct exclusions *x = &e->job->hosts.exclusions;

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
        bool signalled = strcmp(e->end.result, "signal") == 0 || strcmp(e->end.result, "core-dump") == 0;

        if (e->end.fate == FATE_BLAME)
                return STRIKE_RULE;
        if (e->end.status == (signalled ? SIGBUS : 128 + SIGBUS))
                return STRIKE_BUS;
        if (before != EXECUTOR_RUNNING || (!signalled && e->end.status >= 200 && e->end.status <= 243))
                return STRIKE_START;
        return STRIKE_EXECUTOR;
}

/* Ends by the limits that the job set itself say nothing about the host. */
static bool is_own_limit(const struct executor *e) {
        return strcmp(e->end.result, "oom-kill") == 0 || strcmp(e->end.result, "timeout") == 0 ||
               e->end.fate == FATE_GROWN || e->end.fate == FATE_INVALID;
}

static void exclude(struct executor *e, uint64_t when) {
        const struct blacklist_spec *b = &e->job->spec->failure.blacklist;
        int n = exclusions_failed(&e->job->hosts.exclusions, e->node->name, e->rank, when);

        if (n == 0) /* a person has the job go there again since */
                return;
        if (e->end.fate == FATE_BLAME || (b->enabled && n > (int)b->max_failed))
                (void)exclusions_until(&e->job->hosts.exclusions, e->node->name,
                                       usec_add(when, b->timeout_usec));
}

/* Nobody knows whose fault that is: it counts against both. */
static bool has_no_record(const struct executor *e) {
        return strcmp(e->end.result, "no-record") == 0;
}

void blaming_remember(struct executor *e) {
        if (e->attempt > 0 && e->node && !is_own_limit(e) &&
            (e->state == EXECUTOR_FAILED || (e->state == EXECUTOR_LOST && has_no_record(e))))
                exclude(e, e->ended_real);
}

void blaming_ended(struct manager *m, struct executor *e, enum executor_event event,
                   enum executor_state before) {
        struct node *node = e->node;
        bool was_out, vanished;

        if (!node)
                return;
        if (event == EXECUTOR_EVENT_SUCCEEDED && node->blame && node->blame->state == BLAME_PROBATION &&
            e->placed_real >= node->blame->since)
                release(m, node, "what was tried there ended well");
        if (event == EXECUTOR_EVENT_SUCCEEDED && node->blame &&
            blame_reconcile(node->blame, e->job->owner, e->placed_real))
                record(m, node);
        vanished = event == EXECUTOR_EVENT_LOST && has_no_record(e);
        if (!vanished && (event != EXECUTOR_EVENT_FAILED || is_own_limit(e)))
                return;
        was_out = exclusions_of(&e->job->hosts.exclusions, node->name, now_real()) > 0;
        exclude(e, now_real());
        if (!was_out && exclusions_of(&e->job->hosts.exclusions, node->name, now_real()) > 0)
                record_event(m, e->job, "host-excluded", e, "the job is kept off %s for a time (%s)",
                             node->name, e->end.fate == FATE_BLAME ? "exitCodes: blame" : "blacklistConfig");
        if (fails_everywhere(m, e) && e->end.fate != FATE_BLAME)
                return;
        blaming_strike(m, node, vanished ? STRIKE_NO_RECORD : kind_of(e, before), e,
                       vanished    ? "an executor vanished without a record"
                       : e->reason ? e->reason
                                   : "");
}

/* ---- placement ---- */

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

size_t blaming_excluded_max(const struct manager *m, const struct job *j) {
        return j->hosts.exclusions.n + (is_shunner(m, j->owner) ? m->nodes.n : 0);
}

/* What the job itself is kept off. Returns how many of them could take the role. */
static uint32_t add_excluded(struct manager *m, const struct job *j, const struct role_spec *spec,
                             uint32_t *list, size_t *n) {
        const struct exclusions *x = &j->hosts.exclusions;
        uint64_t now = now_real();
        uint32_t usable = 0, max = j->spec->failure.blacklist.max_nodes;
        size_t added = 0;

        for (size_t i = 0; i < x->n && added < max; i++) {
                const struct node *node = nodes_get(&m->nodes, x->hosts[i].node);
                if (!node || !node->in_sched || x->hosts[i].until_real <= now)
                        continue;
                usable += node_usable(node) && role_may_use(spec, node);
                list[(*n)++] = node->slot;
                added++;
        }
        return usable;
}

/* What is kept from its owner's jobs and does not stand in the list from first on; the same. */
static uint32_t add_shunned(struct manager *m, const struct job *j, const struct role_spec *spec,
                            uint32_t *list, size_t *n, size_t first) {
        uint64_t now = now_real();
        uint32_t usable = 0;
        struct node *node, *next;
        size_t end = *n;

        if (!is_shunner(m, j->owner))
                return 0;
        HASH_ITER (hh, m->nodes.by_name, node, next) {
                bool listed = false;
                if (!node->blame || !node->in_sched || blame_shunned(node->blame, j->owner, now) == 0)
                        continue;
                for (size_t i = first; i < end && !listed; i++)
                        listed = list[i] == node->slot;
                if (listed)
                        continue;
                usable += node_usable(node) && role_may_use(spec, node);
                list[(*n)++] = node->slot;
        }
        return usable;
}

void blaming_excluded(struct manager *m, const struct job *j, const struct role_spec *spec, uint32_t *list,
                      size_t *n) {
        size_t before = *n, of_job;
        uint32_t excluded = add_excluded(m, j, spec, list, n), shunned, usable = 0;
        struct node *node, *next;

        of_job = *n;
        shunned = add_shunned(m, j, spec, list, n, before);
        if (*n == before)
                return;
        HASH_ITER (hh, m->nodes.by_name, node, next)
                usable += node_usable(node) && role_may_use(spec, node);
        /* It would be kept off everything. */
        if (usable <= excluded + shunned)
                *n = of_job;
        if (usable <= excluded)
                *n = before;
}

/* ---- the store ---- */

static int load_blame(void *userdata, const struct blame_record *r) {
        const struct blame_state_record *s = &r->state;
        struct manager *m = userdata;
        struct node *node = nodes_get(&m->nodes, r->node);
        struct blame *b;

        if (!node)
                return 0;
        if (s->state >= _BLAME_STATE_MAX || s->n_strikes > BLAME_STRIKES_MAX || s->n_shuns > BLAME_SHUNS_MAX)
                return -EUCLEAN;
        b = blame_of(node);
        if (!b)
                return -ENOMEM;
        *b = (struct blame){ .state = s->state,
                             .times = s->times,
                             .since = s->since_real,
                             .until = s->until_real,
                             .n_strikes = s->n_strikes,
                             .n_shuns = s->n_shuns };
        for (uint32_t i = 0; i < s->n_strikes; i++)
                b->strikes[i] = (struct strike){ .when = s->strikes[i].real,
                                                 .job = s->strikes[i].job,
                                                 .user = s->strikes[i].user,
                                                 .kind = s->strikes[i].kind,
                                                 .alone = s->strikes[i].alone };
        for (uint32_t i = 0; i < s->n_shuns; i++) {
                b->shuns[i] = (struct shun){ .user = s->shuns[i].user,
                                             .times = s->shuns[i].times,
                                             .until = s->shuns[i].until_real };
                if (remember_shunner(m, b->shuns[i].user, b->shuns[i].until) < 0)
                        return -ENOMEM;
        }
        return placement_node_changed(m, node);
}

int blaming_load(struct manager *m) {
        return store_load_blames(m->store, load_blame, m);
}
