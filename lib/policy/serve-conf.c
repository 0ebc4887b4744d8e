/* SPDX-License-Identifier: Apache-2.0 */
/* What a host's files say of whom it serves. No user database is asked: that may be far away. */
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/parse.h"
#include "lib/base/strv.h"
#include "lib/base/utf8.h"
#include "lib/policy/serve.h"

#define LINE_MAX_BYTES 4096u
#define PASSWD_LINES_MAX 65536u
#define BLANKS " \t"

int serve_parse_min_uid(const char *value, void *target, const char **ret_why) {
        *ret_why = "expected the first uid of users, such as 1000 (at least 1; root is AllowRoot='s)";
        return parse_u32(value, 1, UINT32_MAX - 2, target);
}

static bool name_valid(const char *s) {
        size_t n = strlen(s);

        if (n == 0 || n > SERVE_NAME_MAX || *s == '-' || !utf8_valid(s, n))
                return false;
        /* What separates in other files would most likely be meant to do so here. */
        return strpbrk(s, ",:;/*!#\"'") == NULL;
}

/* Nothing: as if it were not set. */
int serve_parse_names(const char *value, void *target, const char **ret_why) {
        char ***names = target;
        _cleanup_(strings_free_p) char **list = calloc(SERVE_NAMES_MAX + 1, sizeof(*list));
        _cleanup_free_ char *copy = strdup(value);
        char *save = NULL;
        size_t n = 0;

        *ret_why = "expected up to 256 names or numbers, separated by blanks";
        if (!list || !copy)
                return -ENOMEM;
        for (char *word = strtok_r(copy, BLANKS, &save); word; word = strtok_r(NULL, BLANKS, &save)) {
                if (n == SERVE_NAMES_MAX || !name_valid(word))
                        return -EINVAL;
                list[n] = strdup(word);
                if (!list[n++])
                        return -ENOMEM;
        }
        strings_free(*names);
        *names = n > 0 ? TAKE_PTR(list) : NULL;
        return 0;
}

static FILE *open_below(const char *root, const char *path) {
        char full[PATH_MAX];

        return snprintf(full, sizeof(full), "%s%s", root, path) < (int)sizeof(full) ? fopen(full, "re")
                                                                                    : NULL;
}

uint32_t serve_login_min_uid(const char *root) {
        _cleanup_fclose_ FILE *f = open_below(root, "/etc/login.defs");
        uint32_t found = SERVE_UID_MIN;
        char line[LINE_MAX_BYTES];

        while (f && fgets(line, sizeof(line), f)) {
                char *save = NULL, *end;
                const char *key = strtok_r(line, " \t\n=", &save), *value = strtok_r(NULL, " \t\n\"", &save);
                unsigned long n;

                if (!key || strcmp(key, "UID_MIN") != 0 || !value || *value < '0' || *value > '9')
                        continue;
                errno = 0;
                n = strtoul(value, &end, 0); /* as its own readers do: 0x3e8 is a number there */
                if (errno == 0 && !*end && n > 0 && n < UINT32_MAX - 2)
                        found = (uint32_t)n;
        }
        return found;
}

/* Users of services are in the host's own file; a directory's are asked for by name elsewhere. */
static void find_own(struct serve_policy *p, const char *root) {
        static const char *const users[] = SERVE_OWN_USERS;
        _cleanup_fclose_ FILE *f = open_below(root, "/etc/passwd");
        struct passwd pw, *found;
        char buf[LINE_MAX_BYTES];

        p->n_own = 0;
        for (unsigned i = 0; f && i < PASSWD_LINES_MAX; i++) {
                int r = fgetpwent_r(f, &pw, buf, sizeof(buf), &found);

                if (r == ERANGE)
                        continue; /* a line that long is not ours */
                if (r != 0 || !found)
                        break;
                for (size_t k = 0; k < ELEMENTSOF(users); k++)
                        if (strcmp(pw.pw_name, users[k]) == 0 && p->n_own < SERVE_OWN_MAX)
                                p->own[p->n_own++] = pw.pw_uid;
        }
}

void serve_policy_complete(struct serve_policy *p, const char *root) {
        if (p->min_uid == 0)
                p->min_uid = serve_login_min_uid(root);
        find_own(p, root);
}
