/* SPDX-License-Identifier: Apache-2.0 */
/* What a node's agent says of how the host is: a list, the worst first. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "lib/wire/condition.h"

struct node;

struct node_condition {
        struct host_condition c;
        bool waved; /* a person uncordoned the host in spite of it */
        bool told;  /* by the registration that is being read */
        struct node_condition *next, *prev;
};

/* Takes it in: CONDITION_FINE takes it away. What it was before goes to *ret_before (CONDITION_FINE: it was
 * not there). One that is worse than before is not waved through any more. -E2BIG: there are CONDITIONS_MAX,
 * -ENOMEM. */
int node_condition_set(struct node *node, const struct host_condition *c,
                       enum condition_severity *ret_before);
struct node_condition *node_condition_find(const struct node *node, enum condition_kind kind,
                                           const char *subject);
void node_conditions_clear(struct node *node);

/* What the site makes of it: no more than its limit for that kind. */
enum condition_severity
node_condition_severity(const struct host_condition *c,
                        const enum condition_severity limits[static _CONDITION_KIND_MAX]);

/* "disk /var: 99% full (and 2 more)", of those that are at least that bad for the site; into buf; "" where
 * none is. skip_waved: but for those that a person waved through. Returns how many. */
unsigned node_conditions_text(const struct node *node,
                              const enum condition_severity limits[static _CONDITION_KIND_MAX],
                              enum condition_severity least, bool skip_waved, char *buf, size_t size);
