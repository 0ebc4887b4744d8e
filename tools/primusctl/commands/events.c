/* SPDX-License-Identifier: Apache-2.0 */
/* primusctl events. */
#include <inttypes.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/json/get.h"
#include "lib/json/replies.h"
#include "tools/primusctl/bus/watch.h"
#include "tools/primusctl/cli/commands.h"
#include "tools/primusctl/cli/text.h"
#include "tools/primusctl/view/story.h"
#include "tools/primusctl/view/users.h"

#define ROWS_MAX 10000u /* of one answer */

struct events_options {
        bool follow, all;
};

struct events {
        struct cli *cli;
        sd_event *event;
        struct watch *watch;
        bool follow, all, asking, again;
        uint64_t after, begin;
};

static int print_json(const struct cli *c, const json_t *row) {
        int r = json_dumpf(row, stdout, JSON_COMPACT);

        putchar('\n');
        return r < 0 ? cli_oom(c) : 0;
}

/* The first one's time of the day; of the others how much later they were. */
static void print_line(struct events *e, const struct story_line *l) {
        _cleanup_free_ char *text = NULL;
        const struct cli *c = e->cli;
        char when[TEXT_TIME_MAX], after[STORY_AFTER_MAX];

        if (e->begin == 0) {
                e->begin = l->time;
                (void)text_time(l->time, now_real(), when, sizeof(when));
        } else
                snprintf(when, sizeof(when), "%s", story_after(e->begin, l->time, after, sizeof(after)));
        text = users_named(l->text, user_lookup_here);
        if (text)
                text_clean(text);
        printf("%s%10s%s  ", c->color ? color_sequence(COLOR_DIM) : "", when, c->color ? COLOR_RESET : "");
        if (*l->who)
                printf("%s  ", l->who);
        puts(text ? text : "out of memory");
}

static int tell(struct events *e, const struct story_event *events, size_t n) {
        struct story_line *lines;
        size_t n_lines;

        if (!e->all || n == 0) {
                if (story_tell(events, n, &lines, &n_lines) < 0)
                        return cli_oom(e->cli);
                for (size_t i = 0; i < n_lines; i++)
                        print_line(e, lines + i);
                story_lines_free(lines, n_lines);
                return 0;
        }
        for (size_t i = 0; i < n; i++) {
                if (story_tell(events + i, 1, &lines, &n_lines) < 0)
                        return cli_oom(e->cli);
                print_line(e, lines);
                story_lines_free(lines, n_lines);
        }
        return 0;
}

static int print_events(struct events *e, sd_bus_message *m) {
        _cleanup_(json_decref_p) json_t *rows = NULL;
        _cleanup_free_ struct story_event *events = NULL;
        size_t n, first = 0;
        int r = json_read_list(m, &json_event, !e->cli->json, &rows);

        if (r < 0)
                return cli_bad_reply(e->cli, r);
        n = json_array_size(rows);
        while (first < n && e->after > 0 &&
               json_get_number(json_array_get(rows, first), "sequence") <= e->after)
                first++;
        if (!e->cli->json) {
                events = story_events(rows, first);
                r = events ? tell(e, events, n - first) : cli_oom(e->cli);
        }
        for (size_t i = first; !r && e->cli->json && i < n; i++)
                r = print_json(e->cli, json_array_get(rows, i));
        if (n > 0)
                e->after = MAX(e->after, json_get_number(json_array_get(rows, n - 1), "sequence"));
        e->again |= n == ROWS_MAX;
        if (r)
                return CLI_FAILED;
        return fflush(stdout) == EOF
                       ? cli_fail(e->cli, "cannot write to standard output: %s", strerror(errno))
                       : 0;
}

static void ask(struct events *e);

static int on_events(sd_bus_message *m, void *userdata, sd_bus_error *ret_error) {
        struct events *e = userdata;
        int r;

        (void)ret_error;
        e->asking = false;
        if (sd_bus_message_is_method_error(m, NULL)) {
                watch_call_failed(e->watch, sd_bus_message_get_error(m));
                return 0;
        }
        r = print_events(e, m);
        if (r)
                return sd_event_exit(e->event, r);
        if (e->again)
                ask(e);
        else if (!e->follow || watch_ended(e->watch))
                return sd_event_exit(e->event, CLI_OK);
        return 0;
}

static void ask(struct events *e) {
        _cleanup_(sd_bus_message_unref_p) sd_bus_message *m = NULL;

        /* Something changed while an answer is on its way: ask again behind it. */
        e->again = e->asking;
        if (e->asking)
                return;
        if (cli_job_call(e->cli, watch_job(e->watch), "ListEvents", &m) ||
            sd_bus_message_append(m, "t", e->after) < 0 || watch_call(e->watch, m, on_events, e, 0) < 0)
                (void)sd_event_exit(e->event, cli_oom(e->cli));
        else
                e->asking = true;
}

static void on_state(struct watch *w, void *userdata) {
        struct events *e = userdata;

        if (e->watch)
                ask(e);
}

static void on_executor(struct watch *w, const struct executor *executor, void *userdata) {
        on_state(w, userdata);
}

static const struct watch_handlers handlers = {
        .state = on_state,
        .executor = on_executor,
        .synced = on_state,
};

static int events_run(struct cli *c, void *options, char **args, size_t n) {
        struct events_options *o = options;
        struct events e = { .cli = c, .follow = o->follow, .all = o->all };
        struct job_ref job;
        int r = cli_job(c, n > 0 ? args[0] : NULL, &job);

        if (!r)
                r = watch_loop_new(c, &e.event);
        if (!r)
                r = watch_new(c, e.event, &job, o->follow ? WATCH_EXECUTORS : WATCH_STATE, &handlers, &e,
                              &e.watch);
        if (!r)
                r = sd_event_loop(e.event);
        watch_free(e.watch);
        if (e.event) {
                sd_bus_detach_event(c->bus);
                sd_event_unref(e.event);
        }
        return r < 0 ? cli_fail(c, "%s", strerror(-r)) : r;
}

static const struct cli_option events_options[] = {
        { "follow", 'f', NULL, NULL, offsetof(struct events_options, follow), "go on until the job ends" },
        { "all", 'a', NULL, NULL, offsetof(struct events_options, all),
          "each by itself, also when many are alike" },
        { 0 },
};

const struct command events_command = {
        .name = "events",
        .arguments = "[-f] [-a] [JOB]",
        .help = "Tell what happened to a job, in order",
        .details = "The time of the first, and how long after it each of the others was. What many executors "
                   "did alike\n"
                   "is one line.",
        .options = events_options,
        .options_size = sizeof(struct events_options),
        .max = 1,
        .run = events_run,
};
