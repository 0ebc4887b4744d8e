/* SPDX-License-Identifier: Apache-2.0 */
/* One thread that does the file I/O of kept logs, so that a busy disk never stalls the loop. In order; what
 * is to be appended waits in at most LOG_WORKER_BYTES_MAX bytes, beyond that the oldest is dropped and
 * counted. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <systemd/sd-event.h>

#include "lib/wire/messages.h"

#define LOG_WORKER_BYTES_MAX (32u << 20)
#define LOG_LINE_MAX 512u

enum log_task_kind {
        LOG_TASK_APPEND, /* data, size, offset */
        LOG_TASK_READ,   /* offset, tail -> data, size, offset */
        LOG_TASK_ERROR,  /* -> line */
        LOG_TASK_FORGET, /* id.job */
};

struct log_task {
        enum log_task_kind kind;
        struct executor_id id;
        uint64_t offset;
        uint64_t tail;
        char *data; /* owned */
        size_t size;
        char line[LOG_LINE_MAX]; /* "" where there is none */
        int result;
        void (*done)(struct log_task *t,
                     void *userdata); /* in the loop; may be NULL. The task is freed afterwards. */
        void *userdata;
        struct log_task *next;
};

struct log_worker;

/* directory is made when it does not exist. */
int log_worker_new(sd_event *event, const char *directory, struct log_worker **ret);
/* Finishes what is to be written; done() is not called any more. */
void log_worker_free(struct log_worker *w);

struct log_task *log_task_new(enum log_task_kind kind, const struct executor_id *id); /* NULL: no memory */
/* Takes the task over. */
void log_worker_push(struct log_worker *w, struct log_task *t);
/* How many appends were dropped. */
uint64_t log_worker_dropped(struct log_worker *w);
