/* SPDX-License-Identifier: Apache-2.0 */
/* Answers to calls, put together and sent. A handler that has asked the store keeps a reference to its call
 * and answers it later. */
#pragma once

#include <stddef.h>
#include <systemd/sd-bus.h>

#include "lib/base/cleanup.h"

/* Every answer to a call on the bus leaves by one of these four, which tell the audit how the call ended; of
 * calls that are not in it (of agents, say) too. Each returns as what it is called after does. */
int reply_send(sd_bus_message *reply);
int reply_return(sd_bus_message *call, const char *types, ...);
int reply_errorf(sd_bus_message *call, const char *name, const char *format, ...) _printf_(3, 4);
/* With error where it is set, otherwise with r. */
int reply_failed(sd_bus_message *call, int r, const sd_bus_error *error);

/* Begins the answer to a call: an array of structs with these contents ("ttssus"). */
int reply_list_new(sd_bus_message *call, const char *row, sd_bus_message **ret);

/* The same of an array of a{sv}. */
int reply_dicts_new(sd_bus_message *call, sd_bus_message **ret);

/* Ends and sends it, unless r says that it failed. Takes over reply. Returns r, or why it could not be sent.
 */
int reply_list_send(sd_bus_message *reply, int r);

/* The same for a call that was kept (both references are taken over): where r is negative, that is answered.
 */
void reply_list_answer(sd_bus_message *call, sd_bus_message *reply, int r);

/* An answer that is one array of bytes. */
int reply_bytes(sd_bus_message *call, const void *bytes, size_t size);

/* {sv} of a value that has a container type: opens it up to the value, which the caller appends, and closes
 * it again. */
int reply_open_key(sd_bus_message *m, const char *key, const char *type);
int reply_close_key(sd_bus_message *m);

/* The same of an array ("a(us)"), up to its first element. */
int reply_open_array(sd_bus_message *m, const char *key, const char *type);
int reply_close_array(sd_bus_message *m);

/* The words of a text ("a b"; NULL: none), parted by any of the separators, as an array of strings. */
int reply_append_words(sd_bus_message *m, const char *text, const char *separators);
