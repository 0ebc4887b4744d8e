/* SPDX-License-Identifier: Apache-2.0 */
/* primusctl logs. */
#include <inttypes.h>
#include <string.h>

#include "lib/base/parse.h"
#include "tools/primusctl/commands.h"
#include "tools/primusctl/logstream.h"
#include "tools/primusctl/progress.h"
#include "tools/primusctl/watch.h"

struct logs_options {
        bool follow;
        uint32_t tail;
        const char *output;
};

struct logs {
        struct cli *cli;
        sd_event *event;
        struct watch *watch;
        struct logstream *stream;
        struct logview view;
        struct logstream_options options;
        bool synced;
};

static void on_done(void *userdata) {
        struct logs *l = userdata;

        (void)sd_event_exit(l->event, CLI_OK);
}

static void on_state(struct watch *w, void *userdata) {
        struct logs *l = userdata;

        if (watch_ended(w))
                logstream_job_ended(l->stream, w);
}

static void on_executor(struct watch *w, const struct executor *e, void *userdata) {
        struct logs *l = userdata;

        logstream_executor(l->stream, w, e);
}

static void on_synced(struct watch *w, void *userdata) {
        struct logs *l = userdata;
        size_t n, matching = 0;
        const struct executor *e = watch_executors(w, &n);

        for (size_t i = 0; i < n; i++)
                matching += (!l->options.role || strcmp(l->options.role, e[i].role) == 0) &&
                            (!l->options.has_index || l->options.index == e[i].index);
        if (matching == 0 && l->options.role) {
                if (!l->options.has_index) {
                        cli_fail(l->cli, "job %" PRIu32 " has no role %s", watch_job(w)->number,
                                 l->options.role);
                        (void)sd_event_exit(l->event, CLI_FAILED);
                        return;
                }
                logstream_left(l->stream, w, l->options.role, l->options.index); /* scaled away, perhaps */
        }
        /* One executor alone is shown as it wrote; decided once, before the first byte. */
        if (!l->synced)
                l->view.prefixed = matching > 1;
        l->synced = true;
        logstream_synced(l->stream, w);
}

static void on_away(struct watch *w, void *userdata) {
        fprintf(stderr, "masterd is away; waiting for it to come back ...\n");
}

static const struct watch_handlers handlers = {
        .state = on_state,
        .executor = on_executor,
        .synced = on_synced,
        .away = on_away,
};

static int logs_run(struct cli *c, void *options, char **args, size_t n) {
        struct logs_options *o = options;
        struct logs l = { .cli = c };
        _cleanup_free_ char *role = NULL;
        struct job_ref job;
        uint32_t number, index;
        size_t n_executors = 0;
        int r = 0;

        /* JOB may be left out before ROLE: a role never begins with a digit. */
        const char *job_text =
                n > 0 && (job_number_parse(args[0], &number) || element_parse(args[0], &number, &index))
                        ? args[0]
                        : NULL;
        const char *role_text = job_text ? (n > 1 ? args[1] : NULL) : n > 0 ? args[0] : NULL;

        if (!job_text && n > 1)
                return cli_usage(c, "not a job's number: %s", args[0]);
        l.options = (struct logstream_options){ .follow = o->follow, .tail = o->tail, .output = o->output };
        if (role_text)
                r = role_parse(c, role_text, &role, &l.options.index, &l.options.has_index);
        if (!r)
                r = cli_job(c, job_text, &job);
        if (r)
                return r;
        l.options.role = role;
        l.view = (struct logview){
                .out = stdout,
                .tty = isatty(STDOUT_FILENO),
                .color = c->color,
                .json = c->json,
        };
        r = watch_loop_new(c, &l.event);
        if (!r)
                r = logstream_new(c, &l.options, &l.view, &l.stream);
        if (!r) {
                logstream_on_done(l.stream, on_done, &l);
                r = watch_new(c, l.event, &job, WATCH_ATTEMPTS, &handlers, &l, &l.watch);
        }
        if (!r)
                r = sd_event_loop(l.event);
        if (fflush(stdout) == EOF && r == 0)
                r = cli_fail(c, "cannot write to standard output: %s", strerror(errno));
        if (r == CLI_OK && watch_executors(l.watch, &n_executors) && n_executors == 0)
                fprintf(stderr,
                        "primusctl: job %" PRIu32 " has no executors of its own; an array's output is its "
                        "elements': primusctl logs '%" PRIu32 "[INDEX]'\n",
                        job.number, job.number);
        watch_free(l.watch);
        logstream_free(l.stream);
        if (l.event) {
                sd_bus_detach_event(c->bus);
                sd_event_unref(l.event);
        }
        return r < 0 ? cli_fail(c, "%s", strerror(-r)) : r;
}

static const struct cli_option logs_options[] = {
        { "follow", 'f', NULL, NULL, offsetof(struct logs_options, follow), "go on until the job ends" },
        { "tail", 0, "N", option_count, offsetof(struct logs_options, tail),
          "only the last N lines of each executor" },
        { "output", 'o', "PATTERN", option_string, offsetof(struct logs_options, output),
          "write files: %j job, %x its name, %r role, %i index, %a attempt, %n rank" },
        { 0 },
};

const struct command logs_command = {
        .name = "logs",
        .arguments = "[OPTIONS] [JOB] [ROLE[/INDEX]]",
        .help = "Show what the executors of a job wrote",
        .details = "Lines of several executors begin with \"ROLE/INDEX | \". Control sequences other than "
                   "colours are\n"
                   "removed on a terminal; elsewhere the output is passed on as it is.",
        .options = logs_options,
        .options_size = sizeof(struct logs_options),
        .max = 2,
        .run = logs_run,
};
