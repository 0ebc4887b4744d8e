/* SPDX-License-Identifier: Apache-2.0 */
/* Reads traces. Both formats have the same fields, in one table. */
#include "sim/trace.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "lib/base/cleanup.h"
#include "lib/base/file.h"
#include "lib/base/parse.h"
#include "lib/base/try.h"

#define FILE_MAX ((size_t)512 << 20)
#define COLUMNS_MAX 32u

static _printf_(2, 3) int refuse_line(struct trace *t, const char *format, ...) {
        va_list ap;

        va_start(ap, format);
        vsnprintf(t->error, sizeof(t->error), format, ap);
        va_end(ap);
        return -EINVAL;
}

/* Room for one more. NULL: none. */
static void *append_element(void *array, size_t element, size_t *n, size_t *allocated) {
        void **a = array;

        if (*n == *allocated) {
                size_t m = *n ? *n * 2 : 16;
                void *bigger = reallocarray(*a, m, element);
                if (!bigger)
                        return NULL;
                *a = bigger;
                *allocated = m;
        }
        memset((char *)*a + *n * element, 0, element);
        return (char *)*a + (*n)++ * element;
}

int trace_init(struct trace *t) {
        *t = (struct trace){};
        return trace_set_pool(t, "default:1");
}

void trace_name(const struct trace *t, const struct world_job *j, char ret[static TRACE_NAME_MAX + 16]) {
        const char *name = t->jobs[j->origin].name;

        if (j->search)
                snprintf(ret, TRACE_NAME_MAX + 16, "%s[%" PRIu32 "]", name, j->trial);
        else
                snprintf(ret, TRACE_NAME_MAX + 16, "%s", name);
}

void trace_done(struct trace *t) {
        free(t->hosts);
        free(t->pools);
        free(t->users);
        free(t->jobs);
        free(t->failures);
        *t = (struct trace){};
}

static int find_pool(struct trace *t, const char *name, uint32_t *ret) {
        static const struct policy_amount none = { UINT64_MAX, UINT64_MAX, UINT32_MAX };
        struct policy_pool *p;

        for (size_t i = 0; i < t->n_pools; i++)
                if (strcmp(t->pools[i].name, name) == 0) {
                        *ret = (uint32_t)i;
                        return 0;
                }
        if (name[0] == 0 || strlen(name) >= sizeof(p->name) || t->n_pools == POLICY_POOLS_MAX)
                return refuse_line(
                        t, "\"%.60s\" cannot be a pool: a name has 1 to %u bytes, and there are at most %u",
                        name, POLICY_POOL_NAME_MAX - 1, POLICY_POOLS_MAX);
        p = append_element(&t->pools, sizeof(*p), &t->n_pools, &t->pools_allocated);
        if (!p)
                return -ENOMEM;
        snprintf(p->name, sizeof(p->name), "%s", name);
        p->weight = 1;
        p->limit = p->user_limit = none;
        *ret = (uint32_t)t->n_pools - 1;
        return 0;
}

static int find_user(struct trace *t, const char *name, uint32_t *ret) {
        char(*u)[TRACE_NAME_MAX];

        /* Those of a trace come in runs: look at the latest first. */
        for (size_t i = t->n_users; i-- > 0;)
                if (strcmp(t->users[i], name) == 0) {
                        *ret = (uint32_t)i;
                        return 0;
                }
        if (name[0] == 0 || strlen(name) >= sizeof(*u))
                return refuse_line(t, "\"%.60s\" cannot be a user: a name has 1 to %u bytes", name,
                                   TRACE_NAME_MAX - 1);
        u = append_element(&t->users, sizeof(*u), &t->n_users, &t->users_allocated);
        if (!u)
                return -ENOMEM;
        snprintf(*u, sizeof(*u), "%s", name);
        *ret = (uint32_t)t->n_users - 1;
        return 0;
}

int trace_set_pool(struct trace *t, const char *spec) {
        const char *colon = strrchr(spec, ':');
        char name[POLICY_POOL_NAME_MAX];
        uint32_t weight, i;
        int r;

        if (!colon || colon - spec >= (int)sizeof(name) || parse_u32(colon + 1, 1, 1000000, &weight) < 0)
                return refuse_line(t, "\"%.80s\" is not a pool with its weight, such as prod:3", spec);
        snprintf(name, sizeof(name), "%.*s", (int)(colon - spec), spec);
        r = find_pool(t, name, &i);
        if (r >= 0)
                t->pools[i].weight = weight;
        return r;
}

/* ---- numbers ---- */

static int parse_cpus(const char *s, uint32_t *ret) {
        char *end;
        double v = strtod(s, &end);

        if (end == s || *end || !(v >= 0) || v > SCHED_CPU_MAX / 1000.0)
                return -EINVAL;
        *ret = (uint32_t)lround(v * 1000);
        return 0;
}

int trace_add_hosts(struct trace *t, const char *spec) {
        _cleanup_free_ char *copy = strdup(spec);
        char *rest = copy, *one;

        if (!copy)
                return -ENOMEM;
        while ((one = strsep(&rest, ","))) {
                struct sched_capacity c = { .executors = 8192 };
                char *x = strchr(one, 'x'), *field;
                uint32_t count = 0;
                if (!x)
                        return refuse_line(
                                t,
                                "\"%.80s\" is not a number of hosts with what they have, such as 8x64/512G/8",
                                one);
                *x++ = 0;
                if (parse_u32(one, 1, TRACE_HOSTS_MAX, &count) < 0 || !(field = strsep(&x, "/")) ||
                    parse_cpus(field, &c.cpu_milli) < 0 || !(field = strsep(&x, "/")) ||
                    parse_size(field, &c.memory) < 0 || c.memory > SCHED_MEMORY_MAX ||
                    (x && parse_u32(x, 0, SCHED_GPUS_MAX, &c.gpus) < 0))
                        return refuse_line(
                                t,
                                "\"%.80s\": hosts are NUMBERxCPUS/MEMORY[/GPUS], such as 8x64/512G/8; "
                                "at most %u "
                                "hosts and %u GPUs on each",
                                spec, TRACE_HOSTS_MAX, SCHED_GPUS_MAX);
                for (uint32_t i = 0; i < count; i++) {
                        struct sched_capacity *h =
                                append_element(&t->hosts, sizeof(*h), &t->n_hosts, &t->hosts_allocated);
                        if (!h)
                                return -ENOMEM;
                        *h = c;
                }
        }
        return t->n_hosts > TRACE_HOSTS_MAX ? refuse_line(t, "more than %u hosts", TRACE_HOSTS_MAX) : 0;
}

/* ---- fields of a job ---- */

static int set_name(struct trace *t, struct trace_job *j, struct sched_shape *h, const char *s) {
        return snprintf(j->name, sizeof(j->name), "%s", s) < (int)sizeof(j->name) ? 0 : -EINVAL;
}

static int set_submit(struct trace *t, struct trace_job *j, struct sched_shape *h, const char *s) {
        return parse_duration(s, &j->job.submitted) < 0 || j->job.submitted >= UINT64_MAX / 4 ? -EINVAL : 0;
}

static int set_user(struct trace *t, struct trace_job *j, struct sched_shape *h, const char *s) {
        return find_user(t, s, &j->job.user);
}

static int set_pool(struct trace *t, struct trace_job *j, struct sched_shape *h, const char *s) {
        return find_pool(t, s, &j->job.pool);
}

static int set_priority(struct trace *t, struct trace_job *j, struct sched_shape *h, const char *s) {
        uint32_t v;

        if (parse_u32(s + (*s == '-'), 0, POLICY_PRIORITY_MAX, &v) < 0)
                return -EINVAL;
        j->job.priority = *s == '-' ? -(int32_t)v : (int32_t)v;
        return 0;
}

static int set_executors(struct trace *t, struct trace_job *j, struct sched_shape *h, const char *s) {
        const char *dash = strchr(s, '-');
        char least[16];

        snprintf(least, sizeof(least), "%.*s", dash ? (int)(dash - s) : (int)strlen(s), s);
        if (parse_u32(least, dash ? 0 : 1, SCHED_EXECUTORS_MAX, &h->min) < 0)
                return -EINVAL;
        h->max = h->min;
        return dash ? parse_u32(dash + 1, MAX(h->min, 1u), SCHED_EXECUTORS_MAX, &h->max) : 0;
}

static int set_cpus(struct trace *t, struct trace_job *j, struct sched_shape *h, const char *s) {
        return parse_cpus(s, &h->cpu_milli);
}

static int set_memory(struct trace *t, struct trace_job *j, struct sched_shape *h, const char *s) {
        return parse_size(s, &h->memory) < 0 || h->memory > SCHED_MEMORY_MAX ? -EINVAL : 0;
}

static int set_gpus(struct trace *t, struct trace_job *j, struct sched_shape *h, const char *s) {
        return parse_u32(s, 0, SCHED_GPUS_MAX, &h->gpus);
}

static int set_per_node(struct trace *t, struct trace_job *j, struct sched_shape *h, const char *s) {
        return parse_u32(s, 0, SCHED_EXECUTORS_MAX, &h->per_node);
}

static int set_max_per_node(struct trace *t, struct trace_job *j, struct sched_shape *h, const char *s) {
        return parse_u32(s, 0, SCHED_EXECUTORS_MAX, &h->max_per_node);
}

static int positive_duration(const char *s, uint64_t *ret) {
        uint64_t v;

        if (parse_duration(s, &v) < 0 || v == 0)
                return -EINVAL;
        *ret = v;
        return 0;
}

static int set_runtime(struct trace *t, struct trace_job *j, struct sched_shape *h, const char *s) {
        return positive_duration(s, &j->job.runtime);
}

static int set_limit(struct trace *t, struct trace_job *j, struct sched_shape *h, const char *s) {
        return positive_duration(s, &j->job.limit);
}

static int set_preemptible(struct trace *t, struct trace_job *j, struct sched_shape *h, const char *s) {
        return parse_bool(s, &j->job.preemptible);
}

static int set_savepoint(struct trace *t, struct trace_job *j, struct sched_shape *h, const char *s) {
        return parse_duration(s, &j->job.savepoint);
}

typedef int (*set_t)(struct trace *t, struct trace_job *j, struct sched_shape *h, const char *s);

static const struct field {
        const char *name;
        set_t set;
        bool of_role; /* may stand in each of a job's roles */
} fields[] = {
        { "name", set_name },
        { "submit", set_submit },
        { "user", set_user },
        { "pool", set_pool },
        { "priority", set_priority },
        { "executors", set_executors, true },
        { "cpus", set_cpus, true },
        { "memory", set_memory, true },
        { "gpus", set_gpus, true },
        { "per_node", set_per_node, true },
        { "max_per_node", set_max_per_node, true },
        { "runtime", set_runtime },
        { "limit", set_limit },
        { "preemptible", set_preemptible },
        { "savepoint", set_savepoint },
};

static const struct field *find_field(const char *name) {
        for (size_t i = 0; i < ELEMENTSOF(fields); i++)
                if (strcmp(fields[i].name, name) == 0)
                        return fields + i;
        return NULL;
}

static int set_field(struct trace *t, const struct field *f, struct trace_job *j, struct sched_shape *h,
                     const char *where, size_t number, const char *value) {
        int r;

        t->error[0] = 0;
        r = f->set(t, j, h, value);
        if (r == -ENOMEM || r >= 0)
                return r;
        return t->error[0] ? r
                           : refuse_line(t, "%.80s, %s %zu: \"%.40s\" is no value for \"%s\"", where,
                                         strstr(where, ".json") ? "job" : "line", number, value, f->name);
}

static struct trace_job *new_job(struct trace *t) {
        struct trace_job *j = append_element(&t->jobs, sizeof(*j), &t->n_jobs, &t->jobs_allocated);

        if (!j)
                return NULL;
        snprintf(j->name, sizeof(j->name), "%zu", t->n_jobs);
        j->job.limit = UINT64_MAX;
        j->job.n_shapes = 1;
        for (size_t i = 0; i < WORLD_SHAPES_MAX; i++)
                j->job.shapes[i] = (struct sched_shape){ .min = 1, .max = 1, .cpu_milli = 1000 };
        return j;
}

static int check_job(struct trace *t, const struct trace_job *j, const char *where, size_t number) {
        if (j->job.runtime == 0)
                return refuse_line(t, "%.80s, %s %zu: \"runtime\" is missing", where,
                                   strstr(where, ".json") ? "job" : "line", number);
        return t->n_jobs > TRACE_JOBS_MAX ? refuse_line(t, "%.80s: more than %u jobs", where, TRACE_JOBS_MAX)
                                          : 0;
}

/* ---- CSV ---- */

static char *trimmed(char *s) {
        char *end = s + strlen(s);

        while (*s == ' ' || *s == '"')
                s++;
        while (end > s && strchr(" \"\r", end[-1]))
                *--end = 0;
        return s;
}

/* Calls row() for each line behind the first, with its values by the first line's names. */
static int read_csv(struct trace *t, const char *path,
                    int (*row)(struct trace *t, const char *path, size_t line, char **names, char **values,
                               size_t n)) {
        _cleanup_free_ char *text = NULL;
        char *rest, *line, *names[COLUMNS_MAX], *values[COLUMNS_MAX];
        size_t n = 0, number = 0;
        int r = read_file(path, FILE_MAX, &text, NULL);

        if (r < 0)
                return refuse_line(t, "%.200s: %s", path, strerror(-r));
        for (rest = text; (line = strsep(&rest, "\n"));) {
                char **into = n == 0 ? names : values, *field;
                size_t k = 0;
                number++;
                if (line[0] == 0 || line[0] == '#' || strcmp(line, "\r") == 0)
                        continue;
                for (; (field = strsep(&line, ",")); k++) {
                        if (k == COLUMNS_MAX)
                                return refuse_line(t, "%.150s, line %zu: more than %u columns", path, number,
                                                   COLUMNS_MAX);
                        into[k] = trimmed(field);
                }
                if (n == 0) {
                        n = k;
                        continue;
                }
                if (k != n)
                        return refuse_line(t, "%.150s, line %zu: %zu values for %zu columns", path, number, k,
                                           n);
                r = row(t, path, number, names, values, n);
                if (r < 0)
                        return r;
        }
        return n == 0 ? refuse_line(t, "%.200s: the first line has to name the columns", path) : 0;
}

static int job_row(struct trace *t, const char *path, size_t line, char **names, char **values, size_t n) {
        struct trace_job *j = new_job(t);
        int r = 0;

        if (!j)
                return -ENOMEM;
        for (size_t i = 0; i < n && r >= 0; i++) {
                const struct field *f = find_field(names[i]);
                if (!f)
                        return refuse_line(t, "%.150s: no field is called \"%.40s\"", path, names[i]);
                if (values[i][0])
                        r = set_field(t, f, j, j->job.shapes, path, line, values[i]);
        }
        return r < 0 ? r : check_job(t, j, path, line);
}

static int add_failure(struct trace *t, uint32_t host, uint64_t from, uint64_t to) {
        struct trace_failure *f =
                append_element(&t->failures, sizeof(*f), &t->n_failures, &t->failures_allocated);

        if (!f)
                return -ENOMEM;
        *f = (struct trace_failure){ host, from, to };
        return 0;
}

static int failure_row(struct trace *t, const char *path, size_t line, char **names, char **values,
                       size_t n) {
        uint32_t host;
        uint64_t from, to;

        if (n != 3 || strcmp(names[0], "host") != 0 || strcmp(names[1], "from") != 0 ||
            strcmp(names[2], "to") != 0)
                return refuse_line(t, "%.150s: the columns have to be host,from,to", path);
        if (parse_u32(values[0], 0, TRACE_HOSTS_MAX, &host) < 0 || parse_duration(values[1], &from) < 0 ||
            parse_duration(values[2], &to) < 0 || to <= from)
                return refuse_line(
                        t, "%.150s, line %zu: a host's number (from 0), when it fails, and when it is back",
                        path, line);
        return add_failure(t, host, from, to);
}

int trace_load_failures(struct trace *t, const char *path) {
        return read_csv(t, path, failure_row);
}

/* ---- JSON ---- */

/* A value as the text that CSV would have. */
static const char *text_of(const json_t *v, char *buf, size_t size) {
        if (json_is_string(v))
                return json_string_value(v);
        if (json_is_boolean(v))
                return json_is_true(v) ? "true" : "false";
        if (json_is_integer(v))
                snprintf(buf, size, "%" JSON_INTEGER_FORMAT, json_integer_value(v));
        else if (json_is_real(v))
                snprintf(buf, size, "%.17g", json_real_value(v));
        else
                return NULL;
        return buf;
}

static int set_all(struct trace *t, const char *path, size_t number, struct trace_job *j,
                   struct sched_shape *h, json_t *object, bool role) {
        const char *key, *text;
        char buf[32];
        json_t *v;
        int r = 0;

        json_object_foreach (object, key, v) {
                const struct field *f = find_field(key);
                if (!role && (strcmp(key, "roles") == 0 || strcmp(key, "search") == 0))
                        continue;
                if (!f || (role && !f->of_role))
                        return refuse_line(t, "%.100s, job %zu: no field%s is called \"%.40s\"", path, number,
                                           role ? " of a role" : "", key);
                text = text_of(v, buf, sizeof(buf));
                r = text ? set_field(t, f, j, h, path, number, text)
                         : refuse_line(t, "%.100s, job %zu: \"%s\" is neither text nor a number", path,
                                       number, key);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int json_search(struct trace *t, const char *path, size_t number, const json_t *object,
                       struct trace_search *ret) {
        const char *key;
        int r = object ? trace_read_search(object, ret, &key) : 0;

        if (r == -ENOENT)
                return refuse_line(t, "%.100s, job %zu: no field of a search is called \"%.40s\" here", path,
                                   number, key);
        return r < 0 ? refuse_line(
                               t,
                               "%.100s, job %zu: \"%.40s\" of the search is missing, or has no value that it may have",
                               path, number, key)
                     : 0;
}

static int json_job(struct trace *t, const char *path, size_t number, json_t *object) {
        json_t *roles = json_object_get(object, "roles"), *role;
        struct trace_job *j = new_job(t);
        size_t i;
        int r = 0;

        if (!j)
                return -ENOMEM;
        if (!json_is_object(object))
                return refuse_line(t, "%.100s: job %zu is not an object", path, number);
        TRY(set_all(t, path, number, j, j->job.shapes, object, false));
        TRY(json_search(t, path, number, json_object_get(object, "search"), &j->search));
        if (roles && (!json_is_array(roles) || json_array_size(roles) == 0 ||
                      json_array_size(roles) > WORLD_SHAPES_MAX))
                return refuse_line(t, "%.100s, job %zu: \"roles\" is a list of 1 to %u", path, number,
                                   WORLD_SHAPES_MAX);
        json_array_foreach (roles, i, role) {
                if (r >= 0)
                        r = set_all(t, path, number, j, j->job.shapes + i, role, true);
                j->job.n_shapes = (uint32_t)i + 1;
        }
        return r < 0 ? r : check_job(t, j, path, number);
}

static int json_amount(struct trace *t, const char *path, const char *what, json_t *object,
                       struct policy_amount *a) {
        struct trace_job j = {};
        struct sched_shape h = {};
        char buf[32];
        const char *key, *text;
        json_t *v;

        json_object_foreach (object, key, v) {
                const struct field *f = find_field(key);
                text = text_of(v, buf, sizeof(buf));
                if (!f || !text || (f->set != set_cpus && f->set != set_memory && f->set != set_gpus) ||
                    f->set(t, &j, &h, text) < 0)
                        return refuse_line(t, "%.100s: \"%s\" of a pool has cpus, memory and gpus", path,
                                           what);
                if (f->set == set_cpus)
                        a->cpu_milli = h.cpu_milli;
                else if (f->set == set_memory)
                        a->memory = h.memory;
                else
                        a->gpus = h.gpus;
        }
        return 0;
}

static int json_pool(struct trace *t, const char *path, json_t *object) {
        const char *name = json_string_value(json_object_get(object, "name"));
        json_t *weight = json_object_get(object, "weight");
        struct policy_pool *p;
        uint32_t i;
        int r;

        if (!name || (weight && (json_integer_value(weight) < 1 || json_integer_value(weight) > 1000000)))
                return refuse_line(t, "%.100s: a pool has a \"name\" and a \"weight\" of 1 to 1000000", path);
        r = find_pool(t, name, &i);
        if (r < 0)
                return r;
        p = t->pools + i;
        p->weight = weight ? (uint32_t)json_integer_value(weight) : 1;
        p->preempts = json_is_true(json_object_get(object, "preempts"));
        r = json_amount(t, path, "limit", json_object_get(object, "limit"), &p->limit);
        if (r >= 0)
                r = json_amount(t, path, "user_limit", json_object_get(object, "user_limit"), &p->user_limit);
        return r < 0 ? r
                     : json_amount(t, path, "guarantee", json_object_get(object, "guarantee"), &p->guarantee);
}

static int json_failure(struct trace *t, const char *path, json_t *object) {
        char a[32], b[32], c[32];
        const char *host = text_of(json_object_get(object, "host"), a, sizeof(a)),
                   *from = text_of(json_object_get(object, "from"), b, sizeof(b)),
                   *to = text_of(json_object_get(object, "to"), c, sizeof(c));
        char *values[] = { (char *)host, (char *)from, (char *)to };
        char *names[] = { (char *)"host", (char *)"from", (char *)"to" };

        if (!host || !from || !to)
                return refuse_line(t, "%.100s: a failure has \"host\", \"from\" and \"to\"", path);
        return failure_row(t, path, 0, names, values, 3);
}

static int load_json(struct trace *t, const char *path) {
        json_error_t error;
        json_t *root = json_load_file(path, JSON_REJECT_DUPLICATES, &error), *v;
        const char *hosts;
        size_t i;
        int r = 0;

        if (!root)
                return refuse_line(t, "%.100s, line %d: %.100s", path, error.line, error.text);
        hosts = json_string_value(json_object_get(root, "hosts"));
        if (hosts && t->n_hosts == 0)
                r = trace_add_hosts(t, hosts);
        json_array_foreach (json_object_get(root, "pools"), i, v)
                if (r >= 0)
                        r = json_pool(t, path, v);
        json_array_foreach (json_object_get(root, "jobs"), i, v)
                if (r >= 0)
                        r = json_job(t, path, i + 1, v);
        json_array_foreach (json_object_get(root, "failures"), i, v)
                if (r >= 0)
                        r = json_failure(t, path, v);
        json_decref(root);
        return r;
}

int trace_load(struct trace *t, const char *path) {
        size_t n = strlen(path);

        return n > 5 && strcmp(path + n - 5, ".json") == 0 ? load_json(t, path) : read_csv(t, path, job_row);
}

int trace_write(const struct trace *t, FILE *f) {
        fprintf(f, "name,submit,user,pool,priority,executors,cpus,memory,gpus,per_node,runtime,limit,"
                   "preemptible,savepoint\n");
        for (size_t i = 0; i < t->n_jobs; i++) {
                const struct world_job *j = &t->jobs[i].job;
                const struct sched_shape *h = j->shapes;
                fprintf(f, "%s,%.0f,%s,%s,%d,%u,%g,%" PRIu64 ",%u,%u,%.0f,", t->jobs[i].name,
                        (double)j->submitted / 1e6, t->users[j->user], t->pools[j->pool].name, j->priority,
                        h->min, h->cpu_milli / 1e3, h->memory, h->gpus, h->per_node,
                        (double)j->runtime / 1e6);
                if (j->limit != UINT64_MAX)
                        fprintf(f, "%.0f", (double)j->limit / 1e6);
                fprintf(f, ",%s,%.0f\n", j->preemptible ? "yes" : "no", (double)j->savepoint / 1e6);
        }
        return ferror(f) ? -EIO : 0;
}
