/* SPDX-License-Identifier: Apache-2.0 */
/* org.primus.Master1: how jobs are doing (Job.Telemetry, Manager.ListTelemetry). That a job runs is for all
 * to see, as in ListJobs; what it does is for whoever may look at it. */
#include <math.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/try.h"
#include "lib/wire/errors.h"
#include "masterd/api/api.h"
#include "masterd/api/job-calls.h"
#include "masterd/api/looking.h"
#include "masterd/api/options.h"
#include "masterd/caller/reply.h"
#include "masterd/core/manager.h"
#include "masterd/job/array.h"
#include "masterd/job/kept-series.h"
#include "masterd/watch/healing.h"
#include "masterd/watch/telemetry.h"

#define EPISODES_MAX 1000u
#define EPISODES_SHOWN 4u
#define ELEMENTS_ROLE "elements" /* as GetStatus calls those of an array */

struct wish {
        bool no_executors, no_values;
        const char *history, *role;
        int has_range; /* negative: no history */
        enum series_range range;
};

static const struct call_option wishes[] = {
        { "noExecutors", 'b', offsetof(struct wish, no_executors), NULL },
        { "noValues", 'b', offsetof(struct wish, no_values), NULL },
        { "history", 's', offsetof(struct wish, history), NULL },
        { "role", 's', offsetof(struct wish, role), NULL },
        { NULL },
};

static const char *const range_words[_SERIES_RANGE_MAX] = { [SERIES_FINE] = "10min", [SERIES_COARSE] = "4h" };

/* 0, or -1: no history; -EINVAL. */
static int find_range(const char *word, enum series_range *ret) {
        if (strcmp(word, "none") == 0)
                return -1;
        for (enum series_range r = 0; r < _SERIES_RANGE_MAX; r++)
                if (strcmp(word, range_words[r]) == 0) {
                        *ret = r;
                        return 0;
                }
        return -EINVAL;
}

/* Of an array all executors of its elements that are made; from behind e. NULL: the end. */
static struct executor *next_holding(struct manager *m, struct job *j, struct executor *e) {
        struct job *at = e ? e->job : j->array ? m->jobs.by_number : j;

        for (;;) {
                bool ours = at && (at == j ? !j->array : at->element.array == j->number);
                if (!at)
                        return NULL;
                e = ours ? job_behind(at, e) : NULL;
                if (e && executor_state_holds(e->state))
                        return e;
                if (e)
                        continue;
                if (!j->array)
                        return NULL;
                at = at->hh.next;
        }
}

#define FOREACH_HOLDING(m, j, e)                                                                             \
        for (struct executor *e = next_holding((m), (j), NULL); e; e = next_holding((m), (j), e))

/* ---- parts of answers ---- */

static int append_number(sd_bus_message *reply, enum series_kind k, double value) {
        return isnan(value) ? 0 : sd_bus_message_append(reply, "{sd}", series_name(k), value);
}

static int append_rates(sd_bus_message *reply, const char *key, const float rates[static _SERIES_MAX]) {
        int r = reply_open_array(reply, key, "a{sd}");

        for (enum series_kind k = 0; r >= 0 && k < _SERIES_MAX; k++)
                r = append_number(reply, k, rates[k]);
        return r < 0 ? r : reply_close_array(reply);
}

static int append_total(sd_bus_message *reply, const struct telemetry_total *t) {
        float mean[_SERIES_MAX], sum[_SERIES_MAX];
        int r = sd_bus_message_append(reply, "{sv}{sv}{sv}{sv}{sv}", "running", "u", t->running, "measured",
                                      "u", t->measured, "cpu", "d", t->cpu, "memory", "t", t->memory, "gpus",
                                      "u", t->gpus);

        for (enum series_kind k = 0; k < _SERIES_MAX; k++) {
                mean[k] = t->n[k] > 0 ? (float)(t->sum[k] / t->n[k]) : NAN;
                sum[k] = t->n[k] > 0 && series_adds(k) ? (float)t->sum[k] : NAN;
        }
        if (r >= 0)
                r = append_rates(reply, "sum", sum);
        if (r >= 0)
                r = append_rates(reply, "mean", mean);
        return r < 0 ? r : append_rates(reply, "max", t->max);
}

/* Where a role's history comes from: from memory while the job goes on, from the store behind its end. */
struct history {
        bool ended;
        const struct series_record *kept;
        size_t n_kept;
};

static size_t read_points(const struct history *h, const struct role *role, enum series_range range,
                          enum series_kind k, float mean[static SERIES_POINTS],
                          float max[static SERIES_POINTS]) {
        if (!h->ended)
                return role->series ? series_read(role->series, range, k, now_boot(), mean, max) : 0;
        for (size_t i = 0; i < h->n_kept; i++)
                if (strcmp(h->kept[i].role, role->spec->name) == 0)
                        return kept_series_read(h->kept[i].points.data, h->kept[i].points.size, range, k,
                                                mean, max);
        return 0;
}

static int append_points(sd_bus_message *reply, const struct history *h, const struct role *role,
                         enum series_range range, enum series_kind k) {
        float mean[SERIES_POINTS], max[SERIES_POINTS];
        size_t n = read_points(h, role, range, k, mean, max);
        bool known = false;
        int r;

        for (size_t i = 0; i < n; i++)
                known = known || !isnan(mean[i]);
        if (!known)
                return 0;
        r = sd_bus_message_open_container(reply, 'e', "s(adad)");
        if (r >= 0)
                r = sd_bus_message_append(reply, "s", series_name(k));
        if (r >= 0)
                r = sd_bus_message_open_container(reply, 'r', "adad");
        for (unsigned half = 0; r >= 0 && half < 2; half++) {
                const float *points = half ? max : mean;
                r = sd_bus_message_open_container(reply, 'a', "d");
                for (size_t i = 0; r >= 0 && i < n; i++)
                        r = sd_bus_message_append(reply, "d", (double)points[i]);
                if (r >= 0)
                        r = sd_bus_message_close_container(reply);
        }
        if (r >= 0)
                r = sd_bus_message_close_container(reply);
        return r < 0 ? r : sd_bus_message_close_container(reply);
}

/* role: NULL of an array, which has none. */
static int append_history(sd_bus_message *reply, const struct history *h, const struct role *role,
                          enum series_range range) {
        int r = reply_open_array(reply, "history", "a{s(adad)}");

        for (enum series_kind k = 0; r >= 0 && role && k < _SERIES_MAX; k++)
                r = append_points(reply, h, role, range, k);
        return r < 0 ? r : reply_close_array(reply);
}

/* ---- Job.Telemetry ---- */

static bool is_wanted(const struct wish *w, const char *role) {
        return !w->role || strcmp(w->role, role) == 0;
}

static int append_role(sd_bus_message *reply, struct manager *m, struct job *j, uint32_t i,
                       const struct wish *w, const struct history *h) {
        const char *name = j->array ? ELEMENTS_ROLE : j->spec->roles[i].name;
        float rates[_SERIES_MAX];
        struct telemetry_total t;
        int r;

        if (!is_wanted(w, name))
                return 0;
        telemetry_total_clear(&t);
        FOREACH_HOLDING (m, j, e) {
                if (!j->array && (e->leaver.leaves || e->role != i))
                        continue;
                (void)telemetry_rates(e, rates);
                telemetry_total_add(&t, e, rates);
        }
        r = sd_bus_message_open_container(reply, 'a', "{sv}");
        if (r >= 0)
                r = sd_bus_message_append(reply, "{sv}{sv}", "name", "s", name, "executors", "u",
                                          j->array ? j->array->range.n : j->spec->roles[i].num);
        if (r >= 0)
                r = append_total(reply, &t);
        if (r >= 0 && w->has_range >= 0)
                r = append_history(reply, h, j->array ? NULL : j->roles + i, w->range);
        return r < 0 ? r : sd_bus_message_close_container(reply);
}

static int append_roles(sd_bus_message *reply, struct manager *m, struct job *j, const struct wish *w,
                        const struct history *h) {
        int r = reply_open_array(reply, "roles", "aa{sv}");

        for (uint32_t i = 0; r >= 0 && i < (j->array ? 1 : j->spec->n_roles); i++)
                r = append_role(reply, m, j, i, w, h);
        return r < 0 ? r : reply_close_array(reply);
}

static int append_values(sd_bus_message *reply, const struct telemetry_latest *l) {
        int r = reply_open_array(reply, "values", "a{st}");

        for (enum telemetry_field f = 0; r >= 0 && f < _TELEMETRY_MAX; f++)
                if (l->now[f] != TELEMETRY_UNKNOWN)
                        r = sd_bus_message_append(reply, "{st}", telemetry_field_name(f), l->now[f]);
        return r < 0 ? r : reply_close_array(reply);
}

/* What is wrong with it; of so many episodes of the job. */
static int append_verdicts(sd_bus_message *reply, const struct manager *m, const struct executor *e) {
        const struct episode *p = e->job->health ? e->job->health->episodes : NULL;
        const char *words[EPISODES_SHOWN + 1] = { NULL };
        size_t n = 0;

        if (api_is_silent(m, e))
                words[n++] = HEALTH_SILENT;
        for (size_t i = 0; p && i < EPISODES_MAX && n < EPISODES_SHOWN; p = p->next, i++)
                if (healing_executor(e->job, p) == e)
                        words[n++] = verdict_kind_to_string(p->kind);
        if (n == 0)
                return 0;
        return sd_bus_message_append(reply, "{sv}", "verdicts", "as", (int)n, words[0], words[1], words[2],
                                     words[3]);
}

static int append_executor(sd_bus_message *reply, const struct manager *m, const struct executor *e,
                           const struct wish *w, uint64_t now) {
        const struct telemetry_latest *l = telemetry_of(e);
        float rates[_SERIES_MAX];
        int r = sd_bus_message_open_container(reply, 'a', "{sv}");

        if (r >= 0)
                r = sd_bus_message_append(reply, "{sv}{sv}{sv}{sv}{sv}{sv}", "role", "s",
                                          executor_role(e)->name, "index", "u", e->index, "attempt", "u",
                                          e->attempt, "state", "s", executor_state_to_string(e->state),
                                          "node", "s", e->node ? e->node->name : "", "rank", "u", e->rank);
        if (r >= 0 && e->job->element.array > 0 && e->job->element.index != ELEMENT_SEARCHER)
                r = sd_bus_message_append(reply, "{sv}", "element", "u", e->job->element.index);
        if (r >= 0)
                r = append_verdicts(reply, m, e);
        if (r >= 0 && telemetry_rates(e, rates)) {
                r = sd_bus_message_append(reply, "{sv}", "age", "t", usec_sub(now, l->received_boot));
                if (r >= 0)
                        r = append_rates(reply, "rates", rates);
                if (r >= 0 && !w->no_values)
                        r = append_values(reply, l);
        }
        return r < 0 ? r : sd_bus_message_close_container(reply);
}

static int append_executors(sd_bus_message *reply, struct manager *m, struct job *j, const struct wish *w) {
        uint64_t now = now_boot();
        int r = reply_open_array(reply, "executors", "aa{sv}");

        FOREACH_HOLDING (m, j, e)
                if (r >= 0 && (j->array || is_wanted(w, executor_role(e)->name)))
                        r = append_executor(reply, m, e, w, now);
        return r < 0 ? r : reply_close_array(reply);
}

static int read_wish(sd_bus_message *call, const struct job *j, struct wish *ret, sd_bus_error *error) {
        int r;

        *ret = (struct wish){ .history = range_words[SERIES_FINE] };
        r = options_read(call, "Telemetry", "option", wishes, ret, error);
        if (r < 0)
                return r;
        ret->has_range = find_range(ret->history, &ret->range);
        if (ret->has_range == -EINVAL)
                return sd_bus_error_set(error, SD_BUS_ERROR_INVALID_ARGS, "history: 10min, 4h or none");
        if (ret->role && !j->array && !spec_role(j->spec, ret->role))
                return sd_bus_error_set(error, ERROR_NOT_FOUND, "The job has no role of that name");
        return 0;
}

static int make_telemetry(sd_bus_message *call, struct manager *m, struct job *j, const struct wish *w,
                          const struct history *h, sd_bus_message **ret) {
        uint64_t at = h->n_kept > 0 ? h->kept[0].at_real : now_real();

        TRY(sd_bus_message_new_method_return(call, ret));
        TRY(sd_bus_message_open_container(*ret, 'a', "{sv}"));
        TRY(sd_bus_message_append(*ret, "{sv}{sv}", "at", "t", at, "interval", "t",
                                  w->has_range < 0 ? (uint64_t)0 : series_interval(w->range)));
        TRY(append_roles(*ret, m, j, w, h));
        return w->no_executors ? 0 : append_executors(*ret, m, j, w);
}

/* Of a job that has ended. */
struct kept_request {
        struct manager *manager;
        sd_bus_message *call;
};

static void on_kept(void *userdata, int error, const struct series_record *list, size_t n) {
        struct kept_request *q = userdata;
        sd_bus_error failure = SD_BUS_ERROR_NULL;
        struct job *j = api_job_or_error(q->manager, q->call, &failure);
        sd_bus_message *reply = NULL;
        struct wish w;
        int r = error;

        if (r >= 0)
                r = j ? sd_bus_message_rewind(q->call, true) : -ENOENT;
        if (r >= 0)
                r = read_wish(q->call, j, &w, &failure);
        if (r >= 0)
                r = make_telemetry(q->call, q->manager, j, &w, &(struct history){ true, list, n }, &reply);
        caller_answer(q->call, reply_list_send(reply, r), &failure);
        sd_bus_error_free(&failure);
        sd_bus_message_unref(q->call);
        free(q);
}

static int ask_kept(struct manager *m, const struct job *j, sd_bus_message *call) {
        struct kept_request *q = malloc(sizeof(*q));
        int r;

        if (!q)
                return -ENOMEM;
        *q = (struct kept_request){ m, sd_bus_message_ref(call) };
        r = store_query_series(m->store, j->number, on_kept, q);
        if (r < 0) {
                sd_bus_message_unref(q->call);
                free(q);
        }
        return r;
}

int api_telemetry(sd_bus_message *call, uint32_t uid, void *userdata, sd_bus_error *error) {
        struct manager *m = userdata;
        struct job *j = api_job_or_error(m, call, error);
        sd_bus_message *reply = NULL;
        struct wish w;
        int r;

        if (!j)
                return API_JOB_GONE;
        r = read_wish(call, j, &w, error);
        if (r < 0)
                return r;
        if (job_state_ended(j->state) && !j->array && w.has_range >= 0)
                return ask_kept(m, j, call);
        r = make_telemetry(call, m, j, &w, &(struct history){}, &reply);
        return reply_list_send(reply, r);
}

/* ---- Manager.ListTelemetry ---- */

struct list_wish {
        uint32_t uid;
        bool by_uid;
};

static int read_uid(sd_bus_message *call, const char *key, void *target, sd_bus_error *error) {
        struct list_wish *w = target;

        w->by_uid = true;
        return sd_bus_message_read(call, "v", "u", &w->uid);
}

static const struct call_option list_wishes[] = { { "uid", 0, 0, read_uid }, { NULL } };

static int append_job(sd_bus_message *reply, struct manager *m, struct job *j, bool visible) {
        struct telemetry_total t;
        float rates[_SERIES_MAX];
        uint32_t wanted = j->array ? j->array->range.n : j->n_executors;
        int r = sd_bus_message_open_container(reply, 'a', "{sv}");

        if (r >= 0)
                r = sd_bus_message_append(
                        reply, "{sv}{sv}{sv}{sv}{sv}{sv}", "job", "u", j->number, "name", "s", j->name,
                        "user", "u", j->owner, "state", "s", job_state_to_string(j->state), "since", "t",
                        j->started_real ? j->started_real : j->submitted_real, "executors", "u", wanted);
        telemetry_total_clear(&t);
        FOREACH_HOLDING (m, j, e) {
                (void)telemetry_rates(e, rates);
                telemetry_total_add(&t, e, rates);
        }
        if (r >= 0 && visible)
                r = append_total(reply, &t);
        else if (r >= 0)
                r = sd_bus_message_append(reply, "{sv}", "running", "u", t.running);
        return r < 0 ? r : sd_bus_message_close_container(reply);
}

static int list_telemetry(sd_bus_message *call, uint32_t uid, void *userdata, sd_bus_error *error) {
        struct manager *m = userdata;
        struct list_wish w = {};
        sd_bus_message *reply = NULL;
        struct job *j, *next;
        int r = api_know(m, call, uid, list_telemetry);

        if (r != 0)
                return r;
        r = options_read(call, "ListTelemetry", "filter", list_wishes, &w, error);
        if (r < 0)
                return r;
        r = reply_dicts_new(call, &reply);
        HASH_ITER (hh, m->jobs.by_number, j, next) {
                if (r < 0 || job_state_ended(j->state) || j->element.array > 0 ||
                    (w.by_uid && w.uid != j->owner))
                        continue;
                r = append_job(reply, m, j, api_sees(m, uid, j));
        }
        return reply_list_send(reply, r);
}

int api_on_list_telemetry(sd_bus_message *call, void *userdata, sd_bus_error *error) {
        return api_with_caller(userdata, call, list_telemetry, error);
}
