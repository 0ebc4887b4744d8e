/* SPDX-License-Identifier: Apache-2.0 */
/* Invariant: of each hook is said what it really may do, not what it is for. */
#include "tools/state/hooks.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/base/file.h"
#include "lib/base/format.h"
#include "tools/state/entry.h"
#include "tools/state/tarball.h"

#define HOOKS ENTRY_SETTINGS_PREFIX "hooks/"

static const struct {
        const char *name, *rights;
} known[] = {
        { "prolog", "runs as root, confined by nothing, on this host before every job that starts here" },
        { "epilog", "runs as root, confined by nothing, on this host after every job that ran here" },
        { "health", "runs as root, confined by nothing, on this host again and again" },
        { "fence",
          "runs as root in primus-hook-fence@.service, with the network and root's files to read, for "
          "every host that is LOST" },
        { "notify",
          "runs as a user of its own in primus-hook-notify@.service, with the network, for every event" },
};

bool hooks_are(const char *name) {
        return strncmp(name, HOOKS, strlen(HOOKS)) == 0;
}

const char *hooks_rights(const char *name) {
        size_t n;

        if (hooks_are(name))
                name += strlen(HOOKS);
        n = strcspn(name, "/");
        /* NAME, or NAME.d/ANY */
        if (name[n] && n > 2 && strncmp(name + n - 2, ".d", 2) == 0)
                n -= 2;
        for (size_t i = 0; i < ELEMENTSOF(known); i++)
                if (strlen(known[i].name) == n && strncmp(known[i].name, name, n) == 0)
                        return known[i].rights;
        return "is run by nothing in this version";
}

size_t hooks_compare(const struct manifest *m, const char *directory) {
        char size[FORMAT_SIZE_MAX];
        size_t n = 0;

        for (size_t i = 0; i < m->n_files; i++) {
                const struct manifest_file *f = m->files + i;
                _cleanup_free_ char *path = NULL, *there = NULL;
                struct stat st = {};
                size_t there_size;

                if (!hooks_are(f->name) ||
                    asprintf(&path, "%s/%s", directory, f->name + strlen(ENTRY_SETTINGS_PREFIX)) < 0)
                        continue;
                if (read_file(path, ENTRY_SETTING_BYTES_MAX, &there, &there_size) >= 0 &&
                    archive_same_bytes(f, there, there_size) && stat(path, &st) >= 0 &&
                    (st.st_mode & 0755) == (f->mode & 0755))
                        continue;
                printf("Hook %s: %s (%s, mode %o); it %s\n", f->name,
                       there ? "differs from the one here" : "is not here",
                       format_size(f->size, size, sizeof(size)), (unsigned)(f->mode & 0755),
                       hooks_rights(f->name));
                n++;
        }
        return n;
}
