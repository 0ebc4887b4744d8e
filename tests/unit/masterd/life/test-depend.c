/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs behind jobs, and at a time. */
#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/clock.h"
#include "lib/base/file.h"
#include "lib/base/format.h"
#include "lib/base/log.h"
#include "masterd/admit/submit.h"
#include "masterd/core/manager.h"
#include "masterd/life/depend.h"
#include "masterd/life/history.h"
#include "masterd/life/life-parts.h"
#include "masterd/life/lifecycle.h"
#include "masterd/life/revive.h"
#include "masterd/start.h"
#include "tests/kit/json.h"
#include "tests/kit/masterd-kit.h"

#define CONFIG "{'role':[{'roleName':'w','command':'x'}]}"

struct fixture {
        char directory[64];
        struct manager *m;
};

static int setup(void **state) {
        static struct fixture f;

        snprintf(f.directory, sizeof(f.directory), "/tmp/test-depend-XXXXXX");
        assert_non_null(mkdtemp(f.directory));
        f.m = kit_open(f.directory);
        *state = &f;
        return 0;
}

static int teardown(void **state) {
        struct fixture *f = *state;

        start_free(f->m);
        (void)remove_tree(f->directory);
        return 0;
}

static struct job *submit(struct manager *m, const char *after, const char *begin) {
        json_t *overrides = json_object();

        if (after)
                (void)json_object_set_new(overrides, "after", json_pack("[s]", after));
        if (begin)
                (void)json_object_set_new(overrides, "begin", json_string(begin));
        return kit_submit(m, CONFIG, overrides);
}

static struct job *behind(struct manager *m, const struct job *j, const char *condition) {
        char text[32];

        snprintf(text, sizeof(text), "%u%s", j->number, condition);
        return submit(m, text, NULL);
}

static void test_reasons(void **state) {
        struct fixture *f = *state;
        struct job *a = submit(f->m, NULL, NULL), *ok = behind(f->m, a, ""), *bad = behind(f->m, a, ":fail"),
                   *any = behind(f->m, ok, ":any");
        char text[64];

        snprintf(text, sizeof(text), "after job %u (QUEUED)", a->number);
        assert_string_equal(ok->reason, text);
        assert_true(depend_holds_back(ok));
        assert_false(ok->queue.known);
        assert_true(a->queue.known);
        lifecycle_stop_job(f->m, a, JOB_EVENT_KILLED, "killed");
        assert_int_equal(ok->state, JOB_KILLED);
        snprintf(text, sizeof(text), "job %u was killed, and this one was to run", a->number);
        assert_memory_equal(ok->reason, text, strlen(text));
        assert_int_equal(bad->state, JOB_QUEUED);
        assert_false(depend_holds_back(bad));
        assert_true(bad->queue.known);
        assert_null(bad->reason);
        assert_true(any->queue.known);
        kit_until_durable(f->m);
}

/* Who still waits, also where what it waited for has ended, is named; a deleted job is nobody's any more. */
static void test_deleted(void **state) {
        struct fixture *f = *state;
        struct job *a = submit(f->m, NULL, NULL), *b = submit(f->m, NULL, NULL), *both;
        uint32_t number = a->number;
        char one[32], other[32];

        snprintf(one, sizeof(one), "%u:any", a->number);
        snprintf(other, sizeof(other), "%u:any", b->number);
        both = kit_submit(f->m, CONFIG, json_pack("{s:[s, s]}", "after", one, other));
        assert_int_equal(depend_waiting(f->m, number), both->number);
        lifecycle_stop_job(f->m, a, JOB_EVENT_KILLED, "killed");
        kit_until_durable(f->m);
        assert_int_equal(depend_waiting(f->m, number), both->number);
        lifecycle_stop_job(f->m, b, JOB_EVENT_KILLED, "killed");
        kit_until_durable(f->m);
        assert_int_equal(depend_waiting(f->m, number), 0);
        assert_true(both->queue.known);
        history_delete(f->m, a);
        assert_null(manager_job(f->m, number));
        assert_int_equal(f->m->life->n_ended, 1);
        kit_until_durable(f->m);
}

/* As deep as no stack. */
static void test_chain(void **state) {
        struct fixture *f = *state;
        struct job *first, *j;
        uint32_t n = 3000;

        f->m->conf.jobs_max = f->m->conf.jobs_per_user_max = n + 1;
        first = j = submit(f->m, NULL, NULL);
        for (uint32_t i = 0; i < n; i++)
                j = behind(f->m, j, ":ok");
        assert_int_equal(f->m->jobs.n_active, n + 1);
        lifecycle_stop_job(f->m, first, JOB_EVENT_KILLED, "killed");
        assert_int_equal(f->m->jobs.n_active, 0);
        assert_int_equal(j->state, JOB_KILLED);
        assert_null(f->m->life->dependents);
        kit_until_durable(f->m);
}

static void test_begin(void **state) {
        struct fixture *f = *state;
        char when[FORMAT_TIME_MAX], wanted[64];
        struct job *j;

        (void)format_time(now_real() + 2 * USEC_PER_SEC, when, sizeof(when));
        j = submit(f->m, NULL, when);
        snprintf(wanted, sizeof(wanted), "begins at %s", when);
        assert_string_equal(j->reason, wanted);
        assert_false(j->queue.known);
        while (depend_holds_back(j))
                assert_true(sd_event_run(f->m->event, UINT64_MAX) >= 0);
        assert_true(now_real() >= j->depend.begin_real);
        assert_true(now_real() < j->depend.begin_real + USEC_PER_SEC);
        assert_true(j->queue.known);
        assert_null(j->reason);
        j = submit(f->m, NULL, "2020-01-01T00:00:00Z");
        assert_true(j->queue.known);
        kit_until_durable(f->m);
}

/* ---- jobs that have left memory ---- */

struct answer {
        bool done;
        int error;
        uint32_t unknown;
};

static void on_asked(void *userdata, int error, const char *unknown) {
        *(struct answer *)userdata =
                (struct answer){ true, error, unknown ? (uint32_t)strtoul(unknown, NULL, 10) : 0 };
}

static struct answer ask(struct manager *m, struct job *j) {
        struct answer a = {};

        assert_int_equal(depend_ask(m, j, on_asked, &a), 0);
        while (!a.done)
                assert_true(sd_event_run(m->event, UINT64_MAX) >= 0);
        assert_true(a.error >= 0);
        return a;
}

static struct job *make(struct manager *m, char **after) {
        struct submission s = { .owner = 1000,
                                .config = json_text(CONFIG),
                                .config_size = strlen(CONFIG),
                                .overrides = json_object() };
        sd_bus_error error = SD_BUS_ERROR_NULL;
        struct job *j = NULL;

        (void)json_object_set_new(s.overrides, "after", json_array());
        for (; *after; after++)
                (void)json_array_append_new(json_object_get(s.overrides, "after"), json_string(*after));
        assert_true(submit_make(m, &s, &j, &error) >= 0);
        submission_done(&s);
        return j;
}

static void test_history(void **state) {
        struct fixture *f = *state;
        struct job *first = submit(f->m, NULL, NULL), *j;
        uint32_t number = first->number;
        char text[3][32], *after[4] = { text[0], text[1], text[2] };

        lifecycle_stop_job(f->m, first, JOB_EVENT_KILLED, "killed");
        for (unsigned i = 0; i < HISTORY_JOBS + 1; i++)
                lifecycle_stop_job(f->m, submit(f->m, NULL, NULL), JOB_EVENT_KILLED, "killed");
        kit_until_durable(f->m);
        assert_null(manager_job(f->m, number));

        snprintf(text[0], sizeof(text[0]), "%u:any", number);
        snprintf(text[1], sizeof(text[1]), "%u:fail", number);
        snprintf(text[2], sizeof(text[2]), "999999");
        j = make(f->m, after);
        assert_int_equal(ask(f->m, j).unknown, 999999);
        revive_job_free(j);

        after[2] = NULL;
        j = make(f->m, after);
        assert_int_equal(ask(f->m, j).unknown, 0);
        submit_admit(f->m, j);
        assert_true(j->queue.known);

        snprintf(text[1], sizeof(text[1]), "%u:ok", number);
        j = make(f->m, after);
        assert_int_equal(ask(f->m, j).unknown, 0);
        submit_admit(f->m, j);
        assert_int_equal(j->state, JOB_KILLED);
        assert_non_null(strstr(j->reason, "was killed, and this one"));
        kit_until_durable(f->m);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_reasons, setup, teardown),
                cmocka_unit_test_setup_teardown(test_deleted, setup, teardown),
                cmocka_unit_test_setup_teardown(test_chain, setup, teardown),
                cmocka_unit_test_setup_teardown(test_begin, setup, teardown),
                cmocka_unit_test_setup_teardown(test_history, setup, teardown),
        };

        setenv("PRIMUS_LOG_LEVEL", "err", 0);
        log_open("test-depend");
        return cmocka_run_group_tests(tests, NULL, NULL);
}
