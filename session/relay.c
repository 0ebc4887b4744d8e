/* SPDX-License-Identifier: Apache-2.0 */
/* The loop of a session. Invariant: at most one packet is held for each direction, and a side is not read
 * while the packet from it waits; so a side that stops reading stops the other one. */
#include "session/relay.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/cleanup.h"

/* A command whose terminal or client is gone has so long to end by itself. */
#define HANG_UP_MSEC 1000
/* The same when its executor is being stopped: that waits for us. */
#define STOP_MSEC 200

struct relay {
        int control, signals;
        struct command *command;
        bool connection;
        /* towards agentd */
        uint8_t up[SESSION_PACKET_MAX];
        size_t up_size; /* 0: none waits */
        bool out_open, errors_open;
        /* towards the command */
        uint8_t down[SESSION_PACKET_MAX];
        size_t down_at, down_size;
        bool in_open;
        bool ended; /* the command has, with this status */
        int status;
        bool abandoned;  /* nobody listens any more */
        bool stopped;    /* by a signal: its executor ends */
        int64_t kill_at; /* 0: not yet */
};

static int64_t now_msec(void) {
        struct timespec t;

        (void)clock_gettime(CLOCK_MONOTONIC, &t);
        return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void hang_up(struct relay *r, int64_t grace_msec) {
        if (r->connection || r->kill_at > 0)
                return;
        r->kill_at = now_msec() + grace_msec;
        command_hang_up(r->command, false);
        /* The terminal's loss says so to everybody on it. */
        r->command->in = close_fd(r->command->in);
        r->in_open = false;
}

static void abandon(struct relay *r) {
        r->abandoned = true;
        r->up_size = 0;
        hang_up(r, HANG_UP_MSEC);
}

/* ---- towards agentd ---- */

static void send_up(struct relay *r) {
        ssize_t n = send(r->control, r->up, r->up_size, MSG_DONTWAIT | MSG_NOSIGNAL);

        if (n >= 0)
                r->up_size = 0;
        else if (errno != EAGAIN && errno != EINTR && errno != ENOBUFS)
                abandon(r);
}

/* True: there is nothing more to come, for now or for ever. */
static bool read_side(struct relay *r, int fd, enum session_frame frame, bool *open) {
        ssize_t n = read(fd, r->up + 1, SESSION_DATA_MAX);

        if (n > 0) {
                r->up[0] = (uint8_t)frame;
                r->up_size = (size_t)n + 1;
                if (r->abandoned)
                        r->up_size = 0;
                else
                        send_up(r);
                return false;
        }
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
                return true;
        *open = false; /* end of file; EIO of a terminal that nobody has open */
        if (r->connection && n < 0)
                r->in_open = false; /* it was reset: nobody reads on the other side either */
        if (r->connection && !r->abandoned) {
                r->up[0] = SESSION_OUTPUT_END;
                r->up_size = 1;
                send_up(r);
        }
        return true;
}

/* ---- towards the command ---- */

static void end_input(struct relay *r) {
        static const char eot =
                4; /* as the terminal's own end of file; where it is not one, it is a character */

        r->in_open = false;
        if (r->connection)
                (void)shutdown(r->command->in, SHUT_WR);
        else if (r->command->terminal >= 0)
                (void)!write(r->command->in, &eot, 1);
        else
                r->command->in = close_fd(r->command->in);
}

static void write_down(struct relay *r) {
        while (r->down_at < r->down_size) {
                ssize_t n;

                if (!r->in_open) { /* it does not read any more: what comes is dropped */
                        r->down_at = r->down_size;
                        return;
                }
                n = r->connection ? send(r->command->in, r->down + r->down_at, r->down_size - r->down_at,
                                         MSG_NOSIGNAL | MSG_DONTWAIT)
                                  : write(r->command->in, r->down + r->down_at, r->down_size - r->down_at);
                if (n >= 0)
                        r->down_at += (size_t)n;
                else if (errno == EAGAIN || errno == EINTR)
                        return;
                else {
                        r->in_open = false;
                        if (!r->connection)
                                r->command->in = close_fd(r->command->in);
                }
        }
}

static void read_control(struct relay *r) {
        ssize_t n = recv(r->control, r->down, sizeof(r->down), MSG_DONTWAIT);

        if (n < 0 && (errno == EAGAIN || errno == EINTR))
                return;
        if (n <= 0) {
                abandon(r);
                return;
        }
        switch (r->down[0]) {
        case SESSION_INPUT:
                r->down_at = 1;
                r->down_size = (size_t)n;
                write_down(r);
                break;
        case SESSION_INPUT_END:
                if (r->in_open)
                        end_input(r);
                break;
        case SESSION_SIZE:
                if ((size_t)n == 1 + sizeof(struct session_size) && !r->connection) {
                        struct session_size size;
                        memcpy(&size, r->down + 1, sizeof(size));
                        command_resize(r->command, &size);
                }
                break;
        default: /* of a later agent */
                break;
        }
}

/* ---- signals ---- */

static void reap(struct relay *r) {
        int status;

        if (r->connection || r->ended || waitpid(r->command->pid, &status, WNOHANG) != r->command->pid)
                return;
        r->ended = true;
        r->status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static void read_signals(struct relay *r) {
        struct signalfd_siginfo s;

        while (read(r->signals, &s, sizeof(s)) == sizeof(s))
                if (s.ssi_signo == SIGCHLD)
                        reap(r);
                else {
                        r->stopped = true;
                        hang_up(r, STOP_MSEC);
                }
}

/* ---- the loop ---- */

enum {
        AT_CONTROL,
        AT_SIGNALS,
        AT_IN,
        AT_OUT,
        AT_ERRORS,
        N_POLLED
};

static bool waits_for_more(const struct relay *r) {
        if (r->up_size > 0)
                return true;
        if (r->connection)
                return !r->abandoned && !r->stopped && (r->in_open || r->out_open);
        return !r->ended;
}

static int timeout_of(const struct relay *r) {
        int64_t left;

        if (r->kill_at == 0)
                return -1;
        left = r->kill_at - now_msec();
        return left > 0 ? (int)left : 0;
}

static void turn(struct relay *r) {
        const bool idle_down = r->down_at == r->down_size;
        struct pollfd p[N_POLLED] = {
                [AT_CONTROL] = { .fd = r->abandoned ? -1 : r->control,
                                 .events =
                                         (short)((idle_down ? POLLIN : 0) | (r->up_size > 0 ? POLLOUT : 0)) },
                [AT_SIGNALS] = { .fd = r->signals, .events = POLLIN },
                [AT_IN] = { .fd = idle_down || !r->in_open ? -1 : r->command->in, .events = POLLOUT },
                [AT_OUT] = { .fd = r->out_open && r->up_size == 0 ? r->command->out : -1, .events = POLLIN },
                [AT_ERRORS] = { .fd = r->errors_open && r->up_size == 0 ? r->command->errors : -1,
                                .events = POLLIN },
        };

        if (poll(p, N_POLLED, timeout_of(r)) < 0)
                return;
        if (r->kill_at > 0 && now_msec() >= r->kill_at) {
                command_hang_up(r->command, true);
                r->kill_at = now_msec() + HANG_UP_MSEC;
        }
        if (p[AT_SIGNALS].revents)
                read_signals(r);
        if (p[AT_CONTROL].revents & POLLOUT && r->up_size > 0)
                send_up(r);
        if (p[AT_CONTROL].revents & POLLIN)
                read_control(r);
        else if (p[AT_CONTROL].revents & (POLLHUP | POLLERR))
                abandon(r);
        if (p[AT_IN].revents)
                write_down(r);
        if (p[AT_OUT].revents && r->up_size == 0)
                (void)read_side(r, r->command->out, SESSION_OUTPUT, &r->out_open);
        if (p[AT_ERRORS].revents && r->up_size == 0)
                (void)read_side(r, r->command->errors, SESSION_ERRORS, &r->errors_open);
}

/* What the command wrote before it ended is in its pipes or terminal by now. Others that it left behind may
 * hold them open; they are not waited for. */
static void drain_output(struct relay *r) {
        bool out = !r->out_open, errors = !r->errors_open;

        while (!r->abandoned && (r->up_size > 0 || !out || !errors)) {
                struct pollfd p = { .fd = r->control, .events = POLLOUT };

                if (r->up_size > 0) {
                        if (poll(&p, 1, -1) < 0)
                                continue;
                        if (p.revents & (POLLHUP | POLLERR))
                                abandon(r);
                        else
                                send_up(r);
                } else if (!out)
                        out = read_side(r, r->command->out, SESSION_OUTPUT, &r->out_open);
                else
                        errors = read_side(r, r->command->errors, SESSION_ERRORS, &r->errors_open);
        }
}

int relay_tell_end(int control, int status, const char *why) {
        struct {
                uint8_t frame;
                char rest[sizeof(struct session_end) + 256];
        } packet = { .frame = SESSION_END };
        const struct session_end end = { .status = status };
        size_t l = why ? strnlen(why, 255) : 0;
        struct pollfd p = { .fd = control, .events = POLLOUT };

        memcpy(packet.rest, &end, sizeof(end));
        if (why)
                memcpy(packet.rest + sizeof(end), why, l);
        for (;;) {
                if (send(control, &packet, 1 + sizeof(end) + l, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0)
                        return 0;
                if (errno != EAGAIN && errno != EINTR && errno != ENOBUFS)
                        return -errno;
                if (poll(&p, 1, -1) < 0 && errno != EINTR)
                        return -errno;
                if (p.revents & (POLLHUP | POLLERR))
                        return -EPIPE;
        }
}

int relay_run(struct relay_options *o) {
        struct relay r = {
                .control = o->control,
                .signals = o->signals,
                .command = &o->command,
                .connection = o->command.pid == 0,
                .out_open = true,
                .errors_open = o->command.errors >= 0,
                .in_open = true,
        };

        while (waits_for_more(&r))
                turn(&r);
        if (!r.connection)
                drain_output(&r);
        if (r.stopped)
                r.status = SESSION_STATUS_BROKEN;
        if (!r.abandoned)
                (void)relay_tell_end(r.control, r.status, r.stopped ? "the executor has ended" : NULL);
        return r.status;
}
