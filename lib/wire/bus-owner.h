/* SPDX-License-Identifier: Apache-2.0 */
/* Who has a well-known name on a message bus, so that its signals can be told from others'. A match that
 * names a well-known sender does not: what somebody sends to us alone comes without one, and libsystemd takes
 * any sender for such a name's. Whoever may send a signal at all, which is everybody, could say that a unit
 * has ended. */
#pragma once

#include <stdbool.h>
#include <systemd/sd-bus.h>

struct bus_owner;

/* known (may be NULL) is called when the owner is known, or that there is none; not where the bus is a peer.
 * name: a constant. 0, or negative errno. */
int bus_owner_new(sd_bus *bus, const char *name, void (*known)(void *userdata), void *userdata,
                  struct bus_owner **ret);
/* NULL is fine; returns NULL. */
struct bus_owner *bus_owner_free(struct bus_owner *o);
/* Whether the message is its owner's. Where there is no bus in between, messages have no sender, and are the
 * peer's. */
bool bus_owner_sent(const struct bus_owner *o, sd_bus_message *m);
/* The same of the bus itself. */
bool bus_itself_sent(sd_bus_message *m);
