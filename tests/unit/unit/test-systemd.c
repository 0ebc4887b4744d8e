/* SPDX-License-Identifier: Apache-2.0 */
/* The window onto systemd, against a systemd that answers when it is told to. */
#include "agentd/unit/systemd.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"

#include "fake-systemd.h"
#include "starter-kit.h"
#include "lib/base/file.h"

struct world {
        struct fake_systemd fake;
        struct starter_kit starter;
        char root[64];
        struct systemd *systemd;
        int ready; /* 1: not yet */
        unsigned answers, errors, jobs_removed, units_removed, reloads, max_pending, max_jobs;
        char last_unit[128], last_result[32];
};

static void on_ready(int r, void *userdata) {
        ((struct world *)userdata)->ready = r;
}

static void on_job_removed(const char *unit, const char *job, const char *result, void *userdata) {
        struct world *w = userdata;

        w->jobs_removed++;
        snprintf(w->last_unit, sizeof(w->last_unit), "%s", unit);
        snprintf(w->last_result, sizeof(w->last_result), "%s", result);
}

static void on_unit_removed(const char *unit, void *userdata) {
        ((struct world *)userdata)->units_removed++;
}

static void on_reloaded(void *userdata) {
        ((struct world *)userdata)->reloads++;
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
        starter_kit_new(&w->starter, w->fake.event, w->fake.client, w->root, "n2");
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

static void start(struct world *w, unsigned n) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        char name[64];

        snprintf(name, sizeof(name), "primus-1-worker-%u.1.service", n);
        assert_true(systemd_message(w->systemd, "StartTransientUnit", &m) >= 0);
        assert_true(sd_bus_message_append(m, "ssa(sv)a(sa(sv))", name, "fail", 0, 0) >= 0);
        assert_int_equal(systemd_call_job(w->systemd, m, on_answer, w), 0);
}

/* However many are asked for, so many are in systemd's hands; and they go on as others end. */
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
                cmocka_unit_test_setup_teardown(test_kill_passes_starts, setup, teardown),
                cmocka_unit_test_setup_teardown(test_refused, setup, teardown),
                cmocka_unit_test_setup_teardown(test_reload, setup, teardown),
                cmocka_unit_test_setup_teardown(test_signals, setup, teardown),
                cmocka_unit_test_setup_teardown(test_freed, setup, teardown),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
