/* SPDX-License-Identifier: Apache-2.0 */
/* primusctl logs. */
#include <inttypes.h>
#include <string.h>

#include "lib/base/parse.h"
#include "tools/primusctl/bus/ask.h"
#include "tools/primusctl/bus/targets.h"
#include "tools/primusctl/bus/watch.h"
#include "tools/primusctl/cli/commands.h"
#include "tools/primusctl/commands/arraylogs.h"
#include "tools/primusctl/commands/logstream.h"
#include "tools/primusctl/commands/progress.h"

struct logs_options {
        bool follow;
        uint32_t tail, attempt;
        const char *output, *grep, *actor;
        uint32_t context;
        bool ignore_case;
};

struct logs {
        struct cli *cli;
        sd_event *event;
        struct watch *watch;
        struct logstream *stream; /* of a job, or: */
        struct arraylogs *array;
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
        uint32_t latest = 0;

        for (size_t i = 0; i < n; i++) {
                if ((l->options.role && strcmp(l->options.role, e[i].role) != 0) ||
                    (l->options.has_index && l->options.index != e[i].index))
                        continue;
                matching++;
                latest = MAX(latest, e[i].attempt);
        }
        if (matching == 0 && l->options.role) {
                if (!l->options.has_index) {
                        cli_fail(l->cli, "job %" PRIu32 " has no role %s", watch_job(w)->number,
                                 l->options.role);
                        (void)sd_event_exit(l->event, CLI_FAILED);
                        return;
                }
                logstream_left(l->stream, w, l->options.role, l->options.index); /* scaled away, perhaps */
        } else if (n > 0 && l->options.attempt > latest && (!l->options.follow || watch_ended(w))) {
                cli_fail(l->cli, "there is no attempt %" PRIu32 " yet; the latest of them is %" PRIu32,
                         l->options.attempt, latest);
                (void)sd_event_exit(l->event, CLI_FAILED);
                return;
        }
        /* One executor alone is shown as it wrote; decided once, before the first byte. */
        if (!l->synced)
                l->view.prefixed = matching > 1;
        l->synced = true;
        logstream_synced(l->stream, w);
}

static void on_away(struct watch *w, void *userdata) {
        cli_note("masterd is away; waiting for it to come back ...");
}

static const struct watch_handlers handlers = {
        .state = on_state,
        .executor = on_executor,
        .synced = on_synced,
        .away = on_away,
};

static int filter_new(struct cli *c, const struct logs_options *o, struct logfilter **ret) {
        _cleanup_free_ char *why = NULL;
        int r;

        if (!o->grep)
                return o->context > 0 || o->ignore_case
                               ? cli_usage(c, "--context and --ignore-case are about --grep: give a pattern")
                               : 0;
        if (o->output)
                return cli_usage(c,
                                 "--grep shows lines, and --output writes what there is: give one of them");
        r = logfilter_new(o->grep, o->ignore_case, o->context, ret, &why);
        return r == -EINVAL ? cli_usage(c, "--grep=%s: %s", o->grep, why) : r < 0 ? cli_oom(c) : 0;
}

static int nothing_shown(struct logs *l, uint32_t job) {
        const struct logstream_options *o = &l->options;

        if (!o->role && o->attempt == 0) {
                cli_note("primusctl: no element of array %" PRIu32 " has started yet", job);
                return CLI_OK;
        }
        return cli_fail(l->cli, "no element of array %" PRIu32 " has started what is asked for", job);
}

static int logs_run(struct cli *c, void *options, char **args, size_t n) {
        struct logs_options *o = options;
        struct logs l = { .cli = c };
        _cleanup_(logfilter_free_p) struct logfilter *filter = NULL;
        _cleanup_free_ char *role = NULL;
        struct job_ref job;
        uint32_t number, index;
        _cleanup_(job_status_done) struct job_status status = { 0 };
        int r = 0;

        /* JOB may be left out before ROLE: a role never begins with a digit. */
        const char *job_text =
                n > 0 && (job_number_parse(args[0], &number) || element_parse(args[0], &number, &index))
                        ? args[0]
                        : NULL;
        const char *role_text = job_text ? (n > 1 ? args[1] : NULL) : n > 0 ? args[0] : NULL;

        if (!job_text && n > 1)
                return cli_usage(c, "not a job's number: %s", args[0]);
        if (o->actor && o->tail > 0)
                return cli_usage(
                        c, "--tail counts the lines of an executor, and not an actor's: give one of them");
        l.options = (struct logstream_options){ .follow = o->follow,
                                                .tail = o->tail,
                                                .attempt = o->attempt,
                                                .output = o->output,
                                                .identifier = o->actor };
        if (role_text)
                r = role_parse(c, role_text, &role, &l.options.index, &l.options.has_index);
        if (!r)
                r = filter_new(c, o, &filter);
        if (!r)
                r = cli_job(c, job_text, &job);
        if (!r)
                r = ask_status(c, &job, &status);
        if (!r && status.array.size > 0 && o->output && !strstr(o->output, "%j"))
                r = cli_usage(c, "--output of an array needs a %%j, its elements' own numbers: else they "
                                 "have the same files");
        if (r)
                return r;
        l.options.role = role;
        l.view = (struct logview){
                .out = stdout,
                .tty = isatty(STDOUT_FILENO),
                .color = c->color,
                .json = c->json,
                .filter = filter,
        };
        r = watch_loop_new(c, &l.event);
        if (!r && status.array.size > 0) {
                l.view.prefixed = true;
                r = arraylogs_new(c, l.event, &job, &l.options, &l.view, on_done, &l, &l.array);
        } else if (!r)
                r = logstream_new(c, &l.options, &l.view, &l.stream);
        if (!r && l.stream) {
                logstream_on_done(l.stream, on_done, &l);
                r = watch_new(c, l.event, &job, WATCH_ATTEMPTS, &handlers, &l, &l.watch);
        }
        if (!r)
                r = sd_event_loop(l.event);
        if (fflush(stdout) == EOF && r == 0)
                r = cli_fail(c, "cannot write to standard output: %s", strerror(errno));
        if (r == CLI_OK && l.array && arraylogs_shown(l.array) == 0)
                r = nothing_shown(&l, job.number);
        else if (r == CLI_OK && filter && filter->matched == 0)
                r = cli_fail(c, "no line that job %" PRIu32 " wrote matches %s", job.number, o->grep);
        arraylogs_free(l.array);
        watch_free(l.watch);
        logstream_free(l.stream);
        if (l.event) {
                sd_bus_detach_event(c->bus);
                sd_event_unref(l.event);
        }
        return r < 0 ? cli_fail(c, "%s", strerror(-r)) : r;
}

static int option_context(const char *value, void *target, const char **ret_why) {
        if (parse_u32(value, 0, LOGFILTER_CONTEXT_MAX, target) < 0) {
                *ret_why = "a whole number of lines, at most 10000";
                return -EINVAL;
        }
        return 0;
}

static const struct cli_option logs_options[] = {
        { "follow", 'f', NULL, NULL, offsetof(struct logs_options, follow), "go on until the job ends" },
        { "tail", 0, "N", option_count, offsetof(struct logs_options, tail),
          "only the last N lines of each executor" },
        { "attempt", 0, "K", option_count, offsetof(struct logs_options, attempt),
          "only the attempts with this number" },
        { "actor", 0, "ACTOR", option_string, offsetof(struct logs_options, actor),
          "only lines of the actor that primusctl actors calls so, also when it has ended" },
        { "grep", 'g', "REGEX", option_string, offsetof(struct logs_options, grep),
          "only lines that an extended regular expression matches" },
        { "ignore-case", 'i', NULL, NULL, offsetof(struct logs_options, ignore_case),
          "upper and lower case are the same to --grep" },
        { "context", 'C', "N", option_context, offsetof(struct logs_options, context),
          "with N lines of the same executor before and behind each of them" },
        { "output", 'o', "PATTERN", option_string, offsetof(struct logs_options, output),
          "write files: %j job, %x its name, %r role, %i index, %a attempt, %n rank" },
        { 0 },
};

const struct command logs_command = {
        .name = "logs",
        .arguments = "[OPTIONS] [JOB] [ROLE[/INDEX]]",
        .help = "Show what the executors of a job wrote",
        .details =
                "Lines of several executors begin with \"ROLE/INDEX | \", those of an array's elements with\n"
                "\"[INDEX] \" before that. Control sequences other than "
                "colours are\n"
                "removed on a terminal; elsewhere the output is passed on as it is.",
        .options = logs_options,
        .options_size = sizeof(struct logs_options),
        .max = 2,
        .run = logs_run,
};
