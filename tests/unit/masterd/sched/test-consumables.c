/* SPDX-License-Identifier: Apache-2.0 */
/* What the cluster as a whole has so much of. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "tests/kit/sched-kit.h"

static void test_consumables(void **state) {
        _cleanup_(sched_free_p) struct sched *s = sched_kit_cluster(4, 1);
        struct sched_amount amount = { .n = 3 };
        struct sched_shape h = sched_kit_cpus(2, 1);
        struct sched_gang g = { .shapes = &h, .n_shapes = 1 };
        struct sched_placement p, q;
        struct sched_no_fit why;
        uint64_t total, held;
        const char *name;

        assert_int_equal(sched_consumable_set(s, "matlab", 10, &amount.index), 0);
        assert_int_equal(sched_consumable_set(s, "matlab", 8, &amount.index), 0);
        h.amounts = &amount;
        h.n_amounts = 1;
        assert_int_equal(sched_kit_place(s, &g, &p), 0);
        assert_int_equal(sched_consumable_get(s, amount.index, &name, &total, &held), 0);
        assert_true(total == 8 && held == 6 && strcmp(name, "matlab") == 0);
        h.min = h.max = 1;
        assert_int_equal(sched_place(s, &g, &q, &why), SCHED_E_NO_FIT);
        assert_int_equal(why.scarce, SCHED_CONSUMABLES);
        assert_false(why.never);
        sched_kit_release(s, &p);
        h.min = h.max = 3;
        assert_int_equal(sched_place(s, &g, &q, &why), SCHED_E_NO_FIT);
        assert_true(why.never);
        h.min = 1; /* as many as there are licences */
        assert_int_equal(sched_kit_place(s, &g, &q), 0);
        assert_int_equal(q.n, 2);
        sched_kit_release(s, &q);
        assert_int_equal(sched_consumable_find(s, "maple", &amount.index), -ENOENT);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_consumables),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
