/* SPDX-License-Identifier: Apache-2.0 */
/* Turns a start order into the arguments of systemd's StartTransientUnit: what a unit of Primus looks like is
 * decided here and nowhere else. Pure: no bus, no file, no clock. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <systemd/sd-bus.h>

#include "lib/wire/messages.h"
#include "starter/unit/enforce.h"
#include "starter/unit/environment.h"

/* The least TimeoutStopUSec= of a unit. */
#define UNIT_STOP_USEC_MIN UINT64_C(5000000)

/* Appends (s name, s mode, a(sv) properties, a(sa(sv)) auxiliary units) to m. -EINVAL with *ret_why
 * (allocated, one sentence for people) where systemd could not take the order: an argument that is not UTF-8,
 * a GPU that is not there. */
int unit_build(sd_bus_message *m, const struct start_order *o, const struct unit_context *context,
               char **ret_why);
