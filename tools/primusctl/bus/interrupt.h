/* SPDX-License-Identifier: Apache-2.0 */
/* Ctrl-C while a job is being followed: the first detaches and says how to come back, a second within a
 * second kills. */
#pragma once

#include <systemd/sd-event.h>

#include "tools/primusctl/cli/cli.h"

struct interrupt;

/* Keeps SIGINT and SIGTERM from ending the tool from now on; to be called before a job is submitted, so that
 * one never goes on unsaid. interrupt_new() then acts on what came. */
void interrupt_block(void);

/* detached: called at the first Ctrl-C, before the sentence is printed (stop drawing); may be NULL. The event
 * loop ends with CLI_DETACHED or CLI_KILLED. */
int interrupt_new(struct cli *c, sd_event *event, const struct job_ref *job, void (*detached)(void *userdata),
                  void *userdata, struct interrupt **ret);
/* Where it says so at Ctrl-C, the job cannot go on without the tool: it is killed at once. */
void interrupt_kill_if(struct interrupt *i, bool (*needed)(void *userdata));
/* For a command without a job to follow: whatever ends a tool from outside (SIGINT, SIGTERM, SIGHUP) calls
 * handler. 0 or negative errno. */
int interrupt_catch(sd_event *event, sd_event_signal_handler_t handler, void *userdata);
void interrupt_free(struct interrupt *i);
DEFINE_CLEANUP(struct interrupt *, interrupt_free)
