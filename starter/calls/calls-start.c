/* SPDX-License-Identifier: Apache-2.0 */
/* StartSession, SetInventory. Invariant: a session is its executor's user's, with an environment of PRIMUS_
 * names alone; and what this host has is agentd's word only where policy.h leaves it that. */
#include <stdlib.h>
#include <string.h>

#include "lib/base/names.h"
#include "lib/base/strv.h"
#include "lib/base/try.h"
#include "lib/base/unitname.h"
#include "lib/base/utf8.h"
#include "lib/unit/files.h"
#include "starter/calls/starter.h"
#include "starter/files/private.h"
#include "starter/unit/get-unit.h"
#include "starter/unit/session-unit.h"

#define VARIABLES_MAX 128u
#define VARIABLE_MAX 8192u

/* PRIMUS_NAME=text: it stands in a unit's properties. */
static bool variables_valid(char *const *list) {
        size_t n = 0;

        for (; list && list[n]; n++) {
                const char *equals = strchr(list[n], '=');
                char name[256];

                if (n == VARIABLES_MAX || strlen(list[n]) > VARIABLE_MAX ||
                    strncmp(list[n], "PRIMUS_", 7) != 0 || !equals ||
                    (size_t)(equals - list[n]) >= sizeof(name))
                        return false;
                memcpy(name, list[n], (size_t)(equals - list[n]));
                name[equals - list[n]] = 0;
                if (!env_name_valid(name))
                        return false;
                if (!text_is_setting(list[n]))
                        return false;
        }
        return true;
}

int starter_method_session(sd_bus_message *call, void *userdata, sd_bus_error *error) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        _cleanup_(strings_free_p) char **environment = NULL;
        struct connection *c = userdata;
        struct executor_id id;
        struct session_unit unit = { .id = &id };
        char name[UNIT_NAME_MAX], why[SERVE_WHY_MAX];
        uint32_t owner;
        int privileges, r = executor_id_read(call, &id);

        if (r > 0)
                r = sd_bus_message_read(call, "uu", &unit.session, &unit.uid);
        if (r > 0)
                r = sd_bus_message_read_strv(call, &environment);
        if (r >= 0)
                r = sd_bus_message_read(call, "bth", &privileges, &unit.memlock, &unit.control);
        if (r <= 0 || !variables_valid(environment) || policy_refuses_uid(&c->starter->policy, unit.uid))
                return starter_malformed(r, error);
        if (lookup_refuses(c->starter->lookup, unit.uid, c->node ?: "", why))
                return sd_bus_error_set(error, LINK_ERROR_NOT_SERVED, why);
        executor_unit_name(id.job, id.role, id.index, id.attempt, name);
        r = private_owner(c->starter->root, name, &owner);
        if (r < 0 || owner != unit.uid)
                return sd_bus_error_setf(error, LINK_ERROR_NOT_FOUND, "%s of uid %u does not run here", name,
                                         unit.uid);
        unit.environment = environment;
        unit.no_new_privileges = !privileges;
        unit.hide_managers = c->starter->policy.hide_managers;
        unit.open_files = c->starter->open_files;
        TRY(relay_message(c, "StartTransientUnit", &m));
        TRY(session_unit_build(m, &unit));
        return relay_job(c, call, m, error);
}

/* What a job has left on this host, read by a process of its user's: nothing of a user's is opened here. */
int starter_method_get(sd_bus_message *call, void *userdata, sd_bus_error *error) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        _cleanup_free_ char *path = NULL;
        struct connection *c = userdata;
        struct get_unit unit = {};
        char why[SERVE_WHY_MAX];
        const void *bytes;
        size_t size;
        int r = sd_bus_message_read_basic(call, 'u', &unit.job);

        if (r > 0)
                r = sd_bus_message_read_array(call, 'y', &bytes, &size);
        if (r > 0 && size != sizeof(unit.job_uid.bytes))
                r = -EBADMSG;
        if (r > 0) {
                memcpy(unit.job_uid.bytes, bytes, size);
                r = sd_bus_message_read(call, "uuh", &unit.uid, &unit.session, &unit.control);
        }
        if (r <= 0 || unit.job == 0 || policy_refuses_uid(&c->starter->policy, unit.uid))
                return starter_malformed(r, error);
        if (lookup_refuses(c->starter->lookup, unit.uid, c->node ?: "", why))
                return sd_bus_error_set(error, LINK_ERROR_NOT_SERVED, why);
        if (artifacts_owner(c->starter->root, unit.job, unit.job_uid) != unit.uid)
                return sd_bus_error_setf(error, LINK_ERROR_NOT_FOUND,
                                         "host %s has no artifacts of job %u: it kept none, or they were "
                                         "removed (ArtifactsKeepSec=, ArtifactsMax=)",
                                         c->node ?: "?", unit.job);
        path = artifacts_path("", unit.job, unit.job_uid);
        if (!path)
                return -ENOMEM;
        unit.directory = path;
        unit.hide_managers = c->starter->policy.hide_managers;
        TRY(relay_message(c, "StartTransientUnit", &m));
        TRY(get_unit_build(m, &unit));
        return relay_job(c, call, m, error);
}

static int read_inventory_entry(sd_bus_message *m, const char *key, void *userdata) {
        int r = inventory_read_extra(m, key, userdata);

        return r == 0 ? -EBADMSG : r;
}

/* Sentences name the node; orders name GPUs, whose device nodes these are. */
int starter_method_inventory(sd_bus_message *call, void *userdata, sd_bus_error *error) {
        _cleanup_(inventory_done) struct inventory inventory = {};
        struct connection *c = userdata;
        const char *node;
        char *copy;
        int r = sd_bus_message_read_basic(call, 's', &node);

        if (r > 0)
                r = inventory_read(call, &inventory);
        if (r > 0 && link_read_entries(call, read_inventory_entry, &inventory) < 0)
                r = -EBADMSG;
        if (r <= 0 || !node_name_valid(node))
                return starter_malformed(r, error);
        for (size_t i = 0; i < inventory.n_gpus; i++)
                if (!policy_devices_valid(inventory.gpus[i].nodes))
                        return sd_bus_error_setf(error, LINK_ERROR_REFUSED,
                                                 "%s are not device nodes of a GPU", inventory.gpus[i].nodes);
        copy = strdup(node);
        if (!copy)
                return -ENOMEM;
        free(c->node);
        c->node = copy;
        inventory_done(&c->inventory);
        /* Executors are kept from these but for those that they were granted. */
        inventory.port_first = c->starter->policy.port_first;
        inventory.port_last = c->starter->policy.port_last;
        c->inventory = inventory;
        inventory = (struct inventory){};
        return sd_bus_reply_method_return(call, NULL);
}
