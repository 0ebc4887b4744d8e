/* SPDX-License-Identifier: Apache-2.0 */
/* Names for numbers. Invariant: nothing of the text but "uid N" is another one afterwards. */
#include "tools/primusctl/view/users.h"

#include <ctype.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/parse.h"

#define WORD "uid "

const char *user_lookup_here(uint32_t uid) {
        const struct passwd *pw = getpwuid(uid);

        return pw ? pw->pw_name : NULL;
}

/* "no user with uid 4711" is about the number. */
static bool is_about_number(const char *text, const char *at) {
        static const char with[] = "with ";

        return (size_t)(at - text) >= strlen(with) && strncmp(at - strlen(with), with, strlen(with)) == 0;
}

static const char *find(const char *text) {
        for (const char *s = text; (s = strstr(s, WORD)); s++)
                if ((s == text || !isalnum((unsigned char)s[-1])) &&
                    isdigit((unsigned char)s[strlen(WORD)]) && !is_about_number(text, s))
                        return s;
        return NULL;
}

char *users_named(const char *text, user_lookup lookup) {
        const char *at = text ? find(text) : NULL, *name = NULL;
        char digits[16], *out;
        size_t n;
        uint32_t uid;

        if (!at)
                return text ? strdup(text) : NULL;
        n = strspn(at + strlen(WORD), "0123456789");
        snprintf(digits, sizeof(digits), "%.*s", (int)MIN(n, sizeof(digits)), at + strlen(WORD));
        if (n < sizeof(digits) && parse_u32(digits, 0, UINT32_MAX - 1, &uid) >= 0)
                name = lookup(uid);
        if (!name || !*name)
                return strdup(text);
        return asprintf(&out, "%.*s%s%s", (int)(at - text), text, name, at + strlen(WORD) + n) < 0 ? NULL
                                                                                                   : out;
}
