/* SPDX-License-Identifier: Apache-2.0 */
/* Savepoints and suspension on the bus. Invariant: a method is answered when what it did is on disk. */
#include <string.h>

#include "lib/base/parse.h"
#include "masterd/api/api.h"
#include "masterd/api/authorize.h"
#include "masterd/lifecycle.h"
#include "masterd/manager.h"
#include "masterd/savepoints.h"

#define ERROR_NOT_FOUND "org.primus.Error.NotFound"

static int answer_later(struct manager *m, sd_bus_message *call) {
        sd_bus_message *reply = NULL;
        int r = sd_bus_message_new_method_return(call, &reply);

        return r < 0 ? r : manager_reply_later(m, reply);
}

/* ---- a job's ---- */

static const char *error_name(int error) {
        switch (error) {
        case -EINVAL:
                return SD_BUS_ERROR_INVALID_ARGS;
        case -EBUSY:
        case -ENOMEM:
                return ERROR_BUSY;
        default:
                return ERROR_REFUSED;
        }
}

static int hold(sd_bus_message *call, uint32_t uid, struct manager *m,
                int (*change)(struct manager *m, struct job *j, uint32_t uid,
                              char text[static LIFECYCLE_TEXT_MAX]),
                sd_bus_error *error) {
        struct job *j = api_job_of(m, call);
        char text[LIFECYCLE_TEXT_MAX] = "The master cannot do that now";
        int r;

        if (!j)
                return sd_bus_error_set(error, ERROR_NO_SUCH_JOB, "There is no such job");
        r = change(m, j, uid, text);
        return r < 0 ? sd_bus_error_set(error, error_name(r), text) : answer_later(m, call);
}

int api_suspend(sd_bus_message *call, uint32_t uid, void *userdata, sd_bus_error *error) {
        return hold(call, uid, userdata, lifecycle_suspend, error);
}

int api_resume(sd_bus_message *call, uint32_t uid, void *userdata, sd_bus_error *error) {
        return hold(call, uid, userdata, lifecycle_resume, error);
}

static void on_made(void *userdata, int error, const char *text) {
        sd_bus_message *call = userdata;

        if (error < 0)
                (void)sd_bus_reply_method_errorf(call, error_name(error), "%s", text);
        else
                (void)sd_bus_reply_method_return(call, "s", text);
        sd_bus_message_unref(call);
}

static int read_create(sd_bus_message *call, const char **ret_name, bool *ret_kill, sd_bus_error *error) {
        int r = sd_bus_message_read_basic(call, 's', ret_name);

        if (r >= 0)
                r = sd_bus_message_enter_container(call, 'a', "{sv}");
        while (r >= 0 && (r = sd_bus_message_enter_container(call, 'e', "sv")) > 0) {
                const char *key;
                int b = 0;
                r = sd_bus_message_read_basic(call, 's', &key);
                if (r < 0)
                        return r;
                if (strcmp(key, "kill") != 0)
                        return sd_bus_error_setf(error, SD_BUS_ERROR_INVALID_ARGS,
                                                 "CreateSavepoint has no option '%.*s'", utf8_fit(key, 64),
                                                 key);
                r = sd_bus_message_read(call, "v", "b", &b);
                if (r < 0)
                        return r;
                *ret_kill = b;
                r = sd_bus_message_exit_container(call);
        }
        return r;
}

int api_create_savepoint(sd_bus_message *call, uint32_t uid, void *userdata, sd_bus_error *error) {
        struct manager *m = userdata;
        struct job *j = api_job_of(m, call);
        char text[SAVEPOINT_TEXT_MAX] = "";
        const char *name;
        bool kill = false;
        int r = read_create(call, &name, &kill, error);

        if (r < 0)
                return r;
        if (!j)
                return sd_bus_error_set(error, ERROR_NO_SUCH_JOB, "There is no such job");
        r = savepoint_create(m, j, name, kill, uid, on_made, sd_bus_message_ref(call), text);
        if (r < 0) {
                sd_bus_message_unref(call);
                return sd_bus_error_set(error, error_name(r), text);
        }
        return 1;
}

/* ---- all ---- */

static int append_savepoint(sd_bus_message *reply, const struct savepoint *s) {
        int r = sd_bus_message_open_container(reply, 'r', "suuttta{sv}");

        if (r >= 0)
                r = sd_bus_message_append(reply, "suuttt", s->name, s->job, s->owner, s->created_real,
                                          s->done, s->acked);
        if (r >= 0)
                r = sd_bus_message_append(reply, "a{sv}", 4, "jobName", "s", s->job_name, "records", "t",
                                          s->records, "partial", "t", s->partial, "failed", "t", s->failed);
        return r < 0 ? r : sd_bus_message_close_container(reply);
}

int api_list_savepoints(sd_bus_message *call, uint32_t uid, void *userdata, sd_bus_error *error) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        struct manager *m = userdata;
        int r = sd_bus_message_new_method_return(call, &reply);

        if (r >= 0)
                r = sd_bus_message_open_container(reply, 'a', "(suuttta{sv})");
        for (const struct savepoint *s = savepoint_next(m, NULL); s && r >= 0; s = savepoint_next(m, s))
                if (uid == 0 || uid == s->owner)
                        r = append_savepoint(reply, s);
        if (r >= 0)
                r = sd_bus_message_close_container(reply);
        return r < 0 ? r : sd_bus_send(NULL, reply, NULL);
}

/* The savepoint of a call whose first argument is its name. One that is not the caller's is not known to him,
 * unless polkit lets him at it: that is asked before we come here. */
static struct savepoint *savepoint_of(struct manager *m, sd_bus_message *call, sd_bus_error *error) {
        struct savepoint *s;
        const char *name;

        if (sd_bus_message_rewind(call, true) < 0 || sd_bus_message_read_basic(call, 's', &name) < 0)
                return NULL;
        s = savepoint_get(m, name);
        if (!s)
                (void)sd_bus_error_setf(error, ERROR_NOT_FOUND, "There is no savepoint '%.*s'",
                                        utf8_fit(name, 64), name);
        return s;
}

static void on_read(void *userdata, int error, const struct savepoint_record *record, size_t n) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        sd_bus_message *call = userdata;
        int r = error >= 0 && n == 0 ? -ENOENT : error;

        if (r >= 0)
                r = sd_bus_message_new_method_return(call, &reply);
        if (r >= 0)
                r = sd_bus_message_append_array(reply, 'y', record->manifest.data, record->manifest.size);
        if (r >= 0)
                r = sd_bus_send(NULL, reply, NULL);
        caller_answer(call, r, NULL);
        sd_bus_message_unref(call);
}

static int get_savepoint(sd_bus_message *call, uint32_t uid, void *userdata, sd_bus_error *error) {
        struct savepoint *s = savepoint_of(userdata, call, error);
        int r;

        if (!s)
                return -ENOENT;
        r = savepoint_read(userdata, s, on_read, sd_bus_message_ref(call));
        if (r < 0)
                sd_bus_message_unref(call);
        return r < 0 ? r : 1;
}

static int delete_savepoint(sd_bus_message *call, uint32_t uid, void *userdata, sd_bus_error *error) {
        struct savepoint *s = savepoint_of(userdata, call, error);

        if (!s)
                return -ENOENT;
        if (savepoint_delete(userdata, s) < 0)
                return sd_bus_error_setf(error, ERROR_BUSY,
                                         "A job is being made of savepoint '%s'; try again in a moment",
                                         s->name);
        return answer_later(userdata, call);
}

static int with_savepoint(sd_bus_message *call, struct manager *m, caller_handler work, sd_bus_error *error) {
        struct savepoint *s = savepoint_of(m, call, error);

        return s ? api_with_permission(m, call, s->owner, ACTION_MANAGE_JOBS, work, error) : -ENOENT;
}

int api_get_savepoint(sd_bus_message *call, void *userdata, sd_bus_error *error) {
        return with_savepoint(call, userdata, get_savepoint, error);
}

int api_delete_savepoint(sd_bus_message *call, void *userdata, sd_bus_error *error) {
        return with_savepoint(call, userdata, delete_savepoint, error);
}
