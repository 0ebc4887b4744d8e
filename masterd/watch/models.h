/* SPDX-License-Identifier: Apache-2.0 */
/* Models (masterd/checkpoint/models.h): all in memory, and in the store before who asked hears so. A version
 * that is not archived keeps its checkpoint from being marked. */
#pragma once

#include "masterd/checkpoint/models.h"
#include "masterd/checkpoint/registry.h"

struct manager;

/* From the store; behind checkpoints_load(). */
int models_load(struct manager *m);
const struct models *models_of(const struct manager *m);

/* What follows goes into the open batch. */

/* The next version of that name, of the checkpoint's owner. -EBUSY: the checkpoint is to be removed;
 * otherwise as models_add(). */
int model_register(struct manager *m, const struct checkpoint *x, const char *name, const char *note,
                   const char *labels, uint32_t *ret_version);
/* note, labels, archived: NULL as before. -EBUSY: it was archived, and its checkpoint is to be removed. */
int model_edit(struct manager *m, struct model *model, const char *note, const char *labels,
               const bool *archived);
