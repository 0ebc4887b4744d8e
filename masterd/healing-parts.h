/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of healing share. */
#pragma once

#include "masterd/healing.h"

struct episode *episode_find(const struct job *j, uint32_t role, uint32_t index, enum verdict_kind k);
void episode_record(struct manager *m, const struct job *j, const struct episode *p);

/* Runs in a role that is judged for that. */
bool healing_counts(const struct manager *m, const struct executor *e, enum verdict_kind k);

/* Does what p->action says, once. */
void healing_act(struct manager *m, struct job *j, struct episode *p);

/* Asks what its threads do (of all: everybody's), tells it as an event, and acts. */
void healing_look(struct manager *m, struct job *j, struct episode *p);
/* Nobody waits for the answers any more. */
void looking_abandon(struct episode *p);
