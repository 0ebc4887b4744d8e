/* SPDX-License-Identifier: Apache-2.0 */
/* The feeder's state, shared by its loop (feed.c), what it says to agentd (report.c), the trainer's
 * connections (clients.c) and the three ways of delivery (pipe.c, lane.c, ranges.c). Not for others.
 *
 * Threads: the loop's, and the producers' (producer.h). Everything here is under lock, which the loop has but
 * while it waits. */
#pragma once

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "executor/feed/checkpoint.h"
#include "executor/feed/flow.h"
#include "executor/feed/producer.h"
#include "executor/feed/seats.h"
#include "executor/feed/session.h"
#include "executor/feed/tasks.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/primus/client-wire.h"
#include "lib/wire/input.h"

struct feed;
struct lane;
struct client;

/* A way of delivery. Any of these may be NULL. */
struct delivery_ops {
        /* The trainer runs. */
        int (*begin)(struct feed *f);
        /* Something may have changed: tasks, acknowledgements, room. now: CLOCK_BOOTTIME. Returns when to be
         * called at the latest; 0: at once. */
        uint64_t (*step)(struct feed *f, uint64_t now);
        /* Delivery goes on after a pause. */
        void (*resume)(struct feed *f);
        /* What the trainer has got by now is to be known. */
        void (*look)(struct feed *f);
        /* The trainer has ended; what it has said is known. All producers have been stopped. */
        void (*finish)(struct feed *f, bool success);
        /* masterd gives the task up, or wants its end cut. */
        void (*cancel)(struct feed *f, struct task *t);
        void (*trim)(struct feed *f, struct task *t, uint64_t position);
        /* A client has been welcomed, has asked for tasks, is gone. */
        int (*client_new)(struct feed *f, struct client *c);
        void (*client_gone)(struct feed *f, struct client *c);
        /* Who of the trainer waits for data. */
        struct hunger (*hunger)(struct feed *f);
        /* The counters' two: how long trainers have waited for data, and were busy with it. */
        void (*waits)(struct feed *f, uint64_t now, uint64_t *ret_consumer, uint64_t *ret_producer);
        void (*done)(struct feed *f);
};
extern const struct delivery_ops delivery_pipe, delivery_ring, delivery_ranges;

/* A process of the trainer that is connected. */
struct client_packet {
        struct client_packet *next;
        int fd; /* goes with it; -EBADF */
        size_t size;
        uint8_t bytes[];
};
struct client {
        struct client *prev, *next;
        int fd;
        bool greeted;   /* HELLO has been answered with WELCOME */
        bool gone;      /* to be freed once its lane has ended */
        uint8_t *state; /* of HELLO or COMMIT, while it is being received */
        size_t state_size, state_allocated;
        uint32_t state_type; /* which of the two; 0: none */
        struct client_packet *queue;
        size_t queued;
        struct lane *lane;     /* ring */
        struct seat seat;      /* descriptor */
        uint64_t hungry_since; /* descriptor: asked, and nothing is there; 0: no */
        uint64_t busy_since;   /* descriptor: has had a task since; 0: none yet */
};

struct pipe_delivery;
struct ranges;

struct feed {
        pthread_mutex_t lock;
        struct session session;
        struct input *input;
        enum ack_mode ack;
        const struct delivery_ops *delivery;
        struct tasks tasks;
        struct checkpoint checkpoint;
        bool was_greeted; /* a trainer has said HELLO */
        char *const *argv;
        int signals;
        int wake_fd;
        sigset_t mask;
        pid_t child;
        int status; /* of waitpid(), once exited */
        bool exited;
        bool stopping; /* somebody has asked us to stop */
        bool paused;   /* by masterd */

        /* clients.c */
        int listener;
        char feed_name[108];
        uint8_t job_uid[16];
        struct client *clients;
        unsigned n_clients;

        /* pipe.c, lane.c, ranges.c */
        struct pipe_delivery *pipe;
        struct ranges *ranges;
        unsigned readers; /* that read tasks at once, for the number of credits */
        uint64_t reads;   /* rises whenever the trainer is seen to have read something */
        struct {
                uint64_t reads, since;
        } still;                                         /* since when it has been no more than that */
        bool in_turn;                                    /* its processes wait for each other */
        uint64_t gone_consumer_usec, gone_producer_usec; /* of clients that are gone */

        /* report.c */
        bool announced; /* this connection has been told what we hold */
        bool bye_sent, farewell;
        bool sync_due;
        uint64_t sync;
        struct told told;
        uint64_t next_report;
        struct feed_counters counters, counters_told;
        uint64_t deadline; /* for the last report */
        uint8_t *packet;
};

/* ---- report.c ---- */
/* Sends what has changed. *ret_next: when there is more to say. 0, -EAGAIN (wait for the socket), -ENOTCONN.
 */
int report_send(struct feed *f, uint64_t now, uint64_t *ret_next);
/* Everything is to be said again, on a new connection. */
void report_anew(struct feed *f);

/* ---- clients.c ---- */
/* Makes the socket and puts PRIMUS_FEED into the environment. */
int clients_listen(struct feed *f);
void clients_done(struct feed *f);
/* Adds what to wait for at fds, at most CLIENTS_FDS of them; returns how many. */
#define CLIENTS_FDS (1 + 2 * CLIENTS_MAX)
size_t clients_poll(struct feed *f, struct pollfd *fds);
/* Takes what has come, sends what waits. */
void clients_step(struct feed *f);
/* The trainer has ended: everything that it has said is taken. */
void clients_drain(struct feed *f);
/* Sends a packet, or queues it; fd goes with it and is taken over (-EBADF: none). */
int client_send(struct client *c, uint32_t type, const void *body, size_t size, int fd);
/* Since when nothing has been read. */
uint64_t clients_still_since(struct feed *f, uint64_t now);
/* Whether one that waits is told the end now; else *next is no later than when to look again. */
bool clients_end_due(struct feed *f, struct end_wait w, uint64_t now, uint64_t *next);
/* Whether everything sent is with the client. */
static inline bool client_flushed(const struct client *c) {
        return !c->queue;
}
/* The client that has been welcomed, where there can be one alone; NULL. */
struct client *clients_first(struct feed *f);
static inline bool ack_by_client(enum ack_mode a) {
        return a == ACK_EXPLICIT || a == ACK_CHECKPOINT;
}

/* ---- lane.c: a ring of one client ---- */
int lane_fd(const struct lane *l); /* readable when slots have been released */
void lane_fds(const struct lane *l, int ret[static 4]);
bool lane_hostile(const struct lane *l); /* the trainer wrote nonsense */
/* The trainer says that it cannot use the task. */
void lane_fail(struct feed *f, struct client *c, struct task *t, const char *why);
/* True once it is gone: the client may be freed. */
bool lane_over(struct feed *f, struct client *c);
/* Makes room of what its trainer has released until now. */
void lane_look(struct feed *f, struct client *c);
/* Around the reading of all that the trainer has said: what it had released before counts behind that. */
void lane_collect(struct feed *f, struct client *c);
void lane_settle(struct client *c);

/* ---- pipe.c ---- */
int pipe_start(struct feed *f, int *ret_stdin);
int pipe_poll_fd(const struct feed *f);
int pipe_processed(struct feed *f, uint64_t bytes);

/* ---- ranges.c ---- */
int ranges_next(struct feed *f, struct client *c, uint32_t credits);
/* The trainer has all of the task. -ERANGE: it has not got it. */
/* The trainer is through with a task that is nobody's any more. */
void ranges_forget(struct feed *f, struct client *c, uint64_t task);
int ranges_whole(struct feed *f, struct client *c, struct task *t);
void ranges_at(struct feed *f, struct client *c, struct task *t, uint64_t position);
void ranges_fail(struct feed *f, struct client *c, struct task *t, const char *why);
int ranges_trimmed(struct feed *f, struct client *c, struct task *t, uint64_t end);
