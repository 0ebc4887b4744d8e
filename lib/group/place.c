/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/group/place.h"

#include <errno.h>
#include <nettle/sha2.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/try.h"
#include "lib/primus/text.h"

#define WORK_MAX 70u /* bytes: a socket's whole path has 107 */
#define NAME_HEX 24u

/* What this executor's processes have in common, and no other's. */
static int executor_name(char **ret) {
        const char *const variables[] = { "PRIMUS_JOB_UID", "PRIMUS_ROLE", "PRIMUS_INDEX", "PRIMUS_ATTEMPT" };
        const char *is[ELEMENTSOF(variables)];

        for (size_t i = 0; i < ELEMENTSOF(variables); i++) {
                is[i] = getenv(variables[i]);
                if (!is[i] && i > 0 && is[0])
                        return -EINVAL;
        }
        *ret = is[0] ? text_make("%s/%s/%s/%s", is[0], is[1], is[2], is[3])
                     : text_make("alone/%d", (int)getppid());
        return *ret ? 0 : -ENOMEM;
}

static bool is_own_directory(const char *path, mode_t none) {
        struct stat st;

        return lstat(path, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == getuid() && !(st.st_mode & none);
}

/* As Python's tempfile finds it, since both have to find the same. */
static const char *temporary_directory(void) {
        static const char *const variables[] = { "TMPDIR", "TEMP", "TMP" };

        for (size_t i = 0; i < ELEMENTSOF(variables); i++) {
                const char *path = getenv(variables[i]);

                if (path && *path && access(path, W_OK | X_OK) == 0)
                        return path;
        }
        return "/tmp";
}

/* *ret: a directory, and what is before a name in it. */
static int own_directory(char **ret) {
        _cleanup_free_ char *top = NULL;
        const char *work = getenv("PRIMUS_WORK");
        struct stat st;

        if (work && *work && strlen(work) < WORK_MAX && stat(work, &st) == 0 && S_ISDIR(st.st_mode) &&
            st.st_uid == getuid()) {
                *ret = text_make("%s/.group-", work);
                return *ret ? 0 : -ENOMEM;
        }
        top = text_make("%s/primus-group-%u", temporary_directory(), (unsigned)getuid());
        if (!top)
                return -ENOMEM;
        (void)mkdir(top, 0700);
        if (!is_own_directory(top, 077))
                return -EPERM;
        *ret = text_make("%s/", top);
        return *ret ? 0 : -ENOMEM;
}

int place_local(const char *name, unsigned n, char **ret) {
        _cleanup_free_ char *executor = NULL, *whole = NULL, *directory = NULL;
        uint8_t digest[SHA256_DIGEST_SIZE];
        char hex[2 * SHA256_DIGEST_SIZE + 1];
        struct sha256_ctx sum;

        TRY(executor_name(&executor));
        TRY(own_directory(&directory));
        whole = text_make("%s/%s/%u", executor, name, n);
        if (!whole)
                return -ENOMEM;
        sha256_init(&sum);
        sha256_update(&sum, strlen(whole), (const uint8_t *)whole);
        sha256_digest(&sum, sizeof(digest), digest);
        text_hex(digest, sizeof(digest), hex);
        *ret = text_make("%s%.*s", directory, (int)NAME_HEX, hex);
        return *ret ? 0 : -ENOMEM;
}
