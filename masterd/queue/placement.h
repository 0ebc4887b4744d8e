/* SPDX-License-Identifier: Apache-2.0 */
/* Between jobs and the scheduler: who holds what where. Who is next is queueing.h's. */
#pragma once

#include "masterd/job/job.h"
#include "masterd/sched/sched.h"

struct manager;
struct node;
struct placement;

/* Sets m->placement. */
int placement_new(struct manager *m);
void placement_free(struct placement *p);

/* The node's inventory, address or state has changed (or it is new). */
int placement_node_changed(struct manager *m, struct node *node);
void placement_node_removed(struct manager *m, struct node *node);

/* Gives back what the executor holds. */
void placement_release(struct manager *m, struct executor *e);
/* While what its role may hold changes: takes it off the books, and puts it there again. */
void placement_suspend_hold(struct manager *m, struct executor *e);
void placement_resume_hold(struct manager *m, struct executor *e);
/* Reserves what a loaded executor holds. */
int placement_restore(struct manager *m, struct executor *e);
/* A port that was granted is in use on the host: not again for a while. */
void placement_port_taken(struct manager *m, struct executor *e);
/* GPUs of it that nobody gets any more, as bits of its list. */
void placement_set_gpus_off(struct manager *m, struct node *node, uint64_t gpus);
/* What a node has left. */
void placement_free_of(const struct manager *m, const struct node *node, uint64_t *ret_cpu_milli,
                       uint64_t *ret_memory, uint32_t *ret_gpus);

/* What is held on the node beside its executors, by an attempt that does not die: taken (take), or given
 * back. False: it is somebody else's, or there is no memory, and it holds nothing. */
bool placement_hold_beside(struct manager *m, struct node *node, const struct sched_hold *hold, bool take);
/* Amounts of consumables as they are stored: "NAME=N NAME=N", allocated; -ENOMEM, -EINVAL. */
int placement_amounts_text(struct manager *m, const struct sched_amount *amounts, uint32_t n, char **ret);
int placement_amounts_parse(struct manager *m, const char *text, struct sched_amount **ret, uint32_t *ret_n);
