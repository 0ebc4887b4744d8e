/* SPDX-License-Identifier: Apache-2.0 */
/* Tasks through masterd's own code (all of it but the people's bus) and a real TLS link, its store on a disk.
 * The other side of the link is a process that says what an agent with feeders would say, and reads nothing.
 */
#include "tests/bench/bench-tasks.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/wire/authority.h"
#include "lib/wire/messages.h"
#include "lib/wire/peer.h"
#include "masterd/admit/submit.h"
#include "masterd/api/link-object.h"
#include "masterd/core/manager.h"
#include "masterd/fleet/liveness.h"
#include "masterd/link/link-parts.h"
#include "masterd/link/link.h"
#include "masterd/queue/placement.h"
#include "masterd/recover/load.h"
#include "masterd/start.h"
#include "tests/bench/report.h"

#define HOUR (UINT64_C(3600) * USEC_PER_SEC)
#define FILES 20000u
#define PARTS 200u
#define PART_SIZE (UINT64_C(64) << 20)
#define WARM_USEC USEC_PER_SEC
#define LATE_USEC (60 * USEC_PER_SEC) /* beyond what it should take */
#define LATENCIES_MAX 200000u
#define EXECUTORS_MAX 64u

struct way {
        unsigned executors, credits;
        uint64_t measure_usec;
};

struct agent {
        sd_event *event;
        struct peer *peer;
        const struct way *way;
        clockid_t master_cpu;
        struct executor_id ids[EXECUTORS_MAX], scan;
        unsigned n_ids;
        bool listed;
        uint64_t begin, end; /* of what is measured; 0: not yet */
        double cpu_begin, cpu_end;
        uint64_t granted, messages;
        uint64_t last_grant;
        double *latencies;
        size_t n_latencies;
        double resident; /* MiB, the most that masterd ever had */
};

static _Noreturn void die(const char *what, int r) {
        (void)fprintf(stderr, "bench-tasks: %s: %s\n", what, strerrordesc_np(-r));
        exit(1);
}

static int check(int r, const char *what) {
        if (r < 0)
                die(what, r);
        return r;
}

/* ---- masterd ---- */

static struct tls_credentials *credentials[2]; /* agent's, masterd's */

static void make_credentials(void) {
        _cleanup_(certificate_done) struct certificate ca = {}, master = {}, node = {}, signed_one = {};
        _cleanup_free_ char *csr = NULL;
        uint64_t now = now_real();

        check(authority_new("bench", now, HOUR, &ca), "CA");
        check(authority_issue_master(&ca, now, HOUR, &master), "certificate");
        check(certificate_request_new("n1", &node.key_pem, &csr), "request");
        check(authority_issue_node(&ca, csr, strlen(csr), "n1", now, HOUR, &signed_one), "certificate");
        check(tls_credentials_new(ca.cert_pem, signed_one.cert_pem, node.key_pem, credentials),
              "credentials");
        check(tls_credentials_new(ca.cert_pem, master.cert_pem, master.key_pem, credentials + 1),
              "credentials");
}

static uint16_t free_port(void) {
        struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        _cleanup_close_ int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        socklen_t size = sizeof(a);

        if (fd < 0 || bind(fd, (struct sockaddr *)&a, size) < 0 ||
            getsockname(fd, (struct sockaddr *)&a, &size) < 0)
                die("port", -errno);
        return ntohs(a.sin_port);
}

static void submit(struct manager *m, unsigned executors) {
        static const char format[] =
                "{\"name\":\"bench\",\"input\":{\"ack\":\"read\",\"epochs\":100},\"role\":[{\"roleName\":"
                "\"w\",\"num\":%u,"
                "\"vcores\":"
                "0.01,\"memoryMb\":1,\"command\":\"x\",\"inputPolicy\":\"STREAMING\"}],\"inputManager\":{"
                "\"fileConfig\":{\"inputs\":[{\"name\":\"i\",\"spec\":{\"pathPattern\":\"/"
                "data\",\"namePattern\":\".*\","
                "\"textInput\":{}}}]}}}";
        _cleanup_free_ char *config = NULL;
        sd_bus_error error = SD_BUS_ERROR_NULL;
        struct submission s = { .owner = 1000 };
        struct job *j;
        int r;

        if (asprintf(&config, format, executors) < 0)
                die("configuration", -ENOMEM);
        s.config = config;
        s.config_size = strlen(config);
        r = submit_job(m, &s, &j, &error);
        if (r < 0)
                die(error.message ? error.message : "job", r);
}

static void bulk_gone(struct manager *m, const struct node *node) {
}

static _Noreturn void run_master(const char *directory, uint16_t port, unsigned executors, pid_t parent) {
        static const struct link_handlers handlers = { .vtable = api_link_vtable,
                                                       .main_gone = bulk_gone,
                                                       .bulk_gone = bulk_gone };
        _cleanup_free_ char *path = NULL;
        struct manager *m;
        struct node *node;

        bench_die_with(parent);
        check(start_new(&m), "manager");
        free(m->conf.state_directory);
        m->conf.state_directory = strdup(directory);
        m->conf.suspect_usec = m->conf.lost_usec = HOUR;
        m->conf.n_listen = 1;
        check(addr_parse("127.0.0.1", port, m->conf.listen), "address");
        if (!m->conf.state_directory || asprintf(&path, "%s/primus.db", directory) < 0)
                die("store", -ENOMEM);
        check(store_open(path, m->event, NULL, &m->store), "store");
        check(placement_new(m), "placement");
        m->term = 1;
        m->cluster = SD_ID128_MAKE(11, 11, 11, 11, 11, 11, 11, 11, 11, 11, 11, 11, 11, 11, 11, 11);
        m->link->credentials = credentials[1];
        check(recover_load(m), "store");
        check(nodes_add(&m->nodes, "n1", &node), "node");
        m->serving_boot = now_boot();
        check(liveness_start(m), "clock");
        check(link_listen(m, &handlers), "port");
        submit(m, executors);
        manager_schedule(m);
        check(sd_event_loop(m->event), "loop");
        exit(0);
}

/* ---- agent ---- */

static double master_cpu(const struct agent *a) {
        struct timespec ts;

        return clock_gettime(a->master_cpu, &ts) < 0 ? 0 : (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static sd_bus_message *message(struct agent *a, const char *name, const struct executor_id *id) {
        sd_bus_message *m = NULL;

        check(sd_bus_message_new_method_call(peer_bus(a->peer), &m, NULL, LINK_PATH, LINK_INTERFACE, name),
              name);
        if (id) {
                check(sd_bus_message_set_expect_reply(m, false), name);
                check(executor_id_append(m, id), name);
        }
        return m;
}

static void post(sd_bus_message *m) {
        check(sd_bus_send(NULL, m, NULL), "message");
        sd_bus_message_unref(m);
}

static void list(struct agent *a) {
        uint8_t buf[TASKS_WIRE_MAX];

        for (uint32_t i = 0; i < FILES;) {
                sd_bus_message *m = message(a, "ScanBatch", &a->scan);
                size_t used = 0;
                for (; i < FILES; i++) {
                        char path[64];
                        struct scan_entry e = { .path = path,
                                                .size = PARTS * PART_SIZE,
                                                .mtime_nsec = 1 + i,
                                                .inode = 1 + i,
                                                .last = PARTS * PART_SIZE };
                        snprintf(path, sizeof(path), "/data/2026/11/20/shard-%06u.txt", i);
                        if (scan_entry_write(&e, buf, sizeof(buf), &used) < 0)
                                break;
                }
                check(scan_batch_append(
                              m, &(struct scan_batch){ .entries = buf, .size = used, .last = i == FILES }),
                      "listing");
                post(m);
        }
}

static void open_feeds(struct agent *a) {
        if (!a->listed || a->n_ids < a->way->executors)
                return;
        for (unsigned i = 0; i < a->n_ids; i++) {
                sd_bus_message *m = message(a, "FeedOpen", a->ids + i);
                check(sd_bus_message_append(m, "ua{sv}", a->way->credits, 0), "FeedOpen");
                post(m);
        }
}

static void started(struct agent *a, sd_bus_message *m) {
        _cleanup_(start_order_done) struct start_order order = {};
        uint64_t term, epoch;

        check(sd_bus_message_read(m, "tt", &term, &epoch), "Start");
        check(start_order_read(m, &order), "Start");
        check(sd_bus_reply_method_return(m, "ayta{sv}", 16, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15,
                                         16, now_real(), 0),
              "Start");
        if (order.kind == ORDER_SCAN) {
                a->scan = order.id;
                list(a);
                a->listed = true;
        } else if (a->n_ids < EXECUTORS_MAX)
                a->ids[a->n_ids++] = order.id;
        open_feeds(a);
}

/* What is measured begins when all are at work, and ends by the clock. */
static void count(struct agent *a, uint64_t now, unsigned n) {
        if (a->begin == 0) {
                a->begin = now + WARM_USEC;
                a->last_grant = now;
        }
        if (now < a->begin) {
                a->cpu_begin = master_cpu(a);
                a->last_grant = now;
                return;
        }
        a->granted += n;
        a->messages++;
        if (a->n_latencies < LATENCIES_MAX)
                a->latencies[a->n_latencies++] = (double)(now - a->last_grant);
        a->last_grant = now;
        if (now < a->begin + a->way->measure_usec)
                return;
        a->end = now;
        a->cpu_end = master_cpu(a);
        (void)sd_event_exit(a->event, 0);
}

/* All of them are done, at once. */
static void granted(struct agent *a, sd_bus_message *m) {
        uint8_t buf[TASKS_WIRE_MAX];
        struct grant_batch batch;
        struct executor_id id;
        struct task_grant g;
        sd_bus_message *report;
        size_t used = 0;
        unsigned n = 0;

        check(executor_id_read(m, &id), "Grant");
        check(grant_batch_read(m, &batch), "Grant");
        while (check(task_grant_next(&batch.grants, &batch.size, &g), "Grant") > 0) {
                struct task_progress p = { .task = g.task,
                                           .read = g.end,
                                           .acked = g.end,
                                           .records = 1000,
                                           .end = g.end,
                                           .state = TASK_DONE,
                                           .error = "" };
                check(task_progress_write(&p, buf, sizeof(buf), &used), "report");
                n++;
        }
        if (n == 0)
                return;
        report = message(a, "FeedReport", &id);
        check(feed_report_append(report,
                                 &(struct feed_report){ .progress = buf, .size = used, .credits = n }),
              "report");
        post(report);
        count(a, now_boot(), n);
}

static int on_message(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        struct agent *a = userdata;

        if (sd_bus_message_is_method_call(m, LINK_INTERFACE, "Grant") > 0)
                granted(a, m);
        else if (sd_bus_message_is_method_call(m, LINK_INTERFACE, "Start") > 0)
                started(a, m);
        else
                return 0;
        return 1;
}

static int on_registered(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        if (sd_bus_message_is_method_error(m, NULL))
                die(sd_bus_message_get_error(m)->message, -EPROTO);
        return 0;
}

static int on_welcome(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        struct agent *a = userdata;
        struct inventory inventory = { .hostname = (char *)"n1",
                                       .kernel = (char *)"6.1",
                                       .os = (char *)"x",
                                       .cpus = 64,
                                       .memory = UINT64_C(64) << 30,
                                       .port_first = 23000,
                                       .port_last = 27999 };
        sd_bus_message *r = message(a, "Register", NULL);

        (void)on_registered(m, a, error);
        check(addr_parse("127.0.0.1", 0, &inventory.address), "address");
        check(sd_bus_message_append(r, "s", "11111111111111111111111111111111"), "Register");
        check(inventory_append(r, &inventory), "Register");
        check(sd_bus_message_append(r, "a((ayusuu)saytb)a((ayusuu)ayssibbttttttts)a{sv}", 0, 0, 0),
              "Register");
        check(sd_bus_call_async(peer_bus(a->peer), NULL, r, on_registered, a, 0), "Register");
        sd_bus_message_unref(r);
        return 0;
}

static int on_ready(struct peer *p, void *userdata) {
        struct agent *a = userdata;
        sd_bus_message *m;

        a->peer = p;
        check(sd_bus_add_filter(peer_bus(p), NULL, on_message, a), "link");
        m = message(a, "Hello", NULL);
        check(sd_bus_message_append(m, "qqsasa{sv}", LINK_MAJOR, LINK_MINOR, "bench", 0, 0), "Hello");
        check(sd_bus_call_async(peer_bus(p), NULL, m, on_welcome, a, 0), "Hello");
        sd_bus_message_unref(m);
        return 0;
}

static void on_ended(struct peer *p, const struct peer_end *end, void *userdata) {
        die(end->why, end->error < 0 ? end->error : -ECONNRESET);
}

static int dial(uint16_t port) {
        struct sockaddr_in to = { .sin_family = AF_INET,
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                                  .sin_port = htons(port) };
        const int yes = 1;

        for (unsigned i = 0; i < 1000; i++) {
                int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
                if (fd < 0)
                        die("socket", -errno);
                if (connect(fd, (struct sockaddr *)&to, sizeof(to)) == 0) {
                        (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
                        (void)fcntl(fd, F_SETFL, O_NONBLOCK);
                        return fd;
                }
                close(fd);
                (void)usleep(10000);
        }
        die("masterd does not listen", -ECONNREFUSED);
}

/* Something does not go on: better an error than a bench that hangs. */
static int on_late(sd_event_source *s, uint64_t usec, void *userdata) {
        const struct agent *a = userdata;

        (void)fprintf(stderr, "bench-tasks: %u executors, listing %s, %" PRIu64 " tasks granted\n", a->n_ids,
                      a->listed ? "sent" : "not asked for", a->granted);
        die("what is to be measured did not end in time", -ETIMEDOUT);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *f) {
        return remove(path);
}

static void measure(struct agent *a, const struct way *way, const char *on) {
        const struct peer_options o = { .expect_name = AUTHORITY_MASTER_NAME, .expect_role = PEER_MASTER };
        _cleanup_free_ char *directory = NULL;
        uint16_t port = free_port();
        struct rusage usage;
        pid_t parent, pid;

        *a = (struct agent){ .way = way, .latencies = calloc(LATENCIES_MAX, sizeof(double)) };
        if (!a->latencies || asprintf(&directory, "%s/bench-tasks-XXXXXX", on) < 0)
                die("memory", -ENOMEM);
        if (!mkdtemp(directory))
                die(on, -errno);
        parent = getpid();
        pid = fork();
        if (pid < 0)
                die("process", -errno);
        if (pid == 0)
                run_master(directory, port, way->executors, parent);
        check(-clock_getcpuclockid(pid, &a->master_cpu), "clock");
        check(sd_event_new(&a->event), "loop");
        check(peer_new(a->event, dial(port), credentials[0], &o, on_ready, on_ended, a, &a->peer), "link");
        check(sd_event_add_time_relative(a->event, NULL, CLOCK_BOOTTIME,
                                         WARM_USEC + way->measure_usec + LATE_USEC, 0, on_late, a),
              "clock");
        check(sd_event_loop(a->event), "loop");
        (void)kill(pid, SIGKILL);
        if (wait4(pid, NULL, 0, &usage) == pid)
                a->resident = (double)usage.ru_maxrss / 1024;
        peer_free(a->peer);
        sd_event_unref(a->event);
        (void)nftw(directory, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static double rate(const struct agent *a) {
        return (double)a->granted * 1e6 / (double)(a->end - a->begin);
}

static double cpu_rate(const struct agent *a) {
        return (double)a->granted / (a->cpu_end - a->cpu_begin);
}

void bench_link(const char *directory) {
        static const struct way one = { 64, 1, 4 * USEC_PER_SEC }, many = { 16, 256, 4 * USEC_PER_SEC },
                                alone = { 1, 1, 4 * USEC_PER_SEC };
        struct agent a;

        make_credentials();
        /* Goals are for masterd's processor time: what it does when it has a core for itself. */
        measure(&a, &one, directory);
        bench_report("tasks", "granted and acknowledged, one a message", rate(&a), "1/s", 0, BENCH_NO_GOAL,
                     0);
        bench_report("tasks", "granted and acknowledged, one a message, by a second of its processor time",
                     cpu_rate(&a), "1/s", bench_raw(one.executors), BENCH_VALUE_MIN, 150e3);
        free(a.latencies);
        measure(&a, &many, directory);
        bench_report("tasks", "granted and acknowledged, in batches of 256", rate(&a), "1/s", 0,
                     BENCH_NO_GOAL, 0);
        bench_report("tasks",
                     "granted and acknowledged, in batches of 256, by a second of its processor time",
                     cpu_rate(&a), "1/s", 0, BENCH_VALUE_MIN, 1e6);
        bench_report("tasks", "masterd, most that was ever resident, a job of 4 million tasks", a.resident,
                     "MiB", 0, BENCH_VALUE_MAX, 64);
        free(a.latencies);
        measure(&a, &alone, directory);
        bench_report("tasks", "granted to acknowledged at window 1, p50",
                     bench_percentile(a.latencies, a.n_latencies, 50), "usec", 0, BENCH_VALUE_MAX, 200);
        bench_report("tasks", "granted to acknowledged at window 1, p99",
                     bench_percentile(a.latencies, a.n_latencies, 99), "usec", 0, BENCH_NO_GOAL, 0);
        free(a.latencies);
        for (int i = 0; i < 2; i++)
                tls_credentials_free(credentials[i]);
}
