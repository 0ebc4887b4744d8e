/* SPDX-License-Identifier: Apache-2.0 */
/* The files of /etc/primus/job-defaults.d, see primus-masterd.conf(5). */
#pragma once

#include "masterd/conf/pools.h"
#include "masterd/spec/layers.h"

#define JOB_DEFAULTS_DIRECTORY PRIMUS_SYSCONFDIR "/job-defaults.d"

/* Reads all NAME.json of the directory, in the order of their names. None, or no directory: *ret is NULL.
 * -EINVAL: one cannot be read, may be written by others than root, is not what the schema wants, or names a
 * pool that there is not; each is logged as an error with its place. -ENOMEM. */
int job_defaults_read(const char *directory, const struct pools *pools, struct layers **ret);
