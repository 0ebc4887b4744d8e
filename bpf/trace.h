/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only OR BSD-2-Clause */
/* What the programs on demand and agentd/probe/latency.c share. As events.h: fixed widths, no padding. */
#pragma once

#include <stdint.h>

#define TRACE_UNITS_MAX 64u    /* traced at once on a host */
#define TRACE_TASKS_MAX 16384u /* that wait at once */
#define TRACE_CALLS_MAX 512u   /* system calls have lower numbers */
#define TRACE_STACK_MAX 32     /* functions */
#define TRACE_BUCKETS                                                                                        \
        40 /* bucket i: from 2^i up to 2^(i + 1) ns; the first also what is less, the last what is more */

/* What took the time. */
enum trace_class {
        TRACE_READ, /* read and its kin; for the run queue: the wait for a processor */
        TRACE_WRITE,
        TRACE_RECEIVE,
        TRACE_SEND,
        TRACE_SYNC,
        _TRACE_CLASS_MAX
};

/* Map "settings", one element, index 0. */
struct trace_settings {
        uint64_t slice;                    /* id of primus.slice */
        uint64_t target;                   /* whose stacks the pass that is under way prints */
        uint64_t missed;                   /* waits that found no room in the map */
        uint8_t class_of[TRACE_CALLS_MAX]; /* of a system call: its class + 1; 0: it is not measured */
};

struct trace_histogram {
        uint64_t count, sum_ns, bytes;
        uint64_t buckets[TRACE_BUCKETS];
};

/* Map "latencies", for each CPU: control group id → this. */
struct trace_unit {
        struct trace_histogram classes[_TRACE_CLASS_MAX];
};

/* Map "starts": thread → when its wait began. */
struct trace_start {
        uint64_t ns;
        uint32_t class, reserved;
};
