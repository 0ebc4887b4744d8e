/* SPDX-License-Identifier: Apache-2.0 */
/* What a search of many trials costs the one who decides: 100,000 trials of adaptive ASHA, 1,000 at a time,
 * whose results come in any order, and the same events told again as a new master does. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "masterd/job/trials.h"
#include "tests/bench/report.h"

#define TRIALS 100000u
#define AT_ONCE 1000u

static double resident_mib(void) {
        _cleanup_fclose_ FILE *f = fopen("/proc/self/statm", "re");
        unsigned long size = 0, resident = 0;

        if (f && fscanf(f, "%lu %lu", &size, &resident) != 2)
                resident = 0;
        return (double)resident * (double)sysconf(_SC_PAGESIZE) / (1 << 20);
}

static struct trials *begin_search(void) {
        struct search_spec spec = {
                .method = SEARCH_ADAPTIVE,
                .mode = SEARCH_CONSERVATIVE,
                .space = strdup("{\"lr\":{\"type\":\"log\",\"minval\":-4,\"maxval\":0},\"width\":8}"),
                .metric = strdup("loss"),
                .smaller = true,
                .max_time = 256,
                .max_trials = TRIALS,
                .max_concurrent = AT_ONCE,
                .divisor = 4,
                .max_rungs = 5
        };
        struct trials *t;

        if (!spec.space || !spec.metric || trials_new(&spec, &t) < 0)
                abort();
        free(spec.space);
        free(spec.metric);
        return t;
}

struct told {
        struct trial_event event;
        int decided;
};

int main(void) {
        struct told *log = calloc(12 * TRIALS, sizeof(*log));
        double *took = calloc(12 * TRIALS, sizeof(*took)), before = resident_mib(), began, memory, given;
        uint32_t running[AT_ONCE + 64], n_running = 0, n = 0, n_results = 0;
        uint64_t *times = calloc(TRIALS, sizeof(*times));
        struct trials *t = begin_search(), *again;
        struct search_reason why;
        unsigned seed = 1;

        while (!search_over(t->search)) {
                struct told *x = log + n++;
                double start = bench_now();
                uint32_t i = n_running > 0 ? (uint32_t)rand_r(&seed) % n_running : 0;

                if (search_wants(t->search)) {
                        x->event = (struct trial_event){ .kind = TRIAL_CREATED };
                        x->decided = trials_follow(t, &x->event, &why);
                        running[n_running++] = x->event.trial;
                        continue;
                }
                times[running[i]] = times[running[i]] ? 4 * times[running[i]] : 1;
                x->event = (struct trial_event){ TRIAL_VALIDATED, running[i], times[running[i]],
                                                 rand_r(&seed) % 10000, 0 };
                x->decided = trials_follow(t, &x->event, &why);
                took[n_results++] = 1e6 * (bench_now() - start);
                if (x->decided == SEARCH_STOP) {
                        log[n].event = (struct trial_event){ .kind = TRIAL_EXITED, .trial = running[i] };
                        log[n].decided = trials_follow(t, &log[n].event, &why);
                        n++;
                        running[i] = running[--n_running];
                }
        }
        memory = resident_mib() - before;
        bench_report("search", "decision p50", bench_percentile(took, n_results, 50), "µs", 0,
                     BENCH_VALUE_MAX, 50);
        bench_report("search", "decision p99", bench_percentile(took, n_results, 99), "µs", 0,
                     BENCH_VALUE_MAX, 50);
        bench_report("search", "memory of 100,000 trials, with the log of this bench", memory, "MiB", 0,
                     BENCH_NO_GOAL, 0);
        bench_report("search", "what is counted for them", (double)trials_bytes(t) / (1 << 20), "MiB", 0,
                     BENCH_NO_GOAL, 0);
        again = begin_search();
        began = bench_now();
        for (uint32_t i = 0; i < n; i++)
                if (trials_follow(again, &log[i].event, &why) != log[i].decided)
                        abort();
        bench_report("search", "told again, an event", 1e6 * (bench_now() - began) / n, "µs", 0,
                     BENCH_NO_GOAL, 0);
        bench_report("search", "events", n, "", 0, BENCH_NO_GOAL, 0);
        began = bench_now();
        for (uint32_t i = 0; i < 1000; i++) {
                _cleanup_free_ char *text = NULL;

                if (trials_given(t, i, &text) < 0)
                        abort();
        }
        given = 1e6 * (bench_now() - began) / 1000;
        bench_report("search", "parameters of a trial", given, "µs", 0, BENCH_NO_GOAL, 0);
        trials_free(t);
        trials_free(again);
        free(log);
        free(took);
        free(times);
        return 0;
}
