/* SPDX-License-Identifier: Apache-2.0 */
/* Messages to write and to read back. A message needs a bus; nobody is at this one's other end. What goes
 * wrong fails the test. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <systemd/sd-bus.h>

extern sd_bus *message_bus;
extern int message_other_end;

/* For cmocka's groups. */
int message_setup(void **state);
int message_teardown(void **state);

/* A call on the link. */
sd_bus_message *message_new(void);
/* The same with something of every type. */
#define MESSAGE_EVERY_TYPE "ybnqiuxtdsogasa{sv}(s(iay))aabaxa(dd)v"
sd_bus_message *message_of_every_type(void);
/* It can be read from its beginning now. */
void message_seal(sd_bus_message *m);

/* Of a sealed message with a(sv) behind a head of that signature: enters the value of the property, if it is
 * there. */
bool message_find_property(sd_bus_message *m, const char *head, const char *name, const char *signature);
/* It is there, and this is its number. */
void message_assert_number(sd_bus_message *m, const char *head, const char *name, uint64_t expected);
