/* SPDX-License-Identifier: Apache-2.0 */
/* Data of a job. Invariant: a task is granted only while no other executor may still hold it. */
#include "masterd/feeding.h"

#include <string.h>
#include <utlist.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/parse.h"
#include "masterd/lifecycle.h"
#include "masterd/link.h"
#include "masterd/manager.h"
#include "masterd/orders.h"
#include "masterd/record.h"

int feeding_new(struct job *j) {
        struct job_data *d;

        if (spec_n_sources(j->spec) == 0)
                return 0;
        d = calloc(1, sizeof(*d));
        if (!d)
                return -ENOMEM;
        d->sources = calloc(j->spec->n_inputs, sizeof(*d->sources));
        if (!d->sources) {
                free(d);
                return -ENOMEM;
        }
        d->table.max_attempts = MAX(j->spec->max_task_attempts, 1u);
        j->data = d;
        return 0;
}

void feeding_free(struct job *j) {
        struct job_data *d = j->data;

        if (!d)
                return;
        for (size_t i = 0; i < j->spec->n_inputs; i++) {
                free(d->sources[i].cursor);
                sd_event_source_disable_unref(d->sources[i].retry);
        }
        free(d->sources);
        task_table_done(&d->table);
        free(d);
        j->data = NULL;
}

static void put_source(struct manager *m, struct job *j, uint32_t source) {
        const struct source *s = j->data->sources + source;
        struct source_record record = { .job = j->number,
                                        .source = source,
                                        .scanned = s->scanned,
                                        .cursor = { s->cursor, s->cursor ? strlen(s->cursor) : 0 },
                                        .tasks = j->data->table.n };

        store_put_source(m->store, &record);
        manager_touch(m);
}

static void put_progress(struct manager *m, struct job *j, const struct task *t) {
        struct task_progress_record record = { .job = j->number,
                                               .task = t->id,
                                               .state = (uint8_t)t->place,
                                               .acked = t->acked,
                                               .attempts = t->attempts,
                                               .error = t->error };

        store_put_task_progress(m->store, &record);
        manager_touch(m);
}

/* ---- scanning
 * ------------------------------------------------------------------------------------------------------ */

static struct node *scan_node(struct job *j) {
        /* Where the trainers see the data, the scan sees it. */
        for (uint32_t i = 0; i < j->n_executors; i++) {
                struct executor *e = j->executors + i;
                if (executor_role(e)->input_policy == INPUT_STREAMING && executor_state_holds(e->state) &&
                    e->node->state == NODE_READY)
                        return e->node;
        }
        return NULL;
}

static void start_scan(struct manager *m, struct job *j, uint32_t source) {
        struct source *s = j->data->sources + source;

        if (s->scanned || s->node || s->retry || job_state_ended(j->state) || j->state == JOB_STOPPING)
                return;
        s->node = scan_node(j);
        if (!s->node)
                return;
        /* Unique also across restarts of masterd, which does not store attempts of scans: a unit's name is
         * never used twice. */
        s->attempt = s->attempt ? s->attempt + 1 : (uint32_t)((m->term & 0xffffff) << 8 | 1);
        (void)orders_scan_later(m, j, s->node, source, s->attempt, s->cursor);
}

void feeding_start(struct manager *m, struct job *j) {
        for (uint32_t i = 0; j->data && i < j->spec->n_inputs; i++)
                start_scan(m, j, i);
}

void feeding_stop(struct manager *m, struct job *j) {
        for (uint32_t i = 0; j->data && i < j->spec->n_inputs; i++) {
                struct source *s = j->data->sources + i;
                struct executor_id id = { .job_uid = j->uid,
                                          .job = j->number,
                                          .role = SCAN_ROLE,
                                          .index = i,
                                          .attempt = s->attempt };
                s->retry = sd_event_source_disable_unref(s->retry);
                if (s->node)
                        (void)orders_stop_stale_later(m, s->node, &id);
                s->node = NULL;
        }
}

void feeding_restart(struct manager *m, struct job *j) {
        /* What scans still run belongs to the attempt that is over. */
        feeding_stop(m, j);
}

static int on_scan_retry(sd_event_source *source, uint64_t usec, void *userdata) {
        struct job *j = userdata;

        for (uint32_t i = 0; i < j->spec->n_inputs; i++)
                if (j->data->sources[i].retry == source) {
                        j->data->sources[i].retry = sd_event_source_disable_unref(j->data->sources[i].retry);
                        start_scan(j->manager, j, i);
                }
        return 0;
}

static void scan_failed(struct manager *m, struct job *j, uint32_t source, const char *why, bool final) {
        struct source *s = j->data->sources + source;
        char reason[1024];

        s->node = NULL;
        if (s->scanned || job_state_ended(j->state) || j->state == JOB_STOPPING)
                return;
        if (final || ++s->failures >= SCAN_ATTEMPTS) {
                snprintf(reason, sizeof(reason), "cannot list the data source '%s' (%s): %s",
                         j->spec->inputs[source].name, j->spec->inputs[source].path_pattern, why);
                lifecycle_stop_job(m, j, JOB_EVENT_FAILED, reason);
                return;
        }
        record_event(m, j, "scan-failed", NULL, "listing the data source '%s' failed, trying again: %s",
                     j->spec->inputs[source].name, why);
        (void)sd_event_add_time_relative(m->event, &s->retry, CLOCK_BOOTTIME, s->failures * USEC_PER_SEC, 0,
                                         on_scan_retry, j);
}

static struct source *scan_of(struct job *j, struct node *node, const struct executor_id *id) {
        struct source *s;

        if (!j || !j->data || strcmp(id->role, SCAN_ROLE) != 0 || id->index >= j->spec->n_inputs)
                return NULL;
        s = j->data->sources + id->index;
        return s->node == node && s->attempt == id->attempt ? s : NULL;
}

bool feeding_scan_known(struct job *j, struct node *node, const struct executor_id *id) {
        return scan_of(j, node, id);
}

bool feeding_scan_reported(struct job *j, struct node *node, const struct executor_id *id) {
        struct source *s = scan_of(j, node, id);

        if (s)
                s->reported = true;
        return s;
}

void feeding_node_gone(struct manager *m, struct node *node, bool back) {
        struct job *j, *next;

        HASH_ITER (hh, m->jobs, j, next)
                for (uint32_t i = 0; j->data && i < j->spec->n_inputs; i++) {
                        struct source *s = j->data->sources + i;

                        if (s->node == node && !(back && s->reported))
                                s->node = NULL;
                        s->reported = false;
                        start_scan(m, j, i);
                }
}

bool feeding_scan_exited(struct manager *m, struct job *j, struct node *node,
                         const struct exit_report *report) {
        char why[600];

        if (strcmp(report->id.role, SCAN_ROLE) != 0)
                return false;
        if (scan_of(j, node, &report->id)) {
                if (strcmp(report->result, "success") == 0 && strcmp(report->code, "exited") == 0) {
                        /* It has told its agent everything; the link or a master broke before that was on
                         * disk. */
                        j->data->sources[report->id.index].node = NULL;
                        start_scan(m, j, report->id.index);
                        return true;
                }
                snprintf(why, sizeof(why), "the listing ended early (%s, status %d)%s%s", report->result,
                         report->status, report->detail && *report->detail ? ": " : "",
                         report->detail ? report->detail : "");
                scan_failed(m, j, report->id.index, why, false);
        }
        return true;
}

struct listed {
        uint32_t job;
        sd_id128_t uid;
        size_t n;
};

/* Tasks are granted from here on: by then what they are is on disk, so a number that an executor reports to
 * the next master means the same file there. */
static void run_listed(struct manager *m, void *data) {
        struct listed *l = data;
        struct job *j = manager_job(m, l->job);

        if (j && j->data && sd_id128_equal(j->uid, l->uid)) {
                j->data->n_durable = MAX(j->data->n_durable, l->n);
                feeding_run(m, j);
        }
        free(l);
}

static void listed_later(struct manager *m, const struct job *j) {
        struct listed *l = malloc(sizeof(*l));

        if (l)
                *l = (struct listed){ j->number, j->uid, j->data->table.n };
        (void)manager_effect(m, run_listed, l);
}

void feeding_scanned(struct manager *m, struct node *node, const struct executor_id *id,
                     const struct scan_batch *batch) {
        struct job *j = manager_job(m, id->job);
        struct source *s = scan_of(j, node, id);
        const uint8_t *entries = batch->entries;
        size_t size = batch->size;
        struct scan_entry e;
        const char *cursor = NULL;
        int r;

        if (!s || s->scanned || !sd_id128_equal(j->uid, id->job_uid))
                return;
        while ((r = scan_entry_next(&entries, &size, &e)) > 0) {
                struct task *t;

                r = task_add(&j->data->table, id->index, e.path, e.size, e.mtime_nsec, e.inode, &t);
                cursor = e.path;
                if (r < 0) {
                        char reason[128];
                        if (r == -E2BIG)
                                snprintf(reason, sizeof(reason),
                                         "more than %u files; use larger ones, or several jobs", TASKS_MAX);
                        else
                                snprintf(reason, sizeof(reason), "the master is out of memory");
                        scan_failed(m, j, id->index, reason, true);
                        return;
                }
                struct task_record record = { .job = j->number,
                                              .task = t->id,
                                              .source = t->source,
                                              .path = { t->path, strlen(t->path) },
                                              .size = t->size,
                                              .mtime_nsec = t->mtime_nsec,
                                              .inode = t->inode,
                                              .state = TASK_PENDING };
                store_put_task(m->store, &record);
        }
        if (r < 0) {
                scan_failed(m, j, id->index, "the host's agent sent a list that cannot be read", false);
                return;
        }
        if (cursor) {
                char *copy = strdup(cursor);

                if (copy) {
                        free(s->cursor);
                        s->cursor = copy;
                }
        }
        if (batch->error[0]) {
                scan_failed(m, j, id->index, batch->error, true);
                return;
        }
        if (batch->last) {
                s->scanned = true;
                s->node = NULL;
                record_event(m, j, "scanned", NULL, "data source '%s': %llu tasks in all so far, %llu bytes",
                             j->spec->inputs[id->index].name, (unsigned long long)j->data->table.n,
                             (unsigned long long)j->data->table.bytes);
        }
        put_source(m, j, id->index);
        listed_later(m, j);
}

/* ---- leases
 * ----------------------------------------------------------------------------------------------------------
 */

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

static int send_grant(struct executor *e, struct task *const *tasks, size_t n, bool last);

void feeding_opened(struct manager *m, struct node *node, const struct executor_id *id, uint32_t credits) {
        struct executor *e = feed_executor(m, node, id);
        struct task *t;

        if (!e)
                return;
        /* A grant may have been lost with the link that it was sent on. One that was not is ignored, or
         * answered with DONE. */
        DL_FOREACH2(e->leases, t, lease_next)
        if (send_grant(e, &t, 1, false) < 0)
                break;
        e->leases_unknown = false;
        e->feed_open = true;
        e->feed_last = false; /* said again if it still holds: a feeder that connects anew does not know it */
        e->credits = MIN(credits, 64u);
        feeding_run(m, e->job);
}

static bool all_scanned(const struct job *j) {
        for (size_t i = 0; i < j->spec->n_inputs; i++)
                if (!j->data->sources[i].scanned)
                        return false;
        return true;
}

static void check_finished(struct manager *m, struct job *j) {
        struct job_data *d = j->data;
        uint64_t over = d->table.n_place[TASK_FINISHED] + d->table.n_place[TASK_GAVE_UP];

        if (d->finished || !all_scanned(j) || over < d->table.n)
                return;
        d->finished = true;
        record_event(m, j, "data-done", NULL, "all data is through: %llu tasks done, %llu failed",
                     (unsigned long long)d->table.n_place[TASK_FINISHED],
                     (unsigned long long)d->table.n_place[TASK_GAVE_UP]);
}

void feeding_restored(struct job *j) {
        struct job_data *d = j->data;

        if (!d)
                return;
        d->n_durable = d->table.n;
        d->finished = all_scanned(j) &&
                      d->table.n_place[TASK_FINISHED] + d->table.n_place[TASK_GAVE_UP] >= d->table.n;
}

bool feeding_decides(const struct job *j) {
        if (!j->data || !j->data->finished || j->spec->graceful_shutdown)
                return false;
        for (uint32_t i = 0; i < j->n_executors; i++)
                if (executor_role(j->executors + i)->input_policy == INPUT_STREAMING &&
                    !executor_state_ended(j->executors[i].state))
                        return false;
        return true;
}

/* More than stopPolicy.taskFailedPercent of the tasks have failed. */
static bool too_many_failed(struct manager *m, struct job *j) {
        const struct task_table *t = &j->data->table;
        char reason[700];
        const char *example = "";

        if (t->n_place[TASK_GAVE_UP] == 0 || !all_scanned(j) ||
            t->n_place[TASK_GAVE_UP] * 100000 < (uint64_t)j->spec->task_failed_milli * t->n)
                return false;
        for (size_t i = 0; i < t->n && !*example; i++)
                if (t->tasks[i]->place == TASK_GAVE_UP && t->tasks[i]->error)
                        example = t->tasks[i]->error;
        snprintf(reason, sizeof(reason),
                 "%llu of %llu data tasks failed (stopPolicy.taskFailedPercent); one of them: %s",
                 (unsigned long long)t->n_place[TASK_GAVE_UP], (unsigned long long)t->n, example);
        lifecycle_stop_job(m, j, JOB_EVENT_FAILED, reason);
        return true;
}

void feeding_reported(struct manager *m, struct node *node, const struct executor_id *id,
                      const struct feed_report *report) {
        struct executor *e = feed_executor(m, node, id);
        const uint8_t *list = report->progress;
        size_t size = report->size;
        struct task_progress p;
        struct job *j;
        int r;

        if (!e)
                return;
        j = e->job;
        e->feed_open = true;
        e->credits = MIN(report->credits, 64u);
        while ((r = task_progress_next(&list, &size, &p)) > 0) {
                struct task *t = task_get(&j->data->table, p.task);
                bool durable;
                if (!t || t->place == TASK_FINISHED || t->place == TASK_GAVE_UP)
                        continue;
                if (t->place == TASK_PENDING) /* granted before this master came up */
                        task_adopt(&j->data->table, t, e, &e->leases);
                if (t->holder != e)
                        continue;
                durable = task_progress_update(&j->data->table, t, p.read, p.acked);
                if (p.state == TASK_DONE) {
                        task_finish(&j->data->table, t, &e->leases);
                        durable = true;
                } else if (p.state == TASK_FAILED) {
                        bool over = task_fail(&j->data->table, t, &e->leases, p.error);
                        record_event(m, j, over ? "task-gave-up" : "task-failed", e, "%s: %s", t->path,
                                     p.error);
                        durable = true;
                } else if (p.state == TASK_RETURNED) {
                        task_return(&j->data->table, t, &e->leases);
                        durable = true;
                }
                if (durable)
                        put_progress(m, j, t);
        }
        if (r < 0)
                log_warning_errno(r, "Unusable progress report of an executor on %s", node->name);
        if (!too_many_failed(m, j))
                feeding_run(m, j);
}

void feeding_gone(struct manager *m, struct executor *e) {
        struct task *t;

        e->feed_open = e->feed_last = e->leases_unknown = false;
        e->credits = 0;
        if (!e->job->data)
                return;
        while ((t = e->leases)) {
                task_return(&e->job->data->table, t, &e->leases);
                put_progress(m, e->job, t);
        }
}

/* Whether somebody may hold tasks that we do not know of, because we came up after they were granted. A
 * feeder that connects anew first reports what it holds and then says that it is open. */
static bool leases_unknown(const struct job *j) {
        for (uint32_t i = 0; i < j->n_executors; i++)
                if (j->executors[i].leases_unknown && executor_state_holds(j->executors[i].state))
                        return true;
        return false;
}

static int send_grant(struct executor *e, struct task *const *tasks, size_t n, bool last) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *message = NULL;
        struct executor_id id = executor_id_of(e);
        sd_bus *bus = link_bus(e->node);
        uint8_t grants[8192]; /* one task with the longest path */
        struct grant_batch batch = { .grants = grants, .last = last };
        int r = 0;

        if (!bus)
                return -ENOTCONN;
        for (size_t i = 0; r >= 0 && i < n; i++)
                r = task_grant_write(&(struct task_grant){ .task = tasks[i]->id,
                                                           .end = tasks[i]->size,
                                                           .offset = tasks[i]->acked,
                                                           .size = tasks[i]->size,
                                                           .mtime_nsec = tasks[i]->mtime_nsec,
                                                           .inode = tasks[i]->inode,
                                                           .source = tasks[i]->source,
                                                           .failures = tasks[i]->attempts,
                                                           .path = tasks[i]->path },
                                     grants, sizeof(grants), &batch.size);
        if (r >= 0)
                r = sd_bus_message_new_method_call(bus, &message, NULL, LINK_PATH, LINK_INTERFACE, "Grant");
        if (r >= 0)
                r = sd_bus_message_set_expect_reply(message, false);
        if (r >= 0)
                r = executor_id_append(message, &id);
        if (r >= 0)
                r = grant_batch_append(message, &batch);
        return r < 0 ? r : sd_bus_send(bus, message, NULL);
}

/* End of file may be promised when nothing is left that could still come back from a holder before it is
 * read: a task that was read to its end is only waiting for its acknowledgement, which for most modes comes
 * with the trainer's exit. */
static bool nothing_left(const struct job *j) {
        if (!all_scanned(j) || j->data->table.n_place[TASK_PENDING] > 0)
                return false;
        for (uint32_t i = 0; i < j->n_executors; i++) {
                struct task *t;
                DL_FOREACH2(j->executors[i].leases, t, lease_next)
                if (t->read < t->size)
                        return false;
        }
        return true;
}

/* Tasks that come back are the first in the queue, new ones the last: the head tells. */
static bool may_grant(const struct job_data *d) {
        return d->table.pending && d->table.pending->id <= d->n_durable;
}

void feeding_run(struct manager *m, struct job *j) {
        struct job_data *d = j->data;
        bool last;

        if (!d || (j->state != JOB_STARTING && j->state != JOB_RUNNING) || !m->serving)
                return;
        check_finished(m, j);
        if (leases_unknown(j))
                return;
        /* One task each, round by round, so that few tasks are spread over all who wait. */
        for (bool any = true; any && may_grant(d);) {
                any = false;
                for (uint32_t i = 0; i < j->n_executors && may_grant(d); i++) {
                        struct executor *e = j->executors + i;
                        struct task *t;
                        if (!e->feed_open || e->feed_last || e->credits == 0 || !link_bus(e->node))
                                continue;
                        t = task_lease(&d->table, e, &e->leases);
                        if (send_grant(e, &t, 1, false) < 0) {
                                task_return(&d->table, t, &e->leases);
                                e->credits = 0;
                                continue;
                        }
                        e->credits--;
                        any = true;
                }
        }
        last = nothing_left(j);
        for (uint32_t i = 0; last && i < j->n_executors; i++) {
                struct executor *e = j->executors + i;
                if (e->feed_open && !e->feed_last && send_grant(e, NULL, 0, true) >= 0)
                        e->feed_last = true;
        }
}
