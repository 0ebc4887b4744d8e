/* SPDX-License-Identifier: Apache-2.0 */
/* org.primus.Master1.Job: what its trainers have said of their training (ListMetrics, ReadMetrics). Of a job
 * that has ended the store is asked. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/try.h"
#include "lib/wire/errors.h"
#include "masterd/api/api.h"
#include "masterd/api/job-calls.h"
#include "masterd/api/options.h"
#include "masterd/caller/caller.h"
#include "masterd/caller/reply.h"
#include "masterd/core/manager.h"
#include "masterd/watch/training.h"

#define POINTS_MAX METRIC_CAP_MAX /* of a series in an answer, */
#define POINTS_USUAL 256u
#define ANSWER_POINTS 16384u /* and of all of them; then the caller asks for those behind */

/* ---- ListMetrics: what there is ---- */

struct summary {
        const char *role, *name;
        uint32_t n;
        uint64_t count, step, usec;
        double sum, min, max;
        uint32_t n_sum;
};

/* Rows in the order of their first series; at[]: row + 1, by role and name. */
struct summaries {
        struct summary *rows;
        size_t n, max;
        uint32_t *at;
};

static void add_number(double *into, double value, bool lower) {
        if (!isnan(value) && (isnan(*into) || (lower ? value < *into : value > *into)))
                *into = value;
}

static int add_summary(struct summaries *t, const struct metrics *m, const struct metric_source *s,
                       const struct metric_series *x) {
        uint32_t *at = t->at + (size_t)s->key.role * (METRIC_JOB_NAMES_MAX + 1) + x->name;
        const struct metric_point *last;
        struct summary *row;

        if (x->n == 0)
                return 0;
        last = x->points + x->n - 1;
        if (*at == 0) {
                if (t->n == t->max) {
                        size_t max = MAX(2 * t->max, (size_t)16);
                        struct summary *more = reallocarray(t->rows, max, sizeof(*more));
                        if (!more)
                                return -ENOMEM;
                        t->rows = more;
                        t->max = max;
                }
                t->rows[t->n] = (struct summary){
                        .role = s->role, .name = metrics_name(m, x->name), .min = NAN, .max = NAN
                };
                *at = (uint32_t)++t->n;
        }
        row = t->rows + *at - 1;
        row->n++;
        row->step = MAX(row->step, last->step);
        row->usec = MAX(row->usec, last->usec);
        if (!isnan(last->last)) {
                row->sum += last->last;
                row->n_sum++;
        }
        for (uint32_t i = 0; i < x->n; i++) {
                row->count += x->points[i].count;
                add_number(&row->min, x->points[i].min, true);
                add_number(&row->max, x->points[i].max, false);
        }
        return 0;
}

static int append_summaries(sd_bus_message *reply, struct metrics *m, struct summaries *t) {
        struct metric_source *const *list;
        uint32_t roles = 0;
        size_t n;

        TRY(metrics_sorted(m, &list, &n));
        for (size_t i = 0; i < n; i++)
                roles = MAX(roles, list[i]->key.role + 1);
        t->at = calloc(MAX(roles, 1u), (METRIC_JOB_NAMES_MAX + 1) * sizeof(*t->at));
        if (!t->at)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++)
                for (uint32_t k = 0; k < list[i]->n; k++)
                        TRY(add_summary(t, m, list[i], list[i]->series + k));
        for (const struct summary *s = t->rows; s < t->rows + t->n; s++)
                TRY(sd_bus_message_append(reply, "a{sv}", 9, "role", "s", s->role, "name", "s", s->name,
                                          "series", "u", s->n, "reports", "t", s->count, "step", "t", s->step,
                                          "at", "t", s->usec, "last", "d",
                                          s->n_sum > 0 ? s->sum / s->n_sum : (double)NAN, "min", "d", s->min,
                                          "max", "d", s->max));
        return 0;
}

static int make_list(sd_bus_message *call, struct metrics *m, sd_bus_message **ret) {
        struct summaries t = {};
        int r = reply_dicts_new(call, ret);

        r = r < 0 || !m ? r : append_summaries(*ret, m, &t);
        free(t.rows);
        free(t.at);
        return r < 0 ? r : sd_bus_message_close_container(*ret);
}

/* ---- ReadMetrics: points of one name ---- */

struct wish {
        const char *name, *role;
        uint32_t index, from, points;
};

static const struct call_option wishes[] = {
        { "role", 's', offsetof(struct wish, role), NULL },
        { "index", 'u', offsetof(struct wish, index), NULL },
        { "from", 'u', offsetof(struct wish, from), NULL },
        { "points", 'u', offsetof(struct wish, points), NULL },
        { NULL },
};

static int read_wish(sd_bus_message *call, struct wish *ret, sd_bus_error *error) {
        *ret = (struct wish){ .index = UINT32_MAX, .points = POINTS_USUAL };
        TRY(sd_bus_message_read_basic(call, 's', &ret->name));
        TRY(options_read(call, "ReadMetrics", "option", wishes, ret, error));
        if (ret->points == 0 || ret->points > POINTS_MAX)
                return sd_bus_error_setf(error, SD_BUS_ERROR_INVALID_ARGS, "points: 1 to %u", POINTS_MAX);
        return 0;
}

static const struct {
        const char *key;
        char type;
        size_t offset;
} columns[] = {
        { "step", 't', offsetof(struct metric_point, step) },
        { "at", 't', offsetof(struct metric_point, usec) },
        { "reports", 'u', offsetof(struct metric_point, count) },
        { "last", 'd', offsetof(struct metric_point, last) },
        { "min", 'd', offsetof(struct metric_point, min) },
        { "max", 'd', offsetof(struct metric_point, max) },
        { "mean", 'd', offsetof(struct metric_point, mean) },
};

static int append_series(sd_bus_message *reply, const struct metric_source *s, const struct metric_point *p,
                         size_t n) {
        TRY(sd_bus_message_open_container(reply, 'a', "{sv}"));
        TRY(sd_bus_message_append(reply, "{sv}{sv}{sv}", "role", "s", s->role, "index", "u", s->key.index,
                                  "local", "u", s->key.local));
        for (size_t k = 0; k < ELEMENTSOF(columns); k++) {
                TRY(reply_open_array(reply, columns[k].key, (char[]){ 'a', columns[k].type, 0 }));
                for (size_t i = 0; i < n; i++)
                        TRY(sd_bus_message_append_basic(reply, columns[k].type,
                                                        (const uint8_t *)(p + i) + columns[k].offset));
                TRY(reply_close_array(reply));
        }
        return sd_bus_message_close_container(reply);
}

static bool is_wanted(const struct wish *w, const struct metric_source *s) {
        return (!w->role || strcmp(w->role, s->role) == 0) &&
               (w->index == UINT32_MAX || w->index == s->key.index);
}

/* total: so many series there are of which it was asked. */
static int append_wanted(sd_bus_message *reply, struct metrics *m, const struct wish *w, uint32_t *total) {
        _cleanup_free_ struct metric_point *points = calloc(POINTS_MAX, sizeof(*points));
        struct metric_source *const *list;
        size_t n, said = 0;

        if (!points)
                return -ENOMEM;
        TRY(metrics_sorted(m, &list, &n));
        for (size_t i = 0; i < n; i++) {
                const struct metric_series *x =
                        is_wanted(w, list[i]) ? metric_series_of(m, list[i], w->name) : NULL;

                if (!x || (*total)++ < w->from || said >= ANSWER_POINTS)
                        continue;
                said += MAX(x->n, 1u);
                TRY(append_series(reply, list[i], points, metric_series_read(x, w->points, points)));
        }
        return 0;
}

static int make_points(sd_bus_message *call, struct metrics *m, const struct wish *w, sd_bus_message **ret) {
        uint32_t total = 0;

        TRY(reply_dicts_new(call, ret));
        if (m)
                TRY(append_wanted(*ret, m, w, &total));
        TRY(sd_bus_message_close_container(*ret));
        return sd_bus_message_append_basic(*ret, 'u', &total);
}

/* ---- where they are ---- */

/* list: ListMetrics. */
static int answer_metrics(struct manager *manager, sd_bus_message *call, struct metrics *m, bool list,
                          sd_bus_error *error) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        struct wish w;

        if (list)
                TRY(make_list(call, m, &reply));
        else {
                TRY(read_wish(call, &w, error));
                TRY(make_points(call, m, &w, &reply));
        }
        return reply_send(reply);
}

struct kept_request {
        struct manager *manager;
        sd_bus_message *call;
        bool list;
};

static int read_kept(struct metrics *m, const struct metric_record *list, size_t n) {
        for (size_t i = 0; i < n; i++) {
                struct metric_source *s;
                int r = metrics_source(m, list[i].role, list[i].index, list[i].local, &s);

                r = r < 0 ? r : metric_source_read(m, s, list[i].points.data, list[i].points.size);
                if (r == -ENOMEM)
                        return r;
        }
        return 0;
}

static void on_kept(void *userdata, int error, const struct metric_record *list, size_t n) {
        struct metric_budget budget = { .max = 2 * METRIC_JOB_BYTES };
        struct kept_request *q = userdata;
        sd_bus_error failure = SD_BUS_ERROR_NULL;
        struct metrics *m = NULL;
        int r = error;

        r = r < 0 || api_job_or_error(q->manager, q->call, &failure) ? r : -ENOENT;
        r = r < 0 ? r : metrics_new(&budget, NULL, &m);
        r = r < 0 ? r : read_kept(m, list, n);
        r = r < 0 ? r : sd_bus_message_rewind(q->call, true);
        r = r < 0 ? r : answer_metrics(q->manager, q->call, m, q->list, &failure);
        caller_answer(q->call, r, &failure);
        metrics_free(m);
        sd_bus_error_free(&failure);
        sd_bus_message_unref(q->call);
        free(q);
}

static int ask_kept(struct manager *m, const struct job *j, sd_bus_message *call, bool list) {
        struct kept_request *q = malloc(sizeof(*q));
        int r;

        if (!q)
                return -ENOMEM;
        *q = (struct kept_request){ m, sd_bus_message_ref(call), list };
        r = store_query_metrics(m->store, j->number, on_kept, q);
        if (r < 0) {
                sd_bus_message_unref(q->call);
                free(q);
        }
        return r;
}

static int look_at_metrics(struct manager *m, sd_bus_message *call, bool list, sd_bus_error *error) {
        struct job *j = api_job_or_error(m, call, error);

        if (!j)
                return API_JOB_GONE;
        return job_state_ended(j->state) ? ask_kept(m, j, call, list)
                                         : answer_metrics(m, call, training_of(j), list, error);
}

int api_list_metrics(sd_bus_message *call, uint32_t uid, void *userdata, sd_bus_error *error) {
        return look_at_metrics(userdata, call, true, error);
}

int api_read_metrics(sd_bus_message *call, uint32_t uid, void *userdata, sd_bus_error *error) {
        return look_at_metrics(userdata, call, false, error);
}
