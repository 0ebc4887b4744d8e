/* SPDX-License-Identifier: Apache-2.0 */
/* What every benchmark says: one JSON object a line. */
#pragma once

#include <sys/types.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum bench_goal {
        BENCH_NO_GOAL,
        BENCH_VALUE_MIN, /* the value is to be at least the goal */
        BENCH_VALUE_MAX,
        BENCH_RATIO_MIN, /* value / baseline is */
        BENCH_RATIO_MAX,
};

/* baseline 0: there is none. Exits the program when standard output is gone. */
void bench_report(const char *bench, const char *metric, double value, const char *unit, double baseline,
                  enum bench_goal kind, double goal);

/* Sorts and gives the p-th per cent. */
double bench_percentile(double *values, size_t n, double p);

/* Monotonic time in seconds. */
double bench_now(void);

/* The processor's time that this thread has used, in seconds: for what neither waits nor is to be charged for
 * others. */
double bench_cpu(void);

/* The process ends with its parent, also where that has ended already. */
void bench_die_with(pid_t parent);
