/* SPDX-License-Identifier: Apache-2.0 */
/* Who has been silent for too long: SUSPECT, then LOST, and what that means for the node's executors. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct executor;
struct manager;
struct node;

#define LIVENESS_TEXT_MAX 256u

int liveness_start(struct manager *m);
void liveness_stop(struct manager *m);
/* The node has registered: its silence counts from now on. */
void liveness_watch(struct manager *m, struct node *node);
/* A heartbeat of the node. */
void liveness_heard(struct manager *m, struct node *node);
/* Its agent said Hello and was refused for its version. The host is there, so it becomes SUSPECT and not
 * LOST, as long as such Hellos come at least every LostSec. */
void liveness_refused(struct manager *m, struct node *node, const char *why);
/* The node is LOST: by silence, or because a person says so (then also executors under onPartition=wait are).
 */
void liveness_lost(struct manager *m, struct node *node, bool declared);
/* Of one that is SUSPECT, for people: since when, and when it is given up. Returns buf. */
char *liveness_text(const struct manager *m, const struct node *node, char *buf, size_t size);
/* Of those of one job on one host, the one that is named. */
bool liveness_stands_for(const struct executor *e);
