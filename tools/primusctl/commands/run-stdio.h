/* SPDX-License-Identifier: Apache-2.0 */
/* Standard input, or the terminal, of a command that "run" submitted: primus-stdio holds the command's end in
 * its executor, a session leads there, and where it breaks another one goes on with the very next byte. */
#pragma once

#include <stdbool.h>
#include <systemd/sd-event.h>

#include "tools/primusctl/bus/job.h"
#include "tools/primusctl/cli/cli.h"
#include "tools/primusctl/cli/options.h"

struct run_stdio_options {
        bool wanted; /* there is something to bring */
        bool pty;
        bool may_leave; /* a person types at a terminal: the command outlives the person */
        uint32_t rank;
        bool lines; /* others than the command on the terminal print to ours */
        char key[33];
};

/* What the caller's standard input asks for. input: a rank, "none", or NULL; n: ranks. 0 or an exit status.
 */
int run_stdio_choose(const struct cli *c, const char *input, bool pty, bool detach,
                     struct run_stdio_options *ret);

/* The command with primus-stdio before it; the array is the caller's to free, strings stay theirs. The
 * variable with its key goes into env. 0 or an exit status. */
int run_stdio_wrap(const struct cli *c, const struct run_stdio_options *o, char *const *command,
                   struct option_list *env, char rank[static 16], char ***ret);

struct run_stdio;

int run_stdio_new(struct cli *c, sd_event *event, const struct job_ref *job,
                  const struct run_stdio_options *o, struct run_stdio **ret);
void run_stdio_free(struct run_stdio *io);
/* An executor of the job is new or has changed. */
void run_stdio_executor(struct run_stdio *io, const struct executor *e);
/* The job cannot do without us: not all of its input is with it, or its terminal is here. */
bool run_stdio_needed(const struct run_stdio *io);
