/* SPDX-License-Identifier: Apache-2.0 */
/* Passing over what a message has and nobody reads. sd_bus_message_skip() looks at each byte of an array: 4
 * MiB of somebody's bytes are a tenth of a second of a loop that serves all. */
#pragma once

#include <stdbool.h>
#include <systemd/sd-bus.h>

/* types: one complete type or several; arrays of numbers in O(1), others by their elements. Returns 1;
 * -ENXIO: something else stands there, or nothing; negative: as sd_bus_message_read(). The position is lost
 * then. */
int message_skip(sd_bus_message *m, const char *types);
/* The value that stands here, of whatever type; 0: none does. */
int message_skip_any(sd_bus_message *m);

/* Of what sd_bus_message_peek_type() says: something has to be entered; it is an array that sd-bus gives as
 * one piece of memory. */
bool message_is_container(char type);
bool message_is_numbers(char type, const char *contents);
