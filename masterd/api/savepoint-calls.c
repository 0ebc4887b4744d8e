/* SPDX-License-Identifier: Apache-2.0 */
/* org.primus.Master1: savepoints. They are their owner's, who is the owner of their job. */
#include <string.h>

#include "lib/base/utf8.h"
#include "lib/wire/errors.h"
#include "masterd/api/api.h"
#include "masterd/api/job-calls.h"
#include "masterd/api/options.h"
#include "masterd/caller/authorize.h"
#include "masterd/caller/reply.h"
#include "masterd/core/manager.h"
#include "masterd/life/savepoints.h"

#define ROW "suuttta{sv}"
#define MANIFEST_SENT_MAX (24u << 20) /* the bus takes messages of 32 MiB */

/* ---- create ---- */

static const struct call_option create_options[] = { { "kill", 'b', 0, NULL }, { NULL } };

/* What a refusal is called on the bus. */
static const char *error_name(int r) {
        return r == -EINVAL ? SD_BUS_ERROR_INVALID_ARGS : r == -EBUSY ? ERROR_BUSY : ERROR_REFUSED;
}

static void on_created(void *userdata, int error, const char *text) {
        sd_bus_message *call = userdata;

        if (error < 0)
                (void)reply_errorf(call, error_name(error), "%s", text);
        else
                (void)reply_return(call, "s", text);
        sd_bus_message_unref(call);
}

int api_create_savepoint(sd_bus_message *call, uint32_t uid, void *userdata, sd_bus_error *error) {
        struct manager *m = userdata;
        struct job *j = api_job_or_error(m, call, error);
        char text[SAVEPOINT_TEXT_MAX] = "";
        bool kill = false;
        const char *name;
        int r;

        if (!j)
                return API_JOB_GONE;
        r = sd_bus_message_read_basic(call, 's', &name);
        if (r >= 0)
                r = options_read(call, "CreateSavepoint", "option", create_options, &kill, error);
        if (r < 0)
                return r;
        r = savepoint_create(m, j, name, kill, uid, on_created, sd_bus_message_ref(call), text);
        if (r >= 0)
                return 1;
        sd_bus_message_unref(call);
        return *text ? sd_bus_error_set(error, error_name(r), text) : r;
}

/* ---- list ---- */

static int append_savepoint(sd_bus_message *reply, const struct savepoint *s) {
        int r = sd_bus_message_open_container(reply, 'r', ROW);

        if (r >= 0)
                r = sd_bus_message_append(reply, "suuttt", s->name, s->job, s->owner, s->created_real,
                                          s->done, s->acked);
        if (r >= 0)
                r = sd_bus_message_append(reply, "a{sv}", 4, "jobName", "s", s->job_name, "records", "t",
                                          s->records, "partial", "t", s->partial, "failed", "t", s->failed);
        return r < 0 ? r : sd_bus_message_close_container(reply);
}

static int list_savepoints(sd_bus_message *call, uint32_t uid, void *userdata, sd_bus_error *error) {
        struct manager *m = userdata;
        sd_bus_message *reply = NULL;
        int r = reply_list_new(call, ROW, &reply);

        for (struct savepoint *s = savepoint_next(m, NULL); r >= 0 && s; s = savepoint_next(m, s))
                if (uid == 0 || s->owner == uid)
                        r = append_savepoint(reply, s);
        return reply_list_send(reply, r);
}

int api_on_list_savepoints(sd_bus_message *call, void *userdata, sd_bus_error *error) {
        return api_with_caller(userdata, call, list_savepoints, error);
}

/* ---- one of them ---- */

/* The savepoint that the call names, or the error. */
static struct savepoint *find(struct manager *m, sd_bus_message *call, sd_bus_error *error, int *ret_error) {
        struct savepoint *s = NULL;
        const char *name;
        int r = sd_bus_message_rewind(call, true);

        if (r >= 0)
                r = sd_bus_message_read_basic(call, 's', &name);
        if (r >= 0 && !(s = savepoint_get(m, name)))
                r = sd_bus_error_setf(error, ERROR_NOT_FOUND,
                                      "There is no savepoint '%.*s'; 'primusctl savepoint list' shows yours",
                                      utf8_fit(name, 64), name);
        *ret_error = r;
        return s;
}

static void on_manifest(void *userdata, int error, const struct savepoint_record *list, size_t n) {
        sd_bus_message *call = userdata;
        int r = error;

        if (r >= 0 && n == 0)
                (void)reply_errorf(call, ERROR_NOT_FOUND, "The savepoint has just been deleted");
        else if (r >= 0 && list->manifest.size > MANIFEST_SENT_MAX)
                (void)reply_errorf(call, ERROR_REFUSED,
                                   "The manifest has %zu bytes, more than a message of the bus "
                                   "takes; the savepoint itself is good",
                                   list->manifest.size);
        else {
                if (r >= 0)
                        r = reply_bytes(call, list->manifest.data, list->manifest.size);
                if (r < 0)
                        (void)reply_failed(call, r, NULL);
        }
        sd_bus_message_unref(call);
}

static int get_savepoint(sd_bus_message *call, uint32_t uid, void *userdata, sd_bus_error *error) {
        struct manager *m = userdata;
        int r;
        struct savepoint *s = find(m, call, error, &r);

        if (!s)
                return r;
        r = savepoint_read(m, s, on_manifest, sd_bus_message_ref(call));
        if (r < 0)
                sd_bus_message_unref(call);
        return r < 0 ? r : 1;
}

static int delete_savepoint(sd_bus_message *call, uint32_t uid, void *userdata, sd_bus_error *error) {
        struct manager *m = userdata;
        sd_bus_message *reply = NULL;
        int r;
        struct savepoint *s = find(m, call, error, &r);

        if (!s)
                return r;
        r = sd_bus_message_new_method_return(call, &reply);
        if (r < 0)
                return r;
        r = savepoint_delete(m, s);
        if (r < 0) {
                sd_bus_message_unref(reply);
                return r == -EBUSY ? sd_bus_error_setf(error, ERROR_BUSY,
                                                       "A job is being made of savepoint %s; try again in a "
                                                       "moment",
                                                       s->name)
                                   : r;
        }
        return manager_reply_later(m, reply);
}

/* Who the caller is is known: whether the savepoint is his is asked of the very one that is then worked on.
 * By the time that polkit has answered, the name may be another's; but whom it lets, it lets have any. */
static int with_permission(struct manager *m, sd_bus_message *call, uint32_t uid, caller_handler work,
                           sd_bus_error *error) {
        int r;
        struct savepoint *s = find(m, call, error, &r);

        if (!s)
                return r;
        if (uid == 0 || uid == s->owner)
                return work(call, uid, m, error);
        return api_with_permission(m, call, OWNER_ANOTHER, ACTION_MANAGE_JOBS, work, error);
}

static int get_permitted(sd_bus_message *call, uint32_t uid, void *userdata, sd_bus_error *error) {
        return with_permission(userdata, call, uid, get_savepoint, error);
}

int api_on_get_savepoint(sd_bus_message *call, void *userdata, sd_bus_error *error) {
        return api_with_caller(userdata, call, get_permitted, error);
}

static int delete_permitted(sd_bus_message *call, uint32_t uid, void *userdata, sd_bus_error *error) {
        return with_permission(userdata, call, uid, delete_savepoint, error);
}

int api_on_delete_savepoint(sd_bus_message *call, void *userdata, sd_bus_error *error) {
        return api_with_caller(userdata, call, delete_permitted, error);
}
