/* SPDX-License-Identifier: Apache-2.0 */
/* How attempts of executors end, in words. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Is this the state of an executor's attempt (or of a job) that is over? */
bool state_is_end(const char *state);

struct attempt_end {
        const char *state, *result, *reason; /* result: systemd's, such as "oom-kill" */
        bool has_status;
        int32_t status;
};

/* "exit 3", "signal SEGV", "killed: out of memory", the reason otherwise; why it waits, or "", while it is
 * not over. Into buf, which is returned. */
char *attempt_end_text(const struct attempt_end *e, char *buf, size_t size);
