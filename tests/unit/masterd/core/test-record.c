/* SPDX-License-Identifier: Apache-2.0 */
/* What is kept of a job: whatever is in the record is in the job afterwards, and in the next record. */
#include "masterd/core/record.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void test_every_field(void **state) {
        struct job_state_record before, after;
        struct job job = {};

        memset(&before, 1, sizeof(before)); /* one is in the range of each field */
        memset(&after, 1, sizeof(after));   /* padding too */
        before.rolling_role[sizeof(before.rolling_role) - 1] = 0;
        record_state_to_job(&before, &job);
        record_state_of_job(&job, &after);
#define SAME(member) assert_memory_equal(&before.member, &after.member, sizeof(before.member))
        SAME(verdict);
        SAME(saving);
        SAME(requeueing);
        SAME(had_env);
        SAME(had_secrets);
        SAME(leave_why);
        SAME(order_step);
        SAME(requeues);
        SAME(asked);
        SAME(leave_for);
        SAME(array_since);
        SAME(attempt_real);
        SAME(slot_real);
        SAME(waits_real);
        SAME(not_before_real);
        SAME(leave_real);
        SAME(after_met);
        SAME(limits_real);
        SAME(epoch);
        SAME(membership);
        SAME(rolling_real);
        SAME(rolling_batch);
        SAME(rolling_index);
        SAME(rolling_role);
        SAME(held_mode);
        SAME(kill_grace);
        SAME(held_by);
        SAME(held_real);
        SAME(froze_real);
}

static void test_since_when_it_waits(void **state) {
        struct job_state_record record = { .attempt_real = 5 };
        struct job job = { .submitted_real = 3 };

        record_state_to_job(&record, &job);
        assert_int_equal(job.attempt_real, 5);
        assert_int_equal(job.queue.waits_real, 3);
}

int main(void) {
        const struct CMUnitTest tests[] = { cmocka_unit_test(test_every_field),
                                            cmocka_unit_test(test_since_when_it_waits) };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
