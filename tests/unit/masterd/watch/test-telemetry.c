/* SPDX-License-Identifier: Apache-2.0 */
/* Telemetry of agents: whose samples are taken, what is kept of them, for how long, and what it costs. */
#include "masterd/fleet/exits.h"
#include "masterd/job/sample.h"
#include "masterd/start.h"
#include "masterd/watch/telemetry.h"

#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <cmocka.h>

#include "lib/base/clock.h"
#include "lib/base/file.h"
#include "lib/wire/telemetry.h"
#include "masterd/core/manager.h"
#include "masterd/life/lifecycle.h"
#include "masterd/link/link.h"
#include "masterd/link/orders.h"
#include "masterd/watch/pressure.h"
#include "masterd/watch/watch-parts.h"
#include "tests/kit/json.h"
#include "tests/kit/masterd-kit.h"

struct fixture {
        char directory[64];
        struct manager *m;
        sd_bus *bus; /* for messages; nobody reads */
        int end;
};

static int setup(void **state) {
        static struct fixture f;
        int fds[2];

        snprintf(f.directory, sizeof(f.directory), "/tmp/test-telemetry-XXXXXX");
        assert_non_null(mkdtemp(f.directory));
        f.m = kit_open(f.directory);
        kit_serve(f.m);
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds), 0);
        assert_true(sd_bus_new(&f.bus) >= 0 && sd_bus_set_fd(f.bus, fds[0], fds[0]) >= 0 &&
                    sd_bus_start(f.bus) >= 0);
        f.end = fds[1];
        *state = &f;
        return 0;
}

static int teardown(void **state) {
        struct fixture *f = *state;

        start_free(f->m);
        sd_bus_close_unref(f->bus);
        close(f->end);
        (void)remove_tree(f->directory);
        return 0;
}

static struct job *submit_running(struct manager *m, const char *config) {
        struct job *j = kit_submit_durable(m, config);

        kit_start_all(m, j);
        for (uint32_t i = 0; i < j->n_executors; i++)
                assert_int_equal(j->executors[i]->state, EXECUTOR_RUNNING);
        return j;
}

/* n samples, each with the same values. */
static sd_bus_message *message(struct fixture *f, uint64_t boot, const struct executor_id *ids, size_t n,
                               const uint64_t values[static _TELEMETRY_MAX]) {
        sd_bus_message *m = NULL;
        struct telemetry_sample s;

        assert_true(sd_bus_message_new_method_call(f->bus, &m, NULL, LINK_PATH, LINK_INTERFACE,
                                                   "Telemetry") >= 0);
        assert_true(sd_bus_message_append(m, "t", boot) >= 0);
        assert_true(sd_bus_message_open_container(m, 'a', TELEMETRY_SAMPLE_SIGNATURE) >= 0);
        memcpy(s.values, values, sizeof(s.values));
        for (size_t i = 0; i < n; i++) {
                s.id = ids[i];
                assert_true(telemetry_sample_append(m, &s) >= 0);
        }
        assert_true(sd_bus_message_close_container(m) >= 0);
        assert_true(link_append_extra_empty(m) >= 0);
        assert_true(sd_bus_message_seal(m, 1, 0) >= 0);
        return m;
}

static int tell(struct fixture *f, const char *node, uint64_t boot, const struct executor_id *ids, size_t n,
                const uint64_t values[static _TELEMETRY_MAX]) {
        sd_bus_message *m = message(f, boot, ids, n, values);
        int r = telemetry_received(f->m, nodes_get(&f->m->nodes, node), m);

        sd_bus_message_unref(m);
        return r;
}

#define TWO                                                                                                  \
        "{'role':[{'roleName':'w','num':2,'vcores':2,'memoryMb':16,'command':'x',"                           \
        "'failover':{'commonFailoverPolicy':{'maxFailureTimes':3}}}]}"

static void test_taken(void **state) {
        struct fixture *f = *state;
        uint64_t values[_TELEMETRY_MAX];
        struct executor_id id, wrong;
        float rates[_SERIES_MAX];
        struct executor *e;
        struct job *j;

        kit_register_node(f->m, "n1", 1000, UINT64_C(1) << 50);
        j = submit_running(f->m, TWO);
        kit_register_node(f->m, "n2", 1000, UINT64_C(1) << 50);
        e = j->executors[0];
        id = executor_id_of(e);
        telemetry_clear(values);
        values[TELEMETRY_CPU_USEC] = 1000000;
        values[TELEMETRY_GPU_BUSY_USEC] = 500;
        assert_false(telemetry_rates(e, rates));
        assert_null(telemetry_of(e));

        /* Others than those that run there: of another host, another attempt, another job of that number. */
        assert_int_equal(tell(f, "n2", 100 * USEC_PER_SEC, &id, 1, values), 0);
        wrong = id;
        wrong.attempt++;
        assert_int_equal(tell(f, "n1", 100 * USEC_PER_SEC, &wrong, 1, values), 0);
        wrong = id;
        wrong.job_uid.bytes[0] ^= 1;
        assert_int_equal(tell(f, "n1", 100 * USEC_PER_SEC, &wrong, 1, values), 0);
        wrong = id;
        wrong.index = 7;
        assert_int_equal(tell(f, "n1", 100 * USEC_PER_SEC, &wrong, 1, values), 0);
        assert_null(telemetry_of(e));
        assert_null(j->roles[0].series);
        assert_int_equal(tell(f, "n1", 0, &id, 1, values), -EBADMSG);

        assert_int_equal(tell(f, "n1", 100 * USEC_PER_SEC, &id, 1, values), 0);
        assert_non_null(telemetry_of(e));
        assert_true(telemetry_rates(e, rates));
        assert_true(isnan(rates[SERIES_CPU]));
        values[TELEMETRY_CPU_USEC] = 3000000;
        values[TELEMETRY_GPU_BUSY_USEC] = 100; /* the agent was restarted */
        assert_int_equal(tell(f, "n1", 100 * USEC_PER_SEC + 1, &id, 1, values), 0); /* too near */
        assert_int_equal(telemetry_of(e)->now[TELEMETRY_CPU_USEC], 1000000);
        assert_int_equal(tell(f, "n1", 104 * USEC_PER_SEC, &id, 1, values), 0);
        assert_true(telemetry_rates(e, rates));
        assert_true(fabsf(rates[SERIES_CPU] - 0.5f) < 1e-3f &&
                    fabsf(rates[SERIES_CPU_SHARE] - 0.25f) < 1e-3f);
        assert_int_equal(sample_gpu_used(e), 600);
        assert_non_null(j->roles[0].series);
        assert_true(f->m->watch->histories.bytes > 0);

        /* Its end is the end of that; the job's of the histories. */
        exit_reported(f->m, e->node,
                      &(struct exit_report){ .id = id,
                                             .result = "exit-code",
                                             .code = "exited",
                                             .status = 1,
                                             .started_real = now_real(),
                                             .ended_real = now_real(),
                                             .memory_peak = UINT64_MAX,
                                             .cpu_usec = UINT64_MAX });
        kit_until_durable(f->m);
        assert_null(telemetry_of(e));
        assert_int_equal(tell(f, "n1", 110 * USEC_PER_SEC, &id, 1, values), 0);
        assert_null(telemetry_of(e));
        lifecycle_stop_job(f->m, j, JOB_EVENT_KILLED, "killed");
        kit_until_durable(f->m);
        for (uint32_t i = 0; i < j->n_executors; i++)
                if (executor_state_holds(j->executors[i]->state)) {
                        struct executor_id other = executor_id_of(j->executors[i]);
                        exit_reported(f->m, j->executors[i]->node,
                                      &(struct exit_report){ .id = other,
                                                             .result = "signal",
                                                             .code = "killed",
                                                             .status = 15,
                                                             .stop_requested = true,
                                                             .memory_peak = UINT64_MAX,
                                                             .cpu_usec = UINT64_MAX });
                }
        kit_until_durable(f->m);
        assert_int_equal(j->state, JOB_KILLED);
        assert_null(j->roles[0].series);
        assert_int_equal(f->m->watch->histories.bytes, 0);
}

/* What a host says beyond what it can have to say is not looked at, and it is read more slowly. */
static void test_too_much(void **state) {
        struct fixture *f = *state;
        uint64_t values[_TELEMETRY_MAX];
        struct executor_id *ids = calloc(TELEMETRY_SAMPLES_MAX + 1, sizeof(*ids));
        unsigned held = 0;

        kit_register_node(f->m, "n1", 1000, UINT64_C(1) << 50);
        telemetry_clear(values);
        for (size_t i = 0; i <= TELEMETRY_SAMPLES_MAX; i++)
                ids[i] = (struct executor_id){
                        .job_uid = { .qwords = { 1, i + 1 } }, .job = 1, .role = "w", .attempt = 1
                };
        assert_int_equal(tell(f, "n1", USEC_PER_SEC, ids, TELEMETRY_SAMPLES_MAX + 1, values), -EBADMSG);
        f->m->nodes.by_name->bursts.samples.since = 0;
        for (unsigned i = 0; i < 4; i++)
                held += tell(f, "n1", USEC_PER_SEC + i, ids, TELEMETRY_SAMPLES_MAX, values) == 1;
        assert_in_range(held, 1, 2); /* the clock may have gone on by a second in between */
        free(ids);
}

#define MANY "{'role':[{'roleName':'w','num':2000,'vcores':0.1,'memoryMb':1,'command':'x'}]}"

static void test_cost(void **state) {
        struct fixture *f = *state;
        uint64_t values[_TELEMETRY_MAX], begin, took;
        struct executor_id *ids;
        sd_bus_message *m;
        struct job *j;

        kit_register_node(f->m, "n1", 1000, UINT64_C(1) << 50);
        j = submit_running(f->m, MANY);
        ids = calloc(j->n_executors, sizeof(*ids));
        for (uint32_t i = 0; i < j->n_executors; i++)
                ids[i] = executor_id_of(j->executors[i]);
        for (size_t i = 0; i < _TELEMETRY_MAX; i++)
                values[i] = 1000 + i;
        assert_int_equal(tell(f, "n1", USEC_PER_SEC, ids, j->n_executors, values), 0);
        f->m->nodes.by_name->bursts.samples.since = 0;
        m = message(f, 6 * USEC_PER_SEC, ids, j->n_executors, values);
        begin = now_boot();
        assert_int_equal(telemetry_received(f->m, f->m->nodes.by_name, m), 0);
        took = now_boot() - begin;
        sd_bus_message_unref(m);
        print_message("%zu bytes an executor, %zu bytes of the role's history, %" PRIu64 " ns a sample\n",
                      sizeof(struct telemetry), f->m->watch->histories.bytes, took * 1000 / j->n_executors);
        assert_true(sizeof(struct telemetry) <= 1024);
        assert_true(f->m->watch->histories.bytes <= 28 << 10);
        free(ids);
}

static void test_totals(void **state) {
        struct fixture *f = *state;
        float rates[_SERIES_MAX];
        struct telemetry_total t;
        struct job *j;

        kit_register_node(f->m, "n1", 1000, UINT64_C(1) << 50);
        j = submit_running(f->m, TWO);
        for (size_t k = 0; k < _SERIES_MAX; k++)
                rates[k] = NAN;
        telemetry_total_clear(&t);
        telemetry_total_add(&t, j->executors[0], rates);
        rates[SERIES_CPU] = 1.5f;
        telemetry_total_add(&t, j->executors[1], rates);
        assert_int_equal(t.running, 2);
        assert_int_equal(t.measured, 0);
        assert_int_equal(t.n[SERIES_CPU], 1);
        assert_true(fabs(t.sum[SERIES_CPU] - 1.5) < 1e-6 && fabsf(t.max[SERIES_CPU] - 1.5f) < 1e-6f);
        assert_true(isnan(t.max[SERIES_GPU]));
        assert_true(fabs(t.cpu - 4) < 1e-6);
        assert_int_equal(t.memory, 32 << 20);
}

/* A host that says it again and again does not fill the record of the job. */
static void test_kills_are_bounded(void **state) {
        struct fixture *f = *state;
        struct executor_id id;
        struct node *node;
        struct job *j;
        uint64_t before;

        kit_register_node(f->m, "n1", 1000, UINT64_C(1) << 50);
        j = submit_running(f->m, TWO);
        node = nodes_get(&f->m->nodes, "n1");
        id = executor_id_of(j->executors[0]);
        before = j->event_seq;
        pressure_told(f->m, node, &id, "oom", 1);
        pressure_told(f->m, node, &id, "no such", UINT64_MAX);
        assert_int_equal(j->event_seq, before + 1);
        for (unsigned i = 0; i < 2000; i++)
                pressure_told(f->m, node, &id, "oom", UINT64_MAX);
        assert_in_range(j->event_seq - before, 1, 300);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_taken, setup, teardown),
                cmocka_unit_test_setup_teardown(test_too_much, setup, teardown),
                cmocka_unit_test_setup_teardown(test_cost, setup, teardown),
                cmocka_unit_test_setup_teardown(test_totals, setup, teardown),
                cmocka_unit_test_setup_teardown(test_kills_are_bounded, setup, teardown),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
