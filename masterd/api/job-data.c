/* SPDX-License-Identifier: Apache-2.0 */
/* org.primus.Master1.Job: what people look at and do with its data. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/utf8.h"
#include "lib/wire/errors.h"
#include "masterd/api/api.h"
#include "masterd/api/job-calls.h"
#include "masterd/api/options.h"
#include "masterd/caller/reply.h"
#include "masterd/core/manager.h"
#include "masterd/feed/feeding.h"
#include "masterd/life/suspension.h"

#define TASKS_MAX 4000u /* rows of one answer: with the longest paths it fits a message of the bus */
#define TASK_NAME_MAX 24

/* As people are shown it: 17, or s17 for one that was split off. */
static const char *task_name(uint64_t task, char buf[static TASK_NAME_MAX]) {
        snprintf(buf, TASK_NAME_MAX, "%s%" PRIu64, task & TASK_SPLIT_OFF ? "s" : "", task & ~TASK_SPLIT_OFF);
        return buf;
}

/* ---- ListTasks ---- */

struct task_filter {
        uint64_t after;
        uint32_t limit;
        enum task_place place; /* _TASK_PLACE_MAX: any */
};

static int read_state(sd_bus_message *call, const char *key, void *target, sd_bus_error *error) {
        struct task_filter *f = target;
        static const enum task_place places[] = { TASK_PENDING, TASK_LEASED, TASK_GAVE_UP };
        const char *text;
        int r = sd_bus_message_read(call, "v", "s", &text);

        if (r < 0)
                return r;
        for (size_t i = 0; i < ELEMENTSOF(places); i++)
                if (strcmp(task_place_to_string(places[i]), text) == 0) {
                        f->place = places[i];
                        return 0;
                }
        return sd_bus_error_setf(error, SD_BUS_ERROR_INVALID_ARGS,
                                 "state: PENDING, LEASED or FAILED is expected, not '%.*s'",
                                 utf8_fit(text, 32), text);
}

static const struct call_option task_filters[] = {
        { "state", 0, 0, read_state },
        { "limit", 'u', offsetof(struct task_filter, limit), NULL },
        { NULL },
};

static int read_filter(sd_bus_message *call, struct task_filter *f, sd_bus_error *error) {
        int r = sd_bus_message_read_basic(call, 't', &f->after);

        if (r >= 0)
                r = options_read(call, "ListTasks", "filter", task_filters, f, error);
        f->limit = MIN(MAX(f->limit, 1u), TASKS_MAX);
        return r;
}

/* Bytes a second of its present holder. */
static double task_rate(const struct task *t, uint64_t now) {
        double seconds = (double)usec_sub(now, t->granted_usec) / USEC_PER_SEC;

        return t->place == TASK_LEASED && seconds > 0 && t->read > t->read_before
                       ? (double)(t->read - t->read_before) / seconds
                       : 0;
}

#define TASK_ROW "tssayttttussa{sv}"

/* One row, of a task in memory or of one that is kept. */
struct task_row {
        uint64_t task, file, start, end, acked, records;
        uint32_t source, epoch, failures;
        enum task_place place;
        const char *error, *holder;
        const void *path;
        size_t path_size;
        double rate;
};

static int append_row(sd_bus_message *reply, const struct job *j, const struct task_row *t) {
        int r = sd_bus_message_open_container(reply, 'r', TASK_ROW);

        if (r >= 0)
                r = sd_bus_message_append(
                        reply, "tss", t->task, task_place_to_string(t->place),
                        t->source < j->data->input->n_sources ? j->data->input->sources[t->source].name : "");
        if (r >= 0)
                r = sd_bus_message_append_array(reply, 'y', t->path, t->path_size);
        if (r >= 0)
                r = sd_bus_message_append(reply, "ttttuss", t->start, t->end, t->acked, t->records,
                                          t->failures, t->holder, t->error ? t->error : "");
        if (r >= 0)
                r = sd_bus_message_append(reply, "a{sv}", 4, "splitOff", "b",
                                          (int)((t->task & TASK_SPLIT_OFF) != 0), "file", "t", t->file,
                                          "epoch", "u", t->epoch, "rate", "d", t->rate);
        return r < 0 ? r : sd_bus_message_close_container(reply);
}

static int append_task(sd_bus_message *reply, const struct job *j, const struct task *t, uint64_t now) {
        const struct executor *e = feeding_holder(j, t);
        char holder[64] = "";

        if (e)
                snprintf(holder, sizeof(holder), "%s/%" PRIu32, executor_role(e)->name, e->index);
        return append_row(reply, j,
                          &(struct task_row){ .task = t->id,
                                              .file = t->file,
                                              .start = t->start,
                                              .end = t->end,
                                              .acked = t->acked,
                                              .records = t->records,
                                              .source = t->source,
                                              .epoch = t->epoch,
                                              .failures = t->failures,
                                              .place = t->place,
                                              .error = t->error,
                                              .holder = holder,
                                              .path = t->what.path,
                                              .path_size = strlen(t->what.path),
                                              .rate = task_rate(t, now) });
}

struct kept_request {
        struct manager *manager;
        sd_bus_message *call;
};

static void on_kept(void *userdata, int error, const struct kept_task_record *list, size_t n) {
        struct kept_request *q = userdata;
        sd_bus_error failure = SD_BUS_ERROR_NULL;
        struct job *j = api_job_or_error(q->manager, q->call, &failure);
        sd_bus_message *reply = NULL;
        int r = error < 0 ? error : !j || !j->data ? API_JOB_GONE : reply_list_new(q->call, TASK_ROW, &reply);

        for (size_t i = 0; r >= 0 && i < n; i++)
                r = append_row(reply, j,
                               &(struct task_row){ .task = list[i].task,
                                                   .file = list[i].file,
                                                   .start = list[i].start,
                                                   .end = list[i].end,
                                                   .acked = list[i].acked,
                                                   .records = list[i].records,
                                                   .source = list[i].source,
                                                   .epoch = list[i].epoch,
                                                   .failures = list[i].failures,
                                                   .place = TASK_GAVE_UP,
                                                   .error = list[i].error,
                                                   .holder = "",
                                                   .path = list[i].path.data,
                                                   .path_size = list[i].path.size });
        r = reply_list_send(reply, r);
        caller_answer(q->call, r, &failure);
        sd_bus_error_free(&failure);
        sd_bus_message_unref(q->call);
        free(q);
}

/* Of a job that is over and came back from the store, those that failed are all that is left. */
static int list_kept(struct manager *m, const struct job *j, const struct task_filter *f,
                     sd_bus_message *call) {
        bool asked = f->place == _TASK_PLACE_MAX || f->place == TASK_GAVE_UP;
        struct kept_request *q = malloc(sizeof(*q));
        int r;

        if (!q)
                return -ENOMEM;
        *q = (struct kept_request){ m, sd_bus_message_ref(call) };
        r = store_query_kept_tasks(m->store, j->number, TASK_GAVE_UP, f->after, asked ? f->limit : 0, on_kept,
                                   q);
        if (r < 0) {
                sd_bus_message_unref(call);
                free(q);
        }
        return r < 0 ? r : 1;
}

int api_list_tasks(sd_bus_message *call, uint32_t uid, void *userdata, sd_bus_error *error) {
        struct manager *m = userdata;
        struct job *j = api_job_or_error(m, call, error);
        struct task_filter f = { .limit = 1000, .place = _TASK_PLACE_MAX };
        sd_bus_message *reply = NULL;
        uint64_t now = now_boot();
        struct task *t;
        int r;

        if (!j)
                return API_JOB_GONE;
        r = read_filter(call, &f, error);
        if (r < 0)
                return r;
        if (!j->data)
                return sd_bus_error_setf(error, ERROR_REFUSED, "Job %" PRIu32 " is not fed with data",
                                         j->number);
        if (j->data->sums)
                return list_kept(m, j, &f, call);
        r = reply_list_new(call, TASK_ROW, &reply);
        for (uint32_t n = 0; r >= 0 && n < f.limit && (t = data_next_task(j->data->data, f.after));) {
                f.after = t->id;
                if (f.place != _TASK_PLACE_MAX && t->place != f.place)
                        continue;
                n++;
                r = append_task(reply, j, t, now);
        }
        return reply_list_send(reply, r);
}

/* ---- RetryTask, SkipTask ---- */

static int change(sd_bus_message *call, struct manager *m, sd_bus_error *error,
                  int (*work)(struct manager *m, struct job *j, uint64_t task, uint64_t *ret_changed),
                  const char *missing) {
        struct job *j = api_job_or_error(m, call, error);
        sd_bus_message *reply = NULL;
        char name[TASK_NAME_MAX];
        uint64_t task, changed;
        int r;

        if (!j)
                return API_JOB_GONE;
        r = sd_bus_message_read_basic(call, 't', &task);
        if (r < 0)
                return r;
        r = work(m, j, task, &changed);
        if (r == -ENODATA)
                return sd_bus_error_setf(error, ERROR_REFUSED,
                                         j->data ? "Job %" PRIu32 " is over"
                                                 : "Job %" PRIu32 " is not fed with data",
                                         j->number);
        if (r == -ENOENT)
                return sd_bus_error_setf(error, ERROR_NOT_FOUND, "Job %" PRIu32 " has no task %s %s",
                                         j->number, task_name(task, name), missing);
        if (r >= 0)
                r = sd_bus_message_new_method_return(call, &reply);
        if (r >= 0)
                r = sd_bus_message_append_basic(reply, 't', &changed);
        if (r < 0) {
                sd_bus_message_unref(reply);
                return r;
        }
        return manager_reply_later(m, reply);
}

/* Whether an executor is there, or will be, that has not been promised the end of the data. */
static bool somebody_reads(const struct job *j) {
        for (uint32_t i = 0; i < j->n_executors; i++) {
                const struct executor *e = j->executors[i];
                if (executor_role(e)->input_policy == INPUT_STREAMING && !e->feed.last &&
                    !executor_state_ended(e->state))
                        return true;
        }
        return false;
}

int api_retry_task(sd_bus_message *call, uint32_t uid, void *userdata, sd_bus_error *error) {
        struct job *j = api_job_or_error(userdata, call, error);

        if (!j)
                return API_JOB_GONE;
        if (j->data && !job_state_ended(j->state) && !somebody_reads(j))
                return sd_bus_error_setf(error, ERROR_REFUSED,
                                         "Job %" PRIu32
                                         " has come to the end of its data: its executors have "
                                         "been told so, and none would read a task",
                                         j->number);
        return change(call, userdata, error, feeding_retry, "that has failed");
}

int api_skip_task(sd_bus_message *call, uint32_t uid, void *userdata, sd_bus_error *error) {
        return change(call, userdata, error, feeding_skip, "that is not done");
}

/* ---- Suspend, SuspendAs, Resume ---- */

/* mode _SUSPEND_MODE_INVALID: lets it go on. */
static int hold(sd_bus_message *call, uint32_t uid, struct manager *m, sd_bus_error *error,
                enum suspend_mode mode) {
        struct job *j = api_job_or_error(m, call, error);
        char text[SUSPENSION_TEXT_MAX] = "";
        int r;

        if (!j)
                return API_JOB_GONE;
        r = mode < 0 ? suspension_end(m, j, uid, text) : suspension_begin(m, j, mode, uid, text);
        if (r < 0)
                return *text ? sd_bus_error_set(error, ERROR_REFUSED, text) : r;
        return manager_answer_later(m, call, "");
}

int api_suspend(sd_bus_message *call, uint32_t uid, void *userdata, sd_bus_error *error) {
        return hold(call, uid, userdata, error, SUSPEND_DATA);
}

int api_suspend_as(sd_bus_message *call, uint32_t uid, void *userdata, sd_bus_error *error) {
        enum suspend_mode mode;
        const char *name;
        int r = sd_bus_message_read_basic(call, 's', &name);

        if (r < 0)
                return r;
        mode = suspend_mode_from_string(name);
        if (mode < 0)
                return sd_bus_error_setf(error, SD_BUS_ERROR_INVALID_ARGS,
                                         "mode: data, freeze or stop is expected, not '%.*s'",
                                         utf8_fit(name, 32), name);
        return hold(call, uid, userdata, error, mode);
}

int api_resume(sd_bus_message *call, uint32_t uid, void *userdata, sd_bus_error *error) {
        return hold(call, uid, userdata, error, _SUSPEND_MODE_INVALID);
}
