/* SPDX-License-Identifier: Apache-2.0 */
/* Watches the executors' units for lack of memory and I/O (agentd/cgroup/pressure.h), and tells masterd of it
 * at once, with a fresh sample. */
#pragma once

#include "agentd/metrics/sampler.h"
#include "lib/base/cleanup.h"

struct eyes_pressure;
struct manager;

/* -ENOMEM. */
int eyes_pressure_new(struct manager *m, struct eyes_pressure **ret);
void eyes_pressure_free(struct eyes_pressure *p);
DEFINE_CLEANUP(struct eyes_pressure *, eyes_pressure_free)

/* The unit's control group is there; it is gone. */
void eyes_pressure_watch(struct eyes_pressure *p, const struct sampled *unit);
void eyes_pressure_forget(struct eyes_pressure *p, const struct sampled *unit);
