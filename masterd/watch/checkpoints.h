/* SPDX-License-Identifier: Apache-2.0 */
/* The checkpoints that trainers tell of: in memory all that is known (masterd/checkpoint/registry.h), and in
 * the store before who said it hears so. They outlast the job's record. Nothing here touches a file: what is
 * to be removed is marked, and an executor of the owner's removes it (primus.checkpoints) and says so. */
#pragma once

#include <systemd/sd-bus.h>

#include "lib/wire/messages.h"
#include "masterd/checkpoint/policy.h"

struct manager;
struct node;

/* From the store. */
int checkpoints_load(struct manager *m);

/* An executor asks. -ENOENT: nothing about checkpoints; 1: call is answered when it is on disk; or a negative
 * errno with an error set. */
int checkpoints_asked(struct manager *m, const struct node *node, sd_bus_message *call,
                      const struct search_question *q, sd_bus_error *error);

const struct checkpoints *checkpoints_of(const struct manager *m);

/* What follows goes into the open batch. */

/* -EBUSY: it is to be removed. */
int checkpoint_pin(struct manager *m, struct checkpoint *x, bool pin);
/* Its files stay as they are. */
void checkpoint_forget(struct manager *m, struct checkpoint *x);
/* Marks those of the user's job, array or element that the policy does not keep. Of what has not ended, or is
 * pinned, all stay. dry: marks nothing. *ret_ids, to be freed: those that are marked now by this call (or
 * would be). -ENOMEM: nothing has changed. */
int checkpoints_collect(struct manager *m, uint32_t owner, uint32_t job, const struct checkpoint_policy *p,
                        bool dry, uint64_t **ret_ids, size_t *ret_n);
