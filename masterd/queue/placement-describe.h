/* SPDX-License-Identifier: Apache-2.0 */
/* What a node is like, in the scheduler's words. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "lib/wire/messages.h"

struct manager;
struct node;

/* Adds to what the agent has said what is known here: host=NAME, and gpu.model= where all GPUs are of one.
 * -ENOMEM. */
int placement_add_labels(const char *name, struct inventory *i);
/* Tells the scheduler of labels, GPUs and NUMA nodes. */
int placement_describe(struct manager *m, const struct node *node);

/* "NVIDIA A100-SXM4-80GB" -> "A100": the word that people say, without vendor, form and memory. */
void placement_gpu_model(const char *model, char *buf, size_t size);
#define PLACEMENT_GPU_MODEL_MAX 64u
/* As the driver says, or else as the name says ("80GB"); 0: unknown. */
uint32_t placement_gpu_memory_mib(const struct gpu_info *g);
