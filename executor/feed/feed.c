/* SPDX-License-Identifier: Apache-2.0 */
/* The feeder's loop. One poll() waits for agentd, for the trainer and its end, for room in its pipe or ring,
 * and for the threads that read (producer.h). Invariant: what counts of a task is decided here and in what
 * this calls, under the one lock; nothing here waits for a file. */
#include "executor/feed/feed.h"

#include <fcntl.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <utlist.h>

#include "executor/feed/child.h"
#include "executor/feed/feed-internal.h"
#include "executor/read/kafka.h"
#include "lib/base/file.h"

#define COMMIT_MAX (5 * USEC_PER_SEC)       /* for the last offsets of a group */
#define REFUSED_MAX (10 * USEC_PER_SEC)     /* refusals for so long before the trainer has run are final */
#define FAREWELL_MAX (600 * USEC_PER_SEC)   /* waiting to deliver the last report */
#define FAREWELL_STOPPED (5 * USEC_PER_SEC) /* the same, once we were asked to stop */

static const struct delivery_ops *const deliveries[_DELIVERY_MAX] = {
        [DELIVERY_STDIN] = &delivery_pipe,
        [DELIVERY_RING] = &delivery_ring,
        [DELIVERY_DESCRIPTOR] = &delivery_ranges,
};

/* ---- the input ---- */

/* Lines of text to standard input, as long as nobody says otherwise. */
static int input_plain(struct input **ret) {
        static const char text[] = "{\"inputManager\":{\"fileConfig\":{\"inputs\":[{\"name\":\"default\","
                                   "\"spec\":{\"pathPattern\":"
                                   "\"/\",\"compression\":\"none\",\"split\":0,\"textInput\":{}}}]}}}";
        _cleanup_free_ char *error = NULL;
        int r = input_read(text, sizeof(text) - 1, ret, &error);

        if (r < 0)
                fprintf(stderr, "primus-executor: %s\n", error ? error : strerror(-r));
        return r;
}

static int input_load(struct input **ret) {
        const char *path = getenv("PRIMUS_INPUT");
        _cleanup_free_ char *text = NULL, *error = NULL;
        size_t size;
        int r;

        if (!path || !*path)
                return input_plain(ret);
        r = read_file(path, INPUT_TEXT_MAX, &text, &size);
        if (r >= 0)
                r = input_read(text, size, ret, &error);
        if (r < 0)
                fprintf(stderr, "primus-executor: %s: %s\n", path, error ? error : strerror(-r));
        return r;
}

/* ---- packets from agentd ---- */

/* Returns 0, or the exit status to give up with. */
static int start_trainer(struct feed *f) {
        _cleanup_close_ int null = -EBADF;
        int standard_input = -EBADF, r;

        /* What the job says counts; agentd says it to those that have no description of their input. */
        f->ack = getenv("PRIMUS_INPUT")
                         ? (enum ack_mode)f->input->ack
                         : (enum ack_mode)MIN(f->session.welcome.ack, (uint32_t)_ACK_MODE_MAX - 1);
        tasks_init(&f->tasks, f->ack);
        f->delivery = deliveries[f->input->mode];
        r = clients_listen(f);
        if (r < 0) {
                fprintf(stderr, "primus-executor: cannot listen for the trainer: %s\n", strerror(-r));
                return FEED_EXIT_INTERNAL;
        }
        if (f->input->mode == DELIVERY_STDIN)
                r = pipe_start(f, &standard_input);
        else
                r = standard_input = null = open("/dev/null", O_RDONLY | O_CLOEXEC);
        if (r < 0) {
                fprintf(stderr, "primus-executor: cannot make the trainer's standard input: %s\n",
                        strerror(-r));
                return FEED_EXIT_INTERNAL;
        }
        r = child_start(f->argv, standard_input, &f->mask, &f->child);
        if (r < 0) {
                fprintf(stderr, "primus-executor: %s: %s\n", f->argv[0], strerror(-r));
                return child_exec_status(r);
        }
        r = f->delivery->begin ? f->delivery->begin(f) : 0;
        if (r < 0) {
                fprintf(stderr, "primus-executor: cannot begin to read: %s\n", strerror(-r));
                return FEED_EXIT_INTERNAL;
        }
        return 0;
}

static int on_welcome(struct feed *f) {
        int r = 0;

        if (f->child > 0)
                report_anew(f); /* the trainer has its pipe; this agentd does not know */
        else
                r = start_trainer(f);
        f->session.pipe_read = close_fd(f->session.pipe_read);
        f->session.pipe_write = close_fd(f->session.pipe_write);
        return r;
}

/* A packet of grants. Anything wrong in it is agentd's mistake, not ours to guess about. */
static int on_grant(struct feed *f, const uint8_t *body, size_t size) {
        struct task_grant grant;
        struct task_mark mark;
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
                if (r > 0 && checkpoint_find(&f->checkpoint, grant.task, &mark) > 0)
                        tasks_resume(&f->tasks, tasks_find(&f->tasks, grant.task), mark);
                told_granted(&f->told);
        }
        return 0;
}

/* One that the job has more since we were started. The trainer is not to end for one that is not understood:
 * its tasks fail here. */
static int on_source(struct feed *f, const uint8_t *body, size_t size) {
        _cleanup_free_ char *error = NULL;
        uint32_t source;
        int r;

        if (size < sizeof(source))
                return -EPROTO;
        memcpy(&source, body, sizeof(source));
        if (source != f->input->n_sources)
                return 0;
        r = input_append(f->input, (const char *)body + sizeof(source), size - sizeof(source), &error);
        if (error)
                fprintf(stderr, "primus-executor: a source that was added: %s\n", error);
        return r == -ENOMEM ? r : 0;
}

static int on_control(struct feed *f, const uint8_t *body, size_t size) {
        struct feed_control_order o;
        struct task *t;

        if (size != sizeof(o))
                return -EBADMSG;
        memcpy(&o, body, sizeof(o));
        if (f->child <= 0 || f->exited)
                return 0;
        t = tasks_find(&f->tasks, o.task);
        switch (o.op) {
        case FEED_CONTROL_PAUSE:
                f->paused = true;
                break;
        case FEED_CONTROL_RESUME:
                f->paused = false;
                if (f->delivery->resume)
                        f->delivery->resume(f);
                break;
        case FEED_CONTROL_TRIM:
                if (t && t->place == PLACE_HELD && !t->whole)
                        f->delivery->trim(f, t, o.value);
                else if (t)
                        tasks_report(&f->tasks, t, true);
                break;
        case FEED_CONTROL_SYNC:
                f->sync = o.value;
                f->sync_due = true;
                clients_drain(f); /* behind what has arrived by now */
                if (f->delivery->look)
                        f->delivery->look(f);
                tasks_report_all(&f->tasks);
                break;
        case FEED_CONTROL_DROP:
                if (t) {
                        f->delivery->cancel(f, t);
                        tasks_drop(&f->tasks, t);
                }
                break;
        default: /* of a later version */
                break;
        }
        return 0;
}

/* Returns the exit status to give up with, or 0. */
static int receive_packets(struct feed *f, uint64_t now) {
        struct feed_header h;
        int r;

        while (session_receive(&f->session, now, f->packet, &h) > 0) {
                r = 0;
                switch (h.type) {
                case FEED_WELCOME:
                        r = on_welcome(f);
                        if (r > 0)
                                return r;
                        break;
                case FEED_GRANT:
                        r = on_grant(f, f->packet, h.size);
                        break;
                case FEED_CONTROL:
                        r = on_control(f, f->packet, h.size);
                        break;
                case FEED_SOURCE:
                        r = on_source(f, f->packet, h.size);
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
                if (r < 0) {
                        fprintf(stderr, "primus-executor: orders from agentd: %s\n", strerror(-r));
                        return FEED_EXIT_INTERNAL;
                }
        }
        if (f->child <= 0 && f->session.refused_since > 0 && now - f->session.refused_since > REFUSED_MAX) {
                fprintf(stderr, "primus-executor: agentd refuses this process: %s\n", f->session.refused);
                return FEED_EXIT_REFUSED;
        }
        return 0;
}

/* ---- the trainer's end, and signals ---- */

static void on_exited(struct feed *f, uint64_t now) {
        bool success = f->status == 0;

        clients_drain(f);
        if (f->delivery->finish)
                f->delivery->finish(f, success);
        f->exited = true;
        tasks_finish(&f->tasks, success);
        /* The last report holds all, also what was said before: masterd may have died before it wrote that
         * down. */
        tasks_report_anew(&f->tasks);
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

/* ---- the loop ---- */

static void wait_for_events(struct feed *f, bool blocked, uint64_t until, uint64_t now) {
        struct pollfd fds[4 + CLIENTS_FDS] = {
                { .fd = f->signals, .events = POLLIN },
                { .fd = f->session.fd, .events = (short)(POLLIN | (blocked ? POLLOUT : 0)) },
                { .fd = pipe_poll_fd(f), .events = POLLOUT },
                { .fd = f->wake_fd, .events = POLLIN },
        };
        size_t n = 4;
        struct timespec timeout, *limit = NULL;
        uint64_t count;

        if (f->child > 0 && !f->exited)
                n += clients_poll(f, fds + n);
        if (until != USEC_INFINITY) {
                uint64_t usec = usec_sub(until, now);

                timeout = (struct timespec){ (time_t)(usec / USEC_PER_SEC),
                                             (long)(usec % USEC_PER_SEC) * 1000 };
                limit = &timeout;
        }
        (void)pthread_mutex_unlock(&f->lock);
        (void)ppoll(fds, n, limit, NULL);
        (void)pthread_mutex_lock(&f->lock);
        if (fds[3].revents)
                (void)!read(f->wake_fd, &count, sizeof(count));
}

/* Delivers. Returns when to be called again. */
static uint64_t deliver_step(struct feed *f, uint64_t now) {
        uint64_t next;

        clients_step(f);
        next = f->delivery->step(f, now);
        f->delivery->waits(f, now, &f->counters.consumer_wait_usec, &f->counters.producer_wait_usec);
        return next;
}

/* Returns the exit status where there is no trainer's to return, or -1: end like the trainer. */
static int feed_loop(struct feed *f) {
        for (;;) {
                uint64_t now = now_boot(), until = session_step(&f->session, now), next;
                bool blocked;
                int r;

                r = on_signals(f, now);
                if (r > 0)
                        child_exit_like(r); /* nothing runs yet: a wait status of just the signal */
                r = receive_packets(f, now);
                if (r > 0) {
                        if (f->child > 0 && !f->exited) {
                                (void)kill(f->child, SIGKILL);
                                (void)waitpid(f->child, &f->status, 0);
                        }
                        return r;
                }
                if (f->child > 0 && !f->exited)
                        until = MIN(until, deliver_step(f, now));
                blocked = report_send(f, now, &next) == -EAGAIN;
                if (!blocked)
                        until = MIN(until, next);
                if (f->exited) {
                        if (f->farewell || now >= f->deadline)
                                return -1;
                        until = MIN(until, f->deadline);
                }
                /* A connection that was lost just now is dialled again. */
                until = MIN(until, session_step(&f->session, now));
                wait_for_events(f, blocked, until, now);
        }
}

static void feed_done(struct feed *f) {
        session_done(&f->session);
        clients_done(f);
        if (f->delivery && f->delivery->done)
                f->delivery->done(f);
        tasks_done(&f->tasks);
        f->signals = close_fd(f->signals);
        f->wake_fd = close_fd(f->wake_fd);
#ifdef HAVE_KAFKA
        kafka_done(COMMIT_MAX); /* before the sources, which its connections belong to */
#endif
        f->input = input_free(f->input);
        free(f->packet);
}

int feed_run(const char *socket, char *const argv[]) {
        struct feed f = {
                .lock = PTHREAD_MUTEX_INITIALIZER, .argv = argv, .listener = -EBADF, .signals = -EBADF
        };
        int r;

        session_init(&f.session, socket);
        (void)pthread_mutex_lock(&f.lock);
        f.wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        f.packet = malloc(FEED_PACKET_MAX + 1);
        if (input_load(&f.input) >= 0 && input_reserve(f.input) >= 0)
                f.signals = child_signals(&f.mask);
        if (!f.packet || f.wake_fd < 0 || f.signals < 0) {
                fprintf(stderr, "primus-executor: cannot begin to feed\n");
                feed_done(&f);
                return FEED_EXIT_INTERNAL;
        }
        r = feed_loop(&f);
        if (r < 0 && !f.farewell)
                fprintf(stderr, "primus-executor: agentd did not take the last report; the tasks that it "
                                "says are done will be given out again\n");
        feed_done(&f);
        if (r < 0)
                child_exit_like(f.status);
        return r;
}
