/* SPDX-License-Identifier: Apache-2.0 */
/* What the socket and the way to masterd share. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <systemd/sd-bus.h>
#include <systemd/sd-event.h>
#include <uthash.h>

#include "agentd/calls/calls.h"
#include "agentd/calls/gate.h"
#include "agentd/calls/matches.h"
#include "lib/base/burst.h"

/* What one user has under way, over all connections; there while he has one. */
struct user {
        uint32_t uid;
        unsigned n_callers, n_calls;
        size_t bytes;       /* of these calls */
        struct burst calls; /* within a second */
        UT_hash_handle hh;
};

/* Who is at the other end of a connection to the socket. */
struct caller {
        struct calls *calls;
        struct user *user;
        struct matches matches;
        struct gate *gate;
        sd_bus *bus;
        size_t unread;   /* bytes that it was sent since it had read all */
        char name[24];   /* ":0.7", for masterd, and on this connection */
        uint32_t job;    /* that it is in; 0: in none */
        bool told, over; /* masterd has heard of it; it is freed in the next turn */
        struct caller *prev, *next;
};

/* Signals that masterd is asked for. */
struct wanted {
        char *path; /* "": all of them */
        unsigned n; /* rules of callers */
        UT_hash_handle hh;
};

/* One on its way. */
struct call {
        struct caller *caller;
        sd_bus_message *message; /* as it came */
        sd_bus_slot *slot;       /* masterd has it; else it waits */
        size_t bytes;            /* of the message, about, once it is handed on */
        uint64_t since;
        struct call *prev, *next;
};

struct calls {
        sd_event *event;
        const char *master, *path;
        calls_job_of job_of;
        void *userdata;
        struct link *link;

        /* door.c */
        int fd;
        sd_event_source *listener, *over;
        struct user *users;
        struct caller *callers;
        unsigned n_callers;
        uint64_t last;

        /* calls.c */
        sd_bus_slot *filter; /* on the connection to masterd: signals */
        struct call *calls;
        unsigned n_calls;
        size_t bytes; /* of these */
        struct wanted *wanted;
        sd_event_source *patience, *idle;
        bool patient; /* the former is set */
        bool lost;    /* the connection is, and callers have heard of it */
};

/* ---- door.c ---- */

int door_open(struct calls *q);
void door_close(struct calls *q);
/* An answer, of so many bytes. Who does not read is hung up on. */
void door_answer(struct caller *e, sd_bus_message *reply, size_t bytes);
/* To one of them, or to all (e NULL). The same. */
void door_signal(struct calls *q, struct caller *e, sd_bus_message *signal);
/* The service is not there any more, or is again. */
void door_owner(struct calls *q, bool there);

/* ---- calls.c ---- */

/* A call for masterd: answered now or later. */
void calls_take(struct caller *e, sd_bus_message *call);
/* Somebody wants to hear the signals of that path ("": all), or wants it no more: each once. */
void calls_listen(struct calls *q, const char *path);
void calls_unlisten(struct calls *q, const char *path);
/* It is gone, with what it waits for; masterd hears of it. */
void calls_caller_gone(struct caller *e);
/* An error, if somebody waits for an answer. */
void calls_refuse(sd_bus_message *call, const char *name, const char *why);
