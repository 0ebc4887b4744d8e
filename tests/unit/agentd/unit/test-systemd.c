/* SPDX-License-Identifier: Apache-2.0 */
/* The window onto systemd, against a systemd that answers when it is told to. */
#include "agentd/unit/systemd.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"

#include "lib/base/file.h"
#include "lib/base/unitname.h"
#include "starter/files/private.h"
#include "starter/systemd/lanes.h"
#include "tests/kit/fake-systemd.h"
#include "tests/kit/starter-kit.h"

struct world {
        struct fake_systemd fake;
        struct starter_kit starter;
        char root[64];
        struct systemd *systemd;
        int ready; /* 1: not yet */
        unsigned answers, errors, jobs_removed, units_removed, reloads, max_pending, max_jobs;
        char last_unit[128], last_result[32];
        bool no_bus;
        unsigned answers_at_end; /* when a job's end was told */
};

/* Of the users by whose number they are. */
static const uint32_t jobs[] = { 1, 2, 1000, 1001 };
static const sd_id128_t job_uid =
        SD_ID128_MAKE(01, 02, 03, 04, 05, 06, 07, 08, 09, 0a, 0b, 0c, 0d, 0e, 0f, 10);

static void on_ready(int r, void *userdata) {
        ((struct world *)userdata)->ready = r;
}

static void on_job_removed(const char *unit, const char *job, const char *result, void *userdata) {
        struct world *w = userdata;

        w->jobs_removed++;
        w->answers_at_end = w->answers;
        snprintf(w->last_unit, sizeof(w->last_unit), "%s", unit);
        snprintf(w->last_result, sizeof(w->last_result), "%s", result);
}

static void on_unit_removed(const char *unit, void *userdata) {
        ((struct world *)userdata)->units_removed++;
}

static void on_reloaded(void *userdata) {
        ((struct world *)userdata)->reloads++;
}

static int connect_fake(sd_bus **ret, void *userdata) {
        struct world *w = userdata;

        if (w->no_bus)
                return -ECONNREFUSED;
        *ret = fake_systemd_connect(&w->fake);
        return 0;
}

static int setup(void **state) {
        static const struct systemd_handlers handlers = { on_ready, on_job_removed, on_unit_removed,
                                                          on_reloaded };
        struct world *w = calloc(1, sizeof(*w));

        assert_non_null(w);
        fake_systemd_new(&w->fake);
        w->ready = 1;
        strcpy(w->root, "/tmp/primus-systemd-XXXXXX");
        assert_non_null(mkdtemp(w->root));
        starter_kit_new(&w->starter, w->fake.event, w->fake.client, connect_fake, w, w->root, "n2");
        for (size_t i = 0; i < ELEMENTSOF(jobs); i++)
                assert_int_equal(work_create(w->root, jobs[i], job_uid, geteuid()), 0);
        assert_int_equal(systemd_new(w->fake.client, w->starter.client, &handlers, w, &w->systemd), 0);
        fake_run_until(&w->fake, w->ready <= 0);
        assert_int_equal(w->ready, 0);
        *state = w;
        return 0;
}

static int teardown(void **state) {
        struct world *w = *state;

        systemd_free(w->systemd);
        starter_kit_done(&w->starter);
        assert_int_equal(remove_tree(w->root), 0);
        fake_systemd_done(&w->fake);
        free(w);
        return 0;
}

static void on_answer(sd_bus_message *reply, void *userdata) {
        struct world *w = userdata;

        w->answers++;
        w->errors += sd_bus_message_is_method_error(reply, NULL);
        if (systemd_pending(w->systemd) > w->max_pending)
                w->max_pending = systemd_pending(w->systemd);
        if (systemd_jobs(w->systemd) > w->max_jobs)
                w->max_jobs = systemd_jobs(w->systemd);
}

static void start_for(struct world *w, uint32_t uid, unsigned n) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        char *none[] = { NULL }, *argv[] = { (char *)"/bin/true", NULL };
        const struct start_order order = {
                .id = { .job_uid = job_uid, .job = uid, .role = "worker", .index = n, .attempt = 1 },
                .uid = geteuid(),
                .argv = argv,
                .env = none,
                .identity = none,
                .gpus = none,
                .visible_gpus = none
        };
        char name[UNIT_NAME_MAX];

        executor_unit_name(uid, "worker", n, 1, name);
        assert_true(starter_message(w->systemd, "Start", &m) >= 0);
        assert_int_equal(start_order_append(m, &order), 0);
        assert_int_equal(start_extra_append(m, &order.extra), 0);
        assert_true(sd_bus_message_append(m, "a{sv}", 0) >= 0);
        assert_int_equal(systemd_call_job(w->systemd, uid, name, m, on_answer, w), 0);
}

/* By so many users that no share is in the way. */
static void start(struct world *w, unsigned n) {
        start_for(w, 1 + n % (SYSTEMD_JOBS / SYSTEMD_SHARE + 1), n);
}

/* However many are asked for, so many wait in systemd's hands; and they go on as others end. */
static void test_windows(void **state) {
        struct world *w = *state;

        for (unsigned i = 0; i < 300; i++)
                start(w, i);
        assert_int_equal(systemd_pending(w->systemd), SYSTEMD_WINDOW);
        fake_run_until(&w->fake, w->answers == SYSTEMD_JOBS);
        fake_settle(&w->fake, 20000);
        assert_int_equal(w->answers, SYSTEMD_JOBS);
        assert_int_equal(w->fake.starts, SYSTEMD_JOBS);
        assert_int_equal(systemd_jobs(w->systemd), SYSTEMD_JOBS);
        for (unsigned i = 0; i < 300; i++) {
                struct fake_unit *u;
                fake_run_until(&w->fake, i < w->fake.n_units);
                u = &w->fake.units[i];
                fake_job_removed(&w->fake, u->start_job, u->name, "done");
                fake_run_until(&w->fake, w->jobs_removed > i);
        }
        fake_run_until(&w->fake, w->answers == 300);
        fake_settle(&w->fake, 20000);
        assert_int_equal(systemd_jobs(w->systemd), 0);
        assert_int_equal(systemd_pending(w->systemd), 0);
        assert_true(w->max_pending <= SYSTEMD_WINDOW && w->max_jobs <= SYSTEMD_JOBS);
        assert_int_equal(w->errors, 0);
        assert_int_equal(w->fake.n_more, 0); /* it needed no other connection */
}

/* What runs, for as long as its user likes, does not count; and never do so many hang on one connection that
 * PID 1 loses its own. */
static void test_running_do_not_count(void **state) {
        struct world *w = *state;
        struct fake_unit *u;

        for (unsigned i = 0; i < 500; i++)
                start_for(w, 1000, i);
        for (unsigned i = 0; i < 500; i++) {
                fake_run_until(&w->fake, i < w->fake.n_units && i < w->answers);
                fake_job_runs(&w->fake, w->fake.units[i].start_job);
        }
        fake_run_until(&w->fake, w->answers == 500 && systemd_jobs(w->systemd) == 0);
        assert_true(w->max_jobs <= SYSTEMD_SHARE);
        assert_true(w->fake.n_more >= 3);
        for (size_t i = 0; i <= w->fake.n_more; i++)
                assert_true(w->fake.calls_on[i] <= LANE_JOBS);
        /* A full one that has its answers is closed; what comes by no connection of PID 1's any more ends as
         * ever. */
        for (unsigned i = 0; i < 500; i++) {
                u = &w->fake.units[i];
                fake_job_removed(&w->fake, u->start_job, u->name, "done");
        }
        fake_run_until(&w->fake, w->jobs_removed == 500);
        start_for(w, 1001, 0);
        fake_run_until(&w->fake, w->answers == 501);
        assert_int_equal(w->fake.calls_on[0], LANE_JOBS + 1);
        assert_int_equal(w->errors, 0);
}

/* One user has all that he may have; the other's start and anybody's stop go by. */
static void test_shares(void **state) {
        struct world *w = *state;

        for (unsigned i = 0; i < 300; i++)
                start_for(w, 1000, i);
        fake_run_until(&w->fake, w->answers == SYSTEMD_SHARE);
        fake_settle(&w->fake, 20000);
        assert_int_equal(w->fake.starts, SYSTEMD_SHARE);
        start_for(w, 1001, 0);
        fake_run_until(&w->fake, fake_unit_find(&w->fake, "primus-1001-worker-0.1.service"));
        assert_int_equal(systemd_stop(w->systemd, "primus-1000-worker-0.1.service", on_answer, w), 0);
        fake_run_until(&w->fake, w->answers == SYSTEMD_SHARE + 2);
        assert_int_equal(w->fake.stops, 1);
        /* A stop in turn waits behind the starts. */
        assert_int_equal(systemd_stop_in_turn(w->systemd, 1000, "primus-1.slice"), 0);
        fake_settle(&w->fake, 20000);
        assert_int_equal(w->fake.stops, 1);
        fake_job_runs(&w->fake, w->fake.units[0].start_job);
        fake_run_until(&w->fake, w->fake.starts == SYSTEMD_SHARE + 2);
}

/* With the window full of waiting jobs of several users, a stop still goes. */
static void test_stop_passes(void **state) {
        struct world *w = *state;

        for (unsigned i = 0; i < 300; i++)
                start(w, i);
        fake_run_until(&w->fake, w->answers == SYSTEMD_JOBS);
        assert_int_equal(systemd_stop(w->systemd, "primus-1-worker-0.1.service", on_answer, w), 0);
        fake_run_until(&w->fake, w->answers == SYSTEMD_JOBS + 1);
        assert_int_equal(w->fake.stops, 1);
        assert_int_equal(systemd_jobs(w->systemd), SYSTEMD_JOBS);
}

/* On another connection, a job's end may arrive before the answer to who asked for it. */
static void test_end_before_answer(void **state) {
        const char *unit = "primus-1000-worker-400.1.service";
        struct world *w = *state;
        struct fake_unit *u;

        for (unsigned i = 0; i < LANE_JOBS; i++) {
                start_for(w, 1000, i);
                fake_run_until(&w->fake, w->answers == i + 1);
                fake_job_runs(&w->fake, w->fake.units[i].start_job);
        }
        fake_run_until(&w->fake, systemd_jobs(w->systemd) == 0);
        w->fake.hold = true;
        start_for(w, 1000, 400);
        fake_run_until(&w->fake, w->fake.n_held == 1);
        assert_int_equal(w->fake.calls_on[1], 1);
        u = fake_unit_find(&w->fake, unit);
        fake_job_runs(&w->fake, u->start_job);
        fake_job_removed(&w->fake, u->start_job, unit, "failed");
        fake_unit_gone(&w->fake, unit);
        fake_job_removed(&w->fake, 9999, "primus-other.service", "done");
        fake_run_until(&w->fake, w->jobs_removed == 1);
        assert_string_equal(w->last_unit, "primus-other.service");
        assert_int_equal(w->units_removed, 0);
        fake_unit_add(&w->fake, unit, "inactive", "dead")->start_job = LANE_JOBS + 1;
        fake_release(&w->fake);
        fake_run_until(&w->fake, w->units_removed == 1);
        assert_int_equal(w->jobs_removed, 2);
        assert_string_equal(w->last_unit, unit);
        assert_int_equal(w->answers_at_end, LANE_JOBS + 1);
        assert_int_equal(systemd_jobs(w->systemd), 0);
}

/* No other connection is to be had: those that are too many wait, and go when others are over. */
static void test_no_connection(void **state) {
        struct world *w = *state;
        struct fake_unit *u;

        w->no_bus = true;
        for (unsigned i = 0; i < LANE_JOBS + 1; i++) {
                start_for(w, 1000, i);
                fake_settle(&w->fake, 0);
                if (i < LANE_JOBS) {
                        fake_run_until(&w->fake, w->answers == i + 1);
                        fake_job_runs(&w->fake, w->fake.units[i].start_job);
                }
        }
        fake_settle(&w->fake, 20000);
        assert_int_equal(w->answers, LANE_JOBS);
        u = &w->fake.units[5];
        fake_job_removed(&w->fake, u->start_job, u->name, "done");
        fake_run_until(&w->fake, w->answers == LANE_JOBS + 1);
}

/* What is no job passes those that wait for one. */
static void test_kill_passes_starts(void **state) {
        struct world *w = *state;

        for (unsigned i = 0; i < 200; i++)
                start(w, i);
        fake_run_until(&w->fake, w->answers == SYSTEMD_JOBS);
        assert_int_equal(
                systemd_kill(w->systemd, "primus-1-worker-0.1.service", "main", SIGKILL, on_answer, w), 0);
        fake_run_until(&w->fake, w->fake.n_kills == 1);
        assert_string_equal(w->fake.kills[0].whom, "main");
        assert_int_equal(w->fake.kills[0].signal, SIGKILL);
        fake_run_until(&w->fake, w->answers == SYSTEMD_JOBS + 1);
}

/* A refused call counts nowhere. */
static void test_refused(void **state) {
        struct world *w = *state;

        w->fake.refuse = "no";
        for (unsigned i = 0; i < 200; i++)
                start(w, i);
        fake_run_until(&w->fake, w->answers == 200);
        assert_int_equal(w->errors, 200);
        assert_int_equal(systemd_jobs(w->systemd), 0);
}

/* A daemon-reload may swallow the news of jobs: the window opens again. */
static void test_reload(void **state) {
        struct world *w = *state;

        for (unsigned i = 0; i < 200; i++)
                start(w, i);
        fake_run_until(&w->fake, w->answers == SYSTEMD_JOBS);
        fake_reloaded(&w->fake);
        fake_run_until(&w->fake, w->reloads == 1 && w->answers == 200);
}

/* Units of others are none of ours. */
static void test_signals(void **state) {
        struct world *w = *state;

        fake_job_removed(&w->fake, 7, "ssh.service", "done");
        fake_unit_gone(&w->fake, "ssh.service");
        fake_job_removed(&w->fake, 8, "primus-1-worker-0.1.service", "failed");
        fake_unit_gone(&w->fake, "primus-1-worker-0.1.service");
        fake_run_until(&w->fake, w->units_removed > 0);
        assert_int_equal(w->jobs_removed, 1);
        assert_int_equal(w->units_removed, 1);
        assert_string_equal(w->last_unit, "primus-1-worker-0.1.service");
        assert_string_equal(w->last_result, "failed");
}

/* Freed with calls waiting and under way: no handler is called any more. */
static void test_freed(void **state) {
        struct world *w = *state;

        w->fake.hold = true;
        for (unsigned i = 0; i < 200; i++)
                start(w, i);
        fake_run_until(&w->fake, w->fake.n_held == SYSTEMD_WINDOW);
        systemd_free(w->systemd);
        w->systemd = NULL;
        fake_release(&w->fake);
        fake_settle(&w->fake, 20000);
        assert_int_equal(w->answers, 0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_windows, setup, teardown),
                cmocka_unit_test_setup_teardown(test_running_do_not_count, setup, teardown),
                cmocka_unit_test_setup_teardown(test_shares, setup, teardown),
                cmocka_unit_test_setup_teardown(test_stop_passes, setup, teardown),
                cmocka_unit_test_setup_teardown(test_end_before_answer, setup, teardown),
                cmocka_unit_test_setup_teardown(test_no_connection, setup, teardown),
                cmocka_unit_test_setup_teardown(test_kill_passes_starts, setup, teardown),
                cmocka_unit_test_setup_teardown(test_refused, setup, teardown),
                cmocka_unit_test_setup_teardown(test_reload, setup, teardown),
                cmocka_unit_test_setup_teardown(test_signals, setup, teardown),
                cmocka_unit_test_setup_teardown(test_freed, setup, teardown),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
