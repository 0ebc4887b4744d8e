/* SPDX-License-Identifier: Apache-2.0 */
/* States as versions 1 to 5 of the store wrote them: structs laid out by the compiler. They are here as they
 * were in the source of 0.1.0. */
#include "masterd/store/old-states.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"
#include "masterd/store/table.h"

struct job_state_data {
        uint8_t version; /* 2; what is behind the end of an older one is zero */
        uint8_t verdict;
        uint8_t saving;
        uint8_t requeueing;
        uint32_t order_step;
        uint64_t attempt_real;
        /* 2: */
        uint32_t requeues, asked;
        uint64_t slot_real, waits_real, not_before_real, leave_real;
        uint32_t leave_for;
        uint8_t leave_why;
        uint8_t reserved[3];
        uint64_t after_met;
        uint32_t array_since;
        uint8_t had_env, had_secrets, reserved2[2];
        /* 2: changes while it runs */
        uint64_t limits_real;
        uint64_t epoch, membership;
        uint64_t rolling_real;
        uint32_t rolling_batch, rolling_index;
        char rolling_role[36];
        uint64_t held_real, froze_real;
        uint32_t held_by;
        uint8_t held_mode, reserved3[3];
};

#define FAILOVER_REMEMBERED 12
struct history_state {
        uint64_t failures[FAILOVER_REMEMBERED];
        uint32_t n_at[FAILOVER_REMEMBERED];
        uint32_t n_failures, consecutive;
};
struct scope_state {
        uint32_t version, restarts;
        uint64_t real, due_real;
        struct history_state history, budget;
        uint64_t regroup_real;
};

struct strike {
        uint64_t when;
        uint32_t job, user;
        uint8_t kind;
        bool alone;
};
struct shun {
        uint32_t user;
        uint32_t times;
        uint64_t until;
};
struct blame {
        uint32_t state;
        uint32_t times;
        uint64_t since;
        uint64_t until;
        uint32_t n_strikes;
        uint32_t n_shuns;
        struct strike strikes[32];
        struct shun shuns[16];
};
struct blame_stored {
        uint32_t version, reserved;
        struct blame blame;
};

static int setup(void **state) {
        sqlite3 *db;

        if (sqlite3_open(":memory:", &db) != SQLITE_OK || old_states_register(db) != SQLITE_OK)
                return -1;
        *state = db;
        return 0;
}

static int teardown(void **state) {
        return sqlite3_close(*state);
}

/* What becomes of it, read by today's table. False: the statement fails. */
static bool convert(sqlite3 *db, const char *sql, const void *old, size_t size,
                    const struct codec_field *fields, void *ret) {
        sqlite3_stmt *statement;
        bool good;

        assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &statement, NULL), SQLITE_OK);
        if (size > 0)
                assert_int_equal(sqlite3_bind_blob(statement, 1, old, (int)size, SQLITE_STATIC), SQLITE_OK);
        else
                assert_int_equal(sqlite3_bind_zeroblob(statement, 1, 0), SQLITE_OK);
        good = sqlite3_step(statement) == SQLITE_ROW;
        if (good)
                assert_int_equal(codec_read(fields, sqlite3_column_blob(statement, 0),
                                            (size_t)sqlite3_column_bytes(statement, 0), ret),
                                 0);
        sqlite3_finalize(statement);
        return good;
}

#define OF_JOB "SELECT job_state_of_5(?1, 777)"
#define OF_SCOPE "SELECT scope_state_of_5(?1)"
#define OF_BLAME "SELECT blame_state_of_5(?1)"

static const struct job_state_data job = { .version = 2,
                                           .verdict = 3,
                                           .saving = 1,
                                           .requeueing = 1,
                                           .order_step = 4,
                                           .attempt_real = UINT64_MAX,
                                           .requeues = 6,
                                           .asked = UINT32_MAX,
                                           .slot_real = 8,
                                           .waits_real = 9,
                                           .not_before_real = 10,
                                           .leave_real = 11,
                                           .leave_for = 12,
                                           .leave_why = 255,
                                           .after_met = UINT64_C(1) << 63,
                                           .array_since = 15,
                                           .had_env = 1,
                                           .had_secrets = 1,
                                           .limits_real = 18,
                                           .epoch = 19,
                                           .membership = 20,
                                           .rolling_real = 21,
                                           .rolling_batch = 22,
                                           .rolling_index = 23,
                                           .rolling_role = "of-as-many-letters-as-a-role-has",
                                           .held_real = 25,
                                           .froze_real = 26,
                                           .held_by = 27,
                                           .held_mode = 28 };

static void test_job(void **state) {
        struct job_state_record r;

        assert_true(convert(*state, OF_JOB, &job, sizeof(job), job_state_codec, &r));
#define SAME(member) assert_true(r.member == job.member)
        SAME(verdict);
        SAME(saving);
        SAME(requeueing);
        SAME(order_step);
        SAME(attempt_real);
        SAME(requeues);
        SAME(asked);
        SAME(slot_real);
        SAME(waits_real);
        SAME(not_before_real);
        SAME(leave_real);
        SAME(leave_for);
        SAME(leave_why);
        SAME(after_met);
        SAME(array_since);
        SAME(had_env);
        SAME(had_secrets);
        SAME(limits_real);
        SAME(epoch);
        SAME(membership);
        SAME(rolling_real);
        SAME(rolling_batch);
        SAME(rolling_index);
        SAME(held_real);
        SAME(froze_real);
        SAME(held_by);
        SAME(held_mode);
        assert_string_equal(r.rolling_role, job.rolling_role);
}

/* Version 1 ended early, and counted the time of a job's slot from its start. */
static void test_short_job(void **state) {
        struct job_state_data old = job;
        struct job_state_record r;

        old.version = 1;
        assert_true(convert(*state, OF_JOB, &old, offsetof(struct job_state_data, requeues), job_state_codec,
                            &r));
        assert_true(r.order_step == 4 && r.attempt_real == UINT64_MAX && r.slot_real == 777);
        assert_true(r.requeues == 0 && r.held_mode == 0 && !*r.rolling_role);
        assert_true(convert(*state, OF_JOB, "", 0, job_state_codec, &r));
        assert_true(r.verdict == 0 && r.slot_real == 777);
        for (size_t n = 0; n <= sizeof(job); n++)
                assert_true(convert(*state, OF_JOB, &job, n, job_state_codec, &r));
}

static void test_scope(void **state) {
        struct scope_state old = {
                .version = 1, .restarts = 2, .real = 3, .due_real = UINT64_MAX, .regroup_real = 5
        };
        struct scope_state_record r;

        old.history = (struct history_state){ .n_failures = FAILOVER_REMEMBERED, .consecutive = 6 };
        for (uint32_t i = 0; i < FAILOVER_REMEMBERED; i++) {
                old.history.failures[i] = UINT64_C(1790000000000000) + i;
                old.history.n_at[i] = i + 1;
        }
        old.budget = (struct history_state){ .failures = { 7, 99 }, .n_at = { 8, 99 }, .n_failures = 1 };
        assert_true(convert(*state, OF_SCOPE, &old, sizeof(old), scope_state_codec, &r));
        assert_true(r.restarts == 2 && r.real == 3 && r.due_real == UINT64_MAX && r.regroup_real == 5);
        assert_true(r.history.n_failures == FAILOVER_REMEMBERED && r.history.consecutive == 6);
        for (uint32_t i = 0; i < FAILOVER_REMEMBERED; i++)
                assert_true(r.history.failures[i].real == old.history.failures[i] &&
                            r.history.failures[i].n == i + 1);
        assert_true(r.budget.n_failures == 1 && r.budget.failures[0].real == 7 &&
                    r.budget.failures[0].n == 8);
        assert_true(r.budget.failures[1].real == 0 && r.budget.consecutive == 0);

        assert_true(convert(*state, OF_SCOPE, &old, offsetof(struct scope_state, regroup_real),
                            scope_state_codec, &r));
        assert_true(r.restarts == 2 && r.budget.n_failures == 1 && r.regroup_real == 0);
        old.version = 2;
        assert_false(convert(*state, OF_SCOPE, &old, sizeof(old), scope_state_codec, &r));
        assert_false(convert(*state, OF_SCOPE, "", 0, scope_state_codec, &r));
}

static void test_blame(void **state) {
        struct blame_stored old = { .version = 2,
                                    .blame = { .state = 1,
                                               .times = 2,
                                               .since = 3,
                                               .until = UINT64_MAX,
                                               .n_strikes = 32,
                                               .n_shuns = 16 } };
        struct blame_state_record r;

        for (uint32_t i = 0; i < 32; i++)
                old.blame.strikes[i] = (struct strike){ i, i + 1, UINT32_MAX - i, (uint8_t)(i % 8), i % 2 };
        for (uint32_t i = 0; i < 16; i++)
                old.blame.shuns[i] = (struct shun){ i, i + 1, UINT64_MAX - i };
        assert_true(convert(*state, OF_BLAME, &old, sizeof(old), blame_state_codec, &r));
        assert_true(r.state == 1 && r.times == 2 && r.since_real == 3 && r.until_real == UINT64_MAX);
        assert_true(r.n_strikes == 32 && r.n_shuns == 16);
        for (uint32_t i = 0; i < 32; i++)
                assert_true(r.strikes[i].real == i && r.strikes[i].job == i + 1 &&
                            r.strikes[i].user == UINT32_MAX - i && r.strikes[i].kind == i % 8 &&
                            r.strikes[i].alone == i % 2);
        for (uint32_t i = 0; i < 16; i++)
                assert_true(r.shuns[i].user == i && r.shuns[i].times == i + 1 &&
                            r.shuns[i].until_real == UINT64_MAX - i);

        old.version = 1; /* without shuns */
        old.blame.n_shuns = 0;
        assert_true(convert(*state, OF_BLAME, &old, offsetof(struct blame_stored, blame.shuns),
                            blame_state_codec, &r));
        assert_true(r.n_strikes == 32 && r.n_shuns == 0 && r.shuns[0].user == 0);
        old.blame.n_strikes = 33;
        assert_false(convert(*state, OF_BLAME, &old, sizeof(old), blame_state_codec, &r));
        old.blame.n_strikes = 0;
        old.version = 3;
        assert_false(convert(*state, OF_BLAME, &old, sizeof(old), blame_state_codec, &r));
        assert_false(convert(*state, OF_BLAME, "", 0, blame_state_codec, &r));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_job, setup, teardown),
                cmocka_unit_test_setup_teardown(test_short_job, setup, teardown),
                cmocka_unit_test_setup_teardown(test_scope, setup, teardown),
                cmocka_unit_test_setup_teardown(test_blame, setup, teardown),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
