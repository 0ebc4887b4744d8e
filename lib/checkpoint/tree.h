/* SPDX-License-Identifier: Apache-2.0 */
/* What lies below a directory: flushed, summed, held against what it should be, removed. Links are never
 * followed. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#define WHY_MAX 600u

/* fsync() of a file or a directory. */
int tree_flush(const char *path);
/* *ret: {NAME: {"size": BYTES, "sha256": HEX}} of all files below, which are on disk then, as their
 * directories are. -EINVAL: something is neither a file nor a directory; why is a line for each error. */
int tree_sum(const char *top, json_t **ret, char why[static WHY_MAX]);
/* Whether all files are there with their sizes, and with verify their sums. -EBADMSG: not; why. */
int tree_check(const char *top, const json_t *files, bool verify, char why[static WHY_MAX]);
/* As much of it as can be. */
void tree_remove(const char *path);
