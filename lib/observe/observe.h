/* SPDX-License-Identifier: Apache-2.0 */
/* What the agent sees by way of the starter: errors and bounds of org.primus.Starter1.Observe that both sides
 * stand on. The interface itself is dbus/org.primus.Starter1.xml. */
#pragma once

#include "lib/wire/starter.h"

/* Errors of its methods; the message is a sentence for people. */
#define OBSERVE_ERROR_REFUSED "org.primus.Starter1.Error.Refused"
#define OBSERVE_ERROR_BUSY "org.primus.Starter1.Error.Busy"
#define OBSERVE_ERROR_NOT_FOUND "org.primus.Starter1.Error.NotFound"

/* Descriptors of Probes(), by these names. */
#define OBSERVE_MAP_STATE "state"
#define OBSERVE_MAP_UNITS "units"
#define OBSERVE_MAP_FLOWS "flows"
#define OBSERVE_MAP_EVENTS "events"
#define OBSERVE_LINK_TASKS "tasks" /* of the program that passes over all tasks */

/* The base set of programs, in the order in which Probes() tells how they are. */
enum observe_program {
        OBSERVE_EXITS,
        OBSERVE_TASKS,
        OBSERVE_INGRESS,
        OBSERVE_EGRESS,
        OBSERVE_RETRANSMITS,
        OBSERVE_BLOCK,
        OBSERVE_VICTIMS,
        _OBSERVE_PROGRAM_MAX
};
/* "exits", "tasks", "ingress", "egress", "retransmits", "block", "victims" */
const char *observe_program_name(enum observe_program p);
#define OBSERVE_WHY_MAX 160

/* Kinds of Trace(). */
enum observe_trace {
        OBSERVE_TRACE_IO,       /* system calls that move data */
        OBSERVE_TRACE_RUNQUEUE, /* waits for a processor */
        _OBSERVE_TRACE_MAX,
        _OBSERVE_TRACE_INVALID = -22
};
const char *observe_trace_to_string(enum observe_trace k); /* "io", "runqueue" */
enum observe_trace observe_trace_from_string(const char *s);
/* The programs leave the kernel when nobody asks again for so long. */
#define OBSERVE_TRACE_LEASE_USEC (30u * 1000000u)

/* Files of Open(). */
#define OBSERVE_FILE_MEMORY_PRESSURE "memory.pressure"
#define OBSERVE_FILE_IO_PRESSURE "io.pressure"
#define OBSERVE_FILE_PROGRESS "progress"

/* Widen(): bytes of one pipe. */
#define OBSERVE_PIPE_MAX (1u << 20)

/* Usage(): units in one call. */
#define OBSERVE_USAGE_UNITS_MAX 1024u
