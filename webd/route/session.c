/* SPDX-License-Identifier: Apache-2.0 */
/* Invariant: secrets are compared in a time that does not depend on where they differ. */
#include "webd/route/session.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "lib/base/format.h"

void session_secret(char buf[static SESSION_SECRET_MAX]) {
        uint8_t bytes[(SESSION_SECRET_MAX - 1) / 2];

        /* Of so few bytes there is no error but that the kernel has no such call. */
        if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
                abort();
        format_hex(bytes, sizeof(bytes), buf);
}

void session_begin(struct session *s, const char *token, unsigned port) {
        *s = (struct session){ 0 };
        snprintf(s->token, sizeof(s->token), "%s", token);
        snprintf(s->name, sizeof(s->name), "primus-%u", port);
}

static bool equal(const char secret[static SESSION_SECRET_MAX], const char *text, size_t n) {
        unsigned char differs = 0;

        if (n != SESSION_SECRET_MAX - 1 || !*secret)
                return false;
        for (size_t i = 0; i < n; i++)
                differs |= (unsigned char)(secret[i] ^ text[i]);
        return differs == 0;
}

bool session_open(struct session *s, const char *token) {
        if (!equal(s->token, token, strlen(token)))
                return false;
        memset(s->token, 0, sizeof(s->token));
        session_secret(s->cookie);
        return true;
}

bool session_allows(const struct session *s, const char *cookies) {
        size_t n_name = strlen(s->name);

        while (cookies && *cookies) {
                size_t n;

                cookies += strspn(cookies, "; ");
                n = strcspn(cookies, ";");
                if (n > n_name && strncmp(cookies, s->name, n_name) == 0 && cookies[n_name] == '=' &&
                    equal(s->cookie, cookies + n_name + 1, n - n_name - 1))
                        return true;
                cookies += n;
        }
        return false;
}
