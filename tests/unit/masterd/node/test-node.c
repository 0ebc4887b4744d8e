/* SPDX-License-Identifier: Apache-2.0 */
#include "masterd/node/node.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <utlist.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"

#define SUSPECT (3 * USEC_PER_SEC)
#define LOST (60 * USEC_PER_SEC)
#define REFUSED _NODE_STATE_INVALID

static void test_table(void **state) {
        /* REGISTERED, HEARD, SILENT, EXPIRED */
        static const int expected[_NODE_STATE_MAX][_NODE_EVENT_MAX] = {
                [NODE_JOINING] = { NODE_READY, REFUSED, REFUSED, NODE_LOST },
                [NODE_READY] = { NODE_READY, NODE_READY, NODE_SUSPECT, NODE_LOST },
                [NODE_SUSPECT] = { NODE_READY, NODE_READY, NODE_SUSPECT, NODE_LOST },
                /* only by registering, so that stale units are stopped first */
                [NODE_LOST] = { NODE_READY, REFUSED, REFUSED, NODE_LOST },
        };
        for (int s = 0; s < _NODE_STATE_MAX; s++) {
                if (s == 2) /* a number that was used once */
                        continue;
                for (int e = 0; e < _NODE_EVENT_MAX; e++)
                        assert_int_equal(node_next((enum node_state)s, (enum node_event)e), expected[s][e]);
                assert_int_equal(node_state_from_string(node_state_to_string((enum node_state)s)), s);
        }
        assert_int_equal(node_state_from_string("ready"), _NODE_STATE_INVALID);
        assert_int_equal(node_state_from_string(NULL), _NODE_STATE_INVALID);
        assert_null(node_state_to_string(_NODE_STATE_INVALID));
        assert_null(node_state_to_string(_NODE_STATE_MAX));
}

static struct node *node(struct nodes *n, const char *name, enum node_state state, uint64_t now) {
        struct node *node = NULL;

        assert_int_equal(nodes_add(n, name, &node), 0);
        node->state = state;
        nodes_heard(n, node, now, now);
        return node;
}

static void test_registry(void **state) {
        struct nodes n = {};
        struct node *a, *b;

        assert_null(nodes_get(&n, "n1"));
        assert_int_equal(nodes_add(&n, "n1", &a), 0);
        assert_int_equal(a->state, NODE_JOINING);
        assert_int_equal(nodes_add(&n, "n1", &b), 0);
        assert_ptr_equal(a, b);
        assert_int_equal(n.n, 1);
        assert_int_equal(nodes_add(&n, "n2", &b), 0);
        assert_ptr_equal(nodes_get(&n, "n2"), b);
        nodes_heard(&n, b, 1, 1);
        nodes_remove(&n, b);
        assert_null(nodes_get(&n, "n2"));
        assert_null(n.live_head);
        assert_int_equal(n.n, 1);
        nodes_clear(&n);
        assert_int_equal(n.n, 0);
        assert_null(n.by_name);
}

static void test_deadlines(void **state) {
        struct nodes n = {};
        struct node *a, *b;
        uint64_t when = 7;

        assert_null(nodes_next_deadline(&n, SUSPECT, LOST, &when));
        assert_int_equal(when, 7);
        a = node(&n, "a", NODE_READY, 100);
        b = node(&n, "b", NODE_READY, 200);
        assert_ptr_equal(nodes_next_deadline(&n, SUSPECT, LOST, &when), a);
        assert_int_equal(when, 100 + SUSPECT);
        a->state = NODE_SUSPECT;
        assert_ptr_equal(nodes_next_deadline(&n, SUSPECT, LOST, &when), b);
        assert_int_equal(when, 200 + SUSPECT);
        b->state = NODE_SUSPECT;
        assert_ptr_equal(nodes_next_deadline(&n, SUSPECT, LOST, &when), a);
        assert_int_equal(when, 100 + LOST);
        /* Heard: fresh again, behind the other. */
        a->state = NODE_READY;
        nodes_heard(&n, a, 30 * USEC_PER_SEC, 0);
        assert_ptr_equal(nodes_next_deadline(&n, SUSPECT, LOST, &when), a);
        assert_int_equal(when, 30 * USEC_PER_SEC + SUSPECT);
        nodes_heard(&n, a, 59 * USEC_PER_SEC, 0);
        assert_ptr_equal(nodes_next_deadline(&n, SUSPECT, LOST, &when), b);
        assert_int_equal(when, 200 + LOST);
        nodes_unwatch(&n, b);
        nodes_unwatch(&n, b);
        nodes_unwatch(&n, a);
        assert_null(nodes_next_deadline(&n, SUSPECT, LOST, &when));
        nodes_clear(&n);
}

/* Nodes that are waited for after a start of the master are dated into the future, those that dial in are
 * not: the list stays in order all the same, and nobody's deadline comes before its time. */
static void test_spread(void **state) {
        struct nodes n = {};
        struct node *late, *early;
        uint64_t when;

        late = node(&n, "late", NODE_SUSPECT, 30 * USEC_PER_SEC);
        early = node(&n, "early", NODE_READY, 2 * USEC_PER_SEC);
        assert_ptr_equal(n.live_head, late);
        assert_true(early->seen.boot >= late->seen.boot);
        assert_ptr_equal(nodes_next_deadline(&n, SUSPECT, LOST, &when), early);
        nodes_heard(&n, early, 40 * USEC_PER_SEC, 0);
        assert_int_equal(early->seen.boot, 40 * USEC_PER_SEC);
        assert_ptr_equal(nodes_next_deadline(&n, SUSPECT, LOST, &when), early);
        assert_int_equal(when, 40 * USEC_PER_SEC + SUSPECT);
        nodes_clear(&n);
}

/* The deadline by looking at every node. */
static uint64_t slow_deadline(const struct nodes *n) {
        uint64_t best = USEC_INFINITY;
        const struct node *node;

        DL_FOREACH2 (n->live_head, node, seen.next)
                best = MIN(best, node->seen.boot + (node->state == NODE_SUSPECT ? LOST : SUSPECT));
        return best;
}

/* A simulated clock over nodes that beat, fall silent and come back. */
static void test_simulation(void **state) {
        struct nodes n = {};
        struct node *all[50];
        bool silent[ELEMENTSOF(all)] = {};
        uint64_t x = 1, when, now = USEC_PER_SEC;
        unsigned suspects = 0, lost = 0, back = 0;

        for (size_t i = 0; i < ELEMENTSOF(all); i++) {
                char name[16];
                snprintf(name, sizeof(name), "n%zu", i);
                all[i] = node(&n, name, NODE_READY, now);
        }
        for (int step = 0; step < 20000; step++) {
                struct node *due;
                now += USEC_PER_SEC / 50;
                x = x * UINT64_C(6364136223846793005) + 1442695040888963407;
                size_t i = (x >> 33) % ELEMENTSOF(all);
                if ((x >> 20) % 40 == 0)
                        silent[i] = !silent[i];
                for (size_t k = 0; k < ELEMENTSOF(all); k++) {
                        /* each beats about once a second */
                        if (silent[k] || (step + (int)k) % 50 != 0)
                                continue;
                        back += all[k]->state == NODE_LOST;
                        all[k]->state = node_next(all[k]->state, NODE_EVENT_REGISTERED);
                        nodes_heard(&n, all[k], now, now);
                }
                while ((due = nodes_next_deadline(&n, SUSPECT, LOST, &when))) {
                        assert_int_equal(when, slow_deadline(&n));
                        if (when > now)
                                break;
                        if (due->state == NODE_SUSPECT) {
                                assert_true(due->seen.boot + LOST <= now);
                                due->state = node_next(due->state, NODE_EVENT_EXPIRED);
                                nodes_unwatch(&n, due);
                                lost++;
                        } else {
                                assert_true(due->seen.boot + SUSPECT <= now);
                                due->state = node_next(due->state, NODE_EVENT_SILENT);
                                suspects++;
                        }
                }
        }
        assert_true(suspects > 50 && lost > 20 && back > 10);
        nodes_clear(&n);
}

/* The whole cluster falls silent at once: each deadline is found without looking at all the others (a walk
 * over the suspects each time would be 5 × 10⁹ steps here). */
static void test_all_silent(void **state) {
        enum {
                N = 100000
        };
        struct nodes n = {};
        struct node *due;
        uint64_t when;

        for (unsigned i = 0; i < N; i++) {
                char name[16];
                snprintf(name, sizeof(name), "n%u", i);
                (void)node(&n, name, NODE_READY, 1000 + i);
        }
        for (unsigned i = 0; i < N; i++) {
                due = nodes_next_deadline(&n, SUSPECT, LOST, &when);
                assert_int_equal(when, 1000 + i + SUSPECT);
                due->state = NODE_SUSPECT;
        }
        for (unsigned i = 0; i < N; i++) {
                due = nodes_next_deadline(&n, SUSPECT, LOST, &when);
                assert_int_equal(when, 1000 + i + LOST);
                due->state = NODE_LOST;
                nodes_unwatch(&n, due);
        }
        assert_null(nodes_next_deadline(&n, SUSPECT, LOST, &when));
        nodes_clear(&n);
}

static void test_reason(void **state) {
        char text[NODE_REASON_MAX], build[200], refused[300];
        struct nodes nodes = {};
        struct node *node;

        assert_int_equal(nodes_add(&nodes, "n1", &node), 0);
        assert_string_equal(node_reason(node, text), "");
        memset(refused, 'r', sizeof(refused) - 1);
        refused[sizeof(refused) - 1] = 0;
        node->refused = strdup("agent 0.3 is too new");
        assert_string_equal(node_reason(node, text), "agent 0.3 is too new");
        node->holds[HOLD_ADMIN] = (struct node_hold){ .set = true, .reason = strdup("look at the fan") };
        assert_string_equal(node_reason(node, text), "agent 0.3 is too new; look at the fan");
        free(node->refused);
        node->refused = strdup(refused); /* room for the other is left */
        assert_non_null(strstr(node_reason(node, text), "; look at the fan"));
        memset(build, 'b', sizeof(build) - 1);
        build[sizeof(build) - 1] = 0;
        build[0] = (char)0xff;
        node_set_version(node, build);
        assert_int_equal(strlen(node->version), 64);
        assert_int_equal(node->version[0], '?');
        nodes_clear(&nodes);
}

/* One host's lines are bounded, and it is said once that they were. */
static void test_lines(void **state) {
        struct node one = { .name = (char *)"n1" }, other = { .name = (char *)"n2" };
        uint64_t now = 1000 * USEC_PER_SEC;

        for (unsigned round = 0; round < 2; round++, now += 60 * USEC_PER_SEC) {
                for (unsigned i = 0; i < NODE_LINES_MAX; i++)
                        assert_true(node_may_log(&one, now + i));
                for (unsigned i = 0; i < 1000; i++)
                        assert_false(node_may_log(&one, now + 59 * USEC_PER_SEC));
                assert_true(node_may_log(&other, now));
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_lines),      cmocka_unit_test(test_reason),
                cmocka_unit_test(test_table),      cmocka_unit_test(test_registry),
                cmocka_unit_test(test_deadlines),  cmocka_unit_test(test_spread),
                cmocka_unit_test(test_simulation), cmocka_unit_test(test_all_silent),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
