/* SPDX-License-Identifier: Apache-2.0 */
/* Invariant: a process of which something was said that is not in the store is on the list of the dirty,
 * which is in the order of since when; so what came before the oldest of them is written. */
#include "masterd/watch/training.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/try.h"
#include "lib/wire/messages.h"
#include "masterd/core/manager.h"
#include "masterd/link/link.h"
#include "masterd/watch/watch-parts.h"

#define WRITE_USEC (30 * USEC_PER_SEC) /* so long it is gathered, */
#define ROUND_USEC USEC_PER_SEC        /* and looked for what is due, */
#define ACCURACY_USEC (10 * USEC_PER_MSEC)
#define ROUND_BYTES (UINT64_C(4) << 20) /* of which so much is written at once */
#define LINES_MAX 10u                   /* of the log, about what finds no room, within */
#define LINES_USEC (600 * USEC_PER_SEC)
#define NODE_BYTES_MAX (16u << 20) /* of a node within */
#define NODE_BYTES_USEC (10 * USEC_PER_SEC)

struct metric_user {
        uint32_t uid;
        struct metric_budget budget;
        UT_hash_handle hh;
};

/* ---- budgets ---- */

/* One user has at most half of it. */
static struct metric_user *user_of(struct manager *m, uint32_t uid) {
        struct metric_user *u;

        HASH_FIND(hh, m->watch->metric_users, &uid, sizeof(uid), u);
        if (u)
                return u;
        u = calloc(1, sizeof(*u));
        if (!u)
                return NULL;
        u->uid = uid;
        u->budget = (struct metric_budget){ .above = &m->watch->metrics, .max = m->watch->metrics.max / 2 };
        HASH_ADD(hh, m->watch->metric_users, uid, sizeof(uid), u);
        return u;
}

static int metrics_of(struct manager *m, struct job *j, struct metrics **ret) {
        if (!j->metrics) {
                struct metric_user *u = user_of(m, j->owner);

                if (!u)
                        return -ENOMEM;
                TRY(metrics_new(&u->budget, j, &j->metrics));
        }
        *ret = j->metrics;
        return 0;
}

struct metrics *training_of(const struct job *j) {
        return j->metrics;
}

/* ---- writing ---- */

static size_t write_source(struct manager *m, struct metric_source *s) {
        const struct job *j = metrics_owner(s->metrics);
        _cleanup_free_ uint8_t *points = NULL;
        size_t size;
        int r = metric_source_write(s->metrics, s, &points, &size);

        if (r < 0) {
                log_oom(); /* it stays dirty; the next round */
                return 0;
        }
        DL_DELETE(m->watch->metrics_dirty, s);
        s->dirty_boot = 0;
        store_put_metric(m->store, &(struct metric_record){ .job = j->number,
                                                            .role = s->role,
                                                            .index = s->key.index,
                                                            .local = s->key.local,
                                                            .points = { points, size } });
        manager_touch(m);
        return size;
}

void training_write_all(struct manager *m) {
        struct metric_source *s, *next;

        DL_FOREACH_SAFE (m->watch->metrics_dirty, s, next)
                (void)write_source(m, s);
}

static void say_kept(const struct node *node, uint64_t seq) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *message = NULL;

        if (link_one_way(node, "MetricsKept", &message) >= 0 &&
            sd_bus_message_append(message, "ta{sv}", seq, 0) >= 0)
                (void)sd_bus_send(NULL, message, NULL);
}

struct written {
        uint64_t before_boot; /* what came before that is on disk */
};

static void on_written(struct manager *m, void *data) {
        struct written *w = data;
        struct node *node, *next;

        m->watch->metrics_unsaid = 0; /* counted anew: some may have been removed */
        HASH_ITER (hh, m->nodes.by_name, node, next) {
                if (node->metrics.boot > 0 && node->metrics.boot < w->before_boot) {
                        say_kept(node, node->metrics.seq);
                        node->metrics.boot = 0;
                }
                m->watch->metrics_unsaid += node->metrics.boot > 0;
        }
        free(w);
}

/* To those for whom that is news, when what was put into the store by now is on disk. */
static void tell_written(struct manager *m, uint64_t before_boot) {
        struct written *w;

        if (m->watch->metrics_unsaid == 0 || before_boot == m->watch->metrics_before)
                return;
        w = malloc(sizeof(*w));
        if (!w)
                return; /* the next round */
        *w = (struct written){ before_boot };
        if (manager_effect(m, on_written, w) < 0)
                return;
        m->watch->metrics_before = before_boot;
        manager_touch(m);
}

static void arm_round(struct manager *m);

static int on_round(sd_event_source *source, uint64_t usec, void *userdata) {
        struct manager *m = userdata;
        uint64_t now = now_boot();
        struct metric_source *s, *next;
        size_t bytes = 0;

        m->watch->metrics_round = now;
        DL_FOREACH_SAFE (m->watch->metrics_dirty, s, next) {
                bool due =
                        s->dirty_boot <= m->watch->metrics_due || now >= usec_add(s->dirty_boot, WRITE_USEC);

                if (!due || bytes >= ROUND_BYTES)
                        break;
                bytes += write_source(m, s);
        }
        tell_written(m, m->watch->metrics_dirty ? m->watch->metrics_dirty->dirty_boot : now);
        arm_round(m);
        return 0;
}

/* When the next one is due to be written; a moment later where all is, or more is due than a round writes. */
static uint64_t next_round(const struct watch *w, uint64_t now) {
        const struct metric_source *s = w->metrics_dirty;
        uint64_t soon = usec_add(now, ROUND_USEC);

        return s && s->dirty_boot > w->metrics_due ? MAX(usec_add(s->dirty_boot, WRITE_USEC), soon) : soon;
}

static int set_round(struct manager *m, uint64_t at) {
        struct watch *w = m->watch;
        int enabled = SD_EVENT_OFF;
        uint64_t before;

        if (!w->metrics_timer)
                return sd_event_add_time(m->event, &w->metrics_timer, CLOCK_BOOTTIME, at, ACCURACY_USEC,
                                         on_round, m);
        TRY(sd_event_source_get_enabled(w->metrics_timer, &enabled));
        TRY(sd_event_source_get_time(w->metrics_timer, &before));
        if (enabled != SD_EVENT_OFF && before <= at)
                return 0;
        TRY(sd_event_source_set_time(w->metrics_timer, at));
        return sd_event_source_set_enabled(w->metrics_timer, SD_EVENT_ONESHOT);
}

static void arm_round(struct manager *m) {
        int r = 0;

        if (m->watch->metrics_dirty || m->watch->metrics_unsaid > 0)
                r = set_round(m, next_round(m->watch, now_boot()));
        if (r < 0)
                (void)sd_event_exit(m->event, log_error_errno(r, "Cannot set a timer"));
}

/* Of whom it is that is not written yet is not asked: what a host has been told is on disk may be behind what
 * it has said since. Hosts that go one after another have a round each second. */
void training_node_gone(struct manager *m, const struct node *node) {
        struct watch *w = m->watch;
        int r;

        if (!w->metrics_dirty)
                return;
        w->metrics_due = now_boot();
        /* Not here: it may be masterd itself that ends, which has written all (-ESTALE: its loop is over). */
        r = set_round(m, MAX(w->metrics_due, usec_add(w->metrics_round, ROUND_USEC)));
        if (r < 0 && r != -ESTALE)
                (void)sd_event_exit(m->event, log_error_errno(r, "Cannot set a timer"));
}

/* ---- taking ---- */

static int take_points(struct manager *m, struct executor *e, uint32_t local, uint32_t attempt,
                       const uint8_t *at, size_t size, uint64_t now) {
        char name[METRIC_NAME_MAX + 1];
        const uint8_t *end = at + size;
        struct metric_source *s;
        struct metric_point p;
        struct metrics *metrics;
        bool news = false, full = false;
        int r;

        TRY(metrics_of(m, e->job, &metrics));
        TRY(metrics_source(metrics, executor_role(e)->name, e->index, local, &s));
        while ((r = metric_get(&at, end, name, &p)) > 0) {
                int k = metrics_add(metrics, s, attempt, name, &p);

                if (k == -ENOMEM)
                        return k;
                news = news || k > 0;
                full = full || k == -ENOBUFS;
        }
        if (news && s->dirty_boot == 0) {
                s->dirty_boot = now;
                DL_APPEND(m->watch->metrics_dirty, s);
        }
        return r == 0 && full ? -ENOBUFS : r;
}

/* Not once for each point: it goes on as long as the job does. */
static void note_no_room(struct manager *m, const struct executor *e, uint64_t now) {
        if (burst_admit(&m->watch->metrics_lines, now, LINES_USEC, LINES_MAX))
                log_full(
                        LOG_WARNING, 0, &(struct log_fields){ .job = e->job->number },
                        "Job %u: there is no room for all that %s/%u reports of its training (MetricsMax=, %u names); "
                        "some of it is left out",
                        e->job->number, executor_role(e)->name, e->index, METRIC_NAMES_MAX);
}

static int take_said(struct manager *m, struct node *node, sd_bus_message *message, uint64_t now,
                     uint32_t *bytes) {
        struct executor_id id;
        struct executor *e;
        const void *points;
        uint32_t local;
        size_t size;
        int r = sd_bus_message_enter_container(message, 'r', LINK_ID_SIGNATURE "uay");

        if (r <= 0)
                return r;
        r = executor_id_read(message, &id);
        if (r > 0)
                r = sd_bus_message_read_basic(message, 'u', &local);
        if (r > 0)
                r = sd_bus_message_read_array(message, 'y', &points, &size);
        if (r < 0 || size > METRICS_BYTES_MAX || local > METRIC_LOCAL_MAX)
                return r < 0 ? r : -EBADMSG;
        TRY(sd_bus_message_exit_container(message));
        *bytes = (uint32_t)size;
        e = manager_attempt(m, &id);
        if (!e || e->node != node || e->leaver.leaves || job_state_ended(e->job->state))
                return 1;
        r = take_points(m, e, local, id.attempt, points, size, now);
        if (r == -ENOBUFS)
                note_no_room(m, e, now);
        /* What is no point was a trainer's word, which the agent does not look into: it costs no other
         * trainer his. */
        return r == -ENOMEM ? r : 1;
}

int training_received(struct manager *m, struct node *node, sd_bus_message *message) {
        uint64_t seq, now = now_boot();
        uint32_t bytes = 0;
        int r = sd_bus_message_read_basic(message, 't', &seq);

        if (r > 0)
                r = sd_bus_message_enter_container(message, 'a', "(" LINK_ID_SIGNATURE "uay)");
        while (r >= 0 && (r = take_said(m, node, message, now, &bytes)) > 0)
                if (!burst_admit_many(&node->bursts.metrics, now, NODE_BYTES_USEC, NODE_BYTES_MAX, bytes))
                        return 1;
        if (r < 0)
                return r;
        if (node->metrics.boot == 0) {
                node->metrics = (struct node_metrics){ seq, now };
                m->watch->metrics_unsaid++;
        }
        arm_round(m);
        return 0;
}

/* ---- jobs ---- */

static int load_one(void *userdata, const struct metric_record *r) {
        struct manager *m = userdata;
        struct job *j = manager_job(m, r->job);
        struct metric_source *s;
        struct metrics *metrics;
        int k;

        if (!j)
                return 0;
        k = metrics_of(m, j, &metrics);
        k = k < 0 ? k : metrics_source(metrics, r->role, r->index, r->local, &s);
        k = k < 0 ? k : metric_source_read(metrics, s, r->points.data, r->points.size);
        if (k < 0 && k != -ENOMEM)
                log_full(LOG_WARNING, k, &(struct log_fields){ .job = j->number },
                         "Metrics of job %u, %s[%u] are not as they were written", j->number, r->role,
                         r->index);
        return k == -ENOMEM ? k : 0;
}

int training_load(struct manager *m) {
        return store_load_metrics(m->store, load_one, m);
}

static void drop_metrics(struct manager *m, struct job *j, bool write) {
        struct metric_user *u;

        if (!j->metrics)
                return;
        for (struct metric_source *s = metrics_next(j->metrics, NULL); s; s = metrics_next(j->metrics, s)) {
                if (s->dirty_boot > 0 && write)
                        (void)write_source(m, s);
                if (s->dirty_boot > 0)
                        DL_DELETE(m->watch->metrics_dirty, s);
        }
        metrics_free(j->metrics);
        j->metrics = NULL;
        u = user_of(m, j->owner);
        if (!u || u->budget.bytes > 0)
                return;
        HASH_DEL(m->watch->metric_users, u);
        free(u);
}

void training_job_ended(struct manager *m, struct job *j) {
        drop_metrics(m, j, true);
}

void training_job_freed(struct job *j) {
        drop_metrics(j->manager, j, false);
}

void training_stop(struct manager *m) {
        sd_event_source_disable_unref(m->watch->metrics_timer);
}
