/* SPDX-License-Identifier: Apache-2.0 */
/* primusctl status, and the result that submit --wait ends with. */
#include "tools/primusctl/commands/status.h"

#include <inttypes.h>
#include <jansson.h>
#include <pwd.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/parse.h"
#include "tools/primusctl/bus/ask.h"
#include "tools/primusctl/cli/commands.h"
#include "tools/primusctl/commands/status-data.h"
#include "tools/primusctl/view/table.h"
#include "tools/primusctl/view/users.h"

/* What the executors of one role add up to. */
struct role_sum {
        uint64_t restarts, first, last;
};

static struct role_sum sum_role(const char *role, const struct executor *e, size_t n, uint64_t now) {
        struct role_sum s = { 0 };

        for (size_t i = 0; i < n; i++) {
                if (strcmp(e[i].role, role) != 0)
                        continue;
                s.restarts += e[i].restarts;
                if (e[i].started && (s.first == 0 || e[i].started < s.first))
                        s.first = e[i].started;
                s.last = MAX(s.last, e[i].ended ? e[i].ended : e[i].started ? now : 0);
        }
        return s;
}

static json_t *number_or_null(uint64_t v) {
        return v ? json_integer((json_int_t)v) : json_null();
}

static json_t *executor_json(const struct executor *e) {
        char result[200];
        json_t *o =
                json_pack("{s:s, s:I, s:I, s:s, s:s, s:s, s:I, s:o, s:o, s:s, s:I, s:o, s:o, s:o, s:o, s:o}",
                          "role", e->role, "index", (json_int_t)e->index, "attempt", (json_int_t)e->attempt,
                          "state", e->state, "node", e->node, "unit", e->unit, "rank", (json_int_t)e->rank,
                          "started", number_or_null(e->started), "ended", number_or_null(e->ended), "result",
                          executor_result(e, result, sizeof(result)), "restarts", (json_int_t)e->restarts,
                          "memoryPeak", number_or_null(e->memory_peak), "memory", number_or_null(e->memory),
                          "cpuUsec", number_or_null(e->cpu), "readBytes", number_or_null(e->read_bytes),
                          "writeBytes", number_or_null(e->write_bytes));
        json_t *ports = json_array(), *gpus = json_array();

        for (size_t i = 0; i < e->ports.n; i++)
                (void)json_array_append_new(ports, json_integer(e->ports.items[i]));
        for (char **g = e->gpus; g && *g; g++)
                (void)json_array_append_new(gpus, json_string(*g));
        if (!o) {
                json_decref(ports);
                json_decref(gpus);
                return NULL;
        }
        (void)json_object_set_new(o, "ports", ports);
        (void)json_object_set_new(o, "gpus", gpus);
        if (e->has_status)
                (void)json_object_set_new(o, "exitStatus", json_integer(e->status));
        status_data_executor_json(e, o);
        return o;
}

static json_t *array_json(const struct array_status *a) {
        if (a->of)
                return json_pack("{s:I, s:I}", "of", (json_int_t)a->of, "index", (json_int_t)a->index);
        return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I}", "size", (json_int_t)a->size, "waiting",
                         (json_int_t)a->waiting, "running", (json_int_t)a->running, "succeeded",
                         (json_int_t)a->succeeded, "failed", (json_int_t)a->failed, "killed",
                         (json_int_t)a->killed);
}

static json_t *status_json(const struct job_properties *p, const struct job_status *s,
                           const struct executor *e, size_t n) {
        json_t *roles = json_array(), *executors = json_array(), *warnings = json_array(), *o;
        uint64_t now = now_real();

        for (size_t i = 0; i < s->n_roles; i++) {
                const struct role_status *r = &s->roles[i];
                struct role_sum sum = sum_role(r->name, e, n, now);

                (void)json_array_append_new(
                        roles,
                        json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "name", r->name, "wanted",
                                  (json_int_t)r->wanted, "running", (json_int_t)r->running, "pending",
                                  (json_int_t)r->pending, "succeeded", (json_int_t)r->succeeded, "failed",
                                  (json_int_t)r->failed, "killed", (json_int_t)r->killed, "lost",
                                  (json_int_t)r->lost, "restarts", (json_int_t)sum.restarts));
        }
        for (size_t i = 0; i < n; i++)
                (void)json_array_append_new(executors, executor_json(&e[i]));
        for (char **w = s->warnings; w && *w; w++)
                (void)json_array_append_new(warnings, json_string(*w));
        o = json_pack("{s:I, s:s, s:s, s:s, s:I, s:I, s:o, s:o, s:o, s:I, s:s, s:s, s:o, s:o, s:o}", "job",
                      (json_int_t)p->number, "name", p->name ? p->name : "", "uid", p->uid ? p->uid : "",
                      "state", p->state, "owner", (json_int_t)p->owner, "attempt", (json_int_t)p->attempt,
                      "submitted", number_or_null(p->submitted), "started", number_or_null(p->started),
                      "ended", number_or_null(p->ended), "exitStatus", (json_int_t)p->exit_status, "reason",
                      s->reason ? s->reason : "", "firstError", s->first_error ? s->first_error : "", "roles",
                      roles, "executors", executors, "warnings", warnings);
        if (o && s->data.present)
                (void)json_object_set_new(o, "data", status_data_json(&s->data));
        if (o && s->visible)
                (void)json_object_set_new(o, "visible", json_string(s->visible));
        if (o && s->lockstep)
                (void)json_object_set_new(o, "lockstep", json_string(s->lockstep));
        if (o)
                (void)json_object_set_new(o, "verdicts", verdicts_json(&s->verdicts));
        if (o && (s->array.size || s->array.of))
                (void)json_object_set_new(o, "array", array_json(&s->array));
        return o;
}

static void print_clean(const char *text) {
        _cleanup_free_ char *clean = strdup(text);

        if (clean) {
                text_clean(clean);
                fputs(clean, stdout);
        }
}

static void print_reason(const char *reason) {
        _cleanup_free_ char *named = users_named(reason, user_lookup_here);

        print_clean(named ? named : reason);
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

static int print_roles(const struct cli *c, const struct job_status *s, const struct executor *e, size_t n) {
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
        int r = table_new(c, columns, ELEMENTSOF(columns), &t);

        if (r)
                return r;
        for (size_t i = 0; i < s->n_roles; i++) {
                const struct role_status *role = &s->roles[i];
                struct role_sum sum = sum_role(role->name, e, n, now);
                const uint32_t counts[] = { role->wanted,
                                            role->running,
                                            role->pending,
                                            role->succeeded,
                                            role->failed + role->lost,
                                            role->killed };
                char time[FORMAT_DURATION_MAX];

                if (table_row(t) < 0)
                        break;
                table_set(t, 0, COLOR_BOLD, "%s", role->name);
                for (size_t k = 0; k < ELEMENTSOF(counts); k++)
                        table_set(t, k + 1,
                                  k == 4 && counts[k] ? COLOR_RED
                                  : counts[k]         ? COLOR_NONE
                                                      : COLOR_DIM,
                                  "%" PRIu32, counts[k]);
                table_set(t, 7, sum.restarts ? COLOR_YELLOW : COLOR_DIM, "%" PRIu64, sum.restarts);
                table_set(t, 8, COLOR_NONE, "%s",
                          sum.first ? format_duration(usec_sub(sum.last, sum.first), time, sizeof(time))
                                    : "-");
        }
        return table_print(c, t);
}

static void print_head(const struct cli *c, const struct job_properties *p) {
        char time[FORMAT_DURATION_MAX];
        uint64_t end = p->ended ? p->ended : now_real(), begin = p->started ? p->started : p->submitted;

        printf("Job %" PRIu32 " (", p->number);
        print_clean(p->name ? p->name : "");
        printf(")  %s%s%s", c->color ? color_sequence(color_of_state(p->state)) : "", p->state,
               c->color ? COLOR_RESET : "");
        if (begin)
                printf(p->ended ? " after %s" : " for %s",
                       format_duration(usec_sub(end, begin), time, sizeof(time)));
        putchar('\n');
}

int status_result(const struct cli *c, const struct job_properties *p, const struct job_status *s,
                  const struct executor *executors, size_t n) {
        int r;

        if (c->json)
                return cli_print_json(c, status_json(p, s, executors, n));
        r = print_roles(c, s, executors, n);
        print_head(c, p);
        if (s->reason && *s->reason) {
                fputs("  ", stdout);
                print_reason(s->reason);
                putchar('\n');
        }
        if (s->first_error && *s->first_error) {
                puts("  first error:");
                print_block(s->first_error);
        }
        if (strcmp(p->state, "FAILED") == 0 && s->array.failed > 0)
                printf("  more: primusctl status %" PRIu32 "[%" PRIu32 "]   primusctl logs %" PRIu32
                       "[%" PRIu32 "]   primusctl list --all --state FAILED --array %" PRIu32 "\n",
                       p->number, s->array.first_failed, p->number, s->array.first_failed, p->number);
        else if (strcmp(p->state, "FAILED") == 0)
                printf("  more: primusctl status %" PRIu32 "   primusctl logs %" PRIu32
                       "   primusctl events %" PRIu32 "\n",
                       p->number, p->number, p->number);
        return fflush(stdout) == EOF ? cli_fail(c, "cannot write to standard output: %s", strerror(errno))
                                     : r;
}

static int print_executors(const struct cli *c, const struct executor *e, size_t n) {
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
        int r = table_new(c, columns, ELEMENTSOF(columns), &t);

        if (r)
                return r;
        for (size_t i = 0; i < n && table_row(t) >= 0; i++) {
                char since[TEXT_TIME_MAX], result[200], memory[FORMAT_SIZE_MAX];
                uint64_t held = e[i].memory_peak ? e[i].memory_peak : e[i].memory;

                table_set(t, 0, COLOR_BOLD, "%s/%" PRIu32, e[i].role, e[i].index);
                table_set(t, 1, color_of_state(e[i].state), "%s", e[i].state);
                table_set(t, 2, COLOR_NONE, "%s", *e[i].node ? e[i].node : "-");
                table_set(t, 3, COLOR_DIM, "%s", *e[i].unit ? e[i].unit : "-");
                table_set(t, 4, e[i].restarts ? COLOR_YELLOW : COLOR_DIM, "%" PRIu32, e[i].restarts);
                table_set(t, 5, COLOR_NONE, "%s",
                          text_time(e[i].ended ? e[i].ended : e[i].started, now, since, sizeof(since)));
                table_set(t, 6, COLOR_NONE, "%s", held ? format_size(held, memory, sizeof(memory)) : "-");
                table_set(t, 7, COLOR_NONE, "%s", executor_result(&e[i], result, sizeof(result)));
        }
        return table_print(c, t);
}

static int print_status(const struct cli *c, const struct job_properties *p, const struct job_status *s,
                        const struct executor *e, size_t n, bool all) {
        char a[TEXT_TIME_MAX], b[TEXT_TIME_MAX], d[TEXT_TIME_MAX];
        struct passwd *pw = getpwuid(p->owner);
        uint64_t now = now_real();
        int r;

        print_head(c, p);
        printf("  owner %s, attempt %" PRIu32 ", submitted %s, started %s, ended %s\n",
               pw ? pw->pw_name : "?", p->attempt, text_time(p->submitted, now, a, sizeof(a)),
               text_time(p->started, now, b, sizeof(b)), text_time(p->ended, now, d, sizeof(d)));
        if (s->visible_to && strcmp(s->visible ?: "owner", "owner") != 0) {
                fputs("  ", stdout);
                print_clean(s->visible_to);
                putchar('\n');
        }
        if (s->cwd && *s->cwd) {
                fputs("  directory ", stdout);
                print_clean(s->cwd);
                putchar('\n');
        }
        if (s->reason && *s->reason) {
                fputs("  ", stdout);
                print_reason(s->reason);
                putchar('\n');
        }
        for (char **w = s->warnings; w && *w; w++) {
                fputs("  warning: ", stdout);
                print_clean(*w);
                putchar('\n');
        }
        verdicts_print(c, &s->verdicts);
        if (s->array.of)
                printf("  element %" PRIu32 " of array %" PRIu32 ": %" PRIu32 "[%" PRIu32 "]\n",
                       s->array.index, s->array.of, s->array.of, s->array.index);
        putchar('\n');
        r = print_roles(c, s, e, n);
        if (r)
                return r;
        if (s->array.size) {
                printf("\nElements: primusctl list --all --array %" PRIu32 "   primusctl status %" PRIu32
                       "[INDEX]   Events: primusctl events %" PRIu32 "\n",
                       p->number, p->number, p->number);
                return fflush(stdout) == EOF
                               ? cli_fail(c, "cannot write to standard output: %s", strerror(errno))
                               : 0;
        }
        putchar('\n');
        r = print_executors(c, e, n);
        if (r)
                return r;
        if (s->data.present) {
                putchar('\n');
                r = status_data_print(c, &s->data, e, n, all, job_state_exit(p->state) >= 0);
                if (r)
                        return r;
        }
        if (s->lockstep)
                printf("\nData: in lockstep (%s): the ranks read their files themselves; how far they are is "
                       "what "
                       "primus.progress() says (primusctl top %" PRIu32 ")\n",
                       s->lockstep, p->number);
        if (s->first_error && *s->first_error) {
                puts("\nFirst error:");
                print_block(s->first_error);
        }
        printf("\nOutput: primusctl logs %" PRIu32 "%s   Events: primusctl events %" PRIu32 "\n", p->number,
               job_state_exit(p->state) < 0 ? " -f" : "", p->number);
        return fflush(stdout) == EOF ? cli_fail(c, "cannot write to standard output: %s", strerror(errno))
                                     : 0;
}

struct status_options {
        bool all;
};

static int status_run(struct cli *c, void *options, char **args, size_t n_args) {
        struct status_options *o = options;
        _cleanup_(job_properties_done) struct job_properties p = { 0 };
        _cleanup_(job_status_done) struct job_status s = { 0 };
        struct executor *executors = NULL;
        struct job_ref job;
        size_t n = 0;
        int r;

        r = cli_job(c, n_args > 0 ? args[0] : NULL, &job);
        if (!r)
                r = ask_properties(c, &job, &p);
        if (!r)
                r = ask_status(c, &job, &s);
        if (!r)
                r = ask_executors(c, &job, o->all, &executors, &n);
        if (!r)
                r = c->json ? cli_print_json(c, status_json(&p, &s, executors, n))
                            : print_status(c, &p, &s, executors, n, o->all);
        executors_free(executors, n);
        return r;
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
