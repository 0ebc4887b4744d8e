/* SPDX-License-Identifier: Apache-2.0 */
/* What executors may use, as properties of units: of a unit that is made, of one that runs, of a job's slice.
 * Pure, as builder.h; docs/limits.md has the whole list. */
#pragma once

#include <stdint.h>
#include <systemd/sd-bus.h>

#include "lib/wire/messages.h"
#include "starter/unit/environment.h"

/* Appends the properties of an order's limits to an array of (sv) that is open. */
int limits_append(sd_bus_message *m, const struct start_order *o, const struct unit_context *c);

/* The body of SetUnitProperties for a unit that runs: other limits, for as long as it lives. */
int limits_build(sd_bus_message *m, const char *unit, const struct unit_limits *limits);

#define UNIT_CPU_WORDS 16u /* 1,024 CPUs */
/* The body of SetUnitProperties: the CPUs of a unit that runs, for as long as it does. */
int unit_cpus_build(sd_bus_message *m, const char *unit, const uint64_t *bits);

/* StartTransientUnit for the job's slice on this host. */
int slice_build(sd_bus_message *m, uint32_t job, const struct slice_limits *limits);
/* The body of SetUnitProperties for it, for as long as the slice lives. */
int slice_update_build(sd_bus_message *m, uint32_t job, const struct slice_limits *limits);
