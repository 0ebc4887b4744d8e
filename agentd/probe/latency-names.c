/* SPDX-License-Identifier: Apache-2.0 */
/* The words of what is measured on demand. */
#include <string.h>

#include "agentd/probe/latency.h"

static const char *const kinds[_LATENCY_KIND_MAX] = { [LATENCY_IO] = "io", [LATENCY_RUNQUEUE] = "runqueue" };

static const char *const classes[_LATENCY_KIND_MAX][_TRACE_CLASS_MAX] = {
        [LATENCY_IO] = { [TRACE_READ] = "read",
                         [TRACE_WRITE] = "write",
                         [TRACE_RECEIVE] = "receive",
                         [TRACE_SEND] = "send",
                         [TRACE_SYNC] = "sync" },
        [LATENCY_RUNQUEUE] = { [TRACE_READ] = "wait" },
};

const char *latency_kind_to_string(enum latency_kind k) {
        return k >= 0 && k < _LATENCY_KIND_MAX ? kinds[k] : NULL;
}

enum latency_kind latency_kind_from_string(const char *s) {
        for (int i = 0; i < _LATENCY_KIND_MAX; i++)
                if (strcmp(kinds[i], s) == 0)
                        return (enum latency_kind)i;
        return _LATENCY_KIND_INVALID;
}

const char *latency_class_name(enum latency_kind k, unsigned class) {
        return class < _TRACE_CLASS_MAX ? classes[k][class] : NULL;
}
