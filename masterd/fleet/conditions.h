/* SPDX-License-Identifier: Apache-2.0 */
/* What is made of how hosts are (masterd/node/condition.h): an event of the jobs there, a word to the notify
 * hook, a hold, by masterd.conf's Condition...= of the kind. What is known is the agent's: it says everything
 * again when it registers, so nothing but the hold is stored. */
#pragma once

#include <stddef.h>

#include "lib/wire/condition.h"

struct manager;
struct node;

/* The agent says that it is so now. */
void conditions_told(struct manager *m, struct node *node, const struct host_condition *c);
/* The agent has registered: these are all that there are. */
void conditions_registered(struct manager *m, struct node *node, const struct host_condition *list, size_t n);
/* A person uncordons the host: what is the case now does not hold it, until it is worse, or over and back, or
 * masterd has been restarted. The hold itself is the caller's to release. */
void conditions_wave(struct node *node);
