/* SPDX-License-Identifier: Apache-2.0 */
/* What has happened to a host: a line of the journal, which is kept with the host as well. */
#pragma once

#include "lib/base/log.h"

struct manager;
struct node;

/* what: what is said of it behind its name, "is drained". kind: a constant word, for programs. Stored, logged
 * and counted; the store keeps the latest 1,000 of a host. What a host can make happen as often as it likes
 * goes through node_may_log() before. */
void host_event(struct manager *m, struct node *node, int level, const char *kind, const char *what, ...)
        _printf_(5, 6);

/* The counts, of what was stored before. */
int host_events_load(struct manager *m);
