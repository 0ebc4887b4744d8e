/* SPDX-License-Identifier: Apache-2.0 */
/* Words of org.primus.Starter1.Observe. */
#include "lib/observe/observe.h"

#include <stddef.h>
#include <string.h>

static const char *const programs[_OBSERVE_PROGRAM_MAX] = {
        [OBSERVE_EXITS] = "exits",
        [OBSERVE_TASKS] = "tasks",
        [OBSERVE_INGRESS] = "ingress",
        [OBSERVE_EGRESS] = "egress",
        [OBSERVE_RETRANSMITS] = "retransmits",
        [OBSERVE_BLOCK] = "block",
        [OBSERVE_VICTIMS] = "victims",
};

const char *observe_program_name(enum observe_program p) {
        return p < _OBSERVE_PROGRAM_MAX ? programs[p] : NULL;
}

static const char *const kinds[_OBSERVE_TRACE_MAX] = {
        [OBSERVE_TRACE_IO] = "io", [OBSERVE_TRACE_RUNQUEUE] = "runqueue"
};

const char *observe_trace_to_string(enum observe_trace k) {
        return k >= 0 && k < _OBSERVE_TRACE_MAX ? kinds[k] : NULL;
}

enum observe_trace observe_trace_from_string(const char *s) {
        for (int i = 0; i < _OBSERVE_TRACE_MAX; i++)
                if (strcmp(kinds[i], s) == 0)
                        return (enum observe_trace)i;
        return _OBSERVE_TRACE_INVALID;
}
