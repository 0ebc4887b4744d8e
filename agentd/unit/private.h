/* SPDX-License-Identifier: Apache-2.0 */
/* The files of an executor and of a job on this host:
 *   /run/primus/x/UNIT/            root 0711
 *       env                        root 0600, read by PID 1 for EnvironmentFile=
 *       stop                       root 0600, present once a stop was ordered
 *       rendezvous                 the job's user 0400: PRIMUS_EPOCH=, then the rendezvous variables
 *       secrets/NAME               the job's user, 0500 and 0400
 *       progress                   the job's user 0600: 16 bytes, see lib/primus/progress.c
 *   /run/primus/hooked/NUMBER-UID8 the prolog of the job has been here
 *   /var/lib/primus-agent/work/NUMBER-UID8/      the job's user 0700, with tmp/
 *   /run/systemd/units/log-extra-fields:UNIT     systemd's, for journald; it does not remove it (252)
 * root, for tests, is put before every path ("" in life). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <systemd/sd-id128.h>

#include "lib/wire/messages.h"

#define PRIVATE_DIR "/run/primus/x"
#define WORK_DIR "/var/lib/primus-agent/work"

/* The text of an environment file that systemd reads back as exactly these NAME=VALUE (NULL-ended): values in
 * double quotes, escaped. -EINVAL: a name is not one, or a value is not UTF-8 (systemd refuses the whole file
 * then); then *ret_bad (if not NULL) points to the entry in env. -ENOMEM. */
int environment_format(char *const *env, char **ret, size_t *ret_size, const char **ret_bad);

/* Makes the private directory; what an earlier try left is replaced. -EINVAL as above, -EEXIST never. */
int private_create(const char *root, const char *unit, uint32_t uid, const char *env, size_t env_size,
                   const struct secret *secrets, size_t n_secrets);
/* The page in which the executor says how far it is: nothing yet. -EEXIST never. */
int private_create_progress(const char *root, const char *unit, uint32_t uid);
int private_mark_stop(const char *root, const char *unit, const char *reason);
/* Lines NAME=VALUE, the epoch first, in the place of what was there. env: NULL-ended; -EINVAL: a line break
 * in it. */
int private_write_rendezvous(const char *root, const char *unit, uint32_t uid, uint64_t epoch,
                             char *const *env);
/* The epoch in that file; 0: there is none. */
uint64_t private_rendezvous_epoch(const char *root, const char *unit);
bool private_stop_marked(const char *root, const char *unit);
/* A file of root's there: put is fine where it is already; get: -ENOENT, or allocated, NUL-ended. */
int private_put(const char *root, const char *unit, const char *name, const void *data, size_t size);
int private_get(const char *root, const char *unit, const char *name, size_t max, char **ret);
bool private_has(const char *root, const char *unit, const char *name);
int private_remove(const char *root, const char *unit);

/* Removes what systemd leaves of a unit that is gone. sweep: of all executors' units that do not run. */
void extra_fields_remove(const char *root, const char *unit);
void extra_fields_sweep(const char *root);

/* Whether the prolog of the job has been on this host since it booted: a mark in /run. */
bool hooked_marked(const char *root, uint32_t job, sd_id128_t job_uid);
int hooked_mark(const char *root, uint32_t job, sd_id128_t job_uid);
void hooked_clear(const char *root, uint32_t job, sd_id128_t job_uid);

/* The job's work directory, made where it is missing. -EPERM: it belongs to another user. */
int work_create(const char *root, uint32_t job, sd_id128_t job_uid, uint32_t uid);
/* Whose it is; 0: nobody's, or root's. */
uint32_t work_owner(const char *root, uint32_t job, sd_id128_t job_uid);
/* Its path, allocated; NULL on ENOMEM. */
char *work_path(const char *root, uint32_t job, sd_id128_t job_uid);
/* Begins its age anew. */
void work_touch(const char *root, uint32_t job, sd_id128_t job_uid);
/* Takes the directory from its name, to be removed by remove_tree() at leisure: whatever gets that name
 * afterwards is another one. *ret NULL: there is none. */
int work_detach(const char *root, const char *name, char **ret);
/* Calls f for the name of every work directory (NUMBER-UID8) that is older than age_usec, and for what
 * work_detach() left ("." in front), until it returns < 0. */
typedef int (*work_visitor)(const char *name, void *userdata);
int work_visit_old(const char *root, uint64_t now_usec, uint64_t age_usec, work_visitor f, void *userdata);
