/* SPDX-License-Identifier: Apache-2.0 */
/* What trainers say of their training (masterd/metric/metrics.h): taken from agents, kept in memory while the
 * job is active, and written to the store half a minute behind it, at its end, and when masterd is stopped.
 * Agents keep what is not written and say it again, so that a masterd that is killed loses none of it. */
#pragma once

#include <systemd/sd-bus.h>

#include "masterd/job/job.h"
#include "masterd/metric/metrics.h"

struct manager;
struct node;

/* A Metrics message of the node, read up to its end. What is said of executors that were not there is passed
 * over. 1: the node says more than it has to, and should be read more slowly; negative: not usable. */
int training_received(struct manager *m, struct node *node, sd_bus_message *message);

/* Its link is over. Its agent may have ended, and with it what it would have said again: that is written now.
 */
void training_node_gone(struct manager *m, const struct node *node);

/* From the store, of active jobs. */
int training_load(struct manager *m);
/* The job has ended: all of it into the open batch. */
void training_job_ended(struct manager *m, struct job *j);
void training_job_freed(struct job *j);
/* All that was not written yet goes into the open batch, which the caller commits: masterd ends. */
void training_write_all(struct manager *m);
void training_stop(struct manager *m);

/* NULL: nothing was said, or the job has ended (what there was is in the store). */
struct metrics *training_of(const struct job *j);
