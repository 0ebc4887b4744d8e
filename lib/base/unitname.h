/* SPDX-License-Identifier: Apache-2.0 */
/* Names that are the same on every host: an executor's unit, a job's slice, and the files beside them.
 * Identity is never parsed out of these names (it is read from PRIMUS_* in the unit's environment); they are
 * for people. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <systemd/sd-id128.h>

#define UNIT_NAME_MAX 96

/* "primus-418-worker-3.1.service". Returns buf. */
char *executor_unit_name(uint32_t job, const char *role, uint32_t index, uint32_t attempt,
                         char buf[static UNIT_NAME_MAX]);

/* Whether a name looks like one of those. */
bool executor_unit_name_valid(const char *name);

#define SESSION_UNIT_NAME_MAX 112

/* "primus-session-418-worker-3.1.7.service", of a session in that executor. Returns buf. */
char *session_unit_name(uint32_t job, const char *role, uint32_t index, uint32_t attempt, uint32_t session,
                        char buf[static SESSION_UNIT_NAME_MAX]);

#define WORK_NAME_MAX 24

/* "418-9f86d081", a job's work directory: number and the first 8 hex digits of its uid. Returns buf. */
char *work_name(uint32_t job, sd_id128_t job_uid, char buf[static WORK_NAME_MAX]);
/* The reverse; the rest of *ret_uid is 0. -EINVAL: no such name. */
int work_name_parse(const char *name, uint32_t *ret_job, sd_id128_t *ret_uid);

/* "primus-get-418.7.service", of session 7, which reads what job 418 has left on the host. Returns buf. */
char *get_unit_name(uint32_t job, uint32_t session, char buf[static UNIT_NAME_MAX]);
/* "primus-418.slice". Returns buf. */
char *job_slice_name(uint32_t job, char buf[static UNIT_NAME_MAX]);
