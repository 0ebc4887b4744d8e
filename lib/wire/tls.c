/* SPDX-License-Identifier: Apache-2.0 */
/* TLS 1.3 sessions: who may connect, and why not. Invariant: a session is verified only when the chain, the
 * dates, the purpose, the name and the caller's check all passed; a server verifies after the handshake, so
 * that its refusal reaches the client under the keys that the client then reads with. No tickets: every
 * connection shows its certificate anew. */
#include "lib/wire/tls.h"

#include <gnutls/x509.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "lib/base/cleanup.h"
#include "lib/base/file.h"
#include "lib/base/format.h"
#include "lib/base/names.h"
#include "lib/wire/authority.h"

#define PRIORITY                                                                                             \
        "NONE:+VERS-TLS1.3:+MAC-ALL:+AES-128-GCM:+AES-256-GCM:+CHACHA20-POLY1305:+GROUP-X25519:+GROUP-"      \
        "SECP256R1:"                                                                                         \
        "+SIGN-ECDSA-SECP256R1-SHA256:+SIGN-ECDSA-SECP384R1-SHA384:+SIGN-ECDSA-SECP521R1-SHA512:+CTYPE-"     \
        "X509:+KX-ALL:"                                                                                      \
        "+COMP-NULL"
#define HANDSHAKE_MESSAGE_MAX (32u << 10)
#define PEM_MAX (64u << 10)
#define READ_AHEAD ((size_t)64 << 10)

DEFINE_CLEANUP(gnutls_x509_crt_t, gnutls_x509_crt_deinit)
/* The certificates in it stay the caller's. */
static void trust_list_free(gnutls_x509_trust_list_t l) {
        gnutls_x509_trust_list_deinit(l, 0);
}
DEFINE_CLEANUP(gnutls_x509_trust_list_t, trust_list_free)
DEFINE_CLEANUP(struct tls *, tls_free)
DEFINE_CLEANUP(struct tls_credentials *, tls_credentials_free)

/* ---- credentials ---- */

struct tls_credentials {
        unsigned refs;
        gnutls_certificate_credentials_t x509;
        gnutls_priority_t priority;
};

static int credentials_errno(int r) {
        return r == GNUTLS_E_MEMORY_ERROR ? -ENOMEM : -EKEYREJECTED;
}

int tls_credentials_new(const char *ca_pem, const char *cert_pem, const char *key_pem,
                        struct tls_credentials **ret) {
        _cleanup_(tls_credentials_free_p) struct tls_credentials *c = calloc(1, sizeof *c);
        if (!c)
                return -ENOMEM;
        c->refs = 1;
        int r;
        if ((r = gnutls_certificate_allocate_credentials(&c->x509)) < 0 ||
            (r = gnutls_priority_init(&c->priority, PRIORITY, NULL)) < 0)
                return credentials_errno(r);
        if (ca_pem) {
                const gnutls_datum_t ca = { .data = (unsigned char *)ca_pem,
                                            .size = (unsigned)strlen(ca_pem) };
                r = gnutls_certificate_set_x509_trust_mem(c->x509, &ca, GNUTLS_X509_FMT_PEM);
                if (r <= 0)
                        return credentials_errno(r);
        }
        if (cert_pem) {
                /* The CA goes along, so that whoever joins with a token can compare its fingerprint. */
                _cleanup_free_ char *chain = NULL;
                if (asprintf(&chain, "%s\n%s", cert_pem, ca_pem ? ca_pem : "") < 0)
                        return -ENOMEM;
                const gnutls_datum_t cert = { .data = (unsigned char *)chain,
                                              .size = (unsigned)strlen(chain) };
                const gnutls_datum_t key = { .data = (unsigned char *)key_pem,
                                             .size = (unsigned)strlen(key_pem) };
                r = gnutls_certificate_set_x509_key_mem(c->x509, &cert, &key, GNUTLS_X509_FMT_PEM);
                if (r < 0)
                        return credentials_errno(r);
        }
        *ret = TAKE_PTR(c);
        return 0;
}

int tls_credentials_load(const char *ca_path, const char *cert_path, const char *key_path,
                         struct tls_credentials **ret) {
        _cleanup_free_ char *ca = NULL, *cert = NULL, *key = NULL;
        size_t key_size = 0;
        int r;
        if ((r = read_file(ca_path, PEM_MAX, &ca, NULL)) < 0 ||
            (r = read_file(cert_path, PEM_MAX, &cert, NULL)) < 0 ||
            (r = read_file(key_path, PEM_MAX, &key, &key_size)) < 0)
                return r;
        r = tls_credentials_new(ca, cert, key, ret);
        explicit_bzero(key, key_size);
        return r;
}

struct tls_credentials *tls_credentials_ref(struct tls_credentials *c) {
        c->refs++;
        return c;
}

void tls_credentials_free(struct tls_credentials *c) {
        if (!c || --c->refs > 0)
                return;
        if (c->x509)
                gnutls_certificate_free_credentials(c->x509);
        if (c->priority)
                gnutls_priority_deinit(c->priority);
        free(c);
}

/* ---- reasons ---- */

const char peer_removed[] = "the certificate was revoked (the node was removed)";

/* Our reading of an alert: what the other side has against us. */
static const struct {
        gnutls_alert_description_t alert;
        int error;
        const char *why;
} alerts[] = {
        { GNUTLS_A_UNKNOWN_CA, -EKEYREJECTED,
          "refused by the other side: our certificate is signed by another CA" },
        { GNUTLS_A_CERTIFICATE_EXPIRED, -EKEYEXPIRED,
          "refused by the other side: our certificate has expired" },
        { GNUTLS_A_CERTIFICATE_REVOKED, -EKEYREVOKED,
          "refused by the other side: our certificate was revoked" },
        /* Which nobody else sends: it is of extensions that TLS 1.3 has not. */
        { GNUTLS_A_CERTIFICATE_UNOBTAINABLE, -EIDRM,
          "refused by the other side: our certificate was revoked, this host was removed from the cluster" },
        { GNUTLS_A_UNSUPPORTED_CERTIFICATE, -EKEYREJECTED,
          "refused by the other side: our certificate is not for this role" },
        { GNUTLS_A_CERTIFICATE_UNKNOWN, -EKEYREJECTED,
          "refused by the other side: our certificate has another name" },
        { GNUTLS_A_BAD_CERTIFICATE, -EKEYREJECTED,
          "refused by the other side: our certificate is not valid" },
        { GNUTLS_A_CERTIFICATE_REQUIRED, -EKEYREJECTED, "refused by the other side: it wants a certificate" },
        { GNUTLS_A_ACCESS_DENIED, -EACCES, "refused by the other side" },
        { GNUTLS_A_NO_APPLICATION_PROTOCOL, -EPROTONOSUPPORT, "the other side does not speak " TLS_LINK },
        { GNUTLS_A_PROTOCOL_VERSION, -EPROTONOSUPPORT, "the other side does not speak TLS 1.3" },
};

static int fail_session(struct tls *t, int error, const char *why) {
        t->end = (struct peer_end){ .error = error, .why = why };
        return error < 0 ? error : -ECONNRESET;
}

static int fail_alert(struct tls *t) {
        gnutls_alert_description_t a = gnutls_alert_get(t->session);
        for (size_t i = 0; i < ELEMENTSOF(alerts); i++)
                if (alerts[i].alert == a)
                        return fail_session(t, alerts[i].error, alerts[i].why);
        const char *name = gnutls_alert_get_name(a);
        return fail_session(t, -ECONNABORTED, name ? name : "TLS alert of the other side");
}

/* What a GnuTLS error means for the connection. */
static int fail_tls(struct tls *t, int r) {
        const char *text;
        switch (r) {
        case GNUTLS_E_FATAL_ALERT_RECEIVED:
                return fail_alert(t);
        case GNUTLS_E_PREMATURE_TERMINATION:
                /* Somebody who looked whether the port is open. */
                if (t->received == 0 && (t->side == TLS_SERVER || t->side == TLS_SERVER_BOTH))
                        return fail_session(t, 0, "closed before anything was said");
                return fail_session(t, -ECONNRESET, "connection lost");
        case GNUTLS_E_PULL_ERROR:
        case GNUTLS_E_PUSH_ERROR:
                if (t->io_error == EMSGSIZE)
                        return fail_session(t, -EMSGSIZE, "sent too much before it was known");
                text = strerrordesc_np(t->io_error);
                return fail_session(t, t->io_error > 0 ? -t->io_error : -EIO,
                                    text ? text : "connection failed");
        case GNUTLS_E_MEMORY_ERROR:
                return fail_session(t, -ENOMEM, "out of memory");
        case GNUTLS_E_NO_APPLICATION_PROTOCOL:
                return fail_session(t, -EPROTONOSUPPORT, "it does not speak " TLS_LINK);
        case GNUTLS_E_UNSUPPORTED_VERSION_PACKET:
        case GNUTLS_E_UNEXPECTED_PACKET_LENGTH:
        case GNUTLS_E_RECORD_OVERFLOW:
        case GNUTLS_E_UNEXPECTED_PACKET:
                return fail_session(t, -EPROTO, "it does not speak TLS 1.3");
        default:
                text = gnutls_strerror(r);
                return fail_session(t, -EPROTO, text ? text : "TLS error");
        }
}

static int refuse_peer(struct tls *t, gnutls_alert_description_t alert, int error, const char *why) {
        if (!t->alerted)
                (void)gnutls_alert_send(t->session, GNUTLS_AL_FATAL, alert);
        t->alerted = true;
        return fail_session(t, error, why);
}

/* ---- verification ---- */

/* In the order in which a person wants to hear of them. */
static const struct {
        unsigned status;
        gnutls_alert_description_t alert;
        int error;
        const char *why;
} chain_faults[] = {
        { GNUTLS_CERT_SIGNER_NOT_FOUND | GNUTLS_CERT_SIGNER_NOT_CA, GNUTLS_A_UNKNOWN_CA, -EKEYREJECTED,
          "certificate signed by another CA" },
        { GNUTLS_CERT_SIGNATURE_FAILURE, GNUTLS_A_UNKNOWN_CA, -EKEYREJECTED,
          "certificate signed by another CA" },
        { GNUTLS_CERT_REVOKED, GNUTLS_A_CERTIFICATE_REVOKED, -EKEYREVOKED, "certificate revoked" },
        { GNUTLS_CERT_EXPIRED, GNUTLS_A_CERTIFICATE_EXPIRED, -EKEYEXPIRED, "certificate expired" },
        { GNUTLS_CERT_NOT_ACTIVATED, GNUTLS_A_CERTIFICATE_EXPIRED, -EKEYREJECTED,
          "certificate not valid yet: is the clock right?" },
        { ~0u, GNUTLS_A_BAD_CERTIFICATE, -EKEYREJECTED, "certificate not valid" },
};

static int verify_chain(struct tls *t) {
        unsigned status = 0;
        int r = gnutls_certificate_verify_peers2(t->session, &status);
        if (r < 0)
                return refuse_peer(t, GNUTLS_A_BAD_CERTIFICATE, -EKEYREJECTED, "certificate not readable");
        for (size_t i = 0; status != 0 && i < ELEMENTSOF(chain_faults); i++)
                if (status & chain_faults[i].status)
                        return refuse_peer(t, chain_faults[i].alert, chain_faults[i].error,
                                           chain_faults[i].why);
        return 0;
}

/* True when purpose is the one and only extended key usage. */
static bool purpose_is(gnutls_x509_crt_t crt, const char *purpose) {
        char oid[128];
        size_t size = sizeof oid;
        unsigned critical;
        if (gnutls_x509_crt_get_key_purpose_oid(crt, 0, oid, &size, &critical) < 0 ||
            strcmp(oid, purpose) != 0)
                return false;
        size = sizeof oid;
        return gnutls_x509_crt_get_key_purpose_oid(crt, 1, oid, &size, &critical) ==
               GNUTLS_E_REQUESTED_DATA_NOT_AVAILABLE;
}

static bool role_name_matches(enum peer_role role, const char *name) {
        bool master = strcmp(name, AUTHORITY_MASTER_NAME) == 0;
        return role == PEER_MASTER ? master : !master && node_name_valid(name);
}

static int read_identity(struct tls *t, gnutls_x509_crt_t crt) {
        char cn[sizeof t->name];
        uint8_t serial[20];
        size_t size = sizeof cn, serial_size = sizeof serial;
        if (gnutls_x509_crt_get_dn_by_oid(crt, GNUTLS_OID_X520_COMMON_NAME, 0, 0, cn, &size) < 0 ||
            strlen(cn) != size || gnutls_x509_crt_get_serial(crt, serial, &serial_size) < 0)
                return refuse_peer(t, GNUTLS_A_BAD_CERTIFICATE, -EKEYREJECTED,
                                   "certificate without a usable name");
        memcpy(t->name, cn, size + 1);
        (void)format_hex(serial, serial_size, t->serial_hex);
        return 0;
}

static int verify(struct tls *t) {
        _cleanup_(gnutls_x509_crt_deinit_p) gnutls_x509_crt_t crt = NULL;
        const struct tls_expect *e = &t->expect;
        unsigned n = 0;
        const gnutls_datum_t *list = gnutls_certificate_get_peers(t->session, &n);
        if (!list || n == 0)
                return refuse_peer(t, GNUTLS_A_CERTIFICATE_REQUIRED, -EKEYREJECTED, "no certificate");
        int r = verify_chain(t);
        if (r < 0)
                return r;
        if (gnutls_x509_crt_init(&crt) < 0 || gnutls_x509_crt_import(crt, &list[0], GNUTLS_X509_FMT_DER) < 0)
                return refuse_peer(t, GNUTLS_A_BAD_CERTIFICATE, -EKEYREJECTED, "certificate not readable");
        if ((r = read_identity(t, crt)) < 0)
                return r;
        const char *purpose = e->role == PEER_MASTER ? GNUTLS_KP_TLS_WWW_SERVER : GNUTLS_KP_TLS_WWW_CLIENT;
        if (!purpose_is(crt, purpose) || !role_name_matches(e->role, t->name))
                return refuse_peer(t, GNUTLS_A_UNSUPPORTED_CERTIFICATE, -EKEYREJECTED,
                                   e->role == PEER_MASTER ? "not masterd's certificate"
                                                          : "not a node's certificate");
        if (e->name && strcmp(e->name, t->name) != 0)
                return refuse_peer(t, GNUTLS_A_CERTIFICATE_UNKNOWN, -EKEYREJECTED,
                                   "certificate of another name");
        const char *why = e->check ? e->check(t->name, t->serial_hex, e->userdata) : NULL;
        if (why)
                return refuse_peer(t,
                                   why == peer_removed ? GNUTLS_A_CERTIFICATE_UNOBTAINABLE
                                                       : GNUTLS_A_CERTIFICATE_REVOKED,
                                   -EKEYREVOKED, why);
        t->verified = true;
        return 0;
}

/* The certificate of the chain with that fingerprint. */
static int find_ca(struct tls *t, const uint8_t fingerprint[static 32], gnutls_x509_crt_t *ret) {
        unsigned n = 0;
        const gnutls_datum_t *list = gnutls_certificate_get_peers(t->session, &n);
        for (unsigned i = 1; list && i < MIN(n, 8u); i++) {
                _cleanup_(gnutls_x509_crt_deinit_p) gnutls_x509_crt_t crt = NULL;
                uint8_t have[32];
                size_t size = sizeof have;
                if (gnutls_x509_crt_init(&crt) < 0)
                        return -ENOMEM;
                if (gnutls_x509_crt_import(crt, &list[i], GNUTLS_X509_FMT_DER) < 0 ||
                    gnutls_x509_crt_get_fingerprint(crt, GNUTLS_DIG_SHA256, have, &size) < 0 ||
                    memcmp(have, fingerprint, sizeof have) != 0)
                        continue;
                *ret = TAKE_PTR(crt);
                return 0;
        }
        return -EKEYREJECTED;
}

int tls_verify_by_fingerprint(struct tls *t, const uint8_t fingerprint[static 32], char **ret_ca_pem) {
        static const char other_cluster[] =
                "this is another cluster than the token's; the token has to be of that master";
        _cleanup_(gnutls_x509_crt_deinit_p) gnutls_x509_crt_t ca = NULL, leaf = NULL;
        _cleanup_(trust_list_free_p) gnutls_x509_trust_list_t trust = NULL;
        gnutls_datum_t pem = {};
        unsigned n = 0, status = 0;
        int r = find_ca(t, fingerprint, &ca);
        if (r == -ENOMEM)
                return fail_session(t, r, "out of memory");
        if (r < 0)
                return refuse_peer(t, GNUTLS_A_UNKNOWN_CA, r, other_cluster);
        const gnutls_datum_t *list = gnutls_certificate_get_peers(t->session, &n);
        if (gnutls_x509_crt_init(&leaf) < 0 || gnutls_x509_trust_list_init(&trust, 0) < 0 ||
            gnutls_x509_trust_list_add_cas(trust, &ca, 1, 0) != 1)
                return fail_session(t, -ENOMEM, "out of memory");
        if (gnutls_x509_crt_import(leaf, &list[0], GNUTLS_X509_FMT_DER) < 0 ||
            gnutls_x509_trust_list_verify_crt(trust, &leaf, 1, 0, &status, NULL) < 0)
                return refuse_peer(t, GNUTLS_A_BAD_CERTIFICATE, -EKEYREJECTED, "certificate not readable");
        for (size_t i = 0; status != 0 && i < ELEMENTSOF(chain_faults); i++)
                if (status & chain_faults[i].status)
                        return refuse_peer(t, chain_faults[i].alert, chain_faults[i].error,
                                           chain_faults[i].why);
        if ((r = read_identity(t, leaf)) < 0)
                return r;
        if (!purpose_is(leaf, GNUTLS_KP_TLS_WWW_SERVER) || !role_name_matches(PEER_MASTER, t->name))
                return refuse_peer(t, GNUTLS_A_UNSUPPORTED_CERTIFICATE, -EKEYREJECTED,
                                   "not masterd's certificate");
        if (gnutls_x509_crt_export2(ca, GNUTLS_X509_FMT_PEM, &pem) < 0)
                return fail_session(t, -ENOMEM, "out of memory");
        char *text = strndup((const char *)pem.data, pem.size);
        gnutls_free(pem.data);
        if (!text)
                return fail_session(t, -ENOMEM, "out of memory");
        t->verified = true;
        *ret_ca_pem = text;
        return 0;
}

/* A client verifies before it sends its own certificate. */
static int verify_in_handshake(gnutls_session_t session) {
        return verify(gnutls_session_get_ptr(session)) < 0 ? GNUTLS_E_CERTIFICATE_ERROR : 0;
}

/* ---- the session ---- */

/* One read for many records: GnuTLS asks for heads and bodies one by one. */
static ssize_t read_ahead(struct tls *t) {
        size_t size = READ_AHEAD;
        if (t->receive_max > 0) {
                if (t->received >= t->receive_max) {
                        errno = EMSGSIZE;
                        return -1;
                }
                size = MIN(size, (size_t)(t->receive_max - t->received));
        }
        if (!t->held && !(t->held = malloc(READ_AHEAD))) {
                errno = ENOMEM;
                return -1;
        }
        ssize_t n = recv(t->fd, t->held, size, MSG_DONTWAIT);
        t->held_begin = 0;
        t->held_end = n > 0 ? (size_t)n : 0;
        t->received += t->held_end;
        t->drained = t->held_end < size;
        return n;
}

static void release_held(struct tls *t) {
        if (t->held_begin < t->held_end)
                return;
        free(t->held);
        t->held = NULL;
        t->held_begin = t->held_end = 0;
}

static ssize_t pull(gnutls_transport_ptr_t ptr, void *buf, size_t size) {
        struct tls *t = ptr;
        if (t->held_begin == t->held_end) {
                ssize_t n = read_ahead(t);
                if (n < 0)
                        gnutls_transport_set_errno(t->session, t->io_error = errno);
                if (n <= 0)
                        return n;
        }
        size_t n = MIN(size, t->held_end - t->held_begin);
        memcpy(buf, t->held + t->held_begin, n);
        t->held_begin += n;
        return (ssize_t)n;
}

static ssize_t push(gnutls_transport_ptr_t ptr, const giovec_t *iov, int n_iov) {
        struct tls *t = ptr;
        const struct msghdr m = { .msg_iov = (struct iovec *)iov, .msg_iovlen = (size_t)n_iov };
        ssize_t n = sendmsg(t->fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n < 0)
                gnutls_transport_set_errno(t->session, t->io_error = errno);
        return n;
}

static int pull_ready(gnutls_transport_ptr_t ptr, unsigned ms) {
        struct pollfd p = { .fd = ((struct tls *)ptr)->fd, .events = POLLIN };
        return poll(&p, 1, 0);
}

bool tls_is_join(const struct tls *t) {
        gnutls_datum_t d;
        return gnutls_alpn_get_selected_protocol(t->session, &d) >= 0 && d.size == strlen(TLS_JOIN) &&
               memcmp(d.data, TLS_JOIN, d.size) == 0;
}

/* Whoever joins has no certificate yet, and is not asked for one. */
static int choose_by_protocol(gnutls_session_t session) {
        if (!tls_is_join(gnutls_session_get_ptr(session)))
                gnutls_certificate_server_set_request(session, GNUTLS_CERT_REQUEST);
        return 0;
}

static int set_protocols(struct tls *t) {
        const gnutls_datum_t link = { .data = (unsigned char *)TLS_LINK, .size = strlen(TLS_LINK) },
                             join = { .data = (unsigned char *)TLS_JOIN, .size = strlen(TLS_JOIN) };
        const gnutls_datum_t both[] = { link, join };
        const gnutls_datum_t *list = t->side == TLS_CLIENT_JOIN   ? &join
                                     : t->side == TLS_SERVER_BOTH ? both
                                                                  : &link;
        return gnutls_alpn_set_protocols(t->session, list, t->side == TLS_SERVER_BOTH ? 2 : 1,
                                         GNUTLS_ALPN_MANDATORY);
}

int tls_new(struct tls_credentials *credentials, enum tls_side side, int fd, const struct tls_expect *expect,
            struct tls **ret) {
        _cleanup_(tls_free_p) struct tls *t = calloc(1, sizeof *t);
        if (!t)
                return -ENOMEM;
        bool server = side == TLS_SERVER || side == TLS_SERVER_BOTH;
        t->side = side;
        t->fd = fd;
        t->credentials = tls_credentials_ref(credentials);
        if (expect)
                t->expect = *expect;
        int r = gnutls_init(&t->session, (server ? GNUTLS_SERVER : GNUTLS_CLIENT | GNUTLS_FORCE_CLIENT_CERT) |
                                                 GNUTLS_NONBLOCK | GNUTLS_NO_SIGNAL | GNUTLS_NO_TICKETS);
        if (r < 0)
                return -ENOMEM;
        gnutls_session_set_ptr(t->session, t);
        gnutls_transport_set_ptr(t->session, t);
        gnutls_transport_set_pull_function(t->session, pull);
        gnutls_transport_set_vec_push_function(t->session, push);
        gnutls_transport_set_pull_timeout_function(t->session, pull_ready);
        gnutls_handshake_set_max_packet_length(t->session, HANDSHAKE_MESSAGE_MAX);
        if ((r = gnutls_priority_set(t->session, t->credentials->priority)) < 0 ||
            (r = gnutls_credentials_set(t->session, GNUTLS_CRD_CERTIFICATE, t->credentials->x509)) < 0 ||
            (r = set_protocols(t)) < 0)
                return r == GNUTLS_E_MEMORY_ERROR ? -ENOMEM : -EINVAL;
        if (server)
                gnutls_handshake_set_post_client_hello_function(t->session, choose_by_protocol);
        else if (side == TLS_CLIENT)
                gnutls_session_set_verify_function(t->session, verify_in_handshake);
        *ret = TAKE_PTR(t);
        return 0;
}

void tls_free(struct tls *t) {
        if (!t)
                return;
        if (t->session)
                gnutls_deinit(t->session);
        tls_credentials_free(t->credentials);
        free(t->held);
        free(t);
}

bool tls_pending(const struct tls *t) {
        return t->held_begin < t->held_end || gnutls_record_check_pending(t->session) > 0;
}

bool tls_wants_write(const struct tls *t) {
        return gnutls_record_get_direction(t->session) == 1;
}

int tls_handshake(struct tls *t) {
        int r;
        do
                r = gnutls_handshake(t->session);
        while (r == GNUTLS_E_INTERRUPTED || r == GNUTLS_E_WARNING_ALERT_RECEIVED);
        release_held(t);
        if (r == GNUTLS_E_AGAIN)
                return 0;
        if (r < 0 && t->alerted)
                return t->end.error;
        if (r < 0) {
                if (r != GNUTLS_E_FATAL_ALERT_RECEIVED && r != GNUTLS_E_PULL_ERROR &&
                    r != GNUTLS_E_PUSH_ERROR)
                        (void)gnutls_alert_send_appropriate(t->session, r);
                return fail_tls(t, r);
        }
        if (t->side == TLS_CLIENT_JOIN || tls_is_join(t) || t->verified)
                return 1;
        r = verify(t);
        return r < 0 ? r : 1;
}

ssize_t tls_receive(struct tls *t, void *buf, size_t size) {
        ssize_t r;
        do
                r = gnutls_record_recv(t->session, buf, size);
        while (r == GNUTLS_E_INTERRUPTED || r == GNUTLS_E_WARNING_ALERT_RECEIVED);
        release_held(t);
        if (r > 0)
                return r;
        if (r == GNUTLS_E_AGAIN)
                return 0;
        if (r == 0)
                return fail_session(t, 0, "closed by the other side");
        return fail_tls(t, (int)r);
}

ssize_t tls_send(struct tls *t, const void *buf, size_t size) {
        ssize_t r;
        do
                r = t->unsent > 0 ? gnutls_record_send(t->session, NULL, 0)
                                  : gnutls_record_send(t->session, buf, size);
        while (r == GNUTLS_E_INTERRUPTED);
        if (r == GNUTLS_E_AGAIN) {
                if (t->unsent == 0)
                        t->unsent = size;
                return 0;
        }
        if (r < 0)
                return fail_tls(t, (int)r);
        t->unsent = 0;
        return r;
}

void tls_refuse(struct tls *t) {
        (void)refuse_peer(t, GNUTLS_A_ACCESS_DENIED, -EACCES, "refused");
}

void tls_goodbye(struct tls *t) {
        (void)gnutls_bye(t->session, GNUTLS_SHUT_WR);
}
