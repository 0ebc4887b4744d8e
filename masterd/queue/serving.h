/* SPDX-License-Identifier: Apache-2.0 */
/* Which hosts run anything as a user, as far as they have told. Each host decides that itself (agentd.conf,
 * lib/policy/serve.h); here it is known so that nobody waits for a host that would refuse him. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <systemd/sd-bus.h>

struct manager;
struct node;
struct serves_info;

/* Over nothing. -ENOMEM: ret is empty. */
int serving_copy(struct serves_info *ret, const struct serves_info *from);
/* The node's inventory is new. */
void serving_registered(struct manager *m, struct node *node);
/* It has refused that user's executor; it is not asked again before it registers again. */
void serving_refused(struct manager *m, struct node *node, uint32_t uid);

/* Whether it may be asked: it serves the user, or only it knows. */
bool serving_may(const struct node *node, uint32_t uid);
/* Whether any host of the cluster may; also one that is away. */
bool serving_any(struct manager *m, uint32_t uid);
/* The slots of hosts that would refuse the user, behind the *n that are in slots already, which has room for
 * serving_most() more. */
uint32_t serving_most(struct manager *m, uint32_t uid);
void serving_exclude(struct manager *m, uint32_t uid, uint32_t *slots, size_t *n);

/* Refuses, with a sentence, whom this master (MinUid= in masterd.conf) or no host serves. */
int serving_admit(struct manager *m, uint32_t uid, sd_bus_error *error);
