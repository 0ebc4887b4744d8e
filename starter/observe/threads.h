/* SPDX-License-Identifier: Apache-2.0 */
/* One thread after the other, from /proc. Everything here may hang as long as what it looks at does. */
#pragma once

#include <dirent.h>
#include <sys/types.h>

#include "lib/observe/stream.h"

/* Of a process; 0: it is gone. */
uint32_t threads_count(const char *proc, pid_t pid);

/* The directory of its threads, to be closed with closedir(); NULL: it is gone. */
DIR *threads_open(const char *proc, pid_t pid);
/* 0: no more. */
pid_t threads_next(DIR *list);

/* -ESRCH: it is gone; what cannot be read is left out. *ret_stack: the kernel's functions, allocated; NULL:
 * they cannot be read. */
int thread_read(const char *proc, pid_t pid, pid_t tid, struct stream_thread *ret, char **ret_stack);
