/* SPDX-License-Identifier: Apache-2.0 */
/* One TLS 1.3 session over a non-blocking socket, for peer.c and the join code; not for use outside lib/wire.
 * Says in words why it failed, to this side's log and, as a TLS alert, to the other side. */
#pragma once

#include <gnutls/gnutls.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "lib/wire/peer.h"

#define TLS_LINK "primus/1"
#define TLS_JOIN "primus-join/1"

enum tls_side {
        TLS_CLIENT,      /* offers TLS_LINK */
        TLS_CLIENT_JOIN, /* offers TLS_JOIN, no certificate */
        TLS_SERVER,      /* accepts TLS_LINK */
        TLS_SERVER_BOTH, /* accepts TLS_LINK, and TLS_JOIN without asking for a certificate */
};

/* What the other side's certificate must be. */
struct tls_expect {
        enum peer_role role;
        const char *name;                                                               /* NULL: any */
        const char *(*check)(const char *name, const char *serial_hex, void *userdata); /* see peer.h */
        void *userdata;
};

struct tls {
        gnutls_session_t session;
        struct tls_credentials *credentials;
        enum tls_side side;
        int fd; /* borrowed */
        int io_error;
        struct tls_expect expect;
        char name[65]; /* of the other side, once verified */
        char serial_hex[41];
        bool verified;
        uint64_t received, receive_max; /* bytes off the socket; 0: no limit */
        size_t unsent;                  /* bytes that GnuTLS has taken but not put on the wire */
        uint8_t *held; /* read ahead: bytes off the socket that GnuTLS has not asked for yet */
        size_t held_begin, held_end;
        bool drained;        /* the last read took all there was */
        struct peer_end end; /* why the last step failed */
        bool alerted;
};

struct tls_credentials *tls_credentials_ref(struct tls_credentials *c);

/* expect's strings must live as long as the session. */
int tls_new(struct tls_credentials *credentials, enum tls_side side, int fd, const struct tls_expect *expect,
            struct tls **ret);
void tls_free(struct tls *t);

/* 1: done, and the other side verified unless tls_is_join(); 0: call again when the socket is ready (see
 * tls_wants_write); negative: failed, t->end says why and the other side has been told. */
int tls_handshake(struct tls *t);
bool tls_wants_write(const struct tls *t);
bool tls_is_join(const struct tls *t);

/* Bytes moved; 0: nothing now; negative errno: over, t->end says why (its error is 0 after an orderly end).
 */
ssize_t tls_receive(struct tls *t, void *buf, size_t size);
ssize_t tls_send(struct tls *t, const void *buf, size_t size);

/* Bytes wait inside the session, where epoll cannot see them: tls_receive() may give some although the socket
 * is not readable. */
bool tls_pending(const struct tls *t);

/* For TLS_CLIENT_JOIN, after the handshake: the server must be masterd of the cluster whose CA has that
 * fingerprint. The CA's certificate comes from the server's own chain; *ret_ca_pem is allocated. Negative:
 * t->end says why. */
int tls_verify_by_fingerprint(struct tls *t, const uint8_t fingerprint[static 32], char **ret_ca_pem);

/* Tells the other side that it is refused; nothing more is said. */
void tls_refuse(struct tls *t);
/* Tells the other side that this was all. */
void tls_goodbye(struct tls *t);
