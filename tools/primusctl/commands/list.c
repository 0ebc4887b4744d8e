/* SPDX-License-Identifier: Apache-2.0 */
/* primusctl list. */
#include <inttypes.h>
#include <jansson.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/parse.h"
#include "lib/base/when.h"
#include "tools/primusctl/bus/fields.h"
#include "tools/primusctl/cli/commands.h"
#include "tools/primusctl/view/table.h"
#include "tools/primusctl/view/users.h"

struct list_options {
        bool all, mine, elements;
        const char *state, *user, *since, *name, *array;
        uint32_t limit;
};

struct row {
        uint32_t number, uid, running, wanted;
        uint32_t array, index, elements;   /* it is an element of; it is an array of so many */
        const char *name, *state, *reason; /* in the message */
        char *pool, *visible;              /* NULL: not in the master's memory any more */
        int32_t priority;
        uint64_t submitted, started, ended;
};

static int find_user(const struct cli *c, const char *text, uint32_t *ret) {
        struct passwd *pw = getpwnam(text);

        if (pw)
                *ret = pw->pw_uid;
        else if (parse_u32(text, 0, UINT32_MAX - 1, ret) < 0)
                return cli_usage(c, "--user: there is no user %s here", text);
        return 0;
}

/* "2d" is a time ago. */
static int find_since(const struct cli *c, const char *text, uint64_t *ret) {
        uint64_t now = now_real(), ago;

        if (when_parse(text, now, ret) >= 0 && *ret <= now)
                return 0;
        if (parse_duration(text, &ago) < 0)
                return cli_usage(c, "--since: expected a time such as 2d or 2026-01-31, not '%s'", text);
        *ret = usec_sub(now, ago);
        return 0;
}

static int ask(struct cli *c, const struct list_options *o, sd_bus_message **ret) {
        _cleanup_(sd_bus_message_unref_p) sd_bus_message *m = NULL;
        uint32_t uid = (uint32_t)getuid(), array = 0;
        uint64_t since = 0;
        int r = cli_manager_call(c, "ListJobs", &m);

        if (!r && o->user)
                r = find_user(c, o->user, &uid);
        if (!r && o->since)
                r = find_since(c, o->since, &since);
        if (!r && o->array && !job_number_parse(o->array, &array))
                r = cli_usage(c, "--array: not a job's number: %s", o->array);
        if (r)
                return r;
        r = sd_bus_message_open_container(m, 'a', "{sv}");
        if (r >= 0 && o->all)
                r = sd_bus_message_append(m, "{sv}", "all", "b", true);
        if (r >= 0 && (o->mine || o->user))
                r = sd_bus_message_append(m, "{sv}", "uid", "u", uid);
        if (r >= 0 && o->elements)
                r = sd_bus_message_append(m, "{sv}", "elements", "b", true);
        if (r >= 0 && array)
                r = sd_bus_message_append(m, "{sv}", "array", "u", array);
        if (r >= 0 && since)
                r = sd_bus_message_append(m, "{sv}", "since", "t", since);
        if (r >= 0 && o->name)
                r = sd_bus_message_append(m, "{sv}", "name", "s", o->name);
        if (r >= 0 && o->state)
                r = sd_bus_message_append(m, "{sv}", "state", "s", o->state);
        if (r >= 0 && o->limit)
                r = sd_bus_message_append(m, "{sv}", "limit", "u", o->limit);
        if (r >= 0)
                r = sd_bus_message_close_container(m);
        return r < 0 ? cli_oom(c) : cli_call(c, m, NULL, ret);
}

static void row_done(struct row *row) {
        free(row->pool);
        free(row->visible);
        row->pool = row->visible = NULL;
}

static int read_more(sd_bus_message *m, struct row *row) {
        const struct field fields[] = {
                { "array", "u", offsetof(struct row, array) },
                { "index", "u", offsetof(struct row, index) },
                { "elements", "u", offsetof(struct row, elements) },
                { "pool", "s", offsetof(struct row, pool) },
                { "visible", "s", offsetof(struct row, visible) },
                { "priority", "i", offsetof(struct row, priority) },
        };

        row->array = row->index = row->elements = 0;
        row->priority = 0;
        row_done(row);
        return read_fields(m, fields, ELEMENTSOF(fields), row);
}

/* 1: a row, 0: no more. */
static int next_row(sd_bus_message *m, struct row *row) {
        int r = sd_bus_message_enter_container(m, 'r', "ussutttuusa{sv}");

        if (r <= 0)
                return r;
        r = sd_bus_message_read(m, "ussutttuus", &row->number, &row->name, &row->state, &row->uid,
                                &row->submitted, &row->started, &row->ended, &row->running, &row->wanted,
                                &row->reason);
        if (r >= 0)
                r = read_more(m, row);
        if (r >= 0)
                r = sd_bus_message_exit_container(m);
        return r < 0 ? r : 1;
}

/* The caller's own or anybody's name; few distinct uids, so the last one is kept. */
static const char *user_name(uint32_t uid, char *buf, size_t size) {
        struct passwd *pw = getpwuid(uid);

        if (pw)
                snprintf(buf, size, "%s", pw->pw_name);
        else
                snprintf(buf, size, "%" PRIu32, uid);
        return buf;
}

/* As status says it of what has not been yet. */
static json_t *time_json(uint64_t t) {
        return t ? json_integer((json_int_t)t) : json_null();
}

static json_t *text_json(const char *text) {
        return text ? json_string(text) : json_null();
}

static json_t *row_json(const struct row *row) {
        char user[64];
        json_t *o =
                json_pack("{s:I, s:s, s:s, s:I, s:o, s:o, s:o, s:I, s:I, s:s}", "job",
                          (json_int_t)row->number, "name", row->name, "state", row->state, "owner",
                          (json_int_t)row->uid, "submitted", time_json(row->submitted), "started",
                          time_json(row->started), "ended", time_json(row->ended), "running",
                          (json_int_t)row->running, "wanted", (json_int_t)row->wanted, "reason", row->reason);

        if (o) {
                (void)json_object_set_new(o, "user", json_string(user_name(row->uid, user, sizeof(user))));
                (void)json_object_set_new(o, "pool", text_json(row->pool));
                (void)json_object_set_new(o, "priority",
                                          row->pool ? json_integer(row->priority) : json_null());
                (void)json_object_set_new(o, "visible", text_json(row->visible));
        }
        if (o && row->array) {
                (void)json_object_set_new(o, "array", json_integer(row->array));
                (void)json_object_set_new(o, "index", json_integer(row->index));
        }
        if (o && row->elements)
                (void)json_object_set_new(o, "elements", json_integer(row->elements));
        return o;
}

static int print_json(const struct cli *c, sd_bus_message *m) {
        json_t *array = json_array();
        _cleanup_(row_done) struct row row = {};
        int r;

        while ((r = next_row(m, &row)) > 0)
                (void)json_array_append_new(array, row_json(&row));
        if (r < 0) {
                json_decref(array);
                return cli_bad_reply(c, r);
        }
        return cli_print_json(c, array);
}

static const char *say_empty(const struct list_options *o) {
        if (o->mine || o->user || o->name || o->since || o->state || o->array)
                return o->all ? "There is no such job"
                              : "No such job waits or runs; -a shows those that have ended, too";
        return o->all ? "There is no job" : "No job waits or runs; -a shows those that have ended, too";
}

static int print_table(const struct cli *c, sd_bus_message *m, const struct list_options *o) {
        static const struct table_column columns[] = {
                { "JOB", .right = true },
                { "NAME", .fills = true },
                { "USER" },
                { "STATE" },
                { "TIME", .right = true },
                { "EXECUTORS", .right = true },
                { "REASON", .fills = true },
        };
        _cleanup_(table_free_p) struct table *t = NULL;
        char user[64] = "", time[FORMAT_DURATION_MAX];
        uint64_t now = now_real();
        uint32_t user_uid = UINT32_MAX;
        _cleanup_(row_done) struct row row = {};
        int r = table_new(c, columns, ELEMENTSOF(columns), &t);

        if (r)
                return r;
        while ((r = next_row(m, &row)) > 0 && table_row(t) >= 0) {
                uint64_t begin = row.started ? row.started : row.submitted;
                _cleanup_free_ char *reason = NULL;

                if (row.uid != user_uid)
                        user_name(user_uid = row.uid, user, sizeof(user));
                if (row.array)
                        table_set(t, 0, COLOR_BOLD, "%" PRIu32 "[%" PRIu32 "]", row.array, row.index);
                else
                        table_set(t, 0, COLOR_BOLD, "%" PRIu32 "%s", row.number, row.elements ? "[]" : "");
                table_set(t, 1, COLOR_NONE, "%s", row.name);
                table_set(t, 2, COLOR_NONE, "%s", user);
                table_set(t, 3, color_of_state(row.state), "%s", row.state);
                table_set(t, 4, COLOR_NONE, "%s",
                          begin ? format_duration(usec_sub(row.ended ? row.ended : now, begin) /
                                                          USEC_PER_SEC * USEC_PER_SEC,
                                                  time, sizeof(time))
                                : "-");
                table_set(t, 5, COLOR_NONE, "%" PRIu32 "/%" PRIu32, row.running, row.wanted);
                reason = users_named(row.reason, user_lookup_here);
                table_set(t, 6, COLOR_NONE, "%s", reason ? reason : row.reason);
        }
        return r < 0 ? cli_bad_reply(c, r) : table_print_or(c, t, say_empty(o));
}

static int list_run(struct cli *c, void *options, char **args, size_t n) {
        _cleanup_(sd_bus_message_unref_p) sd_bus_message *reply = NULL;
        int r;

        (void)args;
        (void)n;
        r = ask(c, options, &reply);
        if (r)
                return r;
        r = sd_bus_message_enter_container(reply, 'a', "(ussutttuusa{sv})");
        if (r < 0)
                return cli_bad_reply(c, r);
        return c->json ? print_json(c, reply) : print_table(c, reply, options);
}

static const struct cli_option list_options[] = {
        { "all", 'a', NULL, NULL, offsetof(struct list_options, all), "also jobs that have ended" },
        { "mine", 0, NULL, NULL, offsetof(struct list_options, mine), "the caller's own only" },
        { "user", 'u', "USER", option_string, offsetof(struct list_options, user), "only that user's" },
        { "name", 0, "TEXT", option_string, offsetof(struct list_options, name),
          "only jobs with this in their names" },
        { "since", 0, "TIME", option_string, offsetof(struct list_options, since),
          "only jobs submitted since: 2d (ago), 08:00, 2026-01-31" },
        { "elements", 0, NULL, NULL, offsetof(struct list_options, elements),
          "also every element of arrays, which else are a line each" },
        { "array", 0, "JOB", option_string, offsetof(struct list_options, array),
          "the elements of this array only" },
        { "state", 0, "STATE", option_string, offsetof(struct list_options, state),
          "only jobs in this state, such as QUEUED" },
        { "limit", 0, "N", option_count, offsetof(struct list_options, limit), "the newest N (1000)" },
        { 0 },
};

const struct command list_command = {
        .name = "list",
        .arguments = "[OPTIONS]",
        .help = "List jobs, newest first",
        .options = list_options,
        .options_size = sizeof(struct list_options),
        .run = list_run,
};
