/* SPDX-License-Identifier: Apache-2.0 */
/* Bounded parts that messages-report.c, messages-order.c and messages-feed.c are made of; not for use outside
 * lib/wire. All readers: 1 read, 0 end of the enclosing array, -EBADMSG, -ENOMEM. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "lib/wire/messages.h"

/* What a failed step of a reader becomes: -ENOMEM stays, everything else (also 0, a field that is not there)
 * is -EBADMSG. */
int link_bad(int r);

/* A line of at most size - 1 bytes into buf. */
int link_read_text_into(sd_bus_message *m, char *buf, size_t size);

/* ay that holds a path or an argument: no NUL inside; allocated with a NUL behind. NULL is appended as "". */
int link_append_byte_string(sd_bus_message *m, const char *s);
int link_read_byte_string(sd_bus_message *m, size_t max, char **ret);

int link_read_bool(sd_bus_message *m, bool *ret);
