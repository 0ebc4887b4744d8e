/* SPDX-License-Identifier: Apache-2.0 */
#include "masterd/checkpoint/policy.h"

#include <math.h>
#include <stdlib.h>

static int by_number(uint64_t a, uint64_t b) {
        return (a > b) - (a < b);
}

static const struct checkpoint *checkpoint_of(const void *choice) {
        return ((const struct checkpoint_choice *)choice)->checkpoint;
}

static int by_trial(const void *a, const void *b) {
        return by_number(checkpoint_of(a)->facts.trial, checkpoint_of(b)->facts.trial);
}

static double worth_of(const struct checkpoint *x) {
        return x->facts.smaller ? x->facts.value : -x->facts.value;
}

/* The best first, those without a value last. */
static int by_value(const void *a, const void *b) {
        const double x = worth_of(checkpoint_of(a)), y = worth_of(checkpoint_of(b));
        const int r = isnan(x) || isnan(y) ? !!isnan(x) - !!isnan(y) : (x > y) - (x < y);

        return r ?: by_number(checkpoint_of(a)->facts.step, checkpoint_of(b)->facts.step) ?: by_number(checkpoint_of(a)->id, checkpoint_of(b)->id);
}

static int by_trial_and_value(const void *a, const void *b) {
        return by_trial(a, b) ?: by_value(a, b);
}

static int by_trial_and_latest(const void *a, const void *b) {
        return by_trial(a, b) ?: by_number(checkpoint_of(b)->facts.step, checkpoint_of(a)->facts.step) ?: by_number(checkpoint_of(b)->id, checkpoint_of(a)->id);
}

void checkpoint_policy_choose(const struct checkpoint_policy *p, struct checkpoint_choice *list, size_t n) {
        const struct {
                int (*order)(const void *a, const void *b);
                uint32_t keep;
                bool each_trial, valued;
        } rules[] = {
                { by_value, p->best, false, true },
                { by_trial_and_value, p->trial_best, true, true },
                { by_trial_and_latest, p->trial_latest, true, false },
        };

        for (size_t i = 0; i < n; i++)
                list[i].stays = list[i].checkpoint->pinned || list[i].checkpoint->held > 0;
        for (size_t k = 0; k < sizeof(rules) / sizeof(*rules); k++) {
                uint32_t rank = 0;

                if (n == 0) /* there may be no list */
                        return;
                qsort(list, n, sizeof(*list), rules[k].order);
                for (size_t i = 0; i < n; i++) {
                        if (rules[k].each_trial && i > 0 && by_trial(list + i - 1, list + i) != 0)
                                rank = 0;
                        if (rank++ < rules[k].keep &&
                            !(rules[k].valued && isnan(list[i].checkpoint->facts.value)))
                                list[i].stays = true;
                }
        }
}
