/* SPDX-License-Identifier: Apache-2.0 */
/* The cluster's certificate authority, join tokens and the certificates made from them. Pure: bytes in, bytes
 * out; the time is an argument; storage is the caller's. Keys are ECDSA P-256 (GnuTLS); PEM texts, allocated.
 * Certificates are backdated 24 h. A node's certificate: CN = node name, EKU clientAuth only; masterd's: CN =
 * "primus-masterd", EKU serverAuth only; so no node can pose as the master. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define AUTHORITY_MASTER_NAME "primus-masterd"
#define TOKEN_TEXT_MAX 192
#define AUTHORITY_BACKDATE_USEC (UINT64_C(24) * 3600 * 1000000)

struct certificate {
        char *cert_pem;
        char *key_pem; /* NULL when the key stayed with the requester */
        char serial_hex[41];
        uint64_t not_after_real; /* usec */
};
void certificate_done(struct certificate *c);

int authority_new(const char *cluster_name, uint64_t now_real, uint64_t lifetime_usec,
                  struct certificate *ret_ca);
/* A certificate for the same key and name that lasts longer: what either of the two has signed is good under
 * the other. */
int authority_renew(const struct certificate *ca, uint64_t now_real, uint64_t lifetime_usec,
                    struct certificate *ret_ca);
/* Whether both certificates are for the same key. Negative errno: one cannot be read. */
int authority_same_key(const char *a_pem, const char *b_pem);
int authority_issue_master(const struct certificate *ca, uint64_t now_real, uint64_t lifetime_usec,
                           struct certificate *ret);
/* Signs a node's request (PEM PKCS#10). The name comes from the caller, never from the request. -EBADMSG: not
 * a valid request or its self-signature fails; -EINVAL: invalid name. */
int authority_issue_node(const struct certificate *ca, const char *csr_pem, size_t csr_size, const char *name,
                         uint64_t now_real, uint64_t lifetime_usec, struct certificate *ret);
/* A fresh key and a request for it; ret->cert_pem is then NULL. */
int certificate_request_new(const char *name, char **ret_key_pem, char **ret_csr_pem);
int certificate_info(const char *cert_pem, char **ret_name, char ret_serial_hex[static 41],
                     uint64_t *ret_not_after_real);

/* From when to when a certificate is valid, usec on the wall clock; for renewal in time. */
int certificate_validity(const char *cert_pem, uint64_t *ret_from_real, uint64_t *ret_until_real);

/* SHA-256 over the CA certificate's DER. */
int authority_fingerprint(const char *ca_cert_pem, uint8_t ret[static 32]);

/* A join token is text: "primus1." + base32-like encoding of (CA fingerprint 32 bytes, id 8 bytes, secret 16
 * bytes). masterd stores the id and SHA-256 of the secret only. */
struct join_token {
        uint8_t fingerprint[32];
        uint8_t id[8];
        uint8_t secret[16];
};
int join_token_new(const uint8_t fingerprint[static 32], struct join_token *ret); /* random id and secret */
int join_token_format(const struct join_token *t, char ret[static TOKEN_TEXT_MAX]);
int join_token_parse(const char *text,
                     struct join_token *ret); /* -EINVAL; tolerates surrounding white space */
void join_secret_hash(const uint8_t secret[static 16], uint8_t ret[static 32]);
