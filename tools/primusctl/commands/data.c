/* SPDX-License-Identifier: Apache-2.0 */
/* primusctl data: the tasks of a job that are not done, its sources, and what a person may do with them. */
#include <inttypes.h>
#include <string.h>

#include "lib/base/format.h"
#include "lib/base/parse.h"
#include "lib/json/get.h"
#include "lib/wire/input.h"
#include "lib/wire/tasks.h"
#include "tools/primusctl/bus/ask.h"
#include "tools/primusctl/cli/commands.h"
#include "tools/primusctl/view/table.h"

#define PAGE 1000u
#define LIMIT_DEFAULT 1000u
#define LIMIT_NONE UINT64_MAX

struct data_options {
        bool failed;
        const char *state, *version;
        uint64_t limit; /* 0: not given */
};

/* ---- names of tasks: 17, or s17 for one that was split off from a slow one ---- */

static bool task_parse(const char *text, uint64_t *ret) {
        bool split = text[0] == 's';
        uint64_t number;

        if (parse_u64(text + split, 1, TASK_SPLIT_OFF - 1, &number) < 0)
                return false;
        *ret = number | (split ? TASK_SPLIT_OFF : 0);
        return true;
}

/* ---- listing ---- */

/* Positions of files are bytes, those of a partition (TOPIC/PARTITION) messages. */
static bool counts_messages(const char *path) {
        return *path && *path != '/' && !strstr(path, "://");
}

/* "": at the end, wherever that is. */
static const char *position(const json_t *at, bool messages, char *buf, size_t size) {
        if (json_is_null(at))
                return "";
        if (!messages)
                return format_size((uint64_t)json_integer_value(at), buf, size);
        snprintf(buf, size, "%" PRIu64, (uint64_t)json_integer_value(at));
        return buf;
}

/* Errors begin with the path, which stands in its own column. */
static const char *without_path(const char *error, const char *path) {
        size_t n = strlen(path);

        return n > 0 && strncmp(error, path, n) == 0 && strncmp(error + n, ": ", 2) == 0 ? error + n + 2
                                                                                         : error;
}

static void show_row(struct table *t, const json_t *row) {
        const char *path = json_get_text(row, "path"), *state = json_get_text(row, "state"),
                   *holder = json_get_text(row, "holder");
        const json_t *start = json_object_get(row, "start"), *end = json_object_get(row, "end"),
                     *acked = json_object_get(row, "acked");
        uint64_t from = json_get_number(row, "start"), to = json_get_number(row, "end"),
                 at = json_get_number(row, "acked"), records = json_get_number(row, "records"),
                 failures = json_get_number(row, "failures");
        bool messages = counts_messages(path);
        char a[32], b[32];

        table_set(t, 0, COLOR_BOLD, "%s", json_get_text(row, "task"));
        table_set(t, 1, strcmp(state, "FAILED") == 0 ? COLOR_RED : COLOR_NONE, "%s", state);
        table_set(t, 2, COLOR_NONE, "%s", json_get_text(row, "source"));
        table_set(t, 3, COLOR_NONE, "%s", *path ? path : "-");
        table_set(t, 4, COLOR_NONE, "%s-%s", position(start, messages, a, sizeof(a)),
                  position(end, messages, b, sizeof(b)));
        if (to > from)
                table_set(t, 5, at > from ? COLOR_NONE : COLOR_DIM, "%.0f%%",
                          100.0 * (double)(MAX(at, from) - from) / (double)(to - from));
        else
                table_set(t, 5, COLOR_NONE, "%s", position(acked, messages, a, sizeof(a)));
        if (records > 0)
                table_set(t, 6, COLOR_NONE, "%" PRIu64, records);
        else
                table_set(t, 6, COLOR_DIM, "-");
        table_set(t, 7, failures ? COLOR_YELLOW : COLOR_DIM, "%" PRIu64, failures);
        table_set(t, 8, *holder ? COLOR_NONE : COLOR_DIM, "%s", *holder ? holder : "-");
        table_set(t, 9, COLOR_NONE, "%s", without_path(json_get_text(row, "error"), path));
}

static int ask_page(struct cli *c, const struct job_ref *job, const struct data_options *o, uint64_t after,
                    uint32_t limit, json_t **ret) {
        _cleanup_(sd_bus_message_unref_p) sd_bus_message *m = NULL;
        const char *state = o->failed ? "FAILED" : o->state;
        int r = cli_job_call(c, job, "ListTasks", &m);

        if (r)
                return r;
        r = sd_bus_message_append(m, "t", after);
        if (r >= 0)
                r = sd_bus_message_open_container(m, 'a', "{sv}");
        if (r >= 0)
                r = sd_bus_message_append(m, "{sv}", "limit", "u", limit);
        if (r >= 0 && state)
                r = sd_bus_message_append(m, "{sv}", "state", "s", state);
        if (r >= 0)
                r = sd_bus_message_close_container(m);
        if (r < 0)
                return cli_fail(c, "cannot make a call: %s", strerror(-r));
        return ask_list(c, m, job, &json_task, ret);
}

/* Rows of one page, into the table or the array. */
static void take_rows(struct table *t, json_t *array, const json_t *page, size_t n) {
        for (size_t i = 0; i < n; i++) {
                json_t *row = json_array_get(page, i);

                if (array)
                        (void)json_array_append(array, row);
                else if (table_row(t) >= 0)
                        show_row(t, row);
        }
}

/* All pages. One row more than is shown is asked for: whether there is one. */
static int collect(struct cli *c, const struct job_ref *job, const struct data_options *o, struct table *t,
                   json_t *array, bool *ret_any, bool *ret_more) {
        uint64_t left = o->limit ?: LIMIT_DEFAULT, after = 0;
        uint32_t limit;
        size_t n;

        do {
                _cleanup_(json_decref_p) json_t *page = NULL;
                size_t shown;
                int r;

                limit = (uint32_t)MIN(left, PAGE - 1u) + 1;
                r = ask_page(c, job, o, after, limit, &page);
                if (r)
                        return r;
                n = json_array_size(page);
                shown = (size_t)MIN((uint64_t)n, left);
                take_rows(t, array, page, shown);
                if (shown > 0)
                        (void)task_parse(json_get_text(json_array_get(page, shown - 1), "task"), &after);
                *ret_any |= n > 0;
                *ret_more = n > left;
                left -= shown;
        } while (n >= limit && !*ret_more);
        return 0;
}

static int list_tasks(struct cli *c, const struct data_options *o, const char *text) {
        static const struct table_column columns[] = {
                { "TASK", .right = true },
                { "STATE" },
                { "SOURCE" },
                { "FILE", .fills = true },
                { "RANGE", .right = true },
                { "DONE", .right = true },
                { "RECORDS", .right = true },
                { "FAILED", .right = true },
                { "HOLDER" },
                { "ERROR", .fills = true },
        };
        _cleanup_(table_free_p) struct table *t = NULL;
        json_t *array = c->json ? json_array() : NULL;
        struct job_ref job;
        bool any = false, more = false;
        int r = cli_job(c, text, &job);

        if (!r && !c->json)
                r = table_new(c, columns, ELEMENTSOF(columns), &t);
        if (!r)
                r = collect(c, &job, o, t, array, &any, &more);
        if (r) {
                json_decref(array);
                return r;
        }
        if (c->json)
                return cli_print_json(c, array);
        if (!any)
                printf(o->failed || o->state ? "Job %" PRIu32 " has no such task\n"
                                             : "Job %" PRIu32 " has no task that was begun or waits; "
                                               "'primusctl status %" PRIu32 "' shows its data\n",
                       job.number, job.number);
        else
                r = table_print(c, t);
        if (!r && more)
                printf("... and more: --limit=0 shows all\n");
        return r;
}

/* ---- retry and skip ---- */

static const struct verb {
        const char *name, *method, *one, *many;
} verbs[] = {
        { "retry", "RetryTask", "is tried again", "are tried again" },
        { "skip", "SkipTask", "counts as done", "count as done" },
};

static int change(struct cli *c, const struct job_ref *job, const char *method, uint64_t task,
                  uint64_t *ret_changed) {
        _cleanup_(sd_bus_message_unref_p) sd_bus_message *m = NULL, *reply = NULL;
        int r = cli_job_call(c, job, method, &m);

        if (!r && sd_bus_message_append(m, "t", task) < 0)
                r = cli_oom(c);
        if (!r)
                r = cli_call(c, m, job, &reply);
        if (!r && sd_bus_message_read(reply, "t", ret_changed) < 0)
                r = cli_bad_reply(c, -EBADMSG);
        return r;
}

static int change_all(struct cli *c, const struct verb *v, const struct job_ref *job) {
        uint64_t changed;
        int r = change(c, job, v->method, 0, &changed);

        if (r)
                return r;
        if (c->json)
                return cli_print_json(c, json_pack("{s:I}", "changed", (json_int_t)changed));
        if (changed == 0)
                printf("Job %" PRIu32 " has no failed task\n", job->number);
        else
                printf("%" PRIu64 " failed task%s %s\n", changed, changed == 1 ? "" : "s",
                       changed == 1 ? v->one : v->many);
        return 0;
}

static int change_tasks(struct cli *c, const struct verb *v, const struct data_options *o, char **args,
                        size_t n) {
        struct job_ref job;
        uint64_t task, changed, sum = 0;
        int r, worst = CLI_OK;

        if (n == 0 || (n == 1) != o->failed)
                return cli_usage(
                        c, "data %s: which job and tasks? JOB TASK..., or JOB --failed for all failed ones",
                        v->name);
        for (size_t i = 1; i < n; i++)
                if (!task_parse(args[i], &task))
                        return cli_usage(c, "not a task's number: %s", args[i]);
        r = cli_job(c, args[0], &job);
        if (r)
                return r;
        if (o->failed)
                return change_all(c, v, &job);
        for (size_t i = 1; i < n; i++) {
                if (!task_parse(args[i], &task))
                        continue; /* not after the check above */
                r = change(c, &job, v->method, task, &changed);
                if (r == CLI_UNREACHABLE)
                        return r;
                if (r)
                        worst = r;
                else if (!c->json)
                        printf("Task %s %s\n", args[i], v->one);
                sum += r ? 0 : changed;
        }
        if (c->json)
                r = cli_print_json(c, json_pack("{s:I}", "changed", (json_int_t)sum));
        return worst ?: c->json ? r : CLI_OK;
}

/* ---- sources ---- */

static const struct source_verb {
        const char *name, *state, *done; /* state NULL: a weight */
} source_verbs[] = {
        { "pause", "paused", "is paused: no more of it is given out" },
        { "resume", "running", "goes on" },
        { "end", "ended", "is ended: it brings no more than it has by now" },
        { "remove", "removed", "is removed: what nobody has begun of it is no part of the job any more" },
        { "weight", NULL, NULL },
};

static int steer_source(struct cli *c, const struct source_verb *v, const struct job_ref *job,
                        const char *source, uint32_t weight) {
        _cleanup_(sd_bus_message_unref_p) sd_bus_message *m = NULL, *reply = NULL;
        int r = cli_job_call(c, job, "SteerSource", &m);

        if (r)
                return r;
        r = v->state ? sd_bus_message_append(m, "sa{sv}", source, 1, "state", "s", v->state)
                     : sd_bus_message_append(m, "sa{sv}", source, 1, "weight", "u", weight);
        if (r < 0)
                return cli_oom(c);
        r = cli_call(c, m, job, &reply);
        if (r || c->json)
                return r;
        if (v->state)
                printf("Data source %s %s\n", source, v->done);
        else
                printf("Data source %s has weight %" PRIu32 "\n", source, weight);
        return 0;
}

static int steer_sources(struct cli *c, const struct source_verb *v, char **args, size_t n) {
        struct job_ref job;
        uint64_t weight = 0;
        int r, worst = CLI_OK;

        if (n < 2 || (!v->state && n != 3))
                return cli_usage(c,
                                 v->state ? "data %s: which job and sources? JOB SOURCE..."
                                          : "data %s: which job, source and weight? JOB SOURCE WEIGHT",
                                 v->name);
        if (!v->state && parse_u64(args[2], 1, INPUT_WEIGHT_MAX, &weight) < 0)
                return cli_usage(c, "data weight: a whole number from 1 to %u is expected, not '%s'",
                                 INPUT_WEIGHT_MAX, args[2]);
        r = cli_job(c, args[0], &job);
        if (r)
                return r;
        for (size_t i = 1; i < (v->state ? n : 2); i++) {
                r = steer_source(c, v, &job, args[i], (uint32_t)weight);
                if (r == CLI_UNREACHABLE)
                        return r;
                worst = r ?: worst;
        }
        return worst;
}

static int data_run(struct cli *c, void *options, char **args, size_t n) {
        static const char *const states[] = { "PENDING", "LEASED", "FAILED" };
        struct data_options *o = options;
        bool known = !o->state;

        if (n > 0 && strcmp(args[0], "add") == 0)
                return n != 3 || o->state || o->failed
                               ? cli_usage(c, "data add: which job, and where is the source? JOB FILE")
                               : change_add_source(c, args[1], args[2], o->version);
        if (n > 0 && strcmp(args[0], "replace") == 0)
                return n != 3 || o->state || o->failed
                               ? cli_usage(c, "data replace: which job, and where are the sources? JOB FILE")
                               : change_replace_sources(c, args[1], args[2], o->version);
        if (o->version)
                return cli_usage(c, "--if-version goes with data add and data replace alone");
        for (size_t i = 0; n > 0 && i < ELEMENTSOF(verbs); i++)
                if (strcmp(args[0], verbs[i].name) == 0)
                        return o->state ? cli_usage(c, "data %s takes no --state", args[0])
                                        : change_tasks(c, &verbs[i], o, args + 1, n - 1);
        for (size_t i = 0; n > 0 && i < ELEMENTSOF(source_verbs); i++)
                if (strcmp(args[0], source_verbs[i].name) == 0)
                        return o->state || o->failed
                                       ? cli_usage(c, "data %s takes no --state and no --failed", args[0])
                                       : steer_sources(c, &source_verbs[i], args + 1, n - 1);
        if (n > 1)
                return cli_usage(
                        c,
                        "there is no 'data %s'; there are retry, skip, add, replace, pause, resume, end, remove and weight",
                        args[0]);
        for (size_t i = 0; i < ELEMENTSOF(states); i++)
                known |= o->state && strcmp(o->state, states[i]) == 0;
        if (!known)
                return cli_usage(c, "--state: expected PENDING, LEASED or FAILED, not '%s'", o->state);
        if (o->state && o->failed)
                return cli_usage(c, "--failed is --state=FAILED");
        return list_tasks(c, o, n > 0 ? args[0] : NULL);
}

static int option_limit(const char *value, void *target, const char **ret_why) {
        uint64_t n;

        if (parse_u64(value, 0, LIMIT_NONE - 1, &n) < 0) {
                *ret_why = "a whole number, 0 for all";
                return -EINVAL;
        }
        *(uint64_t *)target = n ?: LIMIT_NONE;
        return 0;
}

static const struct cli_option data_options[] = {
        { "failed", 0, NULL, NULL, offsetof(struct data_options, failed), "failed tasks alone" },
        { "state", 0, "STATE", option_string, offsetof(struct data_options, state),
          "PENDING, LEASED or FAILED tasks alone" },
        { "limit", 0, "N", option_limit, offsetof(struct data_options, limit),
          "show so many at most (1000); 0: all" },
        { "if-version", 0, "N", option_string, offsetof(struct data_options, version),
          "add, replace: only if the job is at version N still (primusctl config shows it)" },
        { 0 },
};

const struct command data_command = {
        .name = "data",
        .arguments =
                "[--failed] [--state=STATE] [--limit=N] [JOB] | VERB JOB TASK...|--failed|SOURCE...|FILE",
        .help = "List the tasks of a job's data, try failed ones again, skip some, or steer its sources",
        .details =
                "Tasks that are done are not listed, nor those that nobody has come near yet: 'primusctl "
                "status' counts them.\n"
                "TASK is a number of the list; one with an 's' was split off from a slow one.\n"
                "VERB: retry or skip tasks; pause, resume, end or remove sources, weight JOB SOURCE N; add or replace JOB FILE.\n"
                "retry: a failed task is tried again from where it was acknowledged, with a new budget.\n"
                "skip: a task counts as done without being read (further).\n"
                "add: one more source; FILE has an entry of inputs or topics, as JSON; - reads standard input.\n"
                "replace: FILE has an array of all sources; those that are not in it are removed, new ones added.\n"
                "pause: no more of a source is given out, until resume; what executors have they finish.\n"
                "end: a source that follows the clock, or a topic, brings no more than it has by now.\n"
                "remove: what nobody has begun of a source is no part of the job any more.\n"
                "weight: the share of the turns that a source has, beside those of the others.",
        .options = data_options,
        .options_size = sizeof(struct data_options),
        .max = SIZE_MAX,
        .run = data_run,
};
