/* SPDX-License-Identifier: Apache-2.0 */
/* masterd killed at any commit. A manager without a network is driven by what agents would tell it; after
 * every step, when all is on disk, the store is copied as a crash would leave it and loaded into a second
 * manager. Both must say the same, in so far as anybody can tell. Now and then the second one takes over. */
#include <dirent.h>
#include <inttypes.h>
#include <jansson.h>
#include <setjmp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utlist.h>

#include <cmocka.h>

#include "lib/base/clock.h"
#include "lib/base/file.h"
#include "lib/base/log.h"
#include "masterd/core/manager.h"
#include "masterd/feed/feeding.h"
#include "masterd/fleet/exits.h"
#include "masterd/fleet/hosts.h"
#include "masterd/fleet/liveness.h"
#include "masterd/fleet/maintenance.h"
#include "masterd/fleet/stuck.h"
#include "masterd/job/scope.h"
#include "masterd/life/arrays.h"
#include "masterd/life/attempts.h"
#include "masterd/life/change.h"
#include "masterd/life/depend.h"
#include "masterd/life/history.h"
#include "masterd/life/life-parts.h"
#include "masterd/life/lifecycle.h"
#include "masterd/life/requeue.h"
#include "masterd/life/restart-scopes.h"
#include "masterd/life/suspension.h"
#include "masterd/link/link.h"
#include "masterd/link/orders.h"
#include "masterd/queue/placement.h"
#include "masterd/queue/queueing.h"
#include "masterd/recover/registered.h"
#include "masterd/start.h"
#include "masterd/store/revive.h"
#include "tests/kit/json.h"
#include "tests/kit/masterd-kit.h"

#define NODES 4

static struct link fake_link; /* no connection: orders find nobody, which is how a lost link looks */
static uint64_t seed;
static uint32_t blame_users;

static uint32_t dice(uint32_t n) {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        return (uint32_t)((seed >> 20) % n);
}

static void serve(struct manager *m) {
        m->conf.blame.threshold_milli = 2000; /* so that hosts are out now and then, */
        m->conf.blame.users = blame_users;    /* or kept from the one user that there is */
        kit_serve(m);
}

/* ---- what can be told apart ---- */

/* That an order has left is not stored: it is sent again. */
static const char *shown_state(enum executor_state s) {
        return executor_state_to_string(s == EXECUTOR_STARTING ? EXECUTOR_PLACED : s);
}

static void dump_executor(FILE *f, const struct executor *e) {
        uint32_t failures = 0;

        if (e->job->state == JOB_STOPPING && executor_state_ended(e->state)) {
                /* One that waited to be started again is KILLED in memory, and on disk what its last attempt
                 * was. */
                fprintf(f, "  %s/%u attempt %u is over%s\n", executor_role(e)->name, e->index, e->attempt,
                        e->gone ? " gone" : "");
                return;
        }
        for (uint32_t i = 0; i < e->restart.history.n_failures; i++)
                failures += e->restart.history.n_at[i];
        fprintf(f, "  %s/%u attempt %u %s%s%s", executor_role(e)->name, e->index, e->attempt,
                shown_state(e->state), e->gone ? " gone" : "",
                executor_state_holds(e->state) && e->orders.stopped ? " stop" : "");
        fprintf(f, " restarts %u", e->restart.n); /* a back-off that was over begins again */
        if (e->memory > 0)
                fprintf(f, " memory %" PRIu64, e->memory);
        if (!e->gone && !executor_scope(e)) /* else nobody asks any more */
                fprintf(f, " failures %u consecutive %u", failures, e->restart.history.consecutive);
        if (executor_state_holds(e->state)) {
                fprintf(f, " on %s gpus %" PRIx64 " ports", e->node->name, e->place.gpus);
                for (size_t i = 0; i < e->place.n_ports; i++)
                        fprintf(f, " %u", e->place.ports[i]);
        }
        if (executor_state_ended(e->state) && e->attempt > 0)
                fprintf(f, " status %d: %s", e->end.status, e->reason ? e->reason : "");
        fputc('\n', f);
}

static void dump_scope(FILE *f, const struct scope *s) {
        uint32_t budget = 0, failures = 0;

        for (uint32_t i = 0; i < s->budget.n_failures; i++)
                budget += s->budget.n_at[i];
        for (uint32_t i = 0; i < s->history.n_failures; i++)
                failures += s->history.n_at[i];
        fprintf(f, " scope restarts %u failures %u consecutive %u budget %u leaving %u\n", s->restarts,
                failures, s->history.consecutive, budget, s->n_leaving);
        assert_true(!s->held_back || s->n_leaving > 0 || s->timer);
}

static void dump_exclusions(FILE *f, const struct job *j) {
        if (j->change.n_notes > 0) /* what those did that have left is not read back */
                return;
        for (unsigned i = 1; i <= NODES; i++)
                for (size_t k = 0; k < j->hosts.exclusions.n; k++) {
                        const struct exclusion *x = j->hosts.exclusions.hosts + k;
                        if (x->node[0] == 'n' && x->node[1] == (char)('0' + i))
                                fprintf(f, " failed on %s %u%s\n", x->node, x->n_ranks,
                                        x->until_real > 0 ? " excluded" : "");
                }
}

static int by_name(const void *a, const void *b) {
        const struct executor *x = *(struct executor *const *)a, *y = *(struct executor *const *)b;
        int c = strcmp(x->leaver.role->name, y->leaver.role->name);

        c = c ?: (x->index > y->index) - (x->index < y->index);
        return c ?: (x->attempt > y->attempt) - (x->attempt < y->attempt);
}

/* Who has left the job and holds a place still. */
static void dump_leaving(FILE *f, const struct job *j) {
        struct executor *list[256], *e;
        uint32_t n = 0;

        DL_FOREACH2 (j->leavers.list, e, leaver.next)
                list[n++] = e;
        assert_int_equal(n, j->leavers.n);
        qsort(list, n, sizeof(list[0]), by_name);
        for (uint32_t i = 0; i < n; i++)
                fprintf(f, "  leaving %s/%u attempt %u %s on %s memory %" PRIu64 "\n",
                        list[i]->leaver.role->name, list[i]->index, list[i]->attempt,
                        executor_state_to_string(list[i]->state), list[i]->node->name,
                        list[i]->leaver.role->memory);
}

static void dump_changes(FILE *f, const struct job *j) {
        fprintf(f,
                " requeues %u asked %u requeueing %d leaves %u for %u at %d slot %d waits %d not before %d\n",
                j->requeue.n, j->requeue.asked, j->requeue.begun, j->requeue.why, j->requeue.by,
                j->requeue.leave_real > 0, j->slot.since_real > 0, j->queue.waits_real > 0,
                j->queue.not_before_real > 0);
        fprintf(f, " version %" PRIu64 " attempts beyond %u limits %d: %s\n", j->change.version,
                j->leavers.attempt_base, j->change.limits_real > 0, change_latest(j));
}

static void dump_job(FILE *f, const struct job *j) {
        unsigned avoids = 0;

        char summary[ARRAY_SUMMARY_MAX];

        if (j->array) {
                fprintf(f, "array %u %s: %s:", j->number, job_state_to_string(j->state),
                        array_text(j->array, summary, sizeof(summary)));
                for (uint32_t i = 0; i < j->array->range.n; i++)
                        fprintf(f, " %u=%u", j->array->jobs[i], j->array->states[i]);
                fprintf(f, "%s\n", depend_holds_back(j) ? " held" : "");
                return;
        }
        if (j->element.array > 0)
                fprintf(f, "%u[%u] %s: ", j->element.array, j->element.index, j->element.env[1]);
        if (j->depend.n_after > 0)
                fprintf(f, "after %" PRIx64 "%s: ", j->depend.met, depend_holds_back(j) ? " held" : "");
        fprintf(f, "job %u %s%s%s attempt %u active %u limit %d: %s\n", j->number,
                job_state_to_string(j->state), j->state == JOB_STOPPING ? " as " : "",
                j->state == JOB_STOPPING ? job_event_to_string(j->verdict) : "", j->attempt, job_active(j),
                j->slot.timer != NULL, j->reason ? j->reason : "");
        if (j->held.mode)
                fprintf(f, " held as %u by %u since %" PRIu64 "\n", j->held.mode, j->held.by,
                        j->held.since_real);
        for (size_t i = 0; i < j->hosts.n_avoided; i++)
                avoids |= 1u << (j->hosts.avoided[i][1] - '0');
        fprintf(f, " avoids %x\n", avoids);
        for (size_t i = 0; i < j->spec->n_roles; i++) {
                const struct role *r = j->roles + i;
                uint32_t counted[_EXECUTOR_STATE_MAX] = {};
                for (uint32_t k = 0; k < r->spec->num; k++)
                        counted[r->executors[k]->state]++;
                assert_memory_equal(counted, r->n_state, sizeof(counted));
                if (j->state == JOB_STOPPING) /* decided; nobody counts any more */
                        continue;
                fprintf(f, " role %s succeeded %u failed %u ignored %u restarts %u\n", r->spec->name,
                        r->n_succeeded, r->n_failed, r->n_ignored, r->restarts);
                dump_scope(f, r->scope);
        }
        if (j->state != JOB_STOPPING) {
                dump_scope(f, &j->scope);
                dump_exclusions(f, j);
        }
        dump_changes(f, j);
        dump_leaving(f, j);
        for (uint32_t i = 0; i < j->n_executors; i++) {
                const struct executor *e = j->executors[i];
                assert_int_equal(e->rank, i);
                if (e->state == EXECUTOR_PENDING && !e->restart.timer && !j->queue.known &&
                    !depend_holds_back(j) && scope_may_place(e))
                        fprintf(f, "  nobody will place %s/%u\n", executor_role(e)->name, e->index);
                dump_executor(f, e);
        }
        if (j->data) {
                struct data_totals n;
                data_totals(j->data->data, &n);
                fprintf(f,
                        " files %" PRIu64 " tasks %" PRIu64 " done %" PRIu64 " failed %" PRIu64
                        " acked %" PRIu64 " records %" PRIu64 " listed %d to '%s' finished %d\n",
                        n.files, n.tasks, n.done, n.failed, n.acked, n.records, j->data->sources[0].scanned,
                        j->data->sources[0].cursor ? j->data->sources[0].cursor : "",
                        /* once it is decided how the job ends, nobody asks */
                        j->state != JOB_STOPPING && j->data->finished);
        }
}

static int stuck_order(struct stuck *a, struct stuck *b) {
        int c = (a->id.job > b->id.job) - (a->id.job < b->id.job);

        c = c ?: strcmp(a->id.role, b->id.role);
        c = c ?: (a->id.index > b->id.index) - (a->id.index < b->id.index);
        return c ?: (a->id.attempt > b->id.attempt) - (a->id.attempt < b->id.attempt);
}

static void dump_holds(FILE *f, const struct manager *m, const struct node *node) {
        const struct window *w;
        const struct stuck *s;

        for (int i = 0; i < _HOLD_MAX; i++) {
                const struct node_hold *h = node->holds + i;
                if (h->set)
                        fprintf(f,
                                " %s drain %d '%s' uid %u since %" PRIu64 " deadline %" PRIu64
                                " grace %" PRIu64 " then %s in %s\n",
                                hold_cause_to_string((enum hold_cause)i), h->drain, h->reason, h->uid,
                                h->since_real, h->deadline_real, h->grace_usec, hold_then_to_string(h->then),
                                h->boot);
        }
        for (char **p = node->set_labels; p && *p; p++)
                fprintf(f, " %s\n", *p);
        DL_SORT(((struct node *)node)->stuck, stuck_order); /* of no meaning, and another one on disk */
        DL_FOREACH (node->stuck, s)
                fprintf(f,
                        " stuck job %u %s/%u attempt %u cpu %" PRIu64 " memory %" PRIu64 " gpus %" PRIx64
                        " ports %zu shm %" PRIu64 " cpus %" PRIx64 " amounts %u of %u: %s\n",
                        s->id.job, s->id.role, s->id.index, s->id.attempt, s->cpu_milli, s->memory, s->gpus,
                        s->n_ports, s->shm, s->cpus ? s->cpus->bits[0] : 0, s->n_amounts,
                        s->n_amounts > 0 ? s->amounts[0].n : 0, s->reason);
        DL_FOREACH (maintenance_windows(m), w)
                if (w->node == node)
                        fprintf(f, " window %" PRIu64 " to %" PRIu64 " '%s'\n", w->from_real, w->to_real,
                                w->reason);
}

static void dump_node(FILE *f, const struct manager *m, const struct node *node) {
        const struct executor *e;
        uint64_t cpu, memory;
        uint32_t gpus, n = 0;

        DL_FOREACH2 (node->executors, e, node_next) {
                assert_ptr_equal(e->node, node);
                assert_true(executor_state_holds(e->state));
                n++;
        }
        assert_int_equal(n, node->n_executors);
        placement_free_of(m, node, &cpu, &memory, &gpus);
        dump_holds(f, m, node);
        if (node->blame)
                fprintf(f, "node %s blamed %u times %u strikes %u for users %u\n", node->name,
                        node->blame->state, node->blame->times, node->blame->n_strikes, node->blame->n_shuns);
        fprintf(f, "node %s %s epoch %" PRIu64 " executors %u free %" PRIu64 " %" PRIu64 " %u\n", node->name,
                node_state_to_string(node->state == NODE_READY ? NODE_SUSPECT : node->state), node->epoch, n,
                cpu, memory, gpus);
}

static int job_order(struct job *a, struct job *b) {
        return (a->number > b->number) - (a->number < b->number);
}

static int node_order(struct node *a, struct node *b) {
        return strcmp(a->name, b->name);
}

static char *dump(struct manager *m) {
        struct job *j, *j_next;
        struct node *node, *node_next;
        char *text = NULL;
        size_t size;
        uint32_t active = 0, ended = 0;
        FILE *f = open_memstream(&text, &size);

        HASH_SORT(m->jobs.by_number, job_order);
        HASH_SORT(m->nodes.by_name, node_order);
        HASH_ITER (hh, m->jobs.by_number, j, j_next)
                if (job_state_ended(j->state))
                        ended++;
                else {
                        active += j->element.array == 0;
                        dump_job(f, j);
                }
        HASH_ITER (hh, m->nodes.by_name, node, node_next)
                dump_node(f, m, node);
        fclose(f);
        assert_int_equal(active, m->jobs.n_active);
        assert_int_equal(ended, m->life->n_ended);
        return text;
}

static void fail_after(const char *what, const char *before, const char *after) {
        fprintf(stderr, "---- after '%s', in memory\n%s---- loaded\n%s", what, before, after);
        fail();
}

/* Returns the manager that goes on: the same, or (take_over) the one that was loaded. */
static struct manager *check(struct manager *m, char directory[static 64], bool take_over, const char *what) {
        char copy[64];
        struct manager *loaded;
        struct job *j, *next;
        char *before, *after;

        /* Progress may be lost in a crash for as long as nobody was told that it is known: not so here. */
        HASH_ITER (hh, m->jobs.by_number, j, next)
                if (!job_state_ended(j->state))
                        feeding_changed(m, j);
        kit_until_durable(m);
        before = dump(m);
        kit_copy_store(directory, copy);
        loaded = kit_open(copy);
        after = dump(loaded);
        if (strcmp(before, after) != 0)
                fail_after(what, before, after);
        free(before);
        free(after);
        if (take_over) {
                start_free(m);
                (void)remove_tree(directory);
                memcpy(directory, copy, 64);
                return loaded;
        }
        start_free(loaded);
        (void)remove_tree(copy);
        return m;
}

/* ---- what agents and people do ---- */

static struct node *node_at(struct manager *m, unsigned i) {
        char name[8];
        struct node *node;

        snprintf(name, sizeof(name), "n%u", i + 1);
        assert_int_equal(nodes_add(&m->nodes, name, &node), 0);
        return node;
}

/* What runs there by our books runs there, but for what forgets says. */
static void register_node(struct manager *m, unsigned i, uint64_t boot, unsigned forget_percent) {
        static struct unit_report units[4096];
        struct node *node = node_at(m, i);
        struct gpu_info gpus[] = { { (char *)"GPU-a", (char *)"m", 1, (char *)"" },
                                   { (char *)"GPU-b", (char *)"m", 1, (char *)"" } };
        struct registration g = {
                .boot_id = { .qwords = { boot, i } },
                .inventory = { .controllers = true,
                               .hostname = node->name,
                               .kernel = (char *)"",
                               .os = (char *)"",
                               .cpus = 4,
                               .memory = UINT64_C(1) << 30,
                               .gpus = gpus,
                               .n_gpus = ELEMENTSOF(gpus),
                               .port_first = 30000,
                               .port_last = 30099,
                               .allow_root = true },
                .units = units,
        };
        struct executor *e;

        assert_int_equal(addr_parse("192.0.2.1", 0, &g.inventory.address), 0);
        if (!boot)
                g.boot_id = node->boot_id;
        DL_FOREACH2 (node->executors, e, node_next)
                if (!boot && e->state != EXECUTOR_PLACED && dice(100) >= forget_percent)
                        units[g.n_units++] = (struct unit_report){ .id = executor_id_of(e),
                                                                   .state = UNIT_RUNNING,
                                                                   .invocation = { .qwords = { 1, 2 } },
                                                                   .started_real = now_real() };
        assert_int_equal(recover_registered(m, node, &fake_link, &g), 0);
}

static struct executor *some_executor(struct manager *m, bool (*wanted)(const struct executor *e)) {
        struct executor *found = NULL, *e;
        struct job *j, *next;
        uint32_t n = 0;

        HASH_ITER (hh, m->jobs.by_number, j, next)
                JOB_FOREACH (j, e)
                        if (wanted(e) && dice(++n) == 0)
                                found = e;
        return found;
}

static bool holds(const struct executor *e) {
        return executor_state_holds(e->state);
}

static bool ordered(const struct executor *e) {
        return e->state == EXECUTOR_PLACED || e->state == EXECUTOR_STARTING;
}

static bool backs_off(const struct executor *e) {
        return e->restart.timer;
}

static bool fed(const struct executor *e) {
        return executor_state_holds(e->state) && e->job->data &&
               executor_role(e)->input_policy == INPUT_STREAMING;
}

static struct job *some_job(struct manager *m, bool with_data) {
        struct job *found = NULL, *j, *next;
        uint32_t n = 0;

        HASH_ITER (hh, m->jobs.by_number, j, next)
                if (!job_state_ended(j->state) && (!with_data || j->data) && dice(++n) == 0)
                        found = j;
        return found;
}

static void start_answered(struct manager *m, struct executor *e, const char *error) {
        if (e->state == EXECUTOR_PLACED)
                (void)executor_transition(e, EXECUTOR_EVENT_ORDERED);
        attempts_start_answered(m, e,
                                &(struct start_result){ .error = error,
                                                        .message = "said the agent",
                                                        .invocation = { .qwords = { 1, 2 } },
                                                        .started_real = now_real() });
}

/* skew: how far the host's clock is off. */
static void exited(struct manager *m, struct executor *e, int status, int64_t skew) {
        struct exit_report x = { .id = executor_id_of(e),
                                 .result = "exit-code",
                                 .code = "exited",
                                 .status = status,
                                 .stop_requested = e->orders.stopped,
                                 .started_real = (uint64_t)((int64_t)now_real() + skew),
                                 .ended_real = (uint64_t)((int64_t)now_real() + skew),
                                 .memory_peak = UINT64_MAX,
                                 .cpu_usec = UINT64_MAX };

        if (status == 0)
                memcpy(x.result, "success", 8);
        if (status == 137)
                memcpy(x.result, "oom-kill", 9);
        exit_reported(m, e->node, &x);
}

/* The next files of the source, in the order in which a scan finds them. */
static void listed(struct manager *m, struct job *j) {
        struct source *s = j->data->sources;
        struct executor_id id = {
                .job_uid = j->uid, .job = j->number, .role = SCAN_ROLE, .attempt = s->attempt
        };
        uint64_t known = data_n_files(j->data->data, 0);
        uint32_t n = dice(4) == 0 ? 1500 : 1 + dice(3);
        uint8_t entries[TASKS_WIRE_MAX];
        struct scan_batch batch = { .entries = entries };
        char path[32];

        for (uint32_t i = 0; i < n; i++) {
                snprintf(path, sizeof(path), "/%09" PRIu64, known + i);
                if (scan_entry_write(&(struct scan_entry){ .path = path,
                                                           .size = 100 + (known + i) % 7 * 100,
                                                           .mtime_nsec = 1,
                                                           .inode = known + i,
                                                           .last = 100 + (known + i) % 7 * 100 },
                                     entries, sizeof(entries), &batch.size) < 0)
                        break;
        }
        batch.last = dice(4) == 0;
        if (s->node)
                feeding_scanned(m, s->node, &id, &batch);
}

static void reported(struct manager *m, struct executor *e) {
        struct data *d = e->job->data->data;
        struct executor_id id = executor_id_of(e);
        uint8_t progress[TASKS_WIRE_MAX];
        struct feed_report report = { .progress = progress, .credits = 4 };
        bool all = dice(6) == 0; /* and done */
        uint64_t t = all ? 0 : dice(1200);
        struct task *task = NULL;

        for (uint64_t i = 0; (task = data_next_task(d, t)) || (!all && i < 1 + dice(300)); i++) {
                struct task_progress p = { .task = t + 1, .end = TASK_TO_END, .error = "" };
                if (task && (all || dice(8) > 0))
                        p.task = task->id;
                t = p.task;
                p.read = 50 + dice(50);
                p.acked = dice(50);
                p.records = p.acked / 5;
                p.state = (uint8_t)(all            ? TASK_DONE
                                    : dice(3) == 0 ? TASK_RUNNING
                                    : dice(9) == 0 ? TASK_FAILED
                                    : dice(9) == 0 ? TASK_RETURNED
                                                   : TASK_DONE);
                if (p.state == TASK_FAILED)
                        p.error = "not a record";
                if (task_progress_write(&p, progress, sizeof(progress), &report.size) < 0)
                        break;
        }
        feeding_reported(m, e->node, &id, &report);
}

static const char *const configs[] = {
        JSON({
                "name" : "gang",
                "maxAppAttempts" : 3,
                "signal" : "USR1@1h",
                "role" : [ {
                        "roleName" : "w",
                        "num" : 3,
                        "vcores" : 1,
                        "memoryMb" : 16,
                        "gpuNum" : 1,
                        "command" : "x",
                        "successPercent" : 100,
                        "failover" : {
                                "commonFailoverPolicy" : {
                                        "restartType" : "ON_FAILURE",
                                        "maxFailureTimes" : 2,
                                        "maxFailurePolicy" : "FAIL_ATTEMPT"
                                }
                        }
                } ]
        }),
        JSON({
                "name" : "wait",
                "onPartition" : "wait",
                "timeLimit" : "1h",
                "role" : [ {
                        "roleName" : "w",
                        "num" : 2,
                        "vcores" : 0.5,
                        "memoryMb" : 16,
                        "command" : "x",
                        "successPercent" : 50,
                        "failover" : {
                                "commonFailoverPolicy" : {
                                        "restartType" : "ON_FAILURE",
                                        "maxFailureTimes" : 3,
                                        "maxFailurePolicy" : "NONE"
                                }
                        }
                } ]
        }),
        JSON({
                "name" : "data",
                "signal" : "USR1@1h",
                "role" : [
                        { "roleName" : "ps", "num" : 1, "vcores" : 0.5, "memoryMb" : 16, "command" : "x" }, {
                                "roleName" : "w",
                                "num" : 2,
                                "vcores" : 0.5,
                                "memoryMb" : 16,
                                "command" : "x",
                                "inputPolicy" : "STREAMING"
                        }
                ],
                "inputManager" : {
                        "fileConfig" : {
                                "stopPolicy" : { "taskFailedPercent" : 100 },
                                "inputs" : [ {
                                        "name" : "i",
                                        "spec" : {
                                                "pathPattern" : "/d",
                                                "namePattern" : ".*",
                                                "textInput" : {}
                                        }
                                } ]
                        }
                }
        }),
        JSON({
                "name" : "together",
                "restartScope" : "job",
                "maxAppAttempts" : 2,
                "backoff" : { "initial" : "1h", "max" : "2h" },
                "role" : [
                        {
                                "roleName" : "ps",
                                "num" : 1,
                                "vcores" : 0.5,
                                "memoryMb" : 16,
                                "command" : "x",
                                "restartScope" : "executor"
                        },
                        {
                                "roleName" : "a",
                                "num" : 2,
                                "vcores" : 0.5,
                                "memoryMb" : 16,
                                "command" : "x",
                                "failover" : {
                                        "commonFailoverPolicy" :
                                                { "maxFailureTimes" : 4, "maxFailurePolicy" : "FAIL_ATTEMPT" }
                                }
                        },
                        {
                                "roleName" : "b",
                                "num" : 2,
                                "vcores" : 0.5,
                                "memoryMb" : 16,
                                "command" : "x",
                                "failover" : {
                                        "commonFailoverPolicy" :
                                                { "maxFailureTimes" : 2, "maxFailurePolicy" : "NONE" }
                                }
                        }
                ]
        }),
        JSON({
                "name" : "rules",
                "maxGlobalRoleFailureTimes" : 5,
                "blacklistConfig" : { "enabled" : true, "maxFailedContainerPerNode" : 1 },
                "exitCodes" : [
                        { "codes" : "3", "action" : "restart" }, { "codes" : "4", "action" : "ignore" },
                        { "codes" : "5", "action" : "blame" }, { "codes" : "6", "action" : "success" },
                        { "codes" : "7", "action" : "fail" }
                ],
                "role" : [
                        {
                                "roleName" : "w",
                                "num" : 3,
                                "vcores" : 0.5,
                                "memoryMb" : 16,
                                "command" : "x",
                                "restartScope" : "role",
                                "scheduleStrategy" : { "elasticResource" : { "extendMemSize" : 8 } },
                                "failover" : { "commonFailoverPolicy" : { "maxFailureTimes" : 9 } }
                        },
                        {
                                "roleName" : "v",
                                "num" : 2,
                                "vcores" : 0.5,
                                "memoryMb" : 16,
                                "command" : "x",
                                "scheduleStrategy" : { "elasticResource" : { "extendMemSize" : 8 } },
                                "failover" : { "commonFailoverPolicy" : { "maxFailureTimes" : 9 } }
                        }
                ]
        }),
        JSON({
                "name" : "elastic",
                "maxAppAttempts" : 2,
                "role" : [
                        {
                                "roleName" : "w",
                                "num" : 9,
                                "minNum" : 1,
                                "vcores" : 0.5,
                                "memoryMb" : 16,
                                "command" : "x",
                                "successPercent" : 100,
                                "restartScope" : "role",
                                "failover" : {
                                        "commonFailoverPolicy" : {
                                                "restartType" : "ON_FAILURE",
                                                "maxFailureTimes" : 3,
                                                "maxFailurePolicy" : "FAIL_ATTEMPT"
                                        }
                                }
                        },
                        {
                                "roleName" : "v",
                                "num" : 4,
                                "minNum" : 1,
                                "vcores" : 2,
                                "memoryMb" : 16,
                                "command" : "x"
                        }
                ]
        }),
        JSON({
                "name" : "order",
                "scheduler" : {
                        "schedulePolicy" : {
                                "orderPolicy" :
                                        { "rolePolicy" : [ { "roleName" : "ps" }, { "roleName" : "w" } ] }
                        }
                },
                "role" : [
                        { "roleName" : "ps", "num" : 1, "vcores" : 1, "memoryMb" : 16, "command" : "x" }, {
                                "roleName" : "w",
                                "num" : 2,
                                "vcores" : 1,
                                "memoryMb" : 16,
                                "command" : "x",
                                "successPercent" : 100
                        }
                ]
        }),
};

static struct job *submit(struct manager *m, const char *config) {
        return kit_submit(m, config, NULL);
}

/* Behind one or two others, which may have ended. */
static void submit_after(struct manager *m) {
        static const char *const conditions[] = { "", ":ok", ":fail", ":any" };
        json_t *after = json_array();
        char text[32];
        struct job *j, *next;
        size_t n = 0;

        HASH_ITER (hh, m->jobs.by_number, j, next)
                if (n < 2 && dice(8) == 0) {
                        snprintf(text, sizeof(text), "%u%s", j->number,
                                 conditions[dice(ELEMENTSOF(conditions))]);
                        (void)json_array_append_new(after, json_string(text));
                        n++;
                }
        (void)kit_submit(m, configs[dice(2)], json_pack("{s:o}", "after", after));
}

static void rerun(struct manager *m) {
        struct job *j, *next;

        HASH_ITER (hh, m->jobs.by_number, j, next)
                if (j->array && (j->state == JOB_FAILED || j->state == JOB_KILLED)) {
                        assert_int_equal(arrays_again(m, j, 1000), 0);
                        return;
                }
}

/* Some of these are refused, for one reason or another: that must change nothing either. */
static void change(struct manager *m, struct job *j) {
        static const char *const numbers[] = { "1", "2", "3", "4", "5" };
        static const struct spec_edit others[] = {
                { EDIT_SET, "w.memoryMb", "8" },
                { EDIT_SET, "w.memoryMb", "32" },
                { EDIT_SET, "w.vcores", "0.25" },
                { EDIT_SET, "w.vcores", "2" },
                { EDIT_SET, "timeLimit", "null" },
                { EDIT_SET, "timeLimit", "2h" },
                { EDIT_SET, "w.command", "y" },
                { EDIT_ADD_ROLE, NULL,
                  JSON({ "roleName" : "x", "num" : 2, "vcores" : 0.1, "memoryMb" : 4, "command" : "x" }) },
                { EDIT_REMOVE_ROLE, "x", NULL },
                { EDIT_REMOVE_ROLE, "ps", NULL },
        };
        sd_bus_error error = SD_BUS_ERROR_NULL;
        struct spec_edit edit = { EDIT_SCALE, "w", numbers[dice(ELEMENTSOF(numbers))] };
        uint64_t version;

        if (dice(2))
                edit = others[dice(ELEMENTSOF(others))];
        if (change_job(m, j, 1000, CHANGE_ANY_VERSION, &edit, 1, NULL, &version, &error) < 0)
                assert_non_null(error.message);
        sd_bus_error_free(&error);
}

static bool stopping(const struct executor *e) {
        return e->state == EXECUTOR_STOPPING && e->node->state != NODE_LOST;
}

/* An executor that does not die, or does at last. */
static void hangs(struct manager *m, struct node *node) {
        struct executor *e;

        if (node->stuck && dice(2)) {
                struct exit_report x = { .id = node->stuck->id, .result = "signal", .code = "killed" };
                exit_reported(m, node, &x);
        } else if ((e = some_executor(m, stopping))) {
                struct executor_id id = executor_id_of(e);
                stuck_told(m, e->node, &id, "pid 7 (x) in D state");
        }
}

/* A person, about a host. */
static void held(struct manager *m, struct node *node) {
        static const char *const values[] = { "a", "b", NULL };
        const char *value = values[dice(ELEMENTSOF(values))];
        struct node_hold h = { .drain = dice(3) > 0,
                               .uid = dice(3),
                               .deadline_real = dice(2)   ? 0
                                                : dice(2) ? UINT64_MAX
                                                          : now_real() + dice(2) * 3600 * USEC_PER_SEC,
                               .grace_usec = dice(2) ? UINT64_MAX : USEC_PER_SEC,
                               .then = (enum hold_then)dice(_HOLD_THEN_MAX) };
        char text[256];
        struct window *w;
        struct job *j;

        switch (dice(8)) {
        case 0 ... 1:
                (void)hosts_hold(m, node, HOLD_ADMIN, &h, "somebody said so");
                break;
        case 2:
                (void)hosts_hold_noticed(m, node, (enum hold_cause)dice(_HOLD_MAX), dice(2) ? "x" : "y");
                break;
        case 3:
                if (node_set_label(node, "k", value) > 0) {
                        struct label_record record = { node->name, "k", value };
                        if (value)
                                store_put_label(m->store, &record);
                        else
                                store_delete_label(m->store, &record);
                        manager_touch(m);
                }
                (void)node_merge_labels(node, NULL);
                break;
        case 4:
                (void)maintenance_add(m, node, now_real() + dice(3) * 3600 * USEC_PER_SEC,
                                      now_real() + (2 + dice(3)) * 3600 * USEC_PER_SEC, "window", 0);
                (void)maintenance_run(m, now_real());
                break;
        case 5:
                if ((w = maintenance_windows(m)))
                        (void)maintenance_cancel(m, w->node, w->from_real);
                break;
        default: /* nearly always at last, or nothing would run anywhere */
                for (int i = 0; i < _HOLD_MAX; i++)
                        if (i != HOLD_MAINTENANCE)
                                (void)hosts_release(m, node, (enum hold_cause)i, "it is well");
                if (dice(3) == 0 && (j = some_job(m, false)))
                        (void)hosts_replace(m, j, node, 0, text);
        }
}

static void end_back_off(struct manager *m, struct job *j) {
        struct scope *scopes[] = { &j->scope, j->roles[0].scope };

        for (size_t i = 0; i < ELEMENTSOF(scopes); i++)
                if (scopes[i]->timer && j->state != JOB_STOPPING) {
                        scopes[i]->timer = sd_event_source_disable_unref(scopes[i]->timer);
                        scopes[i]->due_real = 0;
                        restart_scopes_resume(m, j);
                        kit_until_durable(m);
                }
}

/* ---- at random ---- */

static const char *step(struct manager *m) {
        char text[SUSPENSION_TEXT_MAX], said[REQUEUE_TEXT_MAX];
        struct executor *e;
        struct window *w;
        struct job *j;
        static const int statuses[] = { 0, 0, 0, 0, 1, 1, 3, 4, 5, 6, 7, 75, 137, 137 };
        unsigned i = dice(NODES);

        switch (dice(34)) {
        case 31:
                if ((e = some_executor(m, holds)) && !e->leaver.role)
                        exited(m, e, 75, 0);
                return "asks to be requeued";
        case 32:
                if ((j = some_job(m, false)))
                        requeue_preempt(m, j, 1 + dice(3));
                return "preempt";
        case 33:
                if ((j = some_job(m, false)) && requeue_person(m, j, 1000, "", said) >= 0 && dice(2) &&
                    j->requeue.timer)
                        requeue_time(m, j); /* the time is over */
                return "requeue";
        case 24 ... 26:
                if ((j = some_job(m, false)))
                        change(m, j);
                return "change";
        case 20 ... 22:
                if (dice(3) == 0) {
                        hangs(m, node_at(m, i));
                        return "hangs";
                }
                held(m, node_at(m, i));
                return "hold";
        case 23:
                while ((w = maintenance_windows(m)))
                        (void)maintenance_cancel(m, w->node, w->from_real);
                for (i = 0; i < NODES; i++)
                        for (int k = 0; k < _HOLD_MAX; k++)
                                (void)hosts_release(m, node_at(m, i), (enum hold_cause)k, "all is well");
                return "release";
        case 27:
                if (m->jobs.n_active < 12)
                        (void)kit_submit(m, configs[1],
                                         json_pack("{s:s}", "array", dice(2) ? "0-8%3" : "1,5-40:5"));
                return "submit an array";
        case 28 ... 29:
                if (m->jobs.n_active < 12)
                        submit_after(m);
                return "submit with after";
        case 30:
                if (dice(3) == 0)
                        rerun(m);
                return "rerun";
        case 19:
                if ((j = some_job(m, dice(2))) &&
                    suspension_begin(m, j, (enum suspend_mode)dice(_SUSPEND_MODE_MAX), 7, text) < 0)
                        (void)suspension_end(m, j, 0, text);
                return "suspend or resume";
        case 0:
                if (m->jobs.n_active < 12)
                        (void)submit(m, configs[dice(ELEMENTSOF(configs))]);
                return "submit";
        case 1 ... 3:
                if ((e = some_executor(m, ordered)))
                        start_answered(m, e, NULL);
                return "started";
        case 4:
                if ((e = some_executor(m, ordered)))
                        start_answered(m, e, dice(2) ? LINK_ERROR_PORT_TAKEN : LINK_ERROR_START);
                return "not started";
        case 5 ... 7:
                if ((e = some_executor(m, holds)))
                        exited(m, e, statuses[dice(ELEMENTSOF(statuses))],
                               ((int64_t)dice(3) - 1) * 3600 * (int64_t)USEC_PER_SEC);
                return "exit";
        case 8:
                if ((e = some_executor(m, backs_off))) {
                        e->restart.timer = sd_event_source_disable_unref(e->restart.timer);
                        placement_enqueue(m, e->job);
                        kit_until_durable(m);
                }
                if ((j = some_job(m, false)))
                        end_back_off(m, j);
                return "back-off is over";
        case 9:
                if (dice(3) == 0 && (j = some_job(m, false)))
                        lifecycle_stop_job(m, j, JOB_EVENT_KILLED, "killed");
                return "kill";
        case 10:
                liveness_lost(m, node_at(m, i), dice(2));
                return "lost";
        case 11:
                register_node(m, i, dice(3) == 0 ? 1 + dice(1000) : 0, dice(2) ? 0 : 50);
                return "register";
        case 12:
                register_node(m, i, 0, 0);
                return "register with all";
        case 13 ... 14:
                if ((j = some_job(m, true)))
                        listed(m, j);
                return "list";
        default:
                if ((e = some_executor(m, fed)))
                        reported(m, e);
                return "report";
        }
}

/* ---- stores of before ---- */

static int64_t shift; /* of the clock of day */

int __real_clock_gettime(clockid_t clock, struct timespec *ts);
int __wrap_clock_gettime(clockid_t clock, struct timespec *ts);
int __wrap_clock_gettime(clockid_t clock, struct timespec *ts) {
        int r = __real_clock_gettime(clock, ts);

        if (clock == CLOCK_REALTIME) {
                int64_t t = (int64_t)ts->tv_sec * (int64_t)USEC_PER_SEC + ts->tv_nsec / 1000 + shift;
                *ts = (struct timespec){ t / (int64_t)USEC_PER_SEC, t % (int64_t)USEC_PER_SEC * 1000 };
        }
        return r;
}

/* For the version after this one (PRIMUS_TEST_KEEP, a directory): the store, and when and how it is loaded.
 * So those of version 5 in tests/data were made by 0.1.0. */
static void keep(const char *directory, const char *to) {
        struct manager *m;
        char path[256], copy[64], *seen;
        FILE *f;

        kit_copy_store(directory, copy);
        m = kit_open(copy);
        seen = dump(m);
        snprintf(path, sizeof(path), "%s/seen.txt", to);
        f = fopen(path, "w");
        assert_non_null(f);
        fprintf(f, "%" PRIu64 "\n%s", now_real(), seen);
        assert_int_equal(fclose(f), 0);
        free(seen);
        start_free(m);
        snprintf(path, sizeof(path), "%s/primus.db", to);
        assert_int_equal(store_copy_idle(strcat(copy, "/primus.db"), path), 0);
        *strrchr(copy, '/') = 0;
        (void)remove_tree(copy);
}

static char *read_data(const char *name, const char *suffix) {
        char path[256], *text;
        size_t size;

        snprintf(path, sizeof(path), "%s/%s.%s", getenv("PRIMUS_TEST_DATA"), name, suffix);
        assert_int_equal(read_file(path, 1 << 20, &text, &size), 0);
        return text;
}

/* It is loaded as its own version loaded it, and from then on written in today's form. */
static void check_old(const char *name) {
        _cleanup_free_ char *sql = read_data(name, "sql"), *wanted = read_data(name, "txt"), *now = NULL;
        char directory[64] = "/tmp/test-recovery-XXXXXX", path[256], *seen;
        struct manager *m;
        sqlite3 *db;

        assert_non_null(mkdtemp(directory));
        snprintf(path, sizeof(path), "%s/primus.db", directory);
        assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
        assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
        assert_int_equal(sqlite3_close(db), SQLITE_OK);
        shift = (int64_t)strtoull(wanted, &seen, 10) - (int64_t)now_real();
        m = kit_open(directory);
        now = dump(m);
        if (strcmp(now, ++seen) != 0)
                fail_after(name, seen, now);
        snprintf(path, sizeof(path), "%s/primus.db.v5.bak", directory);
        assert_int_equal(access(path, F_OK), 0);
        serve(m);
        for (unsigned i = 0; i < NODES; i++)
                if (node_at(m, i)->state != NODE_LOST)
                        register_node(m, i, 0, 0);
        m = check(m, directory, true, name);
        start_free(m);
        (void)remove_tree(directory);
        shift = 0;
}

static void test_old_stores(void **state) {
        if (!getenv("PRIMUS_TEST_DATA"))
                skip();
        check_old("store-5-stuck");
        check_old("store-5-changes");
}

static void test_random(void **state) {
        /* For a campaign: other runs than those of every day, on a disk that is memory. */
        const char *first = getenv("PRIMUS_TEST_FIRST"), *runs = getenv("PRIMUS_TEST_RUNS");
        const char *tmp = getenv("TMPDIR");
        uint64_t from = first ? strtoull(first, NULL, 10) : 1, n = runs ? strtoull(runs, NULL, 10) : 12;
        char directory[256];

        for (uint64_t run = from; run < from + n; run++) {
                struct manager *m;

                seed = run * UINT64_C(0x9E3779B97F4A7C15);
                blame_users = 1 + run % 2;
                print_message("run %llu\n", (unsigned long long)run);
                snprintf(directory, sizeof(directory), "%.200s/test-recovery-XXXXXX", tmp ? tmp : "/tmp");
                assert_non_null(mkdtemp(directory));
                m = kit_open(directory);
                serve(m);
                for (unsigned i = 0; i < NODES; i++)
                        register_node(m, i, 1, 0);
                for (unsigned k = 0; k < 120; k++) {
                        const char *what = step(m);
                        bool take_over = dice(20) == 0;
                        m = check(m, directory, take_over, what);
                        if (take_over) {
                                serve(m);
                                for (unsigned i = 0; i < NODES; i++)
                                        if (node_at(m, i)->state != NODE_LOST)
                                                register_node(m, i, 0, 0);
                                m = check(m, directory, false, "take over");
                        }
                }
                if (getenv("PRIMUS_TEST_KEEP"))
                        keep(directory, getenv("PRIMUS_TEST_KEEP"));
                start_free(m);
                (void)remove_tree(directory);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_old_stores),
                cmocka_unit_test(test_random),
        };

        setenv("PRIMUS_LOG_LEVEL", "err", 0);
        log_open("test-recovery");
        return cmocka_run_group_tests(tests, NULL, NULL);
}
