/* SPDX-License-Identifier: Apache-2.0 */
/* What has to be looked up on file systems before a unit can be made, with the rights of the job's user: where the command
 * is, and the output file. It may block (NFS), so it is done in a thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "lib/wire/messages.h"

struct preparation {
        uint32_t uid;
        char *directory; /* the working directory */
        char *command;   /* argv[0] */
        char *path;      /* $PATH of the executor, or NULL */
        char *output;    /* absolute name of the output file, or NULL */
        /* results */
        char *executable; /* NULL: leave it to systemd */
        int output_fd;    /* -EBADF: none */
        char *why;        /* it failed: one sentence */
};

/* node, for the output's %n. -EINVAL with *ret_why: the output pattern is none. */
int preparation_new(const struct start_order *o, const char *directory, const char *node, struct preparation **ret,
                    char **ret_why);
void preparation_free(struct preparation *p);
/* False: preparation_run() need not be called, the results are there. */
bool preparation_blocks(const struct preparation *p);
/* In a thread. */
void preparation_run(void *p);

/* Expands %j %r %i %a %n %% of an output pattern; a relative one is below directory. NULL on ENOMEM, -EINVAL in errno for an
 * unknown letter. Allocated. */
char *output_expand(const char *pattern, const struct executor_id *id, const char *node, const char *directory);
