/* SPDX-License-Identifier: Apache-2.0 */
/* primusctl search: the trials of a search, and what one would be. */
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "lib/json/get.h"
#include "masterd/search/space.h"
#include "masterd/spec/spec.h"
#include "tools/primusctl/bus/ask.h"
#include "tools/primusctl/bus/source.h"
#include "tools/primusctl/commands/rerun.h"
#include "tools/primusctl/commands/submit.h"
#include "tools/primusctl/view/table.h"

#define PREVIEW_TRIALS 5u

struct search_options {
        uint32_t trials;
        struct option_list env, secrets;
};

/* "lr=0.1 net.width=3", objects in each other with their names joined. */
static void put_params(FILE *f, const char *prefix, const json_t *params) {
        const char *name;
        json_t *value;

        json_object_foreach ((json_t *)(uintptr_t)params, name, value) {
                _cleanup_free_ char *path = NULL, *text = NULL;

                if (asprintf(&path, "%s%s%s", prefix, *prefix ? "." : "", name) < 0)
                        path = NULL;
                if (json_is_object(value) && path && json_object_size(value) > 0) {
                        put_params(f, path, value);
                        continue;
                }
                if (!json_is_string(value))
                        text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(6));
                fprintf(f, "%s%s=%s", ftell(f) > 0 ? " " : "", path ?: name,
                        json_is_string(value) ? json_string_value(value) : text ?: "?");
        }
}

static char *params_text(const json_t *params) {
        char *text = NULL;
        size_t size;
        FILE *f = open_memstream(&text, &size);

        if (!f)
                return NULL;
        put_params(f, "", params);
        return fclose(f) == EOF ? NULL : text;
}

/* ---- show ---- */

static int ask_trials(struct cli *c, const struct job_ref *job, json_t **ret) {
        _cleanup_(json_decref_p) json_t *all = json_array();
        size_t n;

        do { /* 1000 at most in an answer */
                _cleanup_(sd_bus_message_unref_p) sd_bus_message *m = NULL;
                _cleanup_(json_decref_p) json_t *some = NULL;
                int r = cli_job_call(c, job, "ListTrials", &m);

                n = json_array_size(all);
                if (!r && sd_bus_message_append(m, "u", (uint32_t)n) < 0)
                        r = cli_oom(c);
                if (!r)
                        r = ask_list(c, m, job, &json_trial_row, &some);
                if (r)
                        return r;
                if (!all || json_array_extend(all, some) < 0)
                        return cli_oom(c);
        } while (json_array_size(all) > n);
        *ret = TAKE_PTR(all);
        return 0;
}

static const struct table_column rung_columns[] = {
        { "BRACKET", .right = true },  { "RUNG", .right = true }, { "UNITS", .right = true },
        { "EXPECTED", .right = true }, { "CAME", .right = true },
};

/* came: also how many came to each. Nothing of a method without rungs. */
static int show_rungs(struct cli *c, const json_t *rungs, bool came) {
        _cleanup_(table_free_p) struct table *t = NULL;
        const json_t *g;
        size_t i;
        int r;

        if (json_array_size(rungs) == 0)
                return 0;
        r = table_new(c, rung_columns, ELEMENTSOF(rung_columns) - !came, &t);
        if (r)
                return r;
        json_array_foreach (rungs, i, g)
                if (table_row(t) >= 0) {
                        table_set(t, 0, COLOR_NONE, "%" PRIu64, json_get_number(g, "bracket"));
                        table_set(t, 1, COLOR_NONE, "%" PRIu64, json_get_number(g, "rung"));
                        table_set(t, 2, COLOR_NONE, "%" PRIu64, json_get_number(g, "units"));
                        table_set(t, 3, came ? COLOR_DIM : COLOR_NONE, "%" PRIu64,
                                  json_get_number(g, "expected"));
                        if (came)
                                table_set(t, 4, COLOR_NONE, "%" PRIu64, json_get_number(g, "trials"));
                }
        r = table_print(c, t);
        putchar('\n');
        return r;
}

static bool smaller_first;

/* The best first; those without a result last. */
static int by_best(const void *a, const void *b) {
        const json_t *x = json_object_get(*(json_t *const *)a, "best"),
                     *y = json_object_get(*(json_t *const *)b, "best");
        double d = json_number_value(x) - json_number_value(y);

        if (!json_is_number(x) || !json_is_number(y))
                return json_is_number(y) - json_is_number(x);
        return d == 0 ? 0 : (d < 0) == smaller_first ? -1 : 1;
}

static void set_number(struct table *t, size_t column, const json_t *v) {
        if (json_is_number(v))
                table_set(t, column, COLOR_NONE, "%.6g", json_number_value(v));
}

static int show_trials(struct cli *c, const char *metric, json_t *trials) {
        const struct table_column columns[] = {
                { "TRIAL", .right = true }, { "JOB", .right = true },        { "STATE" },
                { "STEP", .right = true },  { metric, .right = true },       { "BEST", .right = true },
                { "AT", .right = true },    { "PARAMETERS", .fills = true },
        };
        _cleanup_(table_free_p) struct table *t = NULL;
        size_t n = json_array_size(trials);
        _cleanup_free_ json_t **sorted = calloc(n + 1, sizeof(json_t *));
        int r = sorted ? table_new(c, columns, ELEMENTSOF(columns), &t) : cli_oom(c);

        if (r)
                return r;
        for (size_t i = 0; i < n; i++)
                sorted[i] = json_array_get(trials, i);
        qsort(sorted, n, sizeof(*sorted), by_best);
        for (size_t i = 0; i < n && table_row(t) >= 0; i++) {
                const json_t *s = sorted[i];
                const char *state = json_get_text(s, "state");
                _cleanup_free_ char *params = params_text(json_object_get(s, "params"));

                table_set(t, 0, COLOR_BOLD, "%" PRIu64, json_get_number(s, "trial"));
                if (json_get_number(s, "job") > 0) /* its turn has come */
                        table_set(t, 1, COLOR_NONE, "%" PRIu64, json_get_number(s, "job"));
                table_set(t, 2, strcmp(state, "failed") == 0 ? COLOR_RED : COLOR_NONE, "%s", state);
                if (json_is_number(json_object_get(s, "metric")))
                        table_set(t, 3, COLOR_NONE, "%" PRIu64, json_get_number(s, "step"));
                set_number(t, 4, json_object_get(s, "metric"));
                set_number(t, 5, json_object_get(s, "best"));
                if (json_is_number(json_object_get(s, "best")))
                        table_set(t, 6, COLOR_NONE, "%" PRIu64, json_get_number(s, "bestStep"));
                table_set(t, 7, COLOR_NONE, "%s", params ?: "");
        }
        return table_print_or(c, t, "No trial was made yet");
}

static int show_search(struct cli *c, const void *options, char **args, size_t n) {
        _cleanup_(json_decref_p) json_t *status = NULL, *trials = NULL;
        json_t *search;
        struct job_ref job;
        int r = cli_job(c, n > 0 ? args[0] : NULL, &job);

        (void)options;
        if (!r)
                r = ask_trials(c, &job, &trials); /* which refuses what is no search */
        if (!r)
                r = ask_status_json(c, &job, &status);
        if (r)
                return r;
        search = json_object_get(status, "search");
        if (c->json)
                return json_object_set(search, "list", trials) < 0 ? cli_oom(c)
                                                                   : cli_print_json(c, json_incref(search));
        printf("Search %" PRIu32 ": %s, %" PRIu64 " of %" PRIu64 " trials made", job.number,
               json_get_text(search, "method"), json_get_number(search, "made"),
               json_get_number(search, "trials"));
        if (json_get_number(search, "invalid") > 0)
                printf(", %" PRIu64 " invalid", json_get_number(search, "invalid"));
        if (json_is_number(json_object_get(search, "best")))
                printf("; best: trial %" PRIu64 ", %s %.6g at %" PRIu64, json_get_number(search, "best"),
                       json_get_text(search, "metric"),
                       json_number_value(json_object_get(search, "bestMetric")),
                       json_get_number(search, "bestStep"));
        puts("\n");
        smaller_first = json_is_true(json_object_get(search, "smaller"));
        r = show_rungs(c, json_object_get(search, "rungs"), true);
        return r ? r
                 : show_trials(c,
                               *json_get_text(search, "metric") ? json_get_text(search, "metric") : "METRIC",
                               trials);
}

/* ---- preview: of what a file says, without a master ---- */

static json_t *first_trials(const struct search_spec *s, uint32_t n) {
        _cleanup_(json_decref_p) json_t *j = json_loads(s->points ?: s->space, 0, NULL), *list = json_array();
        _cleanup_(space_free_p) struct space *space = NULL;
        char why[SPACE_WHY_MAX];

        if (s->searcher) /* nobody knows but it */
                return TAKE_PTR(list);
        if ((s->points ? space_of_list(j, &space) : space_read(j, s->method == SEARCH_GRID, &space, why)) < 0)
                return NULL;
        for (uint32_t i = 0; i < n; i++) {
                json_t *given = NULL;

                if (space_given(space, s->seed, i, &given) < 0 || json_array_append_new(list, given) < 0)
                        return NULL;
        }
        return TAKE_PTR(list);
}

/* Adds a row for each rung; returns units of training of all of them. */
static double expect_rungs(const struct search_settings *s, json_t *rows) {
        struct search_bracket b[SEARCH_BRACKETS_MAX];
        size_t n = search_brackets(s, b);
        double units = 0;

        for (size_t i = 0; i < n; i++) {
                uint32_t come[SEARCH_RUNGS_MAX];
                uint64_t at = 0, before;

                search_expect(s, b + i, come);
                for (uint32_t k = 0; k < b[i].n_rungs; k++) {
                        before = at;
                        at = search_units(s, b[i].n_rungs, k);
                        units += (double)(at - before) * come[k];
                        (void)json_array_append_new(rows, json_pack("{s:I, s:I, s:I, s:I}", "bracket",
                                                                    (json_int_t)i, "rung", (json_int_t)k,
                                                                    "units", (json_int_t)at, "expected",
                                                                    (json_int_t)come[k]));
                }
        }
        return units;
}

static int print_preview(struct cli *c, const struct search_spec *s, const json_t *rows, const json_t *trials,
                         double units) {
        const double all = (double)s->max_time * s->max_trials;
        const json_t *g;
        size_t i;
        int r;

        printf("%" PRIu32 " trials%s\n", s->max_trials,
               s->searcher ? " at the most; the searcher says which" : "");
        if (units > 0)
                printf("%.0f units of training, where all to the end would take %.0f (%.0f %%)\n", units, all,
                       100 * units / all);
        putchar('\n');
        r = show_rungs(c, rows, false);
        if (json_array_size(trials) > 0)
                puts("The first of them:");
        json_array_foreach (trials, i, g) {
                _cleanup_free_ char *text = params_text(g);

                if (text)
                        text_clean(text);
                printf("  %zu: %s\n", i, text ?: "");
        }
        return r;
}

static int preview_file(struct cli *c, const void *options, char **args, size_t n) {
        const struct search_options *o = options;
        _cleanup_(json_decref_p) json_t *rows = json_array(), *trials = NULL;
        _cleanup_(diagnostics_done) struct diagnostics d = { 0 };
        _cleanup_(spec_free_p) struct job_spec *spec = NULL;
        _cleanup_free_ char *text = NULL;
        struct search_settings settings;
        double units;
        size_t size;
        int r = source_read(c, args[0], &text, &size);

        (void)n;
        if (r)
                return r;
        if (spec_parse(text, size, &spec, &d) == -ENOMEM)
                return cli_oom(c);
        source_diagnostics(args[0], &d);
        if (!spec)
                return CLI_FAILED;
        if (!search_spec_given(&spec->search))
                return cli_fail(c, "%s: there is no key search in it", args[0]);
        if (search_spec_settings(&spec->search, &settings) < 0)
                return cli_oom(c);
        trials = first_trials(&spec->search, MIN(o->trials ?: PREVIEW_TRIALS, spec->search.max_trials));
        if (!trials || !rows)
                return cli_oom(c);
        units = expect_rungs(&settings, rows);
        if (c->json)
                return cli_print_json(c, json_pack("{s:I, s:f, s:O, s:O}", "trials",
                                                   (json_int_t)spec->search.max_trials, "units", units,
                                                   "rungs", rows, "first", trials));
        return print_preview(c, &spec->search, rows, trials, units);
}

/* ---- replay ---- */

static int replay_search(struct cli *c, const void *options, char **args, size_t n) {
        _cleanup_(sd_bus_message_unref_p) sd_bus_message *m = NULL, *reply = NULL;
        uint64_t events, differs;
        struct job_ref job;
        int r = cli_job(c, n > 0 ? args[0] : NULL, &job);

        (void)options;
        if (!r)
                r = cli_job_call(c, &job, "ReplaySearch", &m);
        if (!r)
                r = cli_call(c, m, &job, &reply);
        if (r)
                return r;
        r = sd_bus_message_read(reply, "tt", &events, &differs);
        if (r < 0)
                return cli_bad_reply(c, r);
        r = CLI_OK;
        if (c->json)
                r = cli_print_json(c, json_pack("{s:I, s:I}", "events", (json_int_t)events, "differs",
                                                (json_int_t)differs));
        else if (differs == 0)
                printf("Search %" PRIu32 ": %" PRIu64 " events, told again, decide the same\n", job.number,
                       events);
        else
                printf("Search %" PRIu32 ": event %" PRIu64 " of %" PRIu64
                       " does not follow from those before it\n",
                       job.number, differs, events);
        return differs > 0 ? CLI_FAILED : r;
}

/* ---- continue ---- */

static int continue_search(struct cli *c, const void *options, char **args, size_t n) {
        const struct search_options *o = options;
        const struct rerun_options rerun = {
                .goes_on = true, .trials = o->trials, .env = o->env, .secrets = o->secrets
        };
        struct job_ref job, made;
        int r = cli_job(c, args[0], &job);

        (void)n;
        if (!r)
                r = rerun_call(c, &job, &rerun, &made);
        if (r || c->json)
                return r ? r : submit_announce(c, &made, "", false);
        if (o->trials > 0)
                printf("Search %" PRIu32 " goes on, to %" PRIu32 " trials\n", made.number, o->trials);
        else
                printf("Search %" PRIu32 " goes on\n", made.number);
        return CLI_OK;
}

static int search_run(struct cli *c, void *options, char **args, size_t n) {
        static const struct cli_verb verbs[] = {
                { "show", "[JOB]", 0, 1, show_search },
                { "preview", "[--trials=N] FILE", 1, 1, preview_file },
                { "continue", "[--trials=N] [--env=NAME[=VALUE]] [--secret=NAME=FILE] JOB", 1, 1,
                  continue_search },
                { "replay", "[JOB]", 0, 1, replay_search },
        };
        const struct search_options *o = options;
        const struct cli_verb *verb;
        int r;

        if (strcmp(args[0], "archive") == 0)
                return cli_usage(
                        c, "there is no need to: what has ended is listed by 'primusctl list -a' alone");
        r = cli_verb_find(c, "search", verbs, ELEMENTSOF(verbs), args, n, &verb);

        if (r)
                return r;
        if (o->trials > 0 && verb->run != preview_file && verb->run != continue_search)
                return cli_usage(c, "--trials goes with preview and continue");
        if (o->env.n + o->secrets.n > 0 && verb->run != continue_search)
                return cli_usage(c, "--env and --secret go with continue");
        return verb->run(c, o, args + 1, n - 1);
}

static const struct cli_option search_options[] = {
        { "trials", 0, "N", option_number, offsetof(struct search_options, trials),
          "preview: show the parameters of so many (5); continue: so many altogether" },
        { "env", 0, "NAME[=VALUE]", option_append, offsetof(struct search_options, env),
          "continue: a variable for every trial; those of the first time have ended" },
        { "secret", 0, "NAME=FILE", option_append, offsetof(struct search_options, secrets),
          "continue: a private file $PRIMUS_SECRETS_DIR/NAME; likewise" },
        { 0 },
};

const struct command search_command = {
        .name = "search",
        .arguments = "show [JOB] | preview FILE | continue JOB | replay [JOB]",
        .help = "Trials of a search: what they report, and what one would be",
        .details =
                "A search is a job with the key search, see primus-job(5); it is submitted like any other, and its trials\n"
                "are its elements: 'primusctl logs 418[7]' is the output of trial 7, 'primusctl why 418[7]' says why it ended.\n"
                "show: the trials, the best first. preview: rungs, and the parameters of the first trials, of a file; no\n"
                "master is asked. continue: more trials of one that runs or has ended, under its number. replay: whether\n"
                "what happened, told again, decides the same. submit, fork (rerun), why and kill are those of every job.",
        .options = search_options,
        .options_size = sizeof(struct search_options),
        .lists = { offsetof(struct search_options, env) + 1, offsetof(struct search_options, secrets) + 1 },
        .min = 1,
        .max = 2,
        .run = search_run,
};
