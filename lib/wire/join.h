/* SPDX-License-Identifier: Apache-2.0 */
/* Joining a cluster: TLS without a client certificate under ALPN "primus-join/1" on the same port as the
 * links ("primus/1"), the server checked by the CA fingerprint in the token. One fixed-size request head
 * (token id, secret, name length, CSR length), then at most 64 + 8192 bytes, one reply. Renewal needs no
 * token: it is asked for on the link with the old certificate (method Renew(ay csr) of org.primus.Link1). */
#pragma once

#include <stdint.h>
#include <systemd/sd-event.h>

#include "lib/base/addr.h"
#include "lib/wire/authority.h"
#include "lib/wire/peer.h"

/* ---- the joining side: blocking, for a tool, never for a daemon's loop ---- */
/* Connects to host[:port], joins as name, and returns PEM texts. On failure a negative errno and *ret_why,
 * one sentence for people: "the token has expired" (allocated). */
int join_cluster(const char *host, uint16_t port, const struct join_token *token, const char *name,
                 char **ret_ca_pem, struct certificate *ret, char **ret_why);

/* ---- masterd's side: the listener for both protocols ---- */
struct listener;

struct join_request {
        const uint8_t *id;     /* 8 bytes */
        const uint8_t *secret; /* 16 bytes */
        const char *name;      /* valid node name */
        const char *csr_pem;
        size_t csr_size;
        struct addr from;
};

struct join_pending; /* a join that waits for its answer */

struct listener_handlers {
        /* A verified node's connection; peer_name() says which. >= 0: the peer is the caller's from now on,
         * link_ended follows some day; < 0: it is refused and link_ended is not called. */
        peer_ready_handler link_ready;
        peer_ended_handler link_ended;
        /* Somebody was not let in; for the log. name is the certificate's, where one was verified, else NULL.
         * NULL: none. */
        void (*refused)(const struct addr *from, const char *name, const char *why, void *userdata);
        const char *(*check)(const char *name, const char *serial_hex, void *userdata);
        /* Decides about a join, at once or later: answers by join_answer(), exactly once, also when the asker
         * or the listener is gone by then. The request lives until this returns. NULL: nobody can join here.
         */
        void (*join)(struct join_pending *pending, const struct join_request *request, void *userdata);
};

/* Listens on every address of the list, which has 0.0.0.0 and :: for "*:PORT"; port 0 is one free port for
 * all. At most 256 unauthenticated connections and 500 handshakes a second; one that takes longer than 10 s
 * or sends more than 64 KiB before it is known is dropped. */
/* Beyond that newcomers wait in the kernel's backlog, and the oldest silent stranger makes way. */
int listener_new(sd_event *event, const struct addr *addresses, size_t n, struct tls_credentials *credentials,
                 const struct listener_handlers *handlers, void *userdata, struct listener **ret);
void listener_free(struct listener *l);
uint16_t listener_port(const struct listener *l); /* as bound; for tests that ask for port 0 */
void listener_set_credentials(struct listener *l,
                              struct tls_credentials *credentials); /* borrowed; for renewal */

/* why == NULL: granted with these PEM texts; else the refusal for people. Consumes pending. */
void join_answer(struct join_pending *pending, const char *why, const char *cert_pem, const char *ca_pem);
