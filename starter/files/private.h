/* SPDX-License-Identifier: Apache-2.0 */
/* Makes and removes the files of executors and jobs on this host; lib/unit/files.h has which these are. root
 * is put before every path ("" in life). */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <systemd/sd-id128.h>

#include "lib/wire/messages.h"

/* The text of an environment file that systemd reads back as exactly these NAME=VALUE (NULL-ended): values in
 * double quotes, escaped. -EINVAL: a name is not one, or a value is not UTF-8 (systemd refuses the whole file
 * then); then *ret_bad (if not NULL) points to the entry in env. -ENOMEM. */
int environment_format(char *const *env, char **ret, size_t *ret_size, const char **ret_bad);

/* Makes the private directory; what an earlier try left is replaced. -EINVAL as above, -EEXIST never. */
int private_create(const char *root, const char *unit, uint32_t uid, const char *env, size_t env_size,
                   const struct secret *secrets, size_t n_secrets);
/* The page in which the executor says how far it is: nothing yet. -EEXIST never. */
int private_create_progress(const char *root, const char *unit, uint32_t uid);
/* Whose the executor is: the owner of that page, which its user cannot give away. -ENOENT: there is none. */
int private_owner(const char *root, const char *unit, uint32_t *ret);
/* Lines NAME=VALUE, the epoch first, in the place of what was there. env: NULL-ended; -EINVAL: a line break
 * in it. */
int private_write_rendezvous(const char *root, const char *unit, uint32_t uid, uint64_t epoch,
                             char *const *env);
/* A file of root's there; fine where it is already. */
int private_put(const char *root, const char *unit, const char *name, const void *data, size_t size);
int private_remove(const char *root, const char *unit);

/* Removes what systemd leaves of a unit that is gone. sweep: of all executors' units that do not run. */
void extra_fields_remove(const char *root, const char *unit);
void extra_fields_sweep(const char *root);

/* Marks that the prolog of the job has been here, and takes the mark back. */
int hooked_mark(const char *root, uint32_t job, sd_id128_t job_uid);
void hooked_clear(const char *root, uint32_t job, sd_id128_t job_uid);

/* The job's work directory, made where it is missing. -EPERM: it belongs to another user. */
int work_create(const char *root, uint32_t job, sd_id128_t job_uid, uint32_t uid);
/* Begins its age anew. */
void work_touch(const char *root, uint32_t job, sd_id128_t job_uid);
/* Takes the directory from its name, to be removed by remove_tree() at leisure: whatever gets that name
 * afterwards is another one. *ret NULL: there is none. -EINVAL: no name of one. */
int work_detach(const char *root, const char *name, char **ret);

/* The job's directory of artifacts, as its work directory: made where there is none (-EPERM: it is another
 * user's), its age begun anew, put aside for the remover. */
int artifacts_create(const char *root, uint32_t job, sd_id128_t job_uid, uint32_t uid);
void artifacts_touch(const char *root, uint32_t job, sd_id128_t job_uid);
int artifacts_detach(const char *root, const char *name, char **ret);
