/* SPDX-License-Identifier: Apache-2.0 */
/* primusctl queue, primusctl pools. */
#include <inttypes.h>
#include <jansson.h>
#include <pwd.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/parse.h"
#include "tools/primusctl/bus/fields.h"
#include "tools/primusctl/cli/commands.h"
#include "tools/primusctl/view/table.h"
#include "tools/primusctl/view/users.h"

static const char *user_name(uint32_t uid, char *buf, size_t size) {
        const struct passwd *pw = getpwuid(uid);

        if (pw)
                snprintf(buf, size, "%s", pw->pw_name);
        else
                snprintf(buf, size, "%" PRIu32, uid);
        return buf;
}

static int ask(struct cli *c, const char *method, sd_bus_message **ret) {
        _cleanup_(sd_bus_message_unref_p) sd_bus_message *m = NULL;
        int r = cli_manager_call(c, method, &m);

        if (!r)
                r = cli_call(c, m, NULL, ret);
        if (r)
                return r;
        r = sd_bus_message_enter_container(*ret, 'a', "a{sv}");
        return r < 0 ? cli_bad_reply(c, r) : 0;
}

/* What one of the commands lists, a row at a time. */
struct listing {
        const char *method;
        const struct table_column *columns;
        size_t n_columns;
        int (*next)(sd_bus_message *m, void *row); /* 1: a row, 0: there is none any more */
        json_t *(*json)(const void *row);
        void (*show)(struct table *t, const void *row);
        void (*done)(void *row);
        const char *empty; /* said where there is none */
};

/* row: room for one. */
static int list(struct cli *c, const struct listing *l, void *row) {
        _cleanup_(sd_bus_message_unref_p) sd_bus_message *reply = NULL;
        _cleanup_(table_free_p) struct table *t = NULL;
        json_t *array = NULL;
        int r = ask(c, l->method, &reply);

        if (!r && c->json && !(array = json_array()))
                r = cli_oom(c);
        if (!r && !c->json)
                r = table_new(c, l->columns, l->n_columns, &t);
        if (r)
                return r;
        while ((r = l->next(reply, row)) > 0) {
                if (c->json)
                        (void)json_array_append_new(array, l->json(row));
                else
                        l->show(t, row);
                l->done(row);
        }
        if (r < 0) {
                l->done(row);
                json_decref(array);
                return cli_bad_reply(c, r);
        }
        return c->json ? cli_print_json(c, array) : table_print_or(c, t, l->empty);
}

/* ---- queue ---- */

struct waiting {
        uint32_t job, user, executors, gpus;
        int32_t priority;
        uint64_t position, since, memory, starts_by;
        double cpus;
        char *name, *pool, *state, *reason;
};

static void waiting_done(void *row) {
        struct waiting *w = row;

        free(w->name);
        free(w->pool);
        free(w->state);
        free(w->reason);
}

static int next_waiting(sd_bus_message *m, void *row) {
#define FIELD(key, type, member)                                                                             \
        { key, type, offsetof(struct waiting, member), NULL }
        static const struct field fields[] = {
                FIELD("job", "u", job),
                FIELD("name", "s", name),
                FIELD("user", "u", user),
                FIELD("pool", "s", pool),
                FIELD("priority", "i", priority),
                FIELD("state", "s", state),
                FIELD("position", "t", position),
                FIELD("since", "t", since),
                FIELD("executors", "u", executors),
                FIELD("cpus", "d", cpus),
                FIELD("memory", "t", memory),
                FIELD("gpus", "u", gpus),
                FIELD("startsBy", "t", starts_by),
                FIELD("reason", "s", reason),
        };
#undef FIELD
        struct waiting *w = row;
        int r = sd_bus_message_at_end(m, false);

        *w = (struct waiting){ 0 };
        if (r != 0)
                return r < 0 ? r : 0;
        r = read_fields(m, fields, ELEMENTSOF(fields), w);
        return r < 0 ? r : 1;
}

static json_t *waiting_json(const void *row) {
        const struct waiting *w = row;

        return json_pack("{s:I, s:s, s:I, s:s, s:i, s:s, s:I, s:I, s:I, s:f, s:I, s:I, s:I, s:s}", "job",
                         (json_int_t)w->job, "name", w->name ?: "", "owner", (json_int_t)w->user, "pool",
                         w->pool ?: "", "priority", w->priority, "state", w->state ?: "", "position",
                         (json_int_t)w->position, "since", (json_int_t)w->since, "executors",
                         (json_int_t)w->executors, "cpus", w->cpus, "memory", (json_int_t)w->memory, "gpus",
                         (json_int_t)w->gpus, "startsBy", (json_int_t)w->starts_by, "reason",
                         w->reason ?: "");
}

static void waiting_row(struct table *t, const void *row) {
        const struct waiting *w = row;
        uint64_t now = now_real();
        _cleanup_free_ char *reason = users_named(w->reason, user_lookup_here);
        char user[64], wait[FORMAT_DURATION_MAX], memory[FORMAT_SIZE_MAX], when[TEXT_TIME_MAX], needs[96];

        if (table_row(t) < 0)
                return;
        snprintf(needs, sizeof(needs), "%gC %s", w->cpus, format_size(w->memory, memory, sizeof(memory)));
        if (w->gpus)
                snprintf(needs + strlen(needs), sizeof(needs) - strlen(needs), " %uG", w->gpus);
        if (w->position)
                table_set(t, 0, COLOR_NONE, "%" PRIu64, w->position);
        else
                table_set(t, 0, COLOR_DIM, "-");
        table_set(t, 1, COLOR_BOLD, "%" PRIu32, w->job);
        table_set(t, 2, COLOR_NONE, "%s", w->name ?: "");
        table_set(t, 3, COLOR_NONE, "%s", user_name(w->user, user, sizeof(user)));
        table_set(t, 4, COLOR_NONE, "%s", w->pool ?: "");
        table_set(t, 5, COLOR_NONE, "%" PRId32, w->priority);
        table_set(t, 6, COLOR_NONE, "%s",
                  format_duration(usec_sub(now, w->since) / USEC_PER_SEC * USEC_PER_SEC, wait, sizeof(wait)));
        table_set(t, 7, COLOR_NONE, "%" PRIu32, w->executors);
        table_set(t, 8, COLOR_NONE, "%s", needs);
        table_set(t, 9, COLOR_NONE, "%s",
                  w->starts_by ? text_time(w->starts_by, now, when, sizeof(when)) : "-");
        table_set(t, 10, COLOR_NONE, "%s", reason ?: "");
}

static int queue_run(struct cli *c, void *options, char **args, size_t n) {
        static const struct table_column columns[] = {
                { "#", .right = true },
                { "JOB", .right = true },
                { "NAME", .fills = true },
                { "USER" },
                { "POOL" },
                { "PRIO", .right = true },
                { "WAITS", .right = true },
                { "EXECUTORS", .right = true },
                { "NEEDS", .right = true },
                { "STARTS BY" },
                { "REASON", .fills = true },
        };
        static const struct listing listing = {
                "ListQueue",  columns,     ELEMENTSOF(columns), next_waiting,
                waiting_json, waiting_row, waiting_done,        "No job waits"
        };
        struct waiting w;

        (void)options;
        (void)args;
        (void)n;
        return list(c, &listing, &w);
}

const struct command queue_command = {
        .name = "queue",
        .arguments = "",
        .help = "Show the jobs that wait, in the order in which they are tried",
        .details = "NEEDS is what is still missing: CPUs, memory, GPUs. STARTS BY is the latest, as far as "
                   "time limits\n"
                   "tell. 'primusctl why JOB' says more.",
        .run = queue_run,
};

/* ---- pools ---- */

struct amount {
        uint64_t cpu_milli, memory;
        uint32_t gpus;
};

struct share {
        uint32_t user, running, waiting;
        double usage;
        struct amount held;
};

struct pool {
        char *name;
        bool open, preempts, preemptible;
        uint32_t weight;
        int32_t priority, max_priority;
        uint64_t default_time, max_time;
        struct amount guarantee, limit, user_limit;
        struct share all;
        struct share *users;
        size_t n_users;
};

static void pool_done(void *row) {
        struct pool *p = row;

        free(p->name);
        free(p->users);
}

static int read_amount(sd_bus_message *m, void *target) {
        struct amount *a = target;

        return sd_bus_message_read(m, "v", "(ttu)", &a->cpu_milli, &a->memory, &a->gpus);
}

static const struct field share_fields[] = {
        { "user", "u", offsetof(struct share, user), NULL },
        { "usage", "d", offsetof(struct share, usage), NULL },
        { "running", "u", offsetof(struct share, running), NULL },
        { "waiting", "u", offsetof(struct share, waiting), NULL },
        { "held", "(ttu)", offsetof(struct share, held), read_amount },
};

static int read_users(sd_bus_message *m, void *target) {
        struct pool *p = target;
        int r = sd_bus_message_enter_container(m, 'v', "aa{sv}");

        if (r >= 0)
                r = sd_bus_message_enter_container(m, 'a', "a{sv}");
        while (r >= 0 && (r = sd_bus_message_at_end(m, false)) == 0) {
                struct share *bigger = reallocarray(p->users, p->n_users + 1, sizeof(*bigger));
                if (!bigger)
                        return -ENOMEM;
                p->users = bigger;
                p->users[p->n_users] = (struct share){ 0 };
                r = read_fields(m, share_fields, ELEMENTSOF(share_fields), p->users + p->n_users++);
        }
        if (r >= 0)
                r = sd_bus_message_exit_container(m);
        return r < 0 ? r : sd_bus_message_exit_container(m);
}

static int next_pool(sd_bus_message *m, void *row) {
#define FIELD(key, type, member, ...)                                                                        \
        { key, type, offsetof(struct pool, member), ##__VA_ARGS__ }
        static const struct field fields[] = {
                FIELD("name", "s", name),
                FIELD("open", "b", open),
                FIELD("preempts", "b", preempts),
                FIELD("preemptible", "b", preemptible),
                FIELD("weight", "u", weight),
                FIELD("priority", "i", priority),
                FIELD("maxPriority", "i", max_priority),
                FIELD("defaultTime", "t", default_time),
                FIELD("maxTime", "t", max_time),
                FIELD("guarantee", "(ttu)", guarantee, read_amount),
                FIELD("limit", "(ttu)", limit, read_amount),
                FIELD("userLimit", "(ttu)", user_limit, read_amount),
                FIELD("held", "(ttu)", all.held, read_amount),
                FIELD("usage", "d", all.usage),
                FIELD("running", "u", all.running),
                FIELD("waiting", "u", all.waiting),
                { "users", "aa{sv}", 0, read_users },
        };
#undef FIELD
        struct pool *p = row;
        int r = sd_bus_message_at_end(m, false);

        *p = (struct pool){ 0 };
        if (r != 0)
                return r < 0 ? r : 0;
        r = read_fields(m, fields, ELEMENTSOF(fields), p);
        return r < 0 ? r : 1;
}

static char *amount_text(const struct amount *a, char *buf, size_t size) {
        char memory[FORMAT_SIZE_MAX];
        size_t n = 0;

        *buf = 0;
        if (a->cpu_milli != UINT64_MAX && a->cpu_milli)
                n += (size_t)snprintf(buf, size, "%gC", (double)a->cpu_milli / 1000);
        if (a->memory != UINT64_MAX && a->memory && n < size)
                n += (size_t)snprintf(buf + n, size - n, "%s%s", n ? " " : "",
                                      format_size(a->memory, memory, sizeof(memory)));
        if (a->gpus != UINT32_MAX && a->gpus && n < size)
                n += (size_t)snprintf(buf + n, size - n, "%s%uG", n ? " " : "", a->gpus);
        if (n == 0)
                snprintf(buf, size, "-");
        return buf;
}

static json_t *amount_json(const struct amount *a) {
        json_t *o = json_object();

        if (a->cpu_milli != UINT64_MAX)
                (void)json_object_set_new(o, "cpus", json_real((double)a->cpu_milli / 1000));
        if (a->memory != UINT64_MAX)
                (void)json_object_set_new(o, "memory", json_integer((json_int_t)a->memory));
        if (a->gpus != UINT32_MAX)
                (void)json_object_set_new(o, "gpus", json_integer(a->gpus));
        return o;
}

static json_t *share_json(const struct share *s) {
        return json_pack("{s:f, s:I, s:I, s:o}", "usage", s->usage, "running", (json_int_t)s->running,
                         "waiting", (json_int_t)s->waiting, "held", amount_json(&s->held));
}

static json_t *duration_json(uint64_t usec) {
        return usec == UINT64_MAX ? json_null() : json_integer((json_int_t)usec);
}

static json_t *pool_json(const void *row) {
        const struct pool *p = row;
        json_t *o = share_json(&p->all), *users = json_array();

        for (size_t i = 0; i < p->n_users; i++) {
                json_t *u = share_json(p->users + i);
                (void)json_object_set_new(u, "user", json_integer(p->users[i].user));
                (void)json_array_append_new(users, u);
        }
        (void)json_object_set_new(o, "users", users);
        (void)json_object_set_new(o, "name", json_string(p->name ?: ""));
        (void)json_object_set_new(o, "open", json_boolean(p->open));
        (void)json_object_set_new(o, "weight", json_integer(p->weight));
        (void)json_object_set_new(o, "priority", json_integer(p->priority));
        (void)json_object_set_new(o, "maxPriority", json_integer(p->max_priority));
        (void)json_object_set_new(o, "preempts", json_boolean(p->preempts));
        (void)json_object_set_new(o, "preemptible", json_boolean(p->preemptible));
        (void)json_object_set_new(o, "defaultTime", duration_json(p->default_time));
        (void)json_object_set_new(o, "maxTime", duration_json(p->max_time));
        (void)json_object_set_new(o, "guarantee", amount_json(&p->guarantee));
        (void)json_object_set_new(o, "limit", amount_json(&p->limit));
        (void)json_object_set_new(o, "userLimit", amount_json(&p->user_limit));
        return o;
}

static void share_cells(struct table *t, const struct share *s) {
        char held[64];

        table_set(t, 2, COLOR_NONE, "%" PRIu32, s->running);
        table_set(t, 3, COLOR_NONE, "%" PRIu32, s->waiting);
        table_set(t, 4, COLOR_NONE, "%s", amount_text(&s->held, held, sizeof(held)));
        table_set(t, 5, COLOR_NONE, "%.1f", s->usage / 3600);
}

static void pool_rows(struct table *t, const void *row) {
        const struct pool *p = row;
        char text[64], user[64];

        if (table_row(t) < 0)
                return;
        table_set(t, 0, COLOR_BOLD, "%s%s", p->name ?: "", p->open ? "" : " (closed)");
        share_cells(t, &p->all);
        table_set(t, 6, COLOR_NONE, "%" PRIu32, p->weight);
        table_set(t, 7, COLOR_NONE, "%s", amount_text(&p->guarantee, text, sizeof(text)));
        table_set(t, 8, COLOR_NONE, "%s", amount_text(&p->limit, text, sizeof(text)));
        table_set(t, 9, COLOR_NONE, "%s", amount_text(&p->user_limit, text, sizeof(text)));
        table_set(t, 10, COLOR_NONE, "%s",
                  p->max_time == UINT64_MAX ? "-" : format_duration(p->max_time, text, sizeof(text)));
        for (size_t i = 0; i < p->n_users && table_row(t) >= 0; i++) {
                table_set(t, 1, COLOR_NONE, "%s", user_name(p->users[i].user, user, sizeof(user)));
                share_cells(t, p->users + i);
        }
}

static int pools_run(struct cli *c, void *options, char **args, size_t n) {
        static const struct table_column columns[] = {
                { "POOL" },
                { "USER" },
                { "RUNNING", .right = true },
                { "WAITING", .right = true },
                { "HELD", .right = true },
                { "USED", .right = true },
                { "WEIGHT", .right = true },
                { "GUARANTEE", .right = true },
                { "LIMIT", .right = true },
                { "USER LIMIT", .right = true },
                { "MAX TIME", .right = true },
        };
        static const struct listing listing = { "ListPools", columns,           ELEMENTSOF(columns),
                                                next_pool,   pool_json,         pool_rows,
                                                pool_done,   "There is no pool" };
        struct pool p;

        (void)options;
        (void)args;
        (void)n;
        return list(c, &listing, &p);
}

const struct command pools_command = {
        .name = "pools",
        .arguments = "",
        .help = "Show the pools: shares, limits, who uses them",
        .details = "USED is what counts for the fair share: hours of the whole cluster, older ones less.",
        .run = pools_run,
};
