/* SPDX-License-Identifier: Apache-2.0 */
/* The methods of a job's object, in files by what they are about; job-object.c has the table. Each is a
 * caller_handler: userdata is the manager, and the caller may do it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <systemd/sd-bus.h>

struct manager;
struct job;
struct executor;

/* The job of the object that was called, which may have left memory while polkit was asked: then NULL, and
 * the error is set. */
struct job *api_job_or_error(struct manager *m, sd_bus_message *call, sd_bus_error *error);

/* A job of -ENOENT's kind: the handler has set the error. */
#define API_JOB_GONE (-ENOENT)

/* job-status.c */
int api_get_status(sd_bus_message *call, uint32_t uid, void *userdata, sd_bus_error *error);
int api_list_executors(sd_bus_message *call, uint32_t uid, void *userdata, sd_bus_error *error);
/* job-health.c: the key "verdicts" of GetStatus, where there are some; also of hosts that nothing is heard of
 */
int api_append_verdicts(sd_bus_message *reply, const struct manager *m, const struct job *j);
#define HEALTH_SILENT "silent"
/* Nothing has been heard of its host for SuspectSec. */
bool api_is_silent(const struct manager *m, const struct executor *e);
/* telemetry-calls.c */
int api_telemetry(sd_bus_message *call, uint32_t uid, void *userdata, sd_bus_error *error);
/* metric-calls.c */
int api_list_metrics(sd_bus_message *call, uint32_t uid, void *userdata, sd_bus_error *error);
int api_read_metrics(sd_bus_message *call, uint32_t uid, void *userdata, sd_bus_error *error);
/* job-log.c */
int api_read_log(sd_bus_message *call, uint32_t uid, void *userdata, sd_bus_error *error);
/* job-data.c */
int api_list_tasks(sd_bus_message *call, uint32_t uid, void *userdata, sd_bus_error *error);
int api_retry_task(sd_bus_message *call, uint32_t uid, void *userdata, sd_bus_error *error);
int api_skip_task(sd_bus_message *call, uint32_t uid, void *userdata, sd_bus_error *error);
int api_suspend(sd_bus_message *call, uint32_t uid, void *userdata, sd_bus_error *error);
int api_suspend_as(sd_bus_message *call, uint32_t uid, void *userdata, sd_bus_error *error);
int api_resume(sd_bus_message *call, uint32_t uid, void *userdata, sd_bus_error *error);
/* job-sources.c */
int api_steer_source(sd_bus_message *call, uint32_t uid, void *userdata, sd_bus_error *error);
int api_replace_sources(sd_bus_message *call, uint32_t uid, void *userdata, sd_bus_error *error);
/* job-sessions.c; but for the first they are entries of the table, and know their caller by its name */
int api_open_artifacts(sd_bus_message *call, uint32_t uid, void *userdata, sd_bus_error *error);
int api_open_session(sd_bus_message *call, uint32_t uid, void *userdata, sd_bus_error *error);
int api_on_read_session(sd_bus_message *call, void *userdata, sd_bus_error *error);
int api_on_write_session(sd_bus_message *call, void *userdata, sd_bus_error *error);
int api_on_resize_session(sd_bus_message *call, void *userdata, sd_bus_error *error);
int api_on_close_session(sd_bus_message *call, void *userdata, sd_bus_error *error);
/* job-capture.c */
int api_capture(sd_bus_message *call, uint32_t uid, void *userdata, sd_bus_error *error);
/* job-trace.c */
int api_trace(sd_bus_message *call, uint32_t uid, void *userdata, sd_bus_error *error);
/* Reads role and index of a call of a job's: an executor that has processes now. NULL: the error is set. */
struct executor *api_running_executor(struct manager *m, sd_bus_message *call, sd_bus_error *error);
/* A call that is passed on to the agent of an executor that runs, and answered when that has answered. */
struct api_asking {
        sd_bus_message *call;
        char node[65];
};
int api_asking_new(sd_bus_message *call, const struct executor *e, struct api_asking **ret);
void api_asking_free(struct api_asking *a);
/* What the agent was asked with has failed: r is why. Frees it; returns what the handler returns. */
int api_asking_failed(struct api_asking *a, int r, sd_bus_error *error);
/* Answers that the agent refused it or did not answer. */
void api_asking_refused(const struct api_asking *a, const sd_bus_error *e);
/* search-calls.c; the first: the key "search" of GetStatus and TrySubmit, of a search alone */
int api_append_search(sd_bus_message *reply, const struct job *j);
int api_list_trials(sd_bus_message *call, uint32_t uid, void *userdata, sd_bus_error *error);
int api_replay_search(sd_bus_message *call, uint32_t uid, void *userdata, sd_bus_error *error);
/* array-calls.c */
int api_why(sd_bus_message *call, uint32_t uid, void *userdata, sd_bus_error *error);
int api_requeue(sd_bus_message *call, uint32_t uid, void *userdata, sd_bus_error *error);
int api_rerun(sd_bus_message *call, uint32_t uid, void *userdata, sd_bus_error *error);
/* node-calls.c */
int api_replace(sd_bus_message *call, uint32_t uid, void *userdata, sd_bus_error *error);
int api_allow_node(sd_bus_message *call, uint32_t uid, void *userdata, sd_bus_error *error);
/* savepoint-calls.c */
int api_create_savepoint(sd_bus_message *call, uint32_t uid, void *userdata, sd_bus_error *error);
