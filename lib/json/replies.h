/* SPDX-License-Identifier: Apache-2.0 */
/* The shapes of masterd's replies, in the order of docs/json.md, which has a chapter for each that has a
 * name. */
#pragma once

#include "lib/json/shape.h"

/* jobs.c */
extern const struct json_shape json_job_row; /* ListJobs, a row */
extern const struct json_shape json_event;   /* ListEvents, a row */
extern const struct json_shape json_verdict; /* of "verdicts" */
extern const struct json_shape json_why;     /* Why */
extern const struct json_shape json_trial;   /* TrySubmit */

/* status.c */
extern const struct json_shape json_job;      /* GetAll, of a job */
extern const struct json_shape json_executor; /* ListExecutors, a row */
extern const struct json_shape json_status;   /* GetStatus */
extern const struct json_shape json_search;   /* of "search" */
/* Adds status and executors to the job: what primusctl status prints. 0 or -ENOMEM. */
int json_status_join(json_t *job, json_t *status, json_t *executors);

/* stacks.c */
extern const struct json_shape json_thread;  /* Capture, a row */
extern const struct json_shape json_capture; /* Capture, what stands behind the rows; the rest comes later */

/* cluster.c */
extern const struct json_shape json_cluster; /* GetAll, of the manager */

/* queue.c */
extern const struct json_shape json_waiting; /* ListQueue, a row */
extern const struct json_shape json_pool;    /* ListPools, a row */

/* hosts.c */
extern const struct json_shape json_node_row;   /* ListNodes, a row */
extern const struct json_shape json_node_event; /* Node.ListEvents, a row */
extern const struct json_shape json_node;       /* Describe, of a node */
extern const struct json_shape json_token;      /* ListTokens, a row */

/* lists.c */
extern const struct json_shape json_trial_row;                  /* ListTrials, a row */
extern const struct json_shape json_metric, json_metric_series; /* ListMetrics, ReadMetrics */
extern const struct json_shape json_task;                       /* ListTasks, a row */
extern const struct json_shape json_checkpoint;                 /* ListCheckpoints, a row */
extern const struct json_shape json_model;                      /* ListModels, a row */
extern const struct json_shape json_savepoint;                  /* ListSavepoints, a row */
extern const struct json_shape json_provider;                   /* ListProviders, a row */
extern const struct json_shape json_instance;                   /* ListInstances, a row */
extern const struct json_shape json_act;                        /* PlanInstances, a row */
extern const struct json_shape json_usage;                      /* Usage, a row */
