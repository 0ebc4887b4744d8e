/* SPDX-License-Identifier: Apache-2.0 */
/* Hosts' faults: what happens to executors counts against their hosts (masterd/node/blame.h), and hosts that
 * have too much of it are kept out for a time. A host that is blamed takes nothing new; what runs there runs
 * on. */
#pragma once

#include <stdint.h>

#include "masterd/job/job.h"
#include "masterd/node/node.h"

struct manager;

/* Something speaks against the host; e NULL: not an executor. why: one line. */
void blaming_strike(struct manager *m, struct node *node, enum strike_kind kind, struct executor *e,
                    const char *why);

/* The site's prolog of the job failed there, which counts against the host unless it fails on most of them.
 * The node is held for it already. */
void blaming_prolog(struct manager *m, struct node *node, const struct job *j, const char *why);
/* A person trusts the host again. */
void blaming_forgive(struct manager *m, struct node *node);

/* The attempt has ended as event, from state before, and that is recorded. Counts it against its host where
 * it is to be, keeps the job off the host where blacklistConfig says so, and tells probation's outcome. */
void blaming_ended(struct manager *m, struct executor *e, enum executor_event event,
                   enum executor_state before);
/* The same for an attempt that is read from the store, for what is kept of the job alone. */
void blaming_remember(struct executor *e);

/* How many executors the host may have in all; UINT32_MAX where that is not limited. */
uint32_t blaming_room(const struct node *node);
/* An executor has got or lost its place on it. */
void blaming_place_changed(struct manager *m, struct node *node);

/* How many slots blaming_excluded() has at most. */
size_t blaming_excluded_max(const struct manager *m, const struct job *j);
/* Appends the slots that an executor of the role is not to be placed on because of what failed there: of the
 * job, at most as many as its blacklistConfig has, or of its owner's jobs; and never all that are left. */
void blaming_excluded(struct manager *m, const struct job *j, const struct role_spec *spec, uint32_t *list,
                      size_t *n);

int blaming_load(struct manager *m);
int blaming_start(struct manager *m);
void blaming_stop(struct manager *m);
