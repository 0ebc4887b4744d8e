/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the logs of a job's executors from the master, all at once, and shows them through a logview. Reads
 * are long calls that the master answers when there is something; at most LOGSTREAM_WINDOW of them are on
 * their way. A slow reader here only asks less often: it never slows an executor. */
#pragma once

#include "tools/primusctl/bus/watch.h"
#include "tools/primusctl/view/logview.h"

#define LOGSTREAM_WINDOW 64u /* the bus daemon allows 128 unanswered calls */

struct logstream_options {
        const char *role; /* of this role alone; NULL: all */
        uint32_t index;
        bool has_index;   /* and of this index alone */
        bool follow;      /* until the executors have ended; otherwise what there is, executor by executor */
        uint32_t tail;    /* the last N lines that there are of each executor; 0: everything */
        uint32_t attempt; /* of this attempt alone; 0: all */
        bool by_rank;     /* prefix "[3] " instead of "role/3 | " */
        uint32_t element; /* of an array: prefix "[3] role/0 | " */
        bool has_element;
        unsigned window;        /* so many calls at a time; 0: LOGSTREAM_WINDOW */
        const char *identifier; /* only lines with this SYSLOG_IDENTIFIER, or NULL */
        const char *output;     /* files instead of the view: a pattern with %j %x %r %i %a %n %%, or NULL */
};

struct logstream;

int logstream_new(struct cli *c, const struct logstream_options *options, struct logview *view,
                  struct logstream **ret);
void logstream_free(struct logstream *l);
DEFINE_CLEANUP(struct logstream *, logstream_free)

/* Is this one of the attempts to be shown, when it gets as far as having a log? */
bool logstream_wants(const struct logstream *l, const struct executor *e);

/* Before logstream_synced(): reads the latest attempt, or the one that is asked for, of one that the job does
 * not have (any more). */
void logstream_left(struct logstream *l, struct watch *w, const char *role, uint32_t index);

/* From a watch's handlers. */
void logstream_executor(struct logstream *l, struct watch *w, const struct executor *e);
void logstream_synced(struct logstream *l, struct watch *w);

void logstream_job_ended(struct logstream *l, struct watch *w);

/* Everything that was asked for has been shown: the job has ended, or not followed, and nothing is left. */
bool logstream_done(const struct logstream *l);

/* How many attempts it had to show. */
size_t logstream_shown(const struct logstream *l);

/* Called (once) when logstream_done() becomes true. */
void logstream_on_done(struct logstream *l, void (*done)(void *userdata), void *userdata);
