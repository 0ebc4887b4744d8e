/* SPDX-License-Identifier: Apache-2.0 */
/* What the host itself says of its load, memory and pressure, and the agent of itself; read when asked for.
 */
#pragma once

#include "agentd/metrics/exposition.h"

/* root: "" in life. labels: of each sample. */
void host_add(struct exposition *x, const char *root, const char *labels);
/* CPU time and memory of this process. */
void host_add_agent(struct exposition *x, const char *root, const char *labels);
