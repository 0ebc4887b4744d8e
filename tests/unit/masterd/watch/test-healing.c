/* SPDX-License-Identifier: Apache-2.0 */
/* Verdicts carried out, under a simulated clock: told once, acted upon once, also by a master that was
 * killed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/clock.h"
#include "masterd/core/manager.h"
#include "masterd/fleet/hosts.h"
#include "masterd/watch/healing.h"
#include "tests/kit/json.h"
#include "tests/kit/masterd-kit.h"

#define GANG(rest)                                                                                           \
        "{'backoff':{'initial':0}," rest "'role':[{'roleName':'w','num':3,'vcores':1,'memoryMb':16,"         \
        "'command':'x','failover':{'commonFailoverPolicy':{'maxFailureTimes':9}}}]}"

enum what {
        WORKS,
        WAITS,
        STOPPED,
        SLEEPS,
};

/* What each of the job's executors does for so many seconds of the simulated clock; judged every two. */
static void live(struct manager *m, struct job *j, uint64_t *now, unsigned seconds, const enum what *what) {
        static uint64_t counts[8]; /* of bytes; only ever rises */

        for (unsigned s = 0; s < seconds; s++, *now += USEC_PER_SEC) {
                for (uint32_t i = 0; i < j->n_executors; i++) {
                        uint64_t values[_TELEMETRY_MAX];

                        telemetry_clear(values);
                        counts[i] += what[i] == WORKS ? 8 << 20 : 50;
                        values[TELEMETRY_CPU_USEC] = what[i] == SLEEPS ? 1 : counts[i] / 8;
                        values[TELEMETRY_NET_RX_BYTES] = values[TELEMETRY_NET_TX_BYTES] =
                                what[i] == SLEEPS ? 0 : counts[i];
                        values[TELEMETRY_READ_BYTES] = values[TELEMETRY_WRITE_BYTES] = 0;
                        values[TELEMETRY_TCP_CONNECTIONS] = what[i] == SLEEPS ? 0 : 2;
                        values[TELEMETRY_TASKS] = 4;
                        values[TELEMETRY_TASKS_STOPPED] = what[i] == STOPPED ? 3 : 0;
                        healing_observe(m, j->executors[i], *now, values);
                }
                if (s % 2 == 1)
                        healing_judge(m, *now);
        }
        kit_until_durable(m);
}

static const enum what all_work[] = { WORKS, WORKS, WORKS }, all_wait[] = { WAITS, WAITS, WAITS },
                       one_stopped[] = { WAITS, STOPPED, WAITS }, all_sleep[] = { SLEEPS, SLEEPS, SLEEPS };

static struct job *begin(struct kit *f, const char *config, uint64_t *now) {
        struct job *j;

        kit_register_node(f->m, "n1", 2, UINT64_C(1) << 30);
        kit_register_node(f->m, "n2", 4, UINT64_C(1) << 30);
        j = kit_submit_durable(f->m, config);
        kit_until_durable(f->m);
        kit_start_all(f->m, j);
        assert_int_equal(j->state, JOB_RUNNING);
        *now = now_boot();
        return j;
}

static struct episode *only(const struct job *j) {
        assert_non_null(j->health);
        assert_non_null(j->health->episodes);
        assert_null(j->health->episodes->next);
        return j->health->episodes;
}

static void test_note(void **state) {
        struct kit *f = *state;
        uint64_t now, seq;
        struct job *j = begin(f, GANG("'health':{'hung':{'after':'20s'}},"), &now);
        struct episode *p;

        live(f->m, j, &now, 120, all_work);
        assert_null(j->health->episodes);
        live(f->m, j, &now, 18, one_stopped);
        assert_null(j->health->episodes);
        live(f->m, j, &now, 10, one_stopped);
        p = only(j);
        assert_int_equal(p->kind, VERDICT_HUNG);
        assert_int_equal(p->role, EPISODE_ALL);
        assert_int_equal(p->suspect, 1);
        assert_int_equal(p->action, HEALTH_NOTE);
        assert_int_equal(p->acted_real, 0);
        assert_int_equal(kit_in_state(j, EXECUTOR_RUNNING), 3);
        seq = j->event_seq;
        live(f->m, j, &now, 60, one_stopped);
        assert_int_equal(j->event_seq, seq); /* once */

        /* A master after this one knows it, finds it again, and says nothing. */
        kit_restart(f);
        j = manager_job(f->m, 1);
        assert_int_equal(only(j)->kind, VERDICT_HUNG);
        assert_true(only(j)->recalled_boot > 0);
        seq = j->event_seq;
        live(f->m, j, &now, 30, one_stopped);
        assert_int_equal(only(j)->recalled_boot, 0);
        assert_true(j->event_seq <= seq + 3); /* what its threads do may be told anew, the verdict is not */
        seq = j->event_seq;
        live(f->m, j, &now, 20, all_work);
        assert_null(j->health->episodes);
        assert_int_equal(j->event_seq, seq + 1); /* recovered */
        kit_restart(f);
        j = manager_job(f->m, 1);
        assert_true(!j->health || !j->health->episodes);
}

static void test_restart(void **state) {
        struct kit *f = *state;
        uint64_t now;
        struct job *j = begin(f, GANG("'health':{'hung':{'after':'20s','action':'restart'}},"), &now);

        live(f->m, j, &now, 60, all_work);
        live(f->m, j, &now, 30, one_stopped);
        assert_true(only(j)->acted_real > 0);
        assert_int_equal(j->executors[1]->state, EXECUTOR_STOPPING);
        assert_int_equal(kit_in_state(j, EXECUTOR_RUNNING), 2);

        /* Killed behind that: what was done is known, and is not done to another attempt. */
        kit_restart(f);
        kit_register_node(f->m, "n1", 2, UINT64_C(1) << 30);
        kit_register_node(f->m, "n2", 4, UINT64_C(1) << 30);
        j = manager_job(f->m, 1);
        assert_true(only(j)->acted_real > 0);
        for (uint32_t i = 0; i < 3; i++)
                if (j->executors[i]->state == EXECUTOR_LOST || j->executors[i]->state == EXECUTOR_PENDING)
                        kit_until_durable(f->m);
}

/* Nobody stands out: all of them begin anew. */
static void test_restart_all(void **state) {
        struct kit *f = *state;
        uint64_t now;
        struct job *j = begin(f, GANG("'health':{'hung':{'after':'20s','action':'restart'}},"), &now);

        live(f->m, j, &now, 60, all_work);
        live(f->m, j, &now, 30, all_wait);
        assert_int_equal(kit_in_state(j, EXECUTOR_STOPPING), 3);
        for (uint32_t i = 0; i < 3; i++)
                kit_exited(f->m, j->executors[i], 143);
        kit_until_durable(f->m);
        kit_start_all(f->m, j);
        assert_int_equal(kit_in_state(j, EXECUTOR_RUNNING), 3);
        for (uint32_t i = 0; i < 3; i++) {
                assert_int_equal(j->executors[i]->attempt, 2);
                assert_int_equal(j->executors[i]->restart.history.n_failures, 0); /* no fault of theirs */
        }
        live(f->m, j, &now, 30, all_work);
        assert_null(j->health->episodes);
}

static void test_replace(void **state) {
        struct kit *f = *state;
        uint64_t now;
        struct job *j = begin(f, GANG("'health':{'hung':{'after':'20s','action':'quarantine'}},"), &now);
        char node[65];

        snprintf(node, sizeof(node), "%s", j->executors[1]->node->name);
        live(f->m, j, &now, 60, all_work);
        live(f->m, j, &now, 30, one_stopped);
        assert_int_equal(j->executors[1]->state, EXECUTOR_STOPPING);
        assert_true(job_avoids(j, node));
        assert_non_null(nodes_get(&f->m->nodes, node)->blame);
        assert_int_equal(nodes_get(&f->m->nodes, node)->blame->n_strikes, 1);
}

static void test_stop(void **state) {
        struct kit *f = *state;
        uint64_t now;
        struct job *j = begin(f, GANG("'health':{'idle':{'after':'20s','action':'stop'}},"), &now);

        live(f->m, j, &now, 40, all_sleep);
        assert_int_equal(j->state, JOB_STOPPING);
        assert_int_equal(j->verdict, JOB_EVENT_KILLED);
        assert_non_null(strstr(j->reason, "idle"));
        for (uint32_t i = 0; i < 3; i++)
                kit_exited(f->m, j->executors[i], 143);
        kit_until_durable(f->m);
        assert_null(j->health);
}

/* A role says otherwise than its job, and the job otherwise than the site. */
static void test_precedence(void **state) {
        struct kit *f = *state;
        uint64_t now;
        struct job *j;

        f->m->conf.health.actions[VERDICT_OOM] = HEALTH_WARN;
        j = begin(f, JSON({
                          "health" : { "hung" : { "action" : "stop" }, "idle" : { "action" : "off" } },
                          "role" : [ {
                                  "roleName" : "w",
                                  "num" : 1,
                                  "vcores" : 1,
                                  "memoryMb" : 16,
                                  "command" : "x",
                                  "health" : { "hung" : { "action" : "note" } }
                          } ]
                  }),
                  &now);
        assert_int_equal(healing_action(f->m, j, 0, VERDICT_HUNG), HEALTH_NOTE);
        assert_int_equal(healing_action(f->m, j, 0, VERDICT_IDLE), HEALTH_OFF);
        assert_int_equal(healing_action(f->m, j, 0, VERDICT_OOM), HEALTH_WARN);
        assert_int_equal(healing_action(f->m, j, 0, VERDICT_STRAGGLER), HEALTH_NOTE);
}

static void test_crash_loop(void **state) {
        struct kit *f = *state;
        uint64_t now;
        struct job *j = begin(f, GANG("'health':{'crashLoop':{'action':'warn'}},"), &now);
        struct episode *p;

        for (unsigned i = 0; i < 3; i++) {
                kit_exited(f->m, j->executors[0], 1);
                kit_until_durable(f->m);
                kit_start_all(f->m, j);
        }
        p = only(j);
        assert_int_equal(p->kind, VERDICT_CRASH_LOOP);
        assert_int_equal(p->index, 0);
        assert_true(p->acted_real > 0);
        kit_restart(f);
        j = manager_job(f->m, 1);
        assert_int_equal(only(j)->kind, VERDICT_CRASH_LOOP);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_note, kit_setup, kit_teardown),
                cmocka_unit_test_setup_teardown(test_restart, kit_setup, kit_teardown),
                cmocka_unit_test_setup_teardown(test_restart_all, kit_setup, kit_teardown),
                cmocka_unit_test_setup_teardown(test_replace, kit_setup, kit_teardown),
                cmocka_unit_test_setup_teardown(test_stop, kit_setup, kit_teardown),
                cmocka_unit_test_setup_teardown(test_precedence, kit_setup, kit_teardown),
                cmocka_unit_test_setup_teardown(test_crash_loop, kit_setup, kit_teardown),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
