/* SPDX-License-Identifier: Apache-2.0 */
/* A command as a job: what "run" makes of its options, for scripts that have them in their head, too. */
#pragma once

#include "tools/primusctl/cli/options.h"
#include "tools/primusctl/commands/turn.h"

/* The targets of run_command.options. */
struct run_options {
        uint32_t n, per_host, gpus;
        const char *hosts, *name, *cpus, *output, *begin, *send, *input, *array;
        uint64_t memory, time, send_max;
        struct option_list env, secrets, after;
        bool no_env, pack, detach, parsable, pty;
        struct turn_options turn;
};
void run_options_done(struct run_options *o);

#define RUN_ROLE "task"

/* The job of a command as a configuration (allocated); files: what it says is sent along, or NULL. *ret_n:
 * its executors. */
int run_configure(const struct cli *c, const struct run_options *o, char *const *command, const char *files,
                  char **ret_text, uint32_t *ret_n);

/* What its processes see of the caller's environment: all of it but the session, or what the options name.
 * ret->items is the caller's to free. */
int run_environment(const struct cli *c, const struct run_options *o, struct option_list *ret);
