/* SPDX-License-Identifier: Apache-2.0 */
/* Where the processes of one executor meet. */
#pragma once

/* A path for the nth Unix socket of that name, the same in all processes of this executor and in no other's,
 * in a directory that is this user's alone: the job's work directory, or one in /tmp. For free(). -EPERM:
 * somebody else made that. */
int place_local(const char *name, unsigned n, char **ret);
