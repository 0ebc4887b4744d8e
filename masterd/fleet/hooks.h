/* SPDX-License-Identifier: Apache-2.0 */
/* The site's hooks on masterd's host: fence (vouches that a lost host is dead) and notify (tells people).
 * masterd forks nothing: it writes down what happened and has systemd start primus-hook-NAME@ID.service.
 * Nothing here waits; a hook that is not there costs a look. */
#pragma once

#include <stdbool.h>

struct manager;
struct node;
struct job;

/* From now on they are run, and not any more. */
int hooks_start(struct manager *m);
void hooks_stop(struct manager *m);

/* The node is LOST. The hook's exit 0 declares it dead, unless it has come back meanwhile. */
void hooks_fence(struct manager *m, const struct node *node);

/* When it is on disk: event is host-lost, host-dead, host-held, host-drains, host-drained, host-back,
 * job-sick or job-ended; node or job may be NULL. text: why. */
void hooks_notify(struct manager *m, const char *event, const struct node *node, const struct job *job,
                  const char *text);
