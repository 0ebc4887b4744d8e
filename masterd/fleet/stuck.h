/* SPDX-License-Identifier: Apache-2.0 */
/* Executors that do not die though SIGKILL was sent: the host takes nothing new, and what they have stays
 * theirs. Their job goes on without them (another attempt elsewhere, or the end) where two attempts may
 * overlap, which is for onPartition to say: with replace at once; with stop and wait only when the job is
 * ending for good. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "lib/wire/messages.h"
#include "masterd/job/job.h"

struct manager;
struct node;

/* An attempt that is over for its job and holds its place. */
struct stuck {
        struct executor_id id;
        uint64_t since_real;
        uint64_t cpu_milli, memory, gpus;
        uint16_t *ports;
        size_t n_ports;
        uint64_t shm;
        bool whole;                   /* it is on a whole host of its job */
        struct sched_cpuset *cpus;    /* its own; NULL: it shares */
        struct sched_amount *amounts; /* of licences */
        uint32_t n_amounts;
        char *reason;
        bool reported; /* by the registration that is being read */
        struct stuck *next, *prev;
};

/* The agent says that it does not die; text: what is in the way. */
void stuck_told(struct manager *m, struct node *node, const struct executor_id *id, const char *text);
/* The agent reports its unit. False: there is none of that id. */
bool stuck_reported(struct node *node, const struct executor_id *id);
/* It has ended at last. False: there is none of that id. */
bool stuck_ended(struct manager *m, struct node *node, const struct executor_id *id);
/* The registration is read: what it did not name is gone. */
void stuck_registered(struct manager *m, struct node *node);
/* The host lists its GPUs in another way from now on: what they hold of them is given back, and taken again
 * when the scheduler knows of that list. */
void stuck_let_go(struct manager *m, struct node *node, const struct inventory *new);
void stuck_take_again(struct manager *m, struct node *node);
/* The host is dead, and so are they. */
void stuck_forget(struct manager *m, struct node *node);
/* An executor there has ended. */
void stuck_review(struct manager *m, struct node *node);
int stuck_load(struct manager *m);
/* The manager goes. */
void stuck_free_all(struct manager *m);
