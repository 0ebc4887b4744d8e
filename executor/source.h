/* SPDX-License-Identifier: Apache-2.0 */
/* Files as sources of tasks: opened as the job's user, compared with the scan, and brought into a pipe.
 * Everything ends in a text for people ("PATH: Permission denied") rather than an errno, since that is what
 * is done with it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "executor/tasks.h"

#define SOURCE_ERROR_MAX 512

/* Opens the file of t, compares it with what was scanned (inode, size, mtime; a granted 0 is not compared but
 * for the size) and finds the start of the line that the grant's offset is in. 0 with *ret_start and t->fd,
 * or -1 with error. */
int source_open(struct task *t, uint64_t *ret_start, char error[static SOURCE_ERROR_MAX]);

/* Whether the file of t is still what was scanned; NULL, or what to say. */
const char *source_check(const struct task *t);

/* Whether the byte of t's file before offset is a newline. 1, 0, or negative errno. */
int source_line_ends(const struct task *t, uint64_t offset);
