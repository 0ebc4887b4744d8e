/* SPDX-License-Identifier: Apache-2.0 */
/* Listing the sources of a job. Invariant: each is listed by one unit at a time, which goes on behind what is
 * on disk; its entries come in an order that every scan repeats. */
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "masterd/core/listeners.h"
#include "masterd/core/manager.h"
#include "masterd/core/record.h"
#include "masterd/feed/feeding-parts.h"
#include "masterd/link/orders.h"

static const char *name_of(const struct job *j, uint32_t source) {
        return j->data->input->sources[source].name;
}

static struct node *scan_node(struct job *j) {
        /* Where the trainers see the data, the scan sees it. */
        for (uint32_t i = 0; i < j->n_executors; i++) {
                struct executor *e = j->executors[i];
                if (executor_role(e)->input_policy == INPUT_STREAMING && executor_state_holds(e->state) &&
                    node_usable(e->node))
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
        (void)orders_scan_later(m, j, s->node, source, s->attempt);
}

/* The unit that lists it, where there is one, is not wanted any more. */
static void stop_scan(struct manager *m, struct job *j, uint32_t source) {
        struct source *s = j->data->sources + source;
        struct executor_id id = {
                .job_uid = j->uid, .job = j->number, .role = SCAN_ROLE, .index = source, .attempt = s->attempt
        };

        if (s->node)
                (void)orders_stop_stale_later(m, s->node, &id);
        s->node = NULL;
}

void feeding_start(struct manager *m, struct job *j) {
        for (uint32_t i = 0; j->data && i < j->data->input->n_sources; i++)
                start_scan(m, j, i);
}

void feeding_stop(struct manager *m, struct job *j) {
        for (uint32_t i = 0; j->data && i < j->data->input->n_sources; i++) {
                j->data->sources[i].retry = sd_event_source_disable_unref(j->data->sources[i].retry);
                stop_scan(m, j, i);
        }
}

void feeding_scan_over(struct manager *m, struct job *j, uint32_t source) {
        struct source *s = j->data->sources + source;

        s->retry = sd_event_source_disable_unref(s->retry);
        stop_scan(m, j, source);
        if (s->scanned)
                return;
        s->scanned = true;
        (void)text_set(&s->waiting_for, NULL);
        data_scanned(j->data->data, source);
        feeding_put_source(m, j, source);
}

static int on_scan_retry(sd_event_source *source, uint64_t usec, void *userdata) {
        struct job *j = userdata;

        for (uint32_t i = 0; i < j->data->input->n_sources; i++)
                if (j->data->sources[i].retry == source) {
                        j->data->sources[i].retry = sd_event_source_disable_unref(j->data->sources[i].retry);
                        start_scan(j->manager, j, i);
                        break;
                }
        return 0;
}

static void scan_failed(struct manager *m, struct job *j, uint32_t source, const char *why, bool final) {
        struct source *s = j->data->sources + source;
        const struct input_source *in = j->data->input->sources + source;
        const char *where = in->path_pattern ? in->path_pattern : in->topic ? in->topic : in->command;
        char reason[LINK_TEXT_MAX + 1024];

        s->node = NULL;
        if (s->scanned || job_state_ended(j->state) || j->state == JOB_STOPPING)
                return;
        if (final || ++s->failures >= SCAN_ATTEMPTS) {
                snprintf(reason, sizeof(reason), "cannot list the data source '%s' (%.700s): %s",
                         name_of(j, source), where ? where : "", why);
                m->up->job_stop(m, j, JOB_EVENT_FAILED, reason);
                return;
        }
        record_event(m, j, "scan-failed", NULL, "listing the data source '%s' failed, trying again: %s",
                     name_of(j, source), why);
        (void)sd_event_add_time_relative(m->event, &s->retry, CLOCK_BOOTTIME, s->failures * USEC_PER_SEC, 0,
                                         on_scan_retry, j);
}

static struct source *scan_of(struct job *j, struct node *node, const struct executor_id *id) {
        struct source *s;

        if (!j || !j->data || strcmp(id->role, SCAN_ROLE) != 0 || id->index >= j->data->input->n_sources)
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

void feeding_leave(struct manager *m, struct node *node) {
        struct job *j, *next;

        HASH_ITER (hh, m->jobs.by_number, j, next)
                for (uint32_t i = 0; j->data && i < j->data->input->n_sources; i++) {
                        if (j->data->sources[i].node != node)
                                continue;
                        stop_scan(m, j, i);
                        start_scan(m, j, i);
                }
}

void feeding_node_gone(struct manager *m, struct node *node, bool back) {
        struct job *j, *next;

        HASH_ITER (hh, m->jobs.by_number, j, next)
                for (uint32_t i = 0; j->data && i < j->data->input->n_sources; i++) {
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

/* ---- what it finds ---- */

static int add_file(struct manager *m, struct job *j, uint32_t source, const struct scan_entry *e) {
        const struct input_source *in = j->data->input->sources + source;
        uint64_t file = data_n_files(j->data->data, source);
        struct data_file f = { .path = e->path,
                               .size = e->size,
                               .mtime_nsec = e->mtime_nsec,
                               .inode = e->inode,
                               .first = e->first,
                               .last = e->last,
                               .batch = e->batch,
                               .split = input_splittable(in, e->path) ? in->split : 0 };
        int r;

        /* Where what comes out has another length than what lies there, nobody knows where it ends. */
        if (in->kind == SOURCE_COMMAND || input_compression(in, e->path) != COMPRESSION_NONE)
                f.last = TASK_TO_END;
        r = data_add(j->data->data, source, &f);
        if (r < 0)
                return r;
        store_put_data_file(m->store, &(struct data_file_record){ .key = j->number,
                                                                  .source = source,
                                                                  .file = file,
                                                                  .path = { e->path, strlen(e->path) },
                                                                  .size = f.size,
                                                                  .mtime_nsec = f.mtime_nsec,
                                                                  .inode = f.inode,
                                                                  .first = f.first,
                                                                  .last = f.last,
                                                                  .batch = f.batch,
                                                                  .split = f.split });
        return 0;
}

/* Where the next scan of the source goes on. */
static int set_cursor(struct source *s, const char *path, uint64_t batch) {
        char *copy = strdup(path);

        if (!copy)
                return -ENOMEM;
        free(s->cursor);
        s->cursor = copy;
        s->batch = batch;
        return 0;
}

/* All of it, or an error, with a line for people. */
static int take_entries(struct manager *m, struct job *j, uint32_t source, const struct scan_batch *batch,
                        const char **ret_why) {
        const uint8_t *list = batch->entries;
        size_t size = batch->size;
        const char *path = NULL;
        uint64_t last_batch = 0;
        struct scan_entry e;
        int r;

        while ((r = scan_entry_next(&list, &size, &e)) > 0) {
                r = add_file(m, j, source, &e);
                if (r < 0) {
                        *ret_why = r == -ENOMEM ? "the master is out of memory"
                                                : "what was found comes in another order than that of time";
                        return r;
                }
                path = e.path;
                last_batch = e.batch;
        }
        if (r < 0) {
                *ret_why = "the host's agent sent a list that cannot be read";
                return r;
        }
        *ret_why = "the master is out of memory";
        return path ? set_cursor(j->data->sources + source, path, last_batch) : 0;
}

static void waits_for(struct manager *m, struct job *j, uint32_t source, const char *what) {
        struct source *s = j->data->sources + source;

        if (strcmp(s->waiting_for ? s->waiting_for : "", what) == 0)
                return;
        if (text_set(&s->waiting_for, *what ? "%s" : NULL, what) >= 0 && *what && feeding_may_tell(m, j))
                record_event(m, j, "data-waits", NULL, "data source '%s' waits for %s", name_of(j, source),
                             what);
}

static void complete(struct manager *m, struct job *j, uint32_t source) {
        struct source *s = j->data->sources + source;
        struct data_totals n;

        s->scanned = true;
        s->node = NULL;
        data_scanned(j->data->data, source);
        data_source_totals(j->data->data, source, &n);
        record_event(m, j, "scanned", NULL, "data source '%s': %llu files, %llu tasks, %llu bytes",
                     name_of(j, source), (unsigned long long)n.files, (unsigned long long)n.tasks,
                     (unsigned long long)n.bytes);
}

void feeding_scanned(struct manager *m, struct node *node, const struct executor_id *id,
                     const struct scan_batch *batch) {
        struct job *j = manager_job(m, id->job);
        struct source *s = scan_of(j, node, id);
        const char *why;
        int r;

        if (!s || s->scanned || !sd_id128_equal(j->uid, id->job_uid))
                return;
        r = take_entries(m, j, id->index, batch, &why);
        if (r < 0) {
                /* What was taken is in the table already: a scan that began anew would list it twice. */
                scan_failed(m, j, id->index, why, true);
                return;
        }
        if (batch->error[0]) {
                scan_failed(m, j, id->index, batch->error, true);
                return;
        }
        s->failures = 0;
        waits_for(m, j, id->index, batch->waiting_for);
        if (batch->passed > s->passed) {
                s->passed = batch->passed;
                data_passed(j->data->data, id->index, s->passed);
        }
        if (batch->last)
                complete(m, j, id->index);
        feeding_put_source(m, j, id->index);
        /* Files are on disk before tasks of them are made. */
        feeding_run_later(m, j);
}
