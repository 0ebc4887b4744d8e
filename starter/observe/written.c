/* SPDX-License-Identifier: Apache-2.0 */
/* Invariant: what is told of a file is when its user wrote it, and of files of others nothing. */
#include "starter/observe/written.h"

#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/base/cleanup.h"
#include "lib/base/file.h"
#include "lib/unit/files.h"
#include "lib/wire/messages.h"
#include "starter/files/private.h"

#define READY_FILE "ready"

int written_find(const char *root, const char *unit, struct written *ret) {
        _cleanup_free_ char *text = NULL;
        int n = 0, r = private_get(root, unit, READY_FILE, LINK_PATH_MAX + 64u, &text);
        struct written w;

        if (r < 0)
                return r;
        if (sscanf(text, "%*u %*u %n", &n) < 0 || n == 0 || text[n] != '/')
                return -ENOENT;
        r = private_owner(root, unit, &w.uid);
        if (r < 0)
                return r;
        w.path = strdup(text + n);
        if (!w.path)
                return -ENOMEM;
        *ret = w;
        return 0;
}

void written_look(void *job, int in, int out) {
        const struct written *w = job;
        uint64_t changed;
        struct stat st;

        if (lstat(w->path, &st) < 0 || st.st_uid != w->uid)
                return;
        changed = htole64((uint64_t)st.st_mtim.tv_sec * 1000000 + (uint64_t)st.st_mtim.tv_nsec / 1000);
        (void)write_all(out, &changed, sizeof(changed));
}
