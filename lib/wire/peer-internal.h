/* SPDX-License-Identifier: Apache-2.0 */
/* What the listener needs of a peer beyond peer.h; not for use outside lib/wire. */
#pragma once

#include "lib/wire/peer.h"
#include "lib/wire/tls.h"

/* A connection that asked to join: its finished session and socket go to the callee, which owns both from
 * then on (the session holds the same descriptor). The peer is empty afterwards and only to be freed; ended
 * is not called. */
typedef void (*peer_join_handler)(struct peer *p, struct tls *tls, int fd, void *userdata);

/* As peer_new() for a server, for a listener: also accepts TLS_JOIN when join is given. A connection that
 * sends more than receive_max bytes before it is known is dropped. */
int peer_new_accepted(sd_event *event, int fd, struct tls_credentials *credentials,
                      const struct peer_options *options, uint64_t receive_max, peer_join_handler join,
                      peer_ready_handler ready, peer_ended_handler ended, void *userdata, struct peer **ret);

/* Gives a peer to its final owner, from within ready. */
void peer_set_owner(struct peer *p, peer_ended_handler ended, void *userdata);
