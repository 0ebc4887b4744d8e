/* SPDX-License-Identifier: Apache-2.0 */
/* What feeders are told beside their tasks: hold back, go on, give up a part, say what you know. */
#include <string.h>
#include <utlist.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/try.h"
#include "masterd/core/manager.h"
#include "masterd/core/record.h"
#include "masterd/feed/feeding-parts.h"
#include "masterd/link/link.h"
#include "masterd/link/orders.h"

/* A task that will take longer than this is worth cutting when somebody has nothing to do. */
#define TRIM_LEFT_USEC (5 * USEC_PER_SEC)
#define TRIM_LEFT_BYTES (UINT64_C(1) << 20)
#define TRIM_AGAIN_USEC USEC_PER_SEC
#define TRIMS_MAX 64u /* at once */

int feeding_message(const struct executor *e, const char *member, sd_bus_message **ret) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *message = NULL;
        struct executor_id id = executor_id_of(e);

        if (!e->node)
                return -ENOTCONN;
        TRY(link_one_way(e->node, member, &message));
        TRY(executor_id_append(message, &id));
        *ret = TAKE_PTR(message);
        return 0;
}

int feeding_control(struct executor *e, enum feed_control op, uint64_t task, uint64_t value) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *message = NULL;
        struct feed_order order = { .op = op, .task = task, .value = value };

        TRY(feeding_message(e, "FeedControl", &message));
        TRY(feed_order_append(message, &order));
        return sd_bus_send(NULL, message, NULL);
}

static void tell_all(struct job *j, enum feed_control op) {
        struct executor *e;

        if (!j->data)
                return;
        JOB_FOREACH (j, e)
                if (e->feed.open)
                        (void)feeding_control(e, op, 0, 0);
}

void feeding_suspend(struct manager *m, struct job *j) {
        tell_all(j, FEED_CONTROL_PAUSE);
}

void feeding_resume(struct manager *m, struct job *j) {
        tell_all(j, FEED_CONTROL_RESUME);
        if (j->data)
                feeding_run(m, j);
}

/* ---- tasks, by a person ---- */

static void retry_one(struct job *j, struct task *t) {
        struct task_before before = task_before(j->data, t);

        if (data_retry(j->data->data, t) >= 0)
                task_after(j->data, before, t);
}

static void skip_one(struct job *j, struct task *t) {
        struct task_before before = task_before(j->data, t);

        if (before.holder)
                (void)feeding_control(before.holder, FEED_CONTROL_DROP, t->id, 0);
        data_skip(j->data->data, t, feeding_leases_of(j, t));
        task_after(j->data, before, NULL);
}

/* What failed, or one task; what is done to each is given. */
static int change(struct manager *m, struct job *j, uint64_t task, bool failed_only, const char *kind,
                  void (*one)(struct job *j, struct task *t), uint64_t *ret_changed) {
        uint64_t n = 0, id = 0;
        struct task *t;

        if (feeding_is_gone(j))
                return -ENODATA;
        if (task) {
                t = data_task(j->data->data, task);
                if (!t || (failed_only && t->place != TASK_GAVE_UP))
                        return -ENOENT;
                record_event(m, j, kind, NULL, "task %llu, %s", (unsigned long long)task, t->what.path);
                one(j, t);
                n = 1;
        } else
                while ((t = data_next_task(j->data->data, id))) {
                        id = t->id;
                        if (t->place != TASK_GAVE_UP)
                                continue;
                        one(j, t);
                        n++;
                }
        if (!task && n > 0)
                record_event(m, j, kind, NULL, "%llu failed tasks", (unsigned long long)n);
        if (n > 0)
                feeding_changed(m, j);
        *ret_changed = n;
        return 0;
}

int feeding_retry(struct manager *m, struct job *j, uint64_t task, uint64_t *ret_changed) {
        int r = change(m, j, task, true, "task-retried", retry_one, ret_changed);

        if (r >= 0 && *ret_changed > 0)
                j->data->finished = feeding_over(j);
        return r;
}

int feeding_skip(struct manager *m, struct job *j, uint64_t task, uint64_t *ret_changed) {
        return change(m, j, task, false, "task-skipped", skip_one, ret_changed);
}

/* ---- sync ---- */

struct feeding_syncing {
        struct job *job;
        uint64_t number;
        uint32_t n_left; /* executors that have not answered */
        sd_event_source *timer;
        void (*done)(void *userdata, bool all);
        void *userdata;
        struct feeding_syncing *prev, *next;
};

static void answer(struct feeding_syncing *q, bool all) {
        DL_DELETE(q->job->data->syncing, q);
        sd_event_source_disable_unref(q->timer);
        q->done(q->userdata, all);
        free(q);
}

static int on_sync_timer(sd_event_source *s, uint64_t usec, void *userdata) {
        struct feeding_syncing *q = userdata;

        answer(q, q->n_left == 0);
        return 0;
}

void feeding_synced(struct executor *e, uint64_t number) {
        struct feeding_syncing *q;

        number = MIN(number, e->job->data->sync_number);
        if (number <= e->feed.synced)
                return;
        DL_FOREACH (e->job->data->syncing, q)
                if (q->number > e->feed.synced && q->number <= number && --q->n_left == 0)
                        (void)sd_event_source_set_time(q->timer, 0); /* answered from the loop */
        e->feed.synced = number;
}

int feeding_sync(struct manager *m, struct job *j, uint64_t timeout_usec,
                 void (*done)(void *userdata, bool all), void *userdata) {
        struct job_data *d = j->data;
        struct feeding_syncing *q;
        struct executor *e;
        int r;

        if (!d)
                return -ENODATA;
        q = calloc(1, sizeof(*q));
        if (!q)
                return -ENOMEM;
        *q = (struct feeding_syncing){
                .job = j, .number = d->sync_number + 1, .done = done, .userdata = userdata
        };
        r = sd_event_add_time_relative(m->event, &q->timer, CLOCK_BOOTTIME, timeout_usec, USEC_PER_MSEC,
                                       on_sync_timer, q);
        if (r < 0) {
                free(q);
                return r;
        }
        d->sync_number++;
        DL_APPEND(d->syncing, q);
        JOB_FOREACH (j, e) {
                if (e->feed.open || (e->feed.leases_unknown && executor_state_holds(e->state))) {
                        /* One that is not connected answers by connecting. */
                        q->n_left++;
                        (void)feeding_control(e, FEED_CONTROL_SYNC, 0, q->number);
                } else
                        e->feed.synced = q->number;
        }
        if (q->n_left == 0)
                (void)sd_event_source_set_time(q->timer, 0);
        return 0;
}

void feeding_control_free(struct job *j) {
        while (j->data->syncing)
                answer(j->data->syncing, false);
}

/* ---- the long tail ---- */

/* How long its holder will still take; as it has been so far in this lease. */
static uint64_t left_usec(const struct task *t, uint64_t now) {
        uint64_t took = usec_sub(now, t->granted_usec), read = t->read - MIN(t->read, t->read_before);
        double left;

        if (t->read >= t->end)
                return 0;
        if (read == 0)
                return took < TRIM_LEFT_USEC ? 0 : UINT64_MAX; /* not begun, or stuck */
        left = (double)(t->end - t->read) * (double)took / (double)read;
        return left < (double)UINT64_MAX / 2 ? (uint64_t)left : UINT64_MAX;
}

static bool any_slow(const struct job *j, uint64_t now) {
        for (uint32_t i = 0; i < j->n_executors; i++) {
                const struct task *t;
                DL_FOREACH2 (j->executors[i]->feed.leases, t, lease_next)
                        if (t->what.split > 0 && left_usec(t, now) >= TRIM_LEFT_USEC)
                                return true;
        }
        return false;
}

uint64_t feeding_trim(struct manager *m, struct job *j) {
        uint64_t now = now_boot(), end;
        uint64_t due = usec_add(j->data->trimmed_usec, TRIM_AGAIN_USEC);
        struct task *t;
        uint32_t idle;

        /* It looks at all that is leased, and is called for each report. */
        if (now < due && j->data->trimmed_usec > 0)
                return due - now;
        idle = feeding_waiting(j);
        if (idle == 0)
                return TRIM_AGAIN_USEC;
        j->data->trimmed_usec = now;
        if (!any_slow(j, now))
                return TRIM_AGAIN_USEC;
        for (uint32_t i = 0; i < MIN(idle, TRIMS_MAX); i++) {
                struct executor *e;
                t = data_slowest(j->data->data, now, TRIM_LEFT_BYTES, &end);
                if (t && !feeding_holder(j, t))
                        continue;
                if (!t || left_usec(t, now) < TRIM_LEFT_USEC)
                        break;
                e = t->holder;
                if (feeding_control(e, FEED_CONTROL_TRIM, t->id, end) >= 0 && feeding_may_tell(m, j))
                        record_event(m, j, "task-slow", e,
                                     "task %llu, %s, is asked to end at %llu instead of %llu: %u executor%s "
                                     "nothing to do",
                                     (unsigned long long)t->id, t->what.path, (unsigned long long)end,
                                     (unsigned long long)t->end, idle, idle == 1 ? " has" : "s have");
        }
        return TRIM_AGAIN_USEC;
}
