/* SPDX-License-Identifier: Apache-2.0 */
/* masterd has its database for itself alone, so it is asked for a copy; only where none runs is the database
 * read here. */
#include "tools/state/snapshot.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <systemd/sd-bus.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "masterd/store/revive.h"
#include "tools/state/rights.h"
#include "tools/state/say.h"

#define NAME "org.primus.Master1"
#define COPY_USEC (UINT64_C(600) * USEC_PER_SEC) /* gigabytes on a slow disk */

DEFINE_CLEANUP(sd_bus *, sd_bus_flush_close_unref)
DEFINE_CLEANUP(sd_bus_message *, sd_bus_message_unref)

static int read_about(sd_bus_message *reply, struct manifest *m) {
        int r = sd_bus_message_enter_container(reply, 'a', "{sv}");

        while (r >= 0 && (r = sd_bus_message_enter_container(reply, 'e', "sv")) > 0) {
                const char *key, *cluster;

                r = sd_bus_message_read(reply, "s", &key);
                if (r >= 0 && strcmp(key, "cluster") == 0) {
                        r = sd_bus_message_read(reply, "v", "s", &cluster);
                        if (r >= 0 && (strlen(cluster) != 32 || strspn(cluster, "0123456789abcdef") != 32))
                                r = -EBADMSG;
                        if (r >= 0)
                                snprintf(m->cluster, sizeof(m->cluster), "%s", cluster);
                } else if (r >= 0 && strcmp(key, "storeVersion") == 0)
                        r = sd_bus_message_read(reply, "v", "x", &m->store_version);
                else if (r >= 0)
                        r = sd_bus_message_skip(reply, "v");
                if (r >= 0)
                        r = sd_bus_message_exit_container(reply);
        }
        return r;
}

/* 0: done; 1: masterd does not run. */
static int from_masterd(int *ret_fd, struct manifest *m) {
        _cleanup_(sd_bus_flush_close_unref_p) sd_bus *bus = NULL;
        _cleanup_(sd_bus_message_unref_p) sd_bus_message *call = NULL, *reply = NULL;
        _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
        int fd, r = sd_bus_open_system(&bus);

        if (r < 0)
                return 1; /* a host that is being rescued has none */
        r = sd_bus_message_new_method_call(bus, &call, NAME, "/org/primus/Master1", NAME ".Manager",
                                           "Backup");
        if (r >= 0)
                r = sd_bus_message_set_auto_start(call, false);
        if (r >= 0)
                r = sd_bus_message_append(call, "a{sv}", 0);
        if (r < 0)
                return say(r, "cannot make a call: %s", strerror(-r));
        r = sd_bus_call(bus, call, COPY_USEC, &error, &reply);
        if (r < 0 && (sd_bus_error_has_name(&error, SD_BUS_ERROR_SERVICE_UNKNOWN) ||
                      sd_bus_error_has_name(&error, SD_BUS_ERROR_NAME_HAS_NO_OWNER)))
                return 1;
        if (r < 0 && sd_bus_error_has_name(&error, SD_BUS_ERROR_UNKNOWN_METHOD))
                return say(-EOPNOTSUPP,
                           "the primus-masterd that runs is older than this program; restart it first");
        if (r < 0)
                return say(r, "%s", error.message ?: strerror(-r));
        r = sd_bus_message_read(reply, "h", &fd);
        if (r >= 0)
                r = read_about(reply, m);
        if (r < 0)
                return say(r, "primus-masterd answered something else than expected: %s", strerror(-r));
        fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
        if (fd < 0)
                return say(-errno, "cannot take the copy of the state: %s", strerror(errno));
        *ret_fd = fd;
        return 0;
}

static int failed(int error, const char *path) {
        return error == -EBUSY ? say(error,
                                     "a primus-masterd holds %s but does not answer on the bus; try again, "
                                     "or stop it",
                                     path)
               : error == -ENOENT || error == -EMEDIUMTYPE
                       ? say(error, "there is no state of a primus-masterd in %s: is this the master's host?",
                             path)
               : error == -EACCES || error == -EPERM ? say(error, "cannot read %s: run this as root", path)
               : error == -EUCLEAN                   ? say(error, "%s is damaged", path)
                                   : say(error, "cannot copy %s: %s", path, strerror(-error));
}

static int from_file(const char *directory, int *ret_fd, struct manifest *m) {
        _cleanup_free_ char *path = NULL, *copy = NULL;
        struct store_summary s;
        int fd = -EBADF, r;
        struct stat st;

        if (asprintf(&path, "%s/primus.db", directory) < 0 || asprintf(&copy, "%s/backup.db", directory) < 0)
                return say(-ENOMEM, "out of memory");
        (void)unlink(copy);
        if (stat(path, &st) >= 0 && st.st_size == 0)
                return failed(-ENOENT, path);
        r = store_copy_idle(path, copy);
        if (r >= 0)
                r = store_summarize(copy, &s);
        if (r >= 0)
                fd = open(copy, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
        if (r >= 0 && fd < 0)
                r = -errno;
        (void)unlink(copy);
        if (r < 0)
                return failed(r, path);
        snprintf(m->cluster, sizeof(m->cluster), SD_ID128_FORMAT_STR, SD_ID128_FORMAT_VAL(s.cluster));
        m->store_version = s.version;
        *ret_fd = fd;
        return 0;
}

int snapshot(const char *state_directory, int *ret_fd, struct manifest *m) {
        int r = from_masterd(ret_fd, m);

        if (r > 0 && (r = rights_of_owner(state_directory)) >= 0) {
                r = from_file(state_directory, ret_fd, m);
                rights_back();
        }
        return r;
}
