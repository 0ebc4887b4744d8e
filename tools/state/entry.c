/* SPDX-License-Identifier: Apache-2.0 */
/* What may be in a backup. Invariant: an accepted name is relative, has no part that begins with a dot, and
 * only the characters below. */
#include "tools/state/entry.h"

#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/parse.h"

#define PART_MAX 128u

/* The first part of a name, without what begins with a dot. Its length, or 0. */
static size_t part(const char *s) {
        static const char good[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-@+";
        size_t n = strspn(s, good);

        return *s == '.' || n > PART_MAX || (s[n] && s[n] != '/') ? 0 : n;
}

/* Exactly one part. */
static bool one(const char *s) {
        size_t n = part(s);

        return n > 0 && s[n] == 0;
}

static bool setting(const char *s) {
        static const char *const flat[] = { "masterd.conf.d/", "job-defaults.d/" };
        static const char hooks[] = "hooks/";
        size_t n;

        if (strcmp(s, "masterd.conf") == 0)
                return true;
        for (size_t i = 0; i < ELEMENTSOF(flat); i++)
                if (strncmp(s, flat[i], strlen(flat[i])) == 0)
                        return one(s + strlen(flat[i]));
        if (strncmp(s, hooks, strlen(hooks)) != 0)
                return false;
        s += strlen(hooks);
        n = part(s);
        return one(s) || (n > 0 && one(s + n + 1));
}

static bool bundle(const char *s) {
        size_t n = part(s);
        char uid[16] = "";
        uint32_t number;

        if (n == 0 || n >= sizeof(uid) || s[n] != '/')
                return false;
        memcpy(uid, s, n);
        s += n + 1;
        return parse_u32(uid, 0, UINT32_MAX, &number) >= 0 && strlen(s) == 64 &&
               strspn(s, "0123456789abcdef") == 64;
}

enum entry_kind entry_kind_of(const char *name) {
        if (strcmp(name, ENTRY_DATABASE_NAME) == 0)
                return ENTRY_DATABASE;
        if (strcmp(name, ENTRY_MANIFEST_NAME) == 0)
                return ENTRY_MANIFEST;
        if (strcmp(name, ENTRY_SEAL_NAME) == 0)
                return ENTRY_SEAL;
        if (strncmp(name, ENTRY_SETTINGS_PREFIX, strlen(ENTRY_SETTINGS_PREFIX)) == 0)
                return setting(name + strlen(ENTRY_SETTINGS_PREFIX)) ? ENTRY_SETTING : _ENTRY_INVALID;
        if (strncmp(name, ENTRY_BUNDLES_PREFIX, strlen(ENTRY_BUNDLES_PREFIX)) == 0)
                return bundle(name + strlen(ENTRY_BUNDLES_PREFIX)) ? ENTRY_BUNDLE : _ENTRY_INVALID;
        return _ENTRY_INVALID;
}
