/* SPDX-License-Identifier: Apache-2.0 */
/* What meets in the life of a job: preemption that is called off, gangs that close, scopes that start again,
 * holds and limits. A manager without a network is told what agents would tell it. */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <utlist.h>

#include <cmocka.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "masterd/core/manager.h"
#include "masterd/fleet/hosts.h"
#include "masterd/job/array.h"
#include "masterd/life/attempts.h"
#include "masterd/life/lifecycle.h"
#include "masterd/life/requeue.h"
#include "masterd/life/suspension.h"
#include "masterd/queue/queueing.h"
#include "tests/kit/json.h"
#include "tests/kit/masterd-kit.h"

static const char told_config[] = JSON({
        "signal" : "USR1@1h",
        "role" : [ { "roleName" : "w", "vcores" : 2, "memoryMb" : 16, "command" : "x" } ]
});
static const char timed_config[] = JSON({
        "timeLimit" : "1h",
        "maxAppAttempts" : 2,
        "role" : [ {
                "roleName" : "w",
                "vcores" : 2,
                "memoryMb" : 16,
                "command" : "x",
                "failover" : {
                        "commonFailoverPolicy" :
                                { "maxFailureTimes" : 1, "maxFailurePolicy" : "FAIL_ATTEMPT" }
                }
        } ]
});

static void told(struct kit *f, struct job **victim, struct job **by) {
        *victim = kit_submit_durable(f->m, told_config);
        kit_start_all(f->m, *victim);
        *by = kit_submit_durable(f->m, told_config);
        assert_int_equal((*by)->state, JOB_QUEUED);
        requeue_preempt(f->m, *victim, (*by)->number);
        kit_until_durable(f->m);
        assert_int_equal((*victim)->state, JOB_RUNNING);
        assert_int_equal((*victim)->requeue.by, (*by)->number);
        assert_non_null((*victim)->requeue.timer);
}

static void assert_stays(const struct job *j) {
        assert_int_equal(j->state, JOB_RUNNING);
        assert_int_equal(j->requeue.why, REQUEUE_NONE);
        assert_int_equal(j->requeue.by, 0);
        assert_int_equal(j->requeue.leave_real, 0);
        assert_null(j->requeue.timer);
}

static void test_called_off(void **state) {
        struct kit *f = *state;
        char text[SUSPENSION_TEXT_MAX];
        struct job *victim, *by;
        uint32_t number;

        kit_register_node(f->m, "n1", 2, UINT64_C(1) << 30);
        told(f, &victim, &by);
        number = by->number;
        kit_restart(f);
        kit_register_node(f->m, "n1", 2, UINT64_C(1) << 30);
        victim = manager_job(f->m, 1);
        by = manager_job(f->m, number);
        assert_int_equal(victim->requeue.by, number);
        lifecycle_stop_job(f->m, by, JOB_EVENT_KILLED, "killed");
        kit_until_durable(f->m);
        assert_stays(victim);

        /* Held by a person. */
        by = kit_submit_durable(f->m, told_config);
        requeue_preempt(f->m, victim, by->number);
        assert_int_equal(suspension_begin(f->m, by, SUSPEND_STOP, 0, text), 0);
        assert_stays(victim);
        assert_int_equal(suspension_end(f->m, by, 0, text), 0);

        /* Has found another place. */
        requeue_preempt(f->m, victim, by->number);
        assert_non_null(victim->requeue.timer);
        kit_register_node(f->m, "n2", 2, UINT64_C(1) << 30);
        assert_int_equal(by->state, JOB_STARTING);
        assert_stays(victim);
}

static void test_gang_closes(void **state) {
        struct kit *f = *state;
        struct job *j;

        kit_register_node(f->m, "n1", 2, UINT64_C(1) << 30);
        j = kit_submit_durable(f->m, JSON({
                                       "role" : [ {
                                               "roleName" : "w",
                                               "num" : 4,
                                               "minNum" : 2,
                                               "vcores" : 1,
                                               "memoryMb" : 16,
                                               "successPercent" : 100,
                                               "command" : "x"
                                       } ]
                               }));
        assert_int_equal(kit_in_state(j, EXECUTOR_PLACED), 2);
        kit_start_all(f->m, j);
        assert_int_equal(j->state, JOB_RUNNING);
        kit_exited(f->m, j->executors[0], 0);
        assert_int_equal(kit_in_state(j, EXECUTOR_PLACED) + kit_in_state(j, EXECUTOR_PENDING), 0);
        kit_restart(f);
        j = manager_job(f->m, 1);
        assert_int_equal(kit_in_state(j, EXECUTOR_PENDING), 0);
        kit_exited(f->m, j->executors[1], 0);
        assert_int_equal(j->state, JOB_SUCCEEDED);
}

/* All that came together come together again, and not more than were there. */
static void test_elastic_scope(void **state) {
        struct kit *f = *state;
        struct job *j;

        kit_register_node(f->m, "n1", 2, UINT64_C(1) << 30);
        j = kit_submit_durable(f->m, JSON({
                                       "backoff" : { "initial" : 0 },
                                       "role" : [ {
                                               "roleName" : "w",
                                               "num" : 4,
                                               "minNum" : 2,
                                               "vcores" : 1,
                                               "memoryMb" : 16,
                                               "restartScope" : "role",
                                               "command" : "x"
                                       } ]
                               }));
        kit_start_all(f->m, j);
        lifecycle_move(f->m, j->executors[0], "test", "test");
        kit_exited(f->m, j->executors[0], 143);
        kit_exited(f->m, j->executors[1], 143);
        assert_int_equal(kit_in_state(j, EXECUTOR_PLACED), 2);
}

/* One that was put back into the queue may be held before it is there. */
static void test_held_on_its_way(void **state) {
        struct kit *f = *state;
        char text[SUSPENSION_TEXT_MAX], said[REQUEUE_TEXT_MAX];
        struct job *j;

        kit_register_node(f->m, "n1", 2, UINT64_C(1) << 30);
        j = kit_submit_durable(f->m, timed_config);
        kit_start_all(f->m, j);
        assert_int_equal(requeue_person(f->m, j, 0, "", said), 0);
        assert_int_equal(j->state, JOB_STOPPING);
        assert_int_equal(suspension_begin(f->m, j, SUSPEND_STOP, 0, text), 0);
        kit_restart(f);
        kit_register_node(f->m, "n1", 2, UINT64_C(1) << 30);
        j = manager_job(f->m, 1);
        attempts_vanished(f->m, j->executors[0]);
        kit_until_durable(f->m);
        assert_int_equal(j->state, JOB_QUEUED);
        assert_non_null(strstr(j->reason, "held by"));
        assert_int_equal(suspension_end(f->m, j, 0, text), 0);
        kit_until_durable(f->m);
        assert_int_equal(j->state, JOB_STARTING);
}

/* An attempt that fails while it is told to make room: the next one knows nothing of that. */
static void test_fails_while_told(void **state) {
        struct kit *f = *state;
        struct job *j, *by;

        kit_register_node(f->m, "n1", 2, UINT64_C(1) << 30);
        j = kit_submit_durable(
                f->m, JSON({
                        "signal" : "USR1@1h",
                        "maxAppAttempts" : 2,
                        "role" : [ {
                                "roleName" : "w",
                                "vcores" : 2,
                                "memoryMb" : 16,
                                "command" : "x",
                                "failover" : {
                                        "commonFailoverPolicy" :
                                                { "maxFailureTimes" : 1, "maxFailurePolicy" : "FAIL_ATTEMPT" }
                                }
                        } ]
                }));
        kit_start_all(f->m, j);
        by = kit_submit_durable(f->m, told_config);
        requeue_preempt(f->m, j, by->number);
        assert_true(j->requeue.leave_real > 0);
        kit_exited(f->m, j->executors[0], 1);
        assert_int_equal(j->attempt, 2);
        assert_int_equal(j->requeue.why, REQUEUE_NONE);
        assert_int_equal(j->requeue.leave_real, 0);
        assert_int_equal(j->requeue.n, 0);
}

static void test_dynamic_does_not_close(void **state) {
        struct kit *f = *state;
        struct job *j;

        kit_register_node(f->m, "n1", 2, UINT64_C(1) << 30);
        j = kit_submit_durable(f->m, JSON({
                                       "scheduler" : { "schedulePolicy" : { "dynamicPolicy" : {} } },
                                       "role" : [ {
                                               "roleName" : "w",
                                               "num" : 4,
                                               "minNum" : 2,
                                               "vcores" : 1,
                                               "memoryMb" : 16,
                                               "successPercent" : 100,
                                               "command" : "x"
                                       } ]
                               }));
        kit_start_all(f->m, j);
        kit_exited(f->m, j->executors[0], 0);
        assert_int_equal(kit_in_state(j, EXECUTOR_PLACED), 1);
}

/* Those beyond minNum, for which there is no room, do not keep others from starting again. */
static void test_optional_ones_hold_up_nobody(void **state) {
        struct kit *f = *state;
        struct job *j;

        kit_register_node(f->m, "n1", 3, UINT64_C(1) << 30);
        j = kit_submit_durable(
                f->m, JSON({
                        "backoff" : { "initial" : 0 },
                        "role" : [
                                { "roleName" : "ps", "vcores" : 1, "memoryMb" : 16, "command" : "x" }, {
                                        "roleName" : "w",
                                        "num" : 2,
                                        "minNum" : 1,
                                        "vcores" : 2,
                                        "memoryMb" : 16,
                                        "command" : "x"
                                }
                        ]
                }));
        kit_start_all(f->m, j);
        assert_int_equal(kit_in_state(j, EXECUTOR_RUNNING), 2);
        assert_int_equal(kit_in_state(j, EXECUTOR_PENDING), 1);
        lifecycle_move(f->m, j->executors[0], "test", "test");
        kit_exited(f->m, j->executors[0], 143);
        assert_int_equal(j->executors[0]->state, EXECUTOR_PLACED);
        assert_int_equal(j->executors[0]->attempt, 2);
}

/* Nor do they keep what is free from other jobs, however long they have waited. */
static void test_optional_ones_are_owed_nothing(void **state) {
        struct kit *f = *state;
        struct job *j, *small;

        kit_register_node(f->m, "n1", 3, UINT64_C(1) << 30);
        j = kit_submit_durable(f->m, JSON({
                                       "role" : [ {
                                               "roleName" : "w",
                                               "num" : 2,
                                               "minNum" : 1,
                                               "vcores" : 2,
                                               "memoryMb" : 16,
                                               "command" : "x"
                                       } ]
                               }));
        kit_start_all(f->m, j);
        assert_int_equal(kit_in_state(j, EXECUTOR_PENDING), 1);
        j->queue.waits_real -= UINT64_C(30) * 86400 * USEC_PER_SEC;
        queueing_changed(f->m, j);
        kit_until_durable(f->m);
        small = kit_submit_durable(
                f->m,
                JSON({ "role" : [ { "roleName" : "w", "vcores" : 1, "memoryMb" : 16, "command" : "x" } ] }));
        assert_int_equal(small->state, JOB_STARTING);
}

static void test_scope(void **state) {
        struct kit *f = *state;
        struct job *j;

        kit_register_node(f->m, "n1", 4, UINT64_C(1) << 30);
        j = kit_submit_durable(f->m, JSON({
                                       "role" : [ {
                                               "roleName" : "w",
                                               "num" : 2,
                                               "vcores" : 1,
                                               "memoryMb" : 16,
                                               "restartScope" : "role",
                                               "command" : "x"
                                       } ]
                               }));
        kit_start_all(f->m, j);
        assert_int_equal(j->state, JOB_RUNNING);
        assert_null(j->reason);

        /* A host is drained of one of them. */
        lifecycle_move(f->m, j->executors[0], "its host is drained", "drained");
        kit_exited(f->m, j->executors[0], 143);
        assert_int_equal(j->executors[1]->state, EXECUTOR_STOPPING);
        assert_non_null(strstr(j->reason, "role w starts again: w/0 was moved"));
        kit_restart(f);
        j = manager_job(f->m, 1);
        assert_non_null(strstr(j->reason, "role w starts again"));
        kit_exited(f->m, j->executors[1], 143);
        kit_register_node(f->m, "n1", 4, UINT64_C(1) << 30);
        assert_int_equal(kit_in_state(j, EXECUTOR_PLACED), 2);
        kit_start_all(f->m, j);
        assert_int_equal(kit_in_state(j, EXECUTOR_RUNNING), 2);
        assert_int_equal(j->roles[0].scope->restarts, 1);
        assert_null(j->reason);
}

static void test_hold_keeps_the_time(void **state) {
        struct kit *f = *state;
        char text[SUSPENSION_TEXT_MAX];
        struct job *j;
        uint64_t slot;

        kit_register_node(f->m, "n1", 2, UINT64_C(1) << 30);
        j = kit_submit_durable(f->m, timed_config);
        kit_start_all(f->m, j);
        /* Back in the queue with what is left of its time, since its host takes nothing. */
        (void)hosts_hold_noticed(f->m, nodes_get(&f->m->nodes, "n1"), HOLD_HEALTH, "test");
        kit_exited(f->m, j->executors[0], 1);
        assert_int_equal(j->state, JOB_QUEUED);
        slot = j->slot.since_real;
        assert_true(slot > 0 && j->slot.timer);
        assert_int_equal(suspension_begin(f->m, j, SUSPEND_STOP, 0, text), 0);
        assert_null(j->slot.timer);
        kit_restart(f);
        j = manager_job(f->m, 1);
        assert_null(j->slot.timer);
        assert_non_null(strstr(j->reason, "held by"));
        assert_int_equal(suspension_end(f->m, j, 0, text), 0);
        assert_true(j->slot.since_real > slot);
        assert_non_null(j->slot.timer);
        kit_until_durable(f->m);
}

static const char graceful_config[] =
        JSON({ "stopGrace" : "10s", "role" : [ { "roleName" : "w", "vcores" : 1, "command" : "x" } ] });

/* What a kill asks for is kept over a kill of masterd, and gets shorter, never longer. */
static void test_kill_has_its_own_grace(void **state) {
        struct kit *f = *state;
        struct job *j;

        kit_register_node(f->m, "n1", 2, UINT64_C(1) << 30);
        j = kit_submit_durable(f->m, graceful_config);
        kit_start_all(f->m, j);
        assert_int_equal(executor_grace(j->executors[0]), 10 * USEC_PER_SEC);
        lifecycle_kill_job(f->m, j, 90 * USEC_PER_SEC, "killed");
        assert_int_equal(j->state, JOB_STOPPING);
        assert_int_equal(executor_grace(j->executors[0]), 90 * USEC_PER_SEC);
        lifecycle_kill_job(f->m, j, 100 * USEC_PER_SEC, "longer");
        assert_int_equal(job_grace(j), 90 * USEC_PER_SEC);
        kit_until_durable(f->m);
        kit_restart(f);
        assert_int_equal(job_grace(manager_job(f->m, 1)), 90 * USEC_PER_SEC);

        kit_register_node(f->m, "n1", 2, UINT64_C(1) << 30);
        j = kit_submit_durable(f->m, graceful_config);
        kit_start_all(f->m, j);
        lifecycle_stop_job(f->m, j, JOB_EVENT_KILLED, "killed");
        assert_int_equal(job_grace(j), 10 * USEC_PER_SEC);
        lifecycle_kill_job(f->m, j, 0, "shorter");
        assert_int_equal(j->state, JOB_STOPPING);
        assert_int_equal(executor_grace(j->executors[0]), 0);
        assert_string_equal(j->reason, "killed");
        kit_until_durable(f->m);
        kit_restart(f);
        assert_int_equal(job_grace(manager_job(f->m, 2)), 0);
}

static const char array_config[] = JSON({
        "array" : "0-2%1",
        "stopGrace" : "10s",
        "role" : [ { "roleName" : "w", "vcores" : 1, "command" : "x" } ]
});

static void test_array_is_killed_with_its_grace(void **state) {
        struct kit *f = *state;
        struct job *j, *e;

        kit_register_node(f->m, "n1", 2, UINT64_C(1) << 30);
        j = kit_submit_durable(f->m, array_config);
        e = manager_job(f->m, j->array->jobs[0]);
        assert_non_null(e);
        kit_start_all(f->m, e);
        lifecycle_kill_job(f->m, j, 90 * USEC_PER_SEC, "killed");
        assert_int_equal(e->state, JOB_STOPPING);
        assert_int_equal(job_grace(e), 90 * USEC_PER_SEC);
        lifecycle_kill_job(f->m, j, USEC_PER_SEC, "now");
        assert_int_equal(job_grace(e), USEC_PER_SEC);
        kit_until_durable(f->m);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_called_off, kit_setup, kit_teardown),
                cmocka_unit_test_setup_teardown(test_gang_closes, kit_setup, kit_teardown),
                cmocka_unit_test_setup_teardown(test_elastic_scope, kit_setup, kit_teardown),
                cmocka_unit_test_setup_teardown(test_held_on_its_way, kit_setup, kit_teardown),
                cmocka_unit_test_setup_teardown(test_fails_while_told, kit_setup, kit_teardown),
                cmocka_unit_test_setup_teardown(test_dynamic_does_not_close, kit_setup, kit_teardown),
                cmocka_unit_test_setup_teardown(test_optional_ones_hold_up_nobody, kit_setup, kit_teardown),
                cmocka_unit_test_setup_teardown(test_optional_ones_are_owed_nothing, kit_setup, kit_teardown),
                cmocka_unit_test_setup_teardown(test_scope, kit_setup, kit_teardown),
                cmocka_unit_test_setup_teardown(test_hold_keeps_the_time, kit_setup, kit_teardown),
                cmocka_unit_test_setup_teardown(test_kill_has_its_own_grace, kit_setup, kit_teardown),
                cmocka_unit_test_setup_teardown(test_array_is_killed_with_its_grace, kit_setup, kit_teardown),
        };

        setenv("PRIMUS_LOG_LEVEL", "err", 0);
        log_open("test-life");
        return cmocka_run_group_tests(tests, NULL, NULL);
}
