/* SPDX-License-Identifier: Apache-2.0 */
/* The tasks that a feed holds, and where each of them is in the stream of bytes that goes through the
 * trainer's pipe. Bookkeeping alone: it reads no file and no clock.
 *
 * A task goes todo -> flow -> waiting -> done: not or partly written to the pipe; written but not yet taken
 * off it by the trainer; taken, but not yet acknowledged under input.ack; DONE. Reporting is separate:
 * whatever changed is put on the dirty list, and leaves it when the report has been sent. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uthash.h>

#include "lib/wire/messages.h"
#include "lib/wire/tasks.h"

#define TASKS_HELD_MAX                                                                                       \
        (1u << 20) /* tasks held at once; matters for input.ack exit, which holds all of them */
#define TASKS_DONE_MAX (1u << 14) /* finished tasks remembered, to tell a new agentd once more */
#define TASKS_WINDOW (64u << 10)  /* tasks are asked for while less than this is unread ... */
#define TASKS_PREFETCH 2u         /* ... or fewer tasks than this */
#define TASKS_CREDITS_MAX 64u

enum task_place {
        PLACE_TODO,
        PLACE_FLOW,
        PLACE_WAITING,
        PLACE_DONE,
        PLACE_FAILED
};

struct task {
        uint64_t id;
        uint64_t granted; /* offset of the grant; start is that aligned down to a line */
        uint64_t start, size, mtime_nsec, inode;
        char *path; /* freed once written */
        int fd;
        bool opened;
        bool spliced;  /* pages of the file itself are in the pipe: checked again when they are read */
        uint64_t sent; /* bytes of the file behind start that have been written */
        uint64_t stream_start, stream_end; /* the task's bytes in the stream; end is known once written */
        enum task_place place;
        uint64_t read, acked; /* as next reported, in bytes of the file */
        char *error;
        bool dirty;
        struct task *prev, *next;             /* todo, flow, waiting or done */
        struct task *dirty_prev, *dirty_next; /* dirty */
        UT_hash_handle hh;
};

struct tasks {
        enum ack_mode ack;
        uint64_t pipe_size;
        uint64_t written;  /* length of the stream so far */
        uint64_t consumed; /* of it, taken off the pipe by the trainer */
        struct task *by_id, *todo, *flow, *waiting, *done, *dirty;
        size_t n_todo, n_flow, n_held, n_done;
        uint64_t todo_bytes;
        bool last;
};

void tasks_init(struct tasks *s, enum ack_mode ack, uint64_t pipe_size);
void tasks_done(struct tasks *s);

/* Takes a grant over (path is copied). 1: new; 0: held already (ignored) or done already (reported once
 * more); -ENOMEM; -ENOBUFS: more than TASKS_HELD_MAX. */
int tasks_grant(struct tasks *s, const struct task_grant *g);

/* The first task in todo has been opened; its bytes come from start on, the stream's next ones. */
void tasks_opened(struct tasks *s, uint64_t start);

/* n bytes of the first task in todo have been written; file: bytes of the file, else the newline behind it.
 */
void tasks_wrote(struct tasks *s, uint64_t n, bool file);

/* The first task in todo is written to its end (it moves to flow). */
void tasks_written(struct tasks *s);

/* A task ends as failed with that text (copied). */
void tasks_fail(struct tasks *s, struct task *t, const char *error);

/* The trainer has taken consumed bytes off the pipe. check is called for every task whose last byte has been
 * taken and may fail it by returning a text. Returns whether anything moved. */
typedef const char *(*tasks_check)(const struct task *t);
bool tasks_consumed(struct tasks *s, uint64_t consumed, tasks_check check);

/* The trainer has ended. success: it counts as having processed what it read. Nothing is held as RUNNING with
 * more acknowledged than that. */
void tasks_finish(struct tasks *s, bool success);

/* How many more tasks to ask for. */
uint32_t tasks_credits(const struct tasks *s);

/* Everything is reported again, to an agentd that may not have passed the last reports on. */
void tasks_report_all(struct tasks *s);

/* Puts one held task on the dirty list if that is empty, for something to say credits with. Returns whether
 * there is anything on it now. */
bool tasks_report_one(struct tasks *s);

/* The state of a task in reports. */
enum task_state tasks_state(const struct task *t);

/* The report of t has been sent. Unless it is kept, to be said again on another connection, t may be gone
 * afterwards. */
void tasks_reported(struct tasks *s, struct task *t, bool keep);
