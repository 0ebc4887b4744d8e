/* SPDX-License-Identifier: Apache-2.0 */
/* Control groups by name. */
#include "agentd/relay/unit-group.h"

#include <stdio.h>
#include <sys/stat.h>

#include "agentd/cgroup/cgroup.h"
#include "lib/base/cleanup.h"
#include "lib/base/unitname.h"

static int inode_of(const char *path, uint64_t *ret) {
        struct stat st;

        if (stat(path, &st) < 0)
                return -errno;
        *ret = st.st_ino;
        return 0;
}

int unit_group_find(const struct executor_id *id, struct unit_group *ret) {
        _cleanup_free_ char *root = NULL, *slice = NULL, *unit = NULL;
        char name[UNIT_NAME_MAX], job[UNIT_NAME_MAX];
        struct unit_group g;
        int r = cgroup_root("", &root);

        if (r < 0)
                return r;
        executor_unit_name(id->job, id->role, id->index, id->attempt, name);
        if (asprintf(&slice, "%s/primus.slice", root) < 0) {
                slice = NULL;
                return -ENOMEM;
        }
        if (asprintf(&unit, "%s/%s/%s", slice, job_slice_name(id->job, job), name) < 0) {
                unit = NULL;
                return -ENOMEM;
        }
        if ((r = inode_of(slice, &g.slice)) < 0 || (r = inode_of(unit, &g.unit)) < 0)
                return r;
        *ret = g;
        return 0;
}
