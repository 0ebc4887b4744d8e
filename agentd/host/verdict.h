/* SPDX-License-Identifier: Apache-2.0 */
/* How a unit without an exit record ended, for agentd/unit, of the journal. */
#pragma once

#include <stdint.h>

#include "agentd/executors/units.h"

/* In a thread; waits until journald has written what systemd has said. */
int unit_verdict(const char *unit, uint64_t since_real, struct unit_verdict *ret);
