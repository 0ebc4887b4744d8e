/* SPDX-License-Identifier: Apache-2.0 */
/* What a pool says of a job that wants into it. */
#pragma once

#include <systemd/sd-bus.h>

#include "masterd/conf/pools.h"
#include "masterd/spec/spec.h"

/* Fills in what the pool decides where the job says nothing (priority, time limit), and refuses what it does
 * not allow: its users, priorities above its highest, times above its maximum, more than its limits. 0, or
 * the D-Bus error's negative errno. */
int submit_pool_admit(const struct pools *pools, uint32_t owner, struct job_spec *s, sd_bus_error *error);

/* The same of who may look at it alone; also in a pool that takes no new jobs. */
int submit_pool_visible(const struct pools *pools, struct job_spec *s, sd_bus_error *error);
