/* SPDX-License-Identifier: Apache-2.0 */
/* Actors of a job: what the processes say that have them. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/primusctl/bus/targets.h"

struct actor_answer {
        json_t *actors; /* as primus.actors.listing prints them; NULL: error says why */
        char *error;
};

struct actor_list {
        struct targets targets;
        struct actor_answer *answers; /* one for each target */
};
void actor_list_done(struct actor_list *l);

/* Asks those executors (targets_find()); with kill it ends the actors of that name, and these are the answer.
 * 0 or an exit status; actor_list_done() in either case. */
int actor_list_ask(struct cli *c, const char *job, char **ranks, size_t n, const char *kill,
                   struct actor_list *ret);

/* "Counter 3": what no rank, role or ROLE/INDEX is. */
bool is_actor_name(const char *text);

struct actor_place {
        char *rank; /* of its executor: "ROLE/INDEX" */
        uint32_t pid;
};
void actor_place_done(struct actor_place *p);
/* 0 or an exit status, with a sentence where there is none of that name, or more than one. */
int actor_find(struct cli *c, const char *job, const char *name, struct actor_place *ret);
