/* SPDX-License-Identifier: Apache-2.0 */
/* primusctl run: a command as a job, its output here, its status as ours. */
#include <inttypes.h>
#include <jansson.h>
#include <limits.h>
#include <string.h>

#include "lib/base/hostlist.h"
#include "lib/base/parse.h"
#include "tools/primusctl/commands.h"
#include "tools/primusctl/interrupt.h"
#include "tools/primusctl/logstream.h"
#include "tools/primusctl/status.h"
#include "tools/primusctl/submit.h"
#include "tools/primusctl/text.h"
#include "tools/primusctl/watch.h"

#define HOSTS_MAX 10000u
#define ROLE "task"

struct run_options {
        uint32_t n, per_host, gpus;
        const char *hosts, *name, *cpus, *output, *begin;
        uint64_t memory, time;
        struct option_list env, secrets, after;
        bool no_env, pack;
        struct turn_options turn;
};

extern char **environ;

/* Variables that mean something in the caller's session only. A trailing '*' stands for any rest. */
static bool is_session_variable(const char *name, size_t n) {
        static const char *const names[] = {
                "DBUS_*",          "XDG_*",         "SSH_*",     "PRIMUS_*",   "DISPLAY",
                "WAYLAND_DISPLAY", "XAUTHORITY",    "TMUX*",     "STY",        "WINDOWID",
                "SHLVL",           "PWD",           "OLDPWD",    "_",          "INVOCATION_ID",
                "JOURNAL_STREAM",  "NOTIFY_SOCKET", "LISTEN_*",  "WATCHDOG_*", "MANAGERPID",
                "SYSTEMD_*",       "SUDO_*",        "GPG_*",     "MAIL",       "TMPDIR",
                "COLUMNS",         "LINES",         "LS_COLORS",
        };

        for (size_t i = 0; i < ELEMENTSOF(names); i++) {
                size_t l = strlen(names[i]);

                if (names[i][l - 1] == '*' ? n >= l - 1 && strncmp(name, names[i], l - 1) == 0
                                           : n == l && strncmp(name, names[i], n) == 0)
                        return true;
        }
        return false;
}

/* What the job's processes see of the caller's environment: all of it but the session, or the variables
 * named. */
static int choose_env(const struct cli *c, const struct run_options *o, struct option_list *ret) {
        const char *why = "";

        if (o->env.n > 0 || o->no_env) {
                for (size_t i = 0; i < o->env.n; i++)
                        if (option_append(o->env.items[i], ret, &why) < 0)
                                return cli_oom(c);
                return 0;
        }
        for (char **e = environ; e && *e; e++) {
                size_t n = strcspn(*e, "=");
                char name[256];

                if (n == 0 || n >= sizeof(name) || !(*e)[n] || is_session_variable(*e, n))
                        continue;
                memcpy(name, *e, n);
                name[n] = 0;
                if (env_name_valid(name) && option_append(*e, ret, &why) < 0)
                        return cli_oom(c);
        }
        return 0;
}

/* Fills in where the executors may run. */
static int place(const struct cli *c, const struct run_options *o, json_t *role, uint32_t *n) {
        char **names;
        size_t n_hosts, i;
        json_t *nodes;
        uint32_t hosts = 0;
        int r;

        if (o->per_host && !o->hosts)
                return cli_usage(c, "--per-host goes with --hosts");
        if (!o->hosts)
                return 0;
        if (parse_u32(o->hosts, 1, HOSTS_MAX, &hosts) >= 0) /* so many, whichever they are */
                r = 0;
        else {
                r = hostlist_expand(o->hosts, HOSTS_MAX, &names, &n_hosts);
                if (r < 0)
                        return cli_usage(c, "--hosts: neither a number nor a host list such as n[1-3]: %s",
                                         o->hosts);
                nodes = json_array();
                for (i = 0; i < n_hosts; i++)
                        (void)json_array_append_new(nodes, json_string(names[i]));
                hostlist_free(names);
                if (json_object_set_new(role, "nodes", nodes) < 0)
                        return cli_oom(c);
                hosts = (uint32_t)n_hosts;
        }
        if (o->n && !o->per_host)
                *n = o->n;
        else {
                uint64_t all = (uint64_t)hosts * (o->per_host ? o->per_host : 1);

                if (o->n && o->n != all)
                        return cli_usage(c, "-n %" PRIu32 " is not --hosts %" PRIu32 " x --per-host %" PRIu32,
                                         o->n, hosts, o->per_host);
                if (all > UINT32_MAX)
                        return cli_usage(c, "--per-host %" PRIu32 " is too many", o->per_host);
                *n = (uint32_t)all;
                return json_object_set_new(role, "scheduleStrategy",
                                           json_pack("{s:I}", "replicasPerNode",
                                                     (json_int_t)(o->per_host ? o->per_host : 1))) < 0
                               ? cli_oom(c)
                               : 0;
        }
        return 0;
}

static int set_resources(const struct cli *c, const struct run_options *o, json_t *role) {
        int r = 0;

        if (o->cpus) {
                char *end;
                double cpus = strtod(o->cpus, &end);

                if (*end || end == o->cpus || !(cpus >= 0) || cpus > 1e6)
                        return cli_usage(c, "--cpus: expected a number such as 2 or 0.5, not '%s'", o->cpus);
                r = json_object_set_new(role, "vcores",
                                        cpus == (double)(json_int_t)cpus ? json_integer((json_int_t)cpus)
                                                                         : json_real(cpus));
        }
        if (r >= 0 && o->memory) {
                uint64_t mib = (o->memory + (1 << 20) - 1) >> 20;

                r = json_object_set_new(role, "memoryMb", json_integer((json_int_t)mib));
        }
        if (r >= 0 && o->gpus)
                r = json_object_set_new(role, "gpuNum", json_integer(o->gpus));
        return r < 0 ? cli_oom(c) : 0;
}

static int set_argv(const struct cli *c, json_t *role, char **args) {
        json_t *argv = json_array();

        for (char **a = args; *a; a++) {
                if (!utf8_valid(*a, strlen(*a))) {
                        json_decref(argv);
                        return cli_fail(c, "an argument is not valid UTF-8, which a job cannot carry: %s",
                                        *a);
                }
                if (json_array_append_new(argv, json_string(*a)) < 0) {
                        json_decref(argv);
                        return cli_oom(c);
                }
        }
        return json_object_set_new(role, "argv", argv) < 0 ? cli_oom(c) : 0;
}

/* A command that is run n times is meant for as many hosts as there are, as far as there is room: "run -n 2
 * -- hostname" asks two. What has GPUs is better off together. */
static bool is_spread(const struct run_options *o, uint32_t n) {
        return n > 1 && !o->pack && !o->hosts && !o->gpus;
}

/* The job as a configuration. A rank that ends is not restarted, and one that fails ends the job, as srun -K
 * does. */
static int configure(const struct cli *c, const struct run_options *o, char **args, char **ret_text,
                     uint32_t *ret_n) {
        json_t *role = json_pack("{s:s, s:i, s:{s:{s:s, s:i, s:s}}}", "roleName", ROLE, "successPercent", 100,
                                 "failover", "commonFailoverPolicy", "restartType", "NEVER",
                                 "maxFailureTimes", 1, "maxFailurePolicy", "FAIL_APP");
        json_t *job = json_pack("{s:s, s:i, s:[O]}", "name", o->name ? o->name : basename(args[0]),
                                "maxAppAttempts", 1, "role", role);
        uint32_t n = o->n ? o->n : 1;
        char time[48];
        int r;

        if (!job) {
                json_decref(role);
                return utf8_valid(args[0], strlen(args[0])) ? cli_oom(c)
                                                            : cli_fail(c, "the command is not valid UTF-8");
        }
        r = place(c, o, role, &n);
        if (!r)
                r = set_resources(c, o, role);
        if (!r)
                r = set_argv(c, role, args);
        if (!r && o->time) {
                snprintf(time, sizeof(time), "%" PRIu64 "ms", o->time / 1000);
                r = json_object_set_new(job, "timeLimit", json_string(time)) < 0 ? cli_oom(c) : 0;
        }
        if (!r && o->output && json_object_set_new(job, "output", json_string(o->output)) < 0)
                r = cli_fail(c, "--output: not valid UTF-8");
        if (!r && is_spread(o, n) &&
            json_object_set_new(job, "topology", json_pack("{s:s, s:s}", "mode", "spread", "level", "host")) <
                    0)
                r = cli_oom(c);
        if (!r && json_object_set_new(role, "num", json_integer(n)) < 0)
                r = cli_oom(c);
        if (!r) {
                *ret_text = json_dumps(job, JSON_COMPACT);
                *ret_n = n;
                r = *ret_text ? 0 : cli_oom(c);
        }
        json_decref(role);
        json_decref(job);
        return r;
}

struct run {
        struct cli *cli;
        struct watch *watch;
        struct logstream *logs;
        struct logview view;
        struct interrupt *interrupt;
        sd_event *event;
        sd_event_source *drain, *waiting;
};

/* The executor that failed first, in words: what a person wants to know when the command failed. */
static void first_failure(struct run *run, char *buf, size_t size) {
        _cleanup_(sd_bus_message_unref_p) sd_bus_message *m = NULL, *reply = NULL;
        const struct executor *first = NULL;
        struct executor *list = NULL;
        char result[160];
        size_t n = 0;

        buf[0] = 0;
        if (cli_job_call(run->cli, watch_job(run->watch), "ListExecutors", &m) ||
            sd_bus_message_append(m, "b", 0) < 0 || sd_bus_call(run->cli->bus, m, 0, NULL, &reply) < 0 ||
            executors_read(reply, &list, &n) < 0)
                return;
        for (size_t i = 0; i < n; i++)
                if ((strcmp(list[i].state, "FAILED") == 0 || strcmp(list[i].state, "LOST") == 0) &&
                    (!first || list[i].ended < first->ended))
                        first = &list[i];
        if (first && *executor_result(first, result, sizeof(result)))
                snprintf(buf, size, ": rank %" PRIu32 " on %s: %s", first->index, first->node, result);
        executors_free(list, n);
}

static char *ask_reason(struct run *run) {
        _cleanup_(sd_bus_message_unref_p) sd_bus_message *m = NULL, *reply = NULL;
        _cleanup_(job_status_done) struct job_status s = { 0 };

        if (cli_job_call(run->cli, watch_job(run->watch), "GetStatus", &m) ||
            sd_bus_call(run->cli->bus, m, 0, NULL, &reply) < 0 || job_status_read(reply, &s) < 0)
                return NULL;
        return TAKE_PTR(s.reason);
}

/* Says why the job did not succeed, where the output alone may not, and leaves. */
static void end(struct run *run) {
        const char *state = watch_properties(run->watch)->state;
        int status = job_state_exit(state);
        _cleanup_free_ char *reason = NULL;
        char failure[300] = "";

        (void)logview_flush(&run->view);
        if (status != CLI_OK) {
                if (status == CLI_FAILED)
                        first_failure(run, failure, sizeof(failure));
                if (!*failure)
                        reason = ask_reason(run);
                cli_fail(run->cli, "job %" PRIu32 " %s%s%s%s", watch_job(run->watch)->number, state, failure,
                         reason && *reason ? ": " : "", reason ? reason : "");
        }
        (void)sd_event_exit(run->event, status);
}

static void on_logs_done(void *userdata) {
        struct run *run = userdata;

        if (!run->view.silent)
                end(run);
}

static int on_drained(sd_event_source *s, uint64_t usec, void *userdata) {
        struct run *run = userdata;

        if (run->view.silent)
                return 0;
        cli_fail(run->cli, "the end of the output has not come; 'primusctl logs %" PRIu32 "' may have it",
                 watch_job(run->watch)->number);
        end(run);
        return 0;
}

static void on_state(struct watch *w, void *userdata) {
        struct run *run = userdata;

        if (watch_ended(w) && !run->drain) {
                if (sd_event_add_time_relative(run->event, &run->drain, CLOCK_BOOTTIME, UINT64_C(10000000), 0,
                                               on_drained, run) < 0)
                        (void)sd_event_exit(run->event, cli_oom(run->cli));
                logstream_job_ended(run->logs, w);
        }
}

/* It has not begun after a moment: says what it waits for. */
static int on_waiting(sd_event_source *s, uint64_t usec, void *userdata) {
        struct run *run = userdata;
        const char *state = watch_properties(run->watch)->state;
        _cleanup_free_ char *reason = NULL;

        if (run->view.silent || !state || (strcmp(state, "QUEUED") != 0 && strcmp(state, "SUBMITTED") != 0))
                return 0;
        reason = ask_reason(run);
        cli_fail(run->cli, "job %" PRIu32 " waits%s%s", watch_job(run->watch)->number,
                 reason && *reason ? ": " : "", reason ? reason : "");
        return 0;
}

static void on_executor(struct watch *w, const struct executor *e, void *userdata) {
        struct run *run = userdata;

        logstream_executor(run->logs, w, e);
}

static void on_synced(struct watch *w, void *userdata) {
        struct run *run = userdata;

        logstream_synced(run->logs, w);
}

static void on_away(struct watch *w, void *userdata) {
        fprintf(stderr, "masterd is away; the job goes on, waiting for it to come back ...\n");
}

static void on_detached(void *userdata) {
        struct run *run = userdata;

        run->view.silent = true;
}

static int follow(struct run *run, const struct job_ref *job, const struct run_options *o, uint32_t n) {
        static const struct watch_handlers handlers = {
                .state = on_state,
                .executor = on_executor,
                .synced = on_synced,
                .away = on_away,
        };
        int r;

        run->view = (struct logview){
                .out = stdout,
                .tty = isatty(STDOUT_FILENO),
                .color = run->cli->color,
                .prefixed = n > 1,
                .json = run->cli->json,
        };
        r = logstream_new(run->cli, &(struct logstream_options){ .follow = true, .by_rank = true },
                          &run->view, &run->logs);
        if (!r)
                r = watch_new(run->cli, run->event, job, WATCH_ATTEMPTS, &handlers, run, &run->watch);
        if (!r)
                r = interrupt_new(run->cli, run->event, job, on_detached, run, &run->interrupt);
        if (!r && sd_event_add_time_relative(run->event, &run->waiting, CLOCK_BOOTTIME, UINT64_C(1000000), 0,
                                             on_waiting, run) < 0)
                r = cli_oom(run->cli);
        if (!r) {
                logstream_on_done(run->logs, on_logs_done, run);
                r = sd_event_loop(run->event);
        }
        return r < 0 ? cli_fail(run->cli, "%s", strerror(-r)) : r;
}

static int run_run(struct cli *c, void *options, char **args, size_t n_args) {
        struct run_options *o = options;
        struct submission s = {
                .after = o->after, .begin = o->begin, .turn = o->turn, .secrets = o->secrets
        };
        struct run run = { .cli = c };
        _cleanup_free_ char *text = NULL, *cwd = getcwd(NULL, 0);
        struct job_ref job;
        uint32_t n = 1;
        int r;

        (void)n_args;
        if (!cwd)
                return cli_fail(c, "the current directory: %s", strerror(errno));
        s.cwd = cwd;
        r = configure(c, o, args, &text, &n);
        if (!r)
                r = choose_env(c, o, &s.env);
        if (!r)
                r = watch_loop_new(c, &run.event);
        if (!r) {
                s.config = text;
                s.config_size = strlen(text);
                interrupt_block();
                r = submission_send(c, &s, &job);
        }
        if (!r)
                r = follow(&run, &job, o, n);
        fflush(stdout);
        free(s.env.items);
        interrupt_free(run.interrupt);
        sd_event_source_disable_unref(run.drain);
        sd_event_source_disable_unref(run.waiting);
        watch_free(run.watch);
        logstream_free(run.logs);
        if (run.event) {
                sd_bus_detach_event(c->bus);
                sd_event_unref(run.event);
        }
        return r;
}

static const struct cli_option run_options[] = {
        { "ntasks", 'n', "N", option_count, offsetof(struct run_options, n),
          "so many executors (1), ranks 0 to N-1" },
        { "hosts", 0, "H", option_string, offsetof(struct run_options, hosts),
          "on these hosts, n[1-3], or on so many" },
        { "per-host", 0, "K", option_count, offsetof(struct run_options, per_host),
          "with --hosts: exactly K on each (1)" },
        { "pack", 0, NULL, NULL, offsetof(struct run_options, pack),
          "on as few hosts as can be; otherwise, without GPUs, on as many" },
        { "cpus", 0, "C", option_string, offsetof(struct run_options, cpus),
          "cores for each, such as 2 or 0.5" },
        { "mem", 0, "SIZE", option_size, offsetof(struct run_options, memory),
          "memory for each, such as 4G" },
        { "gpus", 0, "G", option_number, offsetof(struct run_options, gpus), "GPUs for each" },
        { "time", 't', "T", option_duration, offsetof(struct run_options, time),
          "stop the job after T, such as 2h or 01:30:00" },
        TURN_OPTIONS(run_options, turn),
        { "name", 0, "X", option_string, offsetof(struct run_options, name),
          "the job's name (the command's)" },
        { "after", 0, "JOB[:ok|fail|any]", option_append, offsetof(struct run_options, after),
          "start when that job has ended: well (ok), not well (fail), in any way" },
        { "begin", 0, "TIME", option_string, offsetof(struct run_options, begin),
          "not before, such as 08:00, \"tomorrow 08:00\", +2h" },
        { "env", 0, "NAME[=VALUE]", option_append, offsetof(struct run_options, env),
          "only these variables instead of the caller's environment" },
        { "no-env", 0, NULL, NULL, offsetof(struct run_options, no_env), "none of the caller's environment" },
        { "secret", 0, "NAME=FILE", option_append, offsetof(struct run_options, secrets),
          "a private file $PRIMUS_SECRETS_DIR/NAME" },
        { "output", 'o', "PATTERN", option_string, offsetof(struct run_options, output),
          "the executors write files instead: %j job, %i rank, %a attempt, %n node" },
        { 0 },
};

const struct command run_command = {
        .name = "run",
        .arguments = "[OPTIONS] -- COMMAND [ARGUMENT...]",
        .help = "Run a command as a job, show its output, return its status",
        .details = "Runs in the current directory (a shared file system) with the caller's environment, less "
                   "what belongs to\n"
                   "the session. With more than one rank every line begins with \"[RANK] \". Ctrl-C "
                   "detaches, the job goes on;\n"
                   "a second one within a second kills it. Exit status: 0 succeeded, 1 failed, 3 killed, 130 "
                   "detached.",
        .options = run_options,
        .options_size = sizeof(struct run_options),
        .lists = { offsetof(struct run_options, env) + 1, offsetof(struct run_options, secrets) + 1,
                   offsetof(struct run_options, after) + 1 },
        .min = 1,
        .max = SIZE_MAX,
        .stops = true,
        .run = run_run,
};
