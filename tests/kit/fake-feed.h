/* SPDX-License-Identifier: Apache-2.0 */
/* A primus-executor for tests of libprimus: speaks client-wire.h to any number of trainer processes, takes
 * its tasks from local files, and writes down every packet that it gets. It keeps no leases: a task goes to
 * one connection and is over with it. */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>

#include "lib/primus/client-wire.h"
#include "lib/record/record.h"
#include "lib/wire/input.h"

struct fake_feed {
        /* what it is to be */
        enum input_delivery mode;
        enum ack_mode ack;
        struct record_format_info format;
        uint32_t slots, slot_size;
        uint64_t task_size; /* target; 0: a file is a task */
        uint64_t max_record;
        char **files;
        size_t n_files;
        FILE *log;
        uint64_t trim_task, trim_end; /* descriptor: asked for once, when the task has been sent */
        uint64_t break_task;          /* ring: breaks off in the middle of this task */
        unsigned slots_per_record;    /* ring: > 1: records are sent in that many fragments */
        int pipe_fd;                  /* stdin: the writing end */
        uint32_t version;             /* that it says; 0: this one */
        /* of its own */
        char name[100];
        int listener;
        pthread_t thread;
        pthread_mutex_t lock;
        struct fake_task *tasks;
        size_t n_tasks, next;
        uint64_t feeding; /* stdin: has begun */
};

/* Listens and serves in a thread; f->name is what $PRIMUS_FEED has to be. */
int fake_feed_start(struct fake_feed *f);
/* Waits for the connections to end. */
void fake_feed_stop(struct fake_feed *f);
