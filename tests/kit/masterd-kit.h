/* SPDX-License-Identifier: Apache-2.0 */
/* A manager on a store in a directory, without buses, and what a kill -9 would leave of it. What goes wrong
 * fails the test. */
#pragma once

#include <jansson.h>
#include <stdint.h>

#include "masterd/job/job.h"

struct manager;
struct gpu_info;
struct link;

/* Opens or creates the store in directory and loads what is in it; term 1. For start_free(). */
struct manager *kit_open(const char *directory);
/* Runs the loop until all that has been recorded is on disk. */
void kit_until_durable(struct manager *m);
/* Makes a directory TO and copies the database and its log there, as they are. For remove_tree(). */
void kit_copy_store(const char *from, char to[static 64]);

/* Has a manager that was opened serve: it places, and minds its nodes. */
void kit_serve(struct manager *m);

/* The link of all nodes of the kit. There is no connection: orders find nobody. */
extern struct link kit_link;
/* A node that registers, with ports 20000 to 60000; again with the same boot when it is there already. */
void kit_register_node(struct manager *m, const char *name, uint32_t cpus, uint64_t memory);
/* The same, with GPUs. */
void kit_register_gpus(struct manager *m, const char *name, uint32_t cpus, uint64_t memory,
                       struct gpu_info *gpus, size_t n_gpus);

/* Of uid 1000. Takes overrides, which may be NULL. */
struct job *kit_submit(struct manager *m, const char *config, json_t *overrides);
/* The same, and what follows is on disk. */
struct job *kit_submit_durable(struct manager *m, const char *config);
/* All that are placed run. */
void kit_start_all(struct manager *m, struct job *j);
/* It ends with this status, as its agent would say it. */
void kit_exited(struct manager *m, struct executor *e, int status);
/* How many executors of the job are in it. */
uint32_t kit_in_state(const struct job *j, enum executor_state s);

/* A manager that serves, in a directory of its own; for cmocka, whose state it is. */
struct kit {
        char directory[64];
        struct manager *m;
};
int kit_setup(void **state);
int kit_teardown(void **state);
/* As after a kill -9. */
void kit_restart(struct kit *k);
