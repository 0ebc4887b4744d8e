/* SPDX-License-Identifier: Apache-2.0 */
/* Many agents on one masterd, in one process: real TLS links, the real protocol, no units. bench-swarm HOST
 * PORT TOKEN AGENTS PID joins AGENTS hosts with the token, lets them register and send heartbeats, submits a
 * gang with an executor for each, drops one agent in ten, has them back, and kills the job; of each step it
 * prints how long it took, what processor time masterd (PID) spent, and the slowest answer that somebody on
 * the system bus got meanwhile. */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <systemd/sd-bus.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/file.h"
#include "lib/base/parse.h"
#include "lib/wire/authority.h"
#include "lib/wire/join.h"
#include "lib/wire/messages.h"
#include "lib/wire/peer.h"
#include "tests/bench/report.h"

#define DIALLING 100u /* at a time: this is one process, which cannot shake two thousand hands at once */
#define TICKS 50u     /* heartbeats go out in so many portions */
#define REPLY_GOAL_MS 50.0
#define STEADY_SECONDS 20u
#define STEP_SECONDS 180u
#define MASTER "org.primus.Master1"

struct unit {
        struct executor_id id;
        sd_id128_t invocation;
        uint64_t started_real;
};

struct swarm;

struct agent {
        struct swarm *swarm;
        char name[32];
        struct tls_credentials *credentials;
        struct peer *peer;
        sd_event_source *retry;
        bool registered;
        uint64_t seq;
        struct unit *units;
        size_t n_units;
};

/* What the one who asks on the system bus has seen since it was last looked at. */
struct probe {
        uint64_t slowest_usec, n;
        uint32_t job; /* whose status is asked for; 0: none */
};

struct swarm {
        sd_event *event;
        struct addr master;
        pid_t masterd, prober;
        struct agent *agents;
        size_t n, n_registered, n_units;
        size_t next, n_dialling; /* those behind next have not dialled in this step */
        uint64_t n_ended, n_retries;
        unsigned tick;
        sd_event_source *ticker;
        volatile struct probe *probe;
        sd_bus *bus;
        double step_began, step_cpu;
        double empty_mib;
};

_Noreturn static void die(int r, const char *what) {
        fprintf(stderr, "bench-swarm: %s: %s\n", what, strerror(-r));
        exit(EXIT_FAILURE);
}

#define CHECK(expression)                                                                                    \
        ({                                                                                                   \
                int _r = (expression);                                                                       \
                if (_r < 0)                                                                                  \
                        die(_r, #expression);                                                                \
                _r;                                                                                          \
        })

/* ---- masterd, from outside */

static double masterd_cpu(const struct swarm *s) {
        char path[64], line[1024], *p;
        unsigned long user, kernel;
        FILE *f;

        snprintf(path, sizeof(path), "/proc/%d/stat", s->masterd);
        f = fopen(path, "re");
        p = f && fgets(line, sizeof(line), f) ? strrchr(line, ')') : NULL;
        if (!p || sscanf(p, ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &kernel) != 2)
                die(-ESRCH, "masterd's /proc/PID/stat");
        fclose(f);
        return (double)(user + kernel) / (double)sysconf(_SC_CLK_TCK);
}

static double masterd_resident_mib(const struct swarm *s) {
        char path[64], line[256];
        double kib = 0;
        FILE *f;

        snprintf(path, sizeof(path), "/proc/%d/status", s->masterd);
        f = fopen(path, "re");
        while (f && fgets(line, sizeof(line), f))
                (void)sscanf(line, "VmRSS: %lf", &kib);
        if (f)
                fclose(f);
        return kib / 1024;
}

static void step_begin(struct swarm *s, const char *what) {
        fprintf(stderr, "bench-swarm: %s\n", what);
        s->probe->slowest_usec = 0;
        s->step_began = bench_now();
        s->step_cpu = masterd_cpu(s);
}

static void step_end(struct swarm *s, const char *what) {
        double seconds = bench_now() - s->step_began, cpu = masterd_cpu(s) - s->step_cpu;
        char metric[160];

        snprintf(metric, sizeof(metric), "%s: time", what);
        bench_report("swarm", metric, seconds, "s", 0, BENCH_NO_GOAL, 0);
        snprintf(metric, sizeof(metric), "%s: masterd's processor time", what);
        bench_report("swarm", metric, cpu, "s", 0, BENCH_NO_GOAL, 0);
        snprintf(metric, sizeof(metric), "%s: slowest answer to a person", what);
        bench_report("swarm", metric, (double)s->probe->slowest_usec / 1e3, "ms", 0, BENCH_VALUE_MAX,
                     REPLY_GOAL_MS);
}

/* ---- the person who asks meanwhile */

static int ask(sd_bus *bus, const char *path, const char *interface, const char *member, bool filter) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL, *reply = NULL;
        int r = sd_bus_message_new_method_call(bus, &m, MASTER, path, interface, member);

        if (r >= 0 && filter)
                r = sd_bus_message_append(m, "a{sv}", 0);
        return r < 0 ? r : sd_bus_call(bus, m, 30 * USEC_PER_SEC, NULL, &reply);
}

_Noreturn static void probe_forever(volatile struct probe *p) {
        sd_bus *bus = NULL;
        char path[64];

        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)setpriority(PRIO_PROCESS, 0, -10);
        CHECK(sd_bus_open_system(&bus));
        for (unsigned i = 0;; i++) {
                uint64_t began = now_boot(), took;
                if (i % 2 == 0 || p->job == 0)
                        CHECK(ask(bus, "/org/primus/Master1", MASTER ".Manager", "ListJobs", true));
                else {
                        snprintf(path, sizeof(path), "/org/primus/Master1/job/%u", p->job);
                        CHECK(ask(bus, path, MASTER ".Job", "GetStatus", false));
                }
                took = now_boot() - began;
                p->n++;
                if (took > p->slowest_usec)
                        p->slowest_usec = took;
                usleep(10000);
        }
}

static void start_prober(struct swarm *s) {
        s->probe = mmap(NULL, sizeof(*s->probe), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (s->probe == MAP_FAILED)
                die(-errno, "mmap");
        s->prober = fork();
        if (s->prober < 0)
                die(-errno, "fork");
        if (s->prober == 0)
                probe_forever(s->probe);
}

/* ---- one agent */

static int send_one_way(sd_bus_message *m) {
        int r = sd_bus_message_set_expect_reply(m, false);

        return r < 0 ? r : sd_bus_send(NULL, m, NULL);
}

static int new_message(struct agent *a, const char *member, sd_bus_message **ret) {
        return sd_bus_message_new_method_call(peer_bus(a->peer), ret, NULL, LINK_PATH, LINK_INTERFACE,
                                              member);
}

static void heartbeat(struct agent *a) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;

        if (!a->registered)
                return;
        CHECK(new_message(a, "Heartbeat", &m));
        CHECK(sd_bus_message_append(m, "ta{sv}", ++a->seq, 0));
        (void)send_one_way(m);
}

static int on_tick(sd_event_source *source, uint64_t usec, void *userdata) {
        struct swarm *s = userdata;

        for (size_t i = s->tick++ % TICKS; i < s->n; i += TICKS)
                heartbeat(s->agents + i);
        CHECK(sd_event_source_set_time(source, usec + USEC_PER_SEC / TICKS));
        return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

static struct unit *find_unit(struct agent *a, const struct executor_id *id) {
        for (size_t i = 0; i < a->n_units; i++)
                if (executor_id_equal(&a->units[i].id, id))
                        return a->units + i;
        return NULL;
}

static int on_start(struct agent *a, sd_bus_message *m) {
        _cleanup_(start_order_done) struct start_order order = {};
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        uint64_t term, epoch;
        struct unit *u;

        CHECK(sd_bus_message_read(m, "tt", &term, &epoch));
        CHECK(start_order_read(m, &order));
        u = find_unit(a, &order.id);
        if (!u) {
                a->units = reallocarray(a->units, a->n_units + 1, sizeof(*a->units));
                if (!a->units)
                        die(-ENOMEM, "a unit");
                u = a->units + a->n_units++;
                *u = (struct unit){ .id = order.id, .started_real = now_real() };
                CHECK(sd_id128_randomize(&u->invocation));
                a->swarm->n_units++;
        }
        CHECK(sd_bus_message_new_method_return(m, &reply));
        CHECK(link_append_id128(reply, u->invocation));
        CHECK(sd_bus_message_append(reply, "ta{sv}", u->started_real, 0));
        (void)sd_bus_send(NULL, reply, NULL);
        return 1;
}

static int on_stop(struct agent *a, sd_bus_message *m) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *exited = NULL;
        struct exit_report e = { .result = "success",
                                 .code = "killed",
                                 .status = SIGTERM,
                                 .stop_requested = true,
                                 .memory_peak = UINT64_MAX,
                                 .cpu_usec = 1000,
                                 .io_read = UINT64_MAX,
                                 .io_write = UINT64_MAX,
                                 .oom_kills = UINT64_MAX };
        uint64_t term, epoch;
        struct unit *u;

        CHECK(sd_bus_message_read(m, "tt", &term, &epoch));
        CHECK(executor_id_read(m, &e.id));
        u = find_unit(a, &e.id);
        if (!u)
                return sd_bus_reply_method_errorf(m, LINK_ERROR_UNKNOWN, "no such unit");
        e.invocation = u->invocation;
        e.started_real = u->started_real;
        e.ended_real = now_real();
        *u = a->units[--a->n_units];
        a->swarm->n_units--;
        a->swarm->n_ended++;
        (void)sd_bus_reply_method_return(m, NULL);
        CHECK(new_message(a, "Exited", &exited));
        CHECK(exit_report_append(exited, &e));
        CHECK(link_append_extra_empty(exited));
        (void)send_one_way(exited);
        return 1;
}

static int on_message(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        struct agent *a = userdata;
        uint8_t type;

        if (sd_bus_message_get_type(m, &type) < 0 || type != SD_BUS_MESSAGE_METHOD_CALL)
                return 0;
        if (sd_bus_message_is_method_call(m, LINK_INTERFACE, "Start"))
                return on_start(a, m);
        if (sd_bus_message_is_method_call(m, LINK_INTERFACE, "Stop"))
                return on_stop(a, m);
        return sd_bus_message_get_expect_reply(m) > 0 ? sd_bus_reply_method_return(m, NULL) : 1;
}

static void refused(sd_bus_message *reply, const char *what) {
        const sd_bus_error *e = sd_bus_message_get_error(reply);

        fprintf(stderr, "bench-swarm: %s: %s\n", what, e->message ?: e->name);
        exit(EXIT_FAILURE);
}

static void dial_next(struct swarm *s);

static int on_registered(sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        struct agent *a = userdata;

        if (sd_bus_message_is_method_error(reply, NULL))
                refused(reply, "Register");
        a->registered = true;
        a->swarm->n_registered++;
        a->swarm->n_dialling--;
        dial_next(a->swarm);
        return 0;
}

static int on_welcome(sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        struct agent *a = userdata;
        const struct inventory inventory = { .hostname = a->name,
                                             .kernel = (char *)"6.1",
                                             .os = (char *)"swarm",
                                             .cpus = 4,
                                             .memory = UINT64_C(16) << 30,
                                             .port_first = 23000,
                                             .port_last = 27999,
                                             .allow_root = true,
                                             .address = a->swarm->master };

        if (sd_bus_message_is_method_error(reply, NULL))
                refused(reply, "Hello");
        CHECK(new_message(a, "Register", &m));
        CHECK(sd_bus_message_append(m, "s", "11111111111111111111111111111111"));
        CHECK(inventory_append(m, &inventory));
        CHECK(sd_bus_message_open_container(m, 'a', LINK_UNIT_SIGNATURE));
        for (size_t i = 0; i < a->n_units; i++) {
                const struct unit_report u = { .id = a->units[i].id,
                                               .state = UNIT_RUNNING,
                                               .invocation = a->units[i].invocation,
                                               .started_real = a->units[i].started_real };
                CHECK(unit_report_append(m, &u));
        }
        CHECK(sd_bus_message_close_container(m));
        CHECK(sd_bus_message_append(m, "a" LINK_EXIT_SIGNATURE "a{sv}", 0, 0));
        CHECK(sd_bus_call_async(peer_bus(a->peer), NULL, m, on_registered, a, 60 * USEC_PER_SEC));
        return 0;
}

static int on_ready(struct peer *p, void *userdata) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        struct agent *a = userdata;

        CHECK(sd_bus_add_filter(peer_bus(p), NULL, on_message, a));
        CHECK(new_message(a, "Hello", &m));
        CHECK(sd_bus_message_append(m, "qqsasa{sv}", LINK_MAJOR, LINK_MINOR, "swarm", 0, 1, "node", "s",
                                    a->name));
        CHECK(sd_bus_call_async(peer_bus(p), NULL, m, on_welcome, a, 60 * USEC_PER_SEC));
        return 0;
}

static void dial(struct agent *a);

static int on_retry(sd_event_source *s, uint64_t usec, void *userdata) {
        struct agent *a = userdata;

        a->retry = sd_event_source_disable_unref(a->retry);
        dial(a);
        return 0;
}

/* masterd knows only so many strangers at a time, and those who are slow to say who they are make way: they
 * come again, as agents do. */
static void on_ended(struct peer *p, const struct peer_end *end, void *userdata) {
        struct agent *a = userdata;

        if (a->registered || ++a->swarm->n_retries > 20 * a->swarm->n) {
                fprintf(stderr, "bench-swarm: %s: the link ended: %s\n", a->name, end->why);
                exit(EXIT_FAILURE);
        }
        peer_free(p);
        a->peer = NULL;
        CHECK(sd_event_add_time_relative(a->swarm->event, &a->retry, CLOCK_BOOTTIME,
                                         (uint64_t)rand() % USEC_PER_SEC + 200 * USEC_PER_MSEC, 0, on_retry,
                                         a));
}

static void dial(struct agent *a) {
        const struct peer_options options = { .expect_name = AUTHORITY_MASTER_NAME,
                                              .expect_role = PEER_MASTER,
                                              .handshake_usec = 60 * USEC_PER_SEC };
        struct sockaddr_storage ss;
        socklen_t size = addr_to_sockaddr(&a->swarm->master, &ss);
        int fd = socket(a->swarm->master.family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

        if (fd < 0 || (connect(fd, (struct sockaddr *)&ss, size) < 0 && errno != EINPROGRESS))
                die(-errno, "connect");
        CHECK(peer_new(a->swarm->event, fd, a->credentials, &options, on_ready, on_ended, a, &a->peer));
}

/* Has those who are not connected dial, some at a time. */
static void dial_next(struct swarm *s) {
        for (; s->next < s->n && s->n_dialling < DIALLING; s->next++)
                if (!s->agents[s->next].peer) {
                        s->n_dialling++;
                        dial(s->agents + s->next);
                }
}

static void dial_all(struct swarm *s) {
        s->next = 0;
        dial_next(s);
}

static void drop(struct agent *a) {
        peer_free(a->peer);
        a->peer = NULL;
        a->swarm->n_registered -= a->registered;
        a->registered = false;
}

/* ---- steps */

static void run_until(struct swarm *s, bool (*done)(struct swarm *s), unsigned seconds) {
        double end = bench_now() + seconds;

        while (!done(s)) {
                if (bench_now() > end)
                        die(-ETIMEDOUT, "a step took too long");
                CHECK(sd_event_run(s->event, 20 * USEC_PER_MSEC));
        }
}

static void run_for(struct swarm *s, double seconds) {
        double end = bench_now() + seconds;

        while (bench_now() < end)
                CHECK(sd_event_run(s->event, 20 * USEC_PER_MSEC));
}

static bool all_registered(struct swarm *s) {
        return s->n_registered == s->n;
}

/* The state as masterd tells it, asked now and then: the loop must go on meanwhile. */
static bool state_is(struct swarm *s, const char *wanted) {
        static double asked;
        _cleanup_free_ char *state = NULL;
        char path[64];

        if (bench_now() - asked < 0.1)
                return false;
        asked = bench_now();
        snprintf(path, sizeof(path), "/org/primus/Master1/job/%u", s->probe->job);
        CHECK(sd_bus_get_property_string(s->bus, MASTER, path, MASTER ".Job", "State", NULL, &state));
        if (strcmp(state, wanted) != 0 && (strcmp(state, "FAILED") == 0 || strcmp(state, "SUCCEEDED") == 0))
                die(-EPROTO, state);
        return strcmp(state, wanted) == 0;
}

static bool job_runs(struct swarm *s) {
        return s->n_units >= s->n && state_is(s, "RUNNING");
}

static bool job_killed(struct swarm *s) {
        return state_is(s, "KILLED");
}

static void submit(struct swarm *s) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL, *reply = NULL;
        _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
        char config[512];
        uint32_t job;

        snprintf(config, sizeof(config),
                 "{\"name\": \"swarm\", \"nodes\": \"swarm[1-%zu]\", \"role\": [{\"roleName\": \"worker\", "
                 "\"num\": %zu, "
                 "\"command\": \"train\", \"scheduleStrategy\": {\"maxReplicasPerNode\": 1}, \"failover\": "
                 "{\"commonFailoverPolicy\": {\"maxFailureTimes\": 1000}}}]}",
                 s->n, s->n);
        CHECK(sd_bus_message_new_method_call(s->bus, &m, MASTER, "/org/primus/Master1", MASTER ".Manager",
                                             "Submit"));
        CHECK(sd_bus_message_append_array(m, 'y', config, strlen(config)));
        CHECK(sd_bus_message_append(m, "a{sv}", 0));
        if (sd_bus_call(s->bus, m, 60 * USEC_PER_SEC, &error, &reply) < 0) {
                fprintf(stderr, "bench-swarm: Submit: %s\n", error.message);
                exit(EXIT_FAILURE);
        }
        CHECK(sd_bus_message_read(reply, "u", &job));
        s->probe->job = job;
}

static void kill_job(struct swarm *s) {
        char path[64];

        snprintf(path, sizeof(path), "/org/primus/Master1/job/%u", s->probe->job);
        CHECK(sd_bus_call_method(s->bus, MASTER, path, MASTER ".Job", "Kill", NULL, NULL, "s", "the end"));
}

static void join(struct swarm *s, const char *host, uint16_t port, const char *text) {
        struct join_token token;

        CHECK(join_token_parse(text, &token));
        for (size_t i = 0; i < s->n; i++) {
                _cleanup_(certificate_done) struct certificate c = {};
                _cleanup_free_ char *ca = NULL, *why = NULL;
                struct agent *a = s->agents + i;

                a->swarm = s;
                snprintf(a->name, sizeof(a->name), "swarm%zu", i + 1);
                if (join_cluster(host, port, &token, a->name, &ca, &c, &why) < 0) {
                        fprintf(stderr, "bench-swarm: %s cannot join: %s\n", a->name, why ?: "?");
                        exit(EXIT_FAILURE);
                }
                CHECK(tls_credentials_new(ca, c.cert_pem, c.key_pem, &a->credentials));
        }
}

static void report_memory(struct swarm *s, const char *when) {
        double mib = masterd_resident_mib(s), each = (mib - s->empty_mib) / (double)s->n;
        char metric[128];

        snprintf(metric, sizeof(metric), "masterd, resident, %s", when);
        bench_report("swarm", metric, mib, "MiB", 0, BENCH_NO_GOAL, 0);
        snprintf(metric, sizeof(metric), "the same, of 10,000 agents by that, %s", when);
        bench_report("swarm", metric, s->empty_mib + each * 10000, "MiB", 0, BENCH_VALUE_MAX, 64);
}

int main(int argc, char **argv) {
        struct swarm s = {};
        uint32_t port, n, pid;

        if (argc != 6 || parse_u32(argv[2], 1, UINT16_MAX, &port) < 0 ||
            parse_u32(argv[4], 10, 19000, &n) < 0 || parse_u32(argv[5], 1, INT32_MAX, &pid) < 0 ||
            addr_parse(argv[1], (uint16_t)port, &s.master) < 0) {
                fprintf(stderr, "usage: bench-swarm ADDRESS PORT TOKEN AGENTS PID-OF-MASTERD\n");
                return 2;
        }
        s.n = n;
        s.masterd = (pid_t)pid;
        s.agents = calloc(n, sizeof(*s.agents));
        if (!s.agents)
                die(-ENOMEM, "agents");
        start_prober(&s);
        CHECK(sd_event_new(&s.event));
        s.empty_mib = masterd_resident_mib(&s);

        step_begin(&s, "joining with a token, one after the other");
        join(&s, argv[1], (uint16_t)port, argv[3]);
        step_end(&s, "join by token");

        step_begin(&s, "registering, all at once");
        CHECK(sd_event_add_time_relative(s.event, &s.ticker, CLOCK_BOOTTIME, 0, 1, on_tick, &s));
        dial_all(&s);
        run_until(&s, all_registered, STEP_SECONDS);
        bench_report("swarm", "dialled again, of those who were too many at once", (double)s.n_retries, "", 0,
                     BENCH_NO_GOAL, 0);
        step_end(&s, "all dial and register");
        report_memory(&s, "all registered");

        step_begin(&s, "heartbeats");
        run_for(&s, STEADY_SECONDS);
        bench_report("swarm", "heartbeats: masterd's share of one processor",
                     100 * (masterd_cpu(&s) - s.step_cpu) / (bench_now() - s.step_began), "%", 0,
                     BENCH_NO_GOAL, 0);
        step_end(&s, "heartbeats for 20 s");

        CHECK(sd_bus_open_system(&s.bus)); /* not earlier: one that never says Hello is dropped */
        step_begin(&s, "a gang with an executor on each");
        submit(&s);
        run_until(&s, job_runs, STEP_SECONDS);
        step_end(&s, "gang, submit to all running");
        report_memory(&s, "with the gang");

        step_begin(&s, "one agent in ten drops, and comes back");
        for (size_t i = 0; i < s.n; i += 10)
                drop(s.agents + i);
        run_for(&s, 5);
        dial_all(&s);
        run_until(&s, all_registered, STEP_SECONDS);
        step_end(&s, "one in ten gone for 5 s and back");

        step_begin(&s, "the end of the job");
        kill_job(&s);
        run_until(&s, job_killed, STEP_SECONDS);
        step_end(&s, "kill to all ended");
        if (s.n_ended < s.n)
                die(-EPROTO, "an executor was not stopped");

        (void)kill(s.prober, SIGKILL);
        (void)waitpid(s.prober, NULL, 0);
        return 0;
}
