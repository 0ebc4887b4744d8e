/* SPDX-License-Identifier: Apache-2.0 */
/* org.primus.Master1.Job: what changes a job while it runs. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lib/wire/errors.h"
#include "masterd/api/api.h"
#include "masterd/api/audience.h"
#include "masterd/api/job-calls.h"
#include "masterd/api/looking.h"
#include "masterd/api/options.h"
#include "masterd/caller/authorize.h"
#include "masterd/caller/reply.h"
#include "masterd/core/manager.h"
#include "masterd/life/change.h"
#include "masterd/life/limits.h"
#include "masterd/life/rolling.h"

/* ---- what a call asks for ---- */

struct edits {
        struct spec_edit list[SPEC_EDITS_MAX];
        char *values[SPEC_EDITS_MAX]; /* those that are not in the message */
        size_t n;
        uint64_t version;
};

static void edits_done(struct edits *e) {
        for (size_t i = 0; i < e->n; i++)
                free(e->values[i]);
}

static int add_edit(struct edits *e, enum edit_kind kind, const char *path, const char *value, char *owned,
                    sd_bus_error *error) {
        if (e->n == SPEC_EDITS_MAX) {
                free(owned);
                return sd_bus_error_setf(error, SD_BUS_ERROR_INVALID_ARGS, "At most %u changes at once",
                                         SPEC_EDITS_MAX);
        }
        e->values[e->n] = owned;
        e->list[e->n++] = (struct spec_edit){ kind, path, owned ?: value };
        return 0;
}

/* The value of a variant, as it would be written: texts as they are. Allocated, but for a text. */
static int read_value(sd_bus_message *call, const char **ret_text, char **ret_owned, sd_bus_error *error) {
        const char *contents;
        char *text = NULL;
        char type;
        union {
                const char *s;
                int b;
                uint32_t u;
                int32_t i;
                uint64_t t;
                int64_t x;
                double d;
        } v;
        int r = sd_bus_message_peek_type(call, &type, &contents);

        if (r < 0)
                return r;
        if (type != 'v' || !contents || strlen(contents) != 1 || !strchr("sbuitxd", *contents))
                return sd_bus_error_setf(error, SD_BUS_ERROR_INVALID_ARGS,
                                         "A change is a text, a number or a truth value, not of type %s",
                                         contents ?: "?");
        type = *contents;
        r = sd_bus_message_enter_container(call, 'v', contents);
        if (r >= 0)
                r = sd_bus_message_read_basic(call, type, &v);
        if (r < 0)
                return r;
        switch (type) {
        case 's':
                *ret_text = v.s;
                break;
        case 'b':
                *ret_text = v.b ? "true" : "false";
                break;
        case 'u':
                r = asprintf(&text, "%" PRIu32, v.u);
                break;
        case 'i':
                r = asprintf(&text, "%" PRIi32, v.i);
                break;
        case 't':
                r = asprintf(&text, "%" PRIu64, v.t);
                break;
        case 'x':
                r = asprintf(&text, "%" PRIi64, v.x);
                break;
        default:
                r = asprintf(&text, "%.12g", v.d);
        }
        if (r < 0)
                return -ENOMEM;
        *ret_owned = text;
        r = sd_bus_message_exit_container(call);
        if (r < 0)
                free(text);
        return r;
}

static int read_edit(sd_bus_message *call, const char *key, void *target, sd_bus_error *error) {
        const char *text = NULL;
        char *owned = NULL;
        int r = read_value(call, &text, &owned, error);

        return r < 0 ? r : add_edit(target, EDIT_SET, key, text, owned, error);
}

static int read_update(sd_bus_message *call, struct edits *e, sd_bus_error *error) {
        int r = sd_bus_message_read_basic(call, 't', &e->version);

        return r < 0 ? r : options_each(call, read_edit, e, error);
}

static int read_scale(sd_bus_message *call, struct edits *e, sd_bus_error *error) {
        int r = sd_bus_message_read_basic(call, 't', &e->version);

        if (r >= 0)
                r = sd_bus_message_enter_container(call, 'a', "{sx}");
        while (r >= 0 && (r = sd_bus_message_enter_container(call, 'e', "sx")) > 0) {
                const char *role;
                char *owned = NULL;
                int64_t n;
                r = sd_bus_message_read(call, "sx", &role, &n);
                if (r >= 0 && asprintf(&owned, "%" PRIi64, n) < 0)
                        return -ENOMEM;
                if (r >= 0)
                        r = add_edit(e, EDIT_SCALE, role, NULL, owned, error);
                if (r >= 0)
                        r = sd_bus_message_exit_container(call);
        }
        return r;
}

static int read_one(sd_bus_message *call, struct edits *e, enum edit_kind kind, sd_bus_error *error) {
        const char *text;
        int r = sd_bus_message_read(call, "ts", &e->version, &text);

        if (r < 0)
                return r;
        return kind == EDIT_REMOVE_ROLE ? add_edit(e, kind, text, NULL, NULL, error)
                                        : add_edit(e, kind, NULL, text, NULL, error);
}

static int read_edits(sd_bus_message *call, struct edits *e, sd_bus_error *error) {
        const char *member = sd_bus_message_get_member(call);

        if (strcmp(member, "Update") == 0)
                return read_update(call, e, error);
        if (strcmp(member, "Scale") == 0)
                return read_scale(call, e, error);
        return read_one(call, e,
                        strcmp(member, "AddRole") == 0     ? EDIT_ADD_ROLE
                        : strcmp(member, "AddSource") == 0 ? EDIT_ADD_SOURCE
                                                           : EDIT_REMOVE_ROLE,
                        error);
}

/* ---- Update, Scale, AddRole, RemoveRole, AddSource ---- */

struct asked_call {
        struct manager *manager;
        sd_bus_message *call;
        uint32_t uid;
};

static void on_hosts_agree(void *userdata, const char *problem);

static int change(struct manager *m, sd_bus_message *call, uint32_t uid, bool ask, sd_bus_error *error) {
        _cleanup_(edits_done) struct edits e = {};
        struct job *j = api_job_or_error(m, call, error);
        struct asked_call *q = NULL;
        sd_bus_message *reply = NULL;
        struct limits_ask hosts = { .done = on_hosts_agree };
        uint64_t version;
        int r;

        if (!j)
                return API_JOB_GONE;
        r = read_edits(call, &e, error);
        if (r < 0)
                return r;
        if (ask) {
                q = malloc(sizeof(*q));
                if (!q)
                        return -ENOMEM;
                *q = (struct asked_call){ m, sd_bus_message_ref(call), uid };
                hosts.userdata = q;
        }
        r = change_job(m, j, uid, e.version, e.list, e.n, ask ? &hosts : NULL, &version, error);
        if (r == CHANGE_LATER)
                return 1;
        if (q) {
                sd_bus_message_unref(q->call);
                free(q);
        }
        if (r >= 0)
                r = sd_bus_message_new_method_return(call, &reply);
        if (r >= 0)
                r = sd_bus_message_append(reply, "t", version);
        if (r < 0) {
                sd_bus_message_unref(reply);
                return r;
        }
        return manager_reply_later(m, reply);
}

/* Hosts whose units would get less memory have said whether they can do with it. */
static void on_hosts_agree(void *userdata, const char *problem) {
        struct asked_call *q = userdata;
        sd_bus_error error = SD_BUS_ERROR_NULL;
        int r;

        if (problem)
                r = sd_bus_error_set(&error, ERROR_REFUSED, problem);
        else
                r = sd_bus_message_rewind(q->call, true);
        if (!problem && r >= 0)
                r = change(q->manager, q->call, q->uid, false, &error);
        caller_answer(q->call, r, &error);
        sd_bus_error_free(&error);
        sd_bus_message_unref(q->call);
        free(q);
}

static int change_call(sd_bus_message *call, uint32_t uid, void *userdata, sd_bus_error *error) {
        return change(userdata, call, uid, true, error);
}

/* ---- RestartRole ---- */

static int restart_call(sd_bus_message *call, uint32_t uid, void *userdata, sd_bus_error *error) {
        struct manager *m = userdata;
        struct job *j = api_job_or_error(m, call, error);
        sd_bus_message *reply = NULL;
        uint32_t batch, n;
        const char *role;
        int32_t index;
        int r;

        if (!j)
                return API_JOB_GONE;
        r = sd_bus_message_read(call, "siu", &role, &index, &batch);
        if (r >= 0)
                r = rolling_begin(m, j, uid, role, index < 0 ? UINT32_MAX : (uint32_t)index, batch, &n,
                                  error);
        if (r >= 0)
                r = sd_bus_message_new_method_return(call, &reply);
        if (r >= 0)
                r = sd_bus_message_append(reply, "u", n);
        if (r < 0) {
                sd_bus_message_unref(reply);
                return r;
        }
        return manager_reply_later(m, reply);
}

#define ENTRY(name, work)                                                                                    \
        static int name(sd_bus_message *call, void *userdata, sd_bus_error *error) {                         \
                return api_control(userdata, call, ACTION_MANAGE_JOBS, work, error);                         \
        }
ENTRY(on_change, change_call)
ENTRY(on_restart, restart_call)

static int get_change(sd_bus *bus, const char *path, const char *interface, const char *property,
                      sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        const char *sender = sd_bus_message_get_sender(sd_bus_get_current_message(bus));
        const struct job *j = userdata;

        /* For whoever has just changed it, or else has a right on it and has used it. */
        return sd_bus_message_append(reply, "s", sender && audience_has(j, sender) ? change_latest(j) : "");
}

const sd_bus_vtable api_job_change_vtable[] = {
        SD_BUS_VTABLE_START(0),
        SD_BUS_PROPERTY("Version", "t", NULL, offsetof(struct job, change.version), 0),
        SD_BUS_PROPERTY("LatestChange", "s", get_change, 0, 0),
        SD_BUS_PROPERTY("RendezvousEpoch", "t", NULL, offsetof(struct job, rendezvous.epoch), 0),
        SD_BUS_METHOD_WITH_ARGS("Update", SD_BUS_ARGS("t", version, "a{sv}", changes),
                                SD_BUS_RESULT("t", now), on_change, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("Scale", SD_BUS_ARGS("t", version, "a{sx}", roles), SD_BUS_RESULT("t", now),
                                on_change, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("AddRole", SD_BUS_ARGS("t", version, "s", role), SD_BUS_RESULT("t", now),
                                on_change, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("RemoveRole", SD_BUS_ARGS("t", version, "s", name), SD_BUS_RESULT("t", now),
                                on_change, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("AddSource", SD_BUS_ARGS("t", version, "s", source), SD_BUS_RESULT("t", now),
                                on_change, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("RestartRole", SD_BUS_ARGS("s", role, "i", index, "u", batch),
                                SD_BUS_RESULT("u", executors), on_restart, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_VTABLE_END,
};
