/* SPDX-License-Identifier: Apache-2.0 */
/* Root's rights laid down and taken up. Invariant: whatever fails on the way, it is root or the user, with
 * the groups of that one. */
#include "tools/state/rights.h"

#include <grp.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "tools/state/say.h"

#define GROUPS_MAX 1024

static struct {
        bool away;
        gid_t groups[GROUPS_MAX];
        int n;
} root;

void rights_back(void) {
        if (!root.away)
                return;
        /* The saved user is root, who may do all of this. Going on as somebody else would be worse than not
         * to. */
        if (seteuid(0) < 0 || setegid(0) < 0 || setgroups((size_t)root.n, root.groups) < 0)
                abort();
        root.away = false;
}

int rights_of(uid_t uid, gid_t gid) {
        int e;

        if (geteuid() != 0 || uid == 0)
                return 0;
        root.n = getgroups(GROUPS_MAX, root.groups);
        if (root.n < 0)
                return say(-errno, "cannot read this process's groups: %s", strerror(errno));
        root.away = true;
        if (setgroups(1, &gid) < 0 || setegid(gid) < 0 || seteuid(uid) < 0) {
                e = errno;
                rights_back();
                return say(-e, "cannot take the rights of user %u: %s", (unsigned)uid, strerror(e));
        }
        return 0;
}

int rights_of_owner(const char *path) {
        struct stat st;

        return stat(path, &st) < 0 ? 0 : rights_of(st.st_uid, st.st_gid);
}
