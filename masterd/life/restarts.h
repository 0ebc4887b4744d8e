/* SPDX-License-Identifier: Apache-2.0 */
/* What follows the end of an executor: another attempt, at once or later, of it alone or with its scope, or
 * what its failover policy says.
 */
#pragma once

#include "masterd/job/job.h"

struct manager;

/* The attempt has ended with event and is recorded as such. */
void restarts_decide(struct manager *m, struct executor *e, enum executor_event event);
/* The attempt was stopped so that the executor goes on elsewhere: the next one is placed at once. */
void restarts_moved(struct manager *m, struct executor *e);
/* Decides anew about an executor that was loaded as ended: what followed had no record of its own yet. */
void restarts_redecide(struct manager *m, struct executor *e);
/* Its agent says that it is ready, or why it is not although its time is over: then it is stopped, which
 * counts as a failure. */
void restarts_ready(struct manager *m, struct executor *e, bool ready, const char *why);
