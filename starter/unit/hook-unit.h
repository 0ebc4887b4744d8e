/* SPDX-License-Identifier: Apache-2.0 */
/* The transient unit of a hook of the site (docs/operations.md): Type=oneshot, so that its start job lasts as
 * long as the hook. Pure, as builder.h. */
#pragma once

#include <stdint.h>
#include <systemd/sd-bus.h>

/* unit, name: checked by the caller. env: NULL-ended; output: becomes standard output and error. */
int hook_unit_build(sd_bus_message *m, const char *unit, const char *name, char *const *env,
                    uint64_t timeout_usec, int output);
