/* SPDX-License-Identifier: Apache-2.0 */
/* org.primus.Master1.Manager: Backup. Invariant: what leaves here is an open file without a name, to somebody
 * who could read the database anyhow. */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/log.h"
#include "lib/wire/errors.h"
#include "masterd/api/api-parts.h"
#include "masterd/api/api.h"
#include "masterd/api/options.h"
#include "masterd/caller/audit.h"
#include "masterd/caller/reply.h"
#include "masterd/core/manager.h"
#include "masterd/store/revive.h"

struct copying {
        struct manager *manager;
        sd_bus_message *call;
        char *path;
};

static void copying_free(struct copying *c) {
        sd_bus_message_unref(c->call);
        free(c->path);
        free(c);
}

static int answer(struct copying *c) {
        _cleanup_close_ int fd = open(c->path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
        char cluster[SD_ID128_STRING_MAX];
        int r = fd < 0 ? -errno : 0;

        (void)unlink(c->path);
        if (r >= 0)
                r = reply_return(c->call, "ha{sv}", fd, 2, "cluster", "s",
                                 sd_id128_to_string(c->manager->cluster, cluster), "storeVersion", "x",
                                 store_version());
        return r;
}

static void on_copied(void *userdata, int error) {
        struct copying *c = userdata;
        int r = error < 0 ? error : answer(c);

        if (r < 0) {
                log_warning_errno(r, "Cannot copy the state to %s for a backup", c->path);
                (void)reply_errorf(c->call, ERROR_REFUSED, "Cannot copy the state to %s: %s", c->path,
                                   strerror(-r));
        } else
                log_info("A copy of the state was made for a backup");
        copying_free(c);
}

static const struct call_option backup_options[] = { { NULL } };

static int backup(sd_bus_message *call, uint32_t uid, void *userdata, sd_bus_error *error) {
        struct manager *m = userdata;
        struct copying *c;
        int r;

        if (uid != 0 && uid != geteuid() && (!m->api->backup_uid_known || uid != m->api->backup_uid))
                return sd_bus_error_set(
                        error, SD_BUS_ERROR_ACCESS_DENIED,
                        "The state holds the key of the cluster and secrets of jobs: only root may "
                        "make a backup of it");
        audit_permission(call, uid == 0 ? AUDIT_ROOT : AUDIT_OWNER, NULL);
        r = options_read(call, "Backup", "option", backup_options, NULL, error);
        if (r < 0)
                return r;
        c = calloc(1, sizeof(*c));
        if (!c)
                return -ENOMEM;
        c->manager = m;
        c->call = sd_bus_message_ref(call);
        if (asprintf(&c->path, "%s/" BACKUP_FILE, m->conf.state_directory) < 0) {
                c->path = NULL;
                copying_free(c);
                return -ENOMEM;
        }
        r = store_copy(m->store, c->path, on_copied, c);
        if (r < 0)
                copying_free(c);
        if (r == -EBUSY)
                return sd_bus_error_set(error, ERROR_BUSY, "A backup is being made already");
        return r < 0 ? r : 1;
}

int api_on_backup(sd_bus_message *call, void *userdata, sd_bus_error *error) {
        return api_with_caller(userdata, call, backup, error);
}
