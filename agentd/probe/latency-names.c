/* SPDX-License-Identifier: Apache-2.0 */
/* The words of what is measured on demand. */
#include "agentd/probe/latency.h"

static const char *const classes[_OBSERVE_TRACE_MAX][_TRACE_CLASS_MAX] = {
        [OBSERVE_TRACE_IO] = { [TRACE_READ] = "read",
                               [TRACE_WRITE] = "write",
                               [TRACE_RECEIVE] = "receive",
                               [TRACE_SEND] = "send",
                               [TRACE_SYNC] = "sync" },
        [OBSERVE_TRACE_RUNQUEUE] = { [TRACE_READ] = "wait" },
};

const char *latency_class_name(enum observe_trace k, unsigned class) {
        return class < _TRACE_CLASS_MAX ? classes[k][class] : NULL;
}
