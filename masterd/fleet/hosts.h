/* SPDX-License-Identifier: Apache-2.0 */
/* The life of hosts: why they take nothing new, how what runs there leaves, what follows when it has left,
 * and which hosts a job avoids. Everything here changes memory and the open batch together. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "masterd/job/job.h"
#include "masterd/node/node.h"

struct manager;

/* The node is held for that cause from now on; a hold of the same cause is replaced. value->since_real 0:
 * now. -ENOMEM. */
int hosts_hold(struct manager *m, struct node *node, enum hold_cause cause, const struct node_hold *value,
               const char *reason);
/* What a hook, or something that Primus noticed, holds a node for: nothing new is placed, what runs may end.
 * uid 0. */
int hosts_hold_noticed(struct manager *m, struct node *node, enum hold_cause cause, const char *reason);
/* The site's prolog of the job failed there: the node is held, and blamed. text: the agent's word. */
void hosts_prolog_failed(struct manager *m, struct node *node, const struct job *j, const char *text);
/* False: it was not held for that. why: for the log. */
bool hosts_release(struct manager *m, struct node *node, enum hold_cause cause, const char *why);

/* Moves what is due to leave the node. */
void hosts_review(struct manager *m, struct node *node);
/* Something that held a place on the node has gone. */
void hosts_left(struct manager *m, struct node *node);
/* The agent has registered; its boot is node->boot_id. */
void hosts_registered(struct manager *m, struct node *node);

/* Moves the job's executors off the node and has the job avoid it. How many are moved; -ESRCH with a sentence
 * in text when the job has ended, -EINVAL when it could run nowhere any more, -EALREADY, -ENOMEM. */
int hosts_replace(struct manager *m, struct job *j, struct node *node, uint32_t uid, char text[static 256]);

/* The job avoids the node from now on, for what became of an executor there; nobody is moved. -EINVAL with a
 * sentence in text when the job could run nowhere any more; -ENOMEM. */
int hosts_avoid_for(struct manager *m, struct job *j, struct node *node, const char *why,
                    char text[static 256]);

/* Slots of the hosts where no executor of the role may start now, though they take others: those that the job
 * avoids, and those with a maintenance window into which it would run. Allocated; NULL for none. -ENOMEM. */
int hosts_excluded(struct manager *m, const struct job *j, const struct role_spec *spec, uint32_t **ret,
                   size_t *ret_n);

/* The job may use the host again: what it avoided there, and what failed there, is forgotten. The host's own
 * state stays as it is. -ESRCH with a sentence in text: it is not kept off it; -ENOMEM. */
int hosts_allow(struct manager *m, struct job *j, const char *node, uint32_t uid, char text[static 256]);

/* What is stored of nodes, behind the nodes; of jobs, behind the jobs and before their executors. */
int hosts_load_nodes(struct manager *m);
int hosts_load_jobs(struct manager *m);
/* Deadlines and windows from now on; what is due is done. */
int hosts_start(struct manager *m);
void hosts_stop(struct manager *m);
/* The next deadline may be another. */
void hosts_arm(struct manager *m);
