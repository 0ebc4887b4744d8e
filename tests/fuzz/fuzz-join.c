/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a request to join, as it comes in before anybody is known, in pieces; and as a token's text.
 * How to run it: README.md. */
#include <errno.h>
#include <stdlib.h>

#include "lib/base/names.h"
#include "lib/wire/authority.h"
#include "lib/wire/join-wire.h"
#include "tests/fuzz/fuzz.h"

static void request(const uint8_t *data, size_t size) {
        char name[JOIN_NAME_MAX + 1];
        uint8_t *bytes = NULL;
        struct join_head head;
        const char *csr;
        size_t done = 0, csr_size;
        ssize_t want;
        int r;

        /* As the listener does it: what is wanted is known by what is there, and no more is taken. */
        while ((want = join_request_wanted(bytes, done)) > (ssize_t)done) {
                size_t n = (size_t)want - done, left = size - done;
                uint8_t *bigger;

                MUST((size_t)want <= JOIN_REQUEST_MAX);
                if (left == 0)
                        break;
                n = n < left ? n : left;
                bigger = realloc(bytes, done + n);
                MUST(bigger);
                bytes = bigger;
                memcpy(bytes + done, data + done, n);
                done += n;
        }
        MUST(want >= 0 || want == -EBADMSG);
        if (want == (ssize_t)done) {
                r = join_request_split(bytes, done, &head, name, &csr, &csr_size);
                MUST(r == 0 || r == -EINVAL);
                if (r == 0)
                        MUST(node_name_valid(name) && strcmp(name, AUTHORITY_MASTER_NAME) != 0 &&
                             csr_size > 0 && (const uint8_t *)csr + csr_size == bytes + done);
        }
        free(bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        struct join_token token;
        char again[TOKEN_TEXT_MAX];
        char *text;

        request(data, size);
        text = malloc(size + 1);
        MUST(text);
        memcpy(text, data, size);
        text[size] = 0;
        if (join_token_parse(text, &token) == 0) {
                MUST(join_token_format(&token, again) == 0);
                MUST(strncmp(text + strspn(text, " \t\r\n"), again, strlen(again)) ==
                     0); /* one text to a token */
        }
        free(text);
        return 0;
}
