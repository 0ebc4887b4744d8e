/* SPDX-License-Identifier: Apache-2.0 */
/* What a job's data costs masterd.
 *
 *   bench-tasks memory     10^7 tasks from a million files, from the first to the last, in both orders:
 * memory and time of the pure part, with rows that are made up when they are asked for
 *   bench-tasks link DIR   assignments a second, and how long one takes; masterd's store is in DIR
 */
#include "tests/bench/bench-tasks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "masterd/data/data.h"
#include "tests/bench/report.h"

#define FILES 1000000u
#define PARTS 10u
#define MIB (UINT64_C(1) << 20)
#define HOLDERS 16u
#define WINDOW 8u /* leases of each */
#define AHEAD 4096u

static _Noreturn void die(const char *what, int r) {
        (void)fprintf(stderr, "bench-tasks: %s: %s\n", what, strerrordesc_np(-r));
        exit(1);
}

static int check(int r, const char *what) {
        if (r < 0)
                die(what, r);
        return r;
}

/* KiB, of /proc/self/status. */
static double memory(const char *field) {
        _cleanup_fclose_ FILE *f = fopen("/proc/self/status", "re");
        char line[256];
        size_t length = strlen(field);

        while (f && fgets(line, sizeof(line), f))
                if (strncmp(line, field, length) == 0 && line[length] == ':')
                        return strtod(line + length + 1, NULL);
        return 0;
}

struct sums {
        uint64_t bytes, blocks, tasks;
};

static void put_block(void *userdata, uint64_t block, const void *state, size_t state_size, const void *over,
                      size_t over_size) {
        struct sums *s = userdata;

        s->blocks++;
        s->bytes += state_size + over_size;
}

static void put_task(void *userdata, const struct task *t) {
        ((struct sums *)userdata)->tasks++;
}

static void put_state(void *userdata, const void *state, size_t size) {
        ((struct sums *)userdata)->bytes += size;
}

static void delete_one(void *userdata, uint64_t number) {
}

static const struct data_sink sink = { put_block, delete_one, put_task, delete_one, put_state };

static void make_row(uint64_t i, char path[static 64], struct data_file *ret) {
        snprintf(path, 64, "/data/2026/11/20/shard-%07u-of-%07u.txt", (unsigned)i, FILES);
        *ret = (struct data_file){ .path = path,
                                   .size = PARTS * 64 * MIB - i,
                                   .mtime_nsec = 1000000000 + i,
                                   .inode = i,
                                   .last = PARTS * 64 * MIB - i,
                                   .split = 64 * MIB };
}

static void fill(struct data *d) {
        static struct data_file rows[FILES_ROWS_MAX];
        static char paths[FILES_ROWS_MAX][64];
        uint32_t source, n;
        uint64_t first;

        while (data_missing(d, &source, &first, &n)) {
                for (uint32_t i = 0; i < n; i++)
                        make_row(first + i, paths[i], rows + i);
                check(data_filled(d, source, first, rows, n), "rows");
        }
}

static uint64_t take_turns(struct data *d, struct sums *s, size_t *ret_most) {
        struct task *leases[HOLDERS] = {};
        unsigned held[HOLDERS] = {};
        uint64_t done = 0;
        enum data_event event;

        for (uint64_t turn = 0; !data_over(d); turn++) {
                unsigned h = (unsigned)(turn * 7 % HOLDERS);
                int r = DATA_READY;
                /* As masterd: filled up when it is half empty, and only then. */
                while (turn % (AHEAD / 2 / WINDOW) == 0 && (r = data_prepare(d, AHEAD)) == DATA_MISSING)
                        fill(d);
                check(r, "tasks");
                if (data_urgent(d) || turn % 4096 == 0)
                        data_durable(d, data_flush(d, &sink, s));
                if (turn % 1000 == 0)
                        *ret_most = MAX(*ret_most, data_memory(d));
                while (held[h] > 0) {
                        const struct task *t = leases[h];
                        struct task_progress p = { .task = t->id,
                                                   .read = t->end,
                                                   .acked = t->end,
                                                   .records = 1000,
                                                   .end = TASK_TO_END,
                                                   .state = TASK_DONE,
                                                   .error = "" };
                        done += (uint64_t)data_report(d, data_task(d, p.task), leases + h, &p, turn, &event);
                        held[h]--;
                }
                while (held[h] < WINDOW && data_lease(d, d, leases + h, turn))
                        held[h]++;
        }
        return done;
}

static void run_through(enum input_order order) {
        const struct data_config c = { .n_sources = 1,
                                       .order = order,
                                       .seed = 42,
                                       .epochs = 1,
                                       .sample_ppm = 1000000,
                                       .max_attempts = 3 };
        const char *name = order == ORDER_SHUFFLE ? "shuffle" : "listed";
        double before = memory("VmRSS"), begin = bench_cpu(), listed;
        char path[64], metric[128];
        struct data_file f;
        struct sums s = {};
        struct data *d;
        size_t most = 0;
        uint64_t done;

        check(data_new(&c, &d), "data");
        for (uint64_t i = 0; i < FILES; i++) {
                make_row(i, path, &f);
                check(data_add(d, 0, &f), "file");
        }
        data_scanned(d, 0);
        listed = bench_cpu();
        done = take_turns(d, &s, &most);
        if (done != (uint64_t)FILES * PARTS)
                die("not all tasks were done", -EUCLEAN);
        snprintf(metric, sizeof(metric), "10^7 tasks, %s: resident growth, most", name);
        bench_report("tasks", metric, (memory("VmHWM") - before) / 1024, "MiB", 0, BENCH_VALUE_MAX, 8);
        snprintf(metric, sizeof(metric), "10^7 tasks, %s: memory by its own count, most", name);
        bench_report("tasks", metric, (double)most / (double)MIB, "MiB", 0, BENCH_VALUE_MAX, 8);
        snprintf(metric, sizeof(metric), "10^7 tasks, %s: files listed, processor's time", name);
        bench_report("tasks", metric, FILES / (listed - begin), "1/s", 0, BENCH_NO_GOAL, 0);
        snprintf(metric, sizeof(metric), "10^7 tasks, %s: made, leased and done, no link, processor's time",
                 name);
        bench_report("tasks", metric, (double)done / (bench_cpu() - listed), "1/s", 0, BENCH_NO_GOAL, 0);
        snprintf(metric, sizeof(metric), "10^7 tasks, %s: bytes for the disk by task", name);
        bench_report("tasks", metric, (double)s.bytes / (double)done, "bytes", 0, BENCH_NO_GOAL, 0);
        data_free(d);
}

/* In a process of its own: the most that was ever resident is of this alone. */
static void apart(void (*run)(enum input_order order), enum input_order order) {
        pid_t parent = getpid(), pid = fork();
        int status;

        if (pid == 0) {
                bench_die_with(parent);
                run(order);
                exit(0);
        }
        if (pid < 0 || waitpid(pid, &status, 0) < 0)
                die("process", -errno);
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
                exit(1);
}

int main(int argc, char *argv[]) {
        const char *part = argc > 1 ? argv[1] : "";

        bench_die_with(getppid());
        if (strcmp(part, "link") == 0)
                bench_link(argc > 2 ? argv[2] : "/var/tmp");
        else if (strcmp(part, "memory") == 0) {
                apart(run_through, ORDER_LISTED);
                apart(run_through, ORDER_SHUFFLE);
        } else {
                (void)fprintf(stderr, "usage: bench-tasks memory | link [DIRECTORY]\n");
                return 2;
        }
        return 0;
}
