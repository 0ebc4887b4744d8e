/* SPDX-License-Identifier: Apache-2.0 */
/* Appends single properties (sv) of a unit to an array that is open. As sd_bus_message_append(); -EBADMSG
 * where a text is not one of a single line (text_is_setting()), whoever it comes from. No other file appends
 * text to a property (tests/forbidden.sh). */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <systemd/sd-bus.h>

int property_string(sd_bus_message *m, const char *name, const char *value);
int property_strings(sd_bus_message *m, const char *name, char *const *values); /* NULL-ended; NULL: none */
int property_u64(sd_bus_message *m, const char *name, uint64_t value);
int property_u32(sd_bus_message *m, const char *name, uint32_t value);
int property_bool(sd_bus_message *m, const char *name, bool value);
int property_descriptor(sd_bus_message *m, const char *name, int fd);

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
