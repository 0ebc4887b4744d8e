/* SPDX-License-Identifier: Apache-2.0 */
/* Executors of a job that run, and one call of each of them. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "tools/primusctl/cli/cli.h"

struct target {
        char *role, *node;
        uint32_t index, rank;
};

struct targets {
        struct job_ref job;
        struct target *list;
        size_t n;
};
void targets_done(struct targets *t);

/* texts: ranks, ROLE or ROLE/INDEX each; none: all that run. 0 or an exit status: also where there are none.
 */
int targets_find(struct cli *c, const char *job, char **texts, size_t n, struct targets *ret);

/* Calls a method of the job for each target that append (> 0: leave it out) gives its arguments behind role
 * and index, several at once; then answered for each, in any order: error NULL, or what came instead.
 * stop (may be NULL): a signal has come, and it is to end. 0 or an exit status. */
struct target_call {
        const char *method;
        uint64_t timeout_usec; /* 0: the bus's */
        int (*append)(sd_bus_message *m, size_t i, void *userdata);
        void (*answered)(size_t i, sd_bus_message *reply, const sd_bus_error *error, void *userdata);
        const volatile int *stop;
};
int targets_call(struct cli *c, const struct targets *t, const struct target_call *call, void *userdata);

/* "ROLE" or "ROLE/INDEX" into its parts; *ret_role is allocated. CLI_USAGE with a sentence when it is
 * neither. */
int role_parse(const struct cli *c, const char *text, char **ret_role, uint32_t *ret_index,
               bool *ret_has_index);
