/* SPDX-License-Identifier: Apache-2.0 */
/* primusctl run: a command as a job, its output here, its status as ours. */
#include <inttypes.h>
#include <jansson.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/base/hostlist.h"
#include "lib/base/names.h"
#include "lib/base/parse.h"
#include "lib/base/utf8.h"
#include "tools/primusctl/bus/interrupt.h"
#include "tools/primusctl/bus/pack.h"
#include "tools/primusctl/bus/watch.h"
#include "tools/primusctl/cli/commands.h"
#include "tools/primusctl/cli/text.h"
#include "tools/primusctl/commands/run-follow.h"
#include "tools/primusctl/commands/run.h"
#include "tools/primusctl/commands/submit.h"

#define HOSTS_MAX 10000u

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

int run_environment(const struct cli *c, const struct run_options *o, struct option_list *ret) {
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

static int set_argv(const struct cli *c, json_t *role, char *const *args) {
        json_t *argv = json_array();

        for (char *const *a = args; *a; a++) {
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
int run_configure(const struct cli *c, const struct run_options *o, char *const *args, const char *files,
                  char **ret_text, uint32_t *ret_n) {
        json_t *role = json_pack("{s:s, s:i, s:{s:{s:s, s:i, s:s}}}", "roleName", RUN_ROLE, "successPercent",
                                 100, "failover", "commonFailoverPolicy", "restartType", "NEVER",
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
        /* A status is to come back as it is; 75 would put the job back into the queue, for ever. */
        if (!r && !o->turn.requeue &&
            json_object_set_new(role, "exitCodes",
                                json_pack("[{s:s, s:s}]", "codes", "75", "action", "fail")) < 0)
                r = cli_oom(c);
        if (!r && files && json_object_set_new(job, "files", json_pack("[s]", files)) < 0)
                r = cli_oom(c);
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

static int check_options(const struct cli *c, const struct run_options *o) {
        if (o->parsable && !o->detach)
                return cli_usage(
                        c, "--parsable goes with --detach; with the output, --json tells the job's number");
        if (o->parsable && c->json)
                return cli_usage(c, "--parsable and --json exclude each other");
        if (o->array && (o->pty || o->input))
                return cli_usage(
                        c,
                        "%s: an array has no standard input; each element can read a file of its own, by "
                        "$PRIMUS_ARRAY_INDEX",
                        o->pty ? "--pty" : "--input");
        if (o->send_max && !o->send)
                return cli_usage(c, "--send-max goes with --send");
        if (o->send && o->output && *o->output != '/')
                return cli_usage(
                        c, "--output: with --send an absolute path; the work directory goes with the job");
        return 0;
}

void run_options_done(struct run_options *o) {
        free(o->env.items);
        free(o->secrets.items);
        free(o->after.items);
}

/* Of --json, the first line. */
static int print_number(const struct cli *c, const struct job_ref *job) {
        printf("{\"job\":%" PRIu32 "}\n", job->number);
        return fflush(stdout) == EOF ? cli_fail(c, "cannot write to standard output: %s", strerror(errno))
                                     : 0;
}

/* The folder becomes the work directory. */
static int send_folder(struct cli *c, const struct run_options *o, struct bundle *ret) {
        static const char *const all[] = { ".", NULL };
        struct stat st;
        int r;

        if (stat(o->send, &st) < 0)
                return cli_fail(c, "--send: %s: %s", o->send, strerror(errno));
        if (!S_ISDIR(st.st_mode))
                return cli_fail(
                        c, "--send: %s: is not a folder; it becomes the directory that the command runs in",
                        o->send);
        r = bundle_pack(c, "--send", o->send, all, o->send_max, ret);
        return r ? r : bundle_upload(c, ret);
}

static int run_run(struct cli *c, void *options, char **args, size_t n_args) {
        struct run_options *o = options;
        struct submission s = { .after = o->after,
                                .array = o->array,
                                .begin = o->begin,
                                .turn = o->turn,
                                .secrets = o->secrets };
        _cleanup_free_ char *text = NULL, *cwd = o->send ? NULL : getcwd(NULL, 0);
        _cleanup_(bundle_done) struct bundle bundle = { .fd = -EBADF };
        struct run_stdio_options stdio = { 0 };
        struct run_follow f = { .sent = o->send != NULL, .stdio = &stdio };
        _cleanup_free_ char **wrapped = NULL;
        char rank[16];
        sd_event *event = NULL;
        struct job_ref job;
        int r;

        (void)n_args;
        if (!cwd && !o->send)
                return cli_fail(c, "the current directory: %s", strerror(errno));
        s.cwd = cwd;
        r = check_options(c, o);
        if (!r && !o->array)
                r = run_stdio_choose(c, o->input, o->pty, o->detach, &stdio);
        if (!o->name)
                o->name = basename(args[0]);
        if (!r && stdio.wanted) {
                r = run_stdio_wrap(c, &stdio, args, &s.env, rank, &wrapped);
                args = wrapped;
        }
        if (!r)
                r = run_configure(c, o, args, o->send ? "." : NULL, &text, &f.n);
        if (!r && stdio.wanted && stdio.rank >= f.n)
                r = cli_usage(c, "--input: there is no rank %" PRIu32 ", the last is %" PRIu32, stdio.rank,
                              f.n - 1);
        stdio.lines = f.n > 1;
        if (!r)
                r = run_environment(c, o, &s.env);
        if (!r)
                r = watch_loop_new(c, &event);
        if (!r) {
                s.config = text;
                s.config_size = strlen(text);
                r = o->send ? send_folder(c, o, &bundle) : 0;
                s.bundle = o->send ? bundle.sha256 : NULL;
                if (!o->detach)
                        interrupt_block();
        }
        if (!r)
                r = submission_send(c, &s, &job);
        if (!r && o->detach)
                r = submit_announce(c, &job, o->name, o->parsable);
        else if (!r) {
                r = c->json ? print_number(c, &job) : 0;
                if (!r)
                        r = o->array ? run_follow_array(c, event, &job) : run_follow(c, event, &job, &f);
        }
        free(s.env.items);
        if (event) {
                sd_bus_detach_event(c->bus);
                sd_event_unref(event);
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
        { "send", 's', "DIR", option_string, offsetof(struct run_options, send),
          "send this folder along and run in it, where hosts share no directory" },
        { "send-max", 0, "SIZE", option_size, offsetof(struct run_options, send_max),
          "with --send: up to so many bytes (512M)" },
        { "pty", 0, NULL, NULL, offsetof(struct run_options, pty),
          "the command has a terminal, which is this one" },
        { "input", 0, "RANK|none", option_string, offsetof(struct run_options, input),
          "who reads standard input (0)" },
        { "array", 0, "RANGE[%N]", option_string, offsetof(struct run_options, array),
          "the same job for each index of 0-9, 1,3,5 or 0-100:10; %N: N at a time" },
        { "detach", 'd', NULL, NULL, offsetof(struct run_options, detach),
          "do not wait: say the job's number and leave" },
        { "parsable", 0, NULL, NULL, offsetof(struct run_options, parsable),
          "with --detach: print the number alone" },
        { 0 },
};

const struct command run_command = {
        .name = "run",
        .arguments = "[OPTIONS] -- COMMAND [ARGUMENT...]",
        .help = "Run a command as a job, show its output, return its status",
        .details =
                "Runs in the current directory (a shared file system, or with --send a copy of it) with the\n"
                "caller's environment, less what belongs to the session. Standard input goes to rank 0. "
                "With\n"
                "more than one rank every line begins with \"[RANK] \". Ctrl-C detaches, the job goes on; a\n"
                "second one within a second kills it.\n"
                "Exit status: the command's, of several the first that failed; 128 + N when signal N killed "
                "it,\n"
                "3 when the job was killed, 4 without an answer from masterd, 130 detached.",
        .options = run_options,
        .options_size = sizeof(struct run_options),
        .lists = { offsetof(struct run_options, env) + 1, offsetof(struct run_options, secrets) + 1,
                   offsetof(struct run_options, after) + 1 },
        .min = 1,
        .max = SIZE_MAX,
        .stops = true,
        .run = run_run,
};
