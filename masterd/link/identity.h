/* SPDX-License-Identifier: Apache-2.0 */
/* Who the cluster is and who belongs to it: cluster id, term, certificate authority, join tokens, revoked
 * certificates. */
#pragma once

#include <stdint.h>
#include <uthash.h>

#include "lib/base/addr.h"
#include "lib/wire/join.h"

struct manager;
struct node;

#define TOKEN_USES_MAX 100000u
#define TOKENS_MAX 10000u

struct token {
        uint8_t id[8];
        uint8_t secret_hash[32];
        uint32_t uses_left;
        uint64_t expires_real;
        char *from;
        uint32_t creator;
        char name[65]; /* of the one node that it is for; "": of any that is new */
        bool replace;  /* that node may be there already */
        UT_hash_handle hh;
};

/* A certificate that is no longer good, or has a successor. */
struct revoked {
        char serial[41], node[65];
        uint64_t revoked_real; /* 0: renewed, and good until its successor has been seen */
        UT_hash_handle hh;
};

/* The state of link, whose listener and connections link.h has. -ENOMEM. */
int link_state_new(struct manager *m);
void link_state_free(struct manager *m);

/* Loads or creates the cluster id, CA, tokens and revocations; raises the term (in the open batch). Issues
 * masterd's own certificate and keeps it fresh. */
int identity_load(struct manager *m);
/* By when they expire; a list, through hh.next. */
struct token *identity_tokens(struct manager *m);

/* The certificate of the cluster's authority, PEM. */
const char *identity_authority(const struct manager *m);

/* What a token is to be good for. */
struct token_terms {
        uint32_t uses;
        uint64_t lifetime_usec;
        const char *from; /* CIDR or "" */
        const char *name; /* as in struct token */
        bool replace;
};
/* A new token, recorded in the open batch. -ENOBUFS: too many tokens. */
int identity_token_new(struct manager *m, const struct token_terms *terms, uint32_t creator,
                       char ret_text[static TOKEN_TEXT_MAX]);
/* By which it is listed and revoked: 16 hex digits. Returns buf. */
#define TOKEN_ID_TEXT_MAX 17
char *token_id_format(const struct token *t, char buf[static TOKEN_ID_TEXT_MAX]);
/* In the open batch. -ENOENT: there is none of that id, or it is none. */
int identity_token_revoke(struct manager *m, const char *id);

/* struct listener_handlers: decides about a join. */
void identity_join(struct join_pending *pending, const struct join_request *request, void *userdata);
/* struct listener_handlers: NULL or why the certificate is refused. */
const char *identity_check(const char *name, const char *serial_hex, void *userdata);

/* Signs a renewal for a node that proved its name on its link. */
int identity_renew(struct manager *m, struct node *node, const char *csr, size_t size,
                   struct certificate *ret);
/* The node said Hello with this certificate: those that it succeeds are revoked, in the open batch; the
 * caller records the node. */
void identity_seen(struct manager *m, struct node *node, const char *serial_hex);
/* Revokes the node's certificates, in the open batch. */
int identity_revoke(struct manager *m, struct node *node);
/* The same, for a node that is removed: its host is told so when it comes again. */
int identity_remove(struct manager *m, struct node *node);
