/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "masterd/link/registration.h"

struct manager;
struct node;
struct link;

/* Reconciles a registration: exits first, then units, then what should be there and is not. Only then the
 * node is READY. */
int recover_registered(struct manager *m, struct node *node, struct link *link, const struct registration *g);
