/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of healing share. */
#pragma once

#include "masterd/watch/healing.h"

struct episode *episode_find(const struct job *j, uint32_t role, uint32_t index, enum verdict_kind k);
void episode_record(struct manager *m, const struct job *j, const struct episode *p);

/* Runs in a role that is judged for that. */
bool healing_counts(const struct manager *m, const struct executor *e, enum verdict_kind k);

/* Does what p->action says, once. */
void healing_act(struct manager *m, struct job *j, struct episode *p);

/* Asks what its threads do (of all: everybody's), tells it as an event, and acts. */
void healing_look(struct manager *m, struct job *j, struct episode *p);
/* Looks at the threads of those of all jobs that are due, for the engine. */
void healing_peek(struct manager *m, uint64_t now_usec);

/* Of the threads of an executor those of the trainer, without what of ours stands between systemd and it;
 * where there is nothing else, all. Returns how many. */
#define TRAINER_THREADS_MAX 256u
struct capture_thread;
size_t trainer_threads(const struct capture_thread *threads, size_t n,
                       const struct capture_thread *ret[static TRAINER_THREADS_MAX]);

/* Nobody waits for the answers any more. */
void looking_abandon(struct episode *p);
