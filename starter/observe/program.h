/* SPDX-License-Identifier: Apache-2.0 */
/* What a program says of itself when it gets the stack signal: its file stacks.PID, which it keeps open for
 * appending. The directory and the file are the job's user's, who may put anything there: nothing is
 * followed, and only a plain file of his own is read. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

struct program {
        int fd;
};

/* directory: the job's work directory; the file is in its tmp/. Empties the file. -ENOENT: it has none;
 * -EPERM: it is no such file. */
int program_open(const char *directory, pid_t pid, uint32_t uid, struct program *ret);
/* Until all have written and written no more, at most PROGRAMS_WAIT_USEC. */
#define PROGRAMS_WAIT_USEC 1500000u
void programs_wait(const struct program *p, size_t n);
/* The end of what is there, NULL: nothing. Allocated. The file is emptied again. */
char *program_read(const struct program *p);
void program_close(struct program *p);
