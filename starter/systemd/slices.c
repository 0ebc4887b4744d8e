/* SPDX-License-Identifier: Apache-2.0 */
/* Invariant: nothing is forgotten of a unit that is no job's slice. */
#include "starter/systemd/slices.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/log.h"
#include "lib/base/unitname.h"
#include "lib/unit/ours.h"

#define CONTROL_DIR "/run/systemd/system.control"
#define SUFFIX ".d"

static DIR *open_below(const char *root, const char *directory, const char *name) {
        _cleanup_free_ char *path = NULL;

        if (asprintf(&path, "%s%s/%s", root, directory, name) < 0) {
                path = NULL;
                return NULL;
        }
        return opendir(path);
}

static void forget_slice(sd_bus *systemd, const char *slice) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        int r = sd_bus_message_new_method_call(systemd, &m, "org.freedesktop.systemd1",
                                               "/org/freedesktop/systemd1",
                                               "org.freedesktop.systemd1.Manager", "RevertUnitFiles");

        if (r >= 0)
                r = sd_bus_message_append(m, "as", 1, slice);
        if (r >= 0)
                r = sd_bus_send(systemd, m, NULL);
        if (r < 0)
                log_warning_errno(r, "Cannot have systemd forget the limits of %s", slice);
}

void slice_forget(sd_bus *systemd, const char *root, const char *slice) {
        char name[UNIT_NAME_MAX + sizeof(SUFFIX)];
        DIR *d;

        if (!slice_name_valid(slice))
                return;
        snprintf(name, sizeof(name), "%s" SUFFIX, slice);
        d = open_below(root, CONTROL_DIR, name);
        if (!d)
                return;
        (void)closedir(d);
        forget_slice(systemd, slice);
}

/* A control group alone says nothing: setting a property makes one, whether the slice is there or not. */
static bool has_units_in(const char *root, const char *directory, const char *slice) {
        DIR *d = open_below(root, directory, slice);
        struct dirent *e;
        bool found = false;

        while (d && !found && (e = readdir(d)))
                found = e->d_type == DT_DIR && *e->d_name != '.';
        if (d)
                (void)closedir(d);
        return found;
}

/* In whatever hierarchy systemd has its units. */
static bool has_units(const char *root, const char *slice) {
        static const char *const directories[] = { "/sys/fs/cgroup/primus.slice",
                                                   "/sys/fs/cgroup/systemd/primus.slice",
                                                   "/sys/fs/cgroup/unified/primus.slice" };

        for (size_t i = 0; i < ELEMENTSOF(directories); i++)
                if (has_units_in(root, directories[i], slice))
                        return true;
        return false;
}

void slices_sweep(sd_bus *systemd, const char *root) {
        DIR *d = open_below(root, CONTROL_DIR, "");
        struct dirent *e;

        while (d && (e = readdir(d))) {
                size_t l = strlen(e->d_name);

                if (l <= strlen(SUFFIX) || strcmp(e->d_name + l - strlen(SUFFIX), SUFFIX) != 0)
                        continue;
                e->d_name[l - strlen(SUFFIX)] = 0;
                if (slice_name_valid(e->d_name) && !has_units(root, e->d_name))
                        forget_slice(systemd, e->d_name);
        }
        if (d)
                (void)closedir(d);
}
