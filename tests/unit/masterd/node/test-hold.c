/* SPDX-License-Identifier: Apache-2.0 */
#include "masterd/node/hold.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "masterd/node/node.h"

static void test_names(void **state) {
        for (int i = 0; i < _HOLD_MAX; i++)
                assert_non_null(hold_cause_to_string((enum hold_cause)i));
        assert_null(hold_cause_to_string(_HOLD_MAX));
        for (int i = 0; i < _HOLD_THEN_MAX; i++)
                assert_int_equal(hold_then_from_string(hold_then_to_string((enum hold_then)i)), i);
        assert_int_equal(hold_then_from_string("halt"), _HOLD_THEN_INVALID);
        assert_int_equal(hold_then_from_string(NULL), _HOLD_THEN_INVALID);
}

static void test_moves(void **state) {
        static const struct {
                struct node_hold hold;
                bool again, moves; /* at 100 */
                uint64_t next;
        } cases[] = {
                { { .set = false, .drain = true }, true, false, UINT64_MAX },
                { { .set = true, .drain = false }, true, false, UINT64_MAX }, /* cordoned */
                { { .set = true, .drain = true }, true, true, UINT64_MAX },
                { { .set = true, .drain = true }, false, false, UINT64_MAX }, /* it is waited for */
                { { .set = true, .drain = true, .deadline_real = 101 }, true, false, 101 },
                { { .set = true, .drain = true, .deadline_real = 100 }, true, true, UINT64_MAX },
                { { .set = true, .drain = true, .deadline_real = 100 }, false, true, UINT64_MAX },
                { { .set = true, .drain = true, .deadline_real = UINT64_MAX }, true, false, UINT64_MAX },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                assert_int_equal(hold_moves(&cases[i].hold, cases[i].again, 100), cases[i].moves);
                assert_true(hold_next(&cases[i].hold, 100) == cases[i].next);
        }
}

static void test_shown(void **state) {
        struct nodes nodes = {};
        char text[HOLDS_TEXT_MAX];
        struct node *n;

        assert_int_equal(nodes_add(&nodes, "n1", &n), 0);
        assert_false(node_usable(n));
        n->state = NODE_READY;
        assert_true(node_usable(n));
        assert_string_equal(node_shown_state(n), "READY");
        assert_string_equal(holds_text(n->holds, text, sizeof(text)), "");

        assert_int_equal(hold_set(n->holds + HOLD_ADMIN, &(struct node_hold){ .grace_usec = UINT64_MAX },
                                  "a new\nkernel"),
                         0);
        assert_false(node_usable(n));
        assert_string_equal(node_shown_state(n), "CORDONED");
        assert_string_equal(holds_text(n->holds, text, sizeof(text)), "a new kernel");
        assert_true(holds_grace(n->holds, 7) == 7);

        n->n_executors = 1;
        assert_int_equal(hold_set(n->holds + HOLD_HEALTH,
                                  &(struct node_hold){ .drain = true, .grace_usec = 5 * USEC_PER_SEC },
                                  "GPU 3 is gone"),
                         0);
        assert_string_equal(node_shown_state(n), "DRAINING");
        assert_false(node_drained(n));
        assert_string_equal(holds_text(n->holds, text, sizeof(text)), "a new kernel; health: GPU 3 is gone");
        assert_true(holds_grace(n->holds, 7) == 5 * USEC_PER_SEC);
        n->n_executors = 0;
        assert_string_equal(node_shown_state(n), "DRAINED");
        assert_string_equal(holds_text(n->holds, text, 16), "a new kernel; h");

        /* How it is says more, and what is wanted of it is not forgotten. */
        n->state = NODE_LOST;
        assert_string_equal(node_shown_state(n), "LOST");
        n->state = NODE_READY;
        assert_string_equal(node_shown_state(n), "DRAINED");

        hold_clear(n->holds + HOLD_HEALTH);
        assert_false(node_usable(n));
        hold_clear(n->holds + HOLD_ADMIN);
        assert_true(node_usable(n));
        nodes_clear(&nodes);
}

static void test_windows(void **state) {
        const struct window w = { .from_real = 1000, .to_real = 2000 };

        assert_false(window_blocks(&w, 100, 50, 900));         /* over at its begin */
        assert_true(window_blocks(&w, 101, 50, 900));          /* into it */
        assert_true(window_blocks(&w, UINT64_MAX - 1, 50, 1)); /* no overflow */
        assert_false(window_blocks(&w, UINT64_MAX, 50, 950));  /* without a limit: not within the lead */
        assert_true(window_blocks(&w, UINT64_MAX, 50, 951));
        assert_true(window_blocks(&w, 1, 0, 1000)); /* it lasts */
        assert_true(window_blocks(&w, 1, 0, 1999));
        assert_false(window_blocks(&w, 1, 0, 2000)); /* it is over */
}

static void test_labels(void **state) {
        char *agent[] = { (char *)"rack=r1", (char *)"zone=a", NULL };
        struct nodes nodes = {};
        struct node *n;

        assert_true(node_label_key_valid("gpu.vendor/model-2"));
        assert_false(node_label_key_valid(""));
        assert_false(node_label_key_valid("-a"));
        assert_false(node_label_key_valid("a b"));
        assert_false(node_label_key_valid("a-"));
        assert_true(node_label_value_valid(""));
        assert_false(node_label_value_valid("x=y"));

        assert_int_equal(nodes_add(&nodes, "n1", &n), 0);
        assert_int_equal(node_set_label(n, "zone", "b"), 1);
        assert_int_equal(node_set_label(n, "zone", "b"), 0);
        assert_int_equal(node_set_label(n, "fast", ""), 1);
        assert_int_equal(node_set_label(n, "slow", NULL), 0);
        assert_int_equal(node_merge_labels(n, agent), 0);
        assert_string_equal(n->labels[0], "fast=");
        assert_string_equal(n->labels[1], "rack=r1");
        assert_string_equal(n->labels[2], "zone=b");
        assert_null(n->labels[3]);
        assert_int_equal(node_set_label(n, "zone", NULL), 1);
        assert_int_equal(node_merge_labels(n, agent), 0);
        assert_string_equal(n->labels[2], "zone=a"); /* the agent's again */
        nodes_clear(&nodes);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_names),   cmocka_unit_test(test_moves),  cmocka_unit_test(test_shown),
                cmocka_unit_test(test_windows), cmocka_unit_test(test_labels),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
