/* SPDX-License-Identifier: Apache-2.0 */
/* Reading a credential. Invariant: nothing that was read is shown, for it may be the token. */
#include "tools/join/credential.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/addr.h"
#include "lib/base/cleanup.h"
#include "lib/base/file.h"
#include "lib/base/names.h"
#include "tools/join/place.h"

static bool target_valid(const char *s) {
        _cleanup_free_ char *host = NULL;
        uint16_t port;

        /* It is written into a file of settings. */
        for (const char *p = s; *p; p++)
                if ((unsigned char)*p <= ' ' || (unsigned char)*p >= 0x7f)
                        return false;
        return *s != '-' && strlen(s) < sizeof(((struct join_credential *)0)->target) &&
               addr_split(s, MASTER_PORT, &host, &port) >= 0;
}

int credential_parse(char *text, struct join_credential *ret, const char **ret_why) {
        char *save = NULL, *words[4];

        for (size_t i = 0; i < ELEMENTSOF(words); i++)
                words[i] = strtok_r(i == 0 ? text : NULL, " \t\r\n", &save);
        if (!words[2] || words[3])
                *ret_why = "it has to be one line of three words: HOST[:PORT] NAME TOKEN";
        else if (!target_valid(words[0]))
                *ret_why = "its first word is no HOST[:PORT]";
        else if (!node_name_valid(words[1]))
                *ret_why = "its second word cannot be a node's name";
        else if (join_token_parse(words[2], &ret->token) < 0)
                *ret_why = "its third word is no token";
        else {
                strcpy(ret->target, words[0]);
                strcpy(ret->name, words[1]);
                return 0;
        }
        return -EINVAL;
}

int credential_read(const char *file, struct join_credential *ret) {
        _cleanup_free_ char *text = NULL;
        const char *why = NULL;
        size_t size;
        int r = read_file(file, CREDENTIAL_MAX, &text, &size);

        if (r < 0)
                return fail(JOIN_CONFIG, "cannot read %s: %s", file, strerror(-r));
        r = strlen(text) == size ? credential_parse(text, ret, &why) : -EINVAL;
        explicit_bzero(text, size);
        return r < 0 ? fail(JOIN_CONFIG, "%s cannot be used: %s", file, why ? why : "it is no text")
                     : JOIN_OK;
}
