/* SPDX-License-Identifier: Apache-2.0 */
/* The a{sv} at the end of a call: what may be in it is a table. */
#pragma once

#include <stddef.h>
#include <systemd/sd-bus.h>

/* Reads the variant behind key into target. */
typedef int (*option_reader)(sd_bus_message *call, const char *key, void *target, sd_bus_error *error);

struct call_option {
        const char *key;
        char type; /* 'b' (a bool), 'q', 'u', 't' or 's' (borrowed), put at offset of the target; 0: read is
                      called */
        size_t offset;
        option_reader read;
};

/* Calls f for each entry, until it returns < 0. */
int options_each(sd_bus_message *call, option_reader f, void *target, sd_bus_error *error);

/* The entries that the table (ended by a NULL key) has, into target; any other is refused with
 * "METHOD has no NOUN 'KEY'". */
int options_read(sd_bus_message *call, const char *method, const char *noun,
                 const struct call_option *options, void *target, sd_bus_error *error);
