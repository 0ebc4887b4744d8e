/* SPDX-License-Identifier: Apache-2.0 */
/* The connection to the system bus, the objects' names, the signals. Invariant: a signal leaves only when
 * what it tells is on disk, or would be found out again (RUNNING). */
#include "masterd/api/api.h"

#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/parse.h"
#include "masterd/api/api-parts.h"
#include "masterd/api/changes-call.h"
#include "masterd/api/looking.h"
#include "masterd/api/turn.h"
#include "masterd/caller/audit.h"
#include "masterd/caller/authorize.h"
#include "masterd/caller/people.h"
#include "masterd/calls/calls.h"
#include "masterd/core/manager.h"
#include "masterd/core/notices.h"
#include "masterd/core/space.h"
#include "masterd/job/job.h"
#include "masterd/relay/sessions.h"

#define TREE_MAX 1000u /* jobs shown by introspection of the tree */
#define CROWD 4u       /* calls of nobody known, from which on it is seen to that there is memory */

/* To sd-bus 0 means "not mine, look further", which ends in UnknownMethod; our work is done or under way. */
static int handled(int r) {
        return r == 0 ? 1 : r;
}

/* Each may have 32 MiB with it, and nobody knows whose they are. */
static int refuse_crowd(struct manager *m, sd_bus_error *error) {
        return callers_waiting(m->api->callers) >= CROWD ? space_admit_memory(m, error) : 0;
}

int api_with_caller(struct manager *m, sd_bus_message *call, caller_handler work, sd_bus_error *error) {
        int r = refuse_crowd(m, error);
        struct turn *t = r < 0 ? NULL : turn_new(m, work);

        if (!t)
                return r < 0 ? r : -ENOMEM;
        return handled(caller_explain(caller_identify_full(m->api->callers, call, turn_take, t, free, error),
                                      error));
}

int api_with_permission(struct manager *m, sd_bus_message *call, uint32_t owner, const char *action,
                        caller_handler work, sd_bus_error *error) {
        struct turn *t = turn_new(m, work);

        if (!t)
                return -ENOMEM;
        return handled(caller_explain(
                authorize(m->api->callers, call, owner, action, turn_take, t, free, error), error));
}

static struct job *job_by_path(struct manager *m, const char *path) {
        uint32_t number;

        if (strncmp(path, MASTER_JOB_PREFIX "/", strlen(MASTER_JOB_PREFIX) + 1) != 0 ||
            parse_u32(path + strlen(MASTER_JOB_PREFIX) + 1, 1, UINT32_MAX, &number) < 0)
                return NULL;
        return manager_job(m, number);
}

struct job *api_job_of(struct manager *m, sd_bus_message *call) {
        return job_by_path(m, sd_bus_message_get_path(call));
}

int api_find_job(sd_bus *bus, const char *path, const char *interface, void *userdata, void **ret,
                 sd_bus_error *error) {
        struct job *j = job_by_path(userdata, path);

        if (!j)
                return 0;
        *ret = j;
        return 1;
}

int api_find_node(sd_bus *bus, const char *path, const char *interface, void *userdata, void **ret,
                  sd_bus_error *error) {
        struct manager *m = userdata;
        _cleanup_free_ char *name = NULL;
        struct node *node;
        int r = sd_bus_path_decode(path, MASTER_NODE_PREFIX, &name);

        if (r <= 0)
                return r;
        node = nodes_get(&m->nodes, name);
        if (!node)
                return 0;
        *ret = m;
        return 1;
}

static int enumerate_jobs(sd_bus *bus, const char *prefix, void *userdata, char ***ret, sd_bus_error *error) {
        struct manager *m = userdata;
        unsigned count = MIN(HASH_COUNT(m->jobs.by_number), TREE_MAX), n = 0;
        char **list = calloc(count + 1, sizeof(*list)), path[64];
        struct job *j, *next;

        if (!list)
                return -ENOMEM;
        HASH_ITER (hh, m->jobs.by_number, j, next) {
                if (n == count)
                        break;
                list[n] = strdup(notice_job_path(j->number, path));
                if (!list[n++])
                        break; /* a shorter tree */
        }
        *ret = list;
        return 0;
}

static int enumerate_nodes(sd_bus *bus, const char *prefix, void *userdata, char ***ret,
                           sd_bus_error *error) {
        struct manager *m = userdata;
        char **list = calloc(m->nodes.n + 1, sizeof(*list));
        struct node *node, *next;
        size_t n = 0;

        if (!list)
                return -ENOMEM;
        HASH_ITER (hh, m->nodes.by_name, node, next)
                if (sd_bus_path_encode(MASTER_NODE_PREFIX, node->name, list + n) >= 0)
                        n++;
        *ret = list;
        return 0;
}

static int on_disconnected(sd_bus_message *message, void *userdata, sd_bus_error *error) {
        struct manager *m = userdata;

        log_error("The system bus has gone; exiting to be started again with it");
        return sd_event_exit(m->event, -ECONNRESET);
}

static void on_caller_gone(const char *name, void *userdata) {
        sessions_caller_gone(userdata, name);
}

static const struct {
        const char *path, *interface;
        const sd_bus_vtable *vtable;
        sd_bus_object_find_t find; /* below the path */
} objects[] = {
        { MASTER_PATH, MASTER_MANAGER, api_manager_vtable, NULL },
        { MASTER_JOB_PREFIX, MASTER_JOB, api_job_vtable, api_find_job },
        { MASTER_JOB_PREFIX, MASTER_JOB, api_job_change_vtable, api_find_job },
        { MASTER_NODE_PREFIX, MASTER_NODE, api_node_vtable, api_find_node },
};

/* At the start, since the question may go to a directory on the network. */
static void find_backup_user(struct api *api) {
        const struct passwd *pw = getpwnam("primus-backup");

        api->backup_uid_known = pw != NULL;
        api->backup_uid = pw ? pw->pw_uid : 0;
}

int api_new(struct manager *m) {
        m->api = calloc(1, sizeof(*m->api));
        if (!m->api)
                return -ENOMEM;
        find_backup_user(m->api);
        return 0;
}

void api_free(struct manager *m) {
        free(m->api);
        m->api = NULL;
}

static int add_enumerators(struct manager *m, sd_bus *bus) {
        int r = sd_bus_add_node_enumerator(bus, NULL, MASTER_JOB_PREFIX, enumerate_jobs, m);

        return r < 0 ? r : sd_bus_add_node_enumerator(bus, NULL, MASTER_NODE_PREFIX, enumerate_nodes, m);
}

int api_connect(struct manager *m) {
        int r = sd_bus_open_system_with_description(&m->bus, "system");

        if (r >= 0)
                r = turns_start(m);
        if (r >= 0)
                r = sd_bus_attach_event(m->bus, m->event, SD_EVENT_PRIORITY_NORMAL);
        if (r >= 0)
                r = sd_bus_match_signal_async(m->bus, NULL, NULL, "/org/freedesktop/DBus/Local",
                                              "org.freedesktop.DBus.Local", "Disconnected", on_disconnected,
                                              NULL, m);
        r = r < 0 ? r : changes_call_start(m);
        if (r >= 0)
                r = callers_new(m->bus, &m->api->callers);
        if (r >= 0)
                calls_set_callers(m, m->api->callers);
        if (r >= 0)
                r = people_new(m->event, people_lookup_host, &m->api->people);
        if (r >= 0)
                callers_on_gone(m->api->callers, on_caller_gone, m);
        if (r >= 0)
                r = audit_new(m->bus, calls_bus(m), m->event, m->api->callers, &m->api->audit);
        for (size_t i = 0; r >= 0 && i < ELEMENTSOF(objects); i++)
                r = audit_add_vtable(m->api->audit, objects[i].path, objects[i].interface, objects[i].vtable,
                                     objects[i].find, m);
        if (r >= 0)
                r = add_enumerators(m, m->bus);
        return r < 0 ? r : add_enumerators(m, calls_bus(m));
}

static int on_name(sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        const sd_bus_error *failure = sd_bus_message_get_error(reply);
        struct manager *m = userdata;
        uint32_t result;

        if (!failure && sd_bus_message_read_basic(reply, 'u', &result) >= 0 && (result == 1 || result == 4))
                return 0;
        log_error("Cannot own org.primus.Master1 on the system bus: %s",
                  failure && failure->message ? failure->message : "somebody else owns it");
        return sd_event_exit(m->event, -EADDRINUSE);
}

int api_publish(struct manager *m) {
        return sd_bus_request_name_async(m->bus, NULL, "org.primus.Master1", 0, on_name, m);
}

void api_disconnect(struct manager *m) {
        changes_call_stop(m);
        m->api->people = people_free(m->api->people);
        callers_free(m->api->callers);
        m->api->callers = NULL;
        m->api->audit = audit_free(m->api->audit);
        turns_stop(m);
        /* Not flush: that would wait. What is queued for a bus that does not read is lost with us, and asked
         * for again. */
        sd_bus_close(m->bus);
        m->bus = sd_bus_unref(m->bus);
}
