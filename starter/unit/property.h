/* SPDX-License-Identifier: Apache-2.0 */
/* Appends single properties (sv) of a unit to an array that is open. As sd_bus_message_append(); -EBADMSG
 * where a text is not one of a single line (text_is_setting()), whoever it comes from. No other file appends
 * text to a property (tests/forbidden.sh). */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <systemd/sd-bus.h>

/* The arguments of StartTransientUnit around a unit's properties. Before them its name, and that no job which
 * is queued is replaced; behind them no other units. */
int property_unit_begin(sd_bus_message *m, const char *unit);
int property_unit_end(sd_bus_message *m);

int property_string(sd_bus_message *m, const char *name, const char *value);
int property_strings(sd_bus_message *m, const char *name, char *const *values); /* NULL-ended; NULL: none */
int property_u64(sd_bus_message *m, const char *name, uint64_t value);
int property_u32(sd_bus_message *m, const char *name, uint32_t value);
int property_bool(sd_bus_message *m, const char *name, bool value);
int property_descriptor(sd_bus_message *m, const char *name, int fd);

/* What the program of a unit is told comes through fd, its standard input; what it says goes to the journal.
 */
int property_control(sd_bus_message *m, int fd);

/* EnvironmentFile=, which has to be there. */
int property_environment_file(sd_bus_message *m, const char *path);

/* One command: head followed by tail (which may be NULL), the first an absolute path. Arguments may have any
 * characters of UTF-8. */
int property_exec(sd_bus_message *m, const char *name, const char *const *head, char *const *tail);

/* One whose value is of that signature: appended between the two, its texts by those below. */
int property_open(sd_bus_message *m, const char *name, const char *signature);
int property_close(sd_bus_message *m);
int property_text(sd_bus_message *m, const char *value);                     /* s */
int property_pair(sd_bus_message *m, const char *first, const char *second); /* (ss) */
