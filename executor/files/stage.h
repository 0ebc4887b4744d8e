/* SPDX-License-Identifier: Apache-2.0 */
/* primus-executor --stage: unpacks a job's bundle (tar, zstd) into its work directory, as the job's user,
 * once for all of its executors on a host. What an archive may hold: directories, regular files, hard and
 * symbolic links that stay inside; no absolute path, no "..", no device, FIFO or socket. Setuid, setgid and
 * sticky bits are dropped, and so are owners, ACLs and extended attributes. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct stage_limits {
        uint64_t entries, bytes;
};
extern const struct stage_limits stage_limits_default; /* 1,048,576 entries, 64 GiB */

/* Unpacks bundle into directory, which exists. 0, or negative errno with *ret_error (allocated, may be NULL):
 * -EBADMSG for an archive that is refused. What was unpacked before the refusal is left. */
int stage_unpack(const char *bundle, const char *directory, const struct stage_limits *limits,
                 char **ret_error);

/* The same under a lock in directory, leaving a marker with the bundle's file name (its SHA-256 in agentd's
 * cache), so that whoever comes second finds it done. Exit status: 0, or 1 with a line on standard error. */
int stage_run(const char *bundle, const char *directory);
