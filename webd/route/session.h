/* SPDX-License-Identifier: Apache-2.0 */
/* Who may use a port of the loopback, which other users of the same machine reach as well: whoever has shown
 * the token of the address that was printed has a cookie from then on. The token is good once, so an address
 * that somebody finds later, in a history or a log, opens nothing. */
#pragma once

#include <stdbool.h>

#define SESSION_SECRET_MAX 65u /* 32 random bytes in hex */

struct session {
        char token[SESSION_SECRET_MAX];  /* "": used up */
        char cookie[SESSION_SECRET_MAX]; /* "": nobody has come */
        char name[32];                   /* of the cookie */
};

/* A new secret, of the kernel's random numbers. */
void session_secret(char buf[static SESSION_SECRET_MAX]);

/* port: cookies are not told apart by ports, so their name is. */
void session_begin(struct session *s, const char *token, unsigned port);
/* The token was shown: true, and there is a cookie from now on. */
bool session_open(struct session *s, const char *token);
/* The header "Cookie", or NULL. */
bool session_allows(const struct session *s, const char *cookies);
