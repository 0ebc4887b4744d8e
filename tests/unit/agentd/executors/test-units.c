/* SPDX-License-Identifier: Apache-2.0 */
/* The executors' life, with a systemd that does what each test says and a directory in place of the host's
 * root. */
#include "agentd/executors/units.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "agentd/unit/exits.h"
#include "lib/base/clock.h"
#include "lib/base/file.h"
#include "lib/unit/files.h"
#include "starter/files/private.h"
#include "tests/kit/fake-systemd.h"
#include "tests/kit/starter-kit.h"

#define UNIT "primus-418-worker-0.1.service"

static const sd_id128_t uid = SD_ID128_MAKE(01, 02, 03, 04, 05, 06, 07, 08, 09, 0a, 0b, 0c, 0d, 0e, 0f, 10);
static const struct executor_id id = { .job_uid = SD_ID128_MAKE(01, 02, 03, 04, 05, 06, 07, 08, 09, 0a, 0b,
                                                                0c, 0d, 0e, 0f, 10),
                                       .job = 418,
                                       .role = "worker",
                                       .attempt = 1 };

struct world {
        struct fake_systemd fake;
        struct starter_kit starter;
        struct worker *worker;
        struct units *units;
        char root[64];
        bool ready, idle, unconnected;
        unsigned answers, exits, ended;
        char error[64], message[256];
        struct exit_report exit; /* the last; its texts are not kept */
        char detail[256];
};

static void on_ready(void *userdata) {
        ((struct world *)userdata)->ready = true;
}

static int on_exited(const struct exit_report *report, void *userdata) {
        struct world *w = userdata;

        if (w->unconnected)
                return -ENOTCONN;
        w->exits++;
        w->exit = *report;
        snprintf(w->detail, sizeof(w->detail), "%s", report->detail ?: "");
        return 0;
}

static void on_ended(const struct executor_id *ended, void *userdata) {
        ((struct world *)userdata)->ended++;
}

static const struct inventory inventory;

/* What systemd has said, as found in the journal; the thread's while it looks. */
static struct {
        int found;
        struct unit_verdict verdict;
        char unit[128];
        uint64_t since_real;
} journal;

static int find_verdict(const char *unit, uint64_t since_real, struct unit_verdict *ret) {
        snprintf(journal.unit, sizeof(journal.unit), "%s", unit);
        journal.since_real = since_real;
        *ret = journal.verdict;
        return journal.found;
}

static void begin(struct world *w) {
        static const struct units_ops ops = { .ready = on_ready, .exited = on_exited, .ended = on_ended };
        const struct units_options options = {
                .root = w->root, .node = "n2", .inventory = &inventory, .verdict = find_verdict
        };

        w->ready = false;
        assert_int_equal(
                units_new(w->fake.client, w->starter.client, w->worker, &options, &ops, w, &w->units), 0);
        fake_run_until(&w->fake, w->ready);
}

static int setup(void **state) {
        struct world *w = calloc(1, sizeof(*w));

        assert_non_null(w);
        memset(&journal, 0, sizeof(journal));
        strcpy(w->root, "/tmp/primus-units-XXXXXX");
        assert_non_null(mkdtemp(w->root));
        fake_systemd_new(&w->fake);
        assert_int_equal(worker_new(w->fake.event, &w->worker), 0);
        starter_kit_new(&w->starter, w->fake.event, w->fake.client, NULL, NULL, w->root, "n2");
        begin(w);
        *state = w;
        return 0;
}

static void do_nothing(void *data) {
}

static void on_idle(void *data) {
        ((struct world *)data)->idle = true;
}

static int teardown(void **state) {
        struct world *w = *state;

        assert_int_equal(worker_submit(w->worker, do_nothing, on_idle, w),
                         0); /* behind what is being removed */
        fake_run_until(&w->fake, w->idle);
        worker_free(w->worker);
        units_free(w->units);
        starter_kit_done(&w->starter);
        fake_systemd_done(&w->fake);
        assert_int_equal(remove_tree(w->root), 0);
        free(w);
        return 0;
}

/* ---- steps ---- */

static char **strings(const char *a, const char *b) {
        char **s = calloc(3, sizeof(char *));

        assert_non_null(s);
        s[0] = a ? strdup(a) : NULL;
        s[1] = a && b ? strdup(b) : NULL;
        return s;
}

static void on_answer(const struct start_result *result, void *userdata) {
        struct world *w = userdata;

        w->answers++;
        snprintf(w->error, sizeof(w->error), "%s", result->error ?: "");
        snprintf(w->message, sizeof(w->message), "%s", result->message ?: "");
}

static void order(struct world *w, const char *cwd, enum on_partition on_partition) {
        struct start_order o = { .id = id,
                                 .uid = geteuid(),
                                 .argv = strings("/bin/sleep", "9"),
                                 .env = strings(NULL, NULL),
                                 .identity = strings(NULL, NULL),
                                 .gpus = strings(NULL, NULL),
                                 .visible_gpus = strings(NULL, NULL),
                                 .cwd = strdup(cwd),
                                 .output = strdup(""),
                                 .grace_usec = USEC_PER_SEC,
                                 .on_partition = on_partition };

        units_start(w->units, 7, &o, on_answer, w);
        start_order_done(&o);
}

static struct fake_unit *started(struct world *w) {
        order(w, "", ON_PARTITION_REPLACE);
        fake_run_until(&w->fake, fake_unit_find(&w->fake, UNIT));
        fake_settle(&w->fake, 5000);
        return fake_unit_find(&w->fake, UNIT);
}

static struct fake_unit *running(struct world *w) {
        struct fake_unit *u = started(w);

        u->active = "active";
        u->sub = "running";
        fake_job_removed(&w->fake, u->start_job, UNIT, "done");
        fake_run_until(&w->fake, w->answers == 1);
        assert_string_equal(w->error, "");
        return u;
}

static void write_record(struct world *w, const char *more) {
        _cleanup_free_ char *path = NULL, *text = NULL;

        assert_true(asprintf(&path, "%s" EXITS_DIR "/" UNIT, w->root) > 0);
        assert_true(asprintf(&text,
                             "JOB_UID=" SD_ID128_FORMAT_STR
                             "\nJOB=418\nROLE=worker\nINDEX=0\nATTEMPT=1\nSTARTED=1\nENDED=2\n%s",
                             SD_ID128_FORMAT_VAL(uid), more) > 0);
        assert_int_equal(write_file_atomic(path, text, strlen(text), 0600, false), 0);
}

static bool exists(struct world *w, const char *what) {
        _cleanup_free_ char *path = NULL;
        struct stat st;

        assert_true(asprintf(&path, "%s%s", w->root, what) > 0);
        return lstat(path, &st) >= 0;
}

static void touch(struct world *w, const char *what) {
        _cleanup_free_ char *path = NULL;

        assert_true(asprintf(&path, "%s%s", w->root, what) > 0);
        assert_int_equal(write_file_atomic(path, "", 0, 0644, false), 0);
}

static void make(struct world *w, const char *what) {
        _cleanup_free_ char *path = NULL;

        assert_true(asprintf(&path, "%s%s", w->root, what) > 0);
        assert_int_equal(make_directories(path, 0755), 0);
}

/* ---- tests ---- */

static void test_a_life(void **state) {
        struct world *w = *state;
        struct unit_facts facts;

        make(w, "/run/systemd/units");
        running(w);
        touch(w, "/run/systemd/units/log-extra-fields:" UNIT);
        assert_int_equal(units_find(w->units, UNIT, &facts), 0);
        assert_int_equal(facts.state, EXECUTOR_RUNNING);
        assert_true(exists(w, PRIVATE_DIR "/" UNIT "/env"));
        assert_true(exists(w, WORK_DIR "/418-01020304/tmp"));
        write_record(w, "RESULT=exit-code\nCODE=exited\nSTATUS=3\n");
        fake_settle(&w->fake, 5000);
        fake_unit_gone(&w->fake, UNIT);
        fake_run_until(&w->fake, w->exits == 1);
        assert_string_equal(w->exit.result, "exit-code");
        assert_int_equal(w->exit.status, 3);
        assert_int_equal(w->ended, 1);
        fake_run_until(&w->fake, !exists(w, PRIVATE_DIR "/" UNIT));
        assert_true(exists(w, EXITS_DIR "/" UNIT)); /* until masterd has it */

        order(w, "", ON_PARTITION_REPLACE); /* it ran already */
        assert_string_equal(w->error, LINK_ERROR_ALREADY_RAN);

        units_committed(w->units, &id);
        fake_run_until(&w->fake, !exists(w, EXITS_DIR "/" UNIT));
        fake_run_until(&w->fake, !exists(w, "/run/systemd/units/log-extra-fields:" UNIT));
        assert_int_equal(units_count(w->units), 0);
        units_drop_job(w->units, uid, 418);
        fake_run_until(&w->fake, !exists(w, WORK_DIR "/418-01020304"));
        fake_run_until(&w->fake, strcmp(w->fake.last_stop, "primus-418.slice") == 0);
}

/* The same order twice is one start with two answers; once it runs, it is answered at once. */
static void test_idempotent(void **state) {
        struct world *w = *state;
        struct fake_unit *u = started(w);

        order(w, "", ON_PARTITION_REPLACE);
        assert_int_equal(w->answers, 0);
        fake_job_removed(&w->fake, u->start_job, UNIT, "done");
        fake_run_until(&w->fake, w->answers == 2);
        order(w, "", ON_PARTITION_REPLACE);
        assert_int_equal(w->answers, 3);
        assert_int_equal(w->fake.starts, 1);
}

static void test_refused(void **state) {
        struct world *w = *state;

        w->fake.refuse = "the unit is not to systemd's taste";
        order(w, "", ON_PARTITION_REPLACE);
        fake_run_until(&w->fake, w->answers == 1);
        assert_string_equal(w->error, LINK_ERROR_START);
        assert_string_equal(w->message, "the unit is not to systemd's taste");
        assert_int_equal(units_count(w->units), 0);
        assert_int_equal(w->exits, 0);
        fake_run_until(&w->fake, !exists(w, PRIVATE_DIR "/" UNIT));
}

/* SIGTERM to all; then SIGKILL to the main process; then to whoever is left. Nothing once it is past them. */
static void test_grace(void **state) {
        struct world *w = *state;
        struct fake_unit *u = running(w);

        assert_int_equal(units_stop(w->units, &id, 20 * USEC_PER_MSEC, "test"), 0);
        fake_run_until(&w->fake, w->fake.n_kills == 1);
        assert_true(exists(w, PRIVATE_DIR "/" UNIT "/stop"));
        assert_int_equal(w->fake.kills[0].signal, SIGTERM);
        assert_string_equal(w->fake.kills[0].whom, "all");
        fake_run_until(&w->fake, w->fake.n_kills == 2);
        assert_int_equal(w->fake.kills[1].signal, SIGKILL);
        assert_string_equal(w->fake.kills[1].whom, "main");
        u->active = "deactivating";
        u->sub = "stop-sigterm";
        fake_run_until(&w->fake, w->fake.n_kills == 3);
        assert_int_equal(w->fake.kills[2].signal, SIGKILL);
        assert_string_equal(w->fake.kills[2].whom, "all");
        u->sub = "stop-post";
        fake_settle(&w->fake, 100000);
        assert_int_equal(w->fake.n_kills, 3);
        write_record(w, "RESULT=signal\nCODE=killed\nSTATUS=KILL\nSTOP=order\n");
        fake_settle(&w->fake, 5000);
        fake_unit_gone(&w->fake, UNIT);
        fake_run_until(&w->fake, w->exits == 1);
        assert_true(w->exit.stop_requested);
        assert_int_equal(w->exit.status, SIGKILL);
}

/* What was to be stopped and is gone was stopped, also where primus-exit was hit. */
static void test_killed_without_a_record(void **state) {
        struct world *w = *state;

        running(w);
        assert_int_equal(units_stop(w->units, &id, 0, "test"), 0);
        fake_run_until(&w->fake, w->fake.n_kills == 1);
        assert_string_equal(w->fake.kills[0].whom, "main");
        fake_unit_gone(&w->fake, UNIT);
        fake_run_until(&w->fake, w->exits == 1);
        assert_string_equal(w->exit.result, "signal");
        assert_string_equal(w->exit.code, "killed");
        assert_int_equal(w->exit.status, SIGKILL);
        assert_true(w->exit.stop_requested);
}

static void test_gone_without_a_record(void **state) {
        struct world *w = *state;

        running(w);
        fake_unit_gone(&w->fake, UNIT);
        fake_run_until(&w->fake, w->exits == 1);
        assert_string_equal(w->exit.result, "no-record");
        assert_false(w->exit.stop_requested || w->exit.stop_local);
}

/* primus-exit was killed: systemd's word stands, and is found again until masterd has it. */
static void test_systemds_word(void **state) {
        struct world *w = *state;
        const uint64_t before = now_real();

        running(w);
        journal.found = 1;
        journal.verdict = (struct unit_verdict){
                .result = "oom-kill", .code = "killed", .status = SIGKILL, .ended_real = before + 1
        };
        fake_unit_gone(&w->fake, UNIT);
        fake_run_until(&w->fake, w->exits == 1);
        assert_string_equal(journal.unit, UNIT);
        assert_true(journal.since_real + USEC_PER_SEC > before && journal.since_real <= now_real());
        assert_string_equal(w->exit.result, "oom-kill");
        assert_string_equal(w->exit.code, "killed");
        assert_int_equal(w->exit.status, SIGKILL);
        assert_true(w->exit.ended_real == before + 1);
        assert_true(w->exit.memory_peak == UINT64_MAX && w->exit.cpu_usec == UINT64_MAX);
        assert_true(exists(w, PRIVATE_DIR "/" UNIT));
        units_committed(w->units, &id);
        fake_run_until(&w->fake, !exists(w, PRIVATE_DIR "/" UNIT));
}

static int count_exit(const struct exit_report *x, void *userdata) {
        struct world *w = userdata;

        w->exits++;
        w->exit = *x;
        return 0;
}

/* The same while no agent was there; and it dies once more before masterd has heard of it. */
static void test_left_behind(void **state) {
        struct world *w = *state;

        running(w);
        units_free(w->units);
        fake_unit_gone(&w->fake, UNIT);
        journal.found = 1;
        journal.verdict = (struct unit_verdict){ .result = "exit-code", .code = "exited", .status = 3 };
        for (unsigned i = 0; i < 2; i++) {
                begin(w);
                w->exits = 0;
                assert_int_equal(units_visit_exits(w->units, count_exit, w), 0);
                assert_int_equal(w->exits, 1);
                assert_true(executor_id_equal(&w->exit.id, &id));
                assert_string_equal(w->exit.result, "exit-code");
                assert_int_equal(w->exit.status, 3);
                assert_true(exists(w, PRIVATE_DIR "/" UNIT));
                if (i == 0)
                        units_free(w->units);
        }
        units_committed(w->units, &id);
        fake_run_until(&w->fake, !exists(w, PRIVATE_DIR "/" UNIT));
        assert_int_equal(units_count(w->units), 0);
}

/* Files of a start that systemd was never asked for are no end. */
static void test_left_unbegun(void **state) {
        struct world *w = *state;

        running(w);
        units_free(w->units);
        fake_unit_gone(&w->fake, UNIT);
        begin(w);
        assert_int_equal(units_count(w->units), 0);
        fake_run_until(&w->fake, !exists(w, PRIVATE_DIR "/" UNIT));
}

/* A daemon-reload drops units for a moment. */
static void test_gone_and_back(void **state) {
        struct world *w = *state;
        struct fake_unit before = *running(w);

        fake_unit_gone(&w->fake, UNIT);
        *fake_unit_add(&w->fake, UNIT, before.active, before.sub) = before;
        fake_reloaded(&w->fake);
        fake_settle(&w->fake, 500000);
        assert_int_equal(w->exits, 0);
        assert_int_equal(units_count(w->units), 1);
}

/* Stopped while systemd had not come to start it: by us, and by somebody on the host. */
static void test_called_off(void **state) {
        struct world *w = *state;
        struct fake_unit *u = started(w);

        assert_int_equal(units_stop(w->units, &id, USEC_PER_SEC, "test"), 0);
        fake_run_until(&w->fake, strcmp(w->fake.last_stop, UNIT) == 0);
        assert_int_equal(w->fake.n_kills, 0);
        fake_job_removed(&w->fake, u->start_job, UNIT, "canceled");
        fake_unit_gone(&w->fake, UNIT);
        fake_run_until(&w->fake, w->exits == 1);
        assert_string_equal(w->exit.result, "canceled");
        assert_true(w->exit.stop_requested);
}

static void test_called_off_on_the_host(void **state) {
        struct world *w = *state;
        struct fake_unit *u = started(w);

        fake_job_removed(&w->fake, u->start_job, UNIT, "canceled");
        fake_unit_gone(&w->fake, UNIT);
        fake_run_until(&w->fake, w->exits == 1);
        assert_string_equal(w->exit.result, "canceled");
        assert_true(w->exit.stop_local && !w->exit.stop_requested);
}

/* A stop job that is not ours, over when the record is there. */
static void test_stopped_on_the_host(void **state) {
        struct world *w = *state;

        running(w);
        write_record(w, "RESULT=success\nCODE=exited\nSTATUS=0\n");
        fake_job_removed(&w->fake, 4000, UNIT, "done");
        fake_unit_gone(&w->fake, UNIT);
        fake_run_until(&w->fake, w->exits == 1);
        assert_true(w->exit.stop_local);
}

/* The launcher could not enter it; there is a record all the same, and what it means is said. */
static void test_no_directory(void **state) {
        struct world *w = *state;
        struct fake_unit *u;

        order(w, "/nonexistent/primus", ON_PARTITION_REPLACE);
        fake_run_until(&w->fake, (u = fake_unit_find(&w->fake, UNIT)));
        fake_settle(&w->fake, 5000);
        u->active = "active";
        u->sub = "running";
        fake_job_removed(&w->fake, u->start_job, UNIT, "done");
        write_record(w, "RESULT=exit-code\nCODE=exited\nSTATUS=200\n");
        fake_unit_gone(&w->fake, UNIT);
        fake_run_until(&w->fake, w->exits == 1);
        assert_string_equal(w->exit.result, "exit-code");
        assert_int_equal(w->exit.status, 200);
        assert_non_null(strstr(w->detail, "/nonexistent/primus does not exist on host n2"));
}

/* Counts what a registration says. */
static void registration(struct world *w, unsigned *ret_units, unsigned *ret_exits) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        struct unit_report unit;
        struct exit_report exit;

        assert_true(sd_bus_message_new_method_call(w->fake.client, &m, "org.example", "/", "org.example.I",
                                                   "M") >= 0);
        assert_int_equal(units_append(w->units, m) < 0, 0);
        assert_true(sd_bus_message_seal(m, 1, 0) >= 0);
        *ret_units = *ret_exits = 0;
        assert_true(sd_bus_message_enter_container(m, 'a', LINK_UNIT_SIGNATURE) > 0);
        while (unit_report_read(m, &unit) > 0)
                ++*ret_units;
        assert_true(sd_bus_message_exit_container(m) >= 0);
        assert_true(sd_bus_message_enter_container(m, 'a', LINK_EXIT_SIGNATURE) > 0);
        while (exit_report_read(m, &exit) > 0) {
                ++*ret_exits;
                exit_report_done(&exit);
        }
}

/* An executor that ends after a registration was written and before masterd has taken it is reported. */
static void test_an_end_during_registration(void **state) {
        struct world *w = *state;
        unsigned n_units, n_exits;

        running(w);
        w->unconnected = true;
        registration(w, &n_units, &n_exits);
        assert_int_equal(n_units, 1);
        assert_int_equal(n_exits, 0);
        write_record(w, "RESULT=success\nCODE=exited\nSTATUS=0\n");
        fake_settle(&w->fake, 5000);
        registration(w, &n_units, &n_exits); /* still to be judged: a unit */
        assert_int_equal(n_units, 1);
        assert_int_equal(n_exits, 0);
        fake_unit_gone(&w->fake, UNIT);
        fake_run_until(&w->fake, w->ended == 1);
        assert_int_equal(w->exits, 0);
        w->unconnected = false;
        units_registered(w->units);
        assert_int_equal(w->exits, 1);
        assert_string_equal(w->exit.result, "success");
        units_registered(w->units); /* once is enough */
        assert_int_equal(w->exits, 1);
        registration(w, &n_units, &n_exits);
        assert_int_equal(n_units, 0);
        assert_int_equal(n_exits, 1);
}

static void test_partition(void **state) {
        struct world *w = *state;
        struct fake_unit *u;

        order(w, "", ON_PARTITION_STOP);
        fake_run_until(&w->fake, (u = fake_unit_find(&w->fake, UNIT)));
        fake_settle(&w->fake, 5000);
        u->sub = "running";
        fake_job_removed(&w->fake, u->start_job, UNIT, "done");
        fake_run_until(&w->fake, w->answers == 1);
        assert_int_equal(units_stop_partitioned(w->units), 1);
        fake_run_until(&w->fake, w->fake.n_kills == 1);
        assert_int_equal(w->fake.kills[0].signal, SIGKILL);
}

static const char *const environment[] = { "PRIMUS_JOB=418",
                                           "PRIMUS_JOB_UID=0102030405060708090a0b0c0d0e0f10",
                                           "PRIMUS_ROLE=worker",
                                           "PRIMUS_INDEX=0",
                                           "PRIMUS_ATTEMPT=1",
                                           "PRIMUS_NODE=n2",
                                           "PRIMUS_TERM=7",
                                           "PRIMUS_KIND=trainer",
                                           "PRIMUS_ON_PARTITION=replace",
                                           "PRIMUS_GRACE_USEC=30000000",
                                           "PRIMUS_OWNER=0",
                                           NULL };

/* Everything is found again after a restart: a unit that runs, one that was being stopped, a record. Units
 * that only have the name are not ours; slices without a unit, systemd's leftovers and old work directories
 * go. */
static void test_a_restart(void **state) {
        struct world *w = *state;
        struct unit_facts facts;
        struct fake_unit *u = running(w);

        u->environment = (char **)environment;
        fake_unit_add(&w->fake, "primus-foo.service", "active", "running");
        fake_unit_add(&w->fake, "primus-9-worker-0.1.service", "active", "running")->transient = false;
        fake_unit_add(&w->fake, "primus-77.slice", "active", "active");
        make(w, "/run/systemd/units");
        touch(w, "/run/systemd/units/log-extra-fields:primus-3-worker-0.1.service");
        touch(w, "/run/systemd/units/log-extra-fields:primus-foo.service");
        touch(w, "/run/systemd/units/log-extra-fields:" UNIT);
        touch(w, "/run/systemd/units/invocation:" UNIT);
        make(w, WORK_DIR "/.5-0123abcd.77/tmp");
        make(w, WORK_DIR "/6-0123abcd/tmp");
        assert_int_equal(private_put(w->root, UNIT, "stop", "order", 5), 0);
        units_free(w->units);

        begin(w);
        assert_int_equal(units_count(w->units), 1);
        assert_int_equal(units_find(w->units, UNIT, &facts), 0);
        assert_int_equal(facts.state, EXECUTOR_STOPPING);
        assert_true(executor_id_equal(&facts.id, &id));
        extra_fields_sweep(w->root); /* as the starter does when it begins */
        fake_run_until(&w->fake, strcmp(w->fake.last_stop, "primus-77.slice") == 0);
        assert_false(exists(w, "/run/systemd/units/log-extra-fields:primus-3-worker-0.1.service"));
        assert_true(exists(w, "/run/systemd/units/log-extra-fields:primus-foo.service"));
        assert_true(exists(w, "/run/systemd/units/log-extra-fields:" UNIT));
        fake_run_until(&w->fake, !exists(w, WORK_DIR "/.5-0123abcd.77"));
        assert_true(exists(w, WORK_DIR "/6-0123abcd")); /* not old enough */

        /* It ends while no agent runs. */
        units_free(w->units);
        write_record(w, "RESULT=success\nCODE=exited\nSTATUS=0\n");
        fake_unit_gone(&w->fake, UNIT);
        begin(w);
        assert_int_equal(units_find(w->units, UNIT, &facts), -ENOENT);
        assert_int_equal(units_count(w->units), 1); /* to be committed */
        units_committed(w->units, &id);
        assert_int_equal(units_count(w->units), 0);
        fake_run_until(&w->fake, !exists(w, EXITS_DIR "/" UNIT));
}

/* The stop was marked, and agentd died before systemd had heard of it: its successor sees to it, once. */
static void test_dies_before_the_signal(void **state) {
        struct world *w = *state;
        struct fake_unit *u = running(w);

        u->environment = (char **)environment;
        assert_int_equal(private_put(w->root, UNIT, "stop", "order", 5), 0);
        units_free(w->units);
        begin(w);
        fake_run_until(&w->fake, w->fake.n_kills == 1);
        assert_int_equal(w->fake.kills[0].signal, SIGTERM);
        fake_run_until(&w->fake, exists(w, PRIVATE_DIR "/" UNIT "/stop-told"));
        units_free(w->units);
        begin(w);
        fake_settle(&w->fake, 100000);
        assert_int_equal(w->fake.n_kills, 1);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_a_life, setup, teardown),
                cmocka_unit_test_setup_teardown(test_idempotent, setup, teardown),
                cmocka_unit_test_setup_teardown(test_refused, setup, teardown),
                cmocka_unit_test_setup_teardown(test_grace, setup, teardown),
                cmocka_unit_test_setup_teardown(test_killed_without_a_record, setup, teardown),
                cmocka_unit_test_setup_teardown(test_gone_without_a_record, setup, teardown),
                cmocka_unit_test_setup_teardown(test_systemds_word, setup, teardown),
                cmocka_unit_test_setup_teardown(test_left_behind, setup, teardown),
                cmocka_unit_test_setup_teardown(test_left_unbegun, setup, teardown),
                cmocka_unit_test_setup_teardown(test_gone_and_back, setup, teardown),
                cmocka_unit_test_setup_teardown(test_called_off, setup, teardown),
                cmocka_unit_test_setup_teardown(test_called_off_on_the_host, setup, teardown),
                cmocka_unit_test_setup_teardown(test_stopped_on_the_host, setup, teardown),
                cmocka_unit_test_setup_teardown(test_no_directory, setup, teardown),
                cmocka_unit_test_setup_teardown(test_an_end_during_registration, setup, teardown),
                cmocka_unit_test_setup_teardown(test_partition, setup, teardown),
                cmocka_unit_test_setup_teardown(test_a_restart, setup, teardown),
                cmocka_unit_test_setup_teardown(test_dies_before_the_signal, setup, teardown),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
