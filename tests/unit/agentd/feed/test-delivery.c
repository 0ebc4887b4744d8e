/* SPDX-License-Identifier: Apache-2.0 */
/* Every way of delivery, from the program itself to a trainer that uses libprimus. */
#include "tests/kit/feed-host.h"

#include <poll.h>

#include "lib/primus/client-wire.h"
#include "lib/primus/ring.h"

static const char *const modes[] = { "stdin", "ring", "descriptor" };

/* The job's input, as primus-executor is told it. */
static void describe(struct state *s, const char *mode, const char *ack, const char *more) {
        _cleanup_free_ char *path = NULL, *text = NULL;
        int n;

        assert_true(asprintf(&path, "%s/input.json", s->directory) > 0);
        n = asprintf(&text,
                     "{\"inputManager\":{\"fileConfig\":{\"inputs\":[{\"name\":\"i\",\"spec\":{"
                     "\"pathPattern\":\"/d\","
                     "\"textInput\":{}}}]}},\"input\":{\"mode\":\"%s\",\"ack\":\"%s\",\"slots\":4,"
                     "\"slotSize\":65536%s}}",
                     mode, ack, more);
        assert_true(n > 0);
        assert_int_equal(write_file_atomic(path, text, (size_t)n, 0644, false), 0);
        setenv("PRIMUS_INPUT", path, 1);
        setenv("PRIMUS_JOB_UID", "0123456789abcdef0123456789abcdef", 1);
        if (strcmp(mode, "stdin") != 0)
                s->unit.pipe_size = 0;
}

static int clear(void **state) {
        static const char *const names[] = { "PRIMUS_INPUT",    "TRAINER_DIE",       "TRAINER_DIE_SAVED",
                                             "TRAINER_EVERY",   "TRAINER_FAIL",      "TRAINER_CHECKPOINT",
                                             "TRAINER_WORKERS", "TRAINER_SLOW_USEC", "TRAINER_FAIL_ONCE",
                                             "TRAINER_AWAITS" };

        for (size_t i = 0; i < ELEMENTSOF(names); i++)
                unsetenv(names[i]);
        return setup(state);
}

static void set_number(const char *name, unsigned n) {
        char text[16];

        snprintf(text, sizeof(text), "%u", n);
        setenv(name, text, 1);
}

/* n lines "TASK-LINE" each. */
static void add_lines(struct state *s, unsigned n) {
        _cleanup_free_ char *text = malloc((size_t)n * 16 + 1);
        size_t size = 0;

        for (unsigned i = 0; i < n; i++)
                size += (size_t)sprintf(text + size, "%zu-%u\n", s->n, i);
        add_file(s, text, size, 0);
}

static void train(struct state *s) {
        char script[256];

        snprintf(script, sizeof(script), "exec %s $DIR/out", getenv("FED_TRAINER"));
        start(s, script);
}

/* How often each line of each task came. */
struct ledger {
        unsigned *seen[TASKS];
        unsigned n[TASKS];
};

static void ledger_read(struct state *s, struct ledger *l, const unsigned *lines) {
        size_t size;
        _cleanup_free_ char *text = output(s, &size);

        for (size_t i = 0; i < s->n; i++) {
                l->n[i] = lines ? lines[i] : 0;
                l->seen[i] = calloc(l->n[i] + 1, sizeof(unsigned));
        }
        for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
                unsigned task, number;

                if (sscanf(line, "%u-%u", &task, &number) != 2)
                        continue;
                assert_true(task < s->n && number < l->n[task]);
                l->seen[task][number]++;
        }
}

static void ledger_done(struct ledger *l) {
        for (size_t i = 0; i < TASKS; i++)
                free(l->seen[i]);
}

static void expect_each(struct state *s, const unsigned *lines, unsigned least, unsigned most) {
        struct ledger l = {};

        ledger_read(s, &l, lines);
        for (size_t i = 0; i < s->n; i++)
                for (unsigned k = 0; k < l.n[i]; k++)
                        if (l.seen[i][k] < least || l.seen[i][k] > most)
                                fail_msg("line %zu-%u came %u times", i, k, l.seen[i][k]);
        ledger_done(&l);
}

static const unsigned lines[] = { 6000, 1, 0, 4000, 5, 12000 };

static void add_all(struct state *s) {
        for (size_t i = 0; i < ELEMENTSOF(lines); i++)
                add_lines(s, lines[i]);
}

static void expect_done(struct state *s) {
        for (size_t i = 0; i < s->n; i++) {
                if (s->seen[i].state != TASK_DONE)
                        fail_msg("task %zu is not done: read %llu, acked %llu of %llu", i + 1,
                                 (unsigned long long)s->seen[i].read, (unsigned long long)s->seen[i].acked,
                                 (unsigned long long)s->grants[i].size);
                assert_int_equal(s->seen[i].acked, s->grants[i].size);
        }
}

static void all_of_it(void **state, const char *mode, const char *ack, const char *more, unsigned every) {
        struct state *s = *state;

        add_all(s);
        describe(s, mode, ack, more);
        if (every)
                set_number("TRAINER_EVERY", every);
        train(s);
        finish(s);
        assert_int_equal(s->status, 0);
        expect_each(s, lines, 1, 1);
        expect_done(s);
        assert_true(s->counters.bytes > 0);
}

static void test_stdin(void **state) {
        all_of_it(state, "stdin", "lag", "", 0);
}
static void test_ring(void **state) {
        all_of_it(state, "ring", "release", "", 0);
}
static void test_descriptor(void **state) {
        all_of_it(state, "descriptor", "release", "", 0);
}
static void test_stdin_explicit(void **state) {
        all_of_it(state, "stdin", "explicit", "", 100);
}
static void test_ring_explicit(void **state) {
        all_of_it(state, "ring", "explicit", "", 100);
}
static void test_descriptor_explicit(void **state) {
        all_of_it(state, "descriptor", "explicit", "", 100);
}
static void test_ring_exit(void **state) {
        all_of_it(state, "ring", "exit", "", 0);
}
static void test_descriptor_exit(void **state) {
        all_of_it(state, "descriptor", "exit", "", 0);
}
static void test_ring_shuffled(void **state) {
        all_of_it(state, "ring", "release", ",\"order\":\"shuffle\",\"seed\":3,\"window\":1000", 0);
}
static void test_stdin_shuffled(void **state) {
        all_of_it(state, "stdin", "lag", ",\"order\":\"shuffle\",\"seed\":3,\"window\":1000", 0);
}

/* Each line that counts was written by the trainer: none is lost. */
static void expect_none_lost(struct state *s) {
        struct ledger l = {};

        ledger_read(s, &l, lines);
        for (size_t i = 0; i < s->n; i++) {
                uint64_t at = 0;

                for (unsigned k = 0; k < l.n[i]; k++) {
                        char line[32];

                        at += (uint64_t)snprintf(line, sizeof(line), "%zu-%u\n", i, k);
                        if (at <= s->seen[i].acked && l.seen[i][k] == 0)
                                fail_msg("line %zu-%u counts and never came", i, k);
                }
        }
        ledger_done(&l);
}

static void killed(void **state, const char *mode, const char *ack, unsigned every) {
        struct state *s = *state;
        uint64_t acked = 0;

        add_all(s);
        describe(s, mode, ack, "");
        set_number("TRAINER_DIE", 8234);
        if (every)
                set_number("TRAINER_EVERY", every);
        train(s);
        finish(s);
        assert_int_equal(s->status, -SIGKILL);
        expect_none_lost(s);
        for (size_t i = 0; i < s->n; i++)
                acked += s->seen[i].acked;
        if (strcmp(ack, "exit") == 0)
                assert_int_equal(acked, 0);
        else
                assert_true(acked > 20000);
}

static void test_ring_killed(void **state) {
        killed(state, "ring", "release", 0);
}
static void test_ring_killed_exit(void **state) {
        killed(state, "ring", "exit", 0);
}
static void test_ring_killed_explicit(void **state) {
        killed(state, "ring", "explicit", 7);
}
static void test_descriptor_killed(void **state) {
        killed(state, "descriptor", "release", 0);
}
static void test_descriptor_killed_explicit(void **state) {
        killed(state, "descriptor", "explicit", 7);
}
static void test_stdin_killed_explicit(void **state) {
        killed(state, "stdin", "explicit", 7);
}

/* Several processes share the tasks; one dies, long after the others have read all of the rest, and they get
 * what it had. */
static void workers(void **state, const char *mode) {
        struct state *s = *state;

        add_all(s);
        describe(s, mode, "release", "");
        set_number("TRAINER_WORKERS", 3);
        set_number("TRAINER_DIE", 1000);
        set_number("TRAINER_SLOW_USEC", 30000);
        train(s);
        finish(s);
        assert_int_equal(s->status, 0);
        expect_each(s, lines, 1, 2);
        expect_done(s);
}

static void test_ring_workers(void **state) {
        workers(state, "ring");
}
static void test_descriptor_workers(void **state) {
        workers(state, "descriptor");
}

/* One that reads no further until the others have ended: they are told the end although it has data. */
static void workers_wait(void **state, const char *mode) {
        struct state *s = *state;

        add_all(s);
        describe(s, mode, "release", "");
        set_number("TRAINER_WORKERS", 3);
        set_number("TRAINER_AWAITS", 1);
        train(s);
        finish(s);
        assert_int_equal(s->status, 0);
        expect_each(s, lines, 1, 1);
        expect_done(s);
}

static void test_ring_workers_wait(void **state) {
        workers_wait(state, "ring");
}
static void test_descriptor_workers_wait(void **state) {
        workers_wait(state, "descriptor");
}

/* A trainer with checkpoints is killed, also between a checkpoint and its commit, and goes on: each line
 * once. */
static void exactly_once(void **state, const char *mode) {
        struct state *s = *state;
        char path[128];

        add_all(s);
        describe(s, mode, "checkpoint", "");
        snprintf(path, sizeof(path), "%s/checkpoint", s->directory);
        setenv("TRAINER_CHECKPOINT", path, 1);
        set_number("TRAINER_EVERY", 200);
        for (unsigned attempt = 0; attempt < 4; attempt++) {
                unsetenv("TRAINER_DIE");
                unsetenv("TRAINER_DIE_SAVED");
                if (attempt < 2)
                        set_number("TRAINER_DIE", 3500);
                else if (attempt == 2)
                        set_number("TRAINER_DIE_SAVED", 100000);
                train(s);
                finish(s);
                assert_int_equal(s->status, attempt < 3 ? -SIGKILL : 0);
                if (attempt == 3)
                        break;
                s->exited = s->bye = s->last_sent = false;
                s->granted = 0;
                for (size_t i = 0; i < s->n; i++) {
                        s->grants[i].offset = s->seen[i].acked;
                        s->seen[i].read = 0;
                }
        }
        expect_each(s, lines, 1, 1);
        expect_done(s);
}

static void test_ring_checkpoint(void **state) {
        exactly_once(state, "ring");
}
static void test_descriptor_checkpoint(void **state) {
        exactly_once(state, "descriptor");
}
static void test_stdin_checkpoint(void **state) {
        exactly_once(state, "stdin");
}

/* A record that the trainer cannot use fails its task and no other. */
static void test_fail(void **state) {
        for (size_t m = 1; m < ELEMENTSOF(modes); m++) {
                struct state *s = *state;

                add_lines(s, 100);
                add_lines(s, 10000);
                add_lines(s, 100);
                describe(s, modes[m], "release", "");
                setenv("TRAINER_FAIL", "1-6000", 1);
                train(s);
                finish(s);
                assert_int_equal(s->status, 0);
                assert_int_equal(s->seen[0].state, TASK_DONE);
                assert_int_equal(s->seen[1].state, TASK_FAILED);
                assert_non_null(strstr(s->failure, "is no good"));
                assert_true(s->seen[1].acked < 16 * 6000);
                assert_int_equal(s->seen[2].state, TASK_DONE);
                if (m + 1 < ELEMENTSOF(modes)) {
                        assert_int_equal(teardown(state), 0);
                        assert_int_equal(clear(state), 0);
                }
        }
}

/* ---- orders of masterd ---- */

static void order(struct state *s, enum feed_control op, uint64_t task, uint64_t value) {
        struct feed_order o = { op, task, value };

        assert_int_equal(feed_control(s->server, &s->unit.id, &o), 0);
}

static uint64_t read_so_far(struct state *s) {
        uint64_t read = 0;

        for (size_t i = 0; i < s->n; i++)
                read += s->seen[i].read;
        return read;
}

static void wait_usec(struct state *s, uint64_t usec) {
        for (uint64_t until = now_boot() + usec; now_boot() < until;)
                assert_true(sd_event_run(s->event, 10 * USEC_PER_MSEC) >= 0);
}

static void test_pause_and_sync(void **state) {
        for (size_t m = 0; m < ELEMENTSOF(modes); m++) {
                struct state *s = *state;
                uint64_t before;

                add_all(s);
                describe(s, modes[m], m == 0 ? "lag" : "release", "");
                set_number("TRAINER_SLOW_USEC", 4000);
                train(s);
                while (read_so_far(s) == 0)
                        turn(s);
                order(s, FEED_CONTROL_PAUSE, 0, 0);
                /* What is with the trainer already, it reads on. */
                wait_usec(s, 600 * USEC_PER_MSEC);
                order(s, FEED_CONTROL_SYNC, 0, 77);
                while (s->sync != 77)
                        turn(s);
                before = read_so_far(s);
                if (m < 2) {
                        wait_usec(s, 400 * USEC_PER_MSEC);
                        assert_in_range(read_so_far(s), before, before + (4u << 16));
                }
                order(s, FEED_CONTROL_RESUME, 0, 0);
                finish(s);
                assert_int_equal(s->status, 0);
                expect_each(s, lines, 1, 1);
                if (m + 1 < ELEMENTSOF(modes)) {
                        assert_int_equal(teardown(state), 0);
                        assert_int_equal(clear(state), 0);
                }
        }
}

/* The end of a task is cut off while it is read: what is reported as its end is where it ends. */
static void test_trim(void **state) {
        for (size_t m = 0; m < ELEMENTSOF(modes); m++) {
                struct state *s = *state;
                struct ledger l = {};
                unsigned n = m == 2 ? 400000 : 100000, upto = 0; /* libprimus says where it is each MiB */
                uint64_t at = 0;

                add_lines(s, n);
                describe(s, modes[m], m == 0 ? "read" : "release", "");
                s->unit.pipe_size = m == 0 ? 65536 : 0;
                set_number("TRAINER_SLOW_USEC", 500);
                train(s);
                while (s->seen[0].read == 0)
                        turn(s);
                order(s, FEED_CONTROL_TRIM, 1, s->grants[0].size / 2);
                finish(s);
                assert_int_equal(s->status, 0);
                assert_int_equal(s->seen[0].state, TASK_DONE);
                assert_int_equal(s->seen[0].acked, s->seen[0].end);
                assert_in_range(s->seen[0].end, s->grants[0].size / 2, s->grants[0].size - 1);
                ledger_read(s, &l, &n);
                while (upto < n && l.seen[0][upto] == 1) {
                        char line[32];

                        at += (uint64_t)snprintf(line, sizeof(line), "0-%u\n", upto++);
                }
                for (unsigned k = upto; k < n; k++)
                        assert_int_equal(l.seen[0][k], 0);
                assert_int_equal(at, s->seen[0].end);
                ledger_done(&l);
                if (m + 1 < ELEMENTSOF(modes)) {
                        assert_int_equal(teardown(state), 0);
                        assert_int_equal(clear(state), 0);
                }
        }
}

static void test_drop(void **state) {
        for (size_t m = 0; m < ELEMENTSOF(modes); m++) {
                struct state *s = *state;

                add_lines(s, 200000);
                add_lines(s, 10);
                describe(s, modes[m], m == 0 ? "read" : "release", "");
                s->unit.pipe_size = m == 0 ? 65536 : 0;
                set_number("TRAINER_SLOW_USEC", 2000);
                train(s);
                while (s->seen[0].read == 0)
                        turn(s);
                order(s, FEED_CONTROL_DROP, 1, 0);
                finish(s);
                assert_int_equal(s->status, 0);
                assert_int_equal(s->seen[0].state, TASK_RUNNING);
                assert_int_equal(s->seen[1].state, TASK_DONE);
                if (m + 1 < ELEMENTSOF(modes)) {
                        assert_int_equal(teardown(state), 0);
                        assert_int_equal(clear(state), 0);
                }
        }
}

/* ---- a task that has failed is granted again ---- */

static bool has_opened(struct state *s) {
        return s->opens > 0;
}

static bool first_failed(struct state *s) {
        return s->seen[0].state == TASK_FAILED;
}

static void wait_until(struct state *s, bool (*is)(struct state *s)) {
        for (uint64_t until = now_boot() + 10 * USEC_PER_SEC; !is(s);) {
                assert_true(now_boot() < until);
                assert_true(sd_event_run(s->event, 10 * USEC_PER_MSEC) >= 0);
        }
}

/* By hand, where the manager is quiet. */
static void grant_one(struct state *s, size_t i, uint32_t failures, bool last) {
        uint8_t buf[4096];
        struct grant_batch batch = { .grants = buf, .last = last };

        s->grants[i].offset = s->seen[i].acked;
        s->grants[i].skip = s->seen[i].skip;
        s->grants[i].failures = failures;
        s->seen[i].state = TASK_RUNNING;
        assert_int_equal(task_grant_write(&s->grants[i], buf, sizeof(buf), &batch.size), 0);
        assert_true(feed_grant(s->server, &s->unit.id, &batch) >= 0);
}

/* What the trainer could not use comes again, and nothing that lies in front of it is lost. */
static void test_fail_once(void **state) {
        static const unsigned n[] = { 30000, 200 };

        for (size_t m = 0; m < ELEMENTSOF(modes); m++) {
                struct state *s = *state;

                add_lines(s, n[0]);
                add_lines(s, n[1]);
                describe(s, modes[m], "explicit", "");
                s->unit.pipe_size = m == 0 ? 65536 : 0;
                set_number("TRAINER_EVERY", 100);
                setenv("TRAINER_FAIL", "0-150", 1);
                setenv("TRAINER_FAIL_ONCE", "1", 1);
                s->quiet = true;
                train(s);
                wait_until(s, has_opened);
                grant_one(s, 0, 0, false);
                wait_until(s, first_failed);
                grant_one(s, 1, 0, false);
                grant_one(s, 0, 1, true);
                finish(s);
                assert_int_equal(s->status, 0);
                expect_each(s, n, 1, 2);
                expect_done(s);
                if (m + 1 < ELEMENTSOF(modes)) {
                        assert_int_equal(teardown(state), 0);
                        assert_int_equal(clear(state), 0);
                }
        }
}

static void touch(const char *path) {
        const struct timespec times[2] = { { 1, 0 }, { 1, 0 } };

        assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

static bool first_read(struct state *s) {
        return s->seen[0].read > 0;
}

/* A file that changes while the trainer has its descriptor fails its task each time that it is tried. */
static void test_descriptor_changed(void **state) {
        struct state *s = *state;

        add_lines(s, 400000);
        add_lines(s, 10);
        describe(s, "descriptor", "release", "");
        set_number("TRAINER_SLOW_USEC", 500);
        s->quiet = true;
        train(s);
        wait_until(s, has_opened);
        grant_one(s, 0, 0, false);
        wait_until(s, first_read);
        touch(s->grants[0].path);
        wait_until(s, first_failed);
        grant_one(s, 0, 1, false);
        wait_until(s, first_failed);
        assert_non_null(strstr(s->failure, "changed"));
        grant_one(s, 1, 0, true);
        finish(s);
        assert_int_equal(s->status, 0);
        assert_int_equal(s->seen[1].state, TASK_DONE);
}

/* The last line of what was cut off does not run into the next file. */
static void test_stdin_cut_off(void **state) {
        struct state *s = *state;
        size_t size;

        add_lines(s, 100000);
        add_lines(s, 10);
        describe(s, "stdin", "read", "");
        s->unit.pipe_size = 65536;
        s->quiet = true;
        start(s, "while [ ! -e $DIR/end ]; do sleep 0.05; done; cat > $DIR/out");
        wait_until(s, has_opened);
        grant_one(s, 0, 0, false);
        grant_one(s, 1, 0, true);
        wait_usec(s, 300 * USEC_PER_MSEC);
        assert_int_equal(truncate(s->grants[0].path, 0), 0);
        {
                _cleanup_free_ char *path = NULL;

                assert_true(asprintf(&path, "%s/end", s->directory) > 0);
                assert_int_equal(write_file_atomic(path, "", 0, 0644, false), 0);
        }
        finish(s);
        _cleanup_free_ char *text = output(s, &size);
        assert_int_equal(s->seen[0].state, TASK_FAILED);
        assert_int_equal(s->seen[1].state, TASK_DONE);
        assert_non_null(strstr(text, "\n1-0\n1-1\n"));
}

/* ---- a hostile trainer ---- */

static char feed_name[128];

/* A trainer that only says where its feed is. */
static void idle_trainer(struct state *s) {
        _cleanup_free_ char *path = NULL, *text = NULL;
        size_t size = 0;

        start(s, "echo $PRIMUS_FEED > $DIR/name.tmp; mv $DIR/name.tmp $DIR/name; "
                 "while [ ! -e $DIR/end ]; do sleep 0.05; done");
        assert_true(asprintf(&path, "%s/name", s->directory) > 0);
        while (read_file(path, 200, &text, &size) < 0)
                assert_true(sd_event_run(s->event, 10 * USEC_PER_MSEC) >= 0);
        text[size - 1] = 0;
        snprintf(feed_name, sizeof(feed_name), "%s", text);
}

static void end_trainer(struct state *s) {
        _cleanup_free_ char *path = NULL;

        assert_true(asprintf(&path, "%s/end", s->directory) > 0);
        assert_int_equal(write_file_atomic(path, "", 0, 0644, false), 0);
        finish(s);
}

static int dial_feed(void) {
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        struct timeval timeout = { .tv_sec = 60 };
        int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
        size_t n = strlen(feed_name);

        memcpy(address.sun_path + 1, feed_name + 1, n - 1);
        assert_int_equal(connect(fd, (struct sockaddr *)&address,
                                 (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n)),
                         0);
        assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout)), 0);
        return fd;
}

static void say_raw(int fd, uint32_t type, const void *body, size_t size) {
        uint8_t packet[CLIENT_PACKET_MAX];
        struct client_header h = { .type = type, .size = (uint32_t)size };

        memcpy(packet, &h, sizeof(h));
        memcpy(packet + sizeof(h), body, size);
        (void)!send(fd, packet, sizeof(h) + size, MSG_NOSIGNAL);
}

/* The type of the next packet, with its descriptors; 0: hung up. */
static uint32_t hear(int fd, uint8_t *body, int fds[4]) {
        struct client_header h = {};
        union {
                struct cmsghdr align;
                char bytes[CMSG_SPACE(4 * sizeof(int))];
        } control;
        struct iovec iov[2] = { { &h, sizeof(h) }, { body, CLIENT_PACKET_MAX } };
        struct msghdr m = {
                .msg_iov = iov, .msg_iovlen = 2, .msg_control = &control, .msg_controllen = sizeof(control)
        };
        ssize_t l = recvmsg(fd, &m, 0);
        struct cmsghdr *c = l > 0 ? CMSG_FIRSTHDR(&m) : NULL;

        assert_true(l >= 0 || errno == ECONNRESET);
        if (c)
                memcpy(fds, CMSG_DATA(c), c->cmsg_len - CMSG_LEN(0));
        return l > 0 ? h.type : 0;
}

static int greet(uint8_t *body, int fds[4]) {
        struct client_hello hello = { .version = CLIENT_VERSION };
        int fd = dial_feed();

        say_raw(fd, CLIENT_HELLO, &hello, sizeof(hello));
        assert_int_equal(hear(fd, body, fds), CLIENT_WELCOME);
        return fd;
}

static void close_all(int fd, int fds[4]) {
        close(fd);
        for (unsigned i = 0; i < 4; i++)
                fds[i] = close_fd(fds[i]);
}

static void hostile(struct state *s, const char *mode, const char *ack) {
        static const struct {
                uint32_t type;
                size_t size;
                uint8_t fill;
        } packets[] = {
                { 0, 0, 0 },
                { CLIENT_HELLO, 8, 0 },
                { CLIENT_NEXT, 4, 0xff },
                { CLIENT_NEXT, 3, 0 },
                { CLIENT_ACK, 33, 0 },
                { CLIENT_DONE, 5, 0 },
                { CLIENT_FAIL, 16, 0xff },
                { CLIENT_FAIL, 4, 0 },
                { CLIENT_TRIMMED, 3, 0 },
                { CLIENT_COMMIT, 40, 0xff },
                { CLIENT_COMMIT, 0, 0 },
                { CLIENT_STREAM, 8, 0xff },
                { CLIENT_MORE, 100, 0 },
                { CLIENT_WHERE, 3, 0 },
                { CLIENT_PLACE, 16, 0 },
                { CLIENT_WELCOME, 8, 0 },
                { 12345, 60000, 0xff },
        };
        uint8_t *body = malloc(CLIENT_PACKET_MAX), junk[60000];
        int fds[4] = { -EBADF, -EBADF, -EBADF, -EBADF }, fd;

        describe(s, mode, ack, "");
        add_all(s);
        idle_trainer(s);
        for (size_t i = 0; i < ELEMENTSOF(packets); i++) {
                uint32_t type;

                memset(junk, packets[i].fill, sizeof(junk));
                fd = dial_feed();
                say_raw(fd, packets[i].type, junk, packets[i].size);
                type = hear(fd, body, fds);
                assert_true(type == 0 || type == CLIENT_REFUSED);
                close_all(fd, fds);
                fd = greet(body, fds);
                say_raw(fd, packets[i].type, junk, packets[i].size);
                /* What was on its way may still come. */
                while ((type = hear(fd, body, fds)) == CLIENT_TASK || type == CLIENT_SPAN)
                        ;
                assert_int_equal(type, 0);
                close_all(fd, fds);
        }
        free(body);
}

/* ---- a trainer whose connection ends ---- */

/* A process that has one task, task 1, and does not look at what comes. The executor is stopped. */
static int with_task(struct state *s, const char *ack) {
        struct client_next next = { .credits = 1 };
        uint8_t *body = malloc(CLIENT_PACKET_MAX);
        int fds[4] = { -EBADF, -EBADF, -EBADF, -EBADF }, fd;
        struct pollfd p;

        add_lines(s, 1000);
        describe(s, "descriptor", ack, "");
        idle_trainer(s);
        fd = greet(body, fds);
        say_raw(fd, CLIENT_NEXT, &next, sizeof(next));
        p = (struct pollfd){ .fd = fd, .events = POLLIN };
        while (poll(&p, 1, 0) == 0)
                assert_true(sd_event_run(s->event, USEC_PER_MSEC) >= 0);
        assert_int_equal(kill(s->pid, SIGSTOP), 0);
        free(body);
        return fd;
}

/* A DataLoader takes batches from its workers in turn: one that holds two tasks reads neither of them while
 * it is another one's turn, which has none. That is said at once, and what comes is for that one, also where
 * the first has asked for more before. */
static void test_second_waits(void **state) {
        struct state *s = *state;
        struct client_next next = { .credits = 3 };
        uint8_t *body = malloc(CLIENT_PACKET_MAX);
        int fds[4] = { -EBADF, -EBADF, -EBADF, -EBADF }, a, b;
        struct pollfd p[2];

        for (unsigned i = 0; i < 4; i++)
                add_lines(s, 1000);
        describe(s, "descriptor", "release", "");
        idle_trainer(s);
        wait_until(s, has_opened);
        assert_int_equal(s->granted, 2); /* before anybody is there */
        s->quiet = true;
        a = greet(body, fds);
        say_raw(a, CLIENT_NEXT, &next, sizeof(next));
        p[0] = (struct pollfd){ .fd = a, .events = POLLIN };
        for (unsigned i = 0; i < 2; i++) {
                while (poll(p, 1, 0) == 0)
                        assert_true(sd_event_run(s->event, USEC_PER_MSEC) >= 0);
                assert_int_equal(hear(a, body, fds), CLIENT_TASK);
        }
        b = greet(body, fds);
        say_raw(b, CLIENT_NEXT, &next, sizeof(next));
        while (s->unserved == 0)
                turn(s);
        assert_int_equal(s->hungry, 1);
        s->quiet = false;
        grant(s, 1);
        p[1] = (struct pollfd){ .fd = b, .events = POLLIN };
        while (poll(p, 2, 0) == 0)
                assert_true(sd_event_run(s->event, USEC_PER_MSEC) >= 0);
        assert_int_equal(p[0].revents, 0);
        assert_int_equal(hear(b, body, fds), CLIENT_TASK);
        close(a);
        close_all(b, fds);
        free(body);
        end_trainer(s);
}

/* Messages of a trainer name files, which it may ask for in every mode; of a task that nobody has, nothing.
 */
static void test_where(void **state) {
        for (size_t m = 0; m < ELEMENTSOF(modes); m++) {
                struct state *s = *state;
                struct {
                        struct client_place place;
                        char path[TASK_PATH_MAX + 1];
                } *answer = calloc(1, CLIENT_PACKET_MAX);
                int fds[4] = { -EBADF, -EBADF, -EBADF, -EBADF }, fd;

                add_lines(s, 10);
                describe(s, modes[m], m == 0 ? "explicit" : "release", "");
                idle_trainer(s);
                wait_until(s, has_opened);
                assert_int_equal(s->granted, 1);
                fd = greet((uint8_t *)answer, fds);
                for (uint64_t task = 1; task <= 77; task += 76) {
                        const struct client_where where = { .task = task };
                        uint32_t type;

                        say_raw(fd, CLIENT_WHERE, &where, sizeof(where));
                        memset(answer, 0, sizeof(*answer));
                        while ((type = hear(fd, (uint8_t *)answer, fds)) == CLIENT_SPAN)
                                memset(answer, 0, sizeof(*answer));
                        assert_int_equal(type, CLIENT_PLACE);
                        assert_int_equal(answer->place.task, task);
                        assert_string_equal(answer->path, task == 1 ? s->grants[0].path : "");
                        assert_int_equal(answer->place.path_size, strlen(answer->path));
                }
                close_all(fd, fds);
                free(answer);
                end_trainer(s);
                if (m + 1 < ELEMENTSOF(modes)) {
                        assert_int_equal(teardown(state), 0);
                        assert_int_equal(clear(state), 0);
                }
        }
}

/* How long the trainer has waited is known while it does, not only once that is over. */
static void test_wait_is_seen(void **state) {
        for (size_t m = 1; m < ELEMENTSOF(modes); m++) {
                struct state *s = *state;
                uint64_t until = now_boot() + 20 * USEC_PER_SEC;

                add_lines(s, 10);
                add_lines(s, 10);
                describe(s, modes[m], "release", "");
                s->quiet = true;
                train(s);
                while (s->counters.consumer_wait_usec < 1500 * USEC_PER_MSEC && now_boot() < until)
                        turn(s);
                assert_in_range(s->counters.consumer_wait_usec, 1500 * USEC_PER_MSEC, 20 * USEC_PER_SEC);
                assert_int_equal(s->hungry, 1);
                assert_int_equal(s->unserved, 1);
                s->quiet = false;
                grant(s, 2);
                finish(s);
                assert_int_equal(s->status, 0);
                if (m + 1 < ELEMENTSOF(modes)) {
                        assert_int_equal(teardown(state), 0);
                        assert_int_equal(clear(state), 0);
                }
        }
}

/* Whatever it said before counts, also where it has not read what it was told (ECONNRESET). */
static void test_last_words(void **state) {
        struct state *s = *state;
        struct client_ack ack = { .task = 1, .position = 100, .records = 20 };
        int fd = with_task(s, "explicit");

        say_raw(fd, CLIENT_ACK, &ack, sizeof(ack));
        close(fd);
        assert_int_equal(kill(s->pid, SIGCONT), 0);
        wait_usec(s, 200 * USEC_PER_MSEC);
        end_trainer(s);
        assert_int_equal(s->seen[0].acked, 100);
}

/* Nor does it matter that it cannot be answered any more. */
static void test_last_commits(void **state) {
        struct state *s = *state;
        struct {
                struct client_state state;
                struct client_ack ack;
        } packet = { .state = { .magic = CLIENT_STATE_MAGIC,
                                .version = CLIENT_STATE_VERSION,
                                .job_uid = { 0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef, 0x01, 0x23, 0x45,
                                             0x67, 0x89, 0xab, 0xcd, 0xef },
                                .n = 1 },
                     .ack = { .task = 1, .position = 100 } };
        uint8_t *body = malloc(CLIENT_PACKET_MAX);
        int fds[4] = { -EBADF, -EBADF, -EBADF, -EBADF }, fd = with_task(s, "checkpoint");

        assert_int_equal(hear(fd, body, fds), CLIENT_TASK);
        say_raw(fd, CLIENT_COMMIT, &packet, sizeof(packet));
        packet.ack.position = 200;
        say_raw(fd, CLIENT_COMMIT, &packet, sizeof(packet));
        close_all(fd, fds);
        free(body);
        assert_int_equal(kill(s->pid, SIGCONT), 0);
        wait_usec(s, 200 * USEC_PER_MSEC);
        end_trainer(s);
        assert_int_equal(s->seen[0].acked, 200);
}

static unsigned ticks_of(pid_t pid) {
        _cleanup_free_ char *path = NULL, *text = NULL;
        unsigned user, system;
        size_t size;

        assert_true(asprintf(&path, "/proc/%d/stat", (int)pid) > 0);
        assert_int_equal(read_file(path, 4096, &text, &size), 0);
        assert_int_equal(sscanf(strrchr(text, ')') + 2, "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %u %u",
                                &user, &system),
                         2);
        return user + system;
}

/* With nobody whom the stream could be explained to, the feeder sleeps. */
static void test_nobody_listens(void **state) {
        struct state *s = *state;
        uint8_t *body = malloc(CLIENT_PACKET_MAX);
        int fds[4] = { -EBADF, -EBADF, -EBADF, -EBADF }, fd;
        unsigned before;

        add_lines(s, 1000);
        describe(s, "stdin", "explicit", "");
        idle_trainer(s);
        wait_until(s, has_opened);
        order(s, FEED_CONTROL_PAUSE, 0, 0);
        fd = greet(body, fds);
        wait_usec(s, 200 * USEC_PER_MSEC);
        close_all(fd, fds);
        free(body);
        wait_usec(s, 100 * USEC_PER_MSEC);
        order(s, FEED_CONTROL_RESUME, 0, 0);
        before = ticks_of(s->pid);
        wait_usec(s, 800 * USEC_PER_MSEC);
        assert_in_range(ticks_of(s->pid) - before, 0, 8);
        end_trainer(s);
}

static void test_hostile_ring(void **state) {
        struct state *s = *state;
        uint8_t *body = malloc(CLIENT_PACKET_MAX);
        int fds[4] = { -EBADF, -EBADF, -EBADF, -EBADF }, fd;

        hostile(s, "ring", "release");
        /* The control page, overwritten with every byte there is. */
        for (unsigned round = 0; round < 8; round++) {
                uint8_t *control;

                fd = greet(body, fds);
                control = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fds[1], 0);
                assert_true(control != MAP_FAILED);
                while (((struct ring_control *)control)->produced == 0)
                        assert_true(sd_event_run(s->event, USEC_PER_MSEC) >= 0);
                memset(control, round % 2 ? 0xff : (int)(round * 37 + 1), 4096);
                /* Not even through the descriptor. */
                assert_true(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fds[0], 0) == MAP_FAILED);
                assert_int_equal(ftruncate(fds[0], 0), -1);
                assert_int_equal(hear(fd, body, fds), 0);
                (void)munmap(control, 4096);
                close_all(fd, fds);
        }
        /* And one that behaves gets all of it. */
        free(body);
        end_trainer(s);
        assert_int_equal(s->status, 0);
        for (size_t i = 0; i < s->n; i++)
                assert_true(s->seen[i].acked == 0 || s->grants[i].size == 0);
}

static void test_hostile_descriptor(void **state) {
        struct state *s = *state;
        struct client_next next = { .credits = 2 };
        struct client_ack ack = { .task = 1, .position = UINT64_C(1) << 40 };
        struct client_trim trim = { .task = 1, .end = UINT64_C(1) << 50 };
        uint8_t *body = malloc(CLIENT_PACKET_MAX);
        int fds[4] = { -EBADF, -EBADF, -EBADF, -EBADF }, fd;

        hostile(s, "descriptor", "release");
        wait_until(s, has_opened); /* below, the loop that is its agent stands still */
        for (unsigned round = 0; round < 2; round++) {
                fd = greet(body, fds);
                say_raw(fd, CLIENT_NEXT, &next, sizeof(next));
                assert_int_equal(hear(fd, body, fds), CLIENT_TASK);
                if (round == 0)
                        say_raw(fd, CLIENT_TRIMMED, &trim, sizeof(trim));
                else { /* of a task that it does not have: nothing; of its own: all of it at most */
                        ack.task = 4;
                        say_raw(fd, CLIENT_ACK, &ack, sizeof(ack));
                        ack.task = 1;
                        say_raw(fd, CLIENT_DONE, &ack, sizeof(ack) - 1);
                }
                while (hear(fd, body, fds) == CLIENT_TASK)
                        ;
                close_all(fd, fds);
        }
        free(body);
        end_trainer(s);
}

static void test_hostile_stdin(void **state) {
        hostile(*state, "stdin", "explicit");
        end_trainer(*state);
}

static void test_hostile_checkpoint(void **state) {
        struct state *s = *state;
        struct {
                struct client_hello hello;
                struct client_state state;
                struct client_ack ack;
        } packet = { .hello = { CLIENT_VERSION, sizeof(struct client_state) + sizeof(struct client_ack) },
                     .state = { .magic = CLIENT_STATE_MAGIC, .version = CLIENT_STATE_VERSION, .n = 1 },
                     .ack = { .task = 1, .position = 5 } };
        uint8_t *body = malloc(CLIENT_PACKET_MAX);
        int fds[4] = { -EBADF, -EBADF, -EBADF, -EBADF }, fd;

        hostile(s, "ring", "checkpoint");
        fd = dial_feed(); /* another job's */
        say_raw(fd, CLIENT_HELLO, &packet, sizeof(packet));
        assert_int_equal(hear(fd, body, fds), CLIENT_REFUSED);
        close_all(fd, fds);
        packet.state.n = 1u << 30;
        fd = dial_feed();
        say_raw(fd, CLIENT_HELLO, &packet, sizeof(packet));
        assert_int_equal(hear(fd, body, fds), CLIENT_REFUSED);
        close_all(fd, fds);
        free(body);
        end_trainer(s);
}

int main(int argc, char *argv[]) {
#define T(f) cmocka_unit_test_setup_teardown(f, clear, teardown)
        const struct CMUnitTest tests[] = {
                T(test_stdin),
                T(test_ring),
                T(test_descriptor),
                T(test_stdin_explicit),
                T(test_ring_explicit),
                T(test_descriptor_explicit),
                T(test_ring_exit),
                T(test_descriptor_exit),
                T(test_ring_shuffled),
                T(test_stdin_shuffled),
                T(test_ring_killed),
                T(test_ring_killed_exit),
                T(test_ring_killed_explicit),
                T(test_descriptor_killed),
                T(test_descriptor_killed_explicit),
                T(test_stdin_killed_explicit),
                T(test_ring_workers),
                T(test_descriptor_workers),
                T(test_ring_workers_wait),
                T(test_descriptor_workers_wait),
                T(test_ring_checkpoint),
                T(test_descriptor_checkpoint),
                T(test_stdin_checkpoint),
                T(test_fail),
                T(test_fail_once),
                T(test_descriptor_changed),
                T(test_stdin_cut_off),
                T(test_second_waits),
                T(test_wait_is_seen),
                T(test_where),
                T(test_last_words),
                T(test_last_commits),
                T(test_nobody_listens),
                T(test_pause_and_sync),
                T(test_trim),
                T(test_drop),
                T(test_hostile_ring),
                T(test_hostile_descriptor),
                T(test_hostile_stdin),
                T(test_hostile_checkpoint),
        };
        if (argc > 1) /* a pattern of names */
                cmocka_set_test_filter(argv[1]);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
