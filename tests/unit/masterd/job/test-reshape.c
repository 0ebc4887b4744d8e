/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs that grow, shrink, gain and lose roles; what their verdict is afterwards. */
#include "masterd/job/reshape.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <utlist.h>

#include <cmocka.h>

#include "masterd/job/verdict.h"
#include "tests/kit/json.h"

static struct job_spec *spec(const char *roles) {
        struct diagnostics d = {};
        struct job_spec *s = NULL;
        char text[1024];

        snprintf(text, sizeof(text), "{'name': 'j', 'role': [%s]}", roles);
        if (spec_parse(json_text(text), strlen(text), &s, &d) < 0)
                fail_msg("the test's own configuration is wrong");
        diagnostics_done(&d);
        return s;
}

#define ROLE(name, num) "{'roleName': '" name "', 'num': " #num ", 'command': 'true'}"

static struct job *job(const char *roles) {
        struct job *j = NULL;

        assert_int_equal(
                job_new(7, SD_ID128_MAKE(01, 23, 45, 67, 89, ab, cd, ef, 01, 23, 45, 67, 89, ab, cd, ef),
                        1000, spec(roles), &j),
                0);
        return j;
}

/* Arrays, ranks and counts agree with the configuration. */
static void check(const struct job *j) {
        uint32_t rank = 0, leaving = 0;
        struct executor *e;

        assert_int_equal(j->n_executors, spec_executors(j->spec));
        for (uint32_t i = 0; i < j->spec->n_roles; i++) {
                uint32_t n[_EXECUTOR_STATE_MAX] = {};
                assert_ptr_equal(j->roles[i].spec, j->spec->roles + i);
                for (uint32_t k = 0; k < j->spec->roles[i].num; k++, rank++) {
                        e = j->roles[i].executors[k];
                        assert_ptr_equal(e, j->executors[rank]);
                        assert_ptr_equal(e->job, j);
                        assert_false(e->leaver.leaves);
                        assert_int_equal(e->role, i);
                        assert_int_equal(e->index, k);
                        assert_int_equal(e->rank, rank);
                        n[e->state]++;
                }
                assert_memory_equal(n, j->roles[i].n_state, sizeof(n));
        }
        DL_FOREACH2 (j->leavers.list, e, leaver.next)
                leaving++;
        assert_int_equal(leaving, j->leavers.n);
        rank = 0;
        JOB_FOREACH (j, e)
                rank++;
        assert_int_equal(rank, j->n_executors + j->leavers.n);
}

static void run(struct executor *e) {
        e->attempt = executor_next_attempt(e);
        executor_restore_state(e, EXECUTOR_RUNNING);
}

static void end(struct executor *e, enum executor_state state) {
        executor_restore_state(e, state);
        executor_set_gone(e);
}

static enum verdict verdict(const struct job *j) {
        struct role_count counts[SPEC_ROLES_MAX];
        char text[VERDICT_TEXT_MAX];
        size_t role;

        for (size_t i = 0; i < j->spec->n_roles; i++)
                counts[i] = (struct role_count){ j->spec->roles[i].name, j->spec->roles[i].num,
                                                 j->spec->roles[i].success_percent, j->roles[i].n_succeeded,
                                                 j->roles[i].n_failed };
        return verdict_of(counts, j->spec->n_roles, &role, text);
}

static void test_grow(void **state) {
        struct job *j = job(ROLE("a", 2) "," ROLE("b", 1));
        struct executor *a1 = j->executors[1], *b0 = j->executors[2];

        run(a1);
        run(b0);
        assert_int_equal(job_reshape(j, spec(ROLE("a", 4) "," ROLE("b", 1))), 0);
        check(j);
        assert_ptr_equal(job_executor(j, "a", 1), a1); /* nobody has moved */
        assert_ptr_equal(job_executor(j, "b", 0), b0);
        assert_int_equal(b0->rank, 4);
        assert_int_equal(job_executor(j, "a", 3)->state, EXECUTOR_PENDING);
        assert_null(j->leavers.list);
        job_free(j);
}

static void test_shrink(void **state) {
        struct job *j = job(ROLE("a", 4));
        struct executor *a2 = j->executors[2], *a3 = j->executors[3];

        for (uint32_t i = 0; i < 4; i++)
                run(j->executors[i]);
        end(a3, EXECUTOR_SUCCEEDED);
        assert_int_equal(j->roles[0].n_succeeded, 1);
        assert_int_equal(job_reshape(j, spec(ROLE("a", 2))), 0);
        check(j);
        /* Who has left counts for nothing, also where it had succeeded: 0 of 2. */
        assert_int_equal(j->roles[0].n_succeeded, 0);
        assert_int_equal(verdict(j), VERDICT_GO_ON);
        assert_int_equal(job_active(j), 4); /* the job waits for them */
        assert_null(job_executor(j, "a", 2));
        assert_ptr_equal(job_attempt(j, "a", 2, 1), a2);
        assert_string_equal(executor_role(a2)->name, "a");
        executor_restore_state(a2, EXECUTOR_STOPPING);
        check(j);
        executor_restore_state(a2, EXECUTOR_KILLED);
        job_dismiss(a2);
        job_dismiss(a3);
        check(j);
        assert_null(job_attempt(j, "a", 2, 1));
        /* Numbers of attempts are not used again. */
        assert_int_equal(job_reshape(j, spec(ROLE("a", 3))), 0);
        check(j);
        run(job_executor(j, "a", 2));
        assert_int_equal(job_executor(j, "a", 2)->attempt, 2);
        assert_int_equal(job_executor(j, "a", 2)->restart.n, 0);
        end(j->executors[0], EXECUTOR_SUCCEEDED);
        end(j->executors[1], EXECUTOR_SUCCEEDED);
        assert_int_equal(verdict(j), VERDICT_GO_ON);
        assert_int_equal(job_reshape(j, spec(ROLE("a", 2))), 0);
        assert_int_equal(verdict(j), VERDICT_SUCCEEDED);
        job_free(j); /* with one that is leaving */
}

static void test_roles(void **state) {
        struct job *j = job(ROLE("a", 1) "," ROLE("b", 2) "," ROLE("c", 1));
        struct executor *b0 = j->executors[1], *c0 = j->executors[3];

        run(b0);
        run(c0);
        assert_int_equal(job_reshape(j, spec(ROLE("a", 1) "," ROLE("c", 1) "," ROLE("d", 2))), 0);
        check(j);
        assert_int_equal(c0->role, 1);
        assert_int_equal(c0->rank, 1);
        assert_string_equal(executor_role(b0)->name, "b"); /* of the configuration before */
        assert_int_equal(j->leavers.n, 2);
        assert_ptr_equal(job_role_known(j, "b"), executor_role(b0));
        assert_null(job_role_known(j, "e"));
        /* And once more before the first have gone. */
        assert_int_equal(job_reshape(j, spec(ROLE("a", 1))), 0);
        check(j);
        assert_int_equal(j->leavers.n, 5);
        assert_string_equal(executor_role(b0)->name, "b");
        while (j->leavers.list)
                job_dismiss(j->leavers.list);
        assert_null(j->leavers.retired);
        check(j);
        job_free(j);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_grow),
                cmocka_unit_test(test_shrink),
                cmocka_unit_test(test_roles),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
