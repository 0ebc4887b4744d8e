/* SPDX-License-Identifier: Apache-2.0 */
/* One thread after the other, from /proc. Everything here may hang as long as what it looks at does. */
#pragma once

#include <dirent.h>
#include <sys/types.h>

#include "lib/wire/capture.h"

/* Of a process; 0: it is gone. */
uint32_t threads_count(const char *proc, pid_t pid);

/* The directory of its threads, to be closed with closedir(); NULL: it is gone. */
DIR *threads_open(const char *proc, pid_t pid);
/* 0: no more. */
pid_t threads_next(DIR *list);

/* -ESRCH: it is gone; what cannot be read is left out. */
int thread_read(const char *proc, pid_t pid, pid_t tid, struct capture_thread *ret);
