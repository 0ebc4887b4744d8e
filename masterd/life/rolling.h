/* SPDX-License-Identifier: Apache-2.0 */
/* Rolling restarts: executors of a job get another attempt, some at a time, each only when those before run
 * again. */
#pragma once

#include <stdint.h>
#include <systemd/sd-bus.h>

#include "masterd/job/job.h"

struct manager;

/* Begins one: of all roles (role "") or one, of all its executors (index UINT32_MAX) or one, batch at once
 * (0: one). One that is under way is replaced by it. *ret_n: so many will be started again. Sets the error
 * where that cannot be. */
int rolling_begin(struct manager *m, struct job *j, uint32_t uid, const char *role, uint32_t index,
                  uint32_t batch, uint32_t *ret_n, sd_bus_error *error);

/* Something of the job has changed: the next ones may have their turn. Also after a restart of the master. */
void rolling_go_on(struct manager *m, struct job *j);
