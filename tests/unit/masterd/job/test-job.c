/* SPDX-License-Identifier: Apache-2.0 */
#include "masterd/job/job.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "tests/kit/json.h"

static struct job *job(const char *policy) {
        struct diagnostics d = {};
        struct job_spec *spec = NULL;
        struct job *j = NULL;
        char text[512];

        snprintf(text, sizeof(text),
                 "{'name': 'digits', 'scheduler': {'schedulePolicy': {%s}}, 'role': ["
                 "{'roleName': 'ps', 'num': 2, 'command': 'true'},"
                 "{'roleName': 'worker', 'num': 3, 'minNum': 2, 'command': 'true'}]}",
                 policy);
        if (spec_parse(json_text(text), strlen(text), &spec, &d) < 0)
                fail_msg("the test's own configuration is wrong");
        diagnostics_done(&d);
        assert_int_equal(
                job_new(7, SD_ID128_MAKE(01, 23, 45, 67, 89, ab, cd, ef, 01, 23, 45, 67, 89, ab, cd, ef),
                        1000, spec, &j),
                0);
        return j;
}

/* role.n_state[] is the count of its executors by state. */
static void check(const struct job *j) {
        uint32_t running = 0, active = 0;

        for (size_t i = 0; i < j->spec->n_roles; i++) {
                uint32_t n[_EXECUTOR_STATE_MAX] = {};
                for (uint32_t k = 0; k < j->spec->roles[i].num; k++) {
                        const struct executor *e = j->roles[i].executors[k];
                        n[e->state]++;
                        running += e->state == EXECUTOR_RUNNING;
                        active += executor_state_holds(e->state);
                }
                for (int s = 0; s < _EXECUTOR_STATE_MAX; s++)
                        assert_int_equal(j->roles[i].n_state[s], n[s]);
        }
        assert_int_equal(job_running(j), running);
        assert_int_equal(job_active(j), active);
}

static void test_new(void **state) {
        struct job *j = job("'gangPolicy': {}");

        assert_int_equal(j->n_executors, 5);
        assert_int_equal(j->state, JOB_SUBMITTED);
        assert_int_equal(j->attempt, 1);
        for (uint32_t i = 0; i < j->n_executors; i++) {
                const struct executor *e = j->executors[i];
                assert_ptr_equal(e->job, j);
                assert_int_equal(e->role, i >= 2);
                assert_int_equal(e->index, i >= 2 ? i - 2 : i);
                assert_int_equal(e->attempt, 0);
                assert_int_equal(e->state, EXECUTOR_PENDING);
        }
        assert_ptr_equal(job_executor(j, "worker", 0), j->executors[2]);
        assert_ptr_equal(job_executor(j, "ps", 1), j->executors[1]);
        assert_null(job_executor(j, "ps", 2));
        assert_null(job_executor(j, "worker", UINT32_MAX));
        assert_null(job_executor(j, "chief", 0));
        check(j);
        assert_null(job_free(j));
        assert_null(job_free(NULL));
}

static void test_transitions(void **state) {
        static const enum executor_event life[] = { EXECUTOR_EVENT_PLACED, EXECUTOR_EVENT_ORDERED,
                                                    EXECUTOR_EVENT_STARTED, EXECUTOR_EVENT_FAILED };
        struct job *j = job("'gangPolicy': {}");
        struct executor *e = j->executors[3];

        /* Refused, and nothing moves. */
        assert_int_equal(job_transition(j, JOB_EVENT_UP), -EPROTO);
        assert_int_equal(j->state, JOB_SUBMITTED);
        assert_int_equal(executor_transition(e, EXECUTOR_EVENT_STARTED), -EPROTO);
        assert_int_equal(executor_again(e), -EPROTO);
        assert_int_equal(e->restart.n, 0);
        check(j);
        for (uint32_t round = 0; round < 3; round++) {
                executor_number(e, round + 1);
                for (size_t i = 0; i < ELEMENTSOF(life); i++) {
                        assert_int_equal(executor_transition(e, life[i]), 0);
                        check(j);
                }
                assert_int_equal(executor_again(e), 0);
                assert_int_equal(e->state, EXECUTOR_PENDING);
                assert_int_equal(e->restart.n, round);
                assert_int_equal(j->roles[1].restarts, round);
                check(j);
        }
        /* What never ran was not started again. */
        e->bounced = true;
        executor_number(e, 4);
        assert_int_equal(e->restart.n, 2);
        assert_int_equal(j->roles[1].restarts, 2);
        assert_false(e->bounced);
        executor_restore_state(e, EXECUTOR_RUNNING);
        check(j);
        job_free(j);
}

/* Successes and failures are counted once; a stop that somebody asked for is neither. */
static void test_gone(void **state) {
        static const struct {
                enum executor_state state;
                uint32_t succeeded, failed;
        } table[] = {
                { EXECUTOR_SUCCEEDED, 1, 0 },
                { EXECUTOR_FAILED, 0, 1 },
                { EXECUTOR_LOST, 0, 1 },
                { EXECUTOR_KILLED, 0, 0 },
        };
        for (size_t i = 0; i < ELEMENTSOF(table); i++) {
                struct job *j = job("'gangPolicy': {}");
                executor_restore_state(j->executors[0], table[i].state);
                executor_set_gone(j->executors[0]);
                executor_set_gone(j->executors[0]);
                assert_true(j->executors[0]->gone);
                assert_int_equal(j->roles[0].n_succeeded, table[i].succeeded);
                assert_int_equal(j->roles[0].n_failed, table[i].failed);
                job_free(j);
        }
}

static void test_all_up(void **state) {
        static const struct {
                const char *policy;
                uint32_t needed; /* of the 3 workers */
        } table[] = { { "'gangPolicy': {}", 2 }, { "'dynamicPolicy': {}", 2 } };

        for (size_t i = 0; i < ELEMENTSOF(table); i++) {
                struct job *j = job(table[i].policy);
                assert_false(job_all_up(j));
                executor_restore_state(j->executors[0], EXECUTOR_RUNNING);
                executor_restore_state(j->executors[1], EXECUTOR_RUNNING);
                for (uint32_t k = 0; k < 3; k++) {
                        assert_int_equal(job_all_up(j), k >= table[i].needed);
                        executor_restore_state(j->executors[2 + k], EXECUTOR_RUNNING);
                }
                assert_true(job_all_up(j));
                /* One that is over already was up. */
                executor_restore_state(j->executors[0], EXECUTOR_SUCCEEDED);
                executor_set_gone(j->executors[0]);
                assert_true(job_all_up(j));
                /* One that starts again is not. */
                executor_restore_state(j->executors[1], EXECUTOR_STARTING);
                assert_false(job_all_up(j));
                job_free(j);
        }
}

static void test_text(void **state) {
        char *text = NULL;

        assert_int_equal(text_set(&text, "%s is %d", "n1", 3), 0);
        assert_string_equal(text, "n1 is 3");
        assert_int_equal(text_set(&text, "<%s>", text), 0); /* made from what it replaces */
        assert_string_equal(text, "<n1 is 3>");
        assert_int_equal(text_set(&text, NULL), 0);
        assert_null(text);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_new),  cmocka_unit_test(test_transitions),
                cmocka_unit_test(test_gone), cmocka_unit_test(test_all_up),
                cmocka_unit_test(test_text),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
