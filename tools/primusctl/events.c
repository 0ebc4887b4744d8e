/* SPDX-License-Identifier: Apache-2.0 */
/* primusctl events. */
#include <inttypes.h>
#include <jansson.h>
#include <string.h>

#include "lib/base/clock.h"
#include "tools/primusctl/commands.h"
#include "tools/primusctl/text.h"
#include "tools/primusctl/watch.h"

struct events_options {
        bool follow;
};

struct events {
        struct cli *cli;
        sd_event *event;
        struct watch *watch;
        bool follow, asking, again;
        uint64_t after;
};

static int print_event(const struct cli *c, uint64_t time, uint64_t sequence, const char *kind,
                       const char *role, uint32_t index, const char *text) {
        _cleanup_free_ char *clean = strdup(text);
        char when[TEXT_TIME_MAX];

        if (c->json) {
                json_t *o = json_pack("{s:I, s:I, s:s, s:s, s:I, s:s}", "sequence", (json_int_t)sequence,
                                      "time", (json_int_t)time, "kind", kind, "role", role, "index",
                                      (json_int_t)index, "text", text);
                int r = o ? json_dumpf(o, stdout, JSON_COMPACT) : -1;

                json_decref(o);
                putchar('\n');
                return r < 0 ? cli_oom(c) : 0;
        }
        if (!clean)
                return cli_oom(c);
        text_clean(clean);
        printf("%s%s%s  ", c->color ? color_sequence(COLOR_DIM) : "",
               text_time(time, now_real(), when, sizeof(when)), c->color ? COLOR_RESET : "");
        if (*role)
                printf("%s/%" PRIu32 "  ", role, index);
        puts(clean);
        return 0;
}

static int print_events(struct events *e, sd_bus_message *m) {
        uint64_t sequence, time;
        const char *kind, *role, *text;
        uint32_t index;
        int r = sd_bus_message_enter_container(m, 'a', "(ttssus)");

        if (r < 0)
                return cli_bad_reply(e->cli, r);
        while ((r = sd_bus_message_read(m, "(ttssus)", &sequence, &time, &kind, &role, &index, &text)) > 0) {
                if (sequence <= e->after && e->after > 0)
                        continue;
                e->after = sequence;
                if (print_event(e->cli, time, sequence, kind, role, index, text))
                        return CLI_FAILED;
        }
        if (r < 0)
                return cli_bad_reply(e->cli, r);
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
        struct events e = { .cli = c, .follow = o->follow };
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
        { 0 },
};

const struct command events_command = {
        .name = "events",
        .arguments = "[-f] [JOB]",
        .help = "Show what happened to a job",
        .options = events_options,
        .options_size = sizeof(struct events_options),
        .max = 1,
        .run = events_run,
};
