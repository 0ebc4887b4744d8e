/* SPDX-License-Identifier: Apache-2.0 */
/* Agents that are read more slowly: where the store has no room for what they list, and where they say more,
 * or worse, than a host has to say. Nothing of it is lost; the agent notices that it cannot send any more. */
#pragma once

#include <stdint.h>

#include "lib/base/clock.h"

struct link;

#define LINK_NOTICED_USEC (100 * USEC_PER_MSEC)

/* Not read for that long, and for as long as the store is full; not for longer than a second in all, so that
 * nobody takes the host for silent. Again, while it is held: nothing. */
void link_hold(struct link *l, uint64_t usec);
/* The same for a moment, where the store is full. */
void link_hold_for_store(struct link *l);
/* It has said something that is written down, logged or told to people each time; or that cannot be used, or
 * is refused. From the 33rd within a second on it is held. */
void link_noticed(struct link *l);
/* It came once more, which costs more than what it says: the 11th time within ten seconds, it waits. */
void link_came(struct link *l);
/* The connection ends. */
void link_hold_done(struct link *l);
