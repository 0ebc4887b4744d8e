/* SPDX-License-Identifier: Apache-2.0 */
/* clang-format off */
/* The files of an executor and of a job on this host, and what agentd reads of them; primus-starter writes
 * them (starter/files/private.h). "agent" is the group of primus-agentd's user.
 *   /run/primus/x/UNIT/                      root:agent 2711
 *     env                                    root 0600, read by PID 1 for EnvironmentFile=
 *     stop                                   root:agent 0640, present once a stop was ordered
 *     stop-told                              root:agent 0640, present once systemd has passed that stop on
 *     identity                               root:agent 0640, whose it is: see lib/unit/identity.h
 *     ready, is-ready, overdue               root:agent 0640, see agentd/executors/units-ready.c
 *     rendezvous                             the job's user:agent 0440: PRIMUS_EPOCH=, then the variables
 *     secrets/NAME                           the job's user, 0500 and 0400
 *     progress                               the job's user:agent 0660: 16 bytes, see lib/primus/progress.c
 *   /run/primus/alone/UNIT                   root 0644, empty: it has to end with the link (primus-alone)
 *   /run/primus/exits/UNIT                   root:agent 0640, in a directory 2750: how it ended, by primus-exit
 *   /run/primus/hooked/NUMBER-UID8           the prolog of the job has been here
 *   /var/lib/primus-agent/work/NUMBER-UID8/  the job's user 0700, with tmp/
 *   /var/lib/primus-agent/artifacts/NUMBER-UID8/ROLE-INDEX/  the job's user 0700: $PRIMUS_ARTIFACTS
 *   /run/systemd/units/log-extra-fields:UNIT systemd's, for journald; it does not remove it (252)
 * root, for tests, is put before every path ("" in life). */
/* clang-format on */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <systemd/sd-id128.h>

#define RUN_DIR "/run/primus"
#define PRIVATE_DIR RUN_DIR "/x"
#define PRIVATE_IDENTITY "identity"
#define STOP_TOLD_FILE "stop-told"
#define EXITS_DIR RUN_DIR "/exits"
#define HOOKED_DIR RUN_DIR "/hooked"
#define ALONE_DIR RUN_DIR "/alone" /* root's: a file for each unit that has to end with the link */
#define BOOT_FILE RUN_DIR "/boot"  /* the id of this boot, of root's */
#define AGENT_DIR RUN_DIR "/agent" /* agentd's own */
#define FEED_SOCKET AGENT_DIR "/feed.sock"
#define STATE_DIR "/var/lib/primus-agent"
#define WORK_DIR STATE_DIR "/work"
#define ARTIFACTS_DIR STATE_DIR "/artifacts"
#define BUNDLES_DIR STATE_DIR "/bundles"

bool private_stop_marked(const char *root, const char *unit);
/* The epoch of its rendezvous; 0: there is none. */
uint64_t private_rendezvous_epoch(const char *root, const char *unit);
/* A file there: -ENOENT, or allocated, NUL-ended. */
int private_get(const char *root, const char *unit, const char *name, size_t max, char **ret);
bool private_has(const char *root, const char *unit, const char *name);

/* The mark that the prolog of the job has been on this host since it booted; its path, allocated. */
char *hooked_path(const char *root, uint32_t job, sd_id128_t job_uid);
bool hooked_marked(const char *root, uint32_t job, sd_id128_t job_uid);

/* Whose the job's work directory is; 0: nobody's, or root's. */
uint32_t work_owner(const char *root, uint32_t job, sd_id128_t job_uid);
/* Its path, allocated; NULL on ENOMEM. */
char *work_path(const char *root, uint32_t job, sd_id128_t job_uid);
/* The same of what the job's executors have left for its user on this host. */
uint32_t artifacts_owner(const char *root, uint32_t job, sd_id128_t job_uid);
char *artifacts_path(const char *root, uint32_t job, sd_id128_t job_uid);
/* Calls f for the name of every work directory (NUMBER-UID8) that is older than age_usec, and for what
 * a removal that was broken off left ("." in front), until it returns < 0. */
typedef int (*work_visitor)(const char *name, void *userdata);
int work_visit_old(const char *root, uint64_t now_usec, uint64_t age_usec, work_visitor f, void *userdata);
int artifacts_visit_old(const char *root, uint64_t now_usec, uint64_t age_usec, work_visitor f,
                        void *userdata);
