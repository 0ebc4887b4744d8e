/* SPDX-License-Identifier: Apache-2.0 */
#include "agentd/executors/executor-state.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"

struct step {
        enum executor_event event;
        int action;
        enum executor_state state;
};

static void play(const struct step *steps, size_t n) {
        enum executor_state s = EXECUTOR_PREPARING;

        for (size_t i = 0; i < n; i++) {
                assert_int_equal(executor_step(&s, steps[i].event), steps[i].action);
                assert_int_equal(s, steps[i].state);
        }
}

static void test_lives(void **state) {
        static const struct step ordinary[] = {
                { EVENT_PREPARED, ACTION_SUBMIT, EXECUTOR_STARTING },
                { EVENT_STARTED, ACTION_ANSWER, EXECUTOR_RUNNING },
                { EVENT_RECORD, ACTION_SETTLE, EXECUTOR_ENDING },
                { EVENT_UNIT_GONE, ACTION_REPORT, EXECUTOR_ENDED },
                { EVENT_COMMITTED, ACTION_FORGET, EXECUTOR_GONE },
        };
        static const struct step stopped_while_starting[] = {
                { EVENT_PREPARED, ACTION_SUBMIT, EXECUTOR_STARTING },
                { EVENT_STOP, ACTION_STOP, EXECUTOR_STOPPING },
                { EVENT_STARTED, ACTION_ANSWER, EXECUTOR_STOPPING },
                { EVENT_STOP, ACTION_STOP, EXECUTOR_STOPPING },
                { EVENT_UNIT_GONE, ACTION_REPORT, EXECUTOR_ENDED },
        };
        static const struct step short_lived[] = {
                { EVENT_PREPARED, ACTION_SUBMIT, EXECUTOR_STARTING },
                { EVENT_RECORD, ACTION_SETTLE, EXECUTOR_ENDING },
                { EVENT_STARTED, ACTION_NONE, EXECUTOR_ENDING },
                { EVENT_COMMITTED, ACTION_FORGET, EXECUTOR_GONE },
        };
        static const struct step never_started[] = { { EVENT_STOP, ACTION_REFUSE, EXECUTOR_GONE } };

        play(ordinary, ELEMENTSOF(ordinary));
        play(stopped_while_starting, ELEMENTSOF(stopped_while_starting));
        play(short_lived, ELEMENTSOF(short_lived));
        play(never_started, ELEMENTSOF(never_started));
}

/* Whatever happened before, an executor with a unit comes to its end by what systemd and primus-exit say. */
static void test_every_state_ends(void **state) {
        for (enum executor_state s = EXECUTOR_STARTING; s <= EXECUTOR_ENDED; s++) {
                enum executor_state t = s;

                assert_true(executor_step(&t, EVENT_UNIT_GONE) >= 0);
                assert_int_equal(t, EXECUTOR_ENDED);
                t = s;
                assert_true(executor_step(&t, EVENT_STOP) >= 0); /* idempotent everywhere */
        }
}

static void test_undefined(void **state) {
        enum executor_state s = EXECUTOR_GONE;

        assert_int_equal(executor_step(&s, EVENT_STARTED), -EINVAL);
        assert_int_equal(s, EXECUTOR_GONE);
        s = EXECUTOR_RUNNING;
        assert_int_equal(executor_step(&s, EVENT_COMMITTED), -EINVAL);
        assert_int_equal(executor_step(&s, _EXECUTOR_EVENT_MAX), -EINVAL);
        assert_int_equal(s, EXECUTOR_RUNNING);
        for (int i = 0; i < _EXECUTOR_STATE_MAX; i++)
                assert_non_null(executor_state_to_string(i));
        for (int i = 0; i < _EXECUTOR_EVENT_MAX; i++)
                assert_non_null(executor_event_to_string(i));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_lives),
                cmocka_unit_test(test_every_state_ends),
                cmocka_unit_test(test_undefined),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
