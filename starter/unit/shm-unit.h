/* SPDX-License-Identifier: Apache-2.0 */
/* The mount unit of a job's shared memory. Pure, as builder.h. */
#pragma once

#include <stdint.h>
#include <systemd/sd-bus.h>

#include "lib/unit/shm.h"

/* StartTransientUnit for it: size bytes, the uid's alone. */
int shm_build(sd_bus_message *m, const struct shm_names *names, uint32_t job, uint64_t size, uint32_t uid);
