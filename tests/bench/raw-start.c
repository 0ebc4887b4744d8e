/* SPDX-License-Identifier: Apache-2.0 */
/* What systemd alone takes to start units, on one or more hosts at once: StartTransientUnit, until JobRemoved
 * says that the command runs. The units have exactly the properties that agentd gives them, made by the same
 * code, or (--bare) none but a command. Private files and work directories are made beforehand.
 *
 *   raw-start [--bare] [--window N] [--rounds N] [--count N] [--vcores MILLI] [--memory MIB] NODE=LEADER...
 *
 * Runs outside the hosts, as root; LEADER is the process id of a host's PID 1. A round starts count units on
 * every host, at most window of them unanswered on each, and stops them again, which is not measured. Prints
 * {"p50_us":, "p99_us":, "rate":} over the rounds: the time of a whole round, and units a second. */
#include <getopt.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/file.h"
#include "lib/base/parse.h"
#include "lib/base/unitname.h"
#include "lib/unit/files.h"
#include "starter/files/private.h"
#include "starter/unit/builder.h"
#include "tests/bench/report.h"

#define SYSTEMD "org.freedesktop.systemd1", "/org/freedesktop/systemd1", "org.freedesktop.systemd1.Manager"
#define HOSTS_MAX 64u
#define JOB 4000000000u /* no job of masterd has that number */
#define OWNER 1000u

struct host {
        const char *node;
        char root[64];
        char *work;
        sd_bus *bus;
        unsigned next, pending, started, stopped;
};

static struct {
        bool bare;
        uint32_t window, rounds, count, vcores, memory;
        struct host hosts[HOSTS_MAX];
        size_t n_hosts;
        sd_event *event;
        sd_id128_t uid;
        uint32_t round; /* part of the names: agentd tidies up behind an ended unit, and must not take the
                           next one's files */
} state = { .window = 1, .rounds = 20, .count = 1, .vcores = 1000, .memory = 1024 };

static _Noreturn void die(const char *what, int r) {
        fprintf(stderr, "raw-start: %s: %s\n", what, strerrordesc_np(-r));
        exit(1);
}

static int must(int r, const char *what) {
        if (r < 0)
                die(what, r);
        return r;
}

static struct start_order order(unsigned index) {
        static char *argv[] = { (char *)"/bin/sleep", (char *)"infinity", NULL }, *none[] = { NULL };
        struct start_order o = {
                .id = { .job_uid = state.uid,
                        .job = JOB,
                        .role = "w",
                        .index = index,
                        .attempt = state.round },
                .kind = ORDER_TRAINER,
                .uid = OWNER,
                .argv = argv,
                .cwd = (char *)"",
                .env = none,
                .identity = none,
                .cpu_usec_per_sec = (uint64_t)state.vcores * 1000,
                .memory_max = (uint64_t)state.memory << 20,
                .grace_usec = 10000000,
                .output = (char *)"",
        };
        return o;
}

static void append_bare(sd_bus_message *m, const char *unit) {
        must(sd_bus_message_append(m, "ssa(sv)a(sa(sv))", unit, "fail", 2, "Type", "s", "exec", "ExecStart",
                                   "a(sasb)", 1, "/bin/sleep", 2, "/bin/sleep", "infinity", 0, 0),
             "message");
}

static void start_one(struct host *h);

static int on_start(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        const sd_bus_error *e = sd_bus_message_get_error(m);

        if (e) {
                fprintf(stderr, "raw-start: StartTransientUnit: %s\n", e->message);
                exit(1);
        }
        return 0;
}

static void start_one(struct host *h) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        _cleanup_free_ char *why = NULL;
        char unit[UNIT_NAME_MAX];
        unsigned index = h->next++;

        executor_unit_name(JOB, "w", index, state.round, unit);
        must(sd_bus_message_new_method_call(h->bus, &m, SYSTEMD, "StartTransientUnit"), "message");
        if (state.bare)
                append_bare(m, unit);
        else {
                struct start_order o = order(index);
                struct unit_context c = { .node = h->node, .term = 1, .directory = h->work, .work = h->work };
                must(unit_build(m, &o, &c, &why), why ?: "unit");
        }
        must(sd_bus_call_async(h->bus, NULL, m, on_start, h, 0), "StartTransientUnit");
        h->pending++;
}

static int on_job_removed(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        struct host *h = userdata;
        const char *unit, *result;
        char prefix[UNIT_NAME_MAX];
        uint32_t id;

        must(sd_bus_message_read(m, "uoss", &id, NULL, &unit, &result), "JobRemoved");
        snprintf(prefix, sizeof(prefix), "primus-%u-w-", JOB);
        if (strncmp(unit, prefix, strlen(prefix)) != 0)
                return 0;
        if (strcmp(result, "done") != 0) {
                fprintf(stderr, "raw-start: %s on %s: %s\n", unit, h->node, result);
                exit(1);
        }
        if (h->started < state.count) {
                h->started++;
                h->pending--;
                if (h->next < state.count)
                        start_one(h);
        } else
                h->stopped++;
        return 0;
}

static bool all(unsigned started, unsigned stopped) {
        for (size_t i = 0; i < state.n_hosts; i++)
                if (state.hosts[i].started < started || state.hosts[i].stopped < stopped)
                        return false;
        return true;
}

static void run_until(unsigned started, unsigned stopped) {
        while (!all(started, stopped))
                must(sd_event_run(state.event, UINT64_MAX), "event loop");
}

static void prepare(struct host *h, unsigned index) {
        char unit[UNIT_NAME_MAX];

        executor_unit_name(JOB, "w", index, state.round, unit);
        must(private_create(h->root, unit, OWNER, "A=\"1\"\n", 6, NULL, 0), "private files");
}

static void forget(struct host *h, unsigned index) {
        char unit[UNIT_NAME_MAX], path[256];

        executor_unit_name(JOB, "w", index, state.round, unit);
        (void)private_remove(h->root, unit);
        snprintf(path, sizeof(path), "%s/run/primus/exits/%s", h->root, unit);
        (void)unlink(path);
}

static double run_round(void) {
        double begin, took;

        state.round++;
        for (size_t i = 0; i < state.n_hosts; i++) {
                struct host *h = &state.hosts[i];
                h->next = h->pending = h->started = h->stopped = 0;
                for (unsigned k = 0; k < state.count && !state.bare; k++)
                        prepare(h, k);
        }
        begin = bench_now();
        for (uint32_t w = 0; w < state.window && w < state.count; w++)
                for (size_t i = 0; i < state.n_hosts; i++)
                        start_one(&state.hosts[i]);
        run_until(state.count, 0);
        took = bench_now() - begin;
        for (size_t i = 0; i < state.n_hosts; i++)
                for (unsigned k = 0; k < state.count; k++) {
                        char unit[UNIT_NAME_MAX];
                        executor_unit_name(JOB, "w", k, state.round, unit);
                        must(sd_bus_call_method_async(state.hosts[i].bus, NULL, SYSTEMD, "StopUnit", NULL,
                                                      NULL, "ss", unit, "replace"),
                             "StopUnit");
                }
        run_until(state.count, state.count);
        for (size_t i = 0; i < state.n_hosts; i++)
                for (unsigned k = 0; k < state.count && !state.bare; k++)
                        forget(&state.hosts[i], k);
        return took;
}

static void open_host(struct host *h, char *arg) {
        char *equals = strchr(arg, '='), address[128];
        uint32_t leader;

        if (!equals || parse_u32(equals + 1, 1, INT32_MAX, &leader) < 0)
                die(arg, -EINVAL);
        *equals = 0;
        h->node = arg;
        snprintf(h->root, sizeof(h->root), "/proc/%u/root", leader);
        snprintf(address, sizeof(address), "unix:path=%s/run/dbus/system_bus_socket", h->root);
        must(sd_bus_new(&h->bus), "bus");
        must(sd_bus_set_address(h->bus, address), "bus");
        must(sd_bus_set_bus_client(h->bus, true), "bus");
        must(sd_bus_start(h->bus), address);
        must(sd_bus_attach_event(h->bus, state.event, 0), "bus");
        must(sd_bus_call_method(h->bus, SYSTEMD, "Subscribe", NULL, NULL, NULL), "Subscribe");
        must(sd_bus_match_signal(h->bus, NULL, SYSTEMD, "JobRemoved", on_job_removed, h), "match");
        h->work = work_path("", JOB, state.uid);
        if (!h->work || work_create(h->root, JOB, state.uid, OWNER) < 0)
                die("work directory", -ENOENT);
}

static void parse(int argc, char *argv[]) {
        static const struct option options[] = {
                { "bare", no_argument, NULL, 'b' },
                { "window", required_argument, NULL, 'w' },
                { "rounds", required_argument, NULL, 'r' },
                { "count", required_argument, NULL, 'c' },
                { "vcores", required_argument, NULL, 'v' },
                { "memory", required_argument, NULL, 'm' },
                {},
        };
        int c;

        while ((c = getopt_long(argc, argv, "", options, NULL)) >= 0) {
                uint32_t *n = c == 'w'   ? &state.window
                              : c == 'r' ? &state.rounds
                              : c == 'c' ? &state.count
                              : c == 'v' ? &state.vcores
                                         : &state.memory;
                if (c == '?')
                        exit(2);
                if (c == 'b')
                        state.bare = true;
                else if (parse_u32(optarg, c == 'v' || c == 'm' ? 0 : 1, 100000, n) < 0)
                        die(optarg, -EINVAL);
        }
        if (optind == argc || argc - optind > (int)HOSTS_MAX)
                die("NODE=LEADER...", -EINVAL);
        for (; optind < argc; optind++)
                open_host(&state.hosts[state.n_hosts++], argv[optind]);
}

int main(int argc, char *argv[]) {
        double took[1000], sum = 0;
        json_t *o;

        must(sd_event_default(&state.event), "event loop");
        must(sd_id128_randomize(&state.uid), "uid");
        parse(argc, argv);
        state.rounds = MIN(state.rounds, (uint32_t)ELEMENTSOF(took));
        (void)run_round(); /* what is only slow once: slices, caches */
        for (uint32_t i = 0; i < state.rounds; i++)
                sum += took[i] = run_round();
        o = json_pack("{s:f, s:f, s:f}", "p50_us", bench_percentile(took, state.rounds, 50) * 1e6, "p99_us",
                      bench_percentile(took, state.rounds, 99) * 1e6, "rate",
                      (double)state.n_hosts * state.count * state.rounds / sum);
        if (!o || json_dumpf(o, stdout, JSON_COMPACT) < 0)
                return 1;
        json_decref(o);
        for (size_t i = 0; i < state.n_hosts; i++) {
                char path[320];
                snprintf(path, sizeof(path), "%s%s", state.hosts[i].root, state.hosts[i].work);
                (void)remove_tree(path);
                free(state.hosts[i].work);
                sd_bus_unref(state.hosts[i].bus);
        }
        sd_event_unref(state.event);
        return 0;
}
