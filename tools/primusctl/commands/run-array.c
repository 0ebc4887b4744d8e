/* SPDX-License-Identifier: Apache-2.0 */
/* Following an array that "run" submitted: the lines of its elements, each with the index, and the status of
 * the first index that failed. */
#include <inttypes.h>
#include <string.h>

#include "tools/primusctl/bus/ask.h"
#include "tools/primusctl/bus/interrupt.h"
#include "tools/primusctl/bus/watch.h"
#include "tools/primusctl/commands/arraylogs.h"
#include "tools/primusctl/commands/run-follow.h"

struct run_array {
        struct cli *cli;
        sd_event *event;
        struct logview view;
        struct watch *watch;
        bool shown;
};

/* The status of an element as its own "run" would give it. */
static int element_status(struct cli *c, uint32_t array, uint32_t index) {
        const struct executor *first = NULL;
        struct executor *list = NULL;
        struct job_ref element;
        char name[32];
        size_t n = 0;
        int status;

        snprintf(name, sizeof(name), "%" PRIu32 "[%" PRIu32 "]", array, index);
        if (cli_job(c, name, &element) || ask_executors(c, &element, false, &list, &n))
                return CLI_FAILED;
        for (size_t i = 0; i < n; i++)
                if ((strcmp(list[i].state, "FAILED") == 0 || strcmp(list[i].state, "LOST") == 0) &&
                    (!first || list[i].ended < first->ended))
                        first = list + i;
        status = first ? run_exit_status(first) : CLI_FAILED;
        executors_free(list, n);
        return status;
}

static int tell_end(struct run_array *run) {
        const struct job_ref *job = watch_job(run->watch);
        const char *state = watch_properties(run->watch)->state;
        _cleanup_(job_status_done) struct job_status status = { 0 };
        int r = job_exit(watch_properties(run->watch));

        if (r != CLI_OK && !ask_status(run->cli, job, &status)) {
                if (job_state_exit(state) == CLI_FAILED && status.array.failed > 0)
                        r = element_status(run->cli, job->number, status.array.first_failed);
                cli_fail(run->cli, "job %" PRIu32 " %s%s%s", job->number, state, status.reason ? ": " : "",
                         status.reason ? status.reason : "");
        }
        if (run->cli->json) {
                printf("{\"job\":%" PRIu32 ",\"state\":\"%s\",\"exitStatus\":%d}\n", job->number, state, r);
                if (fflush(stdout) == EOF)
                        return cli_fail(run->cli, "cannot write to standard output: %s", strerror(errno));
        }
        return r;
}

static void end_if_over(struct run_array *run) {
        if (run->shown && !run->view.silent && watch_ended(run->watch))
                (void)sd_event_exit(run->event, tell_end(run));
}

static void on_done(void *userdata) {
        struct run_array *run = userdata;

        run->shown = true;
        end_if_over(run);
}

static void on_state(struct watch *w, void *userdata) {
        end_if_over(userdata);
}

static void on_away(struct watch *w, void *userdata) {
        cli_note("masterd is away; the array goes on, waiting for it to come back ...");
}

static void on_detached(void *userdata) {
        struct run_array *run = userdata;

        run->view.silent = true;
}

int run_follow_array(struct cli *c, sd_event *event, const struct job_ref *job) {
        static const struct watch_handlers handlers = { .state = on_state,
                                                        .synced = on_state,
                                                        .away = on_away };
        const struct logstream_options options = { .follow = true };
        struct run_array run = {
                .cli = c,
                .event = event,
                .view = { .out = stdout,
                          .tty = isatty(STDOUT_FILENO),
                          .color = c->color,
                          .json = c->json,
                          .prefixed = true },
        };
        struct interrupt *interrupt = NULL;
        struct arraylogs *logs = NULL;
        int r = watch_new(c, event, job, WATCH_STATE, &handlers, &run, &run.watch);

        if (!r)
                r = arraylogs_new(c, event, job, &options, &run.view, on_done, &run, &logs);
        if (!r)
                r = interrupt_new(c, event, job, on_detached, &run, &interrupt);
        if (!r)
                r = sd_event_loop(event);
        r = r < 0 ? cli_fail(c, "%s", strerror(-r)) : r;
        if (fflush(stdout) == EOF && r == CLI_OK)
                r = cli_fail(c, "cannot write to standard output: %s", strerror(errno));
        interrupt_free(interrupt);
        arraylogs_free(logs);
        watch_free(run.watch);
        return r;
}
