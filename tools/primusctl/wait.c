/* SPDX-License-Identifier: Apache-2.0 */
/* primusctl wait and kill. */
#include <inttypes.h>
#include <jansson.h>
#include <string.h>

#include "tools/primusctl/commands.h"
#include "tools/primusctl/watch.h"

#define JOBS_MAX 500u /* a match or two each; the bus allows 512 */

struct waiting {
        struct cli *cli;
        sd_event *event;
        size_t left;
        bool failed, killed, quiet;
};

static void on_state(struct watch *w, void *userdata) {
        struct waiting *waiting = userdata;
        const struct job_properties *p = watch_properties(w);
        int status;

        if (!watch_ended(w))
                return;
        status = job_state_exit(p->state);
        waiting->failed |= status == CLI_FAILED;
        waiting->killed |= status == CLI_KILLED;
        if (waiting->cli->json)
                (void)cli_print_json(waiting->cli,
                                     json_pack("{s:I, s:s, s:i}", "job", (json_int_t)watch_job(w)->number,
                                               "state", p->state, "exitStatus", status));
        else if (!waiting->quiet) {
                printf("Job %" PRIu32 " %s\n", watch_job(w)->number, p->state);
                fflush(stdout);
        }
        if (--waiting->left == 0)
                (void)sd_event_exit(waiting->event, waiting->failed   ? CLI_FAILED
                                                    : waiting->killed ? CLI_KILLED
                                                                      : CLI_OK);
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
        waiting.left = jobs;
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
        .details = "Exit status: 0 all succeeded, 1 one failed, 3 one was killed and none failed.",
        .options = wait_options,
        .options_size = sizeof(struct wait_options),
        .max = SIZE_MAX,
        .run = wait_run,
};

struct kill_options {
        const char *reason;
};

static int kill_run(struct cli *c, void *options, char **args, size_t n) {
        struct kill_options *o = options;

        return cli_each_job(c, args, n, "Kill", o->reason ?: "", "is being killed");
}

static const struct cli_option kill_options[] = {
        { "reason", 0, "TEXT", option_string, offsetof(struct kill_options, reason), "for the job's events" },
        { 0 },
};

const struct command kill_command = {
        .name = "kill",
        .arguments = "[--reason=TEXT] JOB...",
        .help = "Stop jobs for good",
        .details = "The executors get SIGTERM, and SIGKILL when their grace is over.",
        .options = kill_options,
        .options_size = sizeof(struct kill_options),
        .min = 1, /* never a job that nobody named */
        .max = SIZE_MAX,
        .run = kill_run,
};
