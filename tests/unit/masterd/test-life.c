/* SPDX-License-Identifier: Apache-2.0 */
/* What meets in the life of a job: preemption that is called off, gangs that close, scopes that start again,
 * holds and limits. A manager without a network is told what agents would tell it. */
#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include <cmocka.h>

#include "lib/base/clock.h"
#include "lib/base/file.h"
#include "lib/base/log.h"
#include "masterd/hosts.h"
#include "masterd/lifecycle.h"
#include "masterd/link.h"
#include "masterd/liveness.h"
#include "masterd/manager.h"
#include "masterd/orders.h"
#include "masterd/queueing.h"
#include "masterd/recover.h"
#include "masterd/requeue.h"
#include "masterd/submit.h"
#include "masterd/suspension.h"
#include "tests/unit/masterd/kit.h"

struct fixture {
        char directory[64];
        struct manager *m;
};

static struct link fake_link; /* no connection: orders find nobody */

static void register_node(struct manager *m, const char *name, uint32_t cpus) {
        struct registration g = { .boot_id = { .qwords = { 1, 1 } },
                                  .inventory = { .controllers = true,
                                                 .hostname = (char *)name,
                                                 .kernel = (char *)"",
                                                 .os = (char *)"",
                                                 .cpus = cpus,
                                                 .memory = UINT64_C(1) << 30,
                                                 .port_first = 30000,
                                                 .port_last = 30099,
                                                 .allow_root = true } };
        struct node *node;

        assert_int_equal(nodes_add(&m->nodes, name, &node), 0);
        assert_int_equal(addr_parse("192.0.2.1", 0, &g.inventory.address), 0);
        assert_int_equal(recover_registered(m, node, &fake_link, &g), 0);
        kit_until_durable(m);
}

static void serve(struct manager *m) {
        m->ready_boot = now_boot();
        m->serving = true;
        assert_true(liveness_start(m) >= 0);
        manager_schedule(m);
        kit_until_durable(m);
}

static int setup(void **state) {
        static struct fixture f;

        snprintf(f.directory, sizeof(f.directory), "/tmp/test-life-XXXXXX");
        assert_non_null(mkdtemp(f.directory));
        f.m = kit_open(f.directory);
        serve(f.m);
        *state = &f;
        return 0;
}

static int teardown(void **state) {
        struct fixture *f = *state;

        manager_free(f->m);
        (void)remove_tree(f->directory);
        return 0;
}

/* As after a kill -9. */
static void restart(struct fixture *f) {
        char copy[64];

        kit_until_durable(f->m);
        kit_copy_store(f->directory, copy);
        manager_free(f->m);
        (void)remove_tree(f->directory);
        memcpy(f->directory, copy, sizeof(copy));
        f->m = kit_open(f->directory);
        serve(f->m);
}

static struct job *submit(struct manager *m, const char *config) {
        struct submission s = { .owner = 1000, .config = config, .config_size = strlen(config) };
        sd_bus_error error = SD_BUS_ERROR_NULL;
        char *warnings = NULL;
        struct job *j = NULL;

        if (submit_job(m, &s, &j, &warnings, &error) < 0)
                fail_msg("%s", error.message ? error.message : "?");
        submission_done(&s);
        free(warnings);
        kit_until_durable(m);
        return j;
}

static uint32_t in_state(const struct job *j, enum executor_state s) {
        uint32_t n = 0;

        for (size_t i = 0; i < j->spec->n_roles; i++)
                n += j->roles[i].n_state[s];
        return n;
}

/* All that are placed run. */
static void start_all(struct manager *m, struct job *j) {
        for (uint32_t i = 0; i < j->n_executors; i++) {
                struct executor *e = j->executors[i];
                if (e->state != EXECUTOR_PLACED && e->state != EXECUTOR_STARTING)
                        continue;
                if (e->state == EXECUTOR_PLACED)
                        assert_true(executor_transition(e, EXECUTOR_EVENT_ORDERED) >= 0);
                lifecycle_start_answered(m, e,
                                         &(struct start_result){ .message = "",
                                                                 .invocation = { .qwords = { 1, 2 } },
                                                                 .started_real = now_real() });
        }
        kit_until_durable(m);
}

static void exited(struct manager *m, struct executor *e, int status) {
        struct exit_report x = { .id = executor_id_of(e),
                                 .result = "exit-code",
                                 .code = "exited",
                                 .status = status,
                                 .stop_requested = e->stop_ordered,
                                 .started_real = now_real(),
                                 .ended_real = now_real(),
                                 .memory_peak = UINT64_MAX,
                                 .cpu_usec = UINT64_MAX };

        if (status == 0)
                snprintf(x.result, sizeof(x.result), "success");
        lifecycle_exited(m, e->node, &x);
        kit_until_durable(m);
}

#define TOLD                                                                                                 \
        "{\"signal\":\"USR1@1h\",\"role\":[{\"roleName\":\"w\",\"vcores\":2,\"memoryMb\":16,\"command\":"    \
        "\"x\"}]}"
#define TIMED                                                                                                \
        "{\"timeLimit\":\"1h\",\"maxAppAttempts\":2,\"role\":[{\"roleName\":\"w\",\"vcores\":2,"             \
        "\"memoryMb\":16,"                                                                                   \
        "\"command\":\"x\",\"failover\":{\"commonFailoverPolicy\":{\"maxFailureTimes\":1,"                   \
        "\"maxFailurePolicy\":"                                                                              \
        "\"FAIL_ATTEMPT\"}}}]}"

static void told(struct fixture *f, struct job **victim, struct job **by) {
        *victim = submit(f->m, TOLD);
        start_all(f->m, *victim);
        *by = submit(f->m, TOLD);
        assert_int_equal((*by)->state, JOB_QUEUED);
        requeue_preempt(f->m, *victim, (*by)->number);
        kit_until_durable(f->m);
        assert_int_equal((*victim)->state, JOB_RUNNING);
        assert_int_equal((*victim)->leave_for, (*by)->number);
        assert_non_null((*victim)->leave_timer);
}

static void assert_stays(const struct job *j) {
        assert_int_equal(j->state, JOB_RUNNING);
        assert_int_equal(j->leave_why, REQUEUE_NONE);
        assert_int_equal(j->leave_for, 0);
        assert_int_equal(j->leave_real, 0);
        assert_null(j->leave_timer);
}

static void test_called_off(void **state) {
        struct fixture *f = *state;
        char text[SUSPENSION_TEXT_MAX];
        struct job *victim, *by;
        uint32_t number;

        register_node(f->m, "n1", 2);
        told(f, &victim, &by);
        number = by->number;
        restart(f);
        register_node(f->m, "n1", 2);
        victim = manager_job(f->m, 1);
        by = manager_job(f->m, number);
        assert_int_equal(victim->leave_for, number);
        lifecycle_stop_job(f->m, by, JOB_EVENT_KILLED, "killed");
        kit_until_durable(f->m);
        assert_stays(victim);

        /* Held by a person. */
        by = submit(f->m, TOLD);
        requeue_preempt(f->m, victim, by->number);
        assert_int_equal(suspension_begin(f->m, by, SUSPEND_STOP, 0, text), 0);
        assert_stays(victim);
        assert_int_equal(suspension_end(f->m, by, 0, text), 0);

        /* Has found another place. */
        requeue_preempt(f->m, victim, by->number);
        assert_non_null(victim->leave_timer);
        register_node(f->m, "n2", 2);
        assert_int_equal(by->state, JOB_STARTING);
        assert_stays(victim);
}

static void test_gang_closes(void **state) {
        struct fixture *f = *state;
        struct job *j;

        register_node(f->m, "n1", 2);
        j = submit(f->m, "{\"role\":[{\"roleName\":\"w\",\"num\":4,\"minNum\":2,\"vcores\":1,\"memoryMb\":16,"
                         "\"successPercent\":100,\"command\":\"x\"}]}");
        assert_int_equal(in_state(j, EXECUTOR_PLACED), 2);
        start_all(f->m, j);
        assert_int_equal(j->state, JOB_RUNNING);
        exited(f->m, j->executors[0], 0);
        assert_int_equal(in_state(j, EXECUTOR_PLACED) + in_state(j, EXECUTOR_PENDING), 0);
        restart(f);
        j = manager_job(f->m, 1);
        assert_int_equal(in_state(j, EXECUTOR_PENDING), 0);
        exited(f->m, j->executors[1], 0);
        assert_int_equal(j->state, JOB_SUCCEEDED);
}

/* All that came together come together again, and not more than were there. */
static void test_elastic_scope(void **state) {
        struct fixture *f = *state;
        struct job *j;

        register_node(f->m, "n1", 2);
        j = submit(f->m, "{\"backoff\":{\"initial\":0},\"role\":[{\"roleName\":\"w\",\"num\":4,\"minNum\":2,"
                         "\"vcores\":1,"
                         "\"memoryMb\":16,\"restartScope\":\"role\",\"command\":\"x\"}]}");
        start_all(f->m, j);
        lifecycle_move(f->m, j->executors[0], "test", "test");
        exited(f->m, j->executors[0], 143);
        exited(f->m, j->executors[1], 143);
        assert_int_equal(in_state(j, EXECUTOR_PLACED), 2);
}

/* One that was put back into the queue may be held before it is there. */
static void test_held_on_its_way(void **state) {
        struct fixture *f = *state;
        char text[SUSPENSION_TEXT_MAX], said[REQUEUE_TEXT_MAX];
        struct job *j;

        register_node(f->m, "n1", 2);
        j = submit(f->m, TIMED);
        start_all(f->m, j);
        assert_int_equal(requeue_person(f->m, j, 0, "", said), 0);
        assert_int_equal(j->state, JOB_STOPPING);
        assert_int_equal(suspension_begin(f->m, j, SUSPEND_STOP, 0, text), 0);
        restart(f);
        register_node(f->m, "n1", 2);
        j = manager_job(f->m, 1);
        lifecycle_vanished(f->m, j->executors[0]);
        kit_until_durable(f->m);
        assert_int_equal(j->state, JOB_QUEUED);
        assert_non_null(strstr(j->reason, "held by"));
        assert_int_equal(suspension_end(f->m, j, 0, text), 0);
        kit_until_durable(f->m);
        assert_int_equal(j->state, JOB_STARTING);
}

/* An attempt that fails while it is told to make room: the next one knows nothing of that. */
static void test_fails_while_told(void **state) {
        struct fixture *f = *state;
        struct job *j, *by;

        register_node(f->m, "n1", 2);
        j = submit(f->m,
                   "{\"signal\":\"USR1@1h\",\"maxAppAttempts\":2,\"role\":[{\"roleName\":\"w\",\"vcores\":2,"
                   "\"memoryMb\":16,\"command\":\"x\",\"failover\":{\"commonFailoverPolicy\":{"
                   "\"maxFailureTimes\":1,"
                   "\"maxFailurePolicy\":\"FAIL_ATTEMPT\"}}}]}");
        start_all(f->m, j);
        by = submit(f->m, TOLD);
        requeue_preempt(f->m, j, by->number);
        assert_true(j->leave_real > 0);
        exited(f->m, j->executors[0], 1);
        assert_int_equal(j->attempt, 2);
        assert_int_equal(j->leave_why, REQUEUE_NONE);
        assert_int_equal(j->leave_real, 0);
        assert_int_equal(j->requeues, 0);
}

static void test_dynamic_does_not_close(void **state) {
        struct fixture *f = *state;
        struct job *j;

        register_node(f->m, "n1", 2);
        j = submit(f->m,
                   "{\"scheduler\":{\"schedulePolicy\":{\"dynamicPolicy\":{}}},\"role\":[{\"roleName\":\"w\","
                   "\"num\":4,\"minNum\":2,\"vcores\":1,\"memoryMb\":16,\"successPercent\":100,\"command\":"
                   "\"x\"}]}");
        start_all(f->m, j);
        exited(f->m, j->executors[0], 0);
        assert_int_equal(in_state(j, EXECUTOR_PLACED), 1);
}

/* Those beyond minNum, for which there is no room, do not keep others from starting again. */
static void test_optional_ones_hold_up_nobody(void **state) {
        struct fixture *f = *state;
        struct job *j;

        register_node(f->m, "n1", 3);
        j = submit(f->m, "{\"backoff\":{\"initial\":0},\"role\":[{\"roleName\":\"ps\",\"vcores\":1,"
                         "\"memoryMb\":16,\"command\":\"x\"},"
                         "{\"roleName\":\"w\",\"num\":2,\"minNum\":1,\"vcores\":2,\"memoryMb\":16,"
                         "\"command\":\"x\"}]}");
        start_all(f->m, j);
        assert_int_equal(in_state(j, EXECUTOR_RUNNING), 2);
        assert_int_equal(in_state(j, EXECUTOR_PENDING), 1);
        lifecycle_move(f->m, j->executors[0], "test", "test");
        exited(f->m, j->executors[0], 143);
        assert_int_equal(j->executors[0]->state, EXECUTOR_PLACED);
        assert_int_equal(j->executors[0]->attempt, 2);
}

/* Nor do they keep what is free from other jobs, however long they have waited. */
static void test_optional_ones_are_owed_nothing(void **state) {
        struct fixture *f = *state;
        struct job *j, *small;

        register_node(f->m, "n1", 3);
        j = submit(f->m, "{\"role\":[{\"roleName\":\"w\",\"num\":2,\"minNum\":1,\"vcores\":2,\"memoryMb\":16,"
                         "\"command\":"
                         "\"x\"}]}");
        start_all(f->m, j);
        assert_int_equal(in_state(j, EXECUTOR_PENDING), 1);
        j->waits_real -= UINT64_C(30) * 86400 * USEC_PER_SEC;
        queueing_changed(f->m, j);
        kit_until_durable(f->m);
        small = submit(f->m,
                       "{\"role\":[{\"roleName\":\"w\",\"vcores\":1,\"memoryMb\":16,\"command\":\"x\"}]}");
        assert_int_equal(small->state, JOB_STARTING);
}

static void test_scope(void **state) {
        struct fixture *f = *state;
        struct job *j;

        register_node(f->m, "n1", 4);
        j = submit(f->m, "{\"role\":[{\"roleName\":\"w\",\"num\":2,\"vcores\":1,\"memoryMb\":16,"
                         "\"restartScope\":\"role\","
                         "\"command\":\"x\"}]}");
        start_all(f->m, j);
        assert_int_equal(j->state, JOB_RUNNING);
        assert_null(j->reason);

        /* A host is drained of one of them. */
        lifecycle_move(f->m, j->executors[0], "its host is drained", "drained");
        exited(f->m, j->executors[0], 143);
        assert_int_equal(j->executors[1]->state, EXECUTOR_STOPPING);
        assert_non_null(strstr(j->reason, "role w starts again: w/0 was moved"));
        restart(f);
        j = manager_job(f->m, 1);
        assert_non_null(strstr(j->reason, "role w starts again"));
        exited(f->m, j->executors[1], 143);
        register_node(f->m, "n1", 4);
        assert_int_equal(in_state(j, EXECUTOR_PLACED), 2);
        start_all(f->m, j);
        assert_int_equal(in_state(j, EXECUTOR_RUNNING), 2);
        assert_int_equal(j->roles[0].scope->restarts, 1);
        assert_null(j->reason);
}

static void test_hold_keeps_the_time(void **state) {
        struct fixture *f = *state;
        char text[SUSPENSION_TEXT_MAX];
        struct job *j;
        uint64_t slot;

        register_node(f->m, "n1", 2);
        j = submit(f->m, TIMED);
        start_all(f->m, j);
        /* Back in the queue with what is left of its time, since its host takes nothing. */
        (void)hosts_hold_noticed(f->m, nodes_get(&f->m->nodes, "n1"), HOLD_HEALTH, "test");
        exited(f->m, j->executors[0], 1);
        assert_int_equal(j->state, JOB_QUEUED);
        slot = j->slot_real;
        assert_true(slot > 0 && j->limit_timer);
        assert_int_equal(suspension_begin(f->m, j, SUSPEND_STOP, 0, text), 0);
        assert_null(j->limit_timer);
        restart(f);
        j = manager_job(f->m, 1);
        assert_null(j->limit_timer);
        assert_non_null(strstr(j->reason, "held by"));
        assert_int_equal(suspension_end(f->m, j, 0, text), 0);
        assert_true(j->slot_real > slot);
        assert_non_null(j->limit_timer);
        kit_until_durable(f->m);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_called_off, setup, teardown),
                cmocka_unit_test_setup_teardown(test_gang_closes, setup, teardown),
                cmocka_unit_test_setup_teardown(test_elastic_scope, setup, teardown),
                cmocka_unit_test_setup_teardown(test_held_on_its_way, setup, teardown),
                cmocka_unit_test_setup_teardown(test_fails_while_told, setup, teardown),
                cmocka_unit_test_setup_teardown(test_dynamic_does_not_close, setup, teardown),
                cmocka_unit_test_setup_teardown(test_optional_ones_hold_up_nobody, setup, teardown),
                cmocka_unit_test_setup_teardown(test_optional_ones_are_owed_nothing, setup, teardown),
                cmocka_unit_test_setup_teardown(test_scope, setup, teardown),
                cmocka_unit_test_setup_teardown(test_hold_keeps_the_time, setup, teardown),
        };

        setenv("PRIMUS_LOG_LEVEL", "err", 0);
        log_open("test-life");
        return cmocka_run_group_tests(tests, NULL, NULL);
}
