/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/primusctl/commands/served.h"

#include <inttypes.h>
#include <jansson.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "tools/primusctl/bus/interrupt.h"
#include "tools/primusctl/bus/pack.h"
#include "tools/primusctl/bus/watch.h"
#include "tools/primusctl/commands/forward.h"
#include "tools/primusctl/commands/submit.h"

#define PROGRAM "primus.served"
#define ANSWER_MAX 4096u
#define PATIENCE_USEC (2 * USEC_PER_SEC) /* then it says that the job waits */

struct served {
        struct cli *cli;
        const struct served_options *options;
        const char *what;
        sd_event *event;
        sd_event_source *patience;
        struct watch *watch;
        struct stream_target target;
        struct stream *asking; /* where the page is */
        struct forward *forward;
        char answer[ANSWER_MAX];
        size_t answer_size;
};

static void end_loop(struct served *s, int status) {
        (void)sd_event_exit(s->event, status);
}

/* ---- where it is ---- */

static int show_address(struct served *s, const char *path) {
        const uint32_t job = s->target.job.number;
        char url[ANSWER_MAX + 64];

        /* By this name: to 127.0.0.1 a browser would send the cookie of primusctl web along, whatever the
         * port, and who serves this page may be somebody else. */
        snprintf(url, sizeof(url), "http://localhost:%u%s", forward_local_port(s->forward), path);
        if (s->cli->json) {
                printf("{\"job\":%" PRIu32 ",\"url\":\"%s\"}\n", job, url);
        } else {
                printf("%s\n", url);
                fprintf(stderr,
                        "Open that here. Ctrl-C leaves it running: primusctl %s --attach=%" PRIu32
                        " opens it again, primusctl kill %" PRIu32 " ends it.\n",
                        s->what, job, job);
        }
        return fflush(stdout) == EOF ? cli_fail(s->cli, "cannot write to standard output") : 0;
}

/* What a program of the job's owner says, on some host: a port and a path of an address, nothing else. */
static bool is_path(const char *path) {
        static const char characters[] =
                "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.~/?=&%+:";

        return path && *path == '/' && strspn(path, characters) == strlen(path);
}

static void on_asked(struct stream *stream, int status, const char *why, void *userdata) {
        struct served *s = userdata;
        json_t *answer = json_loadb(s->answer, s->answer_size, 0, NULL);
        const char *path = json_string_value(json_object_get(answer, "path"));
        json_int_t port = json_integer_value(json_object_get(answer, "port"));
        char local[16];
        int r;

        snprintf(local, sizeof(local), "%" PRIu32, s->options->port);
        if (*why || status != 0 || port < 1 || port > 65535 || !is_path(path))
                r = cli_fail(s->cli,
                             "job %" PRIu32 " serves no page%s%s; primusctl logs %" PRIu32 " may say why",
                             s->target.job.number, *why ? ": " : "", why, s->target.job.number);
        else
                r = forward_new(s->cli, s->event, &s->target, (uint16_t)port, local, &s->forward);
        if (!r)
                r = show_address(s, path);
        json_decref(answer);
        if (r)
                end_loop(s, r);
}

static void on_answer(struct stream *stream, enum stream_kind kind, const void *data, size_t size,
                      void *userdata) {
        struct served *s = userdata;

        if (kind != STREAM_OUTPUT)
                return;
        size = MIN(size, sizeof(s->answer) - s->answer_size);
        memcpy(s->answer + s->answer_size, data, size);
        s->answer_size += size;
}

static void on_opened(struct stream *stream, void *userdata) {
        (void)stream_write(stream, "", 0, true); /* there is no input */
}

static void on_room(struct stream *stream, void *userdata) {
}

static void ask_where(struct served *s) {
        static const struct stream_handlers handlers = {
                .opened = on_opened, .data = on_answer, .room = on_room, .ended = on_asked
        };
        char python[] = "python3", m[] = "-m", program[] = PROGRAM, where[] = "where";
        char *arguments[] = { python, m, program, where, NULL };
        const struct stream_options options = { .arguments = arguments };
        int r = stream_new(s->cli, &s->target, &options, &handlers, s, &s->asking);

        if (r < 0)
                end_loop(s, cli_fail(s->cli, "%s", strerror(-r)));
}

/* ---- the job ---- */

static void on_state(struct watch *w, void *userdata) {
        struct served *s = userdata;
        const struct job_properties *p = watch_properties(w);

        if (watch_ended(w))
                end_loop(s,
                         cli_fail(s->cli, "job %" PRIu32 " has ended; primusctl logs %" PRIu32 " may say why",
                                  s->target.job.number, s->target.job.number));
        else if (p->state && strcmp(p->state, "RUNNING") == 0 && !s->asking)
                ask_where(s);
}

static int on_patience(sd_event_source *source, uint64_t usec, void *userdata) {
        struct served *s = userdata;

        if (!s->asking)
                fprintf(stderr, "Job %" PRIu32 " waits; primusctl why %" PRIu32 " says for what\n",
                        s->target.job.number, s->target.job.number);
        return 0;
}

static int on_signal(sd_event_source *source, const struct signalfd_siginfo *i, void *userdata) {
        struct served *s = userdata;

        if (!s->forward)
                fprintf(stderr,
                        "\nJob %" PRIu32 " goes on: primusctl %s --attach=%" PRIu32
                        ", primusctl kill %" PRIu32 "\n",
                        s->target.job.number, s->what, s->target.job.number, s->target.job.number);
        end_loop(s, CLI_OK);
        return 0;
}

static int follow_job(struct served *s) {
        static const struct watch_handlers handlers = { .state = on_state };
        int r = 0;

        s->target.role = strdup(RUN_ROLE);
        if (!s->target.role || sd_event_add_time_relative(s->event, &s->patience, CLOCK_BOOTTIME,
                                                          PATIENCE_USEC, 0, on_patience, s) < 0)
                r = cli_oom(s->cli);
        if (!r && interrupt_catch(s->event, on_signal, s) < 0)
                r = cli_fail(s->cli, "cannot wait for signals");
        if (!r)
                r = watch_new(s->cli, s->event, &s->target.job, WATCH_STATE, &handlers, s, &s->watch);
        if (!r)
                r = sd_event_loop(s->event);
        sd_event_source_disable_unref(s->patience);
        stream_free(s->asking);
        forward_free(s->forward);
        watch_free(s->watch);
        return r < 0 ? cli_fail(s->cli, "%s", strerror(-r)) : r;
}

/* ---- beginning one ---- */

/* As "run" makes it; and ended when it is of no use to anybody. */
static int make_config(const struct served *s, char *const *command, bool sent, char **ret) {
        const struct served_options *o = s->options;
        _cleanup_free_ char *text = NULL;
        char after[32];
        json_t *job;
        uint32_t n;
        int r = run_configure(s->cli, &o->run, command, sent ? "." : NULL, &text, &n);

        if (!r && n != 1)
                r = cli_usage(s->cli, "--hosts: there is one page, on one host; name that");
        if (r || o->no_idle) {
                *ret = TAKE_PTR(text);
                return r;
        }
        snprintf(after, sizeof(after), "%" PRIu64 "ms", (o->idle ?: SERVED_IDLE) / 1000);
        job = json_loads(text, 0, NULL);
        if (json_object_set_new(job, "health",
                                json_pack("{s:{s:s, s:s}}", "idle", "after", after, "action", "stop")) == 0)
                *ret = json_dumps(job, JSON_COMPACT);
        json_decref(job);
        return *ret ? 0 : cli_oom(s->cli);
}

static int begin_job(struct served *s, const char *sent) {
        static const char *const all[] = { ".", NULL };
        const struct served_options *o = s->options;
        _cleanup_(bundle_done) struct bundle bundle = { .fd = -EBADF };
        _cleanup_free_ char *text = NULL, *cwd = NULL;
        const char *const command[] = { "python3", "-m", PROGRAM, s->what, NULL };
        struct submission call = { .turn = o->run.turn };
        int r;

        if (!sent) {
                cwd = o->directory && *o->directory == '/' ? strdup(o->directory)
                                                           : realpath(o->directory ?: ".", NULL);
                if (!cwd)
                        return cli_fail(s->cli, "%s: %s", o->directory ?: "the current directory",
                                        strerror(errno));
        }
        r = make_config(s, (char *const *)command, sent != NULL, &text);
        if (!r && sent)
                r = bundle_pack(s->cli, s->what, sent, all, 0, &bundle);
        if (!r && sent)
                r = bundle_upload(s->cli, &bundle);
        if (!r)
                r = run_environment(s->cli, &o->run, &call.env);
        if (!r) {
                call.config = text;
                call.config_size = strlen(text);
                call.cwd = cwd;
                call.bundle = sent ? bundle.sha256 : NULL;
                interrupt_block();
                r = submission_send(s->cli, &call, &s->target.job);
        }
        if (!r && !s->cli->json)
                fprintf(stderr, "Submitted job %" PRIu32 " (%s)\n", s->target.job.number, o->run.name);
        free(call.env.items);
        return r;
}

int served_run(struct cli *c, struct served_options *o, const char *what, const char *sent) {
        struct served s = { .cli = c, .options = o, .what = what };
        int r = watch_loop_new(c, &s.event);

        o->run.name = o->run.name ?: what;
        if (!r && o->port > 65535)
                r = cli_usage(c, "--port: not a port: %" PRIu32, o->port);
        if (!r)
                r = o->attach ? cli_job(c, o->attach, &s.target.job) : begin_job(&s, sent);
        if (!r)
                r = follow_job(&s);
        stream_target_done(&s.target);
        if (s.event) {
                (void)sd_bus_flush(c->bus);
                (void)sd_bus_detach_event(c->bus);
                sd_event_unref(s.event);
        }
        return r;
}
