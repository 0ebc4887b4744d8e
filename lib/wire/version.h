/* SPDX-License-Identifier: Apache-2.0 */
/* Which versions of the link work together, decided in this one place and asked by both sides: the same
 * major, and minors that are at most one apart. So an upgrade may begin with the master or with the agents,
 * and take as long as it likes.
 *
 * What keeps that true:
 *   - Hello, its answer and the error Version keep their shape in every version, whatever the major.
 *   - A fixed signature never changes within a major; what it lacks goes into its a{sv}, or into a new
 * message.
 *   - A reader passes over keys that it does not know, and takes what is not there as zero, empty or unknown.
 *   - What the other side must understand (a message, a value of an enumeration, a key that must not be
 * passed over) raises the minor, and is sent only to a peer with which at least that minor is spoken:
 * link_minor_spoken(), which both sides keep with the connection. Towards an older one it is left out; where
 * that changes what a person asked for, the request is refused by a sentence with the host's name.
 *   - What an older peer still needs is sent until the minor after the next. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LINK_MAJOR 1
#define LINK_MINOR 0

bool link_versions_fit(uint16_t major, uint16_t minor);
/* What is spoken with a peer of that minor: the lower of the two. */
uint16_t link_minor_spoken(uint16_t peer);

enum link_side {
        LINK_AGENT,
        LINK_MASTER,
};
#define LINK_VERSION_TEXT_MAX 256u
/* Why a peer is refused, for the log and for people: "agent 0.3 speaks link 1.3, this master (0.1) 1.0:
 * upgrade the master". me: the side that says it. build: the peer's, cleaned and cut here. */
const char *link_version_refusal(enum link_side me, const char *build, uint16_t major, uint16_t minor,
                                 char text[static LINK_VERSION_TEXT_MAX]);
