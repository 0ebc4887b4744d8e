/* SPDX-License-Identifier: Apache-2.0 */
/* What sessions.c (their life) and session-start.c (from the call to a process) share. Not for others. */
#pragma once

#include <uthash.h>
#include <utlist.h>

#include "agentd/session/sessions.h"
#include "lib/base/unitname.h"
#include "lib/wire/session.h"

/* A call of masterd's that is answered later. */
struct waiting {
        sd_bus_message *call;
        uint64_t deadline_boot; /* reads */
        const uint8_t *data;    /* writes: into the call */
        size_t at, size;
        bool end;
        struct waiting *next, *prev;
};

struct session {
        struct sessions *sessions;
        uint32_t number;
        struct executor_id id;
        char unit[SESSION_UNIT_NAME_MAX];

        /* while it is being opened */
        sd_bus_message *opening; /* the call */
        uint8_t *start;          /* the packet that lets the process begin */
        size_t start_size;
        unsigned questions; /* to systemd about the executor's unit, under way */
        int failed;         /* the first answer that was none */
        char **environment, *directory;
        bool no_new_privileges, submitted;
        bool artifacts; /* of no executor: reads what the job has left */
        uint32_t uid;
        uint32_t caller; /* who asked for it, as masterd says; AUDIT_NO_UID: it does not */
        uint64_t memlock;

        int fd; /* to primus-session; -EBADF: before and after it */
        sd_event_source *io, *timer;
        struct waiting *reads, *writes;
        unsigned n_reads, n_writes;
        bool over; /* with this status */
        bool told; /* and a reader knows */
        int32_t status;
        char *why;
        UT_hash_handle hh; /* by number */
};

/* The unit of a reader of artifacts whose session is over: its process is the user's, who may keep it. */
struct leaving {
        uint32_t uid, number;
        char unit[SESSION_UNIT_NAME_MAX];
        uint64_t asked_boot; /* when it was last to be stopped */
        struct leaving *next, *prev;
};

/* A call to systemd about a session, which may be gone when the answer comes. */
struct question {
        struct sessions *sessions;
        uint32_t number;
        unsigned what;
        struct question *next, *prev;
};

struct sessions {
        sd_event *event;
        struct units *units; /* NULL: gone */
        struct serving *serving;
        const char *node;
        struct session *list;
        struct question *questions;
        struct leaving *leaving;
        uint8_t buffer[SESSION_PACKET_MAX];
};

/* facts: whose it is; the packet of start_size bytes is in the buffer. It waits to be opened. */
int session_new(struct sessions *all, uint32_t number, const struct unit_facts *facts, sd_bus_message *call,
                size_t start_size, struct session **ret);
/* The session may be opened: 0, or with error set. */
int session_admit(struct sessions *all, uint32_t number, uint32_t uid, sd_bus_error *error);
/* Reads aay, appending each string with its NUL to the buffer; counts them. */
int session_read_strings(sd_bus_message *m, uint8_t *buffer, size_t *size, uint32_t *ret_n);
/* Has the starter start its unit. */
int session_submit(struct session *s);
/* session-artifacts.c: has the session's unit stopped, which counts until it is gone. */
void session_stop_reader(const struct session *s);
struct session *session_find(struct sessions *s, uint32_t number);
/* Everything of it goes; who waits is told that it is over. */
void session_free(struct session *s);

/* session-start.c: asks systemd what the executor's unit is like, and goes on from there. */
int session_ask(struct session *s);
/* systemd's job for the session's unit is over. */
void session_started(struct session *s, const char *result);
/* Answers SessionOpen with an error and frees the session. */
void session_refuse(struct session *s, const char *error, const char *format, ...) _printf_(3, 4);
/* sessions.c: primus-session may begin. */
int session_begin(struct session *s);
