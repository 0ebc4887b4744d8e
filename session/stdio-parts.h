/* SPDX-License-Identifier: Apache-2.0 */
/* What the two sides of primus-stdio share. Not for others. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>
#include <sys/un.h>

#include "lib/wire/stdio-frames.h"

/* Its own failures, and input that broke off; as of timeout(1) and env(1). */
#define STDIO_STATUS 125

/* Where the holder listens: a file in the job's working directory, which is its user's alone, named by the
 * key in the environment and the attempt. -EINVAL: there is no key. */
int stdio_address(struct sockaddr_un *ret);
/* The other side is of our own user: nobody else is let in, and nobody else's name is taken for ours. */
bool stdio_is_ours(int fd);
int stdio_fail(const char *what, int error);

struct stdio_options {
        bool pty;
        bool may_leave; /* a person types it: it is never whole, and who types may go */
        char **command; /* NULL-ended */
};

/* Who holds the writing end of a command's pipe beside the holder, and goes on when that is killed: until it
 * is let go, or nobody reads the pipe. It takes on the caller's signal mask. */
struct keeper {
        pid_t pid; /* a child; 0: there is none */
        int word;
};
int keeper_start(int pipe, struct keeper *ret);
void keeper_let_go(struct keeper *k);

int stdio_hold(const struct stdio_options *o);
int stdio_join(void);
