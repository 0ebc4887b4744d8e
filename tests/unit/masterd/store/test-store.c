/* SPDX-License-Identifier: Apache-2.0 */
/* Records go in and come back the same; batches, effects, history, pruning. */
#include "masterd/store/store.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/file.h"
#include "lib/base/log.h"
#include "tests/kit/json.h"
#include "tests/kit/store-fixture.h"

static const struct job_body_record body = {
        .config = { JSON({ "a" : 1 }), 8 },
        .cwd = { "/home/\xff", 7 },
        .env = { "A=1\0B=2\0", 8 },
        .bundle = "abc",
};

static struct job_record a_job(uint32_t number) {
        return (struct job_record){
                .number = number,
                .uid = SD_ID128_MAKE(01, 02, 03, 04, 05, 06, 07, 08, 09, 0a, 0b, 0c, 0d, 0e, 0f, 10),
                .owner = 1000,
                .name = "digits",
                .state = 3,
                .attempt = 1,
                .submitted_real = UINT64_C(1767225600000000) + number,
                .reason = NULL,
                .machine = { .verdict = 4, .leave_real = UINT64_MAX, .rolling_role = "worker" },
                .body = &body,
        };
}

static struct executor_record an_executor(uint32_t job, uint32_t index, uint32_t attempt) {
        return (struct executor_record){
                .job = job,
                .role = "worker",
                .index = index,
                .attempt = attempt,
                .state = 2,
                .node = "n1",
                .rank = index + 1,
                .ports = { 30000, 65535 },
                .n_ports = 2,
                .gpus = "GPU-1 GPU-2",
                .epoch = 9,
                .status = -3,
                .stop_requested = true,
                .memory_peak = UINT64_MAX,
                .cpu_usec = 12345,
                .result = "exit-code",
                .reason = "exit status 3",
        };
}

static int expect_job(void *userdata, const struct job_record *r) {
        struct job_record want = a_job(r->number);
        unsigned *n = userdata;

        assert_true(sd_id128_equal(r->uid, want.uid));
        assert_int_equal(r->owner, 1000);
        assert_string_equal(r->name, "digits");
        assert_int_equal(r->state, 3);
        assert_true(r->submitted_real == want.submitted_real);
        assert_string_equal(r->reason, "");
        assert_int_equal(r->machine.verdict, 4);
        assert_true(r->machine.leave_real == UINT64_MAX && r->machine.epoch == 0);
        assert_string_equal(r->machine.rolling_role, "worker");
        assert_non_null(r->body);
        assert_int_equal(r->body->env.size, 8);
        assert_memory_equal(r->body->env.data, "A=1\0B=2\0", 8);
        assert_int_equal(r->body->cwd.size, 7);
        assert_memory_equal(r->body->cwd.data, "/home/\xff", 7);
        assert_string_equal(r->body->bundle, "abc");
        assert_true(r->last_event == 2);
        (*n)++;
        return 0;
}

static int expect_executor(void *userdata, const struct executor_record *r) {
        unsigned *n = userdata;

        assert_int_equal(r->index, *n);
        assert_string_equal(r->role, "worker");
        assert_int_equal(r->n_ports, 2);
        assert_int_equal(r->ports[1], 65535);
        assert_string_equal(r->gpus, "GPU-1 GPU-2");
        assert_int_equal(r->status, -3);
        assert_true(r->stop_requested);
        assert_true(r->memory_peak == UINT64_MAX);
        assert_true(r->epoch == 9);
        assert_string_equal(r->reason, "exit status 3");
        (*n)++;
        return 0;
}

static int expect_node(void *userdata, const struct node_record *r) {
        unsigned *n = userdata;

        assert_string_equal(r->name, "n1");
        assert_true(r->memory == UINT64_C(1) << 40);
        assert_true(r->epoch == 4);
        assert_string_equal(r->joined_from, "192.0.2.7");
        assert_int_equal(r->joined_by, 1000);
        assert_true(r->taken_over);
        assert_true(r->port_first == 20000 && r->port_last == 65535);
        assert_string_equal(r->gpus, "GPU-1 GPU-2");
        (*n)++;
        return 0;
}

static int expect_token(void *userdata, const struct token_record *r) {
        unsigned *n = userdata;

        assert_memory_equal(r->id, "12345678", 8);
        assert_int_equal(r->secret_hash[31], 'z');
        assert_int_equal(r->uses_left, 2);
        assert_string_equal(r->from, "192.0.2.0/24");
        assert_string_equal(r->name, "n7");
        assert_true(r->replace);
        (*n)++;
        return 0;
}

static int expect_revoked(void *userdata, const struct revoked_record *r) {
        unsigned *n = userdata;

        assert_string_equal(r->serial, "00ff");
        (*n)++;
        return 0;
}

static int expect_secret(void *userdata, const struct secret_record *r) {
        unsigned *n = userdata;

        assert_string_equal(r->name, "key");
        assert_int_equal(r->data.size, 6);
        (*n)++;
        return 0;
}

static const struct scope_record scope = {
        .job = 1,
        .role = "w",
        .state = { .restarts = 2,
                   .due_real = UINT64_MAX,
                   .history = { .failures = { { 7, 1 }, { 8, 3 } }, .n_failures = 2, .consecutive = 4 } },
};

static int expect_scope(void *userdata, const struct scope_record *r) {
        unsigned *n = userdata;

        assert_string_equal(r->role, *n == 0 ? "" : "w");
        assert_memory_equal(&r->state, *n == 0 ? &(struct scope_state_record){} : &scope.state,
                            sizeof(r->state));
        (*n)++;
        return 0;
}

static int expect_blame(void *userdata, const struct blame_record *r) {
        unsigned *n = userdata;

        assert_string_equal(r->node, "n1");
        assert_true(r->state.times == 3 && r->state.n_strikes == 1 && r->state.n_shuns == STORE_SHUNS_MAX);
        assert_true(r->state.strikes[0].real == 5 && r->state.strikes[0].alone);
        assert_true(r->state.shuns[STORE_SHUNS_MAX - 1].user == 1000);
        (*n)++;
        return 0;
}

static int expect_stuck(void *userdata, const struct stuck_record *r) {
        unsigned *n = userdata;

        assert_string_equal(r->node, "n1");
        assert_int_equal(r->n_ports, STORE_PORTS_MAX);
        assert_true(r->ports[0] == 1 && r->ports[1] == 0x8001 && r->ports[STORE_PORTS_MAX - 1] == 65535);
        assert_string_equal(r->reason, "D state");
        (*n)++;
        return 0;
}

static int expect_cut(void *userdata, const struct cut_record *r) {
        unsigned *n = userdata;

        assert_true(r->job == 1 && r->version == UINT64_MAX >> 1 && r->attempt == UINT32_MAX);
        assert_string_equal(r->role, *n == 0 ? "a" : "b");
        assert_int_equal(r->from, *n);
        (*n)++;
        return 0;
}

static void put_states(struct store *s) {
        struct blame_record blame = { .node = "n1",
                                      .state = { .times = 3,
                                                 .strikes = { { .real = 5, .alone = true } },
                                                 .n_strikes = 1,
                                                 .shuns[STORE_SHUNS_MAX - 1].user = 1000,
                                                 .n_shuns = STORE_SHUNS_MAX } };
        struct stuck_record stuck = { .node = "n1",
                                      .job = 1,
                                      .role = "w",
                                      .ports = { 1, 0x8001, [STORE_PORTS_MAX - 1] = 65535 },
                                      .n_ports = STORE_PORTS_MAX,
                                      .reason = "D state" };

        store_put_scope(s, &scope);
        store_put_scope(s, &(struct scope_record){ .job = 1 });
        store_put_blame(s, &blame);
        store_put_stuck(s, &stuck);
        for (uint32_t i = 0; i < 2; i++)
                store_put_cut(s, &(struct cut_record){ .job = 1,
                                                       .version = UINT64_MAX >> 1,
                                                       .role = i == 0 ? "a" : "b",
                                                       .from = i,
                                                       .attempt = UINT32_MAX });
}

static void put_everything(struct store *s, uint32_t number) {
        struct job_record job = a_job(number);

        store_put_job(s, &job);
        for (uint32_t i = 0; i < 3; i++) {
                struct executor_record e = an_executor(number, i, 1);
                store_put_executor(s, &e);
        }
        for (uint64_t i = 1; i <= 2; i++)
                store_put_event(s, &(struct event_record){
                                           .job = number, .seq = i, .kind = "queued", .text = "waits" });
        store_put_secret(s, &(struct secret_record){ .job = number, .name = "key", .data = { "secret", 6 } });
        store_put_series(s, &(struct series_record){
                                    .job = number, .role = "worker", .at_real = 7, .points = { "old", 3 } });
        store_put_series(s,
                         &(struct series_record){
                                 .job = number, .role = "worker", .at_real = 9, .points = { "new\0", 4 } });
        for (uint64_t i = 1; i <= 3; i++)
                store_put_trial(s, &(struct trial_record){ .job = number,
                                                           .seq = i,
                                                           .kind = 1,
                                                           .trial = 7,
                                                           .step = i,
                                                           .metric = UINT64_C(0xfff8000000000000) + i,
                                                           .exit = 2,
                                                           .verdict = 1 });
}

static void test_round_trip(void **state) {
        struct fixture *f = *state;
        unsigned n;
        void *data;
        size_t size;
        uint64_t seq;

        put_everything(f->store, store_next_job(f->store));
        store_put_node(f->store, &(struct node_record){ .name = "n1",
                                                        .epoch = 4,
                                                        .memory = UINT64_C(1) << 40,
                                                        .joined_from = "192.0.2.7",
                                                        .joined_by = 1000,
                                                        .taken_over = true,
                                                        .port_first = 20000,
                                                        .port_last = 65535,
                                                        .gpus = "GPU-1 GPU-2" });
        put_states(f->store);
        store_put_token(f->store, &(struct token_record){ .id = "12345678",
                                                          .secret_hash[31] = 'z',
                                                          .uses_left = 2,
                                                          .from = "192.0.2.0/24",
                                                          .name = "n7",
                                                          .replace = true });
        store_put_revoked(f->store,
                          &(struct revoked_record){ .serial = "00ff", .node = "n2", .not_after_real = 5 });
        store_set_meta(f->store, "term", "7", 1);
        settle(f);
        assert_int_equal(store_load_nodes(f->store, expect_node, &n),
                         -EBUSY); /* only before the first commit */
        reopen(f);

#define EXPECT(call, count)                                                                                  \
        n = 0;                                                                                               \
        assert_int_equal(call, 0);                                                                           \
        assert_int_equal(n, count)
        EXPECT(store_load_jobs(f->store, true, expect_job, &n), 1);
        EXPECT(store_load_executors(f->store, expect_executor, &n), 3);
        EXPECT(store_load_secrets(f->store, expect_secret, &n), 1);
        EXPECT(store_load_nodes(f->store, expect_node, &n), 1);
        EXPECT(store_load_tokens(f->store, expect_token, &n), 1);
        EXPECT(store_load_revoked(f->store, expect_revoked, &n), 1);
        EXPECT(store_load_scopes(f->store, expect_scope, &n), 2);
        EXPECT(store_load_blames(f->store, expect_blame, &n), 1);
        EXPECT(store_load_stuck(f->store, expect_stuck, &n), 1);
        EXPECT(store_load_cuts(f->store, expect_cut, &n), 2);
        assert_int_equal(store_load_meta(f->store, "term", &data, &size), 0);
        assert_int_equal(size, 1);
        assert_string_equal(data, "7");
        free(data);
        assert_int_equal(store_load_meta(f->store, "nothing", &data, &size), -ENOENT);
        assert_int_equal(store_load_last_event(f->store, 1, &seq), 0);
        assert_true(seq == 2);
        assert_int_equal(store_load_last_event(f->store, STORE_JOB_NONE, &seq), 0);
        assert_true(seq == 0);

        store_delete_node(f->store, "n1");
        store_delete_token(f->store, (const uint8_t *)"12345678");
        store_delete_secrets(f->store, 1);
        settle(f);
        reopen(f);
        EXPECT(store_load_nodes(f->store, expect_node, &n), 0);
        EXPECT(store_load_tokens(f->store, expect_token, &n), 0);
        EXPECT(store_load_secrets(f->store, expect_secret, &n), 0);
        EXPECT(store_load_executors(f->store, expect_executor, &n), 3);

        store_delete_job(f->store, 1);
        settle(f);
        reopen(f);
        EXPECT(store_load_jobs(f->store, false, expect_job, &n), 0);
        EXPECT(store_load_executors(f->store, expect_executor, &n), 0);
        EXPECT(store_load_cuts(f->store, expect_cut, &n), 0);
        assert_int_equal(store_next_job(f->store), 2); /* the number of a deleted job is not used again */
}

static void test_body_stays(void **state) {
        struct fixture *f = *state;
        struct job_record job = a_job(1);
        unsigned n;

        put_everything(f->store, 1);
        job.body = NULL; /* a change of state does not write the configuration again */
        store_put_job(f->store, &job);
        settle(f);
        reopen(f);
        EXPECT(store_load_jobs(f->store, true, expect_job, &n), 1);

        job.ended_real = 99;
        store_put_job(f->store, &job);
        settle(f);
        reopen(f);
        EXPECT(store_load_jobs(f->store, true, expect_job, &n), 0);
        EXPECT(store_load_executors(f->store, expect_executor, &n), 0); /* of active jobs only */
        EXPECT(store_load_jobs(f->store, false, expect_job, &n), 1);
}

static int fail_load(void *userdata, const struct executor_record *r) {
        (*(unsigned *)userdata)++;
        return -ENOTUNIQ;
}

static void test_callback_ends_load(void **state) {
        struct fixture *f = *state;
        unsigned n = 0;

        put_everything(f->store, 1);
        settle(f);
        reopen(f);
        assert_int_equal(store_load_executors(f->store, fail_load, &n), -ENOTUNIQ);
        assert_int_equal(n, 1);
}

struct order {
        unsigned next, wrong, number;
};
struct ticket {
        struct order *order;
        unsigned number;
        bool again;
        struct store *store;
};

static void in_order(void *userdata, int error) {
        struct ticket *t = userdata;

        if (t->order->next++ != t->number || error != 0)
                t->order->wrong++;
        if (t->again) { /* an effect may commit */
                t->again = false;
                t->number = t->order->number++;
                assert_int_equal(store_commit(t->store, in_order, t), 0);
        }
}

static void test_effects_in_order(void **state) {
        struct fixture *f = *state;
        struct order order = {};
        struct ticket tickets[2000];

        for (unsigned i = 0; i < ELEMENTSOF(tickets); i++) {
                struct executor_record e = an_executor(1, i, 1);
                tickets[i] = (struct ticket){ &order, order.number++, i % 500 == 0, f->store };
                if (i % 3 != 0)
                        store_put_executor(f->store, &e);
                assert_int_equal(store_commit(f->store, in_order, &tickets[i]), 0);
        }
        while (order.next < order.number)
                assert_true(sd_event_run(f->event, UINT64_MAX) >= 0);
        assert_int_equal(order.wrong, 0);
        assert_int_equal(order.next, ELEMENTSOF(tickets) + 4);
}

static void test_close_drains(void **state) {
        struct fixture *f = *state;
        unsigned n;

        put_everything(f->store, 1);
        assert_int_equal(store_commit(f->store, count_effect, f), 0);
        store_put_node(f->store, &(struct node_record){ .name = "dropped" }); /* never committed */
        reopen(f);
        assert_int_equal(f->effects, 1);
        EXPECT(store_load_jobs(f->store, true, expect_job, &n), 1);
        EXPECT(store_load_nodes(f->store, expect_node, &n), 0);
}

static void test_abandon(void **state) {
        struct fixture *f = *state;
        unsigned n;

        store_put_node(f->store, &(struct node_record){ .name = "dropped" });
        store_abandon(f->store);
        settle(f);
        reopen(f);
        EXPECT(store_load_nodes(f->store, expect_node, &n), 0);
}

static void test_bounded(void **state) {
        struct fixture *f = *state;
        static const struct store_limits limits = { .queue_bytes = 1 << 20,
                                                    .queue_records = 100,
                                                    .retry_usec = 0 };
        unsigned n = 0;
        int r;

        store_close(TAKE_PTR(f->store));
        assert_int_equal(store_open(f->path, f->event, &limits, &f->store), 0);
        assert_false(store_full(f->store));
        do { /* nobody runs the loop, so nothing is delivered and everything counts */
                store_put_event(f->store,
                                &(struct event_record){ .job = 1, .seq = n, .kind = "k", .text = "t" });
                r = store_commit(f->store, count_effect, f);
                assert_true(store_full(f->store) == (n >= 49)); /* a record and its batch count one each */
        } while (r == 0 && ++n < 1000);
        assert_int_equal(r, -ENOBUFS);
        assert_int_equal(n, 200);
        while (f->effects < n)
                assert_true(sd_event_run(f->event, UINT64_MAX) >= 0);
        assert_false(store_full(f->store));
}

struct answer {
        bool done;
        int error;
        size_t n;
        uint32_t first, last;
};

static void on_jobs(void *userdata, int error, const struct job_record *jobs, size_t n) {
        struct answer *a = userdata;

        *a = (struct answer){ true, error, n, n ? jobs[0].number : 0, n ? jobs[n - 1].number : 0 };
        for (size_t i = 0; i < n; i++) {
                assert_string_equal(jobs[i].name, "digits");
                if (!jobs[i].body)
                        continue;
                assert_memory_equal(jobs[i].body->config.data, JSON({ "a" : 1 }), 8);
                assert_true(jobs[i].last_event == (jobs[i].number == 3 ? 20 : 0));
        }
}

static void on_executors(void *userdata, int error, const struct executor_record *executors, size_t n) {
        struct answer *a = userdata;

        *a = (struct answer){ true, error, n, n ? executors[0].attempt : 0,
                              n ? executors[n - 1].attempt : 0 };
        for (size_t i = 0; i < n; i++)
                assert_string_equal(executors[i].gpus, "GPU-1 GPU-2");
}

static void on_events(void *userdata, int error, const struct event_record *events, size_t n) {
        struct answer *a = userdata;

        *a = (struct answer){ true, error, n, n ? (uint32_t)events[0].seq : 0,
                              n ? (uint32_t)events[n - 1].seq : 0 };
}

static void on_trials(void *userdata, int error, const struct trial_record *trials, size_t n) {
        struct answer *a = userdata;

        *a = (struct answer){ true, error, n, n ? (uint32_t)trials[0].seq : 0,
                              n ? (uint32_t)trials[n - 1].step : 0 };
        for (size_t i = 0; i < n; i++)
                assert_true(trials[i].metric == UINT64_C(0xfff8000000000000) + trials[i].seq &&
                            trials[i].kind == 1 && trials[i].trial == 7 && trials[i].exit == 2 &&
                            trials[i].verdict == 1);
}

static void on_series(void *userdata, int error, const struct series_record *series, size_t n) {
        struct answer *a = userdata;

        *a = (struct answer){ true, error, n, n ? (uint32_t)series[0].at_real : 0,
                              n ? (uint32_t)series[0].points.size : 0 };
        for (size_t i = 0; i < n; i++) {
                assert_string_equal(series[i].role, "worker");
                assert_memory_equal(series[i].points.data, "new", 4);
        }
}

static void wait_for(struct fixture *f, struct answer *a) {
        while (!a->done)
                assert_true(sd_event_run(f->event, UINT64_MAX) >= 0);
        assert_int_equal(a->error, 0);
}

#define ASK(call, want_n, want_first, want_last)                                                             \
        a = (struct answer){};                                                                               \
        assert_int_equal(call, 0);                                                                           \
        wait_for(f, &a);                                                                                     \
        assert_int_equal(a.n, want_n);                                                                       \
        assert_int_equal(a.first, want_first);                                                               \
        assert_int_equal(a.last, want_last)

static void test_history(void **state) {
        struct fixture *f = *state;
        struct answer a;

        for (uint32_t i = 1; i <= 10; i++) {
                struct job_record job = a_job(i);
                if (i <= 6)
                        job.ended_real = 1000 + i;
                job.owner = i % 2 ? 1000 : 1001;
                store_put_job(f->store, &job);
        }
        for (uint32_t i = 0; i < 5; i++)
                for (uint32_t attempt = 1; attempt <= 3; attempt++) {
                        struct executor_record e = an_executor(3, i, attempt);
                        store_put_executor(f->store, &e);
                }
        for (uint64_t i = 1; i <= 20; i++)
                store_put_event(f->store,
                                &(struct event_record){ .job = 3, .seq = i, .kind = "k", .text = "t" });
        assert_int_equal(store_commit(f->store, NULL, NULL),
                         0); /* a question sees what was committed before it */

        ASK(store_query_jobs(f->store, &(struct store_job_filter){ .state = -1 }, on_jobs, &a), 4, 10, 7);
        ASK(store_query_jobs(f->store, &(struct store_job_filter){ .all = true, .state = -1 }, on_jobs, &a),
            10, 10, 1);
        ASK(store_query_jobs(f->store, &(struct store_job_filter){ .all = true, .state = 4 }, on_jobs, &a), 0,
            0, 0);
        ASK(store_query_jobs(
                    f->store,
                    &(struct store_job_filter){ .all = true, .state = -1, .by_owner = true, .owner = 1000 },
                    on_jobs, &a),
            5, 9, 1);
        ASK(store_query_jobs(f->store,
                             &(struct store_job_filter){ .all = true, .state = 3, .before = 5, .limit = 2 },
                             on_jobs, &a),
            2, 4, 3);
        ASK(store_query_job(f->store, 4, on_jobs, &a), 1, 4, 4);
        ASK(store_query_job(f->store, 3, on_jobs, &a), 1, 3, 3);
        ASK(store_query_job(f->store, 99, on_jobs, &a), 0, 0, 0);
        ASK(store_query_executors(f->store, 3, false, 0, on_executors, &a), 5, 3, 3);
        ASK(store_query_executors(f->store, 3, true, 0, on_executors, &a), 15, 1, 3);
        ASK(store_query_executors(f->store, 3, true, 2, on_executors, &a), 2, 1, 2);
        ASK(store_query_events(f->store, 3, 5, 10, on_events, &a), 10, 6, 15);
        ASK(store_query_events(f->store, 3, UINT64_MAX, 0, on_events, &a), 0, 0, 0);
}

static void on_node_events(void *userdata, int error, const struct node_event_record *events, size_t n) {
        struct answer *a = userdata;

        *a = (struct answer){ true, error, n, n ? (uint32_t)events[0].seq : 0,
                              n ? (uint32_t)events[n - 1].seq : 0 };
        for (size_t i = 0; i < n; i++) {
                assert_string_equal(events[i].node, "n1");
                assert_string_equal(events[i].text, "is READY");
        }
}

static int expect_last(void *userdata, const struct node_event_record *r) {
        unsigned *n = userdata;

        (*n)++;
        assert_int_equal(r->seq, strcmp(r->node, "n1") == 0 ? 1200 : strcmp(r->node, "n2") == 0);
        return 0;
}

static int expect_none(void *userdata, const struct node_event_record *r) {
        unsigned *n = userdata;

        (*n)++;
        assert_int_equal(r->seq, 0);
        return 0;
}

/* The latest of each host stay, and none of a host that goes. */
static void test_node_events(void **state) {
        struct fixture *f = *state;
        struct answer a;
        unsigned n;

        for (uint64_t i = 1; i <= 1200; i++)
                store_put_node_event(f->store,
                                     &(struct node_event_record){
                                             .node = "n1", .seq = i, .kind = "state", .text = "is READY" });
        store_put_node_event(f->store,
                             &(struct node_event_record){ .node = "n2", .seq = 1, .kind = "state" });
        for (size_t i = 0; i < 3; i++)
                store_put_node(f->store,
                               &(struct node_record){ .name = (const char *[]){ "n1", "n2", "n3" }[i] });
        assert_int_equal(store_commit(f->store, NULL, NULL), 0);
        ASK(store_query_node_events(f->store, "n1", 0, on_node_events, &a), STORE_NODE_EVENTS, 201, 1200);
        ASK(store_query_node_events(f->store, "n1", 1195, on_node_events, &a), 5, 1196, 1200);
        ASK(store_query_node_events(f->store, "n1", UINT64_MAX, on_node_events, &a), 0, 0, 0);
        reopen(f);
        EXPECT(store_load_last_node_events(f->store, expect_last, &n), 3);
        store_delete_node(f->store, "n2");
        store_delete_node(f->store, "n1");
        assert_int_equal(store_commit(f->store, NULL, NULL), 0);
        ASK(store_query_node_events(f->store, "n1", 0, on_node_events, &a), 0, 0, 0);
        reopen(f);
        EXPECT(store_load_last_node_events(f->store, expect_none, &n), 1); /* n3 */
}

static void test_prune(void **state) {
        struct fixture *f = *state;
        struct answer a;
        unsigned n;

        for (uint32_t i = 1; i <= 10; i++) {
                struct job_record job = a_job(i);
                put_everything(f->store, i);
                job.ended_real = i == 2 ? 0 : 1000 + i; /* one of them still runs */
                store_put_job(f->store, &job);
        }
        store_put_revoked(f->store, &(struct revoked_record){ .serial = "01", .not_after_real = 10 });
        store_put_revoked(f->store, &(struct revoked_record){ .serial = "00ff", .not_after_real = 5000 });
        store_put_token(f->store, &(struct token_record){ .id = "old", .expires_real = 10 });
        store_prune(f->store,
                    &(struct store_keep){
                            .older_than_real = 1009,
                            .newest = 3,
                            .now_real = 2000,
                            .bytes = UINT64_MAX }); /* 1..8 are old enough, 8..10 among the newest */
        assert_int_equal(store_commit(f->store, NULL, NULL), 0);
        ASK(store_query_jobs(f->store, &(struct store_job_filter){ .all = true, .state = -1 }, on_jobs, &a),
            4, 10, 2);
        ASK(store_query_executors(f->store, 1, true, 0, on_executors, &a), 0, 0, 0);
        ASK(store_query_events(f->store, 1, 0, 0, on_events, &a), 0, 0, 0);
        ASK(store_query_trials(f->store, 1, on_trials, &a), 0, 0, 0);
        ASK(store_query_trials(f->store, 2, on_trials, &a), 3, 1, 3);
        ASK(store_query_series(f->store, 1, on_series, &a), 0, 0, 0);
        ASK(store_query_series(f->store, 2, on_series, &a), 1, 9, 4);
        ASK(store_query_executors(f->store, 2, true, 0, on_executors, &a), 3, 1, 1);
        ASK(store_query_executors(f->store, 8, true, 0, on_executors, &a), 3, 1, 1);
        reopen(f);
        EXPECT(store_load_revoked(f->store, expect_revoked, &n), 1);
        EXPECT(store_load_tokens(f->store, expect_token, &n), 0);
}

/* One job, with its elements where it is an array; nothing where it runs, or is an element. */
static void test_forget(void **state) {
        struct fixture *f = *state;
        struct answer a;

        for (uint32_t i = 1; i <= 5; i++) {
                struct job_record job = a_job(i);
                put_everything(f->store, i);
                job.ended_real = i == 2 ? 0 : 1000 + i;
                job.array = i == 4 ? 3 : 0; /* 3 is an array */
                store_put_job(f->store, &job);
        }
        store_forget_job(f->store, 2);
        store_forget_job(f->store, 4);
        store_forget_job(f->store, 99);
        assert_int_equal(store_commit(f->store, NULL, NULL), 0);
        ASK(store_query_executors(f->store, 2, true, 0, on_executors, &a), 3, 1, 1);
        ASK(store_query_executors(f->store, 4, true, 0, on_executors, &a), 3, 1, 1);
        store_forget_job(f->store, 1);
        store_forget_job(f->store, 3);
        store_forget_job(f->store, 3);
        assert_int_equal(store_commit(f->store, NULL, NULL), 0);
        for (uint32_t i = 1; i <= 5; i++) {
                bool stays = i == 2 || i == 5;
                ASK(store_query_executors(f->store, i, true, 0, on_executors, &a), stays ? 3 : 0, stays,
                    stays);
                if (stays)
                        continue;
                ASK(store_query_events(f->store, i, 0, 0, on_events, &a), 0, 0, 0);
        }
        reopen(f);
        ASK(store_query_jobs(f->store, &(struct store_job_filter){ .all = true, .state = -1 }, on_jobs, &a),
            2, 5, 2);
}

#define MINUTE (60 * USEC_PER_SEC)
#define LARGE (256u << 10)

struct owners {
        unsigned ml, eve;
        uint32_t oldest;
        bool told;
};

static void on_owners(void *userdata, int error, const struct job_record *jobs, size_t n) {
        struct owners *o = userdata;

        assert_int_equal(error, 0);
        *o = (struct owners){ .told = true };
        for (size_t i = 0; i < n; i++) {
                o->ml += jobs[i].owner == 1000;
                o->eve += jobs[i].owner == 1001;
                o->oldest = jobs[i].number;
        }
}

static struct owners owners_of(struct fixture *f) {
        struct owners o = {};

        assert_int_equal(store_query_jobs(f->store, &(struct store_job_filter){ .all = true, .state = -1 },
                                          on_owners, &o),
                         0);
        while (!o.told)
                assert_true(sd_event_run(f->event, 10 * USEC_PER_SEC) > 0);
        return o;
}

/* What is too much goes at the expense of who has most of it, oldest first, at once; who still has something
 * to record stays. */
static void test_prune_bytes(void **state) {
        struct fixture *f = *state;
        static char text[LARGE];
        uint64_t now = 100 * MINUTE, used;
        struct owners o;

        memset(text, 'x', sizeof(text));
        for (uint32_t i = 1; i <= 40; i++) {
                struct job_body_record large = { .config = { text, sizeof(text) }, .bundle = "" };
                struct job_record job = a_job(i);
                job.owner = i % 4 == 0 ? 1001 : 1000;
                job.body = &large;
                /* The first of ml's runs, and the last ones have just ended. */
                job.ended_real = i == 1 ? 0 : i > 36 ? now - MINUTE / 2 : now - 10 * MINUTE;
                store_put_job(f->store, &job);
        }
        settle(f);
        used = store_bytes_used(f->store);
        assert_in_range(used, 40 * LARGE, 44 * LARGE);

        /* There is room. */
        struct store_keep keep = { .now_real = now, .newest = 1000, .bytes = used };
        store_prune(f->store, &keep);
        settle(f);
        assert_int_equal(owners_of(f).ml, 30);

        keep.bytes = used - 5 * LARGE;
        store_prune(f->store, &keep);
        settle(f);
        o = owners_of(f);
        assert_in_range(o.ml, 24, 26);
        assert_int_equal(o.eve, 10);
        assert_int_equal(o.oldest, 1); /* it runs */
        assert_true(store_bytes_used(f->store) <= keep.bytes);

        /* As long as it takes; eve's come when ml has not more any longer. */
        keep.bytes = 10 * LARGE;
        for (unsigned i = 0; i < 10; i++)
                store_prune(f->store, &keep);
        settle(f);
        o = owners_of(f);
        assert_int_equal(o.ml + o.eve, 9);
        assert_true(o.ml >= 1 + 3 && o.eve >= 1);
        keep.bytes = 1;
        for (unsigned i = 0; i < 10; i++)
                store_prune(f->store, &keep);
        settle(f);
        o = owners_of(f);
        assert_int_equal(o.ml, 1 + 3);
        assert_int_equal(o.eve, 1);
}

static int count_executor(void *userdata, const struct executor_record *r) {
        (*(unsigned *)userdata)++;
        return 0;
}

static void test_many(void **state) {
        struct fixture *f = *state;
        uint64_t begin, usec;
        unsigned n;

        put_everything(f->store, 1);
        for (uint32_t i = 0; i < 20000; i++) {
                struct executor_record e = an_executor(1, i, 1);
                store_put_executor(f->store, &e);
        }
        settle(f);
        reopen(f);
        begin = now_boot();
        EXPECT(store_load_executors(f->store, count_executor, &n), 20000);
        usec = now_boot() - begin;
        assert_true(usec <
                    5 * USEC_PER_SEC); /* 0.05 s without sanitizers; only a gross error is caught here */
}

static void test_one_master(void **state) {
        struct fixture *f = *state;
        struct store *other;
        struct stat st;

        assert_int_equal(store_open(f->path, f->event, NULL, &other), -EBUSY);
        settle(f);
        assert_int_equal(store_open(f->path, f->event, NULL, &other), -EBUSY);
        assert_int_equal(stat(f->path, &st), 0);
        assert_int_equal(st.st_mode & 0777, 0600);
}

static void test_bad_files(void **state) {
        struct fixture *f = *state;
        static char garbage[8192];
        struct store *other;
        char path[128];

        memset(garbage, 'x', sizeof(garbage));
        snprintf(path, sizeof(path), "%s/garbage", f->directory);
        assert_int_equal(write_file_atomic(path, garbage, sizeof(garbage), 0600, false), 0);
        assert_int_equal(store_open(path, f->event, NULL, &other), -EMEDIUMTYPE);
        snprintf(path, sizeof(path), "%s/missing/primus.db", f->directory);
        assert_int_equal(store_open(path, f->event, NULL, &other), -ENOENT);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_round_trip, fixture_setup, fixture_teardown),
                cmocka_unit_test_setup_teardown(test_body_stays, fixture_setup, fixture_teardown),
                cmocka_unit_test_setup_teardown(test_callback_ends_load, fixture_setup, fixture_teardown),
                cmocka_unit_test_setup_teardown(test_effects_in_order, fixture_setup, fixture_teardown),
                cmocka_unit_test_setup_teardown(test_close_drains, fixture_setup, fixture_teardown),
                cmocka_unit_test_setup_teardown(test_abandon, fixture_setup, fixture_teardown),
                cmocka_unit_test_setup_teardown(test_bounded, fixture_setup, fixture_teardown),
                cmocka_unit_test_setup_teardown(test_history, fixture_setup, fixture_teardown),
                cmocka_unit_test_setup_teardown(test_prune, fixture_setup, fixture_teardown),
                cmocka_unit_test_setup_teardown(test_node_events, fixture_setup, fixture_teardown),
                cmocka_unit_test_setup_teardown(test_forget, fixture_setup, fixture_teardown),
                cmocka_unit_test_setup_teardown(test_prune_bytes, fixture_setup, fixture_teardown),
                cmocka_unit_test_setup_teardown(test_many, fixture_setup, fixture_teardown),
                cmocka_unit_test_setup_teardown(test_one_master, fixture_setup, fixture_teardown),
                cmocka_unit_test_setup_teardown(test_bad_files, fixture_setup, fixture_teardown),
        };
        log_set_level(LOG_CRIT); /* refusals are logged, and wanted here */
        return cmocka_run_group_tests(tests, NULL, NULL);
}
