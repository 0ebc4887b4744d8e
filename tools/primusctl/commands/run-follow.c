/* SPDX-License-Identifier: Apache-2.0 */
/* Following a job that "run" submitted. Invariant: the status is given when its output has been shown to the
 * end. */
#include "tools/primusctl/commands/run-follow.h"

#include <inttypes.h>
#include <jansson.h>
#include <signal.h>
#include <string.h>

#include "tools/primusctl/bus/interrupt.h"
#include "tools/primusctl/bus/terminal.h"
#include "tools/primusctl/bus/watch.h"
#include "tools/primusctl/commands/logstream.h"
#include "tools/primusctl/commands/status.h"
#include "tools/primusctl/view/users.h"

/* systemd.exec(5): the working directory could not be entered. */
#define EXIT_CHDIR 200

struct run {
        struct cli *cli;
        const struct run_follow *options;
        struct watch *watch;
        struct logstream *logs;
        struct logview view;
        struct interrupt *interrupt;
        struct run_stdio *stdio; /* NULL: it has none */
        sd_event *event;
        sd_event_source *drain, *waiting;
};

int run_exit_status(const struct executor *e) {
        const char *result = e->result ? e->result : "";

        if (strcmp(result, "oom-kill") == 0)
                return 128 + SIGKILL;
        if (!e->has_status || e->status <= 0)
                return CLI_FAILED;
        if (strcmp(result, "exit-code") == 0)
                return e->status < 256 ? e->status : CLI_FAILED;
        if (strcmp(result, "signal") == 0 || strcmp(result, "core-dump") == 0)
                return e->status < 128 ? 128 + e->status : CLI_FAILED;
        return CLI_FAILED;
}

/* The executor that failed first: what a person wants to know when the command failed, in words, and its
 * status. */
static int first_failure(struct run *run, char *buf, size_t size, bool *ret_no_directory) {
        _cleanup_(sd_bus_message_unref_p) sd_bus_message *m = NULL, *reply = NULL;
        _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
        const struct executor *first = NULL;
        struct executor *list = NULL;
        int status = CLI_FAILED;
        char result[160];
        size_t n = 0;

        buf[0] = 0;
        if (cli_job_call(run->cli, watch_job(run->watch), "ListExecutors", &m) ||
            sd_bus_message_append(m, "b", 0) < 0 || cli_send(run->cli, m, &error, &reply) < 0 ||
            executors_read(reply, &list, &n) < 0)
                return status;
        for (size_t i = 0; i < n; i++)
                if ((strcmp(list[i].state, "FAILED") == 0 || strcmp(list[i].state, "LOST") == 0) &&
                    (!first || list[i].ended < first->ended))
                        first = &list[i];
        if (first) {
                status = run_exit_status(first);
                if (status == EXIT_CHDIR && first->reason && *first->reason)
                        *ret_no_directory = true;
                if (*executor_result(first, result, sizeof(result)))
                        snprintf(buf, size, "rank %" PRIu32 " on %s: %s", first->index, first->node, result);
        }
        executors_free(list, n);
        return status;
}

static char *ask_reason(struct run *run) {
        _cleanup_(sd_bus_message_unref_p) sd_bus_message *m = NULL, *reply = NULL;
        _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
        _cleanup_(job_status_done) struct job_status s = { 0 };

        if (cli_job_call(run->cli, watch_job(run->watch), "GetStatus", &m) ||
            cli_send(run->cli, m, &error, &reply) < 0 || job_status_read(reply, &s) < 0)
                return NULL;
        return users_named(s.reason, user_lookup_here);
}

/* The last line of --json. */
static int print_end(const struct run *run, const char *state, int status, const char *why) {
        json_t *o = json_pack("{s:I, s:s, s:i}", "job", (json_int_t)watch_job(run->watch)->number, "state",
                              state, "exitStatus", status);
        int r;

        if (!o || (*why && json_object_set_new(o, "reason", json_string(why)) < 0)) {
                json_decref(o);
                return cli_oom(run->cli);
        }
        r = json_dumpf(o, stdout, JSON_COMPACT);
        json_decref(o);
        return r < 0 || putchar('\n') == EOF || fflush(stdout) == EOF
                       ? cli_fail(run->cli, "cannot write to standard output: %s", strerror(errno))
                       : status;
}

/* Says why the job did not succeed, where the output alone may not, and leaves. */
static void end(struct run *run) {
        const char *state = watch_properties(run->watch)->state, *why = "";
        int status = job_exit(watch_properties(run->watch));
        _cleanup_free_ char *reason = NULL;
        bool no_directory = false;
        char failure[300] = "";

        terminal_restore();
        (void)logview_flush(&run->view);
        if (status != CLI_OK) {
                if (job_state_exit(state) == CLI_FAILED)
                        status = first_failure(run, failure, sizeof(failure), &no_directory);
                why = failure;
                if (!*failure) {
                        reason = ask_reason(run);
                        why = reason ? reason : "";
                }
                cli_fail(run->cli, "job %" PRIu32 " %s%s%s", watch_job(run->watch)->number, state,
                         *why ? ": " : "", why);
                if (no_directory && !run->options->sent)
                        cli_note("%s: where the hosts do not share a directory, 'primusctl run --send . -- "
                                 "...' sends it along",
                                 run->cli->program);
        }
        if (run->cli->json)
                status = print_end(run, state, status, why);
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
        cli_note("%s: job %" PRIu32 " waits%s%s", run->cli->program, watch_job(run->watch)->number,
                 reason && *reason ? ": " : "", reason ? reason : "");
        return 0;
}

static void on_executor(struct watch *w, const struct executor *e, void *userdata) {
        struct run *run = userdata;

        logstream_executor(run->logs, w, e);
        if (run->stdio)
                run_stdio_executor(run->stdio, e);
}

static void on_synced(struct watch *w, void *userdata) {
        struct run *run = userdata;

        logstream_synced(run->logs, w);
}

static void on_away(struct watch *w, void *userdata) {
        cli_note("masterd is away; the job goes on, waiting for it to come back ...");
}

static bool is_needed(void *userdata) {
        struct run *run = userdata;

        return run->stdio && !watch_ended(run->watch) && run_stdio_needed(run->stdio);
}

static void on_detached(void *userdata) {
        struct run *run = userdata;

        terminal_restore();
        run->view.silent = true;
}

static int follow(struct run *run, const struct job_ref *job, const struct run_follow *o) {
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
                .prefixed = o->n > 1,
                .json = run->cli->json,
        };
        r = logstream_new(run->cli, &(struct logstream_options){ .follow = true, .by_rank = true },
                          &run->view, &run->logs);
        if (!r && o->stdio && o->stdio->wanted)
                r = run_stdio_new(run->cli, run->event, job, o->stdio, &run->stdio);
        if (!r)
                r = watch_new(run->cli, run->event, job, WATCH_ATTEMPTS, &handlers, run, &run->watch);
        if (!r)
                r = interrupt_new(run->cli, run->event, job, on_detached, run, &run->interrupt);
        if (!r)
                interrupt_kill_if(run->interrupt, is_needed);
        if (!r && sd_event_add_time_relative(run->event, &run->waiting, CLOCK_BOOTTIME, UINT64_C(1000000), 0,
                                             on_waiting, run) < 0)
                r = cli_oom(run->cli);
        if (!r) {
                logstream_on_done(run->logs, on_logs_done, run);
                r = sd_event_loop(run->event);
        }
        return r < 0 ? cli_fail(run->cli, "%s", strerror(-r)) : r;
}

int run_follow(struct cli *c, sd_event *event, const struct job_ref *job, const struct run_follow *o) {
        struct run run = { .cli = c, .options = o, .event = event };
        int r = follow(&run, job, o);

        fflush(stdout);
        interrupt_free(run.interrupt);
        run_stdio_free(run.stdio);
        sd_event_source_disable_unref(run.drain);
        sd_event_source_disable_unref(run.waiting);
        watch_free(run.watch);
        logstream_free(run.logs);
        return r;
}
