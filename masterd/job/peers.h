/* SPDX-License-Identifier: Apache-2.0 */
/* The rendezvous of a job as it is placed now, kept from one executor's start to the next: a gang is computed
 * once. */
#pragma once

#include <stdint.h>

struct executor;
struct job;
struct node;

/* The rendezvous variables of a placed executor (rendezvous_environment()). -ENOENT: it is not placed. */
int job_peers_environment(struct executor *e, char ***ret);

/* A digest of who is where in the job: the same for the same membership, also in another master. */
uint64_t job_membership(const struct job *j);

/* Forgets what was computed: a place, a port or an address of the job has changed, or nobody will ask soon.
 */
void job_peers_drop(struct job *j);

/* Of the job's executors that hold resources on e's node together: what its slice may hold there (bytes,
 * microseconds of CPU in a second, processes; 0: one of them has no limit), their shared memory, and which
 * GPUs its executors may open. O(executors on the node). */
uint64_t job_memory_on_node(const struct executor *e);
uint64_t job_cpu_on_node(const struct executor *e);
uint64_t job_tasks_on_node(const struct executor *e);
/* Weights are among neighbours, so the slice has those of its executors together; 0: none has one. */
uint32_t job_weight_on_node(const struct executor *e);
uint64_t job_shm_on_node(const struct executor *e);
uint64_t job_gpus_on_node(const struct executor *e);
