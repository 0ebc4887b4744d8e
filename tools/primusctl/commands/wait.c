/* SPDX-License-Identifier: Apache-2.0 */
/* primusctl wait and kill. */
#include <inttypes.h>
#include <jansson.h>
#include <string.h>

#include "lib/base/parse.h"
#include "tools/primusctl/bus/ask.h"
#include "tools/primusctl/bus/watch.h"
#include "tools/primusctl/cli/commands.h"

#define JOBS_MAX 500u /* a match or two each; the bus allows 512 */

struct waiting {
        struct cli *cli;
        sd_event *event;
        size_t n, left;
        int killed; /* with that status; 0: none was */
        bool failed, quiet;
};

static void on_state(struct watch *w, void *userdata) {
        struct waiting *waiting = userdata;
        const struct job_properties *p = watch_properties(w);
        int status;

        if (!watch_ended(w))
                return;
        status = job_exit(p);
        if (job_state_exit(p->state) == CLI_KILLED)
                waiting->killed = waiting->n == 1 ? status : CLI_KILLED;
        else
                waiting->failed |= status == CLI_FAILED;
        if (waiting->cli->json)
                (void)cli_print_json(waiting->cli,
                                     json_pack("{s:I, s:s, s:i}", "job", (json_int_t)watch_job(w)->number,
                                               "state", p->state, "exitStatus", status));
        else if (!waiting->quiet) {
                printf("Job %" PRIu32 " %s\n", watch_job(w)->number, p->state);
                fflush(stdout);
        }
        if (--waiting->left == 0)
                (void)sd_event_exit(waiting->event, waiting->failed ? CLI_FAILED : waiting->killed);
}

static const struct watch_handlers wait_handlers = { .state = on_state };

struct wait_options {
        bool quiet;
};

static int wait_run(struct cli *c, void *options, char **args, size_t n) {
        struct wait_options *o = options;
        struct waiting waiting = { .cli = c, .quiet = o->quiet };
        struct watch *watches[JOBS_MAX] = { NULL };
        size_t jobs = n > 0 ? n : 1;
        int r;

        if (jobs > JOBS_MAX)
                return cli_usage(c, "more than %u jobs at once", JOBS_MAX);
        waiting.n = waiting.left = jobs;
        r = watch_loop_new(c, &waiting.event);
        for (size_t i = 0; !r && i < jobs; i++) {
                struct job_ref job;

                r = cli_job(c, n > 0 ? args[i] : NULL, &job);
                if (!r)
                        r = watch_new(c, waiting.event, &job, WATCH_STATE, &wait_handlers, &waiting,
                                      &watches[i]);
        }
        if (!r)
                r = sd_event_loop(waiting.event);
        for (size_t i = 0; i < jobs; i++)
                watch_free(watches[i]);
        if (waiting.event) {
                sd_bus_detach_event(c->bus);
                sd_event_unref(waiting.event);
        }
        return r < 0 ? cli_fail(c, "%s", strerror(-r)) : r;
}

static const struct cli_option wait_options[] = {
        { "quiet", 'q', NULL, NULL, offsetof(struct wait_options, quiet),
          "print nothing, the exit status says it" },
        { 0 },
};

const struct command wait_command = {
        .name = "wait",
        .arguments = "[-q] [JOB...]",
        .help = "Wait until jobs have ended",
        .details =
                "Exit status: 0 all succeeded, 1 one failed, 3 one was killed and none failed; of a single\n"
                "job what its kill gave it, if that did.",
        .options = wait_options,
        .options_size = sizeof(struct wait_options),
        .max = SIZE_MAX,
        .run = wait_run,
};

struct kill_options {
        const char *reason, *grace;
        uint64_t grace_usec; /* with grace */
        uint32_t status;     /* 0: the usual one */
};

static int append_kill_options(sd_bus_message *m, const struct kill_options *o) {
        int r = sd_bus_message_open_container(m, 'a', "{sv}");

        r = r < 0 ? r : sd_bus_message_append(m, "{sv}", "reason", "s", o->reason ?: "");
        if (o->grace)
                r = r < 0 ? r : sd_bus_message_append(m, "{sv}", "grace", "t", o->grace_usec);
        if (o->status > 0)
                r = r < 0 ? r : sd_bus_message_append(m, "{sv}", "exitStatus", "u", o->status);
        return r < 0 ? r : sd_bus_message_close_container(m);
}

/* Kill is what a masterd of before the options knows. */
static int ask_kill(struct cli *c, const struct job_ref *job, const struct kill_options *o,
                    sd_bus_message **ret) {
        bool with = o->grace || o->status > 0;
        sd_bus_message *m = NULL;
        int r = cli_job_call(c, job, with ? "KillWith" : "Kill", &m);

        if (r)
                return r;
        r = with ? append_kill_options(m, o) : sd_bus_message_append(m, "s", o->reason ?: "");
        if (r < 0) {
                sd_bus_message_unref(m);
                return cli_usage(c, "'%s' is not valid UTF-8", o->reason ?: "");
        }
        *ret = m;
        return CLI_OK;
}

/* Of a job that has ended masterd has nothing against it, since what is wanted holds already: no failure. */
static int kill_one(struct cli *c, const char *text, const struct kill_options *o) {
        _cleanup_(sd_bus_message_unref_p) sd_bus_message *m = NULL, *reply = NULL;
        _cleanup_(job_properties_done) struct job_properties p = { 0 };
        struct job_ref job;
        int r = cli_job(c, text, &job);

        if (!r)
                r = ask_properties(c, &job, &p);
        if (!r)
                r = ask_kill(c, &job, o, &m);
        if (!r)
                r = cli_call(c, m, &job, &reply);
        if (!r && !c->json && job_state_exit(p.state) < 0)
                printf("Job %" PRIu32 " is being killed\n", job.number);
        else if (!r && !c->json)
                printf("Job %" PRIu32 " has ended already: %s\n", job.number, p.state);
        return r;
}

static int kill_run(struct cli *c, void *options, char **args, size_t n) {
        struct kill_options *o = options;
        int worst = CLI_OK;

        if (o->grace && parse_duration(o->grace, &o->grace_usec) < 0)
                return cli_usage(c, "--grace: expected a duration like 30s, not '%s'", o->grace);
        for (size_t i = 0; i < n; i++) {
                int r = kill_one(c, args[i], o);

                if (r == CLI_UNREACHABLE || r == CLI_USAGE)
                        return r;
                worst = r ?: worst;
        }
        return worst;
}

static int succeed_run(struct cli *c, void *options, char **args, size_t n) {
        struct kill_options *o = options;

        return cli_each_job(c, args, n, "Succeed", o->reason ?: "", "ends as a success");
}

#define REASON                                                                                               \
        { "reason", 0, "TEXT", option_string, offsetof(struct kill_options, reason), "for the job's events" }

static int option_kill_status(const char *value, void *target, const char **ret_why) {
        *ret_why = "a number from 1 to 125";
        return parse_u32(value, 1, 125, target);
}

static const struct cli_option kill_options[] = {
        REASON,
        { "grace", 0, "TIME", option_string, offsetof(struct kill_options, grace),
          "between SIGTERM and SIGKILL, instead of the job's own" },
        { "exit-status", 0, "N", option_kill_status, offsetof(struct kill_options, status),
          "what wait and run exit with, instead of 3 (1 to 125)" },
        { 0 },
};

static const struct cli_option succeed_options[] = {
        REASON,
        { 0 },
};

const struct command kill_command = {
        .name = "kill",
        .arguments = "[--reason=TEXT] [--grace=TIME] [--exit-status=N] JOB...",
        .help = "Stop jobs for good",
        .details =
                "The executors get SIGTERM, and SIGKILL when their grace is over. An array is stopped as a\n"
                "whole. Of a job that has ended already it says how, which is no failure. With --grace (0 to\n"
                "7d) they get that long, whatever the job says; of a job that is being stopped already it can\n"
                "only get shorter.",
        .options = kill_options,
        .options_size = sizeof(struct kill_options),
        .min = 1, /* never a job that nobody named */
        .max = SIZE_MAX,
        .run = kill_run,
};

const struct command succeed_command = {
        .name = "succeed",
        .arguments = "[--reason=TEXT] JOB...",
        .help = "End running jobs as successes",
        .details =
                "For a job that is good enough. The executors are stopped as by kill; the job is SUCCEEDED,\n"
                "and jobs that wait for its success begin.",
        .options = succeed_options,
        .options_size = sizeof(struct kill_options),
        .min = 1,
        .max = SIZE_MAX,
        .run = succeed_run,
};
