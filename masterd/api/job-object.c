/* SPDX-License-Identifier: Apache-2.0 */
/* org.primus.Master1.Job. What a job is and where it stands may be seen by all; everything in it is its
 * owner's. */
#include <string.h>
#include <utlist.h>

#include "lib/base/clock.h"
#include "lib/base/parse.h"
#include "lib/base/unitname.h"
#include "masterd/api/api.h"
#include "masterd/api/authorize.h"
#include "masterd/feeding.h"
#include "masterd/lifecycle.h"
#include "masterd/logs.h"
#include "masterd/manager.h"
#include "masterd/orders.h"
#include "masterd/record.h"

#define READ_LOG_WAIT_MAX (20 * USEC_PER_SEC)
#define EVENTS_MAX 10000u

/* The job may have left memory while polkit was asked. */
static struct job *job_or_error(struct manager *m, sd_bus_message *call, sd_bus_error *error) {
        struct job *j = api_job_of(m, call);

        if (!j)
                (void)sd_bus_error_set(error, ERROR_NO_SUCH_JOB,
                                       "The job is not in memory any more; ask for it again by GetJob");
        else
                api_watch(j, call);
        return j;
}

/* ---- GetStatus
 * ---------------------------------------------------------------------------------------------------------
 */

static int append_roles(sd_bus_message *reply, const struct job *j) {
        int r = sd_bus_message_open_container(reply, 'e', "sv");

        if (r >= 0)
                r = sd_bus_message_append_basic(reply, 's', "roles");
        if (r >= 0)
                r = sd_bus_message_open_container(reply, 'v', "a(suuuuuuu)");
        if (r >= 0)
                r = sd_bus_message_open_container(reply, 'a', "(suuuuuuu)");
        for (size_t i = 0; r >= 0 && i < j->spec->n_roles; i++) {
                const struct role *role = j->roles + i;
                const uint32_t *n = role->n_state;
                r = sd_bus_message_append(reply, "(suuuuuuu)", role->spec->name, role->spec->num,
                                          n[EXECUTOR_RUNNING],
                                          n[EXECUTOR_PENDING] + n[EXECUTOR_PLACED] + n[EXECUTOR_STARTING],
                                          n[EXECUTOR_SUCCEEDED], n[EXECUTOR_FAILED],
                                          n[EXECUTOR_KILLED] + n[EXECUTOR_STOPPING], n[EXECUTOR_LOST]);
        }
        for (int i = 0; r >= 0 && i < 3; i++)
                r = sd_bus_message_close_container(reply);
        return r;
}

static int append_data(sd_bus_message *reply, const struct job *j) {
        struct data_totals n;
        int r;

        if (feeding_totals(j, &n) < 0)
                return 0;
        r = sd_bus_message_open_container(reply, 'e', "sv");
        if (r >= 0)
                r = sd_bus_message_append_basic(reply, 's', "data");
        if (r >= 0)
                r = sd_bus_message_open_container(reply, 'v', "a{sv}");
        if (r >= 0)
                r = sd_bus_message_append(reply, "a{sv}", 8, "tasks", "t", n.tasks, "done", "t",
                                          n.done + n.skipped, "failed", "t", n.failed, "leased", "t",
                                          n.leased, "bytes", "t", n.bytes, "read", "t", n.read, "acked", "t",
                                          n.acked, "scanned", "b", (int)feeding_scanned_all(j));
        for (int i = 0; r >= 0 && i < 2; i++)
                r = sd_bus_message_close_container(reply);
        return r;
}

static int get_status(sd_bus_message *call, uint32_t uid, void *userdata, sd_bus_error *error) {
        struct job *j = job_or_error(userdata, call, error);
        sd_bus_message *reply = NULL;
        int r;

        if (!j)
                return -ENOENT;
        r = sd_bus_message_new_method_return(call, &reply);
        if (r >= 0)
                r = sd_bus_message_open_container(reply, 'a', "{sv}");
        if (r >= 0)
                r = sd_bus_message_append(reply, "{sv}{sv}", "reason", "s", j->reason ? j->reason : "",
                                          "firstError", "s", j->first_error ? j->first_error : "");
        if (r >= 0)
                r = append_roles(reply, j);
        if (r >= 0)
                r = append_data(reply, j);
        if (r >= 0)
                r = sd_bus_message_open_container(reply, 'e', "sv");
        if (r >= 0)
                r = sd_bus_message_append_basic(reply, 's', "cwd");
        if (r >= 0)
                r = sd_bus_message_open_container(reply, 'v', "ay");
        if (r >= 0)
                r = sd_bus_message_append_array(reply, 'y', j->cwd, strlen(j->cwd));
        for (int i = 0; r >= 0 && i < 3; i++)
                r = sd_bus_message_close_container(reply);
        if (r >= 0)
                r = sd_bus_send(NULL, reply, NULL);
        sd_bus_message_unref(reply);
        return r;
}

static int get_config(sd_bus_message *call, uint32_t uid, void *userdata, sd_bus_error *error) {
        struct job *j = job_or_error(userdata, call, error);
        sd_bus_message *reply = NULL;
        int r;

        if (!j)
                return -ENOENT;
        r = sd_bus_message_new_method_return(call, &reply);
        if (r >= 0)
                r = sd_bus_message_append_array(reply, 'y', j->config, strlen(j->config));
        if (r >= 0)
                r = sd_bus_send(NULL, reply, NULL);
        sd_bus_message_unref(reply);
        return r;
}

/* ---- ListExecutors
 * ----------------------------------------------------------------------------------------------------- */

static int append_executor(sd_bus_message *reply, const struct executor_record *r, uint32_t restarts) {
        char unit[UNIT_NAME_MAX] = "";
        int k = sd_bus_message_open_container(reply, 'r', "suusssutta{sv}");

        if (r->attempt > 0)
                executor_unit_name(r->job, r->role, r->index, r->attempt, unit);
        if (k >= 0)
                k = sd_bus_message_append(reply, "suusssutt", r->role, r->index, r->attempt,
                                          executor_state_to_string((enum executor_state)r->state),
                                          r->node ? r->node : "", unit, r->rank, r->started_real,
                                          r->ended_real);
        if (k >= 0)
                k = sd_bus_message_open_container(reply, 'a', "{sv}");
        if (k >= 0)
                k = sd_bus_message_append(reply, "{sv}{sv}{sv}{sv}", "result", "s",
                                          r->result ? r->result : "", "status", "i", r->status, "reason", "s",
                                          r->reason ? r->reason : "", "restarts", "u", restarts);
        if (k >= 0 && r->memory_peak != UINT64_MAX)
                k = sd_bus_message_append(reply, "{sv}", "memoryPeak", "t", r->memory_peak);
        if (k >= 0 && r->cpu_usec != UINT64_MAX)
                k = sd_bus_message_append(reply, "{sv}", "cpu", "t", r->cpu_usec);
        if (k >= 0 && r->n_ports > 0) {
                k = sd_bus_message_open_container(reply, 'e', "sv");
                if (k >= 0)
                        k = sd_bus_message_append_basic(reply, 's', "ports");
                if (k >= 0)
                        k = sd_bus_message_open_container(reply, 'v', "au");
                if (k >= 0)
                        k = sd_bus_message_open_container(reply, 'a', "u");
                for (uint32_t i = 0; k >= 0 && i < r->n_ports; i++)
                        k = sd_bus_message_append(reply, "u", (uint32_t)r->ports[i]);
                for (int i = 0; k >= 0 && i < 3; i++)
                        k = sd_bus_message_close_container(reply);
        }
        if (k >= 0)
                k = sd_bus_message_close_container(reply);
        return k < 0 ? k : sd_bus_message_close_container(reply);
}

static int append_executor_now(sd_bus_message *reply, const struct executor *e) {
        struct executor_record r = record_of_executor(e);

        return append_executor(reply, &r, e->restarts);
}

static void on_executors(void *userdata, int error, const struct executor_record *list, size_t n) {
        sd_bus_message *call = userdata, *reply = NULL;
        int r = error;

        if (r >= 0)
                r = sd_bus_message_new_method_return(call, &reply);
        if (r >= 0)
                r = sd_bus_message_open_container(reply, 'a', "(suusssutta{sv})");
        for (size_t i = 0; r >= 0 && i < n; i++)
                r = append_executor(reply, list + i, list[i].attempt - 1);
        if (r >= 0)
                r = sd_bus_message_close_container(reply);
        if (r >= 0)
                (void)sd_bus_send(NULL, reply, NULL);
        else
                (void)sd_bus_reply_method_errno(call, r, NULL);
        sd_bus_message_unref(reply);
        sd_bus_message_unref(call);
}

static int list_executors(sd_bus_message *call, uint32_t uid, void *userdata, sd_bus_error *error) {
        struct manager *m = userdata;
        struct job *j = job_or_error(m, call, error);
        sd_bus_message *reply = NULL;
        int all, r;

        if (!j)
                return -ENOENT;
        r = sd_bus_message_read_basic(call, 'b', &all);
        if (r < 0)
                return r;
        if (all) {
                r = store_query_executors(m->store, j->number, true, 0, on_executors,
                                          sd_bus_message_ref(call));
                if (r < 0)
                        sd_bus_message_unref(call);
                return r;
        }
        r = sd_bus_message_new_method_return(call, &reply);
        if (r >= 0)
                r = sd_bus_message_open_container(reply, 'a', "(suusssutta{sv})");
        for (uint32_t i = 0; r >= 0 && i < j->n_executors; i++)
                r = append_executor_now(reply, j->executors + i);
        if (r >= 0)
                r = sd_bus_message_close_container(reply);
        if (r >= 0)
                r = sd_bus_send(NULL, reply, NULL);
        sd_bus_message_unref(reply);
        return r;
}

/* ---- ListEvents, ReadLog, Kill
 * ----------------------------------------------------------------------------------------- */

static void on_events(void *userdata, int error, const struct event_record *list, size_t n) {
        sd_bus_message *call = userdata, *reply = NULL;
        int r = error;

        if (r >= 0)
                r = sd_bus_message_new_method_return(call, &reply);
        if (r >= 0)
                r = sd_bus_message_open_container(reply, 'a', "(ttssus)");
        for (size_t i = 0; r >= 0 && i < n; i++)
                r = sd_bus_message_append(reply, "(ttssus)", list[i].seq, list[i].time_real, list[i].kind,
                                          list[i].role, list[i].index, list[i].text);
        if (r >= 0)
                r = sd_bus_message_close_container(reply);
        if (r >= 0)
                (void)sd_bus_send(NULL, reply, NULL);
        else
                (void)sd_bus_reply_method_errno(call, r, NULL);
        sd_bus_message_unref(reply);
        sd_bus_message_unref(call);
}

static int list_events(sd_bus_message *call, uint32_t uid, void *userdata, sd_bus_error *error) {
        struct manager *m = userdata;
        struct job *j = job_or_error(m, call, error);
        uint64_t after;
        int r;

        if (!j)
                return -ENOENT;
        r = sd_bus_message_read_basic(call, 't', &after);
        if (r < 0)
                return r;
        r = store_query_events(m->store, j->number, after, EVENTS_MAX, on_events, sd_bus_message_ref(call));
        if (r < 0)
                sd_bus_message_unref(call);
        return r;
}

static int read_log_options(sd_bus_message *call, uint64_t *tail, sd_bus_error *error) {
        int r = sd_bus_message_enter_container(call, 'a', "{sv}");

        while (r >= 0 && (r = sd_bus_message_enter_container(call, 'e', "sv")) > 0) {
                const char *key;
                r = sd_bus_message_read_basic(call, 's', &key);
                if (r < 0)
                        return r;
                if (strcmp(key, "tail") != 0)
                        return sd_bus_error_setf(error, SD_BUS_ERROR_INVALID_ARGS,
                                                 "ReadLog has no option '%.*s'", utf8_fit(key, 64), key);
                r = sd_bus_message_read(call, "v", "t", tail);
                if (r >= 0)
                        r = sd_bus_message_exit_container(call);
        }
        return r;
}

/* What ReadLog is called with; borrowed from the call. */
struct log_arguments {
        const char *role;
        uint32_t index, attempt;
        const void *cursor;
        size_t cursor_size;
        uint64_t wait, tail;
};

static int read_log_arguments(sd_bus_message *call, struct log_arguments *a, sd_bus_error *error) {
        int r;

        *a = (struct log_arguments){ .tail = UINT64_MAX };
        r = sd_bus_message_read(call, "suu", &a->role, &a->index, &a->attempt);
        if (r >= 0)
                r = sd_bus_message_read_array(call, 'y', &a->cursor, &a->cursor_size);
        if (r >= 0)
                r = sd_bus_message_read_basic(call, 't', &a->wait);
        return r < 0 ? r : read_log_options(call, &a->tail, error);
}

static int read_log_at(struct manager *m, struct executor *e, struct node *node,
                       const struct log_arguments *a, sd_bus_message *call) {
        struct executor_id id = executor_id_of(e);

        if (a->attempt)
                id.attempt = a->attempt;
        return logs_read(m, e->job, node, &id, a->cursor, a->cursor_size, MIN(a->wait, READ_LOG_WAIT_MAX),
                         a->tail, call);
}

struct log_request {
        struct manager *manager;
        sd_bus_message *call;
};

/* Where an earlier attempt ran, only the store knows. */
static void on_attempts(void *userdata, int error, const struct executor_record *list, size_t n) {
        struct log_request *q = userdata;
        sd_bus_error failure = SD_BUS_ERROR_NULL;
        struct job *j = job_or_error(q->manager, q->call, &failure);
        struct executor *e = NULL;
        struct node *node = NULL;
        struct log_arguments a;
        int r = error;

        if (r >= 0)
                r = j ? sd_bus_message_rewind(q->call, true) : -ENOENT;
        if (r >= 0)
                r = read_log_arguments(q->call, &a, &failure);
        if (r >= 0 && !(e = job_executor(j, a.role, a.index)))
                r = -ENOENT;
        for (size_t i = 0; r >= 0 && i < n && !node; i++)
                if (list[i].index == a.index && list[i].attempt == a.attempt &&
                    strcmp(list[i].role, a.role) == 0)
                        node = nodes_get(&q->manager->nodes, list[i].node);
        if (r >= 0)
                r = read_log_at(q->manager, e, node, &a, q->call);
        caller_answer(q->call, r, &failure);
        sd_bus_error_free(&failure);
        sd_bus_message_unref(q->call);
        free(q);
}

static int read_log(sd_bus_message *call, uint32_t uid, void *userdata, sd_bus_error *error) {
        struct manager *m = userdata;
        struct job *j = job_or_error(m, call, error);
        struct log_request *q;
        struct log_arguments a;
        struct executor *e;
        int r;

        if (!j)
                return -ENOENT;
        r = read_log_arguments(call, &a, error);
        if (r < 0)
                return r;
        e = job_executor(j, a.role, a.index);
        if (!e)
                return sd_bus_error_setf(error, "org.primus.Error.NotFound", "Job %u has no executor %.*s/%u",
                                         j->number, utf8_fit(a.role, 33), a.role, a.index);
        if (e->attempt == 0 || a.attempt > e->attempt)
                return sd_bus_error_setf(error, "org.primus.Error.NotFound",
                                         e->attempt == 0 ? "%s/%u has not been started yet"
                                                         : "%s/%u has no such attempt",
                                         a.role, a.index);
        if (a.attempt == 0 || a.attempt == e->attempt)
                return read_log_at(m, e, e->node, &a, call);
        q = malloc(sizeof(*q));
        if (!q)
                return -ENOMEM;
        *q = (struct log_request){ m, sd_bus_message_ref(call) };
        r = store_query_executors(m->store, j->number, true, 0, on_attempts, q);
        if (r < 0) {
                sd_bus_message_unref(call);
                free(q);
        }
        return r;
}

static int kill_job(sd_bus_message *call, uint32_t uid, void *userdata, sd_bus_error *error) {
        struct manager *m = userdata;
        struct job *j = job_or_error(m, call, error);
        sd_bus_message *reply = NULL;
        const char *reason;
        char text[300];
        int r;

        if (!j)
                return -ENOENT;
        r = sd_bus_message_read_basic(call, 's', &reason);
        if (r >= 0)
                r = sd_bus_message_new_method_return(call, &reply);
        if (r < 0)
                return r;
        if (*reason)
                snprintf(text, sizeof(text), "killed by uid %u: %.*s", uid, utf8_fit(reason, 200), reason);
        else
                snprintf(text, sizeof(text), "killed by uid %u", uid);
        lifecycle_stop_job(m, j, JOB_EVENT_KILLED, text);
        return manager_reply_later(m, reply);
}

#define ENTRY(name, work)                                                                                    \
        static int name(sd_bus_message *call, void *userdata, sd_bus_error *error) {                         \
                struct job *j = userdata;                                                                    \
                return api_with_permission(j->manager, call, j->owner, ACTION_MANAGE_JOBS, work, error);     \
        }
ENTRY(on_get_status, get_status)
ENTRY(on_get_config, get_config)
ENTRY(on_list_executors, list_executors)
ENTRY(on_list_events, list_events)
ENTRY(on_read_log, read_log)
ENTRY(on_kill, kill_job)

/* ---- properties
 * ---------------------------------------------------------------------------------------------------------
 */

static int get_uid(sd_bus *bus, const char *path, const char *interface, const char *property,
                   sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        struct job *j = userdata;
        char text[SD_ID128_STRING_MAX];

        return sd_bus_message_append(reply, "s", sd_id128_to_string(j->uid, text));
}

static int get_state(sd_bus *bus, const char *path, const char *interface, const char *property,
                     sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        struct job *j = userdata;

        return sd_bus_message_append(reply, "s", job_state_to_string(j->state));
}

static int get_exit_status(sd_bus *bus, const char *path, const char *interface, const char *property,
                           sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        struct job *j = userdata;

        return sd_bus_message_append(reply, "u", job_state_exit_status(j->state));
}

const sd_bus_vtable api_job_vtable[] = {
        SD_BUS_VTABLE_START(0),
        SD_BUS_PROPERTY("Number", "u", NULL, offsetof(struct job, number), SD_BUS_VTABLE_PROPERTY_CONST),
        SD_BUS_PROPERTY("Uid", "s", get_uid, 0, SD_BUS_VTABLE_PROPERTY_CONST),
        SD_BUS_PROPERTY("Name", "s", NULL, offsetof(struct job, name), SD_BUS_VTABLE_PROPERTY_CONST),
        SD_BUS_PROPERTY("Owner", "u", NULL, offsetof(struct job, owner), SD_BUS_VTABLE_PROPERTY_CONST),
        SD_BUS_PROPERTY("State", "s", get_state, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
        SD_BUS_PROPERTY("Attempt", "u", NULL, offsetof(struct job, attempt), 0),
        SD_BUS_PROPERTY("SubmittedAt", "t", NULL, offsetof(struct job, submitted_real),
                        SD_BUS_VTABLE_PROPERTY_CONST),
        SD_BUS_PROPERTY("StartedAt", "t", NULL, offsetof(struct job, started_real), 0),
        SD_BUS_PROPERTY("EndedAt", "t", NULL, offsetof(struct job, ended_real), 0),
        SD_BUS_PROPERTY("ExitStatus", "u", get_exit_status, 0, 0),
        SD_BUS_METHOD_WITH_ARGS("GetStatus", SD_BUS_NO_ARGS, SD_BUS_RESULT("a{sv}", status), on_get_status,
                                SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("GetConfig", SD_BUS_NO_ARGS, SD_BUS_RESULT("ay", config), on_get_config,
                                SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("ListExecutors", SD_BUS_ARGS("b", all_attempts),
                                SD_BUS_RESULT("a(suusssutta{sv})", executors), on_list_executors,
                                SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("ListEvents", SD_BUS_ARGS("t", after), SD_BUS_RESULT("a(ttssus)", events),
                                on_list_events, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS(
                "ReadLog",
                SD_BUS_ARGS("s", role, "u", index, "u", attempt, "ay", cursor, "t", wait, "a{sv}", options),
                SD_BUS_RESULT("ay", data, "ay", next, "b", end), on_read_log, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("Kill", SD_BUS_ARGS("s", reason), SD_BUS_NO_RESULT, on_kill,
                                SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_SIGNAL_WITH_ARGS("ExecutorChanged",
                                SD_BUS_ARGS("s", role, "u", index, "u", attempt, "s", state, "s", node), 0),
        SD_BUS_VTABLE_END,
};
