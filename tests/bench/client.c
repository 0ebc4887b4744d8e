/* SPDX-License-Identifier: Apache-2.0 */
/* A client of masterd that measures; runs on the host of masterd as an ordinary user.
 *
 *   client call CONFIG                connects, submits, exits: what `primusctl submit` cannot do without
 *   client spawn N -- CMD...          the time from starting CMD to its end, N times
 *   client start N CONFIG             submit -> answered, and submit -> RUNNING, N times; the job is killed
 * each time client drain N WINDOW CONFIG      N jobs to their end, at most WINDOW of them at once
 *
 * Prints one JSON object: {"p50_us":, "p99_us":, ...}. */
#include <fcntl.h>
#include <jansson.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <systemd/sd-bus.h>

#include "lib/base/cleanup.h"
#include "lib/base/file.h"
#include "lib/base/parse.h"
#include "tests/bench/report.h"

#define MASTER "org.primus.Master1", "/org/primus/Master1", "org.primus.Master1.Manager"
#define TIMES_MAX 1000u
#define WAIT_SEC 300

extern char **environ;

static _Noreturn void die(const char *what, int r) {
        fprintf(stderr, "client: %s: %s\n", what, strerrordesc_np(-r));
        exit(1);
}

static int must(int r, const char *what) {
        if (r < 0)
                die(what, r);
        return r;
}

static uint32_t number(const char *s, uint32_t max) {
        uint32_t n;

        must(parse_u32(s, 1, max, &n), s);
        return n;
}

static sd_bus *open_bus(void) {
        sd_bus *bus;

        must(sd_bus_open_system(&bus), "system bus");
        return bus;
}

static char *read_config(const char *path, size_t *ret_size) {
        char *text;

        must(read_file(path, 4 << 20, &text, ret_size), path);
        return text;
}

/* Returns the job's number. */
static uint32_t submit(sd_bus *bus, const char *config, size_t size) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL, *reply = NULL;
        _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
        uint32_t n;

        must(sd_bus_message_new_method_call(bus, &m, MASTER, "Submit"), "message");
        must(sd_bus_message_append_array(m, 'y', config, size), "message");
        must(sd_bus_message_append(m, "a{sv}", 0), "message");
        if (sd_bus_call(bus, m, 0, &error, &reply) < 0) {
                fprintf(stderr, "client: Submit: %s\n", error.message);
                exit(1);
        }
        must(sd_bus_message_read(reply, "u", &n), "answer");
        return n;
}

static void kill_job(sd_bus *bus, uint32_t job) {
        char path[64];

        snprintf(path, sizeof(path), "/org/primus/Master1/job/%u", job);
        (void)sd_bus_call_method(bus, "org.primus.Master1", path, "org.primus.Master1.Job", "Kill", NULL,
                                 NULL, "s", "bench");
}

/* What the signals say of the job that is waited for. */
struct watch {
        uint32_t job; /* 0: any */
        bool running, ended, failed;
        double running_at;
        unsigned n_ended;
};

static int on_changed(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        const char *path = sd_bus_message_get_path(m), *slash = strrchr(path, '/'), *name, *value;
        struct watch *w = userdata;
        uint32_t job;
        int r;

        if (parse_u32(slash + 1, 1, UINT32_MAX, &job) < 0 || sd_bus_message_read(m, "s", &name) < 0 ||
            sd_bus_message_enter_container(m, 'a', "{sv}") < 0)
                return 0;
        while ((r = sd_bus_message_enter_container(m, 'e', "sv")) > 0) {
                if (sd_bus_message_read(m, "s", &name) < 0)
                        return 0;
                if (strcmp(name, "State") == 0 && sd_bus_message_read(m, "v", "s", &value) >= 0) {
                        bool over = strcmp(value, "SUCCEEDED") == 0 || strcmp(value, "FAILED") == 0 ||
                                    strcmp(value, "KILLED") == 0;
                        w->n_ended += over;
                        if (job == w->job || w->job == 0) {
                                if (!w->running && (strcmp(value, "RUNNING") == 0 || over)) {
                                        w->running = true;
                                        w->running_at = bench_now();
                                }
                                w->ended = w->ended || over;
                                w->failed = w->failed || strcmp(value, "FAILED") == 0;
                        }
                } else if (strcmp(name, "State") != 0 && sd_bus_message_skip(m, "v") < 0)
                        return 0;
                if (sd_bus_message_exit_container(m) < 0)
                        return 0;
        }
        return 0;
}

static void watch_jobs(sd_bus *bus, struct watch *w) {
        must(sd_bus_add_match(
                     bus, NULL,
                     "type='signal',sender='org.primus.Master1',interface='org.freedesktop.DBus.Properties',"
                     "member='PropertiesChanged',path_namespace='/org/primus/Master1/job'",
                     on_changed, w),
             "match");
}

static void process(sd_bus *bus) {
        int r = must(sd_bus_process(bus, NULL), "bus");

        if (r == 0 && must(sd_bus_wait(bus, (uint64_t)WAIT_SEC * 1000000), "bus") == 0)
                die("nothing happens", -ETIMEDOUT);
}

static void print(double *a, size_t n, const char *name, json_t *o) {
        char key[64];

        snprintf(key, sizeof(key), "%sp50_us", name);
        json_object_set_new(o, key, json_real(bench_percentile(a, n, 50) * 1e6));
        snprintf(key, sizeof(key), "%sp99_us", name);
        json_object_set_new(o, key, json_real(bench_percentile(a, n, 99) * 1e6));
}

static int finish(json_t *o) {
        int r = json_dumpf(o, stdout, JSON_COMPACT) < 0 || fflush(stdout) != 0;

        json_decref(o);
        return r;
}

static int run_start(uint32_t times, const char *path) {
        _cleanup_(sd_bus_flush_close_unrefp) sd_bus *bus = open_bus();
        _cleanup_free_ char *config = NULL;
        double answered[TIMES_MAX], running[TIMES_MAX];
        struct watch w = {};
        size_t size;
        json_t *o;

        config = read_config(path, &size);
        watch_jobs(bus, &w);
        for (uint32_t i = 0; i <= times; i++) { /* the first is not counted */
                uint32_t k = i > 0 ? i - 1 : 0;
                double begin = bench_now();
                w = (struct watch){}; /* nobody else submits: any job is ours, also before its number is known
                                       */
                w.job = submit(bus, config, size);
                answered[k] = bench_now() - begin;
                while (!w.running)
                        process(bus);
                running[k] = w.running_at - begin;
                if (w.ended) {
                        fprintf(stderr, "client: job %u ended by itself\n", w.job);
                        exit(1);
                }
                kill_job(bus, w.job);
                while (!w.ended)
                        process(bus);
        }
        o = json_object();
        print(answered, times, "submit_", o);
        print(running, times, "", o);
        return finish(o);
}

static int run_drain(uint32_t jobs, uint32_t window, const char *path) {
        _cleanup_(sd_bus_flush_close_unrefp) sd_bus *bus = open_bus();
        _cleanup_free_ char *config = NULL;
        struct watch w = {};
        uint32_t submitted = 0;
        double begin;
        size_t size;

        config = read_config(path, &size);
        watch_jobs(bus, &w);
        begin = bench_now();
        while (w.n_ended < jobs) {
                while (submitted < jobs && submitted < w.n_ended + window) {
                        (void)submit(bus, config, size);
                        submitted++;
                }
                process(bus);
        }
        return finish(json_pack("{s:f, s:b}", "seconds", bench_now() - begin, "failed", w.failed));
}

static int run_spawn(uint32_t times, char *argv[]) {
        double took[TIMES_MAX];
        json_t *o = json_object();

        for (uint32_t i = 0; i <= times; i++) {
                double begin = bench_now();
                posix_spawn_file_actions_t actions;
                int status, r;
                pid_t pid;
                (void)posix_spawn_file_actions_init(&actions);
                (void)posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
                r = posix_spawnp(&pid, argv[0], &actions, NULL, argv, environ);
                if (r != 0)
                        die(argv[0], -r);
                if (waitpid(pid, &status, 0) != pid || status != 0) {
                        fprintf(stderr, "client: %s failed\n", argv[0]);
                        exit(1);
                }
                (void)posix_spawn_file_actions_destroy(&actions);
                took[i > 0 ? i - 1 : 0] = bench_now() - begin;
        }
        print(took, times, "", o);
        return finish(o);
}

static int run_call(const char *path) {
        _cleanup_(sd_bus_flush_close_unrefp) sd_bus *bus = open_bus();
        _cleanup_free_ char *config = NULL;
        size_t size;

        config = read_config(path, &size);
        printf("%u\n", submit(bus, config, size));
        return 0;
}

int main(int argc, char *argv[]) {
        if (argc == 3 && strcmp(argv[1], "call") == 0)
                return run_call(argv[2]);
        if (argc == 4 && strcmp(argv[1], "start") == 0)
                return run_start(number(argv[2], TIMES_MAX), argv[3]);
        if (argc == 5 && strcmp(argv[1], "drain") == 0)
                return run_drain(number(argv[2], 1000000), number(argv[3], 1000), argv[4]);
        if (argc > 4 && strcmp(argv[1], "spawn") == 0 && strcmp(argv[3], "--") == 0)
                return run_spawn(number(argv[2], TIMES_MAX), argv + 4);
        fprintf(stderr, "usage: client call|start|drain|spawn ..., see the source\n");
        return 2;
}
