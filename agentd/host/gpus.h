/* SPDX-License-Identifier: Apache-2.0 */
/* Where the watch over the host's GPUs meets the rest of agentd: inventory, conditions, executors. */
#pragma once

#include "agentd/device/gpu-watch.h"

struct gpus;
struct manager;

/* After hostwatch_new(). The watch begins at once. */
int gpus_new(struct manager *m, struct gpus **ret);
void gpus_free(struct gpus *g);

/* What there is has been found out, or this takes too long; else manager_go_on() is called when it has. */
bool gpus_settled(const struct gpus *g);
/* Also for those who show what GPUs do (gpu_watch_devices()). */
struct gpu_watch *gpus_watch(struct gpus *g);
