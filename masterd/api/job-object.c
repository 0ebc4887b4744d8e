/* SPDX-License-Identifier: Apache-2.0 */
/* org.primus.Master1.Job: the table of its methods, and the plain ones. What a job is and where it stands may
 * be seen by all; who may look into it the job says ("visible"), and its control is its owner's. */
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/utf8.h"
#include "lib/wire/errors.h"
#include "masterd/api/api.h"
#include "masterd/api/job-calls.h"
#include "masterd/api/looking.h"
#include "masterd/api/options.h"
#include "masterd/api/turn.h"
#include "masterd/caller/authorize.h"
#include "masterd/caller/reply.h"
#include "masterd/core/manager.h"
#include "masterd/core/record.h"
#include "masterd/life/depend.h"
#include "masterd/life/history.h"
#include "masterd/life/lifecycle.h"
#include "masterd/relay/logs.h"

#define EVENTS_MAX 10000u
#define KILL_STATUS_MAX 125u                      /* a shell has its own meaning for those above */
#define GRACE_MAX_USEC (7 * 86400 * USEC_PER_SEC) /* as stopGrace */

/* The job may have left memory while polkit was asked. */
struct job *api_job_or_error(struct manager *m, sd_bus_message *call, sd_bus_error *error) {
        struct job *j = api_job_of(m, call);

        if (!j)
                (void)sd_bus_error_set(error, ERROR_NO_SUCH_JOB,
                                       "The job is not in memory any more; ask for it again by GetJob");
        return j;
}

/* ---- GetConfig, ListEvents, Kill ---- */

static int answer_config(sd_bus_message *call, uint32_t uid, void *userdata,
                         int (*write)(const struct job_spec *s, char **ret_json), sd_bus_error *error) {
        struct job *j = api_job_or_error(userdata, call, error);
        _cleanup_free_ char *config = NULL;
        int r = j ? write(j->spec, &config) : API_JOB_GONE;

        if (r < 0)
                return r;
        turn_answered(userdata, uid, strlen(config));
        return reply_bytes(call, config, strlen(config));
}

static int get_config(sd_bus_message *call, uint32_t uid, void *userdata, sd_bus_error *error) {
        return answer_config(call, uid, userdata, spec_effective, error);
}

static int get_masked(sd_bus_message *call, uint32_t uid, void *userdata, sd_bus_error *error) {
        return answer_config(call, uid, userdata, spec_masked, error);
}

static void on_events(void *userdata, int error, const struct event_record *list, size_t n) {
        sd_bus_message *call = userdata, *reply = NULL;
        int r = error < 0 ? error : reply_list_new(call, "ttssus", &reply);

        for (size_t i = 0; r >= 0 && i < n; i++)
                r = sd_bus_message_append(reply, "(ttssus)", list[i].seq, list[i].time_real, list[i].kind,
                                          list[i].role, list[i].index, list[i].text);
        reply_list_answer(call, reply, r);
}

static int list_events(sd_bus_message *call, uint32_t uid, void *userdata, sd_bus_error *error) {
        struct manager *m = userdata;
        struct job *j = api_job_or_error(m, call, error);
        uint64_t after;
        int r;

        if (!j)
                return API_JOB_GONE;
        r = sd_bus_message_read_basic(call, 't', &after);
        if (r < 0)
                return r;
        r = store_query_events(m->store, j->number, after, EVENTS_MAX, on_events, sd_bus_message_ref(call));
        if (r < 0)
                sd_bus_message_unref(call);
        return r;
}

#define REASON_MAX 300

/* what: "killed". Returns buf. */
static const char *person_says(const char *what, uint32_t uid, const char *reason,
                               char buf[static REASON_MAX]) {
        if (*reason)
                snprintf(buf, REASON_MAX, "%s by uid %u: %.*s", what, uid, utf8_fit(reason, 200), reason);
        else
                snprintf(buf, REASON_MAX, "%s by uid %u", what, uid);
        return buf;
}

/* By a person's word. */
static int end_job(struct manager *m, struct job *j, sd_bus_message *call, uint32_t uid,
                   enum job_event verdict, const char *what) {
        sd_bus_message *reply = NULL;
        const char *reason;
        char text[REASON_MAX];
        int r = sd_bus_message_read_basic(call, 's', &reason);

        if (r >= 0)
                r = sd_bus_message_new_method_return(call, &reply);
        if (r < 0)
                return r;
        (void)person_says(what, uid, reason, text);
        lifecycle_stop_job(m, j, verdict, text);
        return manager_reply_later(m, reply);
}

static int kill_job(sd_bus_message *call, uint32_t uid, void *userdata, sd_bus_error *error) {
        struct manager *m = userdata;
        struct job *j = api_job_or_error(m, call, error);

        return j ? end_job(m, j, call, uid, JOB_EVENT_KILLED, "killed") : API_JOB_GONE;
}

struct kill_options {
        const char *reason;
        uint64_t grace_usec; /* UINT64_MAX: the job's own */
        uint32_t status;     /* 0: the usual one */
};

static const struct call_option kill_options[] = {
        { "reason", 's', offsetof(struct kill_options, reason), NULL },
        { "grace", 't', offsetof(struct kill_options, grace_usec), NULL },
        { "exitStatus", 'u', offsetof(struct kill_options, status), NULL },
        { NULL },
};

static int kill_job_with(sd_bus_message *call, uint32_t uid, void *userdata, sd_bus_error *error) {
        struct manager *m = userdata;
        struct job *j = api_job_or_error(m, call, error);
        struct kill_options o = { .reason = "", .grace_usec = UINT64_MAX };
        sd_bus_message *reply = NULL;
        char text[REASON_MAX];
        int r;

        if (!j)
                return API_JOB_GONE;
        r = options_read(call, "KillWith", "option", kill_options, &o, error);
        if (r < 0)
                return r;
        if (o.grace_usec != UINT64_MAX && o.grace_usec > GRACE_MAX_USEC)
                return sd_bus_error_set(error, SD_BUS_ERROR_INVALID_ARGS, "grace: at most 7 days");
        if (o.status > KILL_STATUS_MAX)
                return sd_bus_error_setf(error, SD_BUS_ERROR_INVALID_ARGS, "exitStatus: at most %u",
                                         KILL_STATUS_MAX);
        r = sd_bus_message_new_method_return(call, &reply);
        if (r < 0)
                return r;
        (void)person_says("killed", uid, o.reason, text);
        if (o.status > 0 && !job_state_ended(j->state)) {
                j->kill_status = (uint8_t)o.status;
                record_job(m, j, false); /* it may be on its way there already */
        }
        if (o.grace_usec == UINT64_MAX)
                lifecycle_stop_job(m, j, JOB_EVENT_KILLED, text);
        else
                lifecycle_kill_job(m, j, o.grace_usec, text);
        return manager_reply_later(m, reply);
}

static int succeed_job(sd_bus_message *call, uint32_t uid, void *userdata, sd_bus_error *error) {
        struct manager *m = userdata;
        struct job *j = api_job_or_error(m, call, error);

        if (!j)
                return API_JOB_GONE;
        if (j->array)
                return sd_bus_error_setf(
                        error, ERROR_REFUSED,
                        "Job %u is an array: say which of its elements has succeeded, such as "
                        "%u[1]",
                        j->number, j->number);
        if (job_state_ended(j->state) || j->state == JOB_STOPPING)
                return sd_bus_error_setf(error, ERROR_REFUSED, "Job %u %s already", j->number,
                                         job_state_ended(j->state) ? "has ended" : "ends");
        if (!job_state_up(j->state) && j->state != JOB_STARTING)
                return sd_bus_error_setf(
                        error, ERROR_REFUSED,
                        "Job %u does not run, so there is nothing that could have succeeded; "
                        "a job that is not wanted any more is killed",
                        j->number);
        return end_job(m, j, call, uid, JOB_EVENT_SUCCEEDED, "called a success");
}

static void run_forget_logs(struct manager *m, void *data) {
        uint32_t *number = data;

        logs_forget(m, *number);
        free(number);
}

static int delete_job(sd_bus_message *call, uint32_t uid, void *userdata, sd_bus_error *error) {
        struct manager *m = userdata;
        struct job *j = api_job_or_error(m, call, error);
        sd_bus_message *reply = NULL;
        uint32_t waiting, *number;
        char index[ELEMENT_TEXT_MAX];
        int r;

        if (!j)
                return API_JOB_GONE;
        if (j->element.array > 0)
                return sd_bus_error_setf(
                        error, ERROR_REFUSED,
                        "Job %u is element %s of array %u, and is deleted with it: delete %u when all of it has "
                        "ended",
                        j->number, element_text(j->element.index, index), j->element.array, j->element.array);
        if (!job_state_ended(j->state))
                return sd_bus_error_setf(
                        error, ERROR_REFUSED,
                        "Job %u is %s: only what has ended can be deleted (primusctl kill %u "
                        "ends it)",
                        j->number, job_state_to_string(j->state), j->number);
        if (logs_awaited(m, j))
                return sd_bus_error_setf(error, ERROR_REFUSED,
                                         "The last words of job %u are still on their way: delete it in some "
                                         "seconds",
                                         j->number);
        waiting = depend_waiting(m, j->number);
        if (waiting > 0)
                return sd_bus_error_setf(
                        error, ERROR_REFUSED,
                        "Job %u is to run after job %u, and has not begun: delete job %u when "
                        "it has, or kill %u",
                        waiting, j->number, j->number, waiting);
        number = malloc(sizeof(*number));
        if (!number)
                return -ENOMEM;
        *number = j->number;
        r = sd_bus_message_new_method_return(call, &reply);
        if (r < 0) {
                free(number);
                return r;
        }
        log_full(LOG_INFO, 0, &(struct log_fields){ .job = j->number }, "Job %u is deleted by uid %u",
                 j->number, uid);
        history_delete(m, j);
        (void)manager_effect(m, run_forget_logs, number); /* else the next pruning finds them */
        return manager_reply_later(m, reply);
}

#define LOOK(name, work)                                                                                     \
        static int name(sd_bus_message *call, void *userdata, sd_bus_error *error) {                         \
                return api_look(userdata, call, ACTION_SEE_JOBS, work, NULL, error);                         \
        }
#define ENTRY(name, work)                                                                                    \
        static int name(sd_bus_message *call, void *userdata, sd_bus_error *error) {                         \
                return api_control(userdata, call, ACTION_MANAGE_JOBS, work, error);                         \
        }
LOOK(on_get_status, api_get_status)
LOOK(on_list_executors, api_list_executors)
LOOK(on_telemetry, api_telemetry)
LOOK(on_list_metrics, api_list_metrics)
LOOK(on_read_metrics, api_read_metrics)
LOOK(on_list_events, list_events)
LOOK(on_list_tasks, api_list_tasks)
LOOK(on_list_trials, api_list_trials)
LOOK(on_replay_search, api_replay_search)
LOOK(on_why, api_why)

static int on_read_log(sd_bus_message *call, void *userdata, sd_bus_error *error) {
        return api_look(userdata, call, ACTION_SEE_LOGS, api_read_log, NULL, error);
}

/* Values of variables may be secrets. */
static int on_get_config(sd_bus_message *call, void *userdata, sd_bus_error *error) {
        return api_look(userdata, call, ACTION_SEE_JOBS, get_config, get_masked, error);
}

ENTRY(on_kill, kill_job)
ENTRY(on_kill_with, kill_job_with)
ENTRY(on_succeed, succeed_job)
ENTRY(on_delete, delete_job)
ENTRY(on_suspend, api_suspend)
ENTRY(on_suspend_as, api_suspend_as)
ENTRY(on_resume, api_resume)
ENTRY(on_retry_task, api_retry_task)
ENTRY(on_skip_task, api_skip_task)
ENTRY(on_steer_source, api_steer_source)
ENTRY(on_replace_sources, api_replace_sources)
ENTRY(on_create_savepoint, api_create_savepoint)
ENTRY(on_requeue, api_requeue)
ENTRY(on_rerun, api_rerun)
ENTRY(on_replace, api_replace)
ENTRY(on_allow_node, api_allow_node)
ENTRY(on_capture, api_capture)
ENTRY(on_open_artifacts, api_open_artifacts)
ENTRY(on_trace, api_trace)

/* Running something as the job's user is more than seeing into the job. */
static int on_open_session(sd_bus_message *call, void *userdata, sd_bus_error *error) {
        return api_control(userdata, call, ACTION_MANAGE_SESSIONS, api_open_session, error);
}

/* ---- properties ---- */

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

        return sd_bus_message_append(reply, "u", job_exit_status(j));
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
        SD_BUS_PROPERTY("ExitStatus", "u", get_exit_status, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
        SD_BUS_METHOD_WITH_ARGS("GetStatus", SD_BUS_NO_ARGS, SD_BUS_RESULT("a{sv}", status), on_get_status,
                                SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("GetConfig", SD_BUS_NO_ARGS, SD_BUS_RESULT("ay", config), on_get_config,
                                SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("ListExecutors", SD_BUS_ARGS("b", all_attempts),
                                SD_BUS_RESULT("a(suusssutta{sv})", executors), on_list_executors,
                                SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("Telemetry", SD_BUS_ARGS("a{sv}", options), SD_BUS_RESULT("a{sv}", telemetry),
                                on_telemetry, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("ListMetrics", SD_BUS_NO_ARGS, SD_BUS_RESULT("aa{sv}", metrics),
                                on_list_metrics, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("ReadMetrics", SD_BUS_ARGS("s", name, "a{sv}", options),
                                SD_BUS_RESULT("aa{sv}", series, "u", total), on_read_metrics,
                                SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("ListEvents", SD_BUS_ARGS("t", after), SD_BUS_RESULT("a(ttssus)", events),
                                on_list_events, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS(
                "ReadLog",
                SD_BUS_ARGS("s", role, "u", index, "u", attempt, "ay", cursor, "t", wait, "a{sv}", options),
                SD_BUS_RESULT("ay", data, "ay", next, "b", end), on_read_log, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("Kill", SD_BUS_ARGS("s", reason), SD_BUS_NO_RESULT, on_kill,
                                SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("KillWith", SD_BUS_ARGS("a{sv}", options), SD_BUS_NO_RESULT, on_kill_with,
                                SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("Succeed", SD_BUS_ARGS("s", reason), SD_BUS_NO_RESULT, on_succeed,
                                SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("Delete", SD_BUS_NO_ARGS, SD_BUS_NO_RESULT, on_delete,
                                SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("Why", SD_BUS_NO_ARGS, SD_BUS_RESULT("a{sv}", why), on_why,
                                SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("Requeue", SD_BUS_ARGS("s", reason), SD_BUS_NO_RESULT, on_requeue,
                                SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("Suspend", SD_BUS_NO_ARGS, SD_BUS_NO_RESULT, on_suspend,
                                SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("SuspendAs", SD_BUS_ARGS("s", mode), SD_BUS_NO_RESULT, on_suspend_as,
                                SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("Resume", SD_BUS_NO_ARGS, SD_BUS_NO_RESULT, on_resume,
                                SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("ListTasks", SD_BUS_ARGS("t", after, "a{sv}", filter),
                                SD_BUS_RESULT("a(tssayttttussa{sv})", tasks), on_list_tasks,
                                SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("ListTrials", SD_BUS_ARGS("u", from),
                                SD_BUS_RESULT("a(uusuutddtsa{sv})", trials), on_list_trials,
                                SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("ReplaySearch", SD_BUS_NO_ARGS, SD_BUS_RESULT("t", events, "t", differs),
                                on_replay_search, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("RetryTask", SD_BUS_ARGS("t", task), SD_BUS_RESULT("t", changed),
                                on_retry_task, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("SkipTask", SD_BUS_ARGS("t", task), SD_BUS_RESULT("t", changed), on_skip_task,
                                SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("SteerSource", SD_BUS_ARGS("s", source, "a{sv}", changes), SD_BUS_NO_RESULT,
                                on_steer_source, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("ReplaceSources", SD_BUS_ARGS("t", version, "s", sources),
                                SD_BUS_RESULT("t", now, "u", added, "u", removed), on_replace_sources,
                                SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("CreateSavepoint", SD_BUS_ARGS("s", name, "a{sv}", options),
                                SD_BUS_RESULT("s", result), on_create_savepoint, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("OpenSession",
                                SD_BUS_ARGS("s", role, "u", index, "aay", arguments, "a{sv}", options),
                                SD_BUS_RESULT("u", session), on_open_session, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("OpenArtifacts", SD_BUS_ARGS("s", node, "aay", arguments, "a{sv}", options),
                                SD_BUS_RESULT("u", session), on_open_artifacts, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("ReadSession", SD_BUS_ARGS("u", session, "t", wait),
                                SD_BUS_RESULT("a(yay)", chunks, "b", end, "i", status, "s", why),
                                api_on_read_session, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("WriteSession", SD_BUS_ARGS("u", session, "ay", data, "b", end),
                                SD_BUS_NO_RESULT, api_on_write_session, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("ResizeSession", SD_BUS_ARGS("u", session, "q", rows, "q", columns),
                                SD_BUS_NO_RESULT, api_on_resize_session, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("CloseSession", SD_BUS_ARGS("u", session), SD_BUS_NO_RESULT,
                                api_on_close_session, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("Rerun", SD_BUS_ARGS("a{sv}", options),
                                SD_BUS_RESULT("u", number, "o", job, "as", warnings), on_rerun,
                                SD_BUS_VTABLE_UNPRIVILEGED | SD_BUS_VTABLE_SENSITIVE),
        SD_BUS_METHOD_WITH_ARGS("Replace", SD_BUS_ARGS("s", node), SD_BUS_RESULT("u", moved), on_replace,
                                SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("AllowNode", SD_BUS_ARGS("s", node), SD_BUS_NO_RESULT, on_allow_node,
                                SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("Capture", SD_BUS_ARGS("s", role, "u", index, "a{sv}", options),
                                SD_BUS_RESULT("a(uusssss)", threads, "a{sv}", info), on_capture,
                                SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("Trace", SD_BUS_ARGS("s", role, "u", index, "s", kind, "a{sv}", options),
                                SD_BUS_RESULT("t", since, "a(stttat)", histograms, "a{sv}", info), on_trace,
                                SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_SIGNAL_WITH_ARGS("ExecutorChanged",
                                SD_BUS_ARGS("s", role, "u", index, "u", attempt, "s", state, "s", node), 0),
        SD_BUS_VTABLE_END,
};
