/* SPDX-License-Identifier: Apache-2.0 */
/* primusctl list. */
#include <inttypes.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/element.h"
#include "lib/base/format.h"
#include "lib/base/parse.h"
#include "lib/base/when.h"
#include "lib/json/get.h"
#include "tools/primusctl/bus/ask.h"
#include "tools/primusctl/cli/commands.h"
#include "tools/primusctl/view/table.h"
#include "tools/primusctl/view/users.h"

struct list_options {
        bool all, mine, elements, tree;
        const char *state, *user, *since, *name, *array;
        uint32_t limit;
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

static int ask(struct cli *c, const struct list_options *o, json_t **ret) {
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
        return r < 0 ? cli_oom(c) : ask_list(c, m, NULL, &json_job_row, ret);
}

static const char *say_empty(const struct list_options *o) {
        if (o->mine || o->user || o->name || o->since || o->state || o->array)
                return o->all ? "There is no such job"
                              : "No such job waits or runs; -a shows those that have ended, too";
        return o->all ? "There is no job" : "No job waits or runs; -a shows those that have ended, too";
}

#define DEPTH_MAX 16u /* that is shown */

static void show_row(struct table *t, const json_t *row, unsigned depth, uint64_t now) {
        uint64_t started = json_get_number(row, "started"), ended = json_get_number(row, "ended");
        uint64_t begin = started ? started : json_get_number(row, "submitted");
        const char *state = json_get_text(row, "state"), *text = json_get_text(row, "reason");
        _cleanup_free_ char *reason = users_named(text, user_lookup_here);
        char time[FORMAT_DURATION_MAX], index[ELEMENT_TEXT_MAX];

        if (json_object_get(row, "array"))
                table_set(t, 0, COLOR_BOLD, "%" PRIu64 "[%s]", json_get_number(row, "array"),
                          json_object_get(row, "index")
                                  ? element_text((uint32_t)json_get_number(row, "index"), index)
                                  : ELEMENT_SEARCHER_NAME);
        else
                table_set(t, 0, COLOR_BOLD, "%" PRIu64 "%s", json_get_number(row, "job"),
                          json_object_get(row, "elements") ? "[]" : "");
        table_set(t, 1, COLOR_NONE, "%*s%s%s", depth > 0 ? 2 * (int)(depth - 1) : 0, "",
                  depth > 0 ? "+ " : "", json_get_text(row, "name"));
        table_set(t, 2, COLOR_NONE, "%s", json_get_text(row, "user"));
        table_set(t, 3, color_of_state(state), "%s", state);
        table_set(t, 4, COLOR_NONE, "%s",
                  begin ? format_duration(usec_sub(ended ? ended : now, begin) / USEC_PER_SEC * USEC_PER_SEC,
                                          time, sizeof(time))
                        : "-");
        table_set(t, 5, COLOR_NONE, "%" PRIu64 "/%" PRIu64, json_get_number(row, "running"),
                  json_get_number(row, "wanted"));
        table_set(t, 6, COLOR_NONE, "%s", reason ? reason : text);
}

/* ---- the tree ---- */

struct branch {
        uint64_t parent; /* 0: of none that is listed */
        size_t row;
};

static int by_parent(const void *a, const void *b) {
        const struct branch *x = a, *y = b;

        if (x->parent != y->parent)
                return x->parent < y->parent ? -1 : 1;
        return x->row < y->row ? -1 : 1;
}

struct tree {
        const json_t *rows;
        struct branch *branches; /* by parent, then as they are listed */
        size_t n;
        struct table *table;
        uint64_t now;
};

/* The first that has this parent, or would stand there. */
static size_t first_of(const struct tree *t, uint64_t parent) {
        size_t low = 0, high = t->n;

        while (low < high) {
                size_t middle = low + (high - low) / 2;

                if (t->branches[middle].parent < parent)
                        low = middle + 1;
                else
                        high = middle;
        }
        return low;
}

/* A job's parent is an earlier one, so this comes to an end. */
static void show_branch(const struct tree *t, uint64_t parent, unsigned depth) {
        for (size_t i = first_of(t, parent); i < t->n && t->branches[i].parent == parent; i++) {
                const json_t *row = json_array_get(t->rows, t->branches[i].row);

                if (table_row(t->table) >= 0)
                        show_row(t->table, row, MIN(depth, DEPTH_MAX), t->now);
                show_branch(t, json_get_number(row, "job"), depth + 1);
        }
}

static int by_number(const void *a, const void *b) {
        const uint64_t *x = a, *y = b;

        return (*x > *y) - (*x < *y);
}

static int show_tree(const struct cli *c, const json_t *rows, struct table *table, uint64_t now) {
        struct tree t = { .rows = rows, .n = json_array_size(rows), .table = table, .now = now };
        _cleanup_free_ struct branch *branches = calloc(t.n + 1, sizeof(*branches));
        _cleanup_free_ uint64_t *numbers = calloc(t.n + 1, sizeof(*numbers));
        const json_t *row;
        size_t i;

        if (!branches || !numbers)
                return cli_oom(c);
        t.branches = branches;
        json_array_foreach (rows, i, row)
                numbers[i] = json_get_number(row, "job");
        qsort(numbers, t.n, sizeof(*numbers), by_number);
        json_array_foreach (rows, i, row) {
                uint64_t parent = json_get_number(row, "parent");
                bool listed = parent < json_get_number(row, "job") &&
                              bsearch(&parent, numbers, t.n, sizeof(*numbers), by_number);

                branches[i] = (struct branch){ listed ? parent : 0, i };
        }
        qsort(branches, t.n, sizeof(*branches), by_parent);
        show_branch(&t, 0, 0);
        return 0;
}

static int print_table(const struct cli *c, const json_t *rows, const struct list_options *o) {
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
        uint64_t now = now_real();
        const json_t *row;
        size_t i;
        int r = table_new(c, columns, ELEMENTSOF(columns), &t);

        if (r)
                return r;
        if (o->tree)
                r = show_tree(c, rows, t, now);
        else
                json_array_foreach (rows, i, row)
                        if (table_row(t) >= 0)
                                show_row(t, row, 0, now);
        return r ? r : table_print_or(c, t, say_empty(o));
}

static int list_run(struct cli *c, void *options, char **args, size_t n) {
        _cleanup_(json_decref_p) json_t *rows = NULL;
        int r = ask(c, options, &rows);

        (void)args;
        (void)n;
        if (r)
                return r;
        return c->json ? cli_print_json(c, TAKE_PTR(rows)) : print_table(c, rows, options);
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
        { "tree", 0, NULL, NULL, offsetof(struct list_options, tree),
          "jobs that were submitted from inside of others below these" },
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
