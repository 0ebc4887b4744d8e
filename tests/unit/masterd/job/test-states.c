/* SPDX-License-Identifier: Apache-2.0 */
/* The tables written out once more, as lists of what is allowed: every other pair is refused. */
#include "masterd/job/states.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"

struct transition {
        int from, event, to;
};

static const struct transition job_allowed[] = {
        { JOB_SUBMITTED, JOB_EVENT_RECORDED, JOB_QUEUED },
        { JOB_SUBMITTED, JOB_EVENT_KILLED, JOB_KILLED },
        { JOB_SUBMITTED, JOB_EVENT_FAILED, JOB_FAILED },
        { JOB_QUEUED, JOB_EVENT_PLACED, JOB_STARTING },
        { JOB_QUEUED, JOB_EVENT_STOP, JOB_STOPPING },
        { JOB_STARTING, JOB_EVENT_UP, JOB_RUNNING },
        { JOB_STARTING, JOB_EVENT_STOP, JOB_STOPPING },
        { JOB_RUNNING, JOB_EVENT_STOP, JOB_STOPPING },
        { JOB_RUNNING, JOB_EVENT_SUSPEND, JOB_SUSPENDED },
        { JOB_SUSPENDED, JOB_EVENT_RESUME, JOB_RUNNING },
        { JOB_SUSPENDED, JOB_EVENT_STOP, JOB_STOPPING },
        { JOB_STOPPING, JOB_EVENT_REQUEUE, JOB_QUEUED },
        { JOB_STOPPING, JOB_EVENT_SUCCEEDED, JOB_SUCCEEDED },
        { JOB_STOPPING, JOB_EVENT_FAILED, JOB_FAILED },
        { JOB_STOPPING, JOB_EVENT_KILLED, JOB_KILLED },
        { JOB_SUCCEEDED, JOB_EVENT_RERUN, JOB_QUEUED },
        { JOB_FAILED, JOB_EVENT_RERUN, JOB_QUEUED },
        { JOB_KILLED, JOB_EVENT_RERUN, JOB_QUEUED },
};

#define ENDS(from)                                                                                           \
        { from, EXECUTOR_EVENT_SUCCEEDED, EXECUTOR_SUCCEEDED },                                              \
                { from, EXECUTOR_EVENT_FAILED, EXECUTOR_FAILED },                                            \
                { from, EXECUTOR_EVENT_KILLED, EXECUTOR_KILLED }, {                                          \
                from, EXECUTOR_EVENT_LOST, EXECUTOR_LOST                                                     \
        }

static const struct transition executor_allowed[] = {
        { EXECUTOR_PENDING, EXECUTOR_EVENT_PLACED, EXECUTOR_PLACED },
        { EXECUTOR_PENDING, EXECUTOR_EVENT_KILLED, EXECUTOR_KILLED },
        { EXECUTOR_PLACED, EXECUTOR_EVENT_ORDERED, EXECUTOR_STARTING },
        { EXECUTOR_PLACED, EXECUTOR_EVENT_STARTED,
          EXECUTOR_RUNNING }, /* the answer overtook a restart of ours */
        { EXECUTOR_PLACED, EXECUTOR_EVENT_BOUNCED, EXECUTOR_PENDING },
        { EXECUTOR_PLACED, EXECUTOR_EVENT_STOP, EXECUTOR_STOPPING },
        ENDS(EXECUTOR_PLACED),
        { EXECUTOR_STARTING, EXECUTOR_EVENT_STARTED, EXECUTOR_RUNNING },
        { EXECUTOR_STARTING, EXECUTOR_EVENT_BOUNCED, EXECUTOR_PENDING },
        { EXECUTOR_STARTING, EXECUTOR_EVENT_STOP, EXECUTOR_STOPPING },
        ENDS(EXECUTOR_STARTING),
        { EXECUTOR_RUNNING, EXECUTOR_EVENT_STOP, EXECUTOR_STOPPING },
        ENDS(EXECUTOR_RUNNING),
        { EXECUTOR_STOPPING, EXECUTOR_EVENT_STARTED, EXECUTOR_STOPPING },
        { EXECUTOR_STOPPING, EXECUTOR_EVENT_STOP, EXECUTOR_STOPPING },
        ENDS(EXECUTOR_STOPPING),
        { EXECUTOR_SUCCEEDED, EXECUTOR_EVENT_AGAIN, EXECUTOR_PENDING },
        { EXECUTOR_FAILED, EXECUTOR_EVENT_AGAIN, EXECUTOR_PENDING },
        { EXECUTOR_KILLED, EXECUTOR_EVENT_AGAIN, EXECUTOR_PENDING },
        { EXECUTOR_LOST, EXECUTOR_EVENT_AGAIN, EXECUTOR_PENDING },
};

static int expected(const struct transition *list, size_t n, int from, int event) {
        for (size_t i = 0; i < n; i++)
                if (list[i].from == from && list[i].event == event)
                        return list[i].to;
        return -EINVAL;
}

static void test_job_table(void **state) {
        for (int s = 0; s < _JOB_STATE_MAX; s++)
                for (int e = 0; e < _JOB_EVENT_MAX; e++)
                        assert_int_equal(job_next((enum job_state)s, (enum job_event)e),
                                         expected(job_allowed, ELEMENTSOF(job_allowed), s, e));
}

static void test_executor_table(void **state) {
        for (int s = 0; s < _EXECUTOR_STATE_MAX; s++)
                for (int e = 0; e < _EXECUTOR_EVENT_MAX; e++)
                        assert_int_equal(executor_next((enum executor_state)s, (enum executor_event)e),
                                         expected(executor_allowed, ELEMENTSOF(executor_allowed), s, e));
}

/* An attempt that has ended moves only to a new one; nothing brings a finished job back. */
static void test_ends(void **state) {
        for (int s = 0; s < _EXECUTOR_STATE_MAX; s++) {
                bool ended = s == EXECUTOR_SUCCEEDED || s == EXECUTOR_FAILED || s == EXECUTOR_KILLED ||
                             s == EXECUTOR_LOST;
                assert_int_equal(executor_state_ended((enum executor_state)s), ended);
                assert_int_equal(executor_state_holds((enum executor_state)s),
                                 !ended && s != EXECUTOR_PENDING);
        }
        for (int s = 0; s < _JOB_STATE_MAX; s++)
                if (job_state_up((enum job_state)s)) /* a stop is possible, and nothing else ends it */
                        for (int e = 0; e < _JOB_EVENT_MAX; e++)
                                assert_false(job_next((enum job_state)s, (enum job_event)e) >= JOB_SUCCEEDED);
                else if (job_state_ended((enum job_state)s))
                        for (int e = 0; e < _JOB_EVENT_MAX; e++) /* but when a person says so */
                                assert_true(e == JOB_EVENT_RERUN ||
                                            job_next((enum job_state)s, (enum job_event)e) < 0);
        assert_int_equal(job_state_exit_status(JOB_SUCCEEDED), 0);
        assert_int_equal(job_state_exit_status(JOB_FAILED), 1);
        assert_int_equal(job_state_exit_status(JOB_KILLED), 3);
        assert_int_equal(job_state_exit_status(JOB_STOPPING), 255);
        assert_int_equal(job_state_exit_status(JOB_SUSPENDED), 255);
}

static void test_names(void **state) {
        for (int s = 0; s < _JOB_STATE_MAX; s++)
                assert_int_equal(job_state_from_string(job_state_to_string((enum job_state)s)), s);
        for (int s = 0; s < _EXECUTOR_STATE_MAX; s++)
                assert_non_null(executor_state_to_string((enum executor_state)s));
        for (int e = 0; e < _JOB_EVENT_MAX; e++)
                assert_non_null(job_event_to_string((enum job_event)e));
        for (int e = 0; e < _EXECUTOR_EVENT_MAX; e++)
                assert_non_null(executor_event_to_string((enum executor_event)e));
        /* Verdicts are stored by number. */
        assert_int_equal(JOB_EVENT_REQUEUE, 4);
        assert_int_equal(JOB_EVENT_KILLED, 7);
        assert_int_equal(job_state_from_string("running"), _JOB_STATE_INVALID);
        assert_int_equal(job_state_from_string(NULL), _JOB_STATE_INVALID);
        assert_null(job_state_to_string(_JOB_STATE_INVALID));
        assert_null(job_state_to_string(_JOB_STATE_MAX));
        assert_null(executor_state_to_string(_EXECUTOR_STATE_INVALID));
        assert_string_equal(job_state_to_string(JOB_QUEUED), "QUEUED");
        assert_string_equal(executor_state_to_string(EXECUTOR_LOST), "LOST");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_job_table),
                cmocka_unit_test(test_executor_table),
                cmocka_unit_test(test_ends),
                cmocka_unit_test(test_names),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
