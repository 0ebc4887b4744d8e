/* SPDX-License-Identifier: Apache-2.0 */
/* Who takes how much of PRIVATE_DIR, a small file system that all executors of the host share. What is there
 * of a unit is mostly agentd's, but the page of progress and the directory of secrets are its user's, who can
 * make them as large as they like; a kernel with quotas on such file systems is too new to be relied on. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "lib/unit/private-usage.h"

/* More than primus-starter and the library ever put there: a submission's secrets and environment are bounded
 * to less. */
#define PRIVATE_BYTES_MAX (UINT64_C(16) << 20)

struct private_filling {
        uint64_t total, used;             /* bytes */
        uint64_t total_files, used_files; /* 0: without a bound */
};
/* Of the file system at PRIVATE_DIR. */
int private_filling_read(const char *root, struct private_filling *ret);
/* Whether there is a reason to look who it is. */
bool private_filling_high(const struct private_filling *f);

/* A unit that is there, for private_usage_pick(). */
struct private_share {
        uint32_t uid;
        struct private_usage usage;
};
/* Which of n units has to go, by index: one that holds more than a unit may; where three quarters are used,
 * the largest of the user who holds most. -ENOENT: none. -ENODATA: none, since most of it is in files that
 * are open and have no name, so that nobody knows whose they are. */
ssize_t private_usage_pick(const struct private_filling *f, const struct private_share *shares, size_t n);
