/* SPDX-License-Identifier: Apache-2.0 */
/* agentd's feed server and primus-executor together: the program itself, with real pipes, files and trainers,
 * against a server in this process whose manager is a few lines that grant files (feed-host.h). */
#include "tests/kit/feed-host.h"
#include "tests/kit/json.h"

static void test_lines(void **state) {
        struct state *s = *state;
        _cleanup_free_ char *text = NULL;

        add_file(s, "a\nb\n", 4, 0);
        add_file(s, "", 0, 0);
        add_file(s, "c\nd", 3, 0); /* no newline at its end */
        add_file(s, "e\nf\ng\n", 6, 3);
        add_file(s, "h\n", 2, 2);
        start(s, "cat > $DIR/out");
        finish(s);
        assert_int_equal(s->status, 0);
        text = output(s, NULL);
        /* the fourth goes on inside "f", so from its line's start; the fifth was all done */
        assert_string_equal(text, "a\nb\nc\nd\nf\ng\n");
        for (size_t i = 0; i < s->n; i++) {
                assert_int_equal(s->done[i], 1);
                assert_int_equal(s->seen[i].acked, s->grants[i].size);
        }
        assert_true(s->bye && !s->bye_failed);
        while (feed_n_connections(s->server) > 0)
                turn(s);
        assert_int_equal(feed_pipe_bytes(s->server), 0);
}

/* Fills with numbered lines. */
static char *numbers(size_t size, unsigned seed) {
        char *text = malloc(size + 32);
        size_t n = 0;

        for (unsigned i = 0; n < size; i++)
                n += (size_t)sprintf(text + n, "%u-%u\n", seed, i);
        text[size - 1] = '\n';
        return text;
}

static void test_large(void **state) {
        struct state *s = *state;
        _cleanup_free_ char *text = NULL, *all = malloc(24u << 20);
        size_t size = 0, n;

        for (unsigned i = 0; i < 6; i++) {
                _cleanup_free_ char *part = NULL;
                size_t l = i % 2 ? 3000001 + i : 40000 + i;

                part = numbers(l, i);
                add_file(s, part, l, 0);
                memcpy(all + size, part, l);
                size += l;
        }
        start(s, "cat > $DIR/out");
        finish(s);
        assert_int_equal(s->status, 0);
        text = output(s, &n);
        assert_int_equal(n, size);
        assert_memory_equal(text, all, size);
        for (size_t i = 0; i < s->n; i++)
                assert_int_equal(s->done[i], 1);
}

/* More than a pipe and a window of data, a trainer that fails in the middle. */
static void test_failure(void **state) {
        struct state *s = *state;
        _cleanup_free_ char *part = numbers(5u << 20, 0);

        add_file(s, part, 5u << 20, 0);
        add_file(s, "x\n", 2, 0);
        start(s, "head -c 3000000 > $DIR/out; exit 3");
        finish(s);
        assert_int_equal(s->status, 3);
        assert_true(s->bye && s->bye_failed);
        assert_string_equal(s->error, "the trainer exited with status 3");
        assert_int_equal(s->done[0] + s->done[1], 0);
        assert_true(s->seen[0].read >= 3000000);
        assert_int_equal(s->seen[0].acked, s->seen[0].read - (1u << 20));
}

static void test_early_success(void **state) {
        struct state *s = *state;
        _cleanup_free_ char *part = numbers(2u << 20, 0);

        add_file(s, "one\n", 4, 0);
        add_file(s, part, 2u << 20, 0);
        add_file(s, "x\n", 2, 0);
        start(s, "head -n 1 > $DIR/out");
        finish(s);
        assert_int_equal(s->status, 0);
        assert_true(s->bye && !s->bye_failed);
        assert_int_equal(s->done[1] + s->done[2], 0);
}

static void test_killed(void **state) {
        struct state *s = *state;

        add_file(s, "x\n", 2, 0);
        start(s, "kill -9 $$");
        finish(s);
        assert_int_equal(s->status, -SIGKILL);
        assert_int_equal(s->done[0], 0);
}

static void test_signal_forwarded(void **state) {
        struct state *s = *state;

        add_file(s, "x\n", 2, 0);
        /* It reads its line, and goes on waiting: the signal is what ends it. */
        start(s, "trap 'exit 7' TERM; read x; : > $DIR/out; while :; do sleep 0.05; done");
        while (s->seen[0].read < 2)
                turn(s);
        /* The trap is set before the line is read. */
        assert_int_equal(kill(s->pid, SIGTERM), 0);
        finish(s);
        assert_int_equal(s->status, 7);
}

static void test_missing_command(void **state) {
        struct state *s = *state;
        char *argv[] = { (char *)"primus-executor", (char *)"--feed", (char *)"/no/such/command", NULL };

        add_file(s, "x\n", 2, 0);
        spawn(s, argv);
        finish(s);
        assert_int_equal(s->status, 127);
}

static void test_changed(void **state) {
        struct state *s = *state;

        add_file(s, "x\n", 2, 0);
        s->grants[0].mtime_nsec++;
        add_file(s, "y\n", 2, 0);
        s->grants[1].path = "/no/such/file";
        add_file(s, "z\n", 2, 0);
        start(s, "cat > $DIR/out");
        finish(s);
        assert_int_equal(s->status, 0);
        assert_int_equal(s->seen[0].state, TASK_FAILED);
        assert_int_equal(s->seen[1].state, TASK_FAILED);
        assert_int_equal(s->seen[2].state, TASK_DONE);
}

/* agentd goes away and comes back while a trainer reads: no byte is lost or doubled, every task ends as DONE.
 */
static void test_agent_restart(void **state) {
        struct state *s = *state;
        _cleanup_free_ char *text = NULL, *all = malloc(24u << 20);
        size_t size = 0, n;

        for (unsigned i = 0; i < 12; i++) {
                _cleanup_free_ char *part = numbers(300000, i);

                add_file(s, part, 300000, 0);
                memcpy(all + size, part, 300000);
                size += 300000;
        }
        start(s, "while dd bs=65536 count=1 of=$DIR/piece 2>/dev/null; [ -s $DIR/piece ]; do cat $DIR/piece; "
                 "sleep 0.01; done > $DIR/out");
        for (unsigned k = 0; k < 4 && !s->exited; k++) {
                while (s->seen[2 * k].read == 0 && !s->exited)
                        turn(s);
                feed_server_free(s->server);
                server_start(s);
                /* What it is granted once more is not read once more. */
                s->granted = sub_sat(s->granted, 2);
                s->last_sent = false;
        }
        finish(s);
        assert_int_equal(s->status, 0);
        text = output(s, &n);
        assert_int_equal(n, size);
        assert_memory_equal(text, all, size);
        assert_true(s->opens >= 5);
        for (size_t i = 0; i < s->n; i++)
                assert_true(s->done[i] >= 1);
}

static void test_no_agent_at_the_end(void **state) {
        struct state *s = *state;

        add_file(s, "x\n", 2, 0);
        start(s, "read x; exit 0");
        while (s->seen[0].read < 2 && !s->exited)
                turn(s);
        /* Whatever was said so far is lost; all of it is said to the next one before the executor ends. */
        feed_server_free(s->server);
        memset(s->done, 0, sizeof(s->done));
        s->bye = false;
        server_start(s);
        finish(s);
        assert_int_equal(s->status, 0);
        if (s->bye) /* unless it had been sent off before */
                assert_int_equal(s->done[0], 1);
}

/* The job's description has this source as its second one. */
static void describe(const char *file, const char *pattern) {
        FILE *f = fopen(file, "w");

        assert_non_null(f);
        fprintf(f, JSON({
                        "inputManager" : {
                                "fileConfig" : {
                                        "inputs" : [
                                                {
                                                        "name" : "a",
                                                        "spec" : {
                                                                "pathPattern" : "/nowhere",
                                                                "textInput" : {}
                                                        }
                                                },
                                                {
                                                        "name" : "b",
                                                        "spec" : {
                                                                "pathPattern" : "%s",
                                                                "namePattern" : "part-*",
                                                                "textInput" : {}
                                                        }
                                                }
                                        ]
                                }
                        }
                }),
                pattern);
        assert_int_equal(fclose(f), 0);
}

static void test_scan(void **state) {
        struct state *s = *state;
        char *argv[] = { (char *)"primus-executor", (char *)"--scan", (char *)"--source", (char *)"1", NULL };
        char file[4096];

        snprintf(file, sizeof(file), "%s/input.json", s->directory);
        describe(file, s->directory);
        assert_int_equal(setenv("PRIMUS_INPUT", file, 1), 0);
        s->unit.kind = ORDER_SCAN;
        s->wait_entries = 1;
        for (unsigned i = 0; i < 5; i++)
                add_file(s, "x\n", 2, 0);
        spawn(s, argv);
        while (!s->exited) {
                turn(s);
                if (s->wait_entries == 0)
                        (void)feed_resume(s->server, &s->unit.id);
        }
        assert_int_equal(s->status, 0);
        assert_true(s->bye && !s->bye_failed);
        assert_int_equal(s->entries, 5);
        for (unsigned i = 0; i < 5; i++)
                assert_string_equal(s->paths[i], s->grants[i].path);
}

static void test_scan_missing(void **state) {
        struct state *s = *state;
        char *argv[] = { (char *)"primus-executor", (char *)"--scan", (char *)"--source", (char *)"1", NULL };
        char file[4096];

        snprintf(file, sizeof(file), "%s/input.json", s->directory);
        describe(file, "file:///no/such");
        assert_int_equal(setenv("PRIMUS_INPUT", file, 1), 0);
        s->unit.kind = ORDER_SCAN;
        spawn(s, argv);
        finish(s);
        assert_int_equal(s->status, 1);
        assert_true(s->bye && s->bye_failed);
        assert_string_equal(s->error, "/no/such: No such file or directory");
}

/* ---- peers that misbehave ---- */

static int dial(struct state *s) {
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

        strcpy(address.sun_path, s->socket);
        assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
        return fd;
}

/* Sends a packet and returns the type of the answer (0: hung up), with its body. */
static uint32_t say(struct state *s, int fd, uint32_t type, const void *body, size_t size,
                    uint8_t *ret_body) {
        uint8_t packet[FEED_PACKET_MAX] = { 0 };
        struct feed_header h = { .type = type, .size = (uint32_t)size };

        memcpy(packet, &h, sizeof(h));
        memcpy(packet + sizeof(h), body, size);
        (void)!send(fd, packet, sizeof(h) + size, MSG_NOSIGNAL);
        for (;;) {
                ssize_t l = recv(fd, packet, sizeof(packet), 0);

                if (l < 0 && errno == EAGAIN) {
                        turn(s);
                        continue;
                }
                if (l < (ssize_t)sizeof(h))
                        return 0;
                memcpy(&h, packet, sizeof(h));
                memcpy(ret_body, packet + sizeof(h), h.size);
                ret_body[h.size] = 0;
                return h.type;
        }
}

static int welcome(struct state *s) {
        uint8_t body[FEED_PACKET_MAX];
        struct feed_hello hello = { .version = FEED_VERSION };
        int fd = dial(s);

        assert_int_equal(say(s, fd, FEED_HELLO, &hello, sizeof(hello), body), FEED_CHALLENGE);
        assert_int_equal(say(s, fd, FEED_ANSWER, body, sizeof(struct feed_challenge), body), FEED_WELCOME);
        return fd;
}

static void test_hostile(void **state) {
        struct state *s = *state;
        uint8_t body[FEED_PACKET_MAX], junk[FEED_PACKET_MAX - sizeof(struct feed_header)];
        struct feed_hello hello = { .version = FEED_VERSION + 2 };
        int fd;

        memset(junk, 0xff, sizeof(junk));
        fd = dial(s);
        assert_int_equal(say(s, fd, FEED_HELLO, &hello, sizeof(hello), body), FEED_REFUSED);
        close(fd);
        fd = dial(s);
        assert_int_equal(say(s, fd, FEED_OPEN, &hello, 4, body), FEED_REFUSED); /* before anything */
        close(fd);
        fd = dial(s);
        hello.version = FEED_VERSION;
        assert_int_equal(say(s, fd, FEED_HELLO, &hello, sizeof(hello), body), FEED_CHALLENGE);
        body[0] ^= 1;
        assert_int_equal(say(s, fd, FEED_ANSWER, body, sizeof(struct feed_challenge), body), FEED_REFUSED);
        close(fd);
        for (uint32_t type = 0; type < 12; type++) {
                fd = welcome(s);
                assert_int_equal(say(s, fd, type, junk, sizeof(junk), body), FEED_REFUSED);
                close(fd);
        }
        fd = welcome(s); /* shorter than its head */
        assert_int_equal(say(s, fd, FEED_PROGRESS, junk, sizeof(struct feed_progress) - 1, body),
                         FEED_REFUSED);
        close(fd);
        assert_int_equal(s->opens, 0);
}

/* An executor of the release before says no number of sources, and is told of none. */
static void test_older_executor(void **state) {
        struct state *s = *state;
        uint8_t body[FEED_PACKET_MAX];
        struct feed_hello hello = { .version = FEED_VERSION_SOURCES - 1 };
        struct {
                struct feed_header header;
                uint32_t credits;
        } open = { { FEED_OPEN, sizeof(open.credits) }, 3 };
        int fd = dial(s);

        assert_int_equal(say(s, fd, FEED_HELLO, &hello, sizeof(hello), body), FEED_CHALLENGE);
        assert_int_equal(say(s, fd, FEED_ANSWER, body, sizeof(struct feed_challenge), body), FEED_WELCOME);
        s->sources = 7;
        assert_int_equal(send(fd, &open, sizeof(open), MSG_NOSIGNAL), (ssize_t)sizeof(open));
        while (s->opens == 0)
                turn(s);
        assert_int_equal(s->sources, 0);
        close(fd);
}

/* A process that passes its connection on cannot be answered for by another. */
static void test_other_process(void **state) {
        struct state *s = *state;
        uint8_t body[FEED_PACKET_MAX];
        struct feed_hello hello = { .version = FEED_VERSION };
        int fd = dial(s), status;
        pid_t pid;

        assert_int_equal(say(s, fd, FEED_HELLO, &hello, sizeof(hello), body), FEED_CHALLENGE);
        pid = fork();
        if (pid == 0) {
                struct feed_header h = { .type = FEED_ANSWER, .size = sizeof(struct feed_challenge) };
                uint8_t packet[sizeof(h) + sizeof(struct feed_challenge)];

                memcpy(packet, &h, sizeof(h));
                memcpy(packet + sizeof(h), body, h.size);
                _exit(send(fd, packet, sizeof(packet), 0) < 0);
        }
        waitpid(pid, &status, 0);
        for (;;) {
                ssize_t l = recv(fd, body, sizeof(body), 0);

                if (l < 0 && errno == EAGAIN) {
                        turn(s);
                        continue;
                }
                assert_true(l > 8);
                body[l] = 0;
                assert_non_null(strstr((char *)body + 8, "another process"));
                break;
        }
        close(fd);
}

static void test_limits(void **state) {
        struct state *s = *state;
        uint8_t body[FEED_PACKET_MAX];
        struct feed_hello hello = { .version = FEED_VERSION };
        int fds[9];

        for (unsigned i = 0; i < 8; i++)
                fds[i] = welcome(s);
        fds[8] = dial(s);
        assert_int_equal(say(s, fds[8], FEED_HELLO, &hello, sizeof(hello), body), FEED_CHALLENGE);
        assert_int_equal(say(s, fds[8], FEED_ANSWER, body, sizeof(struct feed_challenge), body),
                         FEED_REFUSED);
        assert_string_equal((char *)body, "is one connection too many");
        for (unsigned i = 0; i < 9; i++)
                close(fds[i]);
        while (feed_n_connections(s->server) > 0)
                turn(s);
        assert_int_equal(feed_pipe_bytes(s->server), 0);
}

/* Who is in no unit is sent away at once, and holds nothing. */
static void test_outsiders(void **state) {
        struct feed_header h;
        struct state *s = *state;
        uint8_t packet[128];
        ssize_t l;
        int fd, mine;

        outside = true;
        for (unsigned i = 0; i < 300; i++) {
                fd = dial(s);
                while ((l = recv(fd, packet, sizeof(packet) - 1, 0)) < 0 && errno == EAGAIN)
                        turn(s);
                assert_true(l > (ssize_t)sizeof(h));
                memcpy(&h, packet, sizeof(h));
                assert_int_equal(h.type, FEED_REFUSED);
                packet[l] = 0;
                assert_string_equal((char *)packet + sizeof(h), "is in no unit of an executor");
                assert_int_equal(feed_n_connections(s->server), 0);
                close(fd);
        }
        outside = false;
        mine = welcome(s);
        close(mine);
}

/* So many that say nothing: the oldest of them goes, and who does say who it is gets in. */
static void test_silent(void **state) {
        const unsigned n = feed_limits_default.per_stranger + 20;
        struct state *s = *state;
        int fds[512], mine;
        char byte;

        for (unsigned i = 0; i < n; i++) {
                fds[i] = dial(s);
                turn(s);
        }
        while (feed_n_connections(s->server) < feed_limits_default.per_stranger)
                turn(s);
        mine = welcome(s);
        assert_true(feed_n_connections(s->server) <= feed_limits_default.per_stranger + 1);
        while (recv(fds[0], &byte, 1, 0) < 0 && errno == EAGAIN)
                turn(s);
        assert_int_equal(recv(fds[n - 1], &byte, 1, 0), -1);
        assert_int_equal(errno, EAGAIN);
        for (unsigned i = 0; i < n; i++)
                close(fds[i]);
        close(mine);
}

static void test_other_user(void **state) {
        struct state *s = *state;
        uint8_t body[FEED_PACKET_MAX];
        struct feed_hello hello = { .version = FEED_VERSION };
        int fd = dial(s);

        s->unit.uid = getuid() + 1;
        assert_int_equal(say(s, fd, FEED_HELLO, &hello, sizeof(hello), body), FEED_CHALLENGE);
        assert_int_equal(say(s, fd, FEED_ANSWER, body, sizeof(struct feed_challenge), body), FEED_REFUSED);
        assert_string_equal((char *)body, "does not run as its unit's user");
        close(fd);
}

int main(void) {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
        const struct CMUnitTest tests[] = {
                T(test_lines),
                T(test_large),
                T(test_failure),
                T(test_early_success),
                T(test_killed),
                T(test_signal_forwarded),
                T(test_missing_command),
                T(test_changed),
                T(test_agent_restart),
                T(test_no_agent_at_the_end),
                T(test_scan),
                T(test_scan_missing),
                T(test_hostile),
                T(test_older_executor),
                T(test_other_process),
                T(test_limits),
                T(test_outsiders),
                T(test_silent),
                T(test_other_user),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
