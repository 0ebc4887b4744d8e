/* SPDX-License-Identifier: Apache-2.0 */
/* The store against what it stands on: appending 256 bytes to a file and fdatasync(), in the same directory.
 * Argument: a directory on the disk to be measured. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <systemd/sd-event.h>

#include "lib/base/cleanup.h"
#include "lib/base/file.h"
#include "masterd/store/store.h"
#include "tests/bench/report.h"

#define TIMES 500u
#define MANY 20000u

static _Noreturn void die(const char *what) {
        fprintf(stderr, "bench-store: %s\n", what);
        exit(1);
}

static void on_durable(void *userdata, int error) {
        if (error < 0)
                die("commit");
        ++*(unsigned *)userdata;
}

static void wait_for(sd_event *event, const unsigned *n, unsigned want) {
        while (*n < want)
                if (sd_event_run(event, UINT64_MAX) < 0)
                        die("event loop");
}

static struct executor_record executor(uint32_t index, uint32_t attempt) {
        return (struct executor_record){ .job = 1,
                                         .role = "worker",
                                         .index = index,
                                         .attempt = attempt,
                                         .node = "n1",
                                         .ports = { 30000 },
                                         .n_ports = 1,
                                         .result = "success" };
}

/* Median of append + fdatasync, microseconds. */
static double raw(const char *directory) {
        char path[512], bytes[256] = "record";
        double took[TIMES];
        int fd;

        snprintf(path, sizeof(path), "%s/raw", directory);
        fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
        if (fd < 0 || posix_fallocate(fd, 0, TIMES * sizeof(bytes)) != 0)
                die(path);
        for (unsigned i = 0; i < TIMES; i++) {
                double begin = bench_now();
                if (write(fd, bytes, sizeof(bytes)) != sizeof(bytes) || fdatasync(fd) < 0)
                        die(path);
                took[i] = (bench_now() - begin) * 1e6;
        }
        (void)close(fd);
        return bench_percentile(took, TIMES, 50);
}

static int count(void *userdata, const struct executor_record *r) {
        ++*(unsigned *)userdata;
        return 0;
}

int main(int argc, char *argv[]) {
        char directory[256], path[300];
        double took[TIMES], begin, append, us;
        unsigned n = 0, loaded = 0;
        sd_event *event;
        struct store *s;

        snprintf(directory, sizeof(directory), "%s/bench-store.XXXXXX", argc > 1 ? argv[1] : "/var/tmp");
        if (!mkdtemp(directory))
                die(directory);
        snprintf(path, sizeof(path), "%s/primus.db", directory);
        if (sd_event_new(&event) < 0 || store_open(path, event, NULL, &s) < 0)
                die("open");
        append = raw(directory);
        bench_report("store", "append 256 B + fdatasync, p50", append, "us", 0, BENCH_NO_GOAL, 0);

        store_put_job(s, &(struct job_record){ .number = 1, .body = &(struct job_body_record){} });
        (void)store_commit(s, on_durable, &n);
        wait_for(event, &n, 1);
        for (unsigned i = 0; i < TIMES; i++) { /* one at a time: what a submit waits for */
                struct executor_record e = executor(i, 1);
                begin = bench_now();
                store_put_executor(s, &e);
                (void)store_commit(s, on_durable, &n);
                wait_for(event, &n, i + 2);
                took[i] = (bench_now() - begin) * 1e6;
        }
        us = bench_percentile(took, TIMES, 50);
        bench_report("store", "one durable record, p50", us, "us", append, BENCH_VALUE_MAX, 500);
        bench_report("store", "one durable record, p99", bench_percentile(took, TIMES, 99), "us", append,
                     BENCH_NO_GOAL, 0);

        n = 0;
        begin = bench_now();
        for (unsigned i = 0; i < MANY; i++) { /* each a batch with an effect of its own */
                struct executor_record e = executor(i, 2);
                store_put_executor(s, &e);
                (void)store_commit(s, on_durable, &n);
        }
        wait_for(event, &n, MANY);
        bench_report("store", "durable batches, 20,000 at once", MANY / (bench_now() - begin), "1/s",
                     1e6 / append, BENCH_NO_GOAL, 0);

        store_close(s);
        begin = bench_now();
        if (store_open(path, event, NULL, &s) < 0 || store_load_executors(s, count, &loaded) < 0 ||
            loaded < MANY)
                die("load");
        bench_report("store", "open and load 20,500 executors", (bench_now() - begin) * 1e3, "ms", 0,
                     BENCH_VALUE_MAX, 300);
        store_close(s);
        sd_event_unref(event);
        return remove_tree(directory) < 0;
}
