/* SPDX-License-Identifier: Apache-2.0 */
/* Logs of executors: the journal of their host is read through its agent; the last 256 KiB of every attempt
 * are kept here, so that they outlive the host. What is kept is written by a thread of its own: a busy disk
 * must not stall the loop. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <systemd/sd-bus.h>

#include "lib/wire/messages.h"

struct manager;
struct node;
struct job;
struct executor;
struct logs;

#define LOG_KEPT_MAX (256u << 10)

int logs_new(struct manager *m, struct logs **ret);
void logs_free(struct logs *l);

/* Bytes [offset, offset + size) of an attempt's log, from its agent. A gap (the executor printed faster than
 * what is worth keeping) starts the kept part anew. */
void logs_tail(struct manager *m, struct node *node, const struct executor_id *id, uint64_t offset,
               const void *bytes, size_t size);

#define LOOKER_NONE UINT32_MAX
struct log_wish {
        const void *cursor; /* of the answer before; empty: from the start */
        size_t cursor_size;
        uint64_t wait_usec; /* for the first byte */
        uint64_t tail;      /* only so many bytes before the end of what is there, with an empty cursor; 0 or
                               UINT64_MAX: all */
        uint32_t looker; /* who reads because the job is visible to him: when that is over, his answer is that
                            there is nothing new; LOOKER_NONE: who reads by right */
        const char *identifier; /* only lines with this SYSLOG_IDENTIFIER, which the host alone knows; NULL:
                                   all */
};
/* Answers Job.ReadLog(s role, u index, u attempt, ay cursor, t wait, a{sv}) for an attempt of a job: by the
 * agent of node while it is connected, else from what is kept. attempt > 0. call: the request. Returns like a
 * method handler. */
int logs_read(struct manager *m, const struct job *j, struct node *node, const struct executor_id *id,
              const struct log_wish *wish, sd_bus_message *call);

/* The executor's current attempt has failed: as soon as its last words are here (at most 5 s later), its
 * traceback or first error line becomes an event and, unless there is one, the job's first_error. */
void logs_note_failure(struct manager *m, struct executor *e);
/* Such words of the job's are still awaited. */
bool logs_awaited(struct manager *m, const struct job *j);

/* Removes what is kept of a job that the store forgets. */
void logs_forget(struct manager *m, uint32_t job);

/* The last Python traceback's final line with its place, or the first line that looks like an error
 * ("error:", "fatal", "Segmentation fault", "command not found", "No such file", "Traceback", "CUDA error",
 * "NCCL", ...), from log text. Pure. Returns the length written to buf (cleaned of control characters, one
 * line, valid UTF-8), 0 where there is none. */
size_t logs_error_line(const char *text, size_t size, char *buf, size_t buf_size);
