/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a search's settings and reports, says what is decided: tests/python/test_search.py asks Optuna the
 * same.
 *
 *     search-follow DIVISOR RUNGS MAX-TIME TRIALS < "TRIAL STEP METRIC" lines
 *
 * All trials are made at the beginning. For each line 0 (goes on), 1 (stops) or 2 (is over, or the step is
 * past). */
#include <stdio.h>
#include <stdlib.h>

#include "masterd/search/search.h"

int main(int argc, char **argv) {
        struct search_settings settings = { .method = SEARCH_ASHA };
        struct search_reason reason;
        struct search *s;
        unsigned trial;
        unsigned long step;
        double metric;

        if (argc != 5)
                return 2;
        settings.divisor = (uint32_t)atoi(argv[1]);
        settings.max_rungs = (uint32_t)atoi(argv[2]);
        settings.max_time = (uint64_t)atol(argv[3]);
        settings.max_trials = settings.max_concurrent = (uint32_t)atoi(argv[4]);
        if (search_new(&settings, &s) < 0)
                return 2;
        for (uint32_t n; search_created(s, &n) >= 0;)
                ;
        while (scanf("%u %lu %lf", &trial, &step, &metric) == 3)
                printf("%d\n", search_validated(s, trial, step, metric, &reason));
        search_free(s);
        return 0;
}
