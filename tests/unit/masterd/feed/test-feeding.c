/* SPDX-License-Identifier: Apache-2.0 */
/* Data of a job between the store and the agents: a manager whose agents are the other ends of socket pairs,
 * and what it says to them. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utlist.h>

#include <cmocka.h>

#include "lib/base/clock.h"
#include "lib/base/file.h"
#include "lib/base/log.h"
#include "masterd/admit/submit.h"
#include "masterd/core/manager.h"
#include "masterd/feed/feeding.h"
#include "masterd/fleet/exits.h"
#include "masterd/fleet/liveness.h"
#include "masterd/life/attempts.h"
#include "masterd/life/history.h"
#include "masterd/life/lifecycle.h"
#include "masterd/life/suspension.h"
#include "masterd/link/link.h"
#include "masterd/link/orders.h"
#include "masterd/queue/placement.h"
#include "masterd/recover/registered.h"
#include "masterd/start.h"
#include "tests/kit/json.h"
#include "tests/kit/masterd-kit.h"

#define NODES 3
#define SAID_MAX 65536

enum kind {
        SAID_GRANT,
        SAID_LAST,
        SAID_CONTROL,
};

struct said {
        enum kind kind;
        uint32_t index; /* of the executor */
        uint32_t message;
        uint64_t task, offset, end;
        enum feed_control op;
        uint64_t value;
};

static struct said said[SAID_MAX];
static size_t n_said;
static uint32_t n_messages;
static struct link links[NODES];
static sd_bus *masters[NODES], *agents[NODES];
static char directory[64];

/* ---- agents ---- */

sd_bus *__wrap_link_bus(const struct node *node);
sd_bus *__wrap_link_bus(const struct node *node) {
        return node->link && node->link->registered ? masters[node->link - links] : NULL;
}

/* Nothing looks into a peer but these. */
sd_bus *__wrap_peer_bus(struct peer *p);
sd_bus *__wrap_peer_bus(struct peer *p) {
        return masters[(uintptr_t)p - 1];
}

void __wrap_peer_local_address(const struct peer *p, struct addr *ret);
void __wrap_peer_local_address(const struct peer *p, struct addr *ret) {
        *ret = (struct addr){};
}

void __wrap_peer_close(struct peer *p, const char *why);
void __wrap_peer_close(struct peer *p, const char *why) {
}

static void hear(struct said s) {
        assert_true(n_said < SAID_MAX);
        s.message = n_messages;
        said[n_said++] = s;
}

static int on_message(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        struct executor_id id;
        struct grant_batch batch;
        struct feed_order order;
        struct task_grant g;

        if (sd_bus_message_is_method_call(m, LINK_INTERFACE, "Grant") > 0) {
                n_messages++;
                assert_true(executor_id_read(m, &id) > 0);
                assert_true(grant_batch_read(m, &batch) > 0);
                while (task_grant_next(&batch.grants, &batch.size, &g) > 0)
                        hear((struct said){ SAID_GRANT, id.index, 0, g.task, g.offset, g.end, 0, 0 });
                if (batch.last)
                        hear((struct said){ .kind = SAID_LAST, .index = id.index });
        } else if (sd_bus_message_is_method_call(m, LINK_INTERFACE, "FeedControl") > 0) {
                assert_true(executor_id_read(m, &id) > 0);
                assert_true(feed_order_read(m, &order) > 0);
                hear((struct said){ SAID_CONTROL, id.index, 0, order.task, 0, 0, order.op, order.value });
        } else
                return 0;
        return 1;
}

static void connect_agent(struct manager *m, unsigned i) {
        int fds[2];

        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds), 0);
        assert_true(sd_bus_new(&masters[i]) >= 0);
        assert_true(sd_bus_set_fd(masters[i], fds[0], fds[0]) >= 0);
        assert_true(sd_bus_set_server(masters[i], 1, (sd_id128_t){ .qwords = { 1, i } }) >= 0);
        assert_true(sd_bus_set_anonymous(masters[i], true) >= 0);
        assert_true(sd_bus_start(masters[i]) >= 0);
        assert_true(sd_bus_attach_event(masters[i], m->event, 0) >= 0);
        assert_true(sd_bus_new(&agents[i]) >= 0);
        assert_true(sd_bus_set_fd(agents[i], fds[1], fds[1]) >= 0);
        assert_true(sd_bus_set_anonymous(agents[i], true) >= 0);
        assert_true(sd_bus_add_filter(agents[i], NULL, on_message, NULL) >= 0);
        assert_true(sd_bus_start(agents[i]) >= 0);
        assert_true(sd_bus_attach_event(agents[i], m->event, 0) >= 0);
}

/* ---- a manager on a store ---- */

/* Until nobody has anything to say any more. */
static void settle(struct manager *m) {
        for (unsigned quiet = 0; quiet < 5;) {
                uint64_t waiting;
                size_t before = n_said;
                kit_until_durable(m);
                quiet = sd_event_run(m->event, 2000) > 0 || n_said != before ? 0 : quiet + 1;
                for (unsigned i = 0; i < NODES; i++)
                        if (masters[i] && sd_bus_get_n_queued_write(masters[i], &waiting) >= 0 && waiting > 0)
                                quiet = 0;
        }
}

static struct node *node_at(struct manager *m, unsigned i) {
        char name[8];
        struct node *node;

        snprintf(name, sizeof(name), "n%u", i + 1);
        assert_int_equal(nodes_add(&m->nodes, name, &node), 0);
        return node;
}

/* With all units that it has by our books. */
static void register_node(struct manager *m, unsigned i) {
        struct node *node = node_at(m, i);
        struct unit_report units[64];
        struct registration g = { .boot_id = { .qwords = { 7, i } },
                                  .inventory = { .hostname = node->name,
                                                 .kernel = (char *)"",
                                                 .os = (char *)"",
                                                 .cpus = 1,
                                                 .memory = UINT64_C(1) << 30,
                                                 .port_first = 30000,
                                                 .port_last = 30099,
                                                 .allow_root = true },
                                  .units = units };
        struct executor *e;

        assert_int_equal(addr_parse("192.0.2.1", 0, &g.inventory.address), 0);
        DL_FOREACH2 (node->executors, e, node_next)
                units[g.n_units++] = (struct unit_report){ .id = executor_id_of(e),
                                                           .state = UNIT_RUNNING,
                                                           .invocation = { .qwords = { 1, 2 } },
                                                           .started_real = now_real() };
        node->link = links + i;
        assert_int_equal(recover_registered(m, node, links + i, &g), 0);
}

static struct manager *open_manager(void) {
        struct manager *m = kit_open(directory);

        memset(links, 0, sizeof(links));
        for (unsigned i = 0; i < NODES; i++) {
                links[i].peer = (struct peer *)(uintptr_t)(i + 1);
                connect_agent(m, i);
        }
        m->serving_boot = now_boot();
        assert_true(liveness_start(m) >= 0);
        manager_schedule(m);
        settle(m);
        return m;
}

static struct manager *close_manager(struct manager *m) {
        struct node *node, *next;

        HASH_ITER (hh, m->nodes.by_name, node, next)
                node->link = NULL;
        for (unsigned i = 0; i < NODES; i++) {
                masters[i] = sd_bus_close_unref(masters[i]);
                agents[i] = sd_bus_close_unref(agents[i]);
        }
        start_free(m);
        return NULL;
}

static int setup(void **state) {
        struct manager *m;

        n_said = 0;
        snprintf(directory, sizeof(directory), "/tmp/test-feeding-XXXXXX");
        assert_non_null(mkdtemp(directory));
        m = open_manager();
        for (unsigned i = 0; i < NODES; i++)
                register_node(m, i);
        settle(m);
        *state = m;
        return 0;
}

static int teardown(void **state) {
        close_manager(*state);
        (void)remove_tree(directory);
        return 0;
}

/* ---- a job ---- */

static struct job *submit(struct manager *m, unsigned workers, const char *stop_policy, const char *input,
                          const char *more) {
        char config[2048];
        struct submission s = { .owner = 1000 };
        sd_bus_error error = SD_BUS_ERROR_NULL;
        struct job *j = NULL;

        snprintf(config, sizeof(config),
                 "{'name':'data',%s'role':[{'roleName':'w','num':%u,'vcores':0.1,'memoryMb':16,'command':'x',"
                 "'inputPolicy':'STREAMING','scheduleStrategy':{'maxReplicasPerNode':%u},"
                 "'failover':{'commonFailoverPolicy':{'restartType':'ON_FAILURE','maxFailureTimes':9,"
                 "'maxFailurePolicy':'NONE'}}}],'backoff':{'initial':'0s'},"
                 "'inputManager':{'gracefulShutdown':true,'fileConfig':{%s'inputs':[{'name':'i',"
                 "'spec':{'pathPattern':'/d','textInput':{}}}]}}%s%s}",
                 more, workers, (workers + NODES - 1) / NODES, stop_policy, *input ? ",'input':" : "", input);
        s.config = json_text(config);
        s.config_size = strlen(config);
        if (submit_job(m, &s, &j, &error) < 0)
                fail_msg("%s", error.message);
        settle(m);
        for (uint32_t i = 0; i < j->n_executors; i++) {
                struct executor *e = j->executors[i];
                assert_non_null(e->node);
                attempts_start_answered(m, e,
                                        &(struct start_result){ .invocation = { .qwords = { 1, 2 } },
                                                                .started_real = now_real() });
        }
        settle(m);
        assert_int_equal(j->state, JOB_RUNNING);
        n_said = 0;
        return j;
}

static void listed(struct manager *m, struct job *j, uint32_t n, uint64_t size, bool last) {
        struct source *s = j->data->sources;
        struct executor_id id = {
                .job_uid = j->uid, .job = j->number, .role = SCAN_ROLE, .attempt = s->attempt
        };
        uint64_t known = data_n_files(j->data->data, 0);
        uint8_t entries[TASKS_WIRE_MAX];
        struct scan_batch batch = { .entries = entries, .last = last };
        char path[32];

        assert_non_null(s->node);
        for (uint32_t i = 0; i < n; i++) {
                snprintf(path, sizeof(path), "/d/%06" PRIu64, known + i);
                assert_int_equal(scan_entry_write(&(struct scan_entry){ .path = path,
                                                                        .size = size,
                                                                        .mtime_nsec = 1,
                                                                        .inode = 1,
                                                                        .last = size },
                                                  entries, sizeof(entries), &batch.size),
                                 0);
        }
        feeding_scanned(m, s->node, &id, &batch);
        settle(m);
}

static void opened(struct manager *m, struct executor *e, uint32_t credits) {
        struct executor_id id = executor_id_of(e);

        feeding_opened(m, e->node, &id, &(struct feed_opened){ .credits = credits, .sources = 1 });
}

static void report_hunger(struct manager *m, struct executor *e, const struct task_progress *p, size_t n,
                          uint32_t credits, uint64_t hungry, uint64_t unserved) {
        struct executor_id id = executor_id_of(e);
        uint8_t progress[TASKS_WIRE_MAX];
        struct feed_report f = { .progress = progress,
                                 .credits = credits,
                                 .has_hungry = true,
                                 .hungry = hungry,
                                 .unserved = unserved };

        for (size_t i = 0; i < n; i++)
                assert_int_equal(task_progress_write(p + i, progress, sizeof(progress), &f.size), 0);
        feeding_reported(m, e->node, &id, &f);
        settle(m);
}

static void report(struct manager *m, struct executor *e, const struct task_progress *p, size_t n,
                   uint32_t credits, uint64_t sync) {
        struct executor_id id = executor_id_of(e);
        uint8_t progress[TASKS_WIRE_MAX];
        struct feed_report f = { .progress = progress,
                                 .credits = credits,
                                 .counters = { 11, 12, 13, 14 },
                                 .has_sync = sync > 0,
                                 .sync = sync };

        for (size_t i = 0; i < n; i++)
                assert_int_equal(task_progress_write(p + i, progress, sizeof(progress), &f.size), 0);
        feeding_reported(m, e->node, &id, &f);
        settle(m);
}

static struct task_progress at(uint64_t task, uint64_t read, uint64_t acked, enum task_state state) {
        return (struct task_progress){ .task = task,
                                       .read = read,
                                       .acked = acked,
                                       .end = TASK_TO_END,
                                       .state = (uint8_t)state,
                                       .error = state == TASK_FAILED ? "not a record" : "" };
}

static void ended(struct manager *m, struct executor *e, int status) {
        struct exit_report x = { .id = executor_id_of(e),
                                 .code = "exited",
                                 .status = status,
                                 .started_real = now_real(),
                                 .ended_real = now_real(),
                                 .memory_peak = UINT64_MAX,
                                 .cpu_usec = UINT64_MAX };

        snprintf(x.result, sizeof(x.result), "%s", status ? "exit-code" : "success");
        exit_reported(m, e->node, &x);
        settle(m);
}

static void started(struct manager *m, struct executor *e) {
        assert_non_null(e->node);
        attempts_start_answered(m, e, &(struct start_result){ .started_real = now_real() });
        settle(m);
}

/* ---- what was said ---- */

static unsigned count(enum kind kind, uint32_t index) {
        unsigned n = 0;

        for (size_t i = 0; i < n_said; i++)
                n += said[i].kind == kind && (index == UINT32_MAX || said[i].index == index);
        return n;
}

static const struct said *find(enum kind kind, uint32_t index, uint64_t task) {
        for (size_t i = 0; i < n_said; i++)
                if (said[i].kind == kind && said[i].index == index && (task == 0 || said[i].task == task))
                        return said + i;
        return NULL;
}

static unsigned messages_of(uint32_t index) {
        unsigned n = 0;
        uint32_t before = UINT32_MAX;

        for (size_t i = 0; i < n_said; i++)
                if (said[i].kind == SAID_GRANT && said[i].index == index && said[i].message != before) {
                        before = said[i].message;
                        n++;
                }
        return n;
}

static struct data_totals totals(const struct job *j) {
        struct data_totals n;

        assert_int_equal(feeding_totals(j, &n), 0);
        return n;
}

/* ---- granting ---- */

static void test_few_tasks_for_all(void **state) {
        struct manager *m = *state;
        struct job *j = submit(m, 3, "", "", "");

        for (uint32_t i = 0; i < 3; i++)
                opened(m, j->executors[i], 4);
        assert_int_equal(feeding_waiting(j), 3);
        listed(m, j, 6, 100, true);
        for (uint32_t i = 0; i < 3; i++)
                assert_int_equal(count(SAID_GRANT, i), 2);
        assert_int_equal(feeding_waiting(j), 0);
        assert_int_equal(count(SAID_LAST, UINT32_MAX), 0);
}

static void test_not_all_for_the_first(void **state) {
        struct manager *m = *state;
        struct job *j = submit(m, 3, "", "", "");
        struct task_progress p = at(1, 40, 0, TASK_RUNNING);

        listed(m, j, 12, 100, true);
        opened(m, j->executors[0], 2);
        settle(m);
        assert_int_equal(count(SAID_GRANT, 0), 2);
        report(m, j->executors[0], &p, 1, 64, 0); /* they are small: it would take all */
        assert_int_equal(count(SAID_GRANT, 0), 2);
        p = at(1, 100, 0, TASK_RUNNING);
        report(m, j->executors[0], &p, 1, 64, 0);
        assert_int_equal(count(SAID_GRANT, 0), 3);
        opened(m, j->executors[1], 2);
        opened(m, j->executors[2], 2);
        settle(m);
        assert_int_equal(count(SAID_GRANT, 1), 2);
        assert_int_equal(count(SAID_GRANT, 2), 2);
        assert_int_equal(feeding_waiting(j), 0);
}

/* The first report comes before the trainer's workers: two tasks then seem to be all that it needs. Both are
 * with one worker, which waits for the other one's batch. */
static void test_one_who_waits_is_served(void **state) {
        struct manager *m = *state;
        struct job *j = submit(m, 2, "", "", "");
        struct executor *e = j->executors[0];

        listed(m, j, 8, 100, true);
        opened(m, e, 2);
        settle(m);
        assert_int_equal(count(SAID_GRANT, 0), 2);
        report_hunger(m, e, NULL, 0, 2, 1, 0);
        assert_int_equal(count(SAID_GRANT, 0), 2); /* others are about to come */
        report_hunger(m, e, NULL, 0, 2, 1, 1);
        assert_int_equal(count(SAID_GRANT, 0), 3);
        report_hunger(m, e, NULL, 0, 3, 3, 3); /* however much is there */
        assert_int_equal(count(SAID_GRANT, 0), 6);
        opened(m, j->executors[1], 2);
        report_hunger(m, j->executors[1], NULL, 0, 2, 2, 2); /* first come, first served */
        assert_int_equal(count(SAID_GRANT, 1), 2);
}

/* One of the release before cannot say it, and gets what it asks for, only later. */
static void test_one_who_asks_gets_it_later(void **state) {
        struct manager *m = *state;
        struct job *j = submit(m, 1, "", "", "");
        struct executor *e = j->executors[0];

        listed(m, j, 5, 100, true);
        opened(m, e, 2);
        settle(m);
        report(m, e, NULL, 0, 2, 0);
        assert_int_equal(count(SAID_GRANT, 0), 2);
        for (unsigned n = 3; n <= 4; n++) {
                uint64_t until = now_boot() + 10 * USEC_PER_SEC;

                while (count(SAID_GRANT, 0) < n && now_boot() < until)
                        assert_true(sd_event_run(m->event, USEC_PER_SEC) >= 0);
                assert_int_equal(count(SAID_GRANT, 0), n);
        }
}

static void test_many_tasks_in_few_messages(void **state) {
        struct manager *m = *state;
        struct job *j = submit(m, 2, "", "", "");

        listed(m, j, 700, 100, false);
        listed(m, j, 700, 100, true);
        opened(m, j->executors[0], 200);
        settle(m);
        assert_int_equal(count(SAID_GRANT, 0), 200);
        assert_int_equal(messages_of(0), 1);
        for (uint64_t t = 1; t <= 200; t++)
                assert_non_null(find(SAID_GRANT, 0, t));
        opened(m, j->executors[1], 1000000); /* no more than CREDITS_MAX */
        settle(m);
        assert_int_equal(count(SAID_GRANT, 1), 256);
        assert_int_equal(totals(j).leased, 456);
        assert_int_equal(j->executors[1]->feed.n_leases, 256);
        assert_int_equal(j->data->n_unread, 456);
}

static void test_blocks_follow(void **state) {
        struct manager *m = *state;
        struct job *j = submit(m, 1, "", "", "");
        struct executor *e = j->executors[0];
        uint64_t done = 0;

        for (unsigned i = 0; i < 5; i++)
                listed(m, j, 700, 100, i == 4);
        opened(m, e, 100);
        settle(m);
        for (unsigned round = 0; round < 100 && !j->data->finished; round++) {
                struct task_progress p[100];
                size_t n = 0;
                for (struct task *t = e->feed.leases; t && n < 100; t = t->lease_next)
                        p[n++] = at(t->id, 100, 100, TASK_DONE);
                done += n;
                report(m, e, p, n, 100, 0);
        }
        assert_true(j->data->finished);
        assert_int_equal(done, 3500);
        assert_int_equal(count(SAID_GRANT, 0), 3500);
        assert_int_equal(totals(j).done, 3500);
        assert_int_equal(totals(j).acked, 350000);
        assert_int_equal(count(SAID_LAST, 0), 1);
        assert_int_equal(e->feed.data_wait_usec, 11);
        assert_int_equal(e->feed.trainer_wait_usec, 12);
}

static void test_end_of_file(void **state) {
        struct manager *m = *state;
        struct job *j = submit(m, 2, "", "", "");
        struct task_progress p = at(1, 99, 0, TASK_RUNNING);

        listed(m, j, 1, 100, true);
        opened(m, j->executors[0], 2);
        opened(m, j->executors[1], 2);
        settle(m);
        assert_int_equal(count(SAID_LAST, UINT32_MAX), 0);
        report(m, j->executors[0], &p, 1, 1, 0);
        assert_int_equal(count(SAID_LAST, UINT32_MAX), 0); /* it may come back */
        p = at(1, 100, 0, TASK_RUNNING);
        report(m, j->executors[0], &p, 1, 1, 0);
        assert_int_equal(count(SAID_LAST, 0), 1);
        assert_int_equal(count(SAID_LAST, 1), 1);
        /* One that connects anew is told again; it has the task, as it has told of it. */
        n_said = 0;
        opened(m, j->executors[0], 1);
        settle(m);
        assert_int_equal(count(SAID_GRANT, 0), 0);
        assert_int_equal(count(SAID_LAST, 0), 1);
}

/* One that waits is told, so that a trainer which waits for it can go on; the holder may still get what comes
 * back. */
static void test_standstill(void **state) {
        struct manager *m = *state;
        struct job *j = submit(m, 2, "", "", "");
        struct task_progress p = at(1, 50, 0, TASK_RUNNING);

        listed(m, j, 1, 100, true);
        opened(m, j->executors[0], 1);
        settle(m);
        assert_int_equal(count(SAID_GRANT, 0), 1);
        report(m, j->executors[0], &p, 1, 0, 0);
        opened(m, j->executors[1], 1);
        settle(m);
        j->data->still_since -= 29 * USEC_PER_SEC;
        feeding_run(m, j);
        settle(m);
        assert_int_equal(count(SAID_LAST, UINT32_MAX), 0);
        p.read = 60; /* it reads: all begins anew */
        report(m, j->executors[0], &p, 1, 0, 0);
        j->data->still_since -= 29 * USEC_PER_SEC;
        feeding_run(m, j);
        settle(m);
        assert_int_equal(count(SAID_LAST, UINT32_MAX), 0);
        j->data->still_since -= 2 * USEC_PER_SEC;
        feeding_run(m, j);
        settle(m);
        assert_int_equal(count(SAID_LAST, 0), 0);
        assert_int_equal(count(SAID_LAST, 1), 1);
        p.read = p.acked = 100;
        p.state = TASK_DONE;
        report(m, j->executors[0], &p, 1, 1, 0);
        assert_int_equal(count(SAID_LAST, 0), 1);
}

/* The end of the data of a DataLoader with two workers: it waits for the batch of the one that has nothing,
 * and the other one has the rest. */
static void test_standstill_within_one(void **state) {
        struct manager *m = *state;
        struct job *j = submit(m, 2, "", "", "");
        struct executor *e = j->executors[0];

        listed(m, j, 1, 100, true);
        opened(m, e, 2);
        settle(m);
        opened(m, j->executors[1], 2);
        report_hunger(m, e, NULL, 0, 2, 1, 1);
        report_hunger(m, j->executors[1], NULL, 0, 2, 1, 1);
        j->data->still_since -= USEC_PER_SEC;
        feeding_run(m, j);
        settle(m);
        assert_int_equal(count(SAID_LAST, UINT32_MAX), 0);
        j->data->still_since -= USEC_PER_SEC;
        feeding_run(m, j);
        settle(m);
        assert_int_equal(count(SAID_LAST, 0), 1);
        assert_int_equal(count(SAID_LAST, 1), 0); /* it may still get what comes back */
}

/* Nothing is heard of what a host reads that cannot be reached; what it had may be anybody's soon. */
static void test_standstill_without_a_link(void **state) {
        struct manager *m = *state;
        struct job *j = submit(m, 3, "", "", "'onPartition':'wait',");
        struct task_progress p = at(1, 10, 10, TASK_RUNNING);
        uint32_t idle;

        listed(m, j, 1, 100, true);
        opened(m, j->executors[0], 1);
        settle(m);
        report(m, j->executors[0], &p, 1, 0, 0);
        idle = j->executors[1]->node == j->executors[0]->node ? 2 : 1;
        assert_ptr_not_equal(j->executors[idle]->node, j->executors[0]->node);
        opened(m, j->executors[idle], 1);
        settle(m);
        j->executors[0]->node->state = NODE_SUSPECT;
        j->data->still_since -= 31 * USEC_PER_SEC;
        feeding_run(m, j);
        settle(m);
        assert_int_equal(count(SAID_LAST, idle), 0);
        j->executors[0]->node->state = NODE_READY;
        j->data->still_since -= 31 * USEC_PER_SEC;
        feeding_run(m, j);
        settle(m);
        assert_int_equal(count(SAID_LAST, idle), 1);
}

static void test_gone(void **state) {
        struct manager *m = *state;
        struct job *j = submit(m, 2, "", "", "");
        struct task_progress p = at(1, 80, 40, TASK_RUNNING);

        listed(m, j, 2, 100, true);
        opened(m, j->executors[0], 2);
        settle(m);
        assert_int_equal(count(SAID_GRANT, 0), 2);
        opened(m, j->executors[1], 2);
        report(m, j->executors[0], &p, 1, 0, 0);
        assert_int_equal(count(SAID_GRANT, 1), 0);
        ended(m, j->executors[0], 3);
        assert_int_equal(count(SAID_GRANT, 1), 2); /* in their order, from where they were */
        assert_int_equal(said[2].task, 1);
        assert_int_equal(said[2].offset, 40);
        assert_int_equal(said[3].task, 2);
        assert_int_equal(j->executors[0]->feed.n_leases, 0);
        assert_int_equal(j->data->n_unread, 2);
}

static void test_checkpoint(void **state) {
        struct manager *m = *state;
        struct job *j = submit(m, 2, "", JSON({ "mode" : "ring", "ack" : "checkpoint" }), "");
        struct task_progress p = at(1, 80, 40, TASK_RUNNING);

        listed(m, j, 1, 100, true);
        opened(m, j->executors[0], 2);
        settle(m);
        opened(m, j->executors[1], 2);
        report(m, j->executors[0], &p, 1, 1, 0);
        ended(m, j->executors[0], 3);
        assert_int_equal(count(SAID_GRANT, 1), 0);
        assert_int_equal(j->executors[0]->attempt, 2);
        n_said = 0;
        started(m, j->executors[0]);
        opened(m, j->executors[0], 2);
        settle(m);
        assert_non_null(find(SAID_GRANT, 0, 1));
        assert_int_equal(find(SAID_GRANT, 0, 1)->offset, 40);
        /* It ends well without having done it: it is not coming back. */
        ended(m, j->executors[0], 0);
        assert_non_null(find(SAID_GRANT, 1, 1));
        assert_int_equal(find(SAID_GRANT, 1, 1)->offset, 40);
}

/* ---- a new master ---- */

static struct job *only_job(struct manager *m) {
        assert_int_equal(HASH_COUNT(m->jobs.by_number), 1);
        return m->jobs.by_number;
}

static void test_restart(void **state) {
        struct manager *m = *state;
        struct job *j = submit(m, 3, "", "", "");
        struct task_progress p = at(2, 100, 100, TASK_DONE);

        listed(m, j, 700, 100, false);
        for (uint32_t i = 0; i < 3; i++) {
                opened(m, j->executors[i], 2);
                settle(m);
        }
        report(m, j->executors[0], &p, 1, 0, 0);
        usleep(150000); /* progress is on disk a little later */
        settle(m);
        close_manager(m);
        n_said = 0;
        *state = m = open_manager();
        j = only_job(m);
        assert_int_equal(totals(j).done, 1);
        assert_int_equal(totals(j).acked, 100);
        assert_int_equal(totals(j).files, 700);
        assert_string_equal(j->data->sources[0].cursor, "/d/000699");
        for (unsigned i = 0; i < NODES; i++)
                register_node(m, i);
        settle(m);
        /* Nothing is granted before all have said what they hold. */
        p = at(1, 30, 20, TASK_RUNNING);
        report(m, j->executors[0], &p, 1, 0, 0);
        opened(m, j->executors[0], 9);
        settle(m);
        assert_int_equal(n_said, 1); /* that it may go on */
        assert_int_equal(find(SAID_CONTROL, 0, 0)->op, FEED_CONTROL_RESUME);
        assert_int_equal(j->executors[0]->feed.n_leases, 1);
        opened(m, j->executors[1], 9); /* its tasks have been lost with the link */
        settle(m);
        assert_int_equal(count(SAID_GRANT, UINT32_MAX), 0);
        opened(m, j->executors[2], 9);
        settle(m);
        assert_int_equal(count(SAID_GRANT, UINT32_MAX), 27);
        for (uint32_t i = 0; i < 3; i++) {
                assert_null(find(SAID_GRANT, i, 1)); /* held */
                assert_null(find(SAID_GRANT, i, 2)); /* done */
        }
}

/* What was said last may have been lost with the link: a failure, a task that was given back. */
static void test_link_lost(void **state) {
        struct manager *m = *state;
        struct job *j = submit(m, 1, "", "", "");
        struct task_progress p[2] = { at(1, 50, 20, TASK_RUNNING), at(2, 50, 20, TASK_RUNNING) };
        struct executor *e = j->executors[0];

        listed(m, j, 2, 100, true);
        opened(m, e, 2);
        settle(m);
        report(m, e, p, 2, 0, 0);
        n_said = 0;
        e->node->epoch++;
        register_node(m, (unsigned)(e->node->name[1] - '1'));
        /* It still has the second one. */
        report(m, e, p + 1, 1, 0, 0);
        opened(m, e, 0);
        settle(m);
        assert_int_equal(count(SAID_GRANT, 0), 1);
        assert_int_equal(find(SAID_GRANT, 0, 1)->offset, 20);
}

static void test_restart_with_a_lost_host(void **state) {
        struct manager *m = *state;
        struct job *j = submit(m, 3, "", "", "'onPartition':'wait',");
        struct task_progress p;
        struct executor *away;

        for (unsigned i = 0; i < 3; i++)
                listed(m, j, 700, 100, i == 2);
        for (uint32_t i = 0; i < 3; i++) {
                opened(m, j->executors[i], 2);
                settle(m);
        }
        close_manager(m);
        n_said = 0;
        *state = m = open_manager();
        j = only_job(m);
        away = j->executors[2];
        for (unsigned i = 0; i < NODES; i++)
                if (node_at(m, i) != away->node)
                        register_node(m, i);
        opened(m, j->executors[0], 5);
        opened(m, j->executors[1], 5);
        settle(m);
        assert_int_equal(count(SAID_GRANT, UINT32_MAX), 0);
        /* It may hold any of those that were made by then; the others need not wait. */
        liveness_lost(m, away->node, false);
        opened(m, j->executors[0], 5);
        settle(m);
        assert_int_equal(count(SAID_GRANT, UINT32_MAX), 10);
        for (size_t i = 0; i < n_said; i++)
                if (said[i].kind == SAID_GRANT)
                        assert_true(said[i].task > BLOCK_TASKS);
        assert_int_equal(data_task(j->data->data, 6)->place, TASK_LEASED);
        assert_null(feeding_holder(j, data_task(j->data->data, 6)));
        assert_ptr_equal(feeding_holder(j, data_task(j->data->data, find(SAID_GRANT, 0, 0)->task)),
                         j->executors[0]);
        /* It is back with one of its two. */
        register_node(m, (unsigned)(away->node->name[1] - '1'));
        n_said = 0;
        p = at(6, 10, 10, TASK_RUNNING);
        report(m, away, &p, 1, 0, 0);
        opened(m, away, 1);
        settle(m);
        assert_int_equal(j->executors[2]->feed.n_leases, 2); /* and the one that it has just been given */
        assert_int_equal(j->executors[2]->feed.leases->id, 6);
        assert_int_equal(count(SAID_GRANT, 2), 1);
        n_said = 0;
        report(m, j->executors[0], NULL, 0, 9, 0);
        assert_int_equal(count(SAID_GRANT, 0), 9);
        for (size_t i = 0; i < n_said; i++)
                assert_true(said[i].task <= BLOCK_TASKS && said[i].task != 6);
}

static void on_events(void *userdata, int error, const struct event_record *list, size_t n) {
        size_t *ret = userdata;

        assert_int_equal(error, 0);
        *ret = n;
        for (size_t i = 0; i < n; i++)
                if (strcmp(list[i].kind, "task-failed") == 0) /* which file: once */
                        assert_null(strstr(strstr(list[i].text, "/d/0") + 1, "/d/0"));
}

struct wanted_event {
        const char *kind, *text;
        unsigned n;
        bool read;
};

static void on_wanted(void *userdata, int error, const struct event_record *list, size_t n) {
        struct wanted_event *w = userdata;

        assert_int_equal(error, 0);
        for (size_t i = 0; i < n; i++)
                w->n += strcmp(list[i].kind, w->kind) == 0 && strstr(list[i].text, w->text) != NULL;
        w->read = true;
}

static unsigned events(struct manager *m, const struct job *j, const char *kind, const char *text) {
        struct wanted_event w = { .kind = kind, .text = text };

        settle(m);
        assert_int_equal(store_query_events(m->store, j->number, 0, 5000, on_wanted, &w), 0);
        for (unsigned i = 0; !w.read && i < 1000; i++)
                (void)sd_event_run(m->event, 10000);
        assert_true(w.read);
        return w.n;
}

/* As if so much time had passed since anybody looked. */
static void pass(struct manager *m, struct job *j, uint64_t usec) {
        struct job_data *d = j->data;
        struct executor *e;

        JOB_FOREACH (j, e)
                if (e->feed.taker.waits_usec > 0)
                        e->feed.taker.waits_usec -= usec;
        if (d->pending_since > 0)
                d->pending_since -= usec;
        d->starved_look = 0;
        feeding_run(m, j);
}

/* Whoever waits although tasks are pending is told of, with the reason, and so is the end of that. */
static void test_starved(void **state) {
        struct manager *m = *state;
        struct job *j = submit(m, 3, "", "", "");
        char why[1024], text[SUSPENSION_TEXT_MAX];

        feeding_unknown(j->executors[2]);
        listed(m, j, 8, 100, true);
        for (uint32_t i = 0; i < 2; i++) {
                opened(m, j->executors[i], 2);
                report_hunger(m, j->executors[i], NULL, 0, 2, 1, 1);
        }
        pass(m, j, 3 * USEC_PER_SEC);
        assert_int_equal(count(SAID_GRANT, UINT32_MAX), 0);
        assert_int_equal(events(m, j, "data-starved", ""), 0);
        assert_false(feeding_why(m, j, why, sizeof(why)));
        pass(m, j, 2 * USEC_PER_SEC);
        pass(m, j, 2 * USEC_PER_SEC);
        assert_int_equal(events(m, j, "data-starved", ""), 1); /* once */
        assert_int_equal(events(m, j, "data-starved",
                                "and so has 1 other, although 8 tasks are pending: nothing is granted before "
                                "w/2 on n"),
                         1);
        assert_true(feeding_why(m, j, why, sizeof(why)));
        assert_non_null(strstr(why, "w/0 has waited for data for "));
        assert_non_null(strstr(why, "has said which tasks it holds"));
        assert_int_equal(events(m, j, "data-fed", ""), 0);
        opened(m, j->executors[2], 0);
        settle(m);
        assert_int_equal(count(SAID_GRANT, 0), 2);
        for (uint32_t i = 0; i < 2; i++)
                report_hunger(m, j->executors[i], NULL, 0, 2, 0, 0);
        j->data->starved_look = 0;
        feeding_run(m, j);
        assert_int_equal(events(m, j, "data-fed", ""), 1);
        assert_false(feeding_why(m, j, why, sizeof(why)));
        /* One that has been granted something and does nothing with it. */
        report_hunger(m, j->executors[1], NULL, 0, 0, 1, 0);
        pass(m, j, 6 * USEC_PER_SEC);
        pass(m, j, 6 * USEC_PER_SEC);
        assert_int_equal(events(m, j, "data-starved", "it was granted task "), 1);
        /* While people hold the data back, nobody has to wonder. */
        assert_int_equal(suspension_begin(m, j, SUSPEND_DATA, 1000, text), 0);
        settle(m);
        assert_false(feeding_why(m, j, why, sizeof(why)));
}

/* A job of which millions of tasks fail is no reason to write as many events. */
static void test_events(void **state) {
        struct manager *m = *state;
        struct job *j = submit(m, 1, "'stopPolicy':{'taskFailedPercent':100},", "", "");
        size_t n = SIZE_MAX;

        for (unsigned i = 0; i < 3; i++)
                listed(m, j, 700, 100, i == 2);
        opened(m, j->executors[0], 200);
        settle(m);
        for (unsigned done = 0; done < 1500;) {
                struct task_progress p[100];
                char errors[100][64];
                struct task *t;
                size_t k = 0;
                for (t = j->executors[0]->feed.leases; t && k < ELEMENTSOF(p); t = t->lease_next) {
                        p[k] = at(t->id, 10, 10, TASK_FAILED);
                        snprintf(errors[k], sizeof(errors[k]), "%s: not a record", t->what.path);
                        if (k % 2)
                                p[k].error = errors[k];
                        k++;
                }
                assert_true(k > 0);
                done += k;
                report(m, j->executors[0], p, k, 200, 0);
                n_said = 0;
        }
        assert_int_equal(store_query_events(m->store, j->number, 0, 5000, on_events, &n), 0);
        for (unsigned i = 0; n == SIZE_MAX && i < 100; i++)
                (void)sd_event_run(m->event, 10000);
        assert_true(n > 500 && n < 1100);
}

/* ---- the end ---- */

static void test_success_percent(void **state) {
        struct manager *m = *state;
        struct job *j =
                submit(m, 2, "'stopPolicy':{'taskSuccessPercent':50,'taskFailedPercent':90},", "", "");
        struct task_progress p[2] = { at(1, 100, 100, TASK_DONE), at(2, 50, 0, TASK_FAILED) };
        const struct said *dropped;

        listed(m, j, 4, 100, true);
        opened(m, j->executors[0], 2);
        opened(m, j->executors[1], 2);
        settle(m);
        report(m, j->executors[0], p, 2, 0, 0);
        report(m, j->executors[0], p + 1, 1, 0, 0);
        assert_false(j->data->finished); /* what failed is no success */
        p[0] = at(find(SAID_GRANT, 1, 0)->task, 100, 100, TASK_DONE);
        report(m, j->executors[1], p, 1, 0, 0);
        assert_true(j->data->finished);
        assert_int_equal(count(SAID_LAST, 0), 1);
        assert_int_equal(count(SAID_LAST, 1), 1);
        assert_true(count(SAID_CONTROL, UINT32_MAX) >= 1);
        dropped = find(SAID_CONTROL, 0, 0) ?: find(SAID_CONTROL, 1, 0);
        assert_int_equal(dropped->op, FEED_CONTROL_DROP);
        assert_int_equal(j->data->n_unread, 0);
        /* A late word of what was withdrawn changes nothing. */
        p[0] = at(dropped->task, 100, 100, TASK_DONE);
        report(m, j->executors[dropped->index], p, 1, 0, 0);
        assert_int_equal(totals(j).done, 2);
}

static void test_failed_percent(void **state) {
        struct manager *m = *state;
        struct job *j = submit(m, 1, "'stopPolicy':{'taskFailedPercent':50},", "", "");
        struct task_progress p = at(1, 50, 0, TASK_FAILED);

        listed(m, j, 2, 100, true);
        opened(m, j->executors[0], 1);
        settle(m);
        for (unsigned i = 0; i < 2; i++)
                report(m, j->executors[0], &p, 1, 1, 0);
        assert_int_equal(j->state, JOB_STOPPING);
        assert_non_null(strstr(j->reason, "1 of 2 data tasks failed"));
        assert_non_null(strstr(j->reason, "not a record"));
}

static void test_skip_and_retry(void **state) {
        struct manager *m = *state;
        struct job *j = submit(m, 1, "'stopPolicy':{'taskFailedPercent':100},", "", "");
        struct task_progress p = at(1, 50, 20, TASK_FAILED);
        uint64_t n = 99;

        listed(m, j, 4, 100, true);
        opened(m, j->executors[0], 1);
        settle(m);
        assert_int_equal(feeding_retry(m, j, 1, &n), -ENOENT);
        for (unsigned i = 0; i < 2; i++)
                report(m, j->executors[0], &p, 1, 0, 0);
        report(m, j->executors[0], &p, 1, 0, 0);
        opened(m, j->executors[0], 1);
        settle(m);
        report(m, j->executors[0], &p, 1, 0, 0);
        assert_int_equal(totals(j).failed, 1);
        assert_int_equal(feeding_retry(m, j, 0, &n), 0);
        assert_int_equal(n, 1);
        assert_int_equal(totals(j).failed, 0);
        n_said = 0;
        opened(m, j->executors[0], 3);
        settle(m);
        assert_int_equal(feeding_skip(m, j, 77, &n), -ENOENT);
        p = *(&(struct task_progress){ .task = find(SAID_GRANT, 0, 0)->task });
        assert_int_equal(feeding_skip(m, j, p.task, &n), 0);
        assert_int_equal(n, 1);
        settle(m);
        assert_int_equal(find(SAID_CONTROL, 0, p.task)->op, FEED_CONTROL_DROP);
        assert_int_equal(totals(j).skipped, 1);
        assert_null(data_task(j->data->data, p.task));
        assert_int_equal(j->executors[0]->feed.n_leases, totals(j).leased);
        assert_int_equal(j->data->n_unread, totals(j).leased);
}

/* ---- control ---- */

static void test_suspend(void **state) {
        struct manager *m = *state;
        struct job *j = submit(m, 2, "", "", "");
        char text[SUSPENSION_TEXT_MAX];

        listed(m, j, 9, 100, true);
        opened(m, j->executors[0], 1);
        settle(m);
        n_said = 0;
        assert_int_equal(suspension_begin(m, j, SUSPEND_DATA, 1000, text), 0);
        settle(m);
        assert_int_equal(n_said, 1);
        assert_int_equal(find(SAID_CONTROL, 0, 0)->op, FEED_CONTROL_PAUSE);
        opened(m, j->executors[1], 5);
        settle(m);
        assert_int_equal(find(SAID_CONTROL, 1, 0)->op, FEED_CONTROL_PAUSE);
        assert_int_equal(count(SAID_GRANT, UINT32_MAX), 0);
        n_said = 0;
        assert_int_equal(suspension_end(m, j, 1000, text), 0);
        settle(m);
        assert_int_equal(find(SAID_CONTROL, 0, 0)->op, FEED_CONTROL_RESUME);
        assert_int_equal(find(SAID_CONTROL, 1, 0)->op, FEED_CONTROL_RESUME);
        assert_int_equal(count(SAID_GRANT, 1), 5);
}

static void on_synced(void *userdata, bool all) {
        int *result = userdata;

        assert_int_equal(*result, -1);
        *result = all;
}

static void test_sync(void **state) {
        struct manager *m = *state;
        struct job *j = submit(m, 3, "", "", "");
        int first = -1, second = -1, third = -1, fourth = -1;

        assert_int_equal(feeding_sync(m, j, USEC_PER_SEC, on_synced, &first), 0);
        assert_int_equal(first, -1); /* never before it returns */
        settle(m);
        assert_int_equal(first, 1); /* nobody is there */
        for (uint32_t i = 0; i < 3; i++)
                opened(m, j->executors[i], 1);
        assert_int_equal(feeding_sync(m, j, 100 * USEC_PER_SEC, on_synced, &second), 0);
        assert_int_equal(feeding_sync(m, j, 100 * USEC_PER_SEC, on_synced, &third), 0);
        settle(m);
        assert_int_equal(count(SAID_CONTROL, UINT32_MAX), 6);
        assert_int_equal(find(SAID_CONTROL, 0, 0)->op, FEED_CONTROL_SYNC);
        report(m, j->executors[0], NULL, 0, 1, 2);
        report(m, j->executors[1], NULL, 0, 1, 3); /* and so the one before */
        assert_int_equal(second, -1);
        ended(m, j->executors[2], 3); /* has said all it knew */
        assert_int_equal(second, 1);
        assert_int_equal(third, -1);
        report(m, j->executors[0], NULL, 0, 1, 999); /* a number that nobody gave */
        assert_int_equal(third, 1);
        assert_int_equal(feeding_sync(m, j, 1000, on_synced, &fourth), 0);
        usleep(5000);
        settle(m);
        assert_int_equal(fourth, 0);
}

static void test_long_tail(void **state) {
        struct manager *m = *state;
        struct job *j = submit(m, 2, "", JSON({ "split" : "256M" }), "");
        struct task_progress p = at(1, 10 << 20, 0, TASK_RUNNING);
        struct task *t;

        listed(m, j, 1, 200 << 20, true);
        opened(m, j->executors[0], 1);
        settle(m);
        assert_non_null(find(SAID_GRANT, 0, 1));
        opened(m, j->executors[1], 1);
        settle(m);
        assert_true(feeding_idle(j->executors[1]));
        report(m, j->executors[0], &p, 1, 0, 0);
        assert_int_equal(count(SAID_CONTROL, UINT32_MAX), 0); /* who knows how fast it is */
        t = data_task(j->data->data, 1);
        t->granted_usec -= 10 * USEC_PER_SEC;
        j->data->trimmed_usec = 0; /* a second later */
        feeding_run(m, j);
        settle(m);
        assert_int_equal(find(SAID_CONTROL, 0, 1)->op, FEED_CONTROL_TRIM);
        p.end = find(SAID_CONTROL, 0, 1)->value;
        assert_true(p.end > 10 << 20 && p.end < 200 << 20);
        feeding_run(m, j);
        settle(m);
        assert_int_equal(count(SAID_CONTROL, UINT32_MAX), 1); /* once */
        report(m, j->executors[0], &p, 1, 0, 0);
        assert_int_equal(count(SAID_GRANT, 1), 1);
        assert_true(find(SAID_GRANT, 1, 0)->task & TASK_SPLIT_OFF);
        assert_int_equal(find(SAID_GRANT, 1, 0)->offset, p.end);
        assert_int_equal(find(SAID_GRANT, 1, 0)->end, 200 << 20);
        assert_int_equal(totals(j).tasks, 2);
}

/* A holder may be through before it has told where it will end. */
static void test_ended_early(void **state) {
        struct manager *m = *state;
        struct job *j = submit(m, 2, "", JSON({ "split" : "256M" }), "");
        struct task_progress p = at(1, 50, 50, TASK_DONE);

        listed(m, j, 1, 200 << 20, true);
        opened(m, j->executors[0], 1);
        settle(m);
        p.end = 50;
        report(m, j->executors[0], &p, 1, 0, 0);
        assert_null(data_task(j->data->data, 1));
        assert_int_equal(totals(j).done, 1);
        assert_int_equal(totals(j).tasks, 2);
        opened(m, j->executors[1], 1);
        settle(m);
        assert_int_equal(find(SAID_GRANT, 1, 0)->offset, 50);
}

/* Each report that comes in while somebody has nothing to do is no reason to ask one more. */
static void test_long_tail_of_many(void **state) {
        struct manager *m = *state;
        struct job *j = submit(m, 4, "", JSON({ "split" : "256M" }), "");
        struct task_progress p[3] = { at(1, 10 << 20, 0, TASK_RUNNING), at(2, 10 << 20, 0, TASK_RUNNING),
                                      at(3, 10 << 20, 0, TASK_RUNNING) };

        listed(m, j, 3, 200 << 20, true);
        for (uint32_t i = 0; i < 3; i++) {
                opened(m, j->executors[i], 1);
                settle(m);
                data_task(j->data->data, i + 1)->granted_usec -= 10 * USEC_PER_SEC;
        }
        opened(m, j->executors[3], 1);
        settle(m);
        for (uint32_t i = 0; i < 3; i++)
                report(m, feeding_holder(j, data_task(j->data->data, i + 1)), p + i, 1, 0, 0);
        assert_int_equal(count(SAID_CONTROL, UINT32_MAX), 1);
}

/* ---- looking ---- */

static void on_job(struct job *j, int error, void *userdata) {
        struct job **ret = userdata;

        assert_int_equal(error, 0);
        *ret = j;
}

static void test_history(void **state) {
        struct manager *m = *state;
        struct job *j = submit(m, 1, "'stopPolicy':{'taskFailedPercent':100},", "", "");
        struct task_progress p[3] = { at(1, 100, 100, TASK_DONE), at(2, 10, 10, TASK_FAILED),
                                      at(2, 10, 10, TASK_FAILED) };
        struct feeding_source_view v;
        uint32_t number = j->number;

        listed(m, j, 3, 100, true);
        opened(m, j->executors[0], 3);
        settle(m);
        report(m, j->executors[0], p, 1, 0, 0);
        for (unsigned i = 0; i < 2; i++)
                report(m, j->executors[0], p + 1, 1, 1, 0);
        assert_int_equal(feeding_source_view(j, 0, &v), 0);
        assert_int_equal(v.done, 1);
        assert_int_equal(v.failed, 1);
        assert_int_equal(v.leased, 1);
        assert_true(v.scanned);
        assert_string_equal(v.kind, "files");
        assert_int_equal(feeding_source_view(j, 1, &v), -ENODATA);
        lifecycle_stop_job(m, j, JOB_EVENT_KILLED, "killed");
        ended(m, j->executors[0], 3);
        assert_int_equal(j->state, JOB_KILLED);
        assert_null(j->data->data); /* hundreds of them are kept */
        assert_int_equal(totals(j).failed, 1);
        close_manager(m);
        *state = m = open_manager();
        assert_null(manager_job(m, number));
        j = NULL;
        assert_int_equal(history_get(m, number, on_job, &j), 0);
        settle(m);
        for (unsigned i = 0; !j && i < 100; i++)
                (void)sd_event_run(m->event, 10000);
        assert_non_null(j);
        assert_int_equal(totals(j).tasks, 3);
        assert_int_equal(totals(j).done, 1);
        assert_int_equal(totals(j).failed, 1);
        assert_int_equal(totals(j).bytes, 300);
        assert_int_equal(totals(j).acked, 110);
        assert_int_equal(feeding_source_view(j, 0, &v), 0);
        assert_int_equal(v.files, 3);
        assert_true(v.scanned && feeding_scanned_all(j));
        assert_true(feeding_progress(j) > 0.66 && feeding_progress(j) < 0.67);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_few_tasks_for_all, setup, teardown),
                cmocka_unit_test_setup_teardown(test_not_all_for_the_first, setup, teardown),
                cmocka_unit_test_setup_teardown(test_one_who_waits_is_served, setup, teardown),
                cmocka_unit_test_setup_teardown(test_one_who_asks_gets_it_later, setup, teardown),
                cmocka_unit_test_setup_teardown(test_starved, setup, teardown),
                cmocka_unit_test_setup_teardown(test_many_tasks_in_few_messages, setup, teardown),
                cmocka_unit_test_setup_teardown(test_blocks_follow, setup, teardown),
                cmocka_unit_test_setup_teardown(test_end_of_file, setup, teardown),
                cmocka_unit_test_setup_teardown(test_standstill, setup, teardown),
                cmocka_unit_test_setup_teardown(test_standstill_within_one, setup, teardown),
                cmocka_unit_test_setup_teardown(test_standstill_without_a_link, setup, teardown),
                cmocka_unit_test_setup_teardown(test_gone, setup, teardown),
                cmocka_unit_test_setup_teardown(test_checkpoint, setup, teardown),
                cmocka_unit_test_setup_teardown(test_restart, setup, teardown),
                cmocka_unit_test_setup_teardown(test_link_lost, setup, teardown),
                cmocka_unit_test_setup_teardown(test_restart_with_a_lost_host, setup, teardown),
                cmocka_unit_test_setup_teardown(test_success_percent, setup, teardown),
                cmocka_unit_test_setup_teardown(test_failed_percent, setup, teardown),
                cmocka_unit_test_setup_teardown(test_skip_and_retry, setup, teardown),
                cmocka_unit_test_setup_teardown(test_suspend, setup, teardown),
                cmocka_unit_test_setup_teardown(test_sync, setup, teardown),
                cmocka_unit_test_setup_teardown(test_long_tail, setup, teardown),
                cmocka_unit_test_setup_teardown(test_ended_early, setup, teardown),
                cmocka_unit_test_setup_teardown(test_long_tail_of_many, setup, teardown),
                cmocka_unit_test_setup_teardown(test_events, setup, teardown),
                cmocka_unit_test_setup_teardown(test_history, setup, teardown),
        };

        setenv("PRIMUS_LOG_LEVEL", "err", 0);
        log_open("test-feeding");
        return cmocka_run_group_tests(tests, NULL, NULL);
}
