/* SPDX-License-Identifier: Apache-2.0 */
/* Follows a job to its end. Invariant: on a terminal the block is wiped before anything else is written, so
 * output above it stays whole. */
#include "tools/primusctl/commands/progress.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "lib/base/clock.h"
#include "tools/primusctl/bus/interrupt.h"
#include "tools/primusctl/bus/targets.h"
#include "tools/primusctl/bus/watch.h"
#include "tools/primusctl/cli/text.h"
#include "tools/primusctl/commands/arraylogs.h"
#include "tools/primusctl/commands/logstream.h"
#include "tools/primusctl/commands/status.h"
#include "tools/primusctl/view/live.h"

#define REFRESH (500 * USEC_PER_MSEC)          /* of the data bar, while somebody looks at it */
#define REFRESH_PLAIN (1 * USEC_PER_SEC)       /* of the plain lines about data, in the first minute ... */
#define REFRESH_PLAIN_MAX (10 * USEC_PER_SEC)  /* ... and later, so that a day's log stays readable */
#define LAST_WORDS (2500 * USEC_PER_MSEC)      /* so long for the first error of one that has failed ... */
#define LAST_WORDS_PAUSE (200 * USEC_PER_MSEC) /* ... of which nobody says that there is none */
#define DRAIN (10 * USEC_PER_SEC)              /* for the last output after the end */

struct progress {
        struct cli *cli;
        sd_event *event;
        const struct progress_options *options;
        struct watch *watch;
        struct logstream *logs;
        struct arraylogs *array; /* beside logs, when the job turns out to be one */
        struct logstream_options logs_options;
        struct logview view;
        struct live live;
        struct interrupt *interrupt;
        sd_event_source *refresh, *drain, *last_words;
        uint64_t last_words_usec; /* boot time until which these are waited for; 0: nobody does yet */
        struct job_status status;
        sd_bus_message *status_reply;       /* the latest */
        uint64_t since_usec;                /* boot time at which following began */
        char told[512];                     /* the last plain line about data */
        unsigned asked, answered, final_at; /* the status number final_at is the one after the end */
        bool tty, synced, final, stopped;
};

static void ask_status(struct progress *p);

static void draw(struct progress *p) {
        size_t n;
        const struct executor *executors = watch_executors(p->watch, &n);

        if (p->tty && !p->stopped && !p->final && watch_properties(p->watch)->state)
                live_draw(&p->live, watch_properties(p->watch), &p->status, executors, n, now_real(),
                          now_boot());
}

static void draw_again(void *userdata) {
        draw(userdata);
}

static void hide(void *userdata) {
        struct progress *p = userdata;

        live_wipe(&p->live);
}

static void plain(struct progress *p, const char *format, ...) _printf_(2, 3);
static void plain(struct progress *p, const char *format, ...) {
        _cleanup_free_ char *text = NULL;
        va_list ap;

        if (p->tty || p->options->quiet || p->cli->json)
                return;
        va_start(ap, format);
        if (vasprintf(&text, format, ap) < 0)
                text = NULL;
        va_end(ap);
        if (!text)
                return;
        text_clean(text);
        printf("Job %" PRIu32 ": %s\n", watch_job(p->watch)->number, text);
        fflush(stdout);
}

static void finish(struct progress *p) {
        struct status_replies replies = { .status = p->status_reply };
        int r;

        live_wipe(&p->live);
        watch_replies(p->watch, &replies.properties, &replies.executors);
        r = status_result(p->cli, &replies);
        (void)sd_event_exit(p->event, r ? r : job_exit(watch_properties(p->watch)));
}

/* The job has ended, its last status is known, and its output has been shown: the result. */
static void check_final(struct progress *p) {
        if (p->final && !p->stopped && (!p->logs || logstream_done(p->logs)) &&
            (!p->array || arraylogs_done(p->array)))
                finish(p);
}

static void on_logs_done(void *userdata) {
        check_final(userdata);
}

static int on_drained(sd_event_source *s, uint64_t usec, void *userdata) {
        struct progress *p = userdata;

        if (!p->stopped)
                finish(p);
        return 0;
}

/* An array's output is its elements'. */
static int follow_elements(struct progress *p) {
        if (!p->logs || p->array || p->status.array.size == 0)
                return 0;
        return arraylogs_new(p->cli, p->event, watch_job(p->watch), &p->logs_options, &p->view, on_logs_done,
                             p, &p->array);
}

/* Where the data stands, when that is news. */
static void tell_data(struct progress *p) {
        const struct data_status *d = &p->status.data;
        char text[sizeof(p->told)], waiting[240];

        live_waiting_text(d, waiting, sizeof(waiting));
        if (!d->present || (d->tasks == 0 && !*waiting))
                return;
        live_data_text(&p->live, d, text, sizeof(text));
        if (*waiting) {
                size_t n = strlen(text);
                snprintf(text + n, sizeof(text) - n, "  %s", waiting);
        }
        if (strcmp(text, p->told) != 0)
                plain(p, "%s", strcpy(p->told, text));
}

static int on_last_words(sd_event_source *s, uint64_t usec, void *userdata) {
        struct progress *p = userdata;

        p->last_words = sd_event_source_unref(p->last_words);
        if (!p->stopped)
                ask_status(p);
        return 0;
}

/* A job's traceback comes behind its end. Who sees the output has it there. */
static bool wait_for_words(struct progress *p) {
        uint64_t now = now_boot();

        if ((p->logs && !p->array) || !p->status.error_coming ||
            (p->status.first_error && *p->status.first_error) ||
            (p->last_words_usec > 0 && now >= p->last_words_usec))
                return false;
        if (p->last_words_usec == 0)
                p->last_words_usec = now + LAST_WORDS;
        p->final_at = p->asked + 1;
        return p->last_words || sd_event_add_time_relative(p->event, &p->last_words, CLOCK_BOOTTIME,
                                                           LAST_WORDS_PAUSE, 0, on_last_words, p) >= 0;
}

static int on_status(sd_bus_message *m, void *userdata, sd_bus_error *ret_error) {
        struct progress *p = userdata;
        struct job_status status;
        int r;

        (void)ret_error;
        p->answered++;
        if (sd_bus_message_is_method_error(m, NULL)) {
                watch_call_failed(p->watch, sd_bus_message_get_error(m));
                return 0;
        }
        r = job_status_read(m, &status);
        if (r < 0)
                return sd_event_exit(p->event, cli_bad_reply(p->cli, r));
        job_status_done(&p->status);
        p->status = status;
        sd_bus_message_unref(p->status_reply);
        p->status_reply = sd_bus_message_ref(m);
        if (follow_elements(p))
                return sd_event_exit(p->event, CLI_FAILED);
        live_sample(&p->live, &p->status.data, now_boot());
        if (p->final_at > 0 && p->answered >= p->final_at && !wait_for_words(p)) {
                p->final = true;
                check_final(p);
                /* Elements may wait for their turn to be shown; there is no time for that. */
                if (p->logs && !p->array && !logstream_done(p->logs) && !p->drain &&
                    sd_event_add_time_relative(p->event, &p->drain, CLOCK_BOOTTIME, DRAIN, 0, on_drained, p) <
                            0)
                        return sd_event_exit(p->event, cli_oom(p->cli));
                return 0;
        }
        if (p->last_words)
                return 0;
        tell_data(p);
        draw(p);
        return 0;
}

static void ask_status(struct progress *p) {
        _cleanup_(sd_bus_message_unref_p) sd_bus_message *m = NULL;

        if (cli_job_call(p->cli, watch_job(p->watch), "GetStatus", &m) ||
            watch_call(p->watch, m, on_status, p, 0) < 0)
                (void)sd_event_exit(p->event, cli_oom(p->cli));
        else
                p->asked++;
}

static uint64_t refresh_pause(const struct progress *p) {
        uint64_t minutes = usec_sub(now_boot(), p->since_usec) / (60 * USEC_PER_SEC);

        return p->tty ? REFRESH : MIN((1 + minutes) * REFRESH_PLAIN, REFRESH_PLAIN_MAX);
}

static int on_refresh(sd_event_source *s, uint64_t usec, void *userdata) {
        struct progress *p = userdata;
        int r;

        if (!p->stopped && !p->final && p->asked == p->answered)
                ask_status(p);
        draw(p); /* the time goes on, also while masterd is away */
        r = sd_event_source_set_time_relative(s, refresh_pause(p));
        return r < 0 ? r : sd_event_source_set_enabled(s, SD_EVENT_ONESHOT);
}

static void on_state(struct watch *w, void *userdata) {
        struct progress *p = userdata;

        plain(p, "%s", watch_properties(w)->state);
        if (watch_ended(w) && p->logs)
                logstream_job_ended(p->logs, w);
        if (p->synced) /* when it started and ended is not in the signal */
                watch_refresh(w);
        draw(p);
}

/* Earlier attempts are told for their output's sake. */
static bool is_latest(const struct watch *w, const struct executor *e) {
        size_t n;
        const struct executor *executors = watch_executors(w, &n);

        return e >= executors && e < executors + n;
}

static void on_executor(struct watch *w, const struct executor *e, void *userdata) {
        struct progress *p = userdata;

        if (p->logs)
                logstream_executor(p->logs, w, e);
        if (!is_latest(w, e))
                return;
        if (e->attempt > 1 || strcmp(e->state, "FAILED") == 0 || strcmp(e->state, "LOST") == 0)
                plain(p, "%s/%" PRIu32 " attempt %" PRIu32 " %s%s%s", e->role, e->index, e->attempt, e->state,
                      *e->node ? " on " : "", e->node);
        draw(p);
}

static void on_synced(struct watch *w, void *userdata) {
        struct progress *p = userdata;

        if (p->logs)
                logstream_synced(p->logs, w);
        p->synced = true;
        if (p->final)
                return;
        ask_status(p);
        if (watch_ended(w))
                p->final_at = p->asked;
}

static void on_away(struct watch *w, void *userdata) {
        struct progress *p = userdata;

        live_wipe(&p->live);
        cli_note("masterd is away; the job goes on, waiting for it to come back ...");
}

static void on_detached(void *userdata) {
        struct progress *p = userdata;

        p->stopped = true;
        p->view.silent = true;
        live_wipe(&p->live);
}

static const struct watch_handlers handlers = {
        .state = on_state,
        .executor = on_executor,
        .synced = on_synced,
        .away = on_away,
};

static int start(struct progress *p, const struct job_ref *job, const char *role, uint32_t index,
                 bool has_index) {
        int r = 0;

        if (p->options->logs || role) {
                p->view = (struct logview){
                        .out = stdout,
                        .tty = isatty(STDOUT_FILENO),
                        .color = p->cli->color,
                        .prefixed = true,
                        .json = p->cli->json,
                        .before = p->tty ? hide : NULL,
                        .after = p->tty ? draw_again : NULL,
                        .userdata = p,
                };
                p->logs_options = (struct logstream_options){
                        .role = role, .index = index, .has_index = has_index, .follow = true
                };
                r = logstream_new(p->cli, &p->logs_options, &p->view, &p->logs);
                if (r)
                        return r;
                logstream_on_done(p->logs, on_logs_done, p);
        }
        r = watch_new(p->cli, p->event, job, p->logs ? WATCH_ATTEMPTS : WATCH_EXECUTORS, &handlers, p,
                      &p->watch);
        if (!r)
                r = interrupt_new(p->cli, p->event, job, on_detached, p, &p->interrupt);
        if (!r && !p->options->quiet && !p->cli->json &&
            sd_event_add_time_relative(p->event, &p->refresh, CLOCK_BOOTTIME, refresh_pause(p), 0, on_refresh,
                                       p) < 0)
                r = cli_oom(p->cli);
        return r;
}

int progress_wait(struct cli *c, const struct job_ref *job, const struct progress_options *options) {
        struct progress p = {
                .cli = c,
                .options = options,
                .tty = isatty(STDOUT_FILENO) && !options->quiet && !c->json,
        };
        _cleanup_free_ char *role = NULL;
        bool has_index = false;
        uint32_t index = 0;
        int r;

        p.since_usec = now_boot();
        p.live = (struct live){ .out = stdout, .color = c->color, .rate = -1 };
        r = options->role ? role_parse(c, options->role, &role, &index, &has_index) : 0;
        if (!r)
                r = watch_loop_new(c, &p.event);
        if (!r)
                r = start(&p, job, role, index, has_index);
        if (!r)
                r = sd_event_loop(p.event);
        live_wipe(&p.live);
        fflush(stdout);
        interrupt_free(p.interrupt);
        sd_event_source_disable_unref(p.refresh);
        sd_event_source_disable_unref(p.drain);
        sd_event_source_disable_unref(p.last_words);
        arraylogs_free(p.array);
        watch_free(p.watch);
        logstream_free(p.logs);
        job_status_done(&p.status);
        sd_bus_message_unref(p.status_reply);
        sd_bus_detach_event(c->bus);
        sd_event_unref(p.event);
        return r < 0 ? cli_fail(c, "%s", strerror(-r)) : r;
}
