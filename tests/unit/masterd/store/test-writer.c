/* SPDX-License-Identifier: Apache-2.0 */
/* What is left after a crash and on a full disk: everything whose effect was seen, and no part of a batch. */
#include "masterd/store/store.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/file.h"
#include "lib/base/log.h"

#define BATCH 5 /* records in a batch */

static char directory[32], path[64];

static int setup(void **state) {
        strcpy(directory, "/tmp/test-writer.XXXXXX");
        if (!mkdtemp(directory))
                return -1;
        snprintf(path, sizeof(path), "%s/primus.db", directory);
        return 0;
}

static int teardown(void **state) {
        return remove_tree(directory);
}

/* Batch number b: an event with it, and BATCH - 1 executors, of attempt b. */
static void put_batch(struct store *s, uint32_t b) {
        store_put_event(s, &(struct event_record){ .job = 1, .seq = b, .kind = "batch", .text = "x" });
        for (uint32_t i = 1; i < BATCH; i++)
                store_put_executor(
                        s, &(struct executor_record){ .job = 1, .role = "r", .index = i, .attempt = b });
}

struct seen {
        int fd;
        uint32_t next;
        unsigned outstanding;
};

static void tell(void *userdata, int error) {
        struct seen *s = userdata;

        if (error == 0)
                (void)write_all(s->fd, &s->next, sizeof(s->next));
        s->next++;
        s->outstanding--;
}

/* Writes batches as fast as it can, and tells of each that is durable, until it is killed. */
static _Noreturn void child(int fd, uint32_t first) {
        struct seen seen = { .fd = fd, .next = first };
        struct store *s;
        sd_event *event;

        if (sd_event_new(&event) < 0 || store_open(path, event, NULL, &s) < 0)
                _exit(1);
        for (uint32_t b = first;; b++) {
                put_batch(s, b);
                if (store_commit(s, tell, &seen) < 0)
                        _exit(2);
                seen.outstanding++;
                while (seen.outstanding > b % 40) /* sometimes one at a time, sometimes many */
                        if (sd_event_run(event, UINT64_MAX) < 0)
                                _exit(3);
        }
}

struct found {
        uint32_t executors, attempt, partial, highest;
};

static int on_executor(void *userdata, const struct executor_record *r) {
        struct found *f = userdata;

        f->executors++;
        f->highest = MAX(f->highest, r->attempt);
        return 0;
}

static void test_killed(void **state) {
        unsigned seed = (unsigned)now_boot();
        uint32_t last = 0;

        print_message("seed %u\n", seed);
        srand(seed);
        for (int round = 0; round < 15; round++) {
                int fds[2], status;
                uint32_t b, told = last;
                uint64_t events;
                struct found found = {};
                struct store *s;
                sd_event *event;
                pid_t pid;

                assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
                pid = fork();
                if (pid == 0)
                        child(fds[1], last + 1);
                (void)close(fds[1]);
                /* Killed a moment after some batch was told of; what it told is still in the pipe. */
                for (int n = rand() % 200; n >= 0; n--)
                        if (read(fds[0], &b, sizeof(b)) == sizeof(b))
                                told = b;
                struct timespec ts = { 0, rand() % 3000000 };
                (void)nanosleep(&ts, NULL);
                (void)kill(pid, SIGKILL);
                assert_int_equal(waitpid(pid, &status, 0), pid);
                assert_true(WIFSIGNALED(status));
                while (read(fds[0], &b, sizeof(b)) == sizeof(b))
                        told = b;
                (void)close(fds[0]);

                assert_int_equal(sd_event_new(&event), 0);
                assert_int_equal(store_open(path, event, NULL, &s), 0);
                if (round == 0)
                        store_put_job(
                                s, &(struct job_record){ .number = 1, .body = &(struct job_body_record){} });
                assert_int_equal(store_load_last_event(s, 1, &events), 0);
                assert_true(events >= told); /* all that was told is there ... */
                last = (uint32_t)events;
                if (round > 0) {
                        assert_int_equal(store_load_executors(s, on_executor, &found), 0);
                        assert_int_equal(found.executors, last * (BATCH - 1)); /* ... and batches are whole */
                        assert_int_equal(found.highest, last);
                }
                assert_int_equal(store_commit(s, NULL, NULL), 0);
                store_close(s);
                sd_event_unref(event);
        }
        assert_true(last > 100);
}

struct outcome {
        unsigned good, bad;
        int error;
        bool good_after_bad;
};

static void on_outcome(void *userdata, int error) {
        struct outcome *o = userdata;

        if (error == 0) {
                o->good++;
                o->good_after_bad = o->good_after_bad || o->bad > 0;
        } else {
                o->bad++;
                o->error = error;
        }
}

/* cmocka's assertions would jump into the parent's list of tests. */
#define CHECK(x)                                                                                             \
        do                                                                                                   \
                if (!(x)) {                                                                                  \
                        fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #x);                    \
                        _exit(1);                                                                            \
                }                                                                                            \
        while (0)

/* In a child, for the limit on file size is the process's. */
static int full_disk(uint64_t retry_usec, bool lift) {
        struct store_limits limits = { .queue_bytes = 64 << 20,
                                       .queue_records = 100000,
                                       .retry_usec = retry_usec };
        struct rlimit limit = { 1 << 20, RLIM_INFINITY };
        struct outcome o = {};
        struct store_stats stats;
        struct store *s;
        sd_event *event;
        unsigned n = 0;
        uint64_t events;

        (void)signal(SIGXFSZ, SIG_IGN);
        CHECK(sd_event_new(&event) == 0);
        CHECK(store_open(path, event, &limits, &s) == 0);
        CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
        while (o.bad == 0 && n < 100000) {
                put_batch(s, ++n);
                CHECK(store_commit(s, on_outcome, &o) == 0);
                while (o.good + o.bad + 10 < n) {
                        CHECK(sd_event_run(event, 10 * USEC_PER_MSEC) >= 0);
                        if (lift && store_full(s)) { /* somebody makes room */
                                store_get_stats(s, &stats);
                                CHECK(stats.trouble < 0);
                                limit.rlim_cur = RLIM_INFINITY;
                                CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
                                while (o.good < n)
                                        CHECK(sd_event_run(event, UINT64_MAX) >= 0);
                                CHECK(!(store_full(s)));
                                CHECK(o.bad == 0);
                                store_close(s);
                                sd_event_unref(event);
                                return 0;
                        }
                }
        }
        CHECK(!(lift));
        CHECK(o.bad > 0);
        put_batch(s, ++n); /* room or not, nothing is written behind a hole */
        limit.rlim_cur = RLIM_INFINITY;
        CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
        CHECK(store_commit(s, on_outcome, &o) == 0);
        CHECK(store_full(s));
        store_close(s);
        CHECK(o.good + o.bad == n);
        CHECK(!(o.good_after_bad));
        CHECK(o.error == -ENOSPC || o.error == -EFBIG);

        CHECK(store_open(path, event, NULL, &s) == 0);
        CHECK(store_load_last_event(s, 1, &events) == 0);
        CHECK(events == o.good);
        store_close(s);
        sd_event_unref(event);
        return 0;
}

static void run_in_child(uint64_t retry_usec, bool lift) {
        int status;
        pid_t pid = fork();

        if (pid == 0)
                _exit(full_disk(retry_usec, lift));
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void test_full_disk(void **state) {
        run_in_child(0, false);
}

static void test_room_again(void **state) {
        run_in_child(60 * USEC_PER_SEC, true);
}

static void test_log_is_bounded(void **state) {
        struct outcome o = {};
        char wal[80];
        struct stat st;
        struct store *s;
        sd_event *event;

        snprintf(wal, sizeof(wal), "%s-wal", path);
        assert_int_equal(sd_event_new(&event), 0);
        assert_int_equal(store_open(path, event, NULL, &s), 0);
        for (unsigned n = 1; n <= 4000; n++) {
                put_batch(s, n);
                assert_int_equal(store_commit(s, on_outcome, &o), 0);
                while (o.good + 2 < n)
                        assert_true(sd_event_run(event, UINT64_MAX) >= 0);
        }
        assert_int_equal(stat(wal, &st), 0);
        assert_true(st.st_size < 48 << 20);
        store_close(s);
        assert_int_not_equal(stat(wal, &st), 0); /* a clean end leaves none */
        sd_event_unref(event);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_killed, setup, teardown),
                cmocka_unit_test_setup_teardown(test_full_disk, setup, teardown),
                cmocka_unit_test_setup_teardown(test_room_again, setup, teardown),
                cmocka_unit_test_setup_teardown(test_log_is_bounded, setup, teardown),
        };
        log_set_level(LOG_CRIT);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
