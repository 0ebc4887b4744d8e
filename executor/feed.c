/* SPDX-License-Identifier: Apache-2.0 */
/* The feeder's loop. One poll() waits for agentd, for room in the pipe, for signals, and for the next look at
 * the pipe. The kernel tells nobody that a reader has taken something from a pipe which is not full, so the
 * reader's position is looked at while something is unread: 100 ms apart, 10 ms while the window for small
 * files is empty, less and less often, down to once a second, while the trainer does not read. Invariant: a
 * byte is written to the pipe at most once. */
#include "executor/feed.h"

#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>

#include "executor/child.h"
#include "executor/session.h"
#include "executor/source.h"
#include "executor/tasks.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"

#define TICK (100 * USEC_PER_MSEC)
#define TICK_HUNGRY (10 * USEC_PER_MSEC)
#define TICK_MAX USEC_PER_SEC
#define SPLICE_MIN (64u << 10)
#define SPLICE_MAX (1u << 20)
#define TURN_MAX (4u << 20)                 /* bytes written before the other descriptors are looked at */
#define REFUSED_MAX (10 * USEC_PER_SEC)     /* refusals for so long before the trainer has run are final */
#define FAREWELL_MAX (600 * USEC_PER_SEC)   /* waiting to deliver the last report */
#define FAREWELL_STOPPED (5 * USEC_PER_SEC) /* the same, once we were asked to stop */

struct feed {
        struct session session;
        struct tasks tasks;
        char *const *argv;
        int signals;
        int pipe;      /* write end; -EBADF once the trainer has been shown the end of file */
        int pipe_read; /* read end, kept for looking at what is unread in it */
        sigset_t mask;
        pid_t child;
        int status; /* of waitpid(), once exited */
        bool exited;
        bool stopping;  /* somebody has asked us to stop */
        bool announced; /* this connection has been told what we hold */
        bool bye_sent, farewell;
        bool can_splice;
        bool pad;          /* the last task broke off inside a line */
        uint64_t deadline; /* for the last report */
        uint64_t tick, next_tick;
        uint32_t credits_told;
        struct feed_counters counters;
        char *copy; /* bytes of the first task in todo on their way */
        size_t copy_size, copy_done;
        uint8_t *packet;
};

static void feed_done(struct feed *f) {
        session_done(&f->session);
        tasks_done(&f->tasks);
        f->pipe = close_fd(f->pipe);
        f->pipe_read = close_fd(f->pipe_read);
        f->signals = close_fd(f->signals);
        free(f->copy);
        free(f->packet);
}

/* ---- the pipe
 * -------------------------------------------------------------------------------------------------- */

static int pipe_error(int error) {
        if (error == EAGAIN || error == EINTR)
                return 0;
        fprintf(stderr, "primus-executor: cannot write to the trainer's pipe: %s\n", strerror(error));
        return -error;
}

/* Returns bytes written, 0: the pipe is full, < 0: the pipe is over. */
static ssize_t push_copy(struct feed *f, struct task *t) {
        ssize_t l;

        if (f->copy_done == f->copy_size) {
                uint64_t left = t->size - t->start - t->sent;

                l = pread(t->fd, f->copy, (size_t)MIN(left, (uint64_t)SPLICE_MIN),
                          (off_t)(t->start + t->sent));
                if (l < 0 && errno == EINTR)
                        return push_copy(f, t);
                if (l <= 0) {
                        char error[SOURCE_ERROR_MAX];

                        snprintf(error, sizeof(error), "%.400s: %s", t->path,
                                 l < 0 ? strerror(errno) : "changed while it was read");
                        f->pad = t->sent > 0 && source_line_ends(t, t->start + t->sent) != 1;
                        tasks_fail(&f->tasks, t, error);
                        return 1;
                }
                f->copy_size = (size_t)l;
                f->copy_done = 0;
        }
        l = write(f->pipe, f->copy + f->copy_done, f->copy_size - f->copy_done);
        if (l < 0)
                return pipe_error(errno);
        f->copy_done += (size_t)l;
        tasks_wrote(&f->tasks, (uint64_t)l, true);
        return l;
}

static ssize_t push_splice(struct feed *f, struct task *t) {
        uint64_t left = t->size - t->start - t->sent;
        off_t offset = (off_t)(t->start + t->sent);
        ssize_t l = splice(t->fd, &offset, f->pipe, NULL, (size_t)MIN(left, (uint64_t)SPLICE_MAX),
                           SPLICE_F_NONBLOCK | SPLICE_F_MOVE);

        if (l < 0 && errno == EINVAL) {
                f->can_splice = false; /* a file system without it */
                return push_copy(f, t);
        }
        if (l < 0 && errno != EAGAIN && errno != EINTR && errno != EPIPE)
                return push_copy(f, t); /* reading failed: let pread say how */
        if (l < 0)
                return pipe_error(errno);
        if (l == 0)
                return push_copy(f, t); /* shorter than it was */
        t->spliced = true;
        tasks_wrote(&f->tasks, (uint64_t)l, true);
        return l;
}

static ssize_t push_newline(struct feed *f) {
        ssize_t l = write(f->pipe, "\n", 1);

        if (l < 0)
                return pipe_error(errno);
        tasks_wrote(&f->tasks, 1, false);
        return l;
}

/* The last byte of the file is in the pipe. */
static ssize_t push_end(struct feed *f, struct task *t) {
        const char *error;
        ssize_t l = 1;

        if (t->sent > 0 && source_line_ends(t, t->size) == 0) {
                l = push_newline(f);
                if (l <= 0)
                        return l;
        }
        /* Pages that were spliced are the file's own until the trainer takes them: those are compared then.
         */
        if (!t->spliced) {
                error = source_check(t);
                t->fd = close_fd(t->fd);
                if (error) {
                        tasks_fail(&f->tasks, t, error);
                        return l;
                }
        }
        tasks_written(&f->tasks);
        return l;
}

static ssize_t push_one(struct feed *f, struct task *t) {
        if (f->pad) {
                /* The task before broke off: its last line must not run into the next one. */
                ssize_t l = push_newline(f);

                if (l > 0)
                        f->pad = false;
                return l;
        }
        if (!t->opened) {
                char error[SOURCE_ERROR_MAX];
                uint64_t start;

                f->copy_size = f->copy_done = 0;
                if (source_open(t, &start, error) < 0) {
                        tasks_fail(&f->tasks, t, error);
                        return 1;
                }
                tasks_opened(&f->tasks, start);
        }
        if (t->sent == t->size - t->start)
                return push_end(f, t);
        if (f->can_splice && f->copy_done == f->copy_size && t->size - t->start - t->sent >= SPLICE_MIN)
                return push_splice(f, t);
        return push_copy(f, t);
}

/* Writes what the pipe takes. Returns whether more could be written at once. */
static bool push(struct feed *f) {
        size_t turn = 0;

        while (f->pipe >= 0 && f->tasks.todo && turn < TURN_MAX) {
                ssize_t l = push_one(f, f->tasks.todo);

                if (l < 0) {
                        f->tasks.last = true; /* no more credits */
                        f->pipe = close_fd(f->pipe);
                }
                if (l <= 0)
                        return false;
                turn += (size_t)l;
        }
        if (f->tasks.last && !f->tasks.todo)
                f->pipe = close_fd(f->pipe); /* end of file for the trainer, behind what it has yet to read */
        return f->pipe >= 0 && f->tasks.todo;
}

/* ---- reports
 * ---------------------------------------------------------------------------------------------------- */

/* One report: what fits of the tasks that are to be reported. */
static int report_packet(struct feed *f, uint64_t now, uint32_t credits) {
        struct feed_progress head = { .credits = credits };
        uint8_t *array = f->packet + sizeof(head);
        struct task *batch[256], *t;
        size_t n = 0, size = 0;
        int r;

        for (t = f->tasks.dirty; t && n < ELEMENTSOF(batch); t = t->dirty_next) {
                struct task_progress p = { .task = t->id,
                                           .read = t->read,
                                           .acked = t->acked,
                                           .end = t->size,
                                           .state = (uint8_t)tasks_state(t),
                                           .error = t->error ? t->error : "" };

                if (task_progress_write(&p, array, TASKS_WIRE_MAX, &size) < 0)
                        break; /* no room left */
                batch[n++] = t;
        }
        head.counters = f->counters;
        memcpy(f->packet, &head, sizeof(head));
        r = session_send(&f->session, now, f->exited ? FEED_FINAL : FEED_PROGRESS, f->packet,
                         sizeof(head) + size);
        if (r < 0)
                return r;
        for (size_t i = 0; i < n; i++)
                tasks_reported(&f->tasks, batch[i], f->exited);
        return 0;
}

/* Sends what has changed. Returns 0, -EAGAIN (wait for the socket) or -ENOTCONN. */
static int report(struct feed *f, uint64_t now) {
        uint32_t credits = f->exited ? 0 : tasks_credits(&f->tasks);
        int r;

        if (f->session.state != SESSION_UP)
                return -ENOTCONN;
        if (!f->announced) {
                /* A new connection: first what we hold, so that none of it is granted to somebody else, then
                 * that we are ready for more. */
                while (f->tasks.dirty) {
                        r = report_packet(f, now, 0);
                        if (r < 0)
                                return r;
                }
        }
        /* Credits alone travel on a task's report too; OPEN says them while we hold nothing. */
        if (!f->announced || (credits > f->credits_told && !tasks_report_one(&f->tasks))) {
                struct feed_open open = { .credits = credits };

                r = session_send(&f->session, now, FEED_OPEN, &open, sizeof(open));
                if (r < 0)
                        return r;
                f->announced = true;
                f->credits_told = credits;
        }
        while (f->tasks.dirty) {
                r = report_packet(f, now, credits);
                if (r < 0)
                        return r;
                f->credits_told = credits;
        }
        if (f->exited && !f->bye_sent) {
                char text[64] = "";
                struct feed_bye bye = { .failed = f->status != 0 };

                if (WIFSIGNALED(f->status))
                        snprintf(text, sizeof(text), "the trainer was killed by signal %d",
                                 WTERMSIG(f->status));
                else if (f->status != 0)
                        snprintf(text, sizeof(text), "the trainer exited with status %d",
                                 WEXITSTATUS(f->status));
                bye.text_size = (uint32_t)strlen(text);
                memcpy(f->packet, &bye, sizeof(bye));
                memcpy(f->packet + sizeof(bye), text, bye.text_size);
                r = session_send(&f->session, now, FEED_BYE, f->packet, sizeof(bye) + bye.text_size);
                if (r < 0)
                        return r;
                f->bye_sent = true;
        }
        return 0;
}

/* Looks at how far the trainer has come. */
static bool look(struct feed *f) {
        uint64_t consumed = f->tasks.consumed;
        int unread;

        if (ioctl(f->pipe_read, FIONREAD, &unread) >= 0)
                consumed = f->tasks.written - (uint64_t)unread;
        return tasks_consumed(&f->tasks, consumed, source_check);
}

/* Nothing is left to write, and more will come once the trainer has read what there is. */
static bool is_hungry(const struct feed *f) {
        return !f->tasks.todo && !f->tasks.last;
}

static void tick(struct feed *f, uint64_t now) {
        bool hungry = is_hungry(f);
        uint64_t shortest = hungry ? TICK_HUNGRY : TICK, longest = hungry ? TICK : TICK_MAX;

        f->tick = look(f) ? shortest : MIN(f->tick * 2, longest);
        f->tick = MAX(f->tick, shortest);
        f->next_tick = f->tasks.written > f->tasks.consumed ? now + f->tick : USEC_INFINITY;
}

/* ---- events
 * ----------------------------------------------------------------------------------------------------- */

static int on_welcome(struct feed *f) {
        int r;

        f->announced = false;
        f->bye_sent = false;
        if (f->child > 0) {
                /* The trainer has its pipe; this agentd does not know. */
                f->session.pipe_read = close_fd(f->session.pipe_read);
                f->session.pipe_write = close_fd(f->session.pipe_write);
                tasks_report_all(&f->tasks);
                return 0;
        }
        if (f->session.pipe_read < 0 || f->session.pipe_write < 0 ||
            fcntl(f->session.pipe_write, F_SETFL, O_NONBLOCK) < 0) {
                fprintf(stderr, "primus-executor: agentd passed no pipe for the data\n");
                return FEED_EXIT_INTERNAL;
        }
        r = fcntl(f->session.pipe_write, F_GETPIPE_SZ);
        tasks_init(&f->tasks, (enum ack_mode)MIN(f->session.welcome.ack, (uint32_t)ACK_READ),
                   r > 0 ? (uint64_t)r : 1u << 16);
        f->pipe = TAKE_FD(f->session.pipe_write);
        f->pipe_read = TAKE_FD(f->session.pipe_read);
        r = child_start(f->argv, f->pipe_read, &f->mask, &f->child);
        if (r < 0) {
                fprintf(stderr, "primus-executor: %s: %s\n", f->argv[0], strerror(-r));
                return child_exec_status(r);
        }
        return 0;
}

/* A packet of grants. Anything wrong in it is agentd's mistake, not ours to guess about. */
static int on_grant(struct feed *f, const uint8_t *body, size_t size) {
        struct task_grant grant;
        int r;

        while (!f->exited && (r = task_grant_next(&body, &size, &grant)) != 0) {
                if (r > 0)
                        r = tasks_grant(&f->tasks, &grant);
                if (r == -ENOBUFS)
                        fprintf(stderr,
                                "primus-executor: more than %u tasks are held; with input.ack \"exit\" "
                                "use fewer, larger files\n",
                                TASKS_HELD_MAX);
                if (r < 0)
                        return r;
                f->credits_told -= f->credits_told > 0;
        }
        return 0;
}

/* Returns the exit status to give up with, or 0. */
static int receive(struct feed *f, uint64_t now) {
        struct feed_header h;
        int r;

        while (session_receive(&f->session, now, f->packet, &h) > 0) {
                switch (h.type) {
                case FEED_WELCOME:
                        r = on_welcome(f);
                        if (r > 0)
                                return r;
                        break;
                case FEED_GRANT:
                        r = on_grant(f, f->packet, h.size);
                        if (r < 0) {
                                fprintf(stderr, "primus-executor: grants from agentd: %s\n", strerror(-r));
                                return FEED_EXIT_INTERNAL;
                        }
                        break;
                case FEED_LAST:
                        f->tasks.last = true;
                        break;
                case FEED_FAREWELL:
                        f->farewell = f->bye_sent;
                        break;
                default: /* of a later version */
                        break;
                }
        }
        if (f->child <= 0 && f->session.refused_since > 0 && now - f->session.refused_since > REFUSED_MAX) {
                fprintf(stderr, "primus-executor: agentd refuses this process: %s\n", f->session.refused);
                return FEED_EXIT_REFUSED;
        }
        return 0;
}

static void on_exited(struct feed *f, uint64_t now) {
        (void)look(f);
        f->exited = true;
        tasks_finish(&f->tasks, f->status == 0);
        /* The last report holds all, also what was said before: masterd may have died before it wrote that
         * down. */
        tasks_report_all(&f->tasks);
        f->pipe = close_fd(f->pipe);
        f->deadline = now + (f->stopping ? FAREWELL_STOPPED : FAREWELL_MAX);
}

/* Returns the signal to die by before there is a trainer, or 0. */
static int on_signals(struct feed *f, uint64_t now) {
        struct signalfd_siginfo info;

        while (read(f->signals, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
                int signal = (int)info.ssi_signo;

                if (signal == SIGCHLD) {
                        if (f->child > 0 && !f->exited && waitpid(f->child, &f->status, WNOHANG) == f->child)
                                on_exited(f, now);
                        continue;
                }
                if (f->child <= 0)
                        return signal;
                f->stopping |= signal == SIGTERM || signal == SIGINT;
                if (f->exited && f->stopping)
                        f->deadline = MIN(f->deadline, now + FAREWELL_STOPPED);
                if (!f->exited)
                        child_forward(f->child, signal, (pid_t)info.ssi_pid);
        }
        return 0;
}

static void wait_for_events(struct feed *f, bool more, bool blocked, uint64_t until, uint64_t now) {
        struct pollfd fds[3] = {
                { .fd = f->signals, .events = POLLIN },
                { .fd = f->session.fd, .events = (short)(POLLIN | (blocked ? POLLOUT : 0)) },
                { .fd = f->pipe >= 0 && f->tasks.todo ? f->pipe : -1, .events = POLLOUT },
        };
        struct timespec timeout, *limit = NULL;

        if (until != USEC_INFINITY || more) {
                uint64_t usec = more ? 0 : usec_sub(until, now);

                timeout = (struct timespec){ (time_t)(usec / USEC_PER_SEC),
                                             (long)(usec % USEC_PER_SEC) * 1000 };
                limit = &timeout;
        }
        (void)ppoll(fds, ELEMENTSOF(fds), limit, NULL);
}

/* Returns the exit status where there is no trainer's to return, or -1: end like the trainer. */
static int feed_loop(struct feed *f) {
        bool more = false, blocked = false;

        for (;;) {
                uint64_t now = now_boot(), until = session_step(&f->session, now);
                int r;

                r = on_signals(f, now);
                if (r > 0)
                        child_exit_like(r); /* nothing runs yet: a wait status of just the signal */
                r = receive(f, now);
                if (r > 0) {
                        if (f->child > 0 && !f->exited) {
                                (void)kill(f->child, SIGKILL);
                                (void)waitpid(f->child, &f->status, 0);
                        }
                        return r;
                }
                if (f->child > 0 && !f->exited) {
                        more = push(f);
                        if (now >= f->next_tick || f->next_tick == USEC_INFINITY ||
                            (is_hungry(f) && f->next_tick > now + TICK))
                                tick(f, now);
                        until = MIN(until, f->next_tick);
                }
                blocked = report(f, now) == -EAGAIN;
                if (f->exited) {
                        more = false;
                        if (f->farewell || now >= f->deadline)
                                return -1;
                        until = MIN(until, f->deadline);
                }
                /* A connection that was lost just now is dialled again. */
                until = MIN(until, session_step(&f->session, now));
                wait_for_events(f, more, blocked, until, now);
        }
}

int feed_run(const char *socket, char *const argv[]) {
        struct feed f = { .argv = argv,
                          .pipe = -EBADF,
                          .pipe_read = -EBADF,
                          .can_splice = true,
                          .next_tick = USEC_INFINITY };
        int r;

        session_init(&f.session, socket);
        f.copy = malloc(SPLICE_MIN);
        f.packet = malloc(FEED_PACKET_MAX + 1);
        f.signals = child_signals(&f.mask);
        if (!f.copy || !f.packet || f.signals < 0) {
                fprintf(stderr, "primus-executor: %s\n", strerror(f.signals < 0 ? -f.signals : ENOMEM));
                feed_done(&f);
                return FEED_EXIT_INTERNAL;
        }
        r = feed_loop(&f);
        if (r < 0 && !f.farewell)
                fprintf(stderr, "primus-executor: agentd did not take the last report; the tasks that it "
                                "says are done "
                                "will be given out again\n");
        feed_done(&f);
        if (r < 0)
                child_exit_like(f.status);
        return r;
}
