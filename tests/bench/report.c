/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/bench/report.h"

#include <jansson.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/cleanup.h"

void bench_report(const char *bench, const char *metric, double value, const char *unit, double baseline,
                  enum bench_goal kind, double goal) {
        double ratio = baseline != 0 ? value / baseline : 0, judged = kind >= BENCH_RATIO_MIN ? ratio : value;
        bool least = kind == BENCH_VALUE_MIN || kind == BENCH_RATIO_MIN;
        json_t *o = json_pack(
                "{s:s, s:s, s:f, s:s, s:o, s:o, s:o, s:o}", "bench", bench, "metric", metric, "value", value,
                "unit", unit, "baseline", baseline != 0 ? json_real(baseline) : json_null(), "ratio",
                baseline != 0 ? json_real(ratio) : json_null(), "goal",
                kind == BENCH_NO_GOAL ? json_null()
                                      : json_sprintf("%s %s %g", kind >= BENCH_RATIO_MIN ? "ratio" : "value",
                                                     least ? ">=" : "<=", goal),
                "ok",
                kind == BENCH_NO_GOAL ? json_null() : json_boolean(least ? judged >= goal : judged <= goal));

        if (!o || json_dumpf(o, stdout, JSON_COMPACT | JSON_REAL_PRECISION(6)) < 0 || putchar('\n') == EOF ||
            fflush(stdout) != 0)
                exit(1);
        json_decref(o);
}

static int compare(const void *a, const void *b) {
        double x = *(const double *)a, y = *(const double *)b;

        return x < y ? -1 : x > y;
}

double bench_percentile(double *values, size_t n, double p) {
        size_t i = (size_t)(p / 100 * (double)n);

        qsort(values, n, sizeof(*values), compare);
        return n ? values[MIN(i, n - 1)] : 0;
}

static double seconds(clockid_t clock) {
        struct timespec ts;

        (void)clock_gettime(clock, &ts);
        return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

double bench_now(void) {
        return seconds(CLOCK_MONOTONIC);
}

double bench_cpu(void) {
        return seconds(CLOCK_THREAD_CPUTIME_ID);
}

void bench_die_with(pid_t parent) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
                _exit(1);
}
