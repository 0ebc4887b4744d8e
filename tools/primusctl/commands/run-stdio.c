/* SPDX-License-Identifier: Apache-2.0 */
/* Bringing standard input to a command. Invariant: a byte is kept until the command has it, and that there
 * are no more is said only when standard input has ended here. */
#include "tools/primusctl/commands/run-stdio.h"

#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <termios.h>

#include "lib/base/bytes.h"
#include "lib/base/clock.h"
#include "lib/base/parse.h"
#include "lib/wire/stdio-frames.h"
#include "tools/primusctl/bus/stream.h"
#include "tools/primusctl/bus/terminal.h"
#include "tools/primusctl/cli/text.h"

#define PROGRAM PRIMUS_LIBEXECDIR "/primus-stdio"
#define RETRY_USEC (300 * USEC_PER_MSEC)
/* Failures in a row before they are told. */
#define QUIET_FAILURES 4u
#define BACKGROUND_USEC USEC_PER_SEC

struct run_stdio {
        struct cli *cli;
        sd_event *event;
        struct run_stdio_options options;
        struct stream_target target;
        struct stream *stream;
        sd_event_source *input, *step, *background, *signals[4];

        uint32_t attempt;
        bool running;    /* that attempt */
        bool over;       /* the command has ended, or will never have its input */
        bool finished;   /* the stream is to go */
        bool unreadable; /* standard input here */
        bool held;       /* the holder has said how far it is */
        bool must_hello, must_size, must_shown, must_abort, stdin_over, end_sent, unread;
        struct bytes in;
        uint64_t sent, shown, told;
        uint8_t rx[STDIO_FRAME_MAX];
        size_t rx_size;
        enum escape escape;
        unsigned failures;
        char complaint[256];
};

/* ---- what there is to bring ---- */

static bool is_null(const struct stat *st) {
        return S_ISCHR(st->st_mode) && major(st->st_rdev) == 1 && minor(st->st_rdev) == 3;
}

int run_stdio_choose(const struct cli *c, const char *input, bool pty, bool detach,
                     struct run_stdio_options *ret) {
        struct run_stdio_options o = { .pty = pty };
        bool none = input && strcmp(input, "none") == 0, terminal = isatty(STDIN_FILENO);
        uint8_t key[(sizeof(o.key) - 1) / 2];
        struct stat st;

        if (input && !none && parse_u32(input, 0, UINT32_MAX, &o.rank) < 0)
                return cli_usage(c, "--input: a rank, or none, not '%s'", input);
        if (pty && none)
                return cli_usage(c, "--pty and --input=none exclude each other");
        if (detach && (pty || (input && !none)))
                return cli_usage(c, "%s needs somebody who stays: it does not go with --detach",
                                 pty ? "--pty" : "--input");
        if (pty && !terminal)
                return cli_usage(c, "--pty: standard input is not a terminal");
        o.wanted = pty || (!none && !detach && fstat(STDIN_FILENO, &st) >= 0 && !is_null(&st));
        o.may_leave = terminal && !pty;
        if (getrandom(key, sizeof(key), 0) != (ssize_t)sizeof(key))
                return cli_fail(c, "no random numbers: %s", strerror(errno));
        for (size_t i = 0; i < sizeof(key); i++)
                snprintf(o.key + 2 * i, 3, "%02x", key[i]);
        *ret = o;
        return 0;
}

int run_stdio_wrap(const struct cli *c, const struct run_stdio_options *o, char *const *command,
                   struct option_list *env, char rank[static 16], char ***ret) {
        static char variable[sizeof(STDIO_VARIABLE) + 1 + STDIO_KEY_SIZE];
        const char *why = "";
        size_t n = 0, at = 0;
        char **argv;

        while (command[n])
                n++;
        argv = calloc(n + 8, sizeof(char *));
        snprintf(variable, sizeof(variable), STDIO_VARIABLE "=%s", o->key);
        if (!argv || option_append(variable, env, &why) < 0) {
                free(argv);
                return cli_oom(c);
        }
        snprintf(rank, 16, "%" PRIu32, o->rank);
        argv[at++] = (char *)PROGRAM;
        argv[at++] = (char *)"hold";
        if (o->pty)
                argv[at++] = (char *)"--pty";
        if (o->may_leave)
                argv[at++] = (char *)"--may-leave";
        argv[at++] = (char *)"--rank";
        argv[at++] = rank;
        argv[at++] = (char *)"--";
        memcpy(argv + at, command, n * sizeof(char *));
        *ret = argv;
        return 0;
}

/* ---- towards the command ---- */

/* Also what others have written. */
static void say(struct run_stdio *io, const char *said) {
        char text[sizeof(io->complaint)];

        snprintf(text, sizeof(text), "%s", said);
        text_clean(text);
        if (strcmp(io->complaint, text) == 0)
                return;
        memcpy(io->complaint, text, sizeof(text));
        fprintf(stderr, "%sprimusctl: %s%s\n", io->options.pty ? "\r" : "", text,
                io->options.pty ? "\r" : "");
}

static size_t put(uint8_t *at, enum stdio_frame kind, const void *data, size_t size) {
        stdio_head(at, kind, size);
        if (size > 0)
                memcpy(at + STDIO_HEAD, data, size);
        return STDIO_HEAD + size;
}

static struct stdio_size size_now(const struct run_stdio *io) {
        struct stdio_size s = { 0 };
        uint16_t rows, columns;

        if (io->options.pty) {
                terminal_size(&rows, &columns);
                s = (struct stdio_size){ htole16(rows), htole16(columns) };
        }
        return s;
}

static size_t compose(struct run_stdio *io, uint8_t *out) {
        static const char gone[] =
                "an earlier attempt of this executor has read the beginning, which cannot be "
                "read again";
        size_t n = 0;

        if (io->must_abort) {
                io->must_abort = false;
                io->over = true;
                return put(out, STDIO_ABORT, gone, strlen(gone));
        }
        if (io->must_hello) {
                const struct stdio_hello hello = { .from = htole64(io->sent),
                                                   .shown = htole64(io->shown),
                                                   .size = size_now(io) };

                io->must_hello = io->must_size = io->must_shown = false;
                n += put(out + n, STDIO_HELLO, &hello, sizeof(hello));
        }
        if (io->must_shown) {
                const uint64_t shown = htole64(io->shown);

                io->must_shown = false;
                n += put(out + n, STDIO_SHOWN, &shown, sizeof(shown));
        }
        if (io->must_size) {
                const struct stdio_size s = size_now(io);

                io->must_size = false;
                n += put(out + n, STDIO_SIZE, &s, sizeof(s));
        }
        while (io->sent < io->in.to && n < STREAM_PIECE_MAX - 2 * STDIO_FRAME_MAX) {
                const uint8_t *piece;
                size_t l = MIN(bytes_at(&io->in, io->sent, &piece), (size_t)STDIO_DATA_MAX);

                n += put(out + n, STDIO_INPUT, piece, l);
                io->sent += l;
        }
        if (io->stdin_over && !io->end_sent && io->sent == io->in.to) {
                io->end_sent = true;
                n += put(out + n, STDIO_INPUT_END, NULL, 0);
        }
        return n;
}

static void go_on(struct run_stdio *io, uint64_t usec);

static void want_input(struct run_stdio *io) {
        bool wanted = io->held && !io->stdin_over && !io->unreadable && !io->unread && !io->over &&
                      bytes_room(&io->in) >= 2 && !io->background;

        if (io->input)
                (void)sd_event_source_set_enabled(io->input, wanted ? SD_EVENT_ON : SD_EVENT_OFF);
}

static void pump(struct run_stdio *io) {
        static uint8_t out[STREAM_PIECE_MAX];
        int r = 0;

        while (r >= 0 && io->stream && io->held && !io->finished && stream_has_room(io->stream)) {
                size_t n = compose(io, out);

                if (n == 0)
                        break;
                r = stream_write(io->stream, out, n, false);
        }
        if (r < 0) {
                io->finished = true;
                go_on(io, RETRY_USEC);
        }
        want_input(io);
}

/* ---- standard input ---- */

static int on_foreground(sd_event_source *source, uint64_t usec, void *userdata) {
        struct run_stdio *io = userdata;

        io->background = sd_event_source_disable_unref(io->background);
        want_input(io);
        return 0;
}

/* Reading a terminal from the background would stop us, and with us the job's output. */
static bool in_background(struct run_stdio *io) {
        pid_t group;

        if (!io->options.may_leave || (group = tcgetpgrp(STDIN_FILENO)) < 0 || group == getpgrp())
                return false;
        (void)sd_event_add_time_relative(io->event, &io->background, CLOCK_BOOTTIME, BACKGROUND_USEC, 0,
                                         on_foreground, io);
        want_input(io);
        return true;
}

static void read_input(struct run_stdio *io) {
        static char in[STDIO_DATA_MAX / 2], out[STDIO_DATA_MAX];
        size_t room = bytes_room(&io->in) / 2, size; /* a "~" that came alone comes with the next one */
        const char *data = in;
        ssize_t n;

        if (in_background(io))
                return;
        n = read(STDIN_FILENO, in, MIN(room, sizeof(in)));
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
                return;
        if (io->options.pty && (n == 0 || (n < 0 && errno == EIO))) {
                io->unreadable = true;
                want_input(io);
                (void)raise(SIGHUP); /* the terminal has gone */
                return;
        }
        /* A terminal that has gone is an end; else an error is none. */
        if (n < 0 && (errno != EIO || !io->options.may_leave)) {
                terminal_restore();
                (void)cli_fail(io->cli, "cannot read standard input: %s", strerror(errno));
                io->unreadable = true;
                want_input(io);
                (void)raise(SIGTERM); /* as if somebody had ended us: the job is killed */
                return;
        }
        io->stdin_over = n <= 0;
        size = n > 0 ? (size_t)n : 0;
        if (io->options.pty && size > 0) {
                if (terminal_escape(&io->escape, in, size, out, &size)) {
                        terminal_restore();
                        (void)raise(SIGTERM); /* as if the terminal had gone */
                        return;
                }
                data = out;
        }
        bytes_put(&io->in, (const uint8_t *)data, size);
        pump(io);
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

static int add_input(struct run_stdio *io) {
        int r = sd_event_add_io(io->event, &io->input, STDIN_FILENO, POLLIN, on_input, io);

        if (r == -EPERM)
                r = sd_event_add_defer(io->event, &io->input, on_file, io);
        return r < 0 ? r : sd_event_source_set_enabled(io->input, SD_EVENT_OFF);
}

/* ---- from the command ---- */

static bool on_held(struct run_stdio *io, const uint8_t *data, size_t size) {
        struct stdio_held held;
        uint64_t taken, received, output;

        if (size != sizeof(held) || io->held)
                return false;
        memcpy(&held, data, sizeof(held));
        taken = le64toh(held.taken);
        received = le64toh(held.received);
        output = le64toh(held.output);
        io->held = io->must_hello = true;
        io->failures = 0;
        io->end_sent = false;
        if (received < io->in.from && !io->options.may_leave) {
                io->must_abort = true;
                return true;
        }
        if (received > io->in.to || taken > received || output > io->shown)
                return false;
        io->in.from = MAX(io->in.from, taken);
        io->sent = MAX(received, io->in.from);
        if (io->options.pty && terminal_raw(io->options.lines) < 0)
                say(io, "cannot set the terminal");
        return true;
}

static bool on_frame(struct run_stdio *io, uint8_t kind, const uint8_t *data, size_t size) {
        uint64_t taken = 0;

        if (kind == STDIO_HELD)
                return on_held(io, data, size);
        if (!io->held)
                return false;
        switch (kind) {
        case STDIO_OUTPUT:
                if (terminal_write(STDOUT_FILENO, data, size) < 0) {
                        terminal_restore();
                        (void)sd_event_exit(
                                io->event,
                                cli_fail(io->cli, "cannot write to standard output: %s", strerror(errno)));
                }
                io->shown += size;
                io->must_shown = true;
                return true;
        case STDIO_TAKEN:
                if (size != sizeof(taken))
                        return false;
                memcpy(&taken, data, sizeof(taken));
                taken = le64toh(taken);
                if (taken < io->in.from || taken > io->sent)
                        return false;
                io->in.from = taken;
                return true;
        case STDIO_UNREAD:
                io->unread = true;
                return true;
        case STDIO_EXIT:
                terminal_restore();
                io->over = io->finished = true;
                go_on(io, 0);
                return true;
        default: /* of a later version */
                return true;
        }
}

static void on_data(struct stream *stream, enum stream_kind kind, const void *data, size_t size,
                    void *userdata) {
        struct run_stdio *io = userdata;

        if (kind == STREAM_ERRORS && io->failures >= QUIET_FAILURES) {
                char text[200];
                size_t n = MIN(size, sizeof(text) - 1);

                memcpy(text, data, n);
                text[n] = 0;
                text[strcspn(text, "\r\n")] = 0;
                say(io, text);
        }
        for (const uint8_t *at = data; kind == STREAM_OUTPUT && size > 0 && !io->finished;) {
                size_t n = MIN(size, sizeof(io->rx) - io->rx_size), done = 0;
                long l;

                memcpy(io->rx + io->rx_size, at, n);
                io->rx_size += n;
                at += n;
                size -= n;
                while ((l = stdio_frame_size(io->rx + done, io->rx_size - done)) > 0) {
                        if (!on_frame(io, io->rx[done], io->rx + done + STDIO_HEAD, (size_t)l - STDIO_HEAD))
                                break;
                        done += (size_t)l;
                }
                if (l != 0) {
                        say(io, "the executor's side of standard input is not understood");
                        io->finished = true;
                        go_on(io, RETRY_USEC);
                        return;
                }
                memmove(io->rx, io->rx + done, io->rx_size - done);
                io->rx_size -= done;
        }
        pump(io);
}

/* ---- sessions ---- */

static void on_opened(struct stream *stream, void *userdata) {
}

static void on_room(struct stream *stream, void *userdata) {
        pump(userdata);
}

static void on_ended(struct stream *stream, int status, const char *why, void *userdata) {
        struct run_stdio *io = userdata;

        io->finished = true;
        if (*why && ++io->failures >= QUIET_FAILURES && io->running && !io->over) {
                char text[300];

                snprintf(text, sizeof(text), "standard input is not connected, trying again: %s", why);
                say(io, text);
        }
        go_on(io, RETRY_USEC);
}

static int on_step(sd_event_source *source, uint64_t usec, void *userdata) {
        static const struct stream_handlers handlers = {
                .opened = on_opened, .data = on_data, .room = on_room, .ended = on_ended
        };
        static char *join[] = { (char *)PROGRAM, (char *)"join", NULL };
        const struct stream_options o = { .arguments = join };
        struct run_stdio *io = userdata;

        io->step = sd_event_source_disable_unref(io->step);
        if (io->finished) {
                stream_free(io->stream);
                io->stream = NULL;
                io->finished = io->held = io->must_hello = false;
                io->rx_size = 0;
                want_input(io);
        }
        if (io->stream || io->over || !io->running)
                return 0;
        if (stream_new(io->cli, &io->target, &o, &handlers, io, &io->stream) < 0)
                return sd_event_exit(io->event, cli_oom(io->cli));
        return 0;
}

static void go_on(struct run_stdio *io, uint64_t usec) {
        io->step = sd_event_source_disable_unref(io->step);
        if (sd_event_add_time_relative(io->event, &io->step, CLOCK_BOOTTIME, usec, 1000, on_step, io) < 0)
                (void)sd_event_exit(io->event, cli_oom(io->cli));
}

void run_stdio_executor(struct run_stdio *io, const struct executor *e) {
        if (e->index != io->options.rank || e->attempt < io->attempt)
                return;
        if (e->attempt > io->attempt) {
                if (io->stream)
                        io->finished = true;
                io->attempt = e->attempt;
                io->shown = io->told = 0;
                io->over = io->unread = io->running = false;
        }
        if (state_is_end(e->state)) {
                io->running = false;
                io->over |= io->options.pty;
                if (io->options.pty)
                        terminal_restore();
        } else if (strcmp(e->state, "RUNNING") == 0 && !io->running) {
                io->running = true;
                go_on(io, 0);
        }
}

bool run_stdio_needed(const struct run_stdio *io) {
        if (io->over || io->options.may_leave)
                return false;
        return io->options.pty || !(io->unread || (io->end_sent && io->in.from == io->in.to));
}

/* ---- the module ---- */

static int on_resize(sd_event_source *source, const struct signalfd_siginfo *i, void *userdata) {
        struct run_stdio *io = userdata;

        io->must_size = true;
        pump(io);
        return 0;
}

static int on_signal(sd_event_source *source, const struct signalfd_siginfo *i, void *userdata) {
        struct run_stdio *io = userdata;

        terminal_restore();
        return sd_event_exit(io->event, 128 + (int)i->ssi_signo);
}

static int catch_signals(struct run_stdio *io) {
        sigset_t set;
        int r;

        if (!io->options.pty)
                return 0;
        sigemptyset(&set);
        sigaddset(&set, SIGWINCH);
        sigaddset(&set, SIGHUP);
        sigaddset(&set, SIGQUIT);
        if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
                return -errno;
        r = sd_event_add_signal(io->event, io->signals, SIGWINCH, on_resize, io);
        if (r >= 0)
                r = sd_event_add_signal(io->event, io->signals + 1, SIGHUP, on_signal, io);
        return r < 0 ? r : sd_event_add_signal(io->event, io->signals + 2, SIGQUIT, on_signal, io);
}

int run_stdio_new(struct cli *c, sd_event *event, const struct job_ref *job,
                  const struct run_stdio_options *o, struct run_stdio **ret) {
        struct run_stdio *io = calloc(1, sizeof(*io));
        int r;

        if (!io)
                return cli_oom(c);
        *io = (struct run_stdio){ .cli = c, .event = event, .options = *o, .escape = ESCAPE_LINE_START };
        io->target = (struct stream_target){ .job = *job, .role = strdup("task"), .index = o->rank };
        r = io->target.role ? bytes_init(&io->in, STDIO_INPUT_WINDOW) : -ENOMEM;
        if (r >= 0)
                r = add_input(io);
        if (r >= 0)
                r = catch_signals(io);
        if (r < 0) {
                run_stdio_free(io);
                return cli_fail(c, "cannot wait for standard input: %s", strerror(-r));
        }
        *ret = io;
        return 0;
}

void run_stdio_free(struct run_stdio *io) {
        if (!io)
                return;
        terminal_restore();
        for (size_t i = 0; i < ELEMENTSOF(io->signals); i++)
                sd_event_source_disable_unref(io->signals[i]);
        sd_event_source_disable_unref(io->input);
        sd_event_source_disable_unref(io->step);
        sd_event_source_disable_unref(io->background);
        stream_free(io->stream);
        stream_target_done(&io->target);
        free(io->in.ring);
        free(io);
}
