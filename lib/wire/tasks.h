/* SPDX-License-Identifier: Apache-2.0 */
/* Grants, progress and scan entries as they travel: arrays of little-endian structs, each followed by its
 * bytes. The same bytes are the body of Link1's Grant, FeedReport and ScanBatch (ay) and of the packets on
 * feed.sock, so agentd passes them on without looking into them; who acts on them (masterd, primus-executor)
 * reads them with the functions below, which believe nothing.
 *
 * Positions. A task is a range of one file or stream. A position is a number in it that never goes back in
 * the order of delivery: a byte of the file, or of what comes out of decompressing it, or of what a command
 * printed; for Kafka the offset of a message. A position that is acknowledged lies at the start of a record
 * (stdin: or inside one, and the next reader goes back to the record's start). Where records come in another
 * order than they lie in the file (a shuffle within a window), (offset, skip) says: begin at offset, and skip
 * that many records in the order of delivery. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define TASK_PATH_MAX 4095u
#define TASK_TEXT_MAX 1024u
#define TASKS_WIRE_MAX (60u << 10)         /* bytes of one array: fits a packet of feed.sock */
#define TASK_SPLIT_OFF (UINT64_C(1) << 63) /* in a task's id: it was split off from a slow one */
#define TASK_TO_END UINT64_MAX             /* as an end: wherever the file or stream ends */
#define TASK_UNKNOWN UINT64_MAX            /* as a size */

struct task_grant {
        uint64_t task;       /* id in the job, from 1 */
        uint64_t start, end; /* positions: records that begin in [start, end); end may be TASK_TO_END */
        uint64_t offset;     /* go on from here, >= start */
        uint64_t skip; /* records behind offset that are acknowledged already, in the order of delivery */
        uint64_t size; /* as scanned; a difference fails the task as "changed"; TASK_UNKNOWN: not compared */
        uint64_t mtime_nsec,
                inode;     /* as scanned, 0: not compared. http, s3: inode is a hash of the entity tag */
        uint64_t seed;     /* of the shuffle within this task */
        uint32_t source;   /* index into the job's input description (lib/wire/input.h) */
        uint32_t failures; /* how often it has failed before; rewindSkipNum counts only when there were any */
        const char *path;  /* bytes: file, URL, or TOPIC/PARTITION; NUL-ended, points into the array */
};

enum task_state {
        TASK_RUNNING,
        TASK_DONE,
        TASK_FAILED,
        TASK_RETURNED, /* not wanted any more (the holder is to end, or waits for its turn): PENDING from
                          acked on */
        _TASK_STATE_MAX
};

struct task_progress {
        uint64_t task;
        uint64_t read;    /* position up to which the trainer has got it */
        uint64_t acked;   /* position up to which it counts as processed; cumulative */
        uint64_t skip;    /* records behind acked that count too */
        uint64_t records; /* acknowledged by this holder of the task so far */
        uint64_t end;     /* where the task ends, as far as known; lower than granted after TRIM; TASK_TO_END:
                             unknown */
        uint8_t state;    /* enum task_state */
        const char *error; /* TASK_FAILED: one line, NUL-ended, points into the array; else "" */
};

/* One thing that a scan has found. */
struct scan_entry {
        const char *path;           /* points into the array */
        uint64_t size;              /* TASK_UNKNOWN: not known (a command, a server that does not say) */
        uint64_t mtime_nsec, inode; /* 0: not known */
        uint64_t first,
                last;   /* positions; files: 0, size. Kafka: first offset, end (TASK_TO_END: for ever) */
        uint64_t batch; /* order among sources: YYYYMMDDHH of a time pattern, else 0 */
};

/* Append one to buf, which has *used of size bytes filled. 0; -ENOBUFS: no room (nothing written); -EINVAL: a
 * text is too long. */
int task_grant_write(const struct task_grant *g, uint8_t *buf, size_t size, size_t *used);
int task_progress_write(const struct task_progress *p, uint8_t *buf, size_t size, size_t *used);
int scan_entry_write(const struct scan_entry *e, uint8_t *buf, size_t size, size_t *used);

/* Take one off the front of *buf. 1: *ret filled; 0: the array is over; -EBADMSG. What is handed out keeps
 * the rules above (offset >= start, end >= start, state in the enum, texts NUL-ended and within their bounds,
 * task not 0). */
int task_grant_next(const uint8_t **buf, size_t *size, struct task_grant *ret);
int task_progress_next(const uint8_t **buf, size_t *size, struct task_progress *ret);
int scan_entry_next(const uint8_t **buf, size_t *size, struct scan_entry *ret);

/* What an executor's feed says beside its tasks; all cumulative since its unit began. */
struct feed_counters {
        uint64_t consumer_wait_usec; /* the trainer waited for data */
        uint64_t producer_wait_usec; /* the trainer was busy with data */
        uint64_t bytes, records;     /* delivered */
};

/* FeedControl, master to agent to feeder. */
enum feed_control {
        FEED_CONTROL_PAUSE, /* deliver nothing more until RESUME; leases stay */
        FEED_CONTROL_RESUME,
        FEED_CONTROL_TRIM, /* task, value: give up what lies behind position value, as far as it has not been
                            * read yet. The feeder answers with progress whose end is where the task now ends
                            * (maybe unchanged) */
        FEED_CONTROL_SYNC, /* value: answer with a report of all tasks that says this number, behind all
                            * acknowledgements that have arrived by now */
        FEED_CONTROL_DROP, /* task: its lease is withdrawn (a person skips it); no progress of it counts any
                              more */
        _FEED_CONTROL_MAX
};
