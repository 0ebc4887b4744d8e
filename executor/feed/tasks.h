/* SPDX-License-Identifier: Apache-2.0 */
/* The tasks that a feed holds: how far each has been delivered to the trainer, how far it counts, and what of
 * that has to be reported. Bookkeeping alone: it reads no file and no clock, and knows no way of delivery.
 *
 * A task waits (TODO) until somebody takes it, who delivers it (HELD): bytes in a pipe, slots of a ring, a
 * descriptor. It is DONE when all of it has been delivered (whole) and counts (input.ack). Reporting is
 * separate: whatever changed is on the dirty list, and leaves it when the report has been sent.
 *
 * What was delivered and does not count yet is with the trainer: as long as the one that has it lives, its
 * acknowledgements count, and nobody is given it again; a task that failed and is granted once more goes on
 * behind it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uthash.h>

#include "lib/wire/messages.h"
#include "lib/wire/tasks.h"

#define TASKS_HELD_MAX                                                                                       \
        (1u << 20) /* tasks held at once; matters for input.ack exit, which holds all of them */
#define TASKS_OVER_MAX (1u << 14) /* tasks remembered that are over, to tell a new agentd once more */
#define TASKS_WINDOW                                                                                         \
        (64u << 10)       /* tasks are asked for while less than this (and than was read) is unread ... */
#define TASKS_PREFETCH 2u /* ... or fewer tasks than this for each that reads them */
#define TASKS_CREDITS_MAX 64u

/* A place in the order of delivery: see the positions of lib/wire/tasks.h. */
struct task_mark {
        uint64_t position, skip;
};
static inline bool mark_before(struct task_mark a, struct task_mark b) {
        return a.position < b.position || (a.position == b.position && a.skip < b.skip);
}

enum task_place {
        PLACE_TODO,    /* nobody reads it */
        PLACE_HELD,    /* somebody delivers it, or has */
        PLACE_SETTLED, /* input.ack exit: all of it counts if the trainer exits 0 */
        PLACE_DONE,
        PLACE_FAILED,
        PLACE_RETURNED,
        PLACE_DROPPED, /* taken away; gone once nobody reads it */
        _PLACE_MAX
};

struct task {
        uint64_t id;
        struct task_grant grant; /* its path is the task's own; end is lowered by a trim */
        enum task_place place;
        void *holder;      /* HELD: who delivers it. TODO: who alone may go on with it; NULL: anybody */
        bool busy;         /* a producer's thread has it in its hands: it is not freed now */
        bool whole;        /* all of it has been delivered */
        bool broken;       /* its trainer could not use it: a further attempt goes on from acked */
        bool trim_pending; /* an answer to TRIM is owed, once the reader has said where it ends */
        struct task_mark granted; /* where it began here */
        struct task_mark from;    /* where reading begins next */
        struct task_mark delivered, acked;
        uint64_t read;       /* position as next reported: what the trainer has got */
        uint64_t records;    /* that count */
        uint64_t generation; /* rises when what was delivered before does not count any more */
        uint64_t end;        /* as far as known; TASK_TO_END */
        uint64_t left;       /* bytes that the trainer has not got, as counted in unread_bytes; 0 once none */
        bool unread;         /* counted as such */
        char *error;
        bool told; /* FAILED or RETURNED, and reported so */
        bool dirty;
        struct task *prev, *next;             /* todo, or over */
        struct task *dirty_prev, *dirty_next; /* dirty */
        UT_hash_handle hh;
};

struct tasks {
        enum ack_mode ack;
        struct task *by_id, *todo, *over, *dirty;
        size_t n_todo, n_held, n_over, n_unread;
        uint64_t unread_bytes;
        uint64_t got;   /* bytes that the trainer has got */
        bool last;      /* nothing more will be granted */
        bool succeeded; /* the trainer has exited 0 */
        bool urgent;    /* something on the dirty list is not to wait */
};

void tasks_init(struct tasks *s, enum ack_mode ack);
void tasks_done(struct tasks *s);
struct task *tasks_find(struct tasks *s, uint64_t id);

/* Takes a grant over (path is copied). 1: new, or to be gone on with; 0: held already (ignored) or done
 * already (reported once more); -ENOMEM; -ENOBUFS: more than TASKS_HELD_MAX. */
int tasks_grant(struct tasks *s, const struct task_grant *grant);
/* A checkpoint says that the task has come so far, or (position TASK_TO_END) that it is done: goes on from
 * there if it is further. Only for a task of which nothing has been delivered. */
void tasks_resume(struct tasks *s, struct task *t, struct task_mark mark);

/* The next task that holder may deliver, HELD by it from now on; NULL: none. */
struct task *tasks_take(struct tasks *s, void *holder);
/* Whether tasks_take() would give one. */
bool tasks_may_take(const struct tasks *s, const void *holder);
/* What holder has and does not count yet is for others again. Nobody may be busy with one of its tasks. */
void tasks_give_back(struct tasks *s, void *holder);
/* One that was taken and has not been begun: it waits again, for anybody. */
void tasks_put_back(struct tasks *s, struct task *t);
/* Its stream has nothing now: RETURNED if all that was delivered counts, else it waits for its holder. */
void tasks_again(struct tasks *s, struct task *t);

/* Nothing lies before mark that has not been delivered. */
void tasks_begin(struct task *t, struct task_mark mark);
/* Delivered up to mark. */
void tasks_delivered(struct tasks *s, struct task *t, struct task_mark mark);
/* The trainer has got everything before position. left: bytes of it that it has not got. */
void tasks_read(struct tasks *s, struct task *t, uint64_t position, uint64_t left);
/* All of it has been delivered; it ends where that does. */
void tasks_whole(struct tasks *s, struct task *t);
/* It ends there, as far as known. */
void tasks_set_end(struct tasks *s, struct task *t, uint64_t end);
/* Counts up to mark (position TASK_TO_END: all, of one that is whole), and records more. 0, also when that is
 * known already; -ERANGE: so much has not been delivered. */
int tasks_ack(struct tasks *s, struct task *t, struct task_mark mark, uint64_t records);
/* So many records count in all. */
void tasks_count(struct task *t, uint64_t records);

/* Its trainer cannot use it; what it still does with what it has of it does not count. */
void tasks_break(struct tasks *s, struct task *t, const char *error);
/* A task ends as failed with that text (copied). */
void tasks_fail(struct tasks *s, struct task *t, const char *error);
/* Its lease is withdrawn: nothing of it is reported any more. */
void tasks_drop(struct tasks *s, struct task *t);
/* Nobody is busy with it any more: frees one that was dropped meanwhile. */
void tasks_idle(struct tasks *s, struct task *t);

/* The trainer has ended. */
void tasks_finish(struct tasks *s, bool success);

/* How many more tasks to ask for, with so many that read them, unserved of which wait and can take none of
 * those that are here. */
uint32_t tasks_credits(const struct tasks *s, unsigned readers, unsigned unserved);
/* How many wait that anybody may take; those of holder alone are no part of it. */
uint64_t tasks_free(const struct tasks *s, uint64_t at_most);
/* Whether one waits that holder alone may take. */
bool tasks_own(const struct tasks *s, const void *holder);

/* Everything is reported again, to an agentd that may not have passed the last reports on. */
void tasks_report_all(struct tasks *s);
/* And to a masterd that may not have written them down: also what went back, how far it had come. Only where
 * none of it can have been granted here since: on a new connection, and at the end. */
void tasks_report_anew(struct tasks *s);
void tasks_report(struct tasks *s, struct task *t, bool urgent);
/* What to say of it. The text lives as long as t. */
struct task_progress tasks_progress(const struct tasks *s, const struct task *t);
/* The report of t has been sent. Unless it is kept, to be said again on another connection, t may be gone
 * afterwards. */
void tasks_reported(struct tasks *s, struct task *t, bool keep);
