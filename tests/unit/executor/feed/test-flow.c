/* SPDX-License-Identifier: Apache-2.0 */
/* Standard input: which bytes of the stream are which positions, and what counts in each mode. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#include "executor/feed/flow.h"
#include "lib/base/cleanup.h"

#define PIPE 1000u

static int pipe_holder;

static struct task_mark at(uint64_t position) {
        return (struct task_mark){ position, 0 };
}

static struct task *take(struct tasks *s, uint64_t id, uint64_t size, uint64_t offset) {
        struct task_grant g = { .task = id, .path = "/x", .size = size, .end = size, .offset = offset };

        assert_int_equal(tasks_grant(s, &g), 1);
        return tasks_take(s, &pipe_holder);
}

/* All of it from from on goes into the stream as a range; with a newline behind it, as a chunk. */
static void write_task(struct flow *f, struct task *t, uint64_t from, bool newline) {
        assert_int_equal(flow_begin(f, t->id, at(from), at(t->grant.size), true, 0), 0);
        flow_wrote(f, t->grant.size - from + newline);
        flow_end(f, at(t->grant.size));
        tasks_whole(f->tasks, t);
}

static void test_lag(void **state) {
        struct tasks s;
        struct flow f;
        struct task *one, *two;

        tasks_init(&s, ACK_LAG);
        flow_init(&f, &s, PIPE);
        one = take(&s, 1, 500, 0);
        two = take(&s, 2, 2000, 0);
        write_task(&f, one, 0, true);
        assert_int_equal(flow_begin(&f, 2, at(0), at(2000), true, 0), 0);
        flow_wrote(&f, 800);
        assert_true(flow_consumed(&f, 501));
        assert_true(one->read == 500 && one->acked.position == 0 && !one->unread);
        assert_true(flow_consumed(&f, 1301));
        assert_int_equal(one->acked.position, 301); /* what was read a pipe ago */
        assert_true(two->read == 800 && two->acked.position == 0);
        flow_wrote(&f, 1200);
        flow_end(&f, at(2000));
        tasks_whole(&s, two);
        assert_true(flow_consumed(&f, 1501));
        assert_int_equal(one->place, PLACE_DONE);
        assert_true(flow_consumed(&f, 2501));
        assert_int_equal(two->acked.position, 1000);
        assert_false(flow_consumed(&f, 2501));
        flow_finish(&f);
        assert_int_equal(two->place, PLACE_DONE);
        flow_done(&f);
        tasks_done(&s);
}

static void test_modes(void **state) {
        for (enum ack_mode ack = 0; ack < _ACK_MODE_MAX; ack++) {
                struct tasks s;
                struct flow f;
                struct task *t;
                uint64_t expected = ack == ACK_READ || ack == ACK_RELEASE ? 3000 : ack == ACK_LAG ? 2000 : 0;

                tasks_init(&s, ack);
                flow_init(&f, &s, PIPE);
                t = take(&s, 1, 5000, 0);
                write_task(&f, t, 0, false);
                (void)flow_consumed(&f, 3000);
                assert_int_equal(tasks_progress(&s, t).acked, expected);
                (void)flow_consumed(&f, 5000);
                assert_int_equal(tasks_progress(&s, t).state,
                                 ack == ACK_READ || ack == ACK_RELEASE ? TASK_DONE : TASK_RUNNING);
                if (ack == ACK_EXPLICIT) {
                        assert_int_equal(flow_processed(&f, 5001), -ERANGE);
                        assert_int_equal(flow_processed(&f, 4000), 0);
                        assert_int_equal(t->acked.position, 4000);
                        assert_int_equal(flow_processed(&f, 5000), 0);
                        assert_int_equal(t->place, PLACE_DONE);
                }
                if (ack == ACK_CHECKPOINT) {
                        assert_int_equal(tasks_ack(&s, t, at(3500), 0), 0);
                        assert_int_equal(tasks_ack(&s, t, at(TASK_TO_END), 0), 0);
                        assert_int_equal(t->place, PLACE_DONE);
                }
                flow_done(&f);
                tasks_done(&s);
        }
}

/* Going on inside a line: what is handed out twice does not count backwards. */
static void test_resumed(void **state) {
        struct tasks s;
        struct flow f;
        struct task *t;

        tasks_init(&s, ACK_READ);
        flow_init(&f, &s, PIPE);
        t = take(&s, 1, 100, 50);
        write_task(&f, t, 40, false);
        (void)flow_consumed(&f, 5);
        assert_true(t->read == 50 && t->acked.position == 50);
        (void)flow_consumed(&f, 20);
        assert_true(t->read == 60 && t->acked.position == 60);
        flow_done(&f);
        tasks_done(&s);
}

/* Shuffled records, messages: a piece counts when all of its bytes do. */
static void test_pieces(void **state) {
        struct tasks s;
        struct flow f;
        struct task *t;

        tasks_init(&s, ACK_READ);
        flow_init(&f, &s, PIPE);
        t = take(&s, 1, 1000, 0);
        assert_int_equal(flow_begin(&f, 1, at(0), (struct task_mark){ 0, 10 }, false, 10), 0);
        flow_wrote(&f, 300);
        (void)flow_consumed(&f, 300);
        assert_true(t->acked.skip == 0); /* more of it may follow */
        flow_end(&f, (struct task_mark){ 0, 10 });
        assert_int_equal(flow_begin(&f, 1, (struct task_mark){ 0, 10 }, at(1000), false, 5), 0);
        flow_wrote(&f, 200);
        flow_end(&f, at(1000));
        (void)flow_consumed(&f, 499);
        assert_true(t->acked.position == 0 && t->acked.skip == 10 && t->records == 10);
        tasks_whole(&s, t);
        (void)flow_consumed(&f, 500);
        assert_true(t->place == PLACE_DONE && t->records == 15);
        assert_null(f.pieces);
        flow_done(&f);
        tasks_done(&s);
}

/* One piece for as long as the bytes follow each other; a bound for the rest. */
static void test_merged(void **state) {
        struct tasks s;
        struct flow f;
        struct task *t;

        tasks_init(&s, ACK_EXIT);
        flow_init(&f, &s, PIPE);
        t = take(&s, 1, 1u << 20, 0);
        tasks_begin(t, at(0));
        for (uint64_t i = 0; i < 1000; i++) {
                assert_int_equal(flow_begin(&f, 1, at(i * 10), at(i * 10 + 10), true, 1), 0);
                flow_wrote(&f, 10);
                flow_end(&f, at(i * 10 + 10));
        }
        assert_int_equal(f.n, 1);
        (void)flow_consumed(&f, 5005);
        assert_int_equal(t->acked.position, 5005);
        assert_int_equal(tasks_progress(&s, t).acked, 0);
        flow_done(&f);
        tasks_done(&s);

        tasks_init(&s, ACK_EXPLICIT);
        flow_init(&f, &s, PIPE);
        t = take(&s, 2, 1u << 20, 0);
        for (uint64_t i = 0; i < FLOW_PIECES_MAX + 1000; i++) {
                assert_int_equal(flow_begin(&f, 2, (struct task_mark){ 0, i }, (struct task_mark){ 0, i + 1 },
                                            false, 1),
                                 0);
                flow_wrote(&f, 1);
                flow_end(&f, (struct task_mark){ 0, i + 1 });
        }
        assert_int_equal(f.n, FLOW_PIECES_MAX);
        (void)flow_consumed(&f, f.written);
        assert_int_equal(flow_processed(&f, f.written - 1), 0);
        assert_int_equal(t->acked.skip, FLOW_PIECES_MAX - 1);
        assert_int_equal(flow_processed(&f, f.written), 0);
        assert_int_equal(t->acked.skip, FLOW_PIECES_MAX + 1000);
        flow_done(&f);
        tasks_done(&s);
}

/* A task that is dropped while bytes of it are on their way. */
static void test_dropped(void **state) {
        struct tasks s;
        struct flow f;

        tasks_init(&s, ACK_READ);
        flow_init(&f, &s, PIPE);
        write_task(&f, take(&s, 1, 100, 0), 0, false);
        tasks_drop(&s, tasks_find(&s, 1));
        flow_skip(&f, 1);
        write_task(&f, take(&s, 2, 100, 0), 0, false);
        (void)flow_consumed(&f, 151);
        assert_int_equal(tasks_find(&s, 2)->read, 50);
        (void)flow_consumed(&f, 201);
        assert_int_equal(tasks_find(&s, 2)->place, PLACE_DONE);
        flow_done(&f);
        tasks_done(&s);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_lag),    cmocka_unit_test(test_modes),  cmocka_unit_test(test_resumed),
                cmocka_unit_test(test_pieces), cmocka_unit_test(test_merged), cmocka_unit_test(test_dropped),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
