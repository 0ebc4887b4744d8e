/* SPDX-License-Identifier: Apache-2.0 */
/* The signals of org.primus.Master1, and the names of its objects. A signal leaves when what it tells is on
 * disk. */
#pragma once

#include <stdint.h>

struct manager;
struct job;
struct executor;
struct node;

#define MASTER_PATH "/org/primus/Master1"
#define MASTER_JOB_PREFIX "/org/primus/Master1/job"
#define MASTER_NODE_PREFIX "/org/primus/Master1/node"
#define MASTER_MANAGER "org.primus.Master1.Manager"
#define MASTER_JOB "org.primus.Master1.Job"
#define MASTER_NODE "org.primus.Master1.Node"

/* The path of the job's object. Returns buf. */
char *notice_job_path(uint32_t number, char buf[static 64]);

/* Broadcast: JobNew, JobRemoved, and changes of a property. */
void notice_job_new(struct manager *m, const struct job *j);
void notice_job_changed(struct manager *m, struct job *j);
void notice_job_removed(struct manager *m, struct job *j);
void notice_node_changed(struct manager *m, struct node *node);
/* These properties have other values; other may be NULL. At once, to all who listen. */
void notice_properties(struct manager *m, const char *path, const char *interface, const char *name,
                       const char *other);
/* ExecutorChanged, for those who watch the job (audience_add()). */
void notice_executor_changed(struct manager *m, struct executor *e);
