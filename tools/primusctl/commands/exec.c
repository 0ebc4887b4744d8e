/* SPDX-License-Identifier: Apache-2.0 */
/* primusctl exec and shell. Invariant: however the command ends, the terminal is as it was found. */
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <string.h>

#include "tools/primusctl/bus/actor-list.h"
#include "tools/primusctl/bus/stream.h"
#include "tools/primusctl/bus/terminal.h"
#include "tools/primusctl/bus/watch.h"
#include "tools/primusctl/cli/commands.h"

struct exec_options {
        bool pty, no_pty;
};

struct session {
        struct cli *cli;
        sd_event *event;
        struct stream *stream;
        sd_event_source *input;
        bool pty, input_over;
        enum escape escape;
};

/* ---- output ---- */

static void finish(struct session *s, int status) {
        terminal_restore();
        (void)sd_event_exit(s->event, status);
}

static void on_data(struct stream *stream, enum stream_kind kind, const void *data, size_t size,
                    void *userdata) {
        struct session *s = userdata;
        int r;

        if (kind != STREAM_OUTPUT && kind != STREAM_ERRORS)
                return;
        r = terminal_write(kind == STREAM_ERRORS ? STDERR_FILENO : STDOUT_FILENO, data, size);
        if (r < 0) {
                terminal_restore();
                cli_fail(s->cli, "cannot write to standard %s: %s",
                         kind == STREAM_ERRORS ? "error" : "output", strerror(-r));
                finish(s, STREAM_BROKEN);
        }
}

static void on_ended(struct stream *stream, int status, const char *why, void *userdata) {
        struct session *s = userdata;

        terminal_restore();
        if (*why)
                cli_fail(s->cli, "%s", why);
        finish(s, status);
}

/* ---- input ---- */

static void want_input(struct session *s) {
        bool wanted = !s->input_over && stream_has_room(s->stream);

        if (s->input)
                (void)sd_event_source_set_enabled(s->input, wanted ? SD_EVENT_ON : SD_EVENT_OFF);
}

static void read_input(struct session *s) {
        static char in[STREAM_PIECE_MAX / 2], out[STREAM_PIECE_MAX];
        const char *data = in;
        size_t size;
        ssize_t n;
        int r;

        if (!stream_has_room(s->stream)) {
                want_input(s);
                return;
        }
        n = read(STDIN_FILENO, in, sizeof(in));
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
                return;
        s->input_over = n <= 0;
        size = n > 0 ? (size_t)n : 0;
        if (s->pty && size > 0) {
                if (terminal_escape(&s->escape, in, size, out, &size)) {
                        terminal_restore();
                        fprintf(stderr, "\nDetached; the session is closed.\n");
                        finish(s, CLI_DETACHED);
                        return;
                }
                data = out;
        }
        if (size > 0 || s->input_over) {
                r = stream_write(s->stream, data, size, s->input_over);
                if (r < 0)
                        on_ended(s->stream, STREAM_BROKEN, strerror(-r), s);
        }
        want_input(s);
}

static int on_input(sd_event_source *source, int fd, uint32_t events, void *userdata) {
        read_input(userdata);
        return 0;
}

/* Files cannot be waited for, and need not be. */
static int on_file(sd_event_source *source, void *userdata) {
        read_input(userdata);
        return 0;
}

static void on_room(struct stream *stream, void *userdata) {
        want_input(userdata);
}

static void on_opened(struct stream *stream, void *userdata) {
        struct session *s = userdata;
        int r;

        if (s->pty && (r = terminal_raw(false)) < 0) {
                on_ended(stream, STREAM_BROKEN, "cannot set the terminal", s);
                return;
        }
        r = sd_event_add_io(s->event, &s->input, STDIN_FILENO, POLLIN, on_input, s);
        if (r == -EPERM)
                r = sd_event_add_defer(s->event, &s->input, on_file, s);
        if (r == -EBADF) { /* closed: there is no input */
                s->input_over = true;
                r = stream_write(stream, NULL, 0, true);
        }
        if (r < 0)
                on_ended(stream, STREAM_BROKEN, "cannot wait for input", s);
        want_input(s);
}

/* ---- signals ---- */

static int on_resize(sd_event_source *source, const struct signalfd_siginfo *i, void *userdata) {
        struct session *s = userdata;
        uint16_t rows, columns;

        terminal_size(&rows, &columns);
        stream_resize(s->stream, rows, columns);
        return 0;
}

static int on_signal(sd_event_source *source, const struct signalfd_siginfo *i, void *userdata) {
        finish(userdata, 128 + (int)i->ssi_signo);
        return 0;
}

static int catch_signals(struct session *s) {
        static const int ending[] = { SIGTERM, SIGHUP, SIGINT, SIGQUIT };
        sigset_t mask;
        int r;

        sigemptyset(&mask);
        sigaddset(&mask, SIGWINCH);
        for (size_t i = 0; i < ELEMENTSOF(ending); i++)
                sigaddset(&mask, ending[i]);
        if (sigprocmask(SIG_BLOCK, &mask, NULL) < 0)
                return -errno;
        r = s->pty ? sd_event_add_signal(s->event, NULL, SIGWINCH, on_resize, s) : 0;
        for (size_t i = 0; i < ELEMENTSOF(ending) && r >= 0; i++)
                r = sd_event_add_signal(s->event, NULL, ending[i], on_signal, s);
        return r;
}

/* ---- the commands ---- */

/* actor_pid: 0, or of the actor that the session is for. */
static int run_session(struct cli *c, const struct stream_target *target, char **arguments, bool pty,
                       uint32_t actor_pid) {
        static const struct stream_handlers handlers = {
                .opened = on_opened, .data = on_data, .room = on_room, .ended = on_ended
        };
        struct session s = { .cli = c, .pty = pty, .escape = ESCAPE_LINE_START };
        _cleanup_free_ char *term = NULL, *actor = NULL;
        char *environment[] = { NULL, NULL, NULL };
        struct stream_options o = { .arguments = arguments, .pty = pty, .environment = environment };
        size_t n = 0;
        int r;

        if (pty) {
                terminal_size(&o.rows, &o.columns);
                if (asprintf(&term, "TERM=%s", getenv("TERM") ?: "dumb") < 0)
                        return cli_oom(c);
                environment[n++] = term;
        }
        if (actor_pid > 0) {
                if (asprintf(&actor, "PRIMUS_ACTOR_PID=%" PRIu32, actor_pid) < 0)
                        return cli_oom(c);
                environment[n++] = actor;
        }
        r = watch_loop_new(c, &s.event);
        if (r)
                return STREAM_BROKEN;
        r = catch_signals(&s);
        if (r >= 0)
                r = stream_new(c, target, &o, &handlers, &s, &s.stream);
        if (r >= 0)
                r = sd_event_loop(s.event);
        terminal_restore();
        sd_event_source_disable_unref(s.input);
        stream_free(s.stream);
        (void)sd_bus_flush(c->bus);
        (void)sd_bus_detach_event(c->bus);
        sd_event_unref(s.event);
        if (r < 0) {
                cli_fail(c, "%s", strerror(-r));
                return STREAM_BROKEN;
        }
        return r;
}

static int session_run(struct cli *c, const struct exec_options *o, char **args, char **command, bool shell) {
        _cleanup_(actor_place_done) struct actor_place actor = {};
        struct stream_target target;
        bool pty = o->pty || (!o->no_pty && isatty(STDIN_FILENO) && (shell || isatty(STDOUT_FILENO)));
        int r;

        if (o->pty && !isatty(STDIN_FILENO))
                return cli_usage(c, "--pty: standard input is not a terminal");
        r = is_actor_name(args[1]) ? actor_find(c, args[0], args[1], &actor) : 0;
        r = r ?: stream_target_find(c, args[0], actor.rank ?: args[1], &target);
        if (r)
                return r == CLI_USAGE ? r : STREAM_BROKEN;
        r = run_session(c, &target, command, pty, actor.pid);
        stream_target_done(&target);
        return r;
}

static int exec_run(struct cli *c, void *options, char **args, size_t n) {
        size_t first = n > 2 && strcmp(args[2], "--") == 0 ? 3 : 2;

        if (n <= first)
                return cli_usage(c, "exec: which command?");
        return session_run(c, options, args, args + first, false);
}

static int shell_run(struct cli *c, void *options, char **args, size_t n) {
        char *none[] = { NULL };

        return session_run(c, options, args, none, true);
}

static const struct cli_option exec_options[] = {
        { "pty", 't', NULL, NULL, offsetof(struct exec_options, pty),
          "on a terminal (default: where this is one)" },
        { "no-pty", 'T', NULL, NULL, offsetof(struct exec_options, no_pty), "on pipes" },
        { 0 },
};

const struct command exec_command = {
        .name = "exec",
        .arguments = "[OPTIONS] JOB RANK [--] COMMAND [ARGUMENT...]",
        .help = "Run a command in an executor",
        .details =
                "RANK is a rank, ROLE or ROLE/INDEX, or an actor's name (\"Counter 3\": in its executor; its process\n"
                "is PRIMUS_ACTOR_PID then). The command runs beside the trainer: as the same user, in its working\n"
                "directory, with its environment, secrets and limits, and ends with it. Exit status: the command's,\n"
                "128 + N when signal N killed it, 255 when the session could not be opened or broke. On a terminal,\n"
                "~. at the start of a line closes the session.",
        .options = exec_options,
        .options_size = sizeof(struct exec_options),
        .min = 3,
        .max = SIZE_MAX,
        .stops = true,
        .run = exec_run,
};

const struct command shell_command = {
        .name = "shell",
        .arguments = "JOB RANK",
        .help = "Open a shell in an executor",
        .details =
                "As 'exec', with the user's shell; without a terminal it reads commands from standard input.",
        .options = exec_options,
        .options_size = sizeof(struct exec_options),
        .min = 2,
        .max = 2,
        .run = shell_run,
};
