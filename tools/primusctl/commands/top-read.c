/* SPDX-License-Identifier: Apache-2.0 */
/* Telemetry as masterd tells it, and as JSON. Invariant: as many points as there are said to be, for each
 * history. */
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "tools/primusctl/bus/fields.h"
#include "tools/primusctl/view/top-model.h"

#define ROWS_MAX 200000u

static const char *const names[_TOP_NUMBER_MAX] = {
#define X(name, text) [TOP_##name] = text,
        TOP_NUMBERS(X)
#undef X
};

static enum top_number number_of(const char *name) {
        enum top_number k = 0;

        while (k < _TOP_NUMBER_MAX && strcmp(names[k], name) != 0)
                k++;
        return k;
}

static void unknown(double numbers[static _TOP_NUMBER_MAX]) {
        for (size_t k = 0; k < _TOP_NUMBER_MAX; k++)
                numbers[k] = NAN;
}

static void total_clear(struct top_total *t) {
        unknown(t->sum);
        unknown(t->mean);
        unknown(t->max);
}

/* ---- releasing ---- */

static void role_done(struct top_role *r) {
        free(r->name);
        for (size_t k = 0; k < _TOP_NUMBER_MAX; k++)
                free(r->points[k]);
}

static void executor_release(struct top_executor *e) {
        free(e->role);
        free(e->state);
        free(e->node);
        free(e->verdicts);
        json_decref(e->values);
}

void top_job_done(struct top_job *j) {
        free(j->name);
        free(j->state);
        *j = (struct top_job){};
}

void top_model_done(struct top_model *t) {
        top_job_done(&t->job);
        for (size_t i = 0; i < t->n_roles; i++)
                role_done(t->roles + i);
        free(t->roles);
        for (size_t i = 0; i < t->n_executors; i++)
                executor_release(t->executors + i);
        free(t->executors);
        for (size_t i = 0; i < t->n_jobs; i++)
                top_job_done(t->jobs + i);
        free(t->jobs);
        *t = (struct top_model){};
}

void top_model_drop_role(struct top_model *t, size_t i) {
        role_done(t->roles + i);
        memmove(t->roles + i, t->roles + i + 1, (--t->n_roles - i) * sizeof(*t->roles));
}

void top_model_drop_executor(struct top_model *t, size_t i) {
        executor_release(t->executors + i);
        memmove(t->executors + i, t->executors + i + 1, (--t->n_executors - i) * sizeof(*t->executors));
}

/* ---- reading ---- */

/* The variant's a{sd}. */
static int read_numbers(sd_bus_message *m, void *target) {
        double *numbers = target, value;
        const char *name;
        int r = sd_bus_message_enter_container(m, 'v', "a{sd}");

        if (r >= 0)
                r = sd_bus_message_enter_container(m, 'a', "{sd}");
        while (r >= 0 && (r = sd_bus_message_read(m, "{sd}", &name, &value)) > 0) {
                enum top_number k = number_of(name);
                if (k < _TOP_NUMBER_MAX && isfinite(value))
                        numbers[k] = value;
        }
        if (r >= 0)
                r = sd_bus_message_exit_container(m);
        return r < 0 ? r : sd_bus_message_exit_container(m);
}

#define TOTAL_FIELDS(type, member)                                                                           \
        { "running", "u", offsetof(struct type, member.running), NULL },                                     \
                { "measured", "u", offsetof(struct type, member.measured), NULL },                           \
                { "gpus", "u", offsetof(struct type, member.gpus), NULL },                                   \
                { "cpu", "d", offsetof(struct type, member.cpu), NULL },                                     \
                { "memory", "t", offsetof(struct type, member.memory), NULL },                               \
                { "sum", "a{sd}", offsetof(struct type, member.sum), read_numbers },                         \
                { "mean", "a{sd}", offsetof(struct type, member.mean), read_numbers }, {                     \
                "max", "a{sd}", offsetof(struct type, member.max), read_numbers                              \
        }

static int read_points(sd_bus_message *m, float **ret, uint32_t *ret_n) {
        const void *points;
        _cleanup_free_ float *copy = NULL;
        size_t size, n;
        int r = sd_bus_message_read_array(m, 'd', &points, &size);

        if (r < 0)
                return r;
        n = MIN(size / sizeof(double), (size_t)TOP_POINTS_MAX);
        copy = calloc(MAX(n, (size_t)1), sizeof(*copy));
        if (!copy)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++)
                copy[i] = (float)((const double *)points)[i];
        *ret = TAKE_PTR(copy);
        *ret_n = (uint32_t)n;
        return 1;
}

static int read_history(sd_bus_message *m, void *target) {
        struct top_role *role = target;
        const char *name;
        int r = sd_bus_message_enter_container(m, 'v', "a{s(adad)}");

        if (r >= 0)
                r = sd_bus_message_enter_container(m, 'a', "{s(adad)}");
        while (r >= 0 && (r = sd_bus_message_enter_container(m, 'e', "s(adad)")) > 0) {
                _cleanup_free_ float *points = NULL;
                enum top_number k;
                uint32_t n = 0;
                r = sd_bus_message_read_basic(m, 's', &name);
                if (r >= 0)
                        r = sd_bus_message_enter_container(m, 'r', "adad");
                if (r >= 0)
                        r = read_points(m, &points, &n);
                if (r >= 0)
                        r = sd_bus_message_skip(m, "ad");
                if (r >= 0)
                        r = sd_bus_message_exit_container(m);
                if (r >= 0)
                        r = sd_bus_message_exit_container(m);
                k = r >= 0 ? number_of(name) : _TOP_NUMBER_MAX;
                if (k == _TOP_NUMBER_MAX || (role->n_points > 0 && n != role->n_points))
                        continue;
                free(role->points[k]);
                role->points[k] = TAKE_PTR(points);
                role->n_points = n;
        }
        if (r >= 0)
                r = sd_bus_message_exit_container(m);
        return r < 0 ? r : sd_bus_message_exit_container(m);
}

static int read_verdicts(sd_bus_message *m, void *target) {
        _cleanup_free_ char *text = NULL;
        const char *word;
        size_t size;
        FILE *f = open_memstream(&text, &size);
        bool first = true;
        int r = f ? sd_bus_message_enter_container(m, 'v', "as") : -ENOMEM;

        if (r >= 0)
                r = sd_bus_message_enter_container(m, 'a', "s");
        while (r >= 0 && (r = sd_bus_message_read_basic(m, 's', &word)) > 0) {
                fprintf(f, "%s%s", first ? "" : ", ", word);
                first = false;
        }
        if (r >= 0)
                r = sd_bus_message_exit_container(m);
        if (r >= 0)
                r = sd_bus_message_exit_container(m);
        if (f && fclose(f) != 0 && r >= 0)
                r = -ENOMEM;
        if (r >= 0 && !first) {
                free(*(char **)target);
                *(char **)target = TAKE_PTR(text);
        }
        return r;
}

static int read_values(sd_bus_message *m, void *target) {
        json_t **values = target;
        const char *name;
        uint64_t value;
        int r = sd_bus_message_enter_container(m, 'v', "a{st}");

        json_decref(*values);
        *values = json_object();
        if (r >= 0)
                r = sd_bus_message_enter_container(m, 'a', "{st}");
        while (r >= 0 && (r = sd_bus_message_read(m, "{st}", &name, &value)) > 0)
                (void)json_object_set_new(*values, name,
                                          json_integer((json_int_t)MIN(value, (uint64_t)INT64_MAX)));
        if (r >= 0)
                r = sd_bus_message_exit_container(m);
        return r < 0 ? r : sd_bus_message_exit_container(m);
}

static const struct field role_fields[] = {
        { "name", "s", offsetof(struct top_role, name), NULL },
        { "executors", "u", offsetof(struct top_role, executors), NULL },
        TOTAL_FIELDS(top_role, total),
        { "history", "a{s(adad)}", 0, read_history },
};

static const struct field executor_fields[] = {
        { "role", "s", offsetof(struct top_executor, role), NULL },
        { "state", "s", offsetof(struct top_executor, state), NULL },
        { "node", "s", offsetof(struct top_executor, node), NULL },
        { "index", "u", offsetof(struct top_executor, index), NULL },
        { "attempt", "u", offsetof(struct top_executor, attempt), NULL },
        { "element", "u", offsetof(struct top_executor, element), NULL },
        { "age", "t", offsetof(struct top_executor, age), NULL },
        { "rates", "a{sd}", offsetof(struct top_executor, rates), read_numbers },
        { "values", "a{st}", offsetof(struct top_executor, values), read_values },
        { "verdicts", "as", offsetof(struct top_executor, verdicts), read_verdicts },
};

static const struct field job_fields[] = {
        { "job", "u", offsetof(struct top_job, number), NULL },
        { "name", "s", offsetof(struct top_job, name), NULL },
        { "user", "u", offsetof(struct top_job, owner), NULL },
        { "state", "s", offsetof(struct top_job, state), NULL },
        { "since", "t", offsetof(struct top_job, since), NULL },
        { "executors", "u", offsetof(struct top_job, executors), NULL },
        TOTAL_FIELDS(top_job, total),
};

/* An array that grows: its next, zeroed element, or NULL. */
static void *next_row(void **rows, size_t *n, size_t size) {
        void *bigger = NULL, *row;

        if (*n < ROWS_MAX && (*n & (*n - 1)) == 0) {
                bigger = reallocarray(*rows, *n ? *n * 2 : 1, size);
                if (!bigger)
                        return NULL;
                *rows = bigger;
        } else if (*n >= ROWS_MAX)
                return NULL;
        row = (char *)*rows + size * (*n)++;
        memset(row, 0, size);
        return row;
}

static int take_role(sd_bus_message *m, struct top_model *t) {
        struct top_role *r = next_row((void **)&t->roles, &t->n_roles, sizeof(*r));

        if (!r)
                return -ENOMEM;
        total_clear(&r->total);
        return read_fields(m, role_fields, ELEMENTSOF(role_fields), r);
}

static int take_executor(sd_bus_message *m, struct top_model *t) {
        struct top_executor *e = next_row((void **)&t->executors, &t->n_executors, sizeof(*e));

        if (!e)
                return -ENOMEM;
        e->order = (uint32_t)t->n_executors;
        e->age = UINT64_MAX;
        e->element = UINT32_MAX;
        unknown(e->rates);
        return read_fields(m, executor_fields, ELEMENTSOF(executor_fields), e);
}

static int take_job(sd_bus_message *m, struct top_model *t) {
        struct top_job *j = next_row((void **)&t->jobs, &t->n_jobs, sizeof(*j));

        if (!j)
                return -ENOMEM;
        total_clear(&j->total);
        return read_fields(m, job_fields, ELEMENTSOF(job_fields), j);
}

/* An aa{sv}. */
static int read_rows(sd_bus_message *m, struct top_model *t,
                     int (*take)(sd_bus_message *m, struct top_model *t)) {
        int r = sd_bus_message_enter_container(m, 'a', "a{sv}");

        while (r >= 0 && sd_bus_message_at_end(m, false) == 0)
                r = take(m, t);
        return r < 0 ? r : sd_bus_message_exit_container(m);
}

static int read_variant_rows(sd_bus_message *m, struct top_model *t,
                             int (*take)(sd_bus_message *m, struct top_model *t)) {
        int r = sd_bus_message_enter_container(m, 'v', "aa{sv}");

        if (r >= 0)
                r = read_rows(m, t, take);
        return r < 0 ? r : sd_bus_message_exit_container(m);
}

static int read_roles(sd_bus_message *m, void *target) {
        return read_variant_rows(m, target, take_role);
}

static int read_executors(sd_bus_message *m, void *target) {
        return read_variant_rows(m, target, take_executor);
}

static const struct field model_fields[] = {
        { "at", "t", offsetof(struct top_model, at), NULL },
        { "interval", "t", offsetof(struct top_model, interval), NULL },
        { "roles", "aa{sv}", 0, read_roles },
        { "executors", "aa{sv}", 0, read_executors },
};

/* Texts that did not come are "". */
static int complete(struct top_model *t) {
        bool good = true;

        for (size_t i = 0; i < t->n_roles; i++)
                good = good && (t->roles[i].name || (t->roles[i].name = strdup("")));
        for (size_t i = 0; i < t->n_executors; i++) {
                struct top_executor *e = t->executors + i;
                good = good && (e->role || (e->role = strdup(""))) && (e->state || (e->state = strdup(""))) &&
                       (e->node || (e->node = strdup("")));
        }
        for (size_t i = 0; i < t->n_jobs; i++) {
                struct top_job *j = t->jobs + i;
                good = good && (j->name || (j->name = strdup(""))) && (j->state || (j->state = strdup("")));
        }
        return good ? 0 : -ENOMEM;
}

static int replace(struct top_model *t, struct top_model *fresh, int r) {
        if (r >= 0)
                r = complete(fresh);
        if (r < 0) {
                top_model_done(fresh);
                return r;
        }
        fresh->job = t->job;
        t->job = (struct top_job){};
        top_model_done(t);
        *t = *fresh;
        return 0;
}

int top_read_job(sd_bus_message *m, struct top_model *t) {
        struct top_model fresh = {};

        return replace(t, &fresh, read_fields(m, model_fields, ELEMENTSOF(model_fields), &fresh));
}

int top_read_jobs(sd_bus_message *m, struct top_model *t) {
        struct top_model fresh = {};

        return replace(t, &fresh, read_rows(m, &fresh, take_job));
}

/* ---- JSON ---- */

static json_t *numbers_json(const double numbers[static _TOP_NUMBER_MAX]) {
        json_t *o = json_object();

        for (enum top_number k = 0; k < _TOP_NUMBER_MAX; k++)
                if (!isnan(numbers[k]))
                        (void)json_object_set_new(o, names[k], json_real(numbers[k]));
        return o;
}

static json_t *points_json(const float *points, uint32_t n) {
        json_t *a = json_array();

        for (uint32_t i = 0; i < n; i++)
                (void)json_array_append_new(a, isnan(points[i]) ? json_null() : json_real((double)points[i]));
        return a;
}

static void set_total(json_t *o, const struct top_total *t) {
        (void)json_object_set_new(o, "running", json_integer(t->running));
        (void)json_object_set_new(o, "measured", json_integer(t->measured));
        (void)json_object_set_new(o, "gpus", json_integer(t->gpus));
        (void)json_object_set_new(o, "cpu", t->cpu > 0 ? json_real(t->cpu) : json_null());
        (void)json_object_set_new(o, "memory",
                                  t->memory > 0 ? json_integer((json_int_t)t->memory) : json_null());
        (void)json_object_set_new(o, "sum", numbers_json(t->sum));
        (void)json_object_set_new(o, "mean", numbers_json(t->mean));
        (void)json_object_set_new(o, "max", numbers_json(t->max));
}

static json_t *role_json(const struct top_role *r) {
        json_t *o = json_object(), *history = json_object();

        (void)json_object_set_new(o, "name", json_string(r->name));
        (void)json_object_set_new(o, "executors", json_integer(r->executors));
        set_total(o, &r->total);
        for (enum top_number k = 0; k < _TOP_NUMBER_MAX; k++)
                if (r->points[k])
                        (void)json_object_set_new(history, names[k], points_json(r->points[k], r->n_points));
        (void)json_object_set_new(o, "history", history);
        return o;
}

static json_t *executor_json(const struct top_executor *e) {
        json_t *o = json_object();

        (void)json_object_set_new(o, "role", json_string(e->role));
        (void)json_object_set_new(o, "index", json_integer(e->index));
        if (e->element != UINT32_MAX)
                (void)json_object_set_new(o, "element", json_integer(e->element));
        (void)json_object_set_new(o, "attempt", json_integer(e->attempt));
        (void)json_object_set_new(o, "state", json_string(e->state));
        (void)json_object_set_new(o, "node", json_string(e->node));
        (void)json_object_set_new(o, "ageUsec",
                                  e->age == UINT64_MAX ? json_null() : json_integer((json_int_t)e->age));
        (void)json_object_set_new(o, "rates", numbers_json(e->rates));
        if (e->values)
                (void)json_object_set(o, "values", e->values);
        if (e->verdicts)
                (void)json_object_set_new(o, "verdicts", json_string(e->verdicts));
        return o;
}

static json_t *job_json(const struct top_job *j) {
        json_t *o = json_object();

        (void)json_object_set_new(o, "job", json_integer(j->number));
        (void)json_object_set_new(o, "name", json_string(j->name));
        (void)json_object_set_new(o, "owner", json_integer(j->owner));
        (void)json_object_set_new(o, "state", json_string(j->state));
        (void)json_object_set_new(o, "since", json_integer((json_int_t)j->since));
        (void)json_object_set_new(o, "executors", json_integer(j->executors));
        set_total(o, &j->total);
        return o;
}

json_t *top_json(const struct top_model *t) {
        json_t *o, *roles, *executors;

        if (t->job.number == 0) {
                o = json_array();
                for (size_t i = 0; i < t->n_jobs; i++)
                        (void)json_array_append_new(o, job_json(t->jobs + i));
                return o;
        }
        o = json_object();
        roles = json_array();
        executors = json_array();
        (void)json_object_set_new(o, "job", json_integer(t->job.number));
        (void)json_object_set_new(o, "name", json_string(t->job.name));
        (void)json_object_set_new(o, "state", json_string(t->job.state));
        (void)json_object_set_new(o, "at", json_integer((json_int_t)t->at));
        (void)json_object_set_new(o, "intervalUsec", json_integer((json_int_t)t->interval));
        for (size_t i = 0; i < t->n_roles; i++)
                (void)json_array_append_new(roles, role_json(t->roles + i));
        for (size_t i = 0; i < t->n_executors; i++)
                (void)json_array_append_new(executors, executor_json(t->executors + i));
        (void)json_object_set_new(o, "roles", roles);
        (void)json_object_set_new(o, "executors", executors);
        return o;
}
