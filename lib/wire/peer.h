/* SPDX-License-Identifier: Apache-2.0 */
/* One end of a masterd-agentd connection: TLS 1.3 with certificates on both sides, pumped between a TCP
 * socket and a socketpair whose other end is an sd-bus peer connection. The pump knows who the other side is
 * and bounds the bytes before sd-bus sees any. Invariants: a bounded ring per direction, neither waits for
 * the other; every wake-up of either side runs both (GnuTLS holds decrypted bytes that epoll cannot see);
 * nothing here blocks. sd_bus_call(), sd_bus_flush() and sd_bus_flush_close_unref() must never be used on
 * peer_bus(). */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <systemd/sd-bus.h>
#include <systemd/sd-event.h>

#include "lib/base/addr.h"

struct peer;
struct tls_credentials;

enum peer_role {
        PEER_MASTER,
        PEER_NODE
};

/* Loads ca.crt, the own certificate and key (PEM files). Refreshable: call again for new files; connections
 * keep the old ones alive. -ENOENT, -EKEYREJECTED (not PEM, or they do not fit together), -EACCES ... */
int tls_credentials_load(const char *ca_path, const char *cert_path, const char *key_path,
                         struct tls_credentials **ret);
void tls_credentials_free(struct tls_credentials *c);
/* From memory, for masterd, whose CA lives in the store. PEM texts. */
int tls_credentials_new(const char *ca_pem, const char *cert_pem, const char *key_pem,
                        struct tls_credentials **ret);

/* Why a connection ended or never came up, for people: "certificate expired", "revoked", "signed by another
 * CA". */
struct peer_end {
        int error;       /* negative errno, -ECONNRESET etc.; 0: orderly */
        const char *why; /* static text or owned by the peer, never NULL */
};

/* ready: the handshake is done and peer_name()/peer_bus() may be used; install vtables here. Return < 0 to
 * refuse (the peer is closed and ended is called); do not free the peer in it. ended: called exactly once,
 * from the loop, never from within peer_new or peer_free, after every message that came before the end was
 * handled and every pending call has failed; the owner frees the peer there or later. A client is ready only
 * once the server has accepted it, so a refusal by the server means that ready was never called. */
typedef int (*peer_ready_handler)(struct peer *p, void *userdata);
typedef void (*peer_ended_handler)(struct peer *p, const struct peer_end *end, void *userdata);

struct peer_options {
        bool server;
        const char *expect_name; /* client: the name the other side's certificate must carry; NULL: any */
        enum peer_role expect_role;
        uint64_t handshake_usec; /* limit for connecting and the whole handshake; 0: 10 s */
        uint64_t queue_max;      /* bytes that may wait for the network before the peer is dropped as stalled
                                  * (-ENOBUFS);      0: 8 MiB. A single larger message still passes. */
        /* Refuses a certificate by its serial, after the chain was verified; NULL: none revoked. Returns NULL
         * to accept or a static text that says why not. peer_removed itself: because somebody removed that
         * host by name, and the other side's end is -EIDRM instead of -EKEYREVOKED. */
        const char *(*check)(const char *name, const char *serial_hex, void *userdata);
};

extern const char peer_removed[];

/* Takes over fd (a connected or connecting non-blocking TCP socket), also on failure. */
int peer_new(sd_event *event, int fd, struct tls_credentials *credentials, const struct peer_options *options,
             peer_ready_handler ready, peer_ended_handler ended, void *userdata, struct peer **ret);
void peer_free(struct peer *p);

sd_bus *peer_bus(struct peer *p); /* NULL before ready; it is served: not to be attached to a loop */
const char *peer_name(const struct peer *p); /* the certificate's name; NULL before ready */
const char *peer_serial(const struct peer *p);
enum peer_role peer_role(const struct peer *p);
void peer_address(const struct peer *p, struct addr *ret);
/* The own address on this connection; AF_UNSPEC where it is not known. */
void peer_local_address(const struct peer *p, struct addr *ret);
uint64_t peer_queued(const struct peer *p); /* bytes waiting for the network */
/* While held, nothing that has come is handed to the owner, so that the other side soon cannot send any more.
 */
void peer_hold(struct peer *p, bool hold);
/* Asynchronous: ended follows with that text (copied) and -ECONNABORTED. What the bus has already handed to
 * the socket goes out first; what has come and is not dispatched yet is discarded. */
void peer_close(struct peer *p, const char *why);
