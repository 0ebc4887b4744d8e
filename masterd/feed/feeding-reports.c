/* SPDX-License-Identifier: Apache-2.0 */
/* What executors say of their tasks, and what follows. */
#include <string.h>
#include <utlist.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "masterd/core/listeners.h"
#include "masterd/core/manager.h"
#include "masterd/core/record.h"
#include "masterd/feed/feeding-parts.h"

#define EVENTS_MAX 1000u /* of single tasks, of a job */

static struct executor *feed_executor(struct manager *m, struct node *node, const struct executor_id *id) {
        struct job *j = manager_job(m, id->job);
        struct executor *e;

        if (!j || !j->data || !sd_id128_equal(j->uid, id->job_uid))
                return NULL;
        e = job_attempt(j, id->role, id->index, id->attempt);
        return e && e->node == node && executor_state_holds(e->state) &&
                               executor_role(e)->input_policy == INPUT_STREAMING
                       ? e
                       : NULL;
}

static void open_feed(struct executor *e) {
        if (!e->feed.open || e->feed.last)
                e->job->data->n_to_tell++;
        e->feed.open = true;
        e->feed.last = false;
}

void feeding_opened(struct manager *m, struct node *node, const struct executor_id *id,
                    const struct feed_opened *opened) {
        struct executor *e = feed_executor(m, node, id);
        bool again;

        if (!e)
                return;
        again = e->feed.open || e->feed.leases_unknown;
        open_feed(
                e); /* the end is promised again if it still holds: one that connects anew does not know it */
        feeding_known(e);
        /* What it holds it has said just before. */
        feeding_synced(e, e->job->data->sync_number);
        if (e->job->state == JOB_SUSPENDED)
                (void)feeding_control(e, FEED_CONTROL_PAUSE, 0, 0);
        else if (again) /* it may have missed that */
                (void)feeding_control(e, FEED_CONTROL_RESUME, 0, 0);
        e->feed.sources = opened->sources;
        (void)feeding_tell_sources(e);
        /* A grant may have been lost with the link that it was sent on. One that was not is ignored, or
         * answered with DONE. */
        feeding_grant_again(e);
        /* Who waits there it says next, if anybody does. */
        feeding_set_credits(
                e, &(struct taker_word){ .credits = opened->credits, .speaks = e->feed.taker.speaks });
        feeding_run(m, e->job);
}

bool feeding_may_tell(struct manager *m, struct job *j) {
        struct job_data *d = j->data;

        if (d->n_events > EVENTS_MAX)
                return false;
        if (d->n_events++ < EVENTS_MAX)
                return true;
        record_event(
                m, j, "task-events", NULL,
                "there were %u events of tasks; of further ones is no word here: 'primusctl data %u' has "
                "the tasks",
                EVENTS_MAX, j->number);
        return false;
}

/* Most errors say which file it is. */
static bool names_path(const char *error, const char *path) {
        size_t n = strlen(path);

        return strncmp(error, path, n) == 0 && error[n] == ':';
}

static void tell(struct manager *m, struct job *j, struct executor *e, const struct task *t,
                 enum data_event event, const char *error) {
        static const char *const kinds[] = {
                [DATA_EVENT_FAILED] = "task-failed",
                [DATA_EVENT_GAVE_UP] = "task-gave-up",
        };

        if (!feeding_may_tell(m, j))
                return;
        if (event == DATA_EVENT_SPLIT)
                record_event(m, j, "task-split", e,
                             "task %llu, %s: goes on to %llu; what is behind that is for others",
                             (unsigned long long)t->id, t->what.path, (unsigned long long)t->end);
        else if (names_path(error, t->what.path))
                record_event(m, j, kinds[event], e, "%s", error);
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
        t->told = feeding_told(e);
        before = task_before(d, t);
        r = data_report(d->data, t, &e->feed.leases, p, now_boot(), &event);
        if (r < 0) {
                log_full(LOG_ERR, r, &(struct log_fields){ .job = j->number },
                         "A report of task %llu of job %u is lost", (unsigned long long)p->task, j->number);
                return;
        }
        task_after(d, before, r > 0 ? NULL : t);
        if (event != DATA_EVENT_NONE && r == 0)
                tell(m, j, e, t, event, p->error);
        else if (event == DATA_EVENT_SPLIT && feeding_may_tell(m, j)) /* and is gone */
                record_event(m, j, "task-split", e,
                             "task %llu ended at %llu; what is behind that is for others",
                             (unsigned long long)p->task, (unsigned long long)p->end);
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
        if (!e->feed.open)
                open_feed(e);
        while ((r = task_progress_next(&list, &size, &p)) > 0)
                one_report(m, e, &p);
        if (r < 0)
                log_full(LOG_WARNING, r,
                         &(struct log_fields){ .job = e->job->number, .role = id->role, .node = node->name },
                         "Unusable progress report of job %u %s/%u", id->job, id->role, id->index);
        e->feed.data_wait_usec = report->counters.consumer_wait_usec;
        e->feed.trainer_wait_usec = report->counters.producer_wait_usec;
        e->feed.bytes = report->counters.bytes;
        e->feed.records = report->counters.records;
        if (report->has_sync)
                feeding_synced(e, report->sync);
        feeding_sample(e->job);
        feeding_set_credits(e, &(struct taker_word){ .credits = report->credits,
                                                     .unserved = report->unserved,
                                                     .hungry = report->hungry,
                                                     .speaks = report->has_hungry });
        feeding_flush_soon(m, e->job);
        feeding_run(m, e->job);
}

/* ---- the end of an executor ---- */

/* Under checkpoint, what a trainer has not secured is of no use to another one: the next attempt goes on from
 * its own checkpoint, with its own tasks. They begin where they were acknowledged. */
static void keep_leases(struct job *j, struct executor *e) {
        struct task *kept = NULL, *t;

        while ((t = e->feed.leases)) {
                struct task_before before = task_before(j->data, t);
                data_return(j->data->data, t, &e->feed.leases);
                data_adopt(j->data->data, t, e, &kept, now_boot());
                task_after(j->data, before, t);
        }
        e->feed.leases = kept;
}

void feeding_gone(struct manager *m, struct executor *e) {
        struct job *j = e->job;

        if (!j->data)
                return;
        feeding_wants_nothing(e);
        e->feed.taker.speaks = false;
        if (e->feed.open && !e->feed.last)
                j->data->n_to_tell--;
        e->feed.open = e->feed.last = false;
        feeding_synced(e, j->data->sync_number);
        /* What it has not told of yet, its next attempt will. */
        if (j->data->input->ack == ACK_CHECKPOINT)
                keep_leases(j, e);
        else {
                feeding_known(e);
                feeding_give_back(j, e);
        }
        /* Its agent forgets what it reported when its end is on disk: with this turn. */
        feeding_flush(m, j);
        feeding_run_later(m, j);
}

void feeding_settled(struct manager *m, struct executor *e) {
        if (!e->job->data || !e->gone || (!e->feed.leases && !e->feed.leases_unknown))
                return;
        feeding_known(e);
        feeding_give_back(e->job, e);
        feeding_flush(m, e->job);
        feeding_run_later(m, e->job);
}

/* ---- the end of the data ---- */

static const char *example_of_failed(const struct job *j) {
        struct task *t;

        for (uint64_t id = 0; (t = data_next_task(j->data->data, id)); id = t->id)
                if (t->place == TASK_GAVE_UP && t->error)
                        return t->error;
        return "";
}

/* More than stopPolicy.taskFailedPercent of the tasks have failed. */
static bool too_many_failed(struct manager *m, struct job *j, const struct data_totals *n) {
        char reason[TASK_TEXT_MAX + 256];

        if (n->failed == 0 || !data_all_scanned(j->data->data) ||
            n->failed * 100000 < (uint64_t)j->spec->task_failed_milli * n->tasks)
                return false;
        snprintf(reason, sizeof(reason),
                 "%llu of %llu data tasks failed (stopPolicy.taskFailedPercent); one of them: %s",
                 (unsigned long long)n->failed, (unsigned long long)n->tasks, example_of_failed(j));
        m->up->job_stop(m, j, JOB_EVENT_FAILED, reason);
        return true;
}

/* Fewer are done than stopPolicy.taskSuccessPercent asks for, where it was given. */
static bool short_of(const struct job *j, const struct data_totals *n) {
        return (n->done + n->skipped) * 100000 < (uint64_t)j->spec->task_success_milli * n->tasks;
}

bool feeding_short(const struct job *j, char *buf, size_t size) {
        struct data_totals n;
        uint32_t percent = j->spec->task_success_milli;
        const char *example;

        if (!j->data || percent == 0 || !data_all_scanned(j->data->data))
                return false;
        data_totals(j->data->data, &n);
        if (!short_of(j, &n))
                return false;
        example = n.failed > 0 ? example_of_failed(j) : "";
        snprintf(buf, size,
                 "%llu of %llu data tasks are done, %llu failed, and %g %% were to be "
                 "(stopPolicy.taskSuccessPercent)%s%s",
                 (unsigned long long)(n.done + n.skipped), (unsigned long long)n.tasks,
                 (unsigned long long)n.failed, percent / 1000.0,
                 *example ? "; one of those that failed: " : "", example);
        return true;
}

/* So many are done as stopPolicy.taskSuccessPercent wants. Those that failed are none of them. */
static bool enough_done(const struct job *j, const struct data_totals *n) {
        return j->spec->task_success_milli > 0 && j->spec->task_success_milli < 100000 && n->tasks > 0 &&
               data_all_scanned(j->data->data) && !short_of(j, n);
}

bool feeding_over(const struct job *j) {
        struct data_totals n;

        data_totals(j->data->data, &n);
        return data_over(j->data->data) || enough_done(j, &n);
}

/* What is still held is not waited for. */
static void withdraw(struct job *j) {
        struct executor *e;

        JOB_FOREACH (j, e) {
                struct task *t;
                DL_FOREACH2 (e->feed.leases, t, lease_next)
                        (void)feeding_control(e, FEED_CONTROL_DROP, t->id, 0);
                feeding_give_back(j, e);
        }
}

bool feeding_check(struct manager *m, struct job *j) {
        struct job_data *d = j->data;
        struct data_totals n;

        if (d->finished)
                return true;
        data_totals(d->data, &n);
        if (too_many_failed(m, j, &n))
                return true;
        if (!data_over(d->data) && !enough_done(j, &n))
                return false;
        d->finished = true;
        record_event(m, j, "data-done", NULL, "all data is through: %llu of %llu tasks done, %llu failed",
                     (unsigned long long)(n.done + n.skipped), (unsigned long long)n.tasks,
                     (unsigned long long)n.failed);
        withdraw(j);
        feeding_flush(m, j);
        return true;
}

bool feeding_decides(const struct job *j) {
        if (!j->data || !j->data->finished || j->spec->graceful_shutdown)
                return false;
        for (uint32_t i = 0; i < j->n_executors; i++)
                if (executor_role(j->executors[i])->input_policy == INPUT_STREAMING &&
                    !executor_state_ended(j->executors[i]->state))
                        return false;
        return true;
}
