/* SPDX-License-Identifier: Apache-2.0 */
/* After a restart: memory from the store, and the store's truth against what each agent reports when it
 * registers. */
#pragma once

#include "masterd/link/registration.h"

struct manager;
struct node;
struct link;
struct job;

int recover_load(struct manager *m);

/* Reconciles a registration: exits first, then units, then what should be there and is not. Only then the
 * node is READY. */
int recover_registered(struct manager *m, struct node *node, struct link *link, const struct registration *g);
