/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "masterd/link/registration.h"

struct manager;
struct node;

/* Its endings first, then its units: confirmed, started, stopped, or told to stop. */
void reports_take(struct manager *m, struct node *node, const struct registration *g);
