/* SPDX-License-Identifier: Apache-2.0 */
/* primus-executor --scan: lists the files of a data source, as the job's user, to agentd. As Hadoop's input
 * formats do, it takes the files that lie directly in the directories that the pattern names (or the files it
 * names), leaves out names that begin with '.' or '_' (_SUCCESS, .part-0.crc), and does not descend. The
 * order is bytewise by path. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "lib/wire/tasks.h"

#define SCAN_FILES_MAX 10000000u

struct scan_request {
        const char *source; /* name of the source, for messages */
        const char *path;  /* absolute path or glob of directories or files, perhaps with file:// before it */
        const char *name;  /* glob on base names; NULL: all */
        const char *after; /* path: only those behind it, for going on; NULL: from the start */
};

struct scan_list {
        char **paths; /* sorted */
        size_t n, allocated;
};

/* Lists the paths. 0, or negative errno with *ret_error (allocated): which path, and why. */
int scan_collect(const struct scan_request *q, struct scan_list *ret, char **ret_error);
void scan_list_done(struct scan_list *l);

/* Looks at one path of the list: 1 with *ret (its path is the given one, not a copy), 0 when it is gone or no
 * regular file, or negative errno. */
int scan_examine(const char *path, struct scan_entry *ret);

/* Runs the whole: connects to agentd, sends the batches, says good-bye. Exit status: 0 listed, 1 the source
 * cannot be read (agentd has been told why), 70 or 73 as for --feed. */
int scan_run(const char *socket, const struct scan_request *q);
