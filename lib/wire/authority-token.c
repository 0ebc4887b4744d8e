/* SPDX-License-Identifier: Apache-2.0 */
/* Join tokens as text: RFC 4648 base32 in small letters without padding, so that one can be read out over a
 * telephone. One text per token: spare bits must be zero. */
#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/wire/authority.h"

#define TOKEN_PREFIX "primus1."
#define TOKEN_BYTES (32u + 8u + 16u)
#define TOKEN_DIGITS ((TOKEN_BYTES * 8u + 4u) / 5u)

static const char alphabet[] = "abcdefghijklmnopqrstuvwxyz234567";

int join_token_new(const uint8_t fingerprint[static 32], struct join_token *ret) {
        struct join_token t;
        if (gnutls_rnd(GNUTLS_RND_RANDOM, t.id, sizeof t.id) < 0 ||
            gnutls_rnd(GNUTLS_RND_KEY, t.secret, sizeof t.secret) < 0)
                return -EIO;
        memcpy(t.fingerprint, fingerprint, sizeof t.fingerprint);
        *ret = t;
        return 0;
}

static void token_pack(const struct join_token *t, uint8_t bytes[static TOKEN_BYTES]) {
        memcpy(bytes, t->fingerprint, 32);
        memcpy(bytes + 32, t->id, 8);
        memcpy(bytes + 40, t->secret, 16);
}

int join_token_format(const struct join_token *t, char ret[static TOKEN_TEXT_MAX]) {
        uint8_t bytes[TOKEN_BYTES];
        size_t n = strlen(TOKEN_PREFIX);
        unsigned bits = 0, held = 0;
        token_pack(t, bytes);
        memcpy(ret, TOKEN_PREFIX, n);
        for (size_t i = 0; i < sizeof bytes; i++) {
                bits = (bits << 8 | bytes[i]) & 0xffff;
                for (held += 8; held >= 5; held -= 5)
                        ret[n++] = alphabet[bits >> (held - 5) & 31];
        }
        if (held > 0)
                ret[n++] = alphabet[bits << (5 - held) & 31];
        ret[n] = '\0';
        explicit_bzero(bytes, sizeof bytes);
        return 0;
}

int join_token_parse(const char *text, struct join_token *ret) {
        uint8_t bytes[TOKEN_BYTES];
        unsigned bits = 0, held = 0;
        size_t n = 0;
        text += strspn(text, " \t\r\n");
        if (strncmp(text, TOKEN_PREFIX, strlen(TOKEN_PREFIX)) != 0)
                return -EINVAL;
        text += strlen(TOKEN_PREFIX);
        for (size_t i = 0; i < TOKEN_DIGITS; i++) {
                const char *at = text[i] ? strchr(alphabet, text[i]) : NULL;
                if (!at)
                        return -EINVAL;
                bits = (bits << 5 | (unsigned)(at - alphabet)) & 0xffff;
                held += 5;
                if (held >= 8) {
                        held -= 8;
                        bytes[n++] = (uint8_t)(bits >> held);
                }
        }
        if ((bits & ((1u << held) - 1)) != 0)
                return -EINVAL;
        text += TOKEN_DIGITS;
        if (text[strspn(text, " \t\r\n")] != '\0')
                return -EINVAL;
        memcpy(ret->fingerprint, bytes, 32);
        memcpy(ret->id, bytes + 32, 8);
        memcpy(ret->secret, bytes + 40, 16);
        explicit_bzero(bytes, sizeof bytes);
        return 0;
}

void join_secret_hash(const uint8_t secret[static 16], uint8_t ret[static 32]) {
        if (gnutls_hash_fast(GNUTLS_DIG_SHA256, secret, 16, ret) < 0)
                abort(); /* SHA-256 is always there; a constant hash would let everybody in */
}
