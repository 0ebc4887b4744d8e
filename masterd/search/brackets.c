/* SPDX-License-Identifier: Apache-2.0 */
/* How many trials go into which brackets. Whole numbers throughout: logarithms of doubles fall one short for
 * some exact powers (ln 243 / ln 3 < 5). */
#include <assert.h>

#include "lib/base/cleanup.h"
#include "masterd/search/search.h"

typedef unsigned __int128 wide; /* 2^53 units, 720720 and 10^5 trials multiplied */

#define MULTIPLE 720720u /* of every number of rungs there may be */

/* The highest e with d^e <= x; 0 for x 0. */
static uint32_t whole_log(uint64_t x, uint32_t d) {
        uint32_t e = 0;

        for (; x >= d; x /= d)
                e++;
        return e;
}

static uint64_t whole_power(uint32_t d, uint32_t e) {
        uint64_t x = 1;

        while (e-- > 0)
                x = x > SEARCH_TIME_MAX / d ? SEARCH_TIME_MAX : x * d;
        return x;
}

uint64_t search_units(const struct search_settings *s, uint32_t n, uint32_t i) {
        return MAX(s->max_time / whole_power(s->divisor, n - 1 - i), UINT64_C(1));
}

void search_expect(const struct search_settings *s, const struct search_bracket *b,
                   uint32_t ret[static SEARCH_RUNGS_MAX]) {
        uint32_t n = b->trials;

        for (uint32_t i = 0; i < b->n_rungs; n = MAX(n / s->divisor, 1u))
                ret[i++] = n;
}

/* The share of a bracket with n rungs; of is how many rungs the one with most has. */
static wide bracket_weight(const struct search_settings *s, uint32_t n, uint32_t of) {
        wide budget = whole_power(s->divisor, n - 1);

        if (s->method == SEARCH_HYPERBAND)
                return (budget * of + n - 1) / n;
        return budget * (MULTIPLE / n);
}

static void share_trials(const struct search_settings *s, struct search_bracket *b, size_t n) {
        uint32_t left = s->max_trials;
        wide all = 0;

        for (size_t i = 0; i < n; i++)
                all += bracket_weight(s, b[i].n_rungs, b[0].n_rungs);
        for (size_t i = n; i-- > 0;) { /* the first one has what is left */
                uint32_t most = left - (uint32_t)i;
                wide trials = bracket_weight(s, b[i].n_rungs, b[0].n_rungs) * s->max_trials / all;

                b[i].trials = i == 0 ? left : MIN(MAX((uint32_t)trials, 1u), most);
                left -= b[i].trials;
        }
}

static void share_places(const struct search_settings *s, struct search_bracket *b, size_t n) {
        uint32_t many = (uint32_t)n, c = MAX(s->max_concurrent, many);

        for (uint32_t i = 0; i < many; i++) {
                b[i].at_once = s->max_concurrent == 0 ? MAX(b[n - 1].trials, s->divisor)
                                                      : c / many + (i < c % many ? 1 : 0);
                b[i].at_once = MIN(b[i].at_once, b[i].trials);
        }
}

size_t search_brackets(const struct search_settings *s,
                       struct search_bracket ret[static SEARCH_BRACKETS_MAX]) {
        uint32_t least = 1, most;
        size_t n = 0;

        if (!search_has_rungs(s->method)) {
                ret[0] = (struct search_bracket){ 0, s->max_trials, s->max_trials };
                if (s->max_concurrent > 0)
                        ret[0].at_once = MIN(s->max_concurrent, s->max_trials);
                return 1;
        }
        most = MIN(s->max_rungs, whole_log(s->max_time, s->divisor) + 1);
        if (s->method == SEARCH_ASHA) {
                uint64_t all = s->max_concurrent > 0 ? s->max_concurrent : whole_power(s->divisor, most - 1);

                ret[0] = (struct search_bracket){ most, s->max_trials,
                                                  (uint32_t)MIN(all, (uint64_t)s->max_trials) };
                return 1;
        }
        if (s->method == SEARCH_ADAPTIVE && s->n_rungs > 0) {
                for (; n < MIN(s->n_rungs, s->max_trials); n++)
                        ret[n] = (struct search_bracket){ .n_rungs = s->rungs[n] };
                share_trials(s, ret, n);
                share_places(s, ret, n);
                return n;
        }
        if (s->method == SEARCH_HYPERBAND)
                most = MIN(most, s->max_trials);
        else {
                most = MIN(most, whole_log(s->max_trials, s->divisor) + 1);
                if (s->mode == SEARCH_AGGRESSIVE)
                        least = most;
                else if (s->mode == SEARCH_STANDARD)
                        least = (most - 1) / 2 + 1;
        }
        for (uint32_t rungs = most; rungs >= least; rungs--)
                ret[n++] = (struct search_bracket){ .n_rungs = rungs };
        share_trials(s, ret, n);
        share_places(s, ret, n);
        return n;
}
