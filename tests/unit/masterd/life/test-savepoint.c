/* SPDX-License-Identifier: Apache-2.0 */
/* Savepoints through a real store: made, with and without the end of the job; masterd killed at every step of
 * it; jobs made of them. And jobs that are suspended. A manager without a network, as in test-recovery. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <utlist.h>

#include <cmocka.h>

#include "lib/base/clock.h"
#include "lib/base/file.h"
#include "lib/base/log.h"
#include "masterd/admit/restore.h"
#include "masterd/admit/submit.h"
#include "masterd/core/manager.h"
#include "masterd/feed/feeding.h"
#include "masterd/fleet/exits.h"
#include "masterd/fleet/liveness.h"
#include "masterd/job/suspend.h"
#include "masterd/life/attempts.h"
#include "masterd/life/lifecycle.h"
#include "masterd/life/revive.h"
#include "masterd/life/savepoints.h"
#include "masterd/life/suspension.h"
#include "masterd/link/link.h"
#include "masterd/link/orders.h"
#include "masterd/queue/placement.h"
#include "masterd/recover/registered.h"
#include "masterd/start.h"
#include "tests/kit/json.h"
#include "tests/kit/masterd-kit.h"

#define OWNER 1000u
#define N_FILES 5u

static struct link fake_link; /* no connection: orders find nobody, which is how a lost link looks */

struct fixture {
        char directory[64], copy[64];
        struct manager *m, *killed; /* killed: what a kill -9 of m would leave, loaded again */
        struct node *node;
};

/* A second manager from what is on disk now; the one before it is dropped. */
static struct manager *kill_9(struct fixture *f) {
        start_free(f->killed);
        if (*f->copy)
                (void)remove_tree(f->copy);
        kit_copy_store(f->directory, f->copy);
        f->killed = kit_open(f->copy);
        return f->killed;
}

static void register_node(struct fixture *f) {
        struct gpu_info none = {};
        struct registration g = {
                .boot_id = { .qwords = { 1, 1 } },
                .inventory = { .hostname = (char *)"n1",
                               .kernel = (char *)"",
                               .os = (char *)"",
                               .cpus = 16,
                               .memory = UINT64_C(1) << 30,
                               .gpus = &none,
                               .port_first = 30000,
                               .port_last = 30099 },
        };

        assert_int_equal(nodes_add(&f->m->nodes, "n1", &f->node), 0);
        assert_int_equal(addr_parse("192.0.2.1", 0, &g.inventory.address), 0);
        assert_int_equal(recover_registered(f->m, f->node, &fake_link, &g), 0);
}

static int setup(void **state) {
        struct fixture *f = calloc(1, sizeof(*f));

        if (!f)
                return -1;
        snprintf(f->directory, sizeof(f->directory), "/tmp/test-savepoint-XXXXXX");
        assert_non_null(mkdtemp(f->directory));
        f->m = kit_open(f->directory);
        f->m->serving_boot = now_boot();
        assert_true(liveness_start(f->m) >= 0);
        register_node(f);
        kit_until_durable(f->m);
        *state = f;
        return 0;
}

static int teardown(void **state) {
        struct fixture *f = *state;

        start_free(f->killed);
        start_free(f->m);
        (void)remove_tree(f->directory);
        if (*f->copy)
                (void)remove_tree(f->copy);
        free(f);
        return 0;
}

/* ---- a job with data ---- */

#define CONFIG(pattern, ack) CONFIG_KEPT(pattern, ack, "")
#define CONFIG_KEPT(pattern, ack, kept)                                                                      \
        "{'name':'data','role':[{'roleName':'w','num':1,'vcores':0.5,'memoryMb':16,"                         \
        "'command':'x','inputPolicy':'STREAMING'}],"                                                         \
        "'inputManager':{'fileConfig':{'inputs':[{'name':'train','spec':{'pathPattern':"                     \
        "'" pattern "','textInput':{}}}]}" kept "},'input':{'ack':'" ack "\"}}"
#define HERE CONFIG("/d", "lag")
/* Its progress is kept for the next one. */
#define KEPT_AT(pattern, directory)                                                                          \
        CONFIG_KEPT(pattern, "lag", ",'workPreserve':{'hdfsConfig':{'stagingDir':'" directory "'}}")
#define KEPT KEPT_AT("/d", "/staging/a")
#define LOCKSTEP                                                                                             \
        "{'role':[{'roleName':'w','num':1,'vcores':0.5,'memoryMb':16,'command':'x','inputPolicy':"           \
        "'STREAMING'}],'inputManager':{'fileConfig':{'inputs':[{'spec':{'pathPattern':'/d',"                 \
        "'textInput':{}}}]},'workPreserve':{'hdfsConfig':{'stagingDir':'/staging/a'}}},"                     \
        "'input':{'lockstep':'drop'}}"

static struct job *submit(struct manager *m, const char *config) {
        struct submission s = { .owner = OWNER, .config = json_text(config), .config_size = strlen(config) };
        sd_bus_error error = SD_BUS_ERROR_NULL;
        struct job *j = NULL;

        if (submit_job(m, &s, &j, &error) < 0)
                fail_msg("%s", error.message);
        submission_done(&s);
        return j;
}

static void start(struct fixture *f, struct job *j) {
        for (uint32_t i = 0; i < j->n_executors; i++) {
                struct executor *e = j->executors[i];
                struct executor_id id = executor_id_of(e);
                assert_int_equal(e->state, EXECUTOR_PLACED);
                (void)executor_transition(e, EXECUTOR_EVENT_ORDERED);
                attempts_start_answered(f->m, e,
                                        &(struct start_result){ .invocation = { .qwords = { 1, 2 } },
                                                                .started_real = now_real() });
                feeding_opened(f->m, f->node, &id, &(struct feed_opened){ .credits = 4 });
        }
        kit_until_durable(f->m);
        assert_int_equal(j->state, JOB_RUNNING);
}

static void list(struct fixture *f, struct job *j, bool last) {
        uint8_t entries[4096];
        struct scan_batch batch = { .entries = entries, .last = last, .passed = 0 };
        struct source *s = j->data->sources;
        struct executor_id id = {
                .job_uid = j->uid, .job = j->number, .role = SCAN_ROLE, .attempt = s->attempt
        };

        assert_non_null(s->node);
        for (unsigned i = 0; i < N_FILES; i++) {
                char path[16];
                snprintf(path, sizeof(path), "/d/%u", i);
                assert_int_equal(scan_entry_write(&(struct scan_entry){ .path = path,
                                                                        .size = 100 * (i + 1),
                                                                        .mtime_nsec = 1,
                                                                        .inode = i + 1,
                                                                        .last = 100 * (i + 1) },
                                                  entries, sizeof(entries), &batch.size),
                                 0);
        }
        feeding_scanned(f->m, s->node, &id, &batch);
        kit_until_durable(f->m);
}

/* What the executor says of one task (0: of none); with sync it answers what it was asked. */
static void report_read(struct fixture *f, struct job *j, uint64_t task, uint64_t read, uint64_t acked,
                        enum task_state state, bool sync) {
        uint8_t progress[256];
        struct feed_report r = {
                .progress = progress, .credits = 4, .has_sync = sync, .sync = j->data->sync_number
        };
        struct executor_id id = executor_id_of(j->executors[0]);

        if (task)
                assert_int_equal(
                        task_progress_write(
                                &(struct task_progress){ .task = task,
                                                         .read = read,
                                                         .acked = acked,
                                                         .records = acked / 10,
                                                         .end = TASK_TO_END,
                                                         .state = (uint8_t)state,
                                                         .error = state == TASK_FAILED ? "bad" : "" },
                                progress, sizeof(progress), &r.size),
                        0);
        feeding_reported(f->m, f->node, &id, &r);
}

static void report(struct fixture *f, struct job *j, uint64_t task, uint64_t acked, enum task_state state,
                   bool sync) {
        report_read(f, j, task, acked, acked, state, sync);
}

/* Two tasks done, one begun, one failed for good. */
static struct job *prepare_of(struct fixture *f, const char *config) {
        struct job *j = submit(f->m, config);

        manager_schedule(f->m);
        kit_until_durable(f->m);
        start(f, j);
        list(f, j, true);
        report(f, j, 1, 100, TASK_DONE, false);
        report(f, j, 3, 120, TASK_RUNNING, false);
        report(f, j, 5, 500, TASK_DONE, false);
        report(f, j, 2, 40, TASK_FAILED, false);
        report(f, j, 2, 40, TASK_FAILED, false);
        feeding_changed(f->m, j);
        kit_until_durable(f->m);
        return j;
}

static struct job *prepare(struct fixture *f) {
        return prepare_of(f, HERE);
}

/* The data of a job as text, to be compared. */
static char *stands(const struct job *j) {
        char *text;

        assert_int_equal(data_save(j->data->data, &text), 0);
        return text;
}

static void assert_stands(const struct job *j, const char *want) {
        char *text = stands(j);

        assert_string_equal(text, want);
        free(text);
}

/* ---- a savepoint ---- */

struct made {
        bool done;
        int error;
        char text[SAVEPOINT_TEXT_MAX];
};

static void on_made(void *userdata, int error, const char *text) {
        struct made *made = userdata;

        assert_false(made->done);
        made->done = true;
        made->error = error;
        snprintf(made->text, sizeof(made->text), "%s", text);
}

static void create(struct fixture *f, struct job *j, const char *name, bool kill, struct made *made) {
        char text[SAVEPOINT_TEXT_MAX] = "";

        *made = (struct made){};
        if (savepoint_create(f->m, j, name, kill, OWNER, on_made, made, text) < 0)
                fail_msg("%s", text);
        kit_until_durable(f->m);
        assert_false(made->done); /* the executor has been asked, and has not answered */
}

/* The executor answers as often as it is asked. */
static void wait_made(struct fixture *f, struct job *j, struct made *made) {
        uint64_t answered = j->data->sync_number;

        while (!made->done) {
                if (j->data->sync_number > answered) {
                        answered = j->data->sync_number;
                        report(f, j, 0, 0, TASK_RUNNING, true);
                        continue;
                }
                assert_true(sd_event_run(f->m->event, UINT64_MAX) >= 0);
        }
}

static unsigned n_savepoints(struct manager *m) {
        unsigned n = 0;

        for (struct savepoint *s = savepoint_next(m, NULL); s; s = savepoint_next(m, s))
                n++;
        return n;
}

struct restored {
        bool done;
        struct job *j;
        char error[1024];
};

static void on_restored(void *userdata, struct job *j, const sd_bus_error *error) {
        struct restored *r = userdata;

        assert_false(r->done);
        r->done = true;
        r->j = j;
        if (!j)
                snprintf(r->error, sizeof(r->error), "%s", error->message);
}

/* config NULL: the savepoint's own. */
static struct restored restore(struct manager *m, const char *savepoint, const char *config, uint32_t owner) {
        struct submission s = { .owner = owner,
                                .config = config ? json_text(config) : NULL,
                                .config_size = config ? strlen(config) : 0 };
        sd_bus_error error = SD_BUS_ERROR_NULL;
        struct restored r = {};

        s.savepoint = strdup(savepoint);
        if (restore_job(m, &s, on_restored, &r, &error) < 0) {
                snprintf(r.error, sizeof(r.error), "%s", error.message);
                sd_bus_error_free(&error);
                submission_done(&s);
                return r;
        }
        while (!r.done) {
                struct savepoint *used = savepoint_get(m, savepoint);
                assert_int_equal(savepoint_delete(m, used), -EBUSY); /* somebody reads it */
                assert_true(sd_event_run(m->event, UINT64_MAX) >= 0);
        }
        kit_until_durable(m);
        return r;
}

static void test_round_trip(void **state) {
        struct fixture *f = *state;
        struct job *j = prepare(f), *again;
        struct savepoint *s;
        struct restored r;
        struct made made;
        char *before;

        create(f, j, "", false, &made);
        assert_int_equal(n_savepoints(f->m), 0);
        report(f, j, 3, 130, TASK_RUNNING, true); /* its latest word comes with the answer, and counts */
        before = stands(j);
        wait_made(f, j, &made);
        assert_int_equal(made.error, 0);
        assert_string_equal(made.text, "1-1");
        assert_int_equal(j->state, JOB_RUNNING);
        s = savepoint_get(f->m, "1-1");
        assert_non_null(s);
        assert_true(s->owner == OWNER && s->job == 1 && s->done == 2 && s->partial == 1 && s->failed == 1);
        assert_true(s->acked >= 730);
        assert_int_equal(n_savepoints(f->m), 1);

        /* What happens behind it is not in it. */
        report(f, j, 3, 300, TASK_DONE, false);
        feeding_changed(f->m, j);
        kit_until_durable(f->m);
        r = restore(f->m, "1-1", NULL, OWNER);
        assert_string_equal(r.error, "");
        again = r.j;
        assert_int_equal(again->number, 2);
        assert_string_equal(again->name, "data");
        assert_stands(again, before);
        assert_true(again->data->sources[0].scanned); /* nothing is listed again */

        /* A master that is killed now has all of it. */
        (void)kill_9(f);
        assert_int_equal(n_savepoints(f->killed), 1);
        assert_non_null(manager_job(f->killed, 2));
        assert_stands(manager_job(f->killed, 2), before);
        assert_true(manager_job(f->killed, 2)->data->sources[0].scanned);
        r = restore(f->killed, "1-1", CONFIG("/d", "exit"), OWNER); /* delivered otherwise: the same data */
        assert_string_equal(r.error, "");
        assert_int_equal(r.j->number, 3);
        assert_stands(r.j, before);
        kit_until_durable(f->killed);

        /* Without the savepoint the jobs go on. */
        assert_int_equal(savepoint_delete(f->m, s), 0);
        kit_until_durable(f->m);
        (void)kill_9(f);
        assert_int_equal(n_savepoints(f->killed), 0);
        assert_stands(manager_job(f->killed, 2), before);
        free(before);
}

/* A listing that was under way goes on behind its cursor; what was not begun begins. */
static void test_before_all_is_listed(void **state) {
        struct fixture *f = *state;
        struct job *j = submit(f->m, HERE), *again;
        struct made made;
        struct restored r;
        char *before;

        /* Nothing is known yet: not even an executor is there to be asked. */
        made = (struct made){};
        assert_int_equal(savepoint_create(f->m, j, "nothing", false, OWNER, on_made, &made, (char[512]){}),
                         0);
        wait_made(f, j, &made);
        assert_int_equal(made.error, 0);
        manager_schedule(f->m);
        kit_until_durable(f->m);
        start(f, j);
        list(f, j, false);
        report(f, j, 1, 50, TASK_RUNNING, false);
        create(f, j, "some", false, &made);
        report(f, j, 1, 60, TASK_RUNNING, true);
        before = stands(j);
        wait_made(f, j, &made);
        assert_int_equal(made.error, 0);

        r = restore(f->m, "some", NULL, OWNER);
        assert_string_equal(r.error, "");
        assert_stands(r.j, before);
        assert_false(r.j->data->sources[0].scanned);
        assert_string_equal(r.j->data->sources[0].cursor, "/d/4");
        assert_stands(manager_job(kill_9(f), r.j->number), before);
        assert_string_equal(manager_job(f->killed, r.j->number)->data->sources[0].cursor, "/d/4");
        free(before);

        again = restore(f->m, "nothing", NULL, OWNER).j;
        assert_non_null(again);
        assert_int_equal(data_n_files(again->data->data, 0), 0);
        assert_null(again->data->sources[0].cursor);
        manager_schedule(f->m);
        kit_until_durable(f->m);
        start(f, again);
        list(f, again, true);
        assert_int_equal(data_n_files(again->data->data, 0), N_FILES);
}

static void test_bounded(void **state) {
        struct fixture *f = *state;
        char name[32], text[SAVEPOINT_TEXT_MAX] = "";
        struct manager *m;
        struct job *j;

        (void)submit(f->m, HERE);
        for (uint32_t i = 0; i < SAVEPOINTS_PER_USER_MAX; i++) {
                snprintf(name, sizeof(name), "s%u", i);
                store_put_savepoint(f->m->store, &(struct savepoint_record){
                                                         .name = name, .owner = OWNER, .created_real = i });
        }
        manager_touch(f->m);
        kit_until_durable(f->m);
        m = kill_9(f);
        assert_int_equal(n_savepoints(m), SAVEPOINTS_PER_USER_MAX);
        assert_string_equal(savepoint_next(m, NULL)->name, "s999"); /* newest first */
        j = manager_job(m, 1);
        assert_int_equal(savepoint_create(m, j, "", false, OWNER, on_made, NULL, text), -EDQUOT);
        assert_non_null(strstr(text, "1000"));
        assert_int_equal(savepoint_delete(m, savepoint_get(m, "s0")), 0);
        assert_int_equal(n_savepoints(m), SAVEPOINTS_PER_USER_MAX - 1);
        kit_until_durable(m);
}

static void test_refused(void **state) {
        struct fixture *f = *state;
        struct job *j = prepare(f), *plain;
        char text[SAVEPOINT_TEXT_MAX];
        struct made made;

        create(f, j, "mine", false, &made);
        /* Its name is taken, but it is not there yet. */
        assert_int_equal(savepoint_create(f->m, j, "mine", false, OWNER, on_made, NULL, text), -EEXIST);
        assert_string_equal(restore(f->m, "mine", NULL, OWNER).error,
                            "You have no savepoint 'mine' (primusctl savepoint list)");
        report(f, j, 0, 0, TASK_RUNNING, true);
        wait_made(f, j, &made);
        assert_int_equal(made.error, 0);

        assert_int_equal(savepoint_create(f->m, j, "../x", false, OWNER, on_made, NULL, text), -EINVAL);
        plain = submit(f->m, JSON({
                               "name" : "plain",
                               "role" : [ {
                                       "roleName" : "w",
                                       "num" : 1,
                                       "vcores" : 1,
                                       "memoryMb" : 16,
                                       "command" : "x"
                               } ]
                       }));
        assert_int_equal(savepoint_create(f->m, plain, "", false, OWNER, on_made, NULL, text), -ENODATA);

        assert_string_equal(restore(f->m, "mine", NULL, OWNER + 1).error,
                            "You have no savepoint 'mine' (primusctl savepoint list)");
        assert_non_null(
                strstr(restore(f->m, "mine", CONFIG("/e", "lag"), OWNER).error,
                       "1:1: savepoint 'mine' is of other data: "
                       "inputManager.fileConfig.inputs[0].spec.pathPattern was \"/d\" and is \"/e\""));
        assert_non_null(strstr(restore(f->m, "mine", "{", OWNER).error, "1:"));
        kit_until_durable(f->m);
        assert_int_equal(HASH_COUNT(f->m->jobs.by_number), 2); /* what was refused left nothing behind */
        assert_int_equal(savepoint_get(f->m, "mine")->readers, 0);
        assert_int_equal(f->m->jobs.n_restoring, 0);

        lifecycle_stop_job(f->m, j, JOB_EVENT_KILLED, "killed");
        assert_int_equal(savepoint_create(f->m, j, "", false, OWNER, on_made, NULL, text), -ESRCH);
}

static void test_kill(void **state) {
        struct fixture *f = *state;
        struct job *j = prepare(f), *loaded;
        struct made made;
        char *before;

        create(f, j, "last", true, &made);
        assert_int_equal(j->state, JOB_SUSPENDED); /* held back until it is on disk */
        loaded = manager_job(kill_9(f), 1);
        assert_int_equal(loaded->state, JOB_RUNNING); /* and only as long as there is a master to write it */
        assert_int_equal(n_savepoints(f->killed), 0);
        kit_until_durable(f->killed);

        report(f, j, 3, 150, TASK_RUNNING, true);
        before = stands(j);
        wait_made(f, j, &made);
        assert_int_equal(made.error, 0);
        assert_string_equal(made.text, "last");
        assert_int_equal(j->state, JOB_STOPPING);
        loaded = manager_job(kill_9(f), 1); /* neither the one nor the other alone */
        assert_int_equal(loaded->state, JOB_STOPPING);
        assert_int_equal(loaded->verdict, JOB_EVENT_KILLED);
        assert_string_equal(loaded->reason, "stopped with savepoint last");
        assert_int_equal(n_savepoints(f->killed), 1);
        assert_stands(restore(f->killed, "last", NULL, OWNER).j, before);
        free(before);
}

/* What a trainer had got when the data was held back may be acknowledged before the savepoint is made. */
static void test_kill_drains(void **state) {
        struct fixture *f = *state;
        struct job *j = prepare(f);
        struct made made;
        char *before;

        create(f, j, "", true, &made);
        for (uint64_t acked = 160; acked <= 200; acked += 20) {
                uint64_t asked = j->data->sync_number;
                report_read(f, j, 3, 200, acked, TASK_RUNNING, true);
                while (acked < 200 && j->data->sync_number == asked)
                        assert_true(sd_event_run(f->m->event, UINT64_MAX) >= 0);
                assert_false(made.done);
        }
        before = stands(j);
        wait_made(f, j, &made);
        assert_int_equal(made.error, 0);
        assert_stands(restore(f->m, "1-1", NULL, OWNER).j, before);
        free(before);

        /* One who reads and says nothing holds nobody up for long. */
        j = manager_job(f->m, 2);
        manager_schedule(f->m);
        kit_until_durable(f->m);
        start(f, j);
        report(f, j, 3, 210, TASK_RUNNING, false);
        create(f, j, "", true, &made);
        while (!made.done) {
                uint64_t asked = j->data->sync_number;
                report_read(f, j, 3, 300, 250, TASK_RUNNING, true);
                while (!made.done && j->data->sync_number == asked)
                        assert_true(sd_event_run(f->m->event, UINT64_MAX) >= 0);
        }
        assert_int_equal(made.error, 0);
        assert_string_equal(made.text, "2-1");
        kit_until_durable(f->m);
}

static void test_job_ends_meanwhile(void **state) {
        struct fixture *f = *state;
        struct job *j = prepare(f);
        struct exit_report x = { .result = "success", .code = "exited", .memory_peak = UINT64_MAX };
        struct made made;

        create(f, j, "", true, &made);
        x.id = executor_id_of(j->executors[0]);
        x.started_real = x.ended_real = now_real();
        lifecycle_stop_job(f->m, j, JOB_EVENT_KILLED, "by somebody else");
        exit_reported(f->m, f->node, &x);
        wait_made(f, j, &made);
        /* What was known when its executors were gone, or nothing. */
        assert_true(made.error == 0 || made.error == -ESRCH);
        kit_until_durable(f->m);
        assert_int_equal(n_savepoints(f->m), made.error == 0 ? 1 : 0);
        assert_int_equal(j->state, JOB_KILLED);
}

/* ---- progress that the next job goes on from ---- */

static void end(struct fixture *f, struct job *j) {
        struct exit_report x = { .result = "success", .code = "exited", .memory_peak = UINT64_MAX };

        x.id = executor_id_of(j->executors[0]);
        x.started_real = x.ended_real = now_real();
        lifecycle_stop_job(f->m, j, JOB_EVENT_KILLED, "killed");
        exit_reported(f->m, f->node, &x);
        assert_int_equal(j->state, JOB_KILLED);
}

/* What a submission comes to: 0, a job; SUBMIT_GOES_ON, and what from; negative, and why not. */
static int try_submit(struct manager *m, const char *config, uint32_t owner, char text[static 512]) {
        struct submission s = { .owner = owner, .config = json_text(config), .config_size = strlen(config) };
        sd_bus_error error = SD_BUS_ERROR_NULL;
        struct job *j = NULL;
        int r = submit_make(m, &s, &j, &error);

        snprintf(text, 512, "%s", r < 0 ? error.message : r == SUBMIT_GOES_ON ? s.savepoint : "");
        revive_job_free(j);
        sd_bus_error_free(&error);
        submission_done(&s);
        return r;
}

static void test_kept_progress(void **state) {
        struct fixture *f = *state;
        struct job *j = prepare_of(f, KEPT), *again;
        char name[512], text[512], *before;
        struct savepoint *s;
        struct restored r;
        uint64_t key;

        /* While a job has it, nobody else goes on from it, and none is there yet. */
        assert_int_equal(n_savepoints(f->m), 0);
        assert_true(try_submit(f->m, KEPT, OWNER, text) < 0);
        assert_non_null(strstr(text, "Job 1 keeps its progress under the same "));
        assert_true(try_submit(manager_job(kill_9(f), 1)->manager, KEPT, OWNER, text) < 0);
        assert_int_equal(try_submit(f->m, KEPT_AT("/d", "/staging/b"), OWNER, text), 0);
        assert_int_equal(try_submit(f->m, KEPT, OWNER + 1, text), 0);
        assert_int_equal(savepoint_create(f->m, j, "kept-1000-x", false, OWNER, on_made, NULL, text),
                         -EINVAL);

        /* With its end it is there, in the same transaction: a master killed before has neither. */
        before = stands(j);
        end(f, j);
        again = manager_job(kill_9(f), 1);
        assert_false(job_state_ended(again->state));
        assert_int_equal(n_savepoints(f->killed), 0);
        assert_int_equal(n_savepoints(f->m), 0); /* nobody goes on from what is not on disk */
        assert_true(try_submit(f->m, KEPT, OWNER, text) < 0);
        kit_until_durable(f->m);
        assert_null(manager_job(kill_9(f), 1)); /* it has ended */
        assert_int_equal(n_savepoints(f->killed), 1);
        assert_int_equal(try_submit(f->killed, KEPT, OWNER, name), SUBMIT_GOES_ON);

        assert_int_equal(try_submit(f->m, KEPT, OWNER, text), SUBMIT_GOES_ON);
        assert_string_equal(text, name);
        s = savepoint_get(f->m, name);
        assert_true(s->owner == OWNER && s->job == 1 && s->done == 2 && s->partial == 1 && s->failed == 1);
        assert_int_equal(try_submit(f->m, KEPT, OWNER + 1, text), 0);
        assert_int_equal(try_submit(f->m, KEPT_AT("/d", "/staging/b"), OWNER, text), 0);
        assert_int_equal(try_submit(f->m, HERE, OWNER, text), 0);

        /* Of other data it is not; the refusal leaves nothing taken. */
        r = restore(f->m, name, KEPT_AT("/e", "/staging/a"), OWNER);
        assert_non_null(
                strstr(r.error, "is of other data: inputManager.fileConfig.inputs[0].spec.pathPattern"));

        /* The next one goes on from it, has it alone, and replaces it. */
        key = s->key;
        r = restore(f->m, name, KEPT, OWNER);
        assert_string_equal(r.error, "");
        assert_stands(r.j, before);
        free(before);
        again = r.j;
        r = restore(f->m, name, NULL, OWNER);
        assert_non_null(strstr(r.error, "goes on from savepoint 'kept-1000-"));
        manager_schedule(f->m);
        kit_until_durable(f->m);
        start(f, again);
        report(f, again, 3, 300, TASK_DONE, false);
        feeding_changed(f->m, again);
        end(f, again);
        kit_until_durable(f->m);
        assert_int_equal(n_savepoints(f->m), 1);
        s = savepoint_get(f->m, name);
        assert_true(s->job == again->number && s->done == 3 && s->partial == 0 && s->key > key);
        (void)kill_9(f);
        assert_int_equal(n_savepoints(f->killed), 1);
        assert_string_equal(restore(f->killed, name, KEPT, OWNER).error, "");

        /* Ranks in lockstep have no progress that is masterd's. */
        j = submit(f->m, LOCKSTEP);
        assert_null(j->data);
        assert_null(j->kept);
        lifecycle_stop_job(f->m, j, JOB_EVENT_KILLED, "killed");
        assert_int_equal(j->state, JOB_KILLED);
        kit_until_durable(f->m);
        assert_int_equal(n_savepoints(f->m), 1);
        assert_int_equal(try_submit(f->m, LOCKSTEP, OWNER, text), 0);

        /* Deleted, it begins anew. */
        assert_int_equal(savepoint_delete(f->m, s), 0);
        kit_until_durable(f->m);
        assert_int_equal(try_submit(f->m, KEPT, OWNER, text), 0);
}

static void test_suspend(void **state) {
        struct fixture *f = *state;
        char text[SUSPENSION_TEXT_MAX];
        struct job *j = submit(f->m, HERE), *loaded, *plain;
        struct exit_report x = { .result = "exit-code", .code = "exited", .status = 3 };

        assert_int_equal(suspension_begin(f->m, j, SUSPEND_DATA, OWNER, text), -EAGAIN);
        manager_schedule(f->m);
        kit_until_durable(f->m);
        start(f, j);
        assert_int_equal(suspension_end(f->m, j, OWNER, text), -EALREADY);
        assert_string_equal(text, "Job 1 is RUNNING: it is not suspended");
        assert_int_equal(suspension_begin(f->m, j, SUSPEND_DATA, OWNER, text), 0);
        assert_int_equal(suspension_begin(f->m, j, SUSPEND_DATA, OWNER, text), -EALREADY);
        kit_until_durable(f->m);
        loaded = manager_job(kill_9(f), 1);
        assert_int_equal(loaded->state, JOB_SUSPENDED); /* stays, also without its master */
        kit_until_durable(f->killed);
        assert_int_equal(loaded->state, JOB_SUSPENDED);

        /* What happens to its executors happens as ever. */
        x.id = executor_id_of(j->executors[0]);
        x.started_real = x.ended_real = now_real();
        exit_reported(f->m, f->node, &x);
        kit_until_durable(f->m);
        assert_true(job_state_up(j->state) || j->state == JOB_STOPPING || job_state_ended(j->state));

        j = submit(f->m, HERE);
        manager_schedule(f->m);
        kit_until_durable(f->m);
        start(f, j);
        assert_int_equal(suspension_begin(f->m, j, SUSPEND_DATA, OWNER, text), 0);
        kit_until_durable(f->m);
        assert_int_equal(suspension_end(f->m, j, OWNER, text), 0);
        kit_until_durable(f->m);
        assert_int_equal(j->state, JOB_RUNNING);
        assert_int_equal(manager_job(kill_9(f), j->number)->state, JOB_RUNNING);
        kit_until_durable(f->killed);
        assert_int_equal(suspension_begin(f->m, j, SUSPEND_DATA, OWNER, text), 0);
        lifecycle_stop_job(f->m, j, JOB_EVENT_KILLED, "killed");
        assert_int_equal(j->state, JOB_STOPPING);
        assert_int_equal(suspension_end(f->m, j, OWNER, text), -ESRCH);

        plain = submit(f->m, JSON({
                               "name" : "plain",
                               "role" : [ {
                                       "roleName" : "w",
                                       "num" : 1,
                                       "vcores" : 1,
                                       "memoryMb" : 16,
                                       "command" : "x"
                               } ]
                       }));
        assert_int_equal(suspension_begin(f->m, plain, SUSPEND_DATA, OWNER, text), -ENODATA);
        assert_string_equal(
                text, "Job 3 is not fed with data: there is nothing to suspend; --freeze or --stop hold "
                      "its executors");
}

/* Without data: frozen, and stopped to wait. */
static void test_hold(void **state) {
        struct fixture *f = *state;
        char text[SUSPENSION_TEXT_MAX];
        struct job *j = submit(f->m, JSON({
                                       "name" : "plain",
                                       "role" : [ {
                                               "roleName" : "w",
                                               "num" : 1,
                                               "vcores" : 1,
                                               "memoryMb" : 16,
                                               "command" : "x"
                                       } ]
                               }));
        struct exit_report x = { .result = "signal", .code = "killed", .status = 15, .stop_requested = true };

        manager_schedule(f->m);
        kit_until_durable(f->m);
        start(f, j);
        f->node->inventory.controllers = false;
        assert_int_equal(suspension_begin(f->m, j, SUSPEND_FREEZE, OWNER, text), -EOPNOTSUPP);
        assert_non_null(strstr(text, f->node->name));
        assert_non_null(strstr(text, "--stop"));
        assert_int_equal(j->state, JOB_RUNNING);
        f->node->inventory.controllers = true;
        assert_int_equal(suspension_begin(f->m, j, SUSPEND_FREEZE, OWNER, text), 0);
        assert_true(job_frozen(j));
        kit_until_durable(f->m);
        assert_true(job_frozen(manager_job(kill_9(f), 1)));
        suspension_freeze_refused(f->m, j->executors[0], "it does not support freezing");
        assert_int_equal(j->state, JOB_RUNNING);
        assert_false(job_frozen(j));

        assert_int_equal(suspension_begin(f->m, j, SUSPEND_STOP, OWNER, text), 0);
        assert_int_equal(j->state, JOB_STOPPING);
        assert_int_equal(suspension_begin(f->m, j, SUSPEND_STOP, OWNER, text), -ESRCH);
        kit_until_durable(f->m);
        x.id = executor_id_of(j->executors[0]);
        x.started_real = x.ended_real = now_real();
        exit_reported(f->m, f->node, &x);
        kit_until_durable(f->m);
        assert_int_equal(j->state, JOB_QUEUED);
        assert_int_equal(j->executors[0]->state, EXECUTOR_PENDING);
        assert_non_null(strstr(j->reason, "held by uid"));
        assert_int_equal(suspension_begin(f->m, j, SUSPEND_STOP, OWNER, text), -EALREADY);
        assert_true(job_held_back(manager_job(kill_9(f), 1)));
        kit_until_durable(f->killed);
        assert_int_equal(manager_job(f->killed, 1)->state, JOB_QUEUED); /* and nobody places it */

        assert_int_equal(suspension_end(f->m, j, OWNER, text), 0);
        kit_until_durable(f->m);
        assert_int_equal(j->state, JOB_STARTING);
        assert_int_equal(j->executors[0]->attempt, 2);
        assert_int_equal(suspension_end(f->m, j, OWNER, text), -EALREADY);
        assert_non_null(strstr(text, "not suspended"));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_round_trip, setup, teardown),
                cmocka_unit_test_setup_teardown(test_before_all_is_listed, setup, teardown),
                cmocka_unit_test_setup_teardown(test_bounded, setup, teardown),
                cmocka_unit_test_setup_teardown(test_refused, setup, teardown),
                cmocka_unit_test_setup_teardown(test_kill, setup, teardown),
                cmocka_unit_test_setup_teardown(test_kill_drains, setup, teardown),
                cmocka_unit_test_setup_teardown(test_job_ends_meanwhile, setup, teardown),
                cmocka_unit_test_setup_teardown(test_kept_progress, setup, teardown),
                cmocka_unit_test_setup_teardown(test_suspend, setup, teardown),
                cmocka_unit_test_setup_teardown(test_hold, setup, teardown),
        };

        setenv("PRIMUS_LOG_LEVEL", "err", 0);
        log_open("test-savepoint");
        return cmocka_run_group_tests(tests, NULL, NULL);
}
