/* SPDX-License-Identifier: Apache-2.0 */
/* What executors say of their tasks, and what follows. */
#include <string.h>
#include <utlist.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "masterd/feeding-parts.h"
#include "masterd/lifecycle.h"
#include "masterd/manager.h"
#include "masterd/record.h"

static struct executor *feed_executor(struct manager *m, struct node *node, const struct executor_id *id) {
        struct job *j = manager_job(m, id->job);
        struct executor *e;

        if (!j || !j->data || !sd_id128_equal(j->uid, id->job_uid))
                return NULL;
        e = job_executor(j, id->role, id->index);
        return e && e->attempt == id->attempt && e->node == node && executor_state_holds(e->state) &&
                               executor_role(e)->input_policy == INPUT_STREAMING
                       ? e
                       : NULL;
}

static void open_feed(struct executor *e) {
        struct job_data *d = e->job->data;

        if (!e->feed_open || e->feed_last)
                d->n_to_tell++;
        e->feed_open = true;
        e->feed_last = false; /* said again if it still holds: a feeder that connects anew does not know it */
}

void feeding_opened(struct manager *m, struct node *node, const struct executor_id *id, uint32_t credits) {
        struct executor *e = feed_executor(m, node, id);
        bool again;

        if (!e)
                return;
        again = e->feed_open || e->leases_unknown;
        open_feed(e);
        feeding_known(e);
        /* What it holds it has said just before. */
        feeding_synced(e, e->job->data->sync_number);
        if (e->job->state == JOB_SUSPENDED)
                (void)feeding_control(e, FEED_CONTROL_PAUSE, 0, 0);
        else if (again) /* it may have missed that */
                (void)feeding_control(e, FEED_CONTROL_RESUME, 0, 0);
        /* A grant may have been lost with the link that it was sent on. One that was not is ignored, or
         * answered with DONE. */
        feeding_grant_again(e);
        feeding_set_credits(e, credits);
        feeding_run(m, e->job);
}

static void tell(struct manager *m, struct job *j, struct executor *e, const struct task *t,
                 enum data_event event, const char *error) {
        static const char *const kinds[] = {
                [DATA_EVENT_FAILED] = "task-failed",
                [DATA_EVENT_GAVE_UP] = "task-gave-up",
        };

        if (event == DATA_EVENT_SPLIT)
                record_event(m, j, "task-split", e, "task %llu, %s: goes on to %llu; what is behind that is for others",
                             (unsigned long long)t->id, t->what.path, (unsigned long long)t->end);
        else
                record_event(m, j, kinds[event], e, "%s: %s", t->what.path, error);
}

static void one_report(struct manager *m, struct executor *e, const struct task_progress *p) {
        struct job *j = e->job;
        struct job_data *d = j->data;
        struct task *t = data_task(d->data, p->task);
        enum data_event event = DATA_EVENT_NONE;
        struct task_before before;
        int r;

        if (!t || t->place == TASK_GAVE_UP)
                return;
        /* Granted before this master came up; or, when enough is done, withdrawn. */
        if ((t->place == TASK_PENDING && !d->finished) || (t->place == TASK_LEASED && t->holder == d))
                feeding_adopt(j, t, e);
        if (t->place != TASK_LEASED || t->holder != e)
                return;
        before = task_before(d, t);
        r = data_report(d->data, t, &e->leases, p, now_boot(), &event);
        if (r < 0) {
                log_full(LOG_ERR, r, &(struct log_fields){ .job = j->number },
                         "A report of task %llu of job %u is lost", (unsigned long long)p->task, j->number);
                return;
        }
        task_after(d, before, r > 0 ? NULL : t);
        if (event != DATA_EVENT_NONE)
                tell(m, j, e, t, event, p->error);
}

void feeding_reported(struct manager *m, struct node *node, const struct executor_id *id,
                      const struct feed_report *report) {
        struct executor *e = feed_executor(m, node, id);
        const uint8_t *list = report->progress;
        size_t size = report->size;
        struct task_progress p;
        int r;

        if (!e)
                return;
        open_feed_once(e);
        while ((r = task_progress_next(&list, &size, &p)) > 0)
                one_report(m, e, &p);
        if (r < 0)
                log_full(LOG_WARNING, r,
                         &(struct log_fields){ .job = e->job->number, .role = id->role, .node = node->name },
                         "Unusable progress report of job %u %s/%u", id->job, id->role, id->index);
        e->data_wait_usec = report->counters.consumer_wait_usec;
        e->trainer_wait_usec = report->counters.producer_wait_usec;
        e->fed_bytes = report->counters.bytes;
        e->fed_records = report->counters.records;
        if (report->has_sync)
                feeding_synced(e, report->sync);
        feeding_sample(e->job);
        feeding_set_credits(e, report->credits);
        feeding_flush_soon(m, e->job);
        feeding_run(m, e->job);
}

/* ---- the end of an executor ---- */

/* Under checkpoint, what a trainer has not secured is of no use to another one: the next attempt goes on from
 * its own checkpoint, with its own tasks. They begin where they were acknowledged. */
static void keep_leases(struct job *j, struct executor *e) {
        struct task *kept = NULL, *t, *next;

        DL_FOREACH2(e->leases, t, lease_next)
        (void)0;
        while ((t = e->leases)) {
                struct task_before before = task_before(j->data, t);
                data_return(j->data->data, t, &e->leases);
                data_adopt(j->data->data, t, e, &kept, now_boot());
                task_after(j->data, before, t);
        }
        (void)next;
        e->leases = kept;
}
