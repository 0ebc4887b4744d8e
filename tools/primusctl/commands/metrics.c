/* SPDX-License-Identifier: Apache-2.0 */
/* primusctl metrics: what trainers have said of their training. */
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/format.h"
#include "lib/base/try.h"
#include "lib/json/get.h"
#include "tools/primusctl/bus/ask.h"
#include "tools/primusctl/bus/targets.h"
#include "tools/primusctl/cli/commands.h"
#include "tools/primusctl/commands/metrics-events.h"
#include "tools/primusctl/view/table.h"

#define POINTS_MOST 1024u

struct metrics_options {
        const char *name, *role, *tensorboard;
        uint32_t points;
        bool csv;
};

/* ---- asking ---- */

static int ask_metrics(struct cli *c, const struct job_ref *job, json_t **ret) {
        _cleanup_(sd_bus_message_unref_p) sd_bus_message *m = NULL;
        int r = cli_job_call(c, job, "ListMetrics", &m);

        r = r ? r : ask_list(c, m, job, &json_metric, ret);
        return r || json_array_size(*ret) > 0 ? r : ask_no_array(c, job);
}

/* Which points are asked for. */
struct wanted {
        const char *name; /* NULL: every name */
        char *role;       /* NULL: every role */
        uint32_t index, points;
        bool has_index;
};

static int append_options(sd_bus_message *m, const struct wanted *w, uint32_t from) {
        TRY(sd_bus_message_open_container(m, 'a', "{sv}"));
        TRY(sd_bus_message_append(m, "{sv}{sv}", "from", "u", from, "points", "u", w->points));
        if (w->role)
                TRY(sd_bus_message_append(m, "{sv}", "role", "s", w->role));
        if (w->has_index)
                TRY(sd_bus_message_append(m, "{sv}", "index", "u", w->index));
        return sd_bus_message_close_container(m);
}

/* All series of that name; each has "name" and "job" besides. */
static int ask_series(struct cli *c, const struct job_ref *job, const char *name, const struct wanted *w,
                      json_t *all) {
        uint32_t from = 0, total = 1;

        while (from < total) {
                _cleanup_(sd_bus_message_unref_p) sd_bus_message *m = NULL, *reply = NULL;
                _cleanup_(json_decref_p) json_t *some = NULL;
                json_t *s;
                size_t i;
                int r = cli_job_call(c, job, "ReadMetrics", &m);

                if (!r && (sd_bus_message_append(m, "s", name) < 0 || append_options(m, w, from) < 0))
                        r = cli_oom(c);
                if (!r)
                        r = cli_call(c, m, job, &reply);
                if (r)
                        return r;
                r = json_read_list(reply, &json_metric_series, false, &some);
                if (r < 0 || (r = sd_bus_message_read(reply, "u", &total)) < 0)
                        return cli_bad_reply(c, r);
                json_array_foreach (some, i, s)
                        if (json_object_set_new(s, "job", json_integer(job->number)) < 0 ||
                            json_object_set_new(s, "name", json_string(name)) < 0 ||
                            json_array_append(all, s) < 0)
                                return cli_oom(c);
                if (json_array_size(some) == 0)
                        break;
                from += (uint32_t)json_array_size(some);
        }
        return 0;
}

/* Series of the name, or of all names. */
static int ask_all_series(struct cli *c, const struct job_ref *job, const struct wanted *w, json_t *all) {
        _cleanup_(json_decref_p) json_t *metrics = NULL, *done = json_object();
        const json_t *x;
        size_t i;
        int r = 0;

        if (w->name)
                return ask_series(c, job, w->name, w, all);
        if (!done)
                return cli_oom(c);
        r = ask_metrics(c, job, &metrics);
        json_array_foreach (metrics, i, x) {
                const char *name = json_get_text(x, "name");

                if (r || json_object_get(done, name))
                        continue; /* several roles have it */
                r = json_object_set_new(done, name, json_true()) < 0 ? cli_oom(c)
                                                                     : ask_series(c, job, name, w, all);
        }
        return r;
}

/* ---- showing ---- */

static void set_number(struct table *t, size_t column, const json_t *v) {
        if (json_is_number(v))
                table_set(t, column, COLOR_NONE, "%.6g", json_number_value(v));
        else
                table_set(t, column, COLOR_DIM, "-");
}

static const struct table_column metric_columns[] = {
        { "JOB", .right = true },     { "ROLE" },
        { "NAME", .fills = true },    { "SERIES", .right = true },
        { "STEP", .right = true },    { "LAST", .right = true },
        { "MIN", .right = true },     { "MAX", .right = true },
        { "REPORTS", .right = true }, { "SAID", .right = true },
};

static void put_metrics(struct table *t, uint32_t job, const json_t *metrics) {
        const json_t *x;
        size_t i;

        json_array_foreach (metrics, i, x)
                if (table_row(t) >= 0) {
                        table_set(t, 0, COLOR_NONE, "%" PRIu32, job);
                        table_set(t, 1, COLOR_NONE, "%s", json_get_text(x, "role"));
                        table_set(t, 2, COLOR_BOLD, "%s", json_get_text(x, "name"));
                        table_set(t, 3, COLOR_NONE, "%" PRIu64, json_get_number(x, "series"));
                        table_set(t, 4, COLOR_NONE, "%" PRIu64, json_get_number(x, "step"));
                        set_number(t, 5, json_object_get(x, "last"));
                        set_number(t, 6, json_object_get(x, "min"));
                        set_number(t, 7, json_object_get(x, "max"));
                        table_set(t, 8, COLOR_NONE, "%" PRIu64, json_get_number(x, "reports"));
                        table_set_age(t, 9, json_get_number(x, "at"));
                }
}

static const struct table_column series_columns[] = {
        { "JOB", .right = true },  { "EXECUTOR" },
        { "NAME", .fills = true }, { "STEP", .right = true },
        { "LAST", .right = true }, { "MIN", .right = true },
        { "MAX", .right = true },
};

/* The lowest (or highest) of a list; NULL: none of them is a number. */
static const json_t *extreme_of(const json_t *list, bool lowest) {
        const json_t *found = NULL, *v;
        size_t i;

        json_array_foreach (list, i, v)
                if (json_is_number(v) &&
                    (!found || (lowest ? json_number_value(v) < json_number_value(found)
                                       : json_number_value(v) > json_number_value(found))))
                        found = v;
        return found;
}

static const json_t *latest_of(const json_t *s, const char *key) {
        const json_t *list = json_object_get(s, key);

        return json_array_get(list, json_array_size(list) - 1);
}

static void put_series(struct table *t, const json_t *s) {
        table_set(t, 0, COLOR_NONE, "%" PRIu64, json_get_number(s, "job"));
        if (json_get_number(s, "local") > 0)
                table_set(t, 1, COLOR_NONE, "%s/%" PRIu64 ".%" PRIu64, json_get_text(s, "role"),
                          json_get_number(s, "index"), json_get_number(s, "local"));
        else
                table_set(t, 1, COLOR_NONE, "%s/%" PRIu64, json_get_text(s, "role"),
                          json_get_number(s, "index"));
        table_set(t, 2, COLOR_BOLD, "%s", json_get_text(s, "name"));
        table_set(t, 3, COLOR_NONE, "%" JSON_INTEGER_FORMAT, json_integer_value(latest_of(s, "step")));
        set_number(t, 4, latest_of(s, "last"));
        set_number(t, 5, extreme_of(json_object_get(s, "min"), true));
        set_number(t, 6, extreme_of(json_object_get(s, "max"), false));
}

/* The shortest that is the same number. */
static void print_number(const json_t *v) {
        char text[40] = "";

        if (json_is_number(v))
                for (int digits = 15; digits <= 17; digits++) {
                        snprintf(text, sizeof(text), "%.*g", digits, json_number_value(v));
                        if (strtod(text, NULL) == json_number_value(v))
                                break;
                }
        printf(",%s", text);
}

static int print_csv(const json_t *all) {
        static const char *const numbers[] = { "last", "min", "max", "mean" };
        const json_t *s;
        size_t i;

        puts("job,role,index,local,name,step,time,reports,last,min,max,mean");
        json_array_foreach (all, i, s)
                for (size_t k = 0; k < json_array_size(json_object_get(s, "step")); k++) {
                        char time[FORMAT_TIME_MAX];

                        printf("%" PRIu64 ",%s,%" PRIu64 ",%" PRIu64 ",%s,%" JSON_INTEGER_FORMAT
                               ",%s,%" JSON_INTEGER_FORMAT,
                               json_get_number(s, "job"), json_get_text(s, "role"),
                               json_get_number(s, "index"), json_get_number(s, "local"),
                               json_get_text(s, "name"),
                               json_integer_value(json_array_get(json_object_get(s, "step"), k)),
                               format_time((uint64_t)json_integer_value(
                                                   json_array_get(json_object_get(s, "at"), k)),
                                           time, sizeof(time)),
                               json_integer_value(json_array_get(json_object_get(s, "reports"), k)));
                        for (size_t n = 0; n < ELEMENTSOF(numbers); n++)
                                print_number(json_array_get(json_object_get(s, numbers[n]), k));
                        putchar('\n');
                }
        return CLI_OK;
}

static int print_series(struct cli *c, json_t *all) {
        _cleanup_(table_free_p) struct table *t = NULL;
        const json_t *s;
        size_t i;
        int r = table_new(c, series_columns, ELEMENTSOF(series_columns), &t);

        if (r)
                return r;
        json_array_foreach (all, i, s)
                if (json_array_size(json_object_get(s, "step")) > 0 && table_row(t) >= 0)
                        put_series(t, s);
        return table_print_or(c, t, "No trainer has reported that");
}

/* What there is, of each job. */
static int list_metrics(struct cli *c, const struct job_ref *jobs, size_t n) {
        _cleanup_(json_decref_p) json_t *all = json_array();
        _cleanup_(table_free_p) struct table *t = NULL;
        int r = all ? table_new(c, metric_columns, ELEMENTSOF(metric_columns), &t) : cli_oom(c);

        for (size_t i = 0; i < n && !r; i++) {
                _cleanup_(json_decref_p) json_t *metrics = NULL;
                json_t *x;
                size_t k;

                r = ask_metrics(c, jobs + i, &metrics);
                json_array_foreach (metrics, k, x)
                        if (!r && (json_object_set_new(x, "job", json_integer(jobs[i].number)) < 0 ||
                                   json_array_append(all, x) < 0))
                                r = cli_oom(c);
                if (!r)
                        put_metrics(t, jobs[i].number, metrics);
        }
        if (r)
                return r;
        return c->json ? cli_print_json(c, TAKE_PTR(all))
                       : table_print_or(
                                 c, t, "No trainer has reported anything; see TRAINING METRICS in primus(3)");
}

/* Every point that is kept, of each job. */
static int show_points(struct cli *c, const struct metrics_options *o, const struct job_ref *jobs, size_t n) {
        size_t files;
        struct wanted w = { .name = o->name, .points = o->points ?: POINTS_MOST };
        _cleanup_(json_decref_p) json_t *all = json_array();
        _cleanup_free_ char *role = NULL;
        int r = all ? 0 : cli_oom(c);

        if (!r && o->role)
                r = role_parse(c, o->role, &role, &w.index, &w.has_index);
        w.role = role;
        for (size_t i = 0; i < n && !r; i++)
                r = ask_all_series(c, jobs + i, &w, all);
        if (r)
                return r;
        if (o->tensorboard) {
                r = metrics_write_events(c, o->tensorboard, all, &files);
                if (!r)
                        printf("%s: %zu event file%s\n", o->tensorboard, files, files == 1 ? "" : "s");
                return r;
        }
        return o->csv ? print_csv(all) : c->json ? cli_print_json(c, TAKE_PTR(all)) : print_series(c, all);
}

int metrics_export(struct cli *c, char *const *jobs, size_t n, const char *directory) {
        const struct wanted w = { .points = POINTS_MOST };
        _cleanup_(json_decref_p) json_t *all = json_array();
        size_t files = 0;
        int r = all ? 0 : cli_oom(c);

        for (size_t i = 0; i < n && !r; i++) {
                struct job_ref job;

                r = cli_job(c, jobs[i], &job);
                r = r ? r : ask_all_series(c, &job, &w, all);
        }
        r = r ? r : metrics_write_events(c, directory, all, &files);
        if (!r && files == 0)
                r = cli_fail(
                        c,
                        n == 1 ? "the job has reported nothing; see TRAINING METRICS in primus(3)"
                               : "none of the jobs has reported anything; see TRAINING METRICS in primus(3)");
        return r;
}

static int metrics_run(struct cli *c, void *options, char **args, size_t n) {
        const struct metrics_options *o = options;
        size_t n_jobs = MAX(n, (size_t)1);
        _cleanup_free_ struct job_ref *jobs = calloc(n_jobs, sizeof(*jobs));
        bool all_points = o->name || o->csv || o->tensorboard;
        int r = jobs ? 0 : cli_oom(c);

        if (!r && o->csv && c->json)
                r = cli_usage(c, "--csv or --json, not both");
        if (!r && o->tensorboard && (o->csv || c->json))
                r = cli_usage(c, "--tensorboard or --csv or --json, one of them");
        if (!r && o->points > POINTS_MOST)
                r = cli_usage(c, "--points: at most %u", POINTS_MOST);
        if (!r && (o->points > 0 || o->role) && !all_points)
                r = cli_usage(c, "--points and --role are for the points of --name, or of all with --csv");
        for (size_t i = 0; i < n_jobs && !r; i++)
                r = cli_job(c, n > 0 ? args[i] : NULL, jobs + i);
        if (r)
                return r;
        return all_points ? show_points(c, o, jobs, n_jobs) : list_metrics(c, jobs, n_jobs);
}

static const struct cli_option metrics_options[] = {
        { "name", 0, "NAME", option_string, offsetof(struct metrics_options, name),
          "the series of that name, one for each process that has reported it" },
        { "role", 0, "ROLE[/INDEX]", option_string, offsetof(struct metrics_options, role),
          "of these executors alone" },
        { "points", 0, "N", option_count, offsetof(struct metrics_options, points),
          "at most so many points of a series (1024); neighbours are joined" },
        { "tensorboard", 0, "DIR", option_string, offsetof(struct metrics_options, tensorboard),
          "write event files below DIR, which TensorBoard reads" },
        { "csv", 0, NULL, NULL, offsetof(struct metrics_options, csv), "print all points as CSV" },
        { 0 },
};

const struct command metrics_command = {
        .name = "metrics",
        .arguments = "[JOB...]",
        .help = "What trainers have reported of their training: losses, rates",
        .details =
                "A trainer reports with primus.metrics (Python) or primus_report() (C), see primus(3). Without --name,\n"
                "what there is of each job; several jobs or elements (418[7]) are shown beside each other. With --csv,\n"
                "or --json and --name, every point that is kept.",
        .options = metrics_options,
        .options_size = sizeof(struct metrics_options),
        .max = SIZE_MAX,
        .run = metrics_run,
};
