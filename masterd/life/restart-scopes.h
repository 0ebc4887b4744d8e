/* SPDX-License-Identifier: Apache-2.0 */
/* Executors that live and die together (restartScope), and failures that are counted together. A scope that
 * starts again first loses those that are left of it, then waits for its back-off, then is placed as a whole.
 */
#pragma once

#include <stdint.h>

#include "masterd/job/job.h"

struct manager;
struct scope_record;

/* One of the scope has ended (its record says so) and has to start again, after delay: stops the others and
 * sends all of them back to be placed. */
void restart_scopes_restart(struct manager *m, struct executor *e, uint64_t delay_usec);
/* One that was stopped for that has ended. */
void restart_scopes_left(struct manager *m, struct executor *e);
/* Failures of the scope, or of the role's budget, have changed. */
void restart_scopes_changed(struct manager *m, struct executor *e);
/* Another attempt of the job: nothing is left of what was. */
void restart_scopes_reset(struct manager *m, struct job *j);

/* Some of a scope that was started again do not run yet. */
bool restart_scopes_restarting(const struct job *j);

/* An executor's state is another one: where all of a scope that was started again run, that is an event. */
void restart_scopes_up(struct manager *m, struct job *j);

/* Some of its executors have left the job, or others have come. */
void restart_scopes_recount(struct manager *m, struct job *j);
/* The membership of that role is another one (its name; it may have been removed, before: its configuration
 * then): its scope, where somebody of it is under way, starts again together, once, and that is nobody's
 * failure. Where the job has a signal it is sent first, and they stop as long afterwards as it says. Not
 * where the ranks are told of each other by a signal (rendezvous.signal): these follow by themselves. */
void restart_scopes_regroup(struct manager *m, struct job *j, const struct role_spec *role);
/* Who leaves is not stopped yet: his scope starts again in a moment, and he goes then. */
bool restart_scopes_keep_leaving(const struct executor *e);

/* When the store is read: before the executors, and behind them. */
int restart_scopes_load(void *manager, const struct scope_record *r);
void restart_scopes_resume(struct manager *m, struct job *j);
