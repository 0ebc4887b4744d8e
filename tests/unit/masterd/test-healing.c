/* SPDX-License-Identifier: Apache-2.0 */
/* Verdicts carried out, under a simulated clock: told once, acted upon once, also by a master that was
 * killed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/clock.h"
#include "lib/base/file.h"
#include "masterd/healing.h"
#include "masterd/hosts.h"
#include "masterd/lifecycle.h"
#include "masterd/link.h"
#include "masterd/liveness.h"
#include "masterd/manager.h"
#include "masterd/orders.h"
#include "masterd/recover.h"
#include "masterd/submit.h"
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

        snprintf(f.directory, sizeof(f.directory), "/tmp/test-healing-XXXXXX");
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

#define GANG(rest)                                                                                           \
        "{\"backoff\":{\"initial\":0}," rest                                                                 \
        "\"role\":[{\"roleName\":\"w\",\"num\":3,\"vcores\":1,\"memoryMb\":16,"                              \
        "\"command\":\"x\",\"failover\":{\"commonFailoverPolicy\":{\"maxFailureTimes\":9}}}]}"

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

                        for (size_t f = 0; f < _TELEMETRY_MAX; f++)
                                values[f] = TELEMETRY_UNKNOWN;
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

static struct job *begin(struct fixture *f, const char *config, uint64_t *now) {
        struct job *j;

        register_node(f->m, "n1", 2);
        register_node(f->m, "n2", 4);
        j = submit(f->m, config);
        kit_until_durable(f->m);
        start_all(f->m, j);
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
        struct fixture *f = *state;
        uint64_t now, seq;
        struct job *j = begin(f, GANG("\"health\":{\"hung\":{\"after\":\"20s\"}},"), &now);
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
        assert_int_equal(in_state(j, EXECUTOR_RUNNING), 3);
        seq = j->event_seq;
        live(f->m, j, &now, 60, one_stopped);
        assert_int_equal(j->event_seq, seq); /* once */

        /* A master after this one knows it, finds it again, and says nothing. */
        restart(f);
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
        restart(f);
        j = manager_job(f->m, 1);
        assert_true(!j->health || !j->health->episodes);
}

static void test_restart(void **state) {
        struct fixture *f = *state;
        uint64_t now;
        struct job *j =
                begin(f, GANG("\"health\":{\"hung\":{\"after\":\"20s\",\"action\":\"restart\"}},"), &now);

        live(f->m, j, &now, 60, all_work);
        live(f->m, j, &now, 30, one_stopped);
        assert_true(only(j)->acted_real > 0);
        assert_int_equal(j->executors[1]->state, EXECUTOR_STOPPING);
        assert_int_equal(in_state(j, EXECUTOR_RUNNING), 2);

        /* Killed behind that: what was done is known, and is not done to another attempt. */
        restart(f);
        register_node(f->m, "n1", 2);
        register_node(f->m, "n2", 4);
        j = manager_job(f->m, 1);
        assert_true(only(j)->acted_real > 0);
        for (uint32_t i = 0; i < 3; i++)
                if (j->executors[i]->state == EXECUTOR_LOST || j->executors[i]->state == EXECUTOR_PENDING)
                        kit_until_durable(f->m);
}

/* Nobody stands out: all of them begin anew. */
static void test_restart_all(void **state) {
        struct fixture *f = *state;
        uint64_t now;
        struct job *j =
                begin(f, GANG("\"health\":{\"hung\":{\"after\":\"20s\",\"action\":\"restart\"}},"), &now);

        live(f->m, j, &now, 60, all_work);
        live(f->m, j, &now, 30, all_wait);
        assert_int_equal(in_state(j, EXECUTOR_STOPPING), 3);
        for (uint32_t i = 0; i < 3; i++)
                exited(f->m, j->executors[i], 143);
        kit_until_durable(f->m);
        start_all(f->m, j);
        assert_int_equal(in_state(j, EXECUTOR_RUNNING), 3);
        for (uint32_t i = 0; i < 3; i++) {
                assert_int_equal(j->executors[i]->attempt, 2);
                assert_int_equal(j->executors[i]->history.n_failures, 0); /* no fault of theirs */
        }
        live(f->m, j, &now, 30, all_work);
        assert_null(j->health->episodes);
}

static void test_replace(void **state) {
        struct fixture *f = *state;
        uint64_t now;
        struct job *j =
                begin(f, GANG("\"health\":{\"hung\":{\"after\":\"20s\",\"action\":\"quarantine\"}},"), &now);
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
        struct fixture *f = *state;
        uint64_t now;
        struct job *j =
                begin(f, GANG("\"health\":{\"idle\":{\"after\":\"20s\",\"action\":\"stop\"}},"), &now);

        live(f->m, j, &now, 40, all_sleep);
        assert_int_equal(j->state, JOB_STOPPING);
        assert_int_equal(j->verdict, JOB_EVENT_KILLED);
        assert_non_null(strstr(j->reason, "idle"));
        for (uint32_t i = 0; i < 3; i++)
                exited(f->m, j->executors[i], 143);
        kit_until_durable(f->m);
        assert_null(j->health);
}

/* A role says otherwise than its job, and the job otherwise than the site. */
static void test_precedence(void **state) {
        struct fixture *f = *state;
        uint64_t now;
        struct job *j;

        f->m->conf.health.actions[VERDICT_OOM] = HEALTH_WARN;
        j = begin(f,
                  "{\"health\":{\"hung\":{\"action\":\"stop\"},\"idle\":{\"action\":\"off\"}},\"role\":[{"
                  "\"roleName\":"
                  "\"w\",\"num\":1,\"vcores\":1,\"memoryMb\":16,\"command\":\"x\",\"health\":{\"hung\":{"
                  "\"action\":"
                  "\"note\"}}}]}",
                  &now);
        assert_int_equal(healing_action(f->m, j, 0, VERDICT_HUNG), HEALTH_NOTE);
        assert_int_equal(healing_action(f->m, j, 0, VERDICT_IDLE), HEALTH_OFF);
        assert_int_equal(healing_action(f->m, j, 0, VERDICT_OOM), HEALTH_WARN);
        assert_int_equal(healing_action(f->m, j, 0, VERDICT_STRAGGLER), HEALTH_NOTE);
}

static void test_crash_loop(void **state) {
        struct fixture *f = *state;
        uint64_t now;
        struct job *j = begin(f, GANG("\"health\":{\"crashLoop\":{\"action\":\"warn\"}},"), &now);
        struct episode *p;

        for (unsigned i = 0; i < 3; i++) {
                exited(f->m, j->executors[0], 1);
                kit_until_durable(f->m);
                start_all(f->m, j);
        }
        p = only(j);
        assert_int_equal(p->kind, VERDICT_CRASH_LOOP);
        assert_int_equal(p->index, 0);
        assert_true(p->acted_real > 0);
        restart(f);
        j = manager_job(f->m, 1);
        assert_int_equal(only(j)->kind, VERDICT_CRASH_LOOP);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_note, setup, teardown),
                cmocka_unit_test_setup_teardown(test_restart, setup, teardown),
                cmocka_unit_test_setup_teardown(test_restart_all, setup, teardown),
                cmocka_unit_test_setup_teardown(test_replace, setup, teardown),
                cmocka_unit_test_setup_teardown(test_stop, setup, teardown),
                cmocka_unit_test_setup_teardown(test_precedence, setup, teardown),
                cmocka_unit_test_setup_teardown(test_crash_loop, setup, teardown),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
