/* SPDX-License-Identifier: Apache-2.0 */
/* Watches the executors' units for lack of memory and I/O (agentd/cgroup/pressure.h), and tells masterd of it
 * at once, with a fresh sample. */
#pragma once

#include "agentd/metrics/sampler.h"
#include "lib/base/cleanup.h"

struct sampling_pressure;
struct manager;

/* -ENOMEM. */
int sampling_pressure_new(struct manager *m, struct sampling_pressure **ret);
void sampling_pressure_free(struct sampling_pressure *p);
DEFINE_CLEANUP(struct sampling_pressure *, sampling_pressure_free)

/* The unit's control group is there; it is gone. */
void sampling_pressure_watch(struct sampling_pressure *p, const struct sampled *unit);
void sampling_pressure_forget(struct sampling_pressure *p, const struct sampled *unit);
