/* SPDX-License-Identifier: Apache-2.0 */
/* primusctl status, and the result that submit --wait ends with. */
#include "tools/primusctl/commands/status.h"

#include <inttypes.h>
#include <pwd.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/format.h"
#include "lib/json/get.h"
#include "lib/json/replies.h"
#include "tools/primusctl/bus/ask.h"
#include "tools/primusctl/bus/verdicts.h"
#include "tools/primusctl/cli/commands.h"
#include "tools/primusctl/commands/status-data.h"
#include "tools/primusctl/view/table.h"
#include "tools/primusctl/view/users.h"

/* ---- what is known of it ---- */

static int read_again(const struct cli *c, sd_bus_message *m, const struct json_shape *s,
                      int (*read)(sd_bus_message *m, const struct json_shape *s, bool hidden, json_t **ret),
                      json_t **ret) {
        int r = m ? sd_bus_message_rewind(m, true) : -ENODATA;

        return r < 0 ? r : read(m, s, !c->json, ret);
}

/* The replies as one object. */
static int status_read(const struct cli *c, const struct status_replies *replies, json_t **ret) {
        _cleanup_(json_decref_p) json_t *job = NULL, *status = NULL, *executors = NULL;
        int r = read_again(c, replies->properties, &json_job, json_read_object, &job);

        if (r >= 0 && !*json_get_text(job, "state"))
                r = -ENODATA;
        if (r >= 0)
                r = read_again(c, replies->status, &json_status, json_read_object, &status);
        if (r >= 0)
                r = read_again(c, replies->executors, &json_executor, json_read_list, &executors);
        if (r >= 0)
                r = json_status_join(job, status, executors);
        if (r < 0)
                return r == -ENOMEM ? cli_oom(c) : cli_bad_reply(c, r);
        *ret = TAKE_PTR(job);
        return 0;
}

/* From the first start of a role to its last end, or now. */
static uint64_t role_time(const char *role, const json_t *executors, uint64_t now) {
        uint64_t first = UINT64_MAX, last = 0;
        const json_t *e;
        size_t i;

        json_array_foreach (executors, i, e) {
                uint64_t started = json_get_number(e, "started"), ended = json_get_number(e, "ended");

                if (strcmp(json_get_text(e, "role"), role) != 0)
                        continue;
                if (started)
                        first = MIN(first, started);
                last = MAX(last, ended ? ended : started ? now : 0);
        }
        return first == UINT64_MAX ? UINT64_MAX : usec_sub(last, first);
}

/* ---- as text ---- */

static void print_clean(const char *text) {
        _cleanup_free_ char *clean = strdup(text);

        if (clean) {
                text_clean(clean);
                fputs(clean, stdout);
        }
}

/* A text of several lines, each cleaned, indented. */
static void print_block(const char *text) {
        while (*text) {
                size_t n = strcspn(text, "\n");
                _cleanup_free_ char *line = strndup(text, n);

                fputs("    ", stdout);
                print_clean(line ? line : "");
                putchar('\n');
                text += n + (text[n] == '\n');
        }
}

static int print_roles(const struct cli *c, const json_t *job) {
        static const struct table_column columns[] = {
                { "ROLE" },
                { "NUM", .right = true },
                { "RUNNING", .right = true },
                { "PENDING", .right = true },
                { "SUCCEEDED", .right = true },
                { "FAILED", .right = true },
                { "KILLED", .right = true },
                { "RESTARTS", .right = true },
                { "TIME", .right = true },
        };
        _cleanup_(table_free_p) struct table *t = NULL;
        uint64_t now = now_real();
        const json_t *role;
        size_t i;
        int r = table_new(c, columns, ELEMENTSOF(columns), &t);

        if (r)
                return r;
        json_array_foreach (json_object_get(job, "roles"), i, role) {
                const uint64_t counts[] = { json_get_number(role, "wanted"),
                                            json_get_number(role, "running"),
                                            json_get_number(role, "pending"),
                                            json_get_number(role, "succeeded"),
                                            json_get_number(role, "failed") + json_get_number(role, "lost"),
                                            json_get_number(role, "killed") };
                uint64_t restarts = json_get_number(role, "restarts"),
                         time = role_time(json_get_text(role, "name"), json_object_get(job, "executors"),
                                          now);
                char text[FORMAT_DURATION_MAX];

                if (table_row(t) < 0)
                        break;
                table_set(t, 0, COLOR_BOLD, "%s", json_get_text(role, "name"));
                for (size_t k = 0; k < ELEMENTSOF(counts); k++)
                        table_set(t, k + 1,
                                  k == 4 && counts[k] ? COLOR_RED
                                  : counts[k]         ? COLOR_NONE
                                                      : COLOR_DIM,
                                  "%" PRIu64, counts[k]);
                table_set(t, 7, restarts ? COLOR_YELLOW : COLOR_DIM, "%" PRIu64, restarts);
                table_set(t, 8, COLOR_NONE, "%s",
                          time == UINT64_MAX ? "-" : format_duration(time, text, sizeof(text)));
        }
        return table_print(c, t);
}

static void print_head(const struct cli *c, const json_t *job) {
        uint64_t ended = json_get_number(job, "ended"), started = json_get_number(job, "started"),
                 begin = started ? started : json_get_number(job, "submitted");
        const char *state = json_get_text(job, "state");
        char time[FORMAT_DURATION_MAX];

        printf("Job %" PRIu64 " (", json_get_number(job, "job"));
        print_clean(json_get_text(job, "name"));
        printf(")  %s%s%s", c->color ? color_sequence(color_of_state(state)) : "", state,
               c->color ? COLOR_RESET : "");
        if (begin)
                printf(ended ? " after %s" : " for %s",
                       format_duration(usec_sub(ended ? ended : now_real(), begin), time, sizeof(time)));
        putchar('\n');
}

/* A line of it, where there is one. */
static void print_line(const char *before, const char *text) {
        if (!*text)
                return;
        fputs(before, stdout);
        print_clean(text);
        putchar('\n');
}

static void print_reason(const json_t *job) {
        const char *reason = json_get_text(job, "reason");
        _cleanup_free_ char *named = users_named(reason, user_lookup_here);
        uint64_t parent = json_get_number(job, "parent");

        print_line("  ", named ? named : reason);
        if (parent > 0)
                printf("  submitted from inside job %" PRIu64 "%s\n", parent,
                       json_is_true(json_object_get(job, "withParent")) ? ", with which it ends" : "");
}

static int print_result(const struct cli *c, const json_t *job) {
        const char *state = json_get_text(job, "state"), *error = json_get_text(job, "firstError");
        const json_t *array = json_object_get(job, "array");
        uint64_t number = json_get_number(job, "job"), first = json_get_number(array, "firstFailed");
        int r = print_roles(c, job);

        print_head(c, job);
        print_reason(job);
        if (*error) {
                puts("  first error:");
                print_block(error);
        }
        if (strcmp(state, "FAILED") == 0 && json_get_number(array, "failed") > 0)
                printf("  more: primusctl status %" PRIu64 "[%" PRIu64 "]   primusctl logs %" PRIu64
                       "[%" PRIu64 "]   primusctl list --all --state FAILED --array %" PRIu64 "\n",
                       number, first, number, first, number);
        else if (strcmp(state, "FAILED") == 0)
                printf("  more: primusctl status %" PRIu64 "   primusctl logs %" PRIu64
                       "   primusctl events %" PRIu64 "\n",
                       number, number, number);
        return fflush(stdout) == EOF ? cli_fail(c, "cannot write to standard output: %s", strerror(errno))
                                     : r;
}

int status_result(const struct cli *c, const struct status_replies *replies) {
        _cleanup_(json_decref_p) json_t *job = NULL;
        int r = status_read(c, replies, &job);

        if (r)
                return r;
        return c->json ? cli_print_json(c, TAKE_PTR(job)) : print_result(c, job);
}

static void show_executor(struct table *t, const json_t *e, uint64_t now) {
        uint64_t peak = json_get_number(e, "memoryPeak"), held = peak ? peak : json_get_number(e, "memory"),
                 ended = json_get_number(e, "ended"), restarts = json_get_number(e, "restarts");
        const char *state = json_get_text(e, "state"), *node = json_get_text(e, "node"),
                   *unit = json_get_text(e, "unit");
        char since[TEXT_TIME_MAX], memory[FORMAT_SIZE_MAX];

        table_set(t, 0, COLOR_BOLD, "%s/%" PRIu64, json_get_text(e, "role"), json_get_number(e, "index"));
        table_set(t, 1, color_of_state(state), "%s", state);
        table_set(t, 2, COLOR_NONE, "%s", *node ? node : "-");
        table_set(t, 3, COLOR_DIM, "%s", *unit ? unit : "-");
        table_set(t, 4, restarts ? COLOR_YELLOW : COLOR_DIM, "%" PRIu64, restarts);
        table_set(t, 5, COLOR_NONE, "%s",
                  text_time(ended ? ended : json_get_number(e, "started"), now, since, sizeof(since)));
        table_set(t, 6, COLOR_NONE, "%s", held ? format_size(held, memory, sizeof(memory)) : "-");
        table_set(t, 7, COLOR_NONE, "%s", json_get_text(e, "result"));
}

static int print_executors(const struct cli *c, const json_t *executors) {
        static const struct table_column columns[] = {
                { "EXECUTOR" },
                { "STATE" },
                { "NODE" },
                { "UNIT", .fills = true },
                { "RESTARTS", .right = true },
                { "SINCE" },
                { "MEMORY", .right = true },
                { "RESULT", .fills = true },
        };
        _cleanup_(table_free_p) struct table *t = NULL;
        uint64_t now = now_real();
        const json_t *e;
        size_t i;
        int r = table_new(c, columns, ELEMENTSOF(columns), &t);

        if (r)
                return r;
        json_array_foreach (executors, i, e)
                if (table_row(t) >= 0)
                        show_executor(t, e, now);
        return table_print(c, t);
}

static void print_avoids(const json_t *avoids, uint64_t now) {
        char text[TEXT_TIME_MAX];
        const json_t *x;
        size_t i;

        json_array_foreach (avoids, i, x) {
                uint64_t until = json_get_number(x, "until");
                printf("  kept off %s%s%s\n", json_get_text(x, "node"), until > 0 ? " until " : "",
                       until > 0 ? text_time(until, now, text, sizeof(text)) : "");
        }
}

static void print_about(const struct cli *c, const json_t *job) {
        char a[TEXT_TIME_MAX], b[TEXT_TIME_MAX], d[TEXT_TIME_MAX];
        const struct passwd *pw = getpwuid((uid_t)json_get_number(job, "owner"));
        const char *visible = json_get_text(job, "visible");
        const json_t *array = json_object_get(job, "array"), *warning;
        uint64_t now = now_real(), of = json_get_number(array, "of"), index = json_get_number(array, "index");
        size_t i;

        print_head(c, job);
        printf("  owner %s, attempt %" PRIu64 ", submitted %s, started %s, ended %s\n",
               pw ? pw->pw_name : "?", json_get_number(job, "attempt"),
               text_time(json_get_number(job, "submitted"), now, a, sizeof(a)),
               text_time(json_get_number(job, "started"), now, b, sizeof(b)),
               text_time(json_get_number(job, "ended"), now, d, sizeof(d)));
        if (*visible && strcmp(visible, "owner") != 0)
                print_line("  ", json_get_text(job, "visibleTo"));
        print_line("  directory ", json_get_text(job, "cwd"));
        print_reason(job);
        if (json_get_number(job, "failsAt") > 0)
                printf("  fails if it is not started by %s\n",
                       text_time(json_get_number(job, "failsAt"), now, a, sizeof(a)));
        print_avoids(json_object_get(job, "avoids"), now);
        json_array_foreach (json_object_get(job, "warnings"), i, warning)
                print_line("  warning: ", json_string_value(warning));
        verdicts_print(c, json_object_get(job, "verdicts"));
        if (of && !json_object_get(array, "index"))
                printf("  searcher of search %" PRIu64 ": %" PRIu64 "[searcher]\n", of, of);
        else if (of)
                printf("  element %" PRIu64 " of array %" PRIu64 ": %" PRIu64 "[%" PRIu64 "]\n", index, of,
                       of, index);
        putchar('\n');
}

static int print_status(const struct cli *c, const json_t *job, bool all) {
        const char *lockstep = json_get_text(job, "lockstep"), *error = json_get_text(job, "firstError");
        const json_t *executors = json_object_get(job, "executors"), *data = json_object_get(job, "data");
        bool ended = job_state_exit(json_get_text(job, "state")) >= 0;
        uint64_t number = json_get_number(job, "job");
        int r;

        print_about(c, job);
        r = print_roles(c, job);
        if (r)
                return r;
        if (json_get_number(json_object_get(job, "array"), "size")) {
                printf("\nElements: primusctl list --all --array %" PRIu64 "   primusctl status %" PRIu64
                       "[INDEX]   Events: primusctl events %" PRIu64 "\n",
                       number, number, number);
                return 0;
        }
        putchar('\n');
        r = print_executors(c, executors);
        if (!r && data) {
                putchar('\n');
                r = status_data_print(c, data, executors, all, ended);
        }
        if (r)
                return r;
        if (*lockstep)
                printf("\nData: in lockstep (%s): the ranks read their files themselves; how far they are is "
                       "what primus.progress() says (primusctl top %" PRIu64 ")\n",
                       lockstep, number);
        if (*error) {
                puts("\nFirst error:");
                print_block(error);
        }
        printf("\nOutput: primusctl logs %" PRIu64 "%s   Events: primusctl events %" PRIu64 "\n", number,
               ended ? "" : " -f", number);
        return 0;
}

struct status_options {
        bool all;
};

static void replies_done(struct status_replies *r) {
        sd_bus_message_unref(r->properties);
        sd_bus_message_unref(r->status);
        sd_bus_message_unref(r->executors);
}

static int status_ask(struct cli *c, const struct job_ref *job, bool all, struct status_replies *ret) {
        _cleanup_(sd_bus_message_unref_p) sd_bus_message *properties = NULL, *status = NULL,
                                                         *executors = NULL;
        int r = ask_properties_call(c, job, &properties);

        if (!r)
                r = cli_call(c, properties, job, &ret->properties);
        if (!r)
                r = cli_job_call(c, job, "GetStatus", &status);
        if (!r)
                r = cli_call(c, status, job, &ret->status);
        if (!r)
                r = cli_job_call(c, job, "ListExecutors", &executors);
        if (!r && sd_bus_message_append(executors, "b", all) < 0)
                r = cli_oom(c);
        return r ? r : cli_call(c, executors, job, &ret->executors);
}

static int status_run(struct cli *c, void *options, char **args, size_t n_args) {
        _cleanup_(replies_done) struct status_replies replies = {};
        /* The process ends with it. To take it apart, with a thousand executors, were a twelfth of the whole.
         */
        static json_t *job;
        const struct status_options *o = options;
        struct job_ref ref;
        int r = cli_job(c, n_args > 0 ? args[0] : NULL, &ref);

        if (!r)
                r = status_ask(c, &ref, o->all, &replies);
        if (!r)
                r = status_read(c, &replies, &job);
        if (r)
                return r;
        if (c->json)
                return cli_print_json(c, TAKE_PTR(job));
        r = print_status(c, job, o->all);
        return fflush(stdout) == EOF ? cli_fail(c, "cannot write to standard output: %s", strerror(errno))
                                     : r;
}

static const struct cli_option status_options[] = {
        { "all", 'a', NULL, NULL, offsetof(struct status_options, all),
          "every attempt of every executor, not just the latest" },
        { 0 },
};

const struct command status_command = {
        .name = "status",
        .arguments = "[-a] [JOB]",
        .help = "Show a job: state, roles, executors, data, the first error",
        .options = status_options,
        .options_size = sizeof(struct status_options),
        .max = 1,
        .run = status_run,
};
