/* SPDX-License-Identifier: Apache-2.0 */
/* Appends single properties (sv) of a unit to an array that is open. As sd_bus_message_append(). */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <systemd/sd-bus.h>

int property_string(sd_bus_message *m, const char *name, const char *value);
int property_u64(sd_bus_message *m, const char *name, uint64_t value);
int property_u32(sd_bus_message *m, const char *name, uint32_t value);
int property_bool(sd_bus_message *m, const char *name, bool value);

/* One whose value is of that signature: appended between the two. */
int property_open(sd_bus_message *m, const char *name, const char *signature);
int property_close(sd_bus_message *m);
