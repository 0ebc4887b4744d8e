/* SPDX-License-Identifier: Apache-2.0 */
/* libprimus against an executor's end made here, in every mode. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"
#include "lib/primus/primus.h"
#include "lib/wire/tasks.h"
#include "tests/kit/fake-feed.h"

#define FILES 3

struct set {
        char directory[32];
        char *paths[FILES];
        uint8_t *data[FILES];
        size_t size[FILES];
        size_t n;
};

static void set_add(struct set *s, const void *data, size_t size) {
        FILE *f;

        if (s->n == 0) {
                strcpy(s->directory, "/tmp/primus-test-XXXXXX");
                assert_non_null(mkdtemp(s->directory));
        }
        assert_true(asprintf(&s->paths[s->n], "%s/%zu", s->directory, s->n) > 0);
        f = fopen(s->paths[s->n], "we");
        assert_non_null(f);
        assert_int_equal(fwrite(data, 1, size, f), size);
        assert_int_equal(fclose(f), 0);
        s->data[s->n] = malloc(size + 1);
        memcpy(s->data[s->n], data, size);
        s->size[s->n++] = size;
}

static void set_done(struct set *s) {
        for (size_t i = 0; i < s->n; i++) {
                unlink(s->paths[i]);
                free(s->paths[i]);
                free(s->data[i]);
        }
        rmdir(s->directory);
}

/* Lines of 0 to 399 bytes; the last file lacks its last newline. */
static struct set text_set(size_t lines) {
        struct set s = {};

        for (size_t i = 0; i < FILES; i++) {
                char *text = NULL;
                size_t size = 0;
                FILE *f = open_memstream(&text, &size);

                for (size_t k = 0; k < lines; k++) {
                        unsigned n = (unsigned)(k * 7919 + i * 31) % 400;
                        fprintf(f, "%0*zu", (int)n, k);
                        if (i < FILES - 1 || k < lines - 1)
                                fputc('\n', f);
                }
                fclose(f);
                set_add(&s, text, size);
                free(text);
        }
        return s;
}

struct run {
        struct fake_feed feed;
        struct primus *p;
        char *log;
        size_t log_size;
        int old_stdin;
};

static const struct fake_feed base = {
        .ack = ACK_RELEASE,
        .slots = 4,
        .slot_size = 65536,
        .max_record = 1 << 20,
        .task_size = 20000,
};

static void run_listen(struct run *x, const struct fake_feed *like, struct set *s) {
        int pipe_fds[2];

        *x = (struct run){ .feed = *like, .old_stdin = -1 };
        x->feed.files = s->paths;
        x->feed.n_files = s->n;
        x->feed.log = open_memstream(&x->log, &x->log_size);
        if (like->mode == DELIVERY_STDIN) {
                assert_int_equal(pipe2(pipe_fds, O_CLOEXEC), 0);
                x->old_stdin = fcntl(0, F_DUPFD_CLOEXEC, 10);
                assert_int_equal(dup2(pipe_fds[0], 0), 0);
                close(pipe_fds[0]);
                x->feed.pipe_fd = pipe_fds[1];
        }
        assert_int_equal(fake_feed_start(&x->feed), 0);
        setenv("PRIMUS_FEED", x->feed.name, 1);
}

static void run_open(struct run *x, const void *state, size_t state_size) {
        struct primus_options o = { .size = sizeof(o), .checkpoint = state, .checkpoint_size = state_size };
        int r = primus_open(&o, &x->p);

        if (r < 0)
                fail_msg("primus_open: %s: %s", strerror(-r), primus_error(NULL));
}

static void run_start(struct run *x, const struct fake_feed *like, struct set *s) {
        run_listen(x, like, s);
        run_open(x, NULL, 0);
}

/* Closes; what the executor was told is in x->log then. */
static void run_close(struct run *x) {
        primus_close(x->p);
        x->p = NULL;
        if (x->old_stdin >= 0) {
                dup2(x->old_stdin, 0); /* also lets an executor that is still writing go on, with EPIPE */
                close(x->old_stdin);
        }
        fake_feed_stop(&x->feed);
        fclose(x->feed.log);
        unsetenv("PRIMUS_FEED");
}

static void run_done(struct run *x) {
        free(x->log);
}

static unsigned count(const char *log, const char *word) {
        unsigned n = 0;

        for (const char *at = log; (at = strstr(at, word)); at++)
                n++;
        return n;
}

/* Lines of that word about a whole task. */
static unsigned count_ends(const char *log, const char *word) {
        unsigned n = 0;

        for (const char *line = log; line && *line; line = strchr(line, '\n'), line += line ? 1 : 0) {
                const char *end = strstr(line, " end "), *newline = strchr(line, '\n');

                n += strncmp(line, word, strlen(word)) == 0 && end && end < newline;
        }
        return n;
}

/* Where a file's lines are, one after another over all files. */
struct reader {
        const struct set *s;
        size_t file, at;
};

static bool expect_line(struct reader *r, const struct primus_record *record) {
        const uint8_t *line, *newline;
        size_t n, left;

        while (r->file < r->s->n && r->at == r->s->size[r->file]) {
                r->file++;
                r->at = 0;
        }
        if (r->file == r->s->n)
                return false;
        line = r->s->data[r->file] + r->at;
        left = r->s->size[r->file] - r->at;
        newline = memchr(line, '\n', left);
        n = newline ? (size_t)(newline - line) : left;
        if (record->size != n || memcmp(record->data, line, n) != 0)
                return false;
        r->at += n + (newline != NULL);
        return true;
}

static const enum input_delivery modes[] = { DELIVERY_STDIN, DELIVERY_RING, DELIVERY_DESCRIPTOR };

static void test_lines(void **state) {
        struct set s = text_set(2000);

        for (size_t m = 0; m < 3; m++)
                for (unsigned parts = 1; parts <= 3; parts += 2) {
                        struct fake_feed like = base;
                        struct run x;
                        struct reader reader = { .s = &s };
                        struct primus_record record;
                        int r;

                        if (parts > 1 && modes[m] != DELIVERY_RING)
                                continue;
                        like.mode = modes[m];
                        like.ack = modes[m] == DELIVERY_STDIN ? ACK_LAG : ACK_RELEASE;
                        like.slots_per_record = parts;
                        run_start(&x, &like, &s);
                        assert_int_equal(primus_get_mode(x.p), m);
                        while ((r = primus_next(x.p, &record)) > 0) {
                                if (modes[m] != DELIVERY_STDIN)
                                        assert_int_equal(record.position, reader.at % s.size[reader.file]);
                                assert_true(expect_line(&reader, &record));
                        }
                        assert_int_equal(r, 0);
                        assert_int_equal(reader.file, FILES - 1);
                        assert_int_equal(reader.at, s.size[FILES - 1]);
                        assert_int_equal(primus_next(x.p, &record), 0);
                        assert_string_equal(primus_error(x.p), "");
                        r = (int)x.feed.n_tasks;
                        run_close(&x);
                        if (modes[m] == DELIVERY_RING)
                                assert_int_equal(count(x.log, " end "), r);
                        if (modes[m] == DELIVERY_DESCRIPTOR) {
                                assert_int_equal(count(x.log, "DONE "), r);
                                assert_int_equal(count(x.log, " end "), r);
                        }
                        run_done(&x);
                }
        set_done(&s);
}

/* Blocks of any size, one behind another, are the files. */
static void test_blocks(void **state) {
        static const size_t sizes[] = { 0, 1, 1000, 100000 };
        struct set s = text_set(1000);

        for (size_t m = 0; m < 3; m++)
                for (size_t k = 0; k < ELEMENTSOF(sizes); k++) {
                        struct fake_feed like = base;
                        struct run x;
                        struct primus_block block;
                        size_t file = 0, at = 0;
                        int r;

                        like.mode = modes[m];
                        like.ack = ACK_EXPLICIT;
                        run_start(&x, &like, &s);
                        while ((r = primus_next_block(x.p, sizes[k], &block)) > 0) {
                                const char *newline = memchr(block.data, '\n', block.size);

                                assert_true(block.size > 0);
                                /* One record may be longer than what was asked for. */
                                assert_true(sizes[k] == 0 || block.size <= sizes[k] || !newline ||
                                            newline == (const char *)block.data + block.size - 1);
                                if (at == s.size[file]) {
                                        file++;
                                        at = 0;
                                }
                                assert_true(file < FILES);
                                if (modes[m] == DELIVERY_STDIN && at + block.size == s.size[file] + 1)
                                        block.size--; /* the newline that the last file lacks */
                                assert_true(block.size <= s.size[file] - at);
                                assert_memory_equal(block.data, s.data[file] + at, block.size);
                                assert_int_equal(block.position, at);
                                at += block.size;
                                assert_int_equal(primus_ack(x.p), 0);
                        }
                        assert_int_equal(r, 0);
                        assert_int_equal(at, s.size[FILES - 1]);
                        r = (int)x.feed.n_tasks;
                        run_close(&x);
                        if (modes[m] != DELIVERY_STDIN)
                                assert_int_equal(count_ends(x.log, "ACK "), r);
                        run_done(&x);
                }
        set_done(&s);
}

static void test_explicit(void **state) {
        struct set s = {};
        struct fake_feed like = base;
        struct run x;
        struct primus_record record;
        struct primus_block block;

        set_add(&s, "a\nbb\nccc\ndddd\n", 14);
        like.ack = ACK_EXPLICIT;
        like.task_size = 0;
        for (size_t m = 1; m < 3; m++) {
                like.mode = modes[m];
                run_start(&x, &like, &s);
                assert_int_equal(primus_next(x.p, &record), 1);
                assert_int_equal(primus_next(x.p, &record), 1);
                assert_int_equal(primus_ack(x.p), 0); /* a, bb */
                assert_int_equal(primus_next(x.p, &record), 1);
                assert_int_equal(primus_next(x.p, &record), 1);
                assert_int_equal(primus_ack(x.p), 0); /* all; in the ring the end comes by itself */
                assert_int_equal(primus_next(x.p, &record), 0);
                run_close(&x);
                assert_string_equal(x.log, m == 1 ? "ACK 1 5 0 2\nACK 1 14 0 4\nACK 1 end 0 4\n"
                                                  : "ACK 1 5 0 2\nACK 1 end 0 4\nDONE 1 end 0 4\n");
                run_done(&x);

                run_start(&x, &like, &s);
                assert_int_equal(primus_next_block(x.p, 9, &block), 1);
                assert_int_equal(block.size, 9);
                assert_int_equal(primus_ack_records(x.p, 1), 0);
                assert_int_equal(primus_ack_records(x.p, 2), 0);
                assert_int_equal(primus_ack_records(x.p, 4), -EINVAL);
                assert_int_equal(primus_next_block(x.p, 0, &block), 1);
                assert_int_equal(block.size, 5);
                assert_int_equal(primus_ack_records(x.p, 0), 0);
                assert_int_equal(primus_ack_records(x.p, 1), 0);
                run_close(&x);
                assert_string_equal(x.log, m == 1 ? "ACK 1 2 0 1\nACK 1 5 0 2\nACK 1 9 0 3\nACK 1 14 0 4\n"
                                                  : "ACK 1 2 0 1\nACK 1 5 0 2\nACK 1 9 0 3\nACK 1 end 0 4\n");
                run_done(&x);
        }
        like.mode = DELIVERY_STDIN;
        run_start(&x, &like, &s);
        assert_int_equal(primus_next(x.p, &record), 1);
        assert_int_equal(primus_ack(x.p), 0);
        assert_int_equal(record.task, 1);
        assert_int_equal(primus_next_block(x.p, 0, &block), 1);
        assert_int_equal(primus_ack_records(x.p, 2), 0);
        assert_int_equal(primus_ack(x.p), 0);
        run_close(&x);
        assert_string_equal(x.log, "STREAM 2\nSTREAM 9\nSTREAM 14\n");
        run_done(&x);
        set_done(&s);
}

static void test_ranges(void **state) {
        struct set s = text_set(500);
        struct fake_feed like = base;
        struct run x;
        struct primus_range range;
        uint64_t size = 0;
        unsigned n = 0;

        like.mode = DELIVERY_DESCRIPTOR;
        for (int k = 0; k < 2; k++) {
                like.ack = k == 0 ? ACK_RELEASE : ACK_EXPLICIT;
                size = n = 0;
                run_start(&x, &like, &s);
                while (primus_next_range(x.p, &range) > 0) {
                        uint8_t buf[100];
                        size_t file = strlen(range.path) > 0
                                              ? (size_t)(range.path[strlen(range.path) - 1] - '0')
                                              : 0;

                        assert_true(range.length > 100);
                        assert_int_equal(pread(range.fd, buf, 100, (off_t)range.offset), 100);
                        assert_memory_equal(buf, s.data[file] + range.offset, 100);
                        assert_int_equal(primus_ack_position(x.p, range.task, range.offset + 100), 0);
                        assert_int_equal(primus_ack_position(x.p, range.task + 1, 0), -EINVAL);
                        assert_int_equal(
                                primus_ack_position(x.p, range.task, range.offset + range.length + 1),
                                -EINVAL);
                        if (k == 1)
                                assert_int_equal(
                                        primus_ack_position(x.p, range.task, range.offset + range.length), 0);
                        size += range.length;
                        n++;
                }
                assert_int_equal(size, s.size[0] + s.size[1] + s.size[2]);
                assert_int_equal(n, x.feed.n_tasks);
                run_close(&x);
                assert_int_equal(count(x.log, "DONE "), n);
                assert_int_equal(count(x.log, " end "), k == 0 ? n : 2 * n);
                assert_int_equal(count(x.log, "ACK "), k == 0 ? n : 2 * n);
                run_done(&x);
        }
        /* Records, ranges and blocks may be mixed. */
        {
                struct primus_record record;
                struct primus_block block;

                like.ack = ACK_RELEASE;
                like.task_size = 0;
                run_start(&x, &like, &s);
                assert_int_equal(primus_next(x.p, &record), 1);
                assert_int_equal(primus_next_range(x.p, &range), 1);
                assert_int_equal(primus_next_block(x.p, 1000, &block), 1);
                assert_int_equal(block.task, range.task + 1);
                assert_int_equal(primus_next_range(x.p, &range), 0);
                run_close(&x);
                run_done(&x);
        }
        set_done(&s);
        like.mode = DELIVERY_RING;
        s = text_set(10);
        run_start(&x, &like, &s);
        assert_int_equal(primus_next_range(x.p, &range), -EOPNOTSUPP);
        run_close(&x);
        run_done(&x);
        set_done(&s);
}

/* Trainers that end at any record, restarted from their last checkpoint, get each record once. */
static void test_checkpoints(void **state) {
        struct set s = text_set(300);

        for (size_t m = 0; m < 3; m++)
                for (unsigned stride = 7; stride < 700; stride *= 4) {
                        struct fake_feed like = base;
                        struct reader reader = { .s = &s };
                        _cleanup_free_ void *checkpoint = NULL;
                        size_t size = 0;
                        bool over = false;

                        like.mode = modes[m];
                        like.ack = ACK_CHECKPOINT;
                        like.task_size = 3000;
                        while (!over) {
                                struct run x;
                                struct primus_record record;

                                run_listen(&x, &like, &s);
                                run_open(&x, checkpoint, size);
                                for (unsigned i = 0; i < stride; i++) {
                                        int r = primus_next(x.p, &record);

                                        assert_true(r >= 0);
                                        if (r == 0) {
                                                over = true;
                                                break;
                                        }
                                        assert_true(expect_line(&reader, &record));
                                }
                                free(TAKE_PTR(checkpoint));
                                assert_int_equal(primus_checkpoint(x.p, &checkpoint, &size), 0);
                                /* Every second one ends before it commits; what follows is lost to nobody. */
                                if (stride % 2 == 0)
                                        assert_int_equal(primus_checkpoint_commit(x.p, checkpoint, size), 0);
                                else
                                        (void)primus_next(x.p, &record);
                                run_close(&x);
                                run_done(&x);
                        }
                        assert_int_equal(reader.file, FILES - 1);
                        assert_int_equal(reader.at, s.size[FILES - 1]);
                }
        set_done(&s);
}

/* In the middle of a block too, and with a state that takes many packets. */
static void test_large_checkpoint(void **state) {
        struct set s = text_set(2500);
        struct fake_feed like = base;
        struct run x;
        struct primus_block block;
        struct primus_record record;
        struct reader reader = { .s = &s };
        _cleanup_free_ void *checkpoint = NULL;
        size_t size;
        unsigned n = 0;

        like.mode = DELIVERY_RING;
        like.ack = ACK_CHECKPOINT;
        like.task_size = 1;
        run_start(&x, &like, &s);
        while (n < 6000) {
                assert_int_equal(primus_next_block(x.p, 0, &block), 1);
                n++;
        }
        assert_int_equal(primus_ack_records(x.p, 0), 0); /* nothing of the last one */
        n--;
        assert_int_equal(primus_checkpoint(x.p, &checkpoint, &size), 0);
        assert_true(size > 2 * CLIENT_PACKET_MAX);
        assert_int_equal(primus_checkpoint_commit(x.p, checkpoint, size), 0);
        assert_int_equal(primus_checkpoint_commit(x.p, checkpoint, size - 1), -EBADMSG);
        run_close(&x);
        assert_int_equal(count(x.log, "COMMIT "),
                         (size - sizeof(struct client_state)) / sizeof(struct client_ack));
        run_done(&x);
        run_listen(&x, &like, &s);
        run_open(&x, checkpoint, size);
        while (n-- > 0) {
                size_t left = 0;
                const uint8_t *line, *newline;

                while (reader.at == s.size[reader.file]) {
                        reader.file++;
                        reader.at = 0;
                }
                line = s.data[reader.file] + reader.at;
                left = s.size[reader.file] - reader.at;
                newline = memchr(line, '\n', left);
                reader.at += newline ? (size_t)(newline - line) + 1 : left;
        }
        while (primus_next(x.p, &record) > 0)
                assert_true(expect_line(&reader, &record));
        assert_int_equal(reader.file, FILES - 1);
        assert_int_equal(reader.at, s.size[FILES - 1]);
        run_close(&x);
        run_done(&x);
        set_done(&s);
}

static void test_wrong_checkpoints(void **state) {
        struct set s = text_set(10);
        struct fake_feed like = base;
        struct run x;
        struct primus_options o = { .size = sizeof(o), .checkpoint = "nonsense", .checkpoint_size = 8 };
        void *checkpoint;
        size_t size;

        like.mode = DELIVERY_RING;
        run_listen(&x, &like, &s);
        assert_int_equal(primus_open(&o, &x.p), -EBADMSG);
        assert_non_null(strstr(primus_error(NULL), "checkpoint"));
        o.size = 4;
        assert_int_equal(primus_open(&o, &x.p), -EINVAL);
        run_open(&x, NULL, 0);
        assert_int_equal(primus_checkpoint(x.p, &checkpoint, &size), -EOPNOTSUPP);
        run_close(&x);
        run_done(&x);
        set_done(&s);
}

/* 12 bytes a record, the framing of a TFRecord with its checksums. */
static void tfrecord(FILE *f, const void *data, uint64_t size) {
        uint32_t crc = crc32c(0, &size, 8);

        crc = ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
        fwrite(&size, 8, 1, f);
        fwrite(&crc, 4, 1, f);
        fwrite(data, 1, size, f);
        crc = crc32c(0, data, size);
        crc = ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
        fwrite(&crc, 4, 1, f);
}

/* A task that is broken is told of, and the next one follows; what came before the break is delivered. */
static void test_broken(void **state) {
        for (size_t m = 1; m < 3; m++) {
                struct set s = {};
                struct fake_feed like = base;
                struct run x;
                struct primus_record record;
                unsigned good = 0, bad = 0;
                int r;

                for (int i = 0; i < 3; i++) {
                        char *data = NULL;
                        size_t size = 0;
                        FILE *f = open_memstream(&data, &size);

                        for (int k = 0; k < 10; k++)
                                tfrecord(f, "0123456789", 10);
                        fclose(f);
                        if (i == 1)
                                data[26 * 5 + 14] ^= 1;
                        set_add(&s, data, size);
                        free(data);
                }
                like.format.kind = RECORD_TFRECORD;
                like.mode = modes[m];
                like.task_size = 0;
                run_start(&x, &like, &s);
                while ((r = primus_next(x.p, &record)) != 0) {
                        if (r == -EBADMSG) {
                                bad++;
                                assert_non_null(strstr(primus_error(x.p), "task "));
                                continue;
                        }
                        assert_int_equal(r, 1);
                        assert_int_equal(record.size, 10);
                        assert_memory_equal(record.data, "0123456789", 10);
                        good++;
                }
                assert_int_equal(good, 25);
                assert_in_range(bad, 1, 2); /* the fake executor cuts a broken file in two */
                run_close(&x);
                assert_int_equal(count(x.log, "FAIL "), bad);
                run_done(&x);
                set_done(&s);
        }
}

static void test_broken_off(void **state) {
        struct set s = text_set(50);
        struct fake_feed like = base;
        struct run x;
        struct primus_record record;
        unsigned n = 0;

        like.mode = DELIVERY_RING;
        like.task_size = 0;
        like.slots_per_record = 2;
        like.break_task = 2;
        run_start(&x, &like, &s);
        while (primus_next(x.p, &record) > 0)
                n++;
        assert_int_equal(n, 101); /* one of the second file, and not half of its second */
        run_close(&x);
        run_done(&x);
        /* The trainer says that a task is of no use. */
        like.break_task = 0;
        like.slots_per_record = 0;
        for (size_t m = 1; m < 3; m++) {
                like.mode = modes[m];
                like.ack = ACK_EXPLICIT;
                run_start(&x, &like, &s);
                for (n = 0; n < 60; n++)
                        assert_int_equal(primus_next(x.p, &record), 1);
                assert_int_equal(primus_fail(x.p, "not what I want"), 0);
                for (n = 0; primus_next(x.p, &record) > 0;)
                        n++;
                assert_int_equal(n, 50);
                assert_int_equal(record.task, 3);
                assert_int_equal(primus_ack(x.p), 0);
                run_close(&x);
                assert_non_null(strstr(x.log, "FAIL 2 not what I want\n"));
                assert_non_null(strstr(x.log, "ACK 1 end 0 50\n"));
                assert_null(strstr(x.log, "ACK 2 end"));
                run_done(&x);
        }
        set_done(&s);
}

/* Which file a record is of: asked for once a task, and not at all of an executor that does not know it. */
static void test_where(void **state) {
        for (size_t m = 0; m < 4; m++) {
                struct set s = text_set(100);
                struct fake_feed like = base;
                struct primus_record record;
                const char *path = NULL;
                struct run x;
                unsigned n = 0;

                like.mode = modes[m % 3];
                like.ack = m == 0 ? ACK_EXPLICIT : ACK_RELEASE;
                like.task_size = 0;
                like.version = m == 3 ? CLIENT_VERSION_WHERE - 1 : 0;
                if (m == 3)
                        like.mode = DELIVERY_RING;
                run_start(&x, &like, &s);
                assert_int_equal(primus_task_path(x.p, &path), 0); /* before the first record */
                assert_null(path);
                while (primus_next(x.p, &record) > 0) {
                        int r = primus_task_path(x.p, &path);

                        assert_int_equal(r, m < 3);
                        if (m < 3)
                                assert_string_equal(path, s.paths[record.task - 1]);
                        n++;
                }
                assert_true(n > 0);
                run_close(&x);
                assert_int_equal(strstr(x.log, "WHERE 1\n") != NULL, m < 3);
                if (m < 3) /* once */
                        assert_null(strstr(strstr(x.log, "WHERE 1\n") + 1, "WHERE 1\n"));
                run_done(&x);
                set_done(&s);
        }
}

static void test_trim(void **state) {
        struct set s = text_set(20000);
        struct fake_feed like = base;
        struct run x;
        struct primus_record record;
        const char *trimmed;
        uint64_t task, end;

        like.mode = DELIVERY_DESCRIPTOR;
        like.task_size = 0;
        like.trim_task = 1;
        like.trim_end = s.size[0] / 2;
        run_start(&x, &like, &s);
        assert_int_equal(primus_next(x.p, &record), 1);
        usleep(50000); /* what it is asked comes while the trainer is busy */
        end = 0;
        while (primus_next(x.p, &record) > 0)
                if (record.task == 1)
                        end = record.position + record.size + 1;
        run_close(&x);
        trimmed = strstr(x.log, "TRIMMED ");
        assert_non_null(trimmed);
        assert_int_equal(sscanf(trimmed, "TRIMMED %" SCNu64 " %" SCNu64, &task, (uint64_t[1]){}), 2);
        assert_int_equal(strtoull(trimmed + 10, NULL, 10), end);
        assert_true(end >= s.size[0] / 2 && end < s.size[0] / 2 + 400);
        run_done(&x);
        set_done(&s);
}

/* A record behind another is read wherever it lies, also one that is larger than what is read at once. */
static void test_long_records(void **state) {
        struct set s = {};
        _cleanup_free_ char *text = malloc(5 << 20);

        memset(text, 'x', 5 << 20);
        text[(3 << 20)] = '\n';
        text[(5 << 20) - 1] = '\n';
        set_add(&s, text, 5 << 20);
        set_add(&s, "a\nb\n", 4);
        for (size_t m = 0; m < 3; m++)
                for (int fits = 0; fits < 2; fits++) {
                        struct fake_feed like = base;
                        struct run x;
                        struct primus_record record;

                        like.mode = modes[m];
                        like.ack = ACK_EXPLICIT;
                        like.max_record = fits ? 8 << 20 : 1 << 20;
                        like.task_size = 0;
                        run_start(&x, &like, &s);
                        if (fits) {
                                assert_int_equal(primus_next(x.p, &record), 1);
                                assert_int_equal(record.size, 3 << 20);
                                assert_int_equal(primus_next(x.p, &record), 1);
                                assert_int_equal(record.size, (2 << 20) - 2);
                        } else
                                assert_int_equal(primus_next(x.p, &record), -EBADMSG);
                        assert_int_equal(primus_next(x.p, &record), 1);
                        assert_int_equal(record.size, 1);
                        assert_int_equal(record.task, 2);
                        run_close(&x);
                        run_done(&x);
                }
        set_done(&s);
}

static void test_formats(void **state) {
        static const struct {
                struct record_format_info format;
                const char *data;
                unsigned records, last;
        } cases[] = {
                { { .kind = RECORD_RAW, .record_size = 4 }, "0123456789", 3, 2 },
                { { .kind = RECORD_FIXED, .record_size = 5 }, "0123456789", 2, 5 },
                { { .kind = RECORD_CSV }, "a,b\n1,2\n3,44\n", 2, 4 },
                { { .kind = RECORD_CSV, .multiline = true }, "a,b\n1,\"x\ny\"\n3,44\n5,6\n", 3, 3 },
                { { .kind = RECORD_CSV }, "a,b\n", 0, 0 },
                { { .kind = RECORD_TEXT }, "", 0, 0 },
        };

        for (size_t m = 1; m < 3; m++)
                for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                        struct set s = {};
                        struct fake_feed like = base;
                        struct run x;
                        struct primus_record record = {};
                        const void *header;
                        size_t size;
                        unsigned n = 0;

                        set_add(&s, cases[i].data, strlen(cases[i].data));
                        like.mode = modes[m];
                        like.format = cases[i].format;
                        run_start(&x, &like, &s);
                        while (primus_next(x.p, &record) > 0) {
                                n++;
                                assert_int_equal(primus_source_format(x.p, record.source),
                                                 cases[i].format.kind);
                                if (cases[i].format.kind == RECORD_CSV) {
                                        assert_int_equal(primus_header(x.p, &header, &size), 1);
                                        assert_int_equal(size, 3);
                                        assert_memory_equal(header, "a,b", 3);
                                }
                        }
                        assert_int_equal(n, cases[i].records);
                        assert_int_equal(record.size, cases[i].last);
                        run_close(&x);
                        run_done(&x);
                        set_done(&s);
                }
}

static void tar_member(FILE *f, const char *name, const char *data) {
        char h[512] = {};
        unsigned sum = 0;
        char padding[512] = {};
        size_t size = strlen(data);

        strcpy(h, name);
        snprintf(h + 100, 8, "%07o", 0644);
        snprintf(h + 124, 12, "%011o", (unsigned)size & 0777777u);
        memcpy(h + 257,
               "ustar\0"
               "00",
               8);
        h[156] = '0';
        memset(h + 148, ' ', 8);
        for (size_t i = 0; i < 512; i++)
                sum += (unsigned char)h[i];
        snprintf(h + 148, 8, "%06o", sum);
        fwrite(h, 512, 1, f);
        fwrite(data, 1, size, f);
        fwrite(padding, 1, (512 - size % 512) % 512, f);
}

static void test_tar(void **state) {
        struct set s = {};
        char *data = NULL, end[1024] = {};
        size_t size = 0;
        FILE *f = open_memstream(&data, &size);

        for (int i = 0; i < 5; i++) {
                char name[32], text[32];

                snprintf(name, sizeof(name), "d/%03d.txt", i);
                snprintf(text, sizeof(text), "text %d", i);
                tar_member(f, name, text);
                snprintf(name, sizeof(name), "d/%03d.cls", i);
                tar_member(f, name, i % 2 ? "1" : "0");
        }
        fwrite(end, sizeof(end), 1, f);
        fclose(f);
        set_add(&s, data, size);
        free(data);
        for (size_t m = 1; m < 3; m++)
                for (unsigned parts = 1; parts < 3; parts++) {
                        struct fake_feed like = base;
                        struct run x;
                        struct primus_record record;
                        int n = 0;

                        like.mode = modes[m];
                        like.format.kind = RECORD_TAR;
                        like.task_size = 0;
                        like.slots_per_record = parts;
                        run_start(&x, &like, &s);
                        for (; primus_next(x.p, &record) > 0; n++) {
                                size_t iterator = 0, name_size, member_size;
                                const char *name;
                                const void *member;
                                char text[32];

                                snprintf(text, sizeof(text), "text %d", n);
                                assert_int_equal(primus_tar_next(&record, &iterator, &name, &name_size,
                                                                 &member, &member_size),
                                                 1);
                                assert_int_equal(name_size, 9);
                                assert_memory_equal(name + 5, ".txt", 4);
                                assert_int_equal(member_size, 6);
                                assert_memory_equal(member, text, 6);
                                assert_int_equal(primus_tar_next(&record, &iterator, &name, &name_size,
                                                                 &member, &member_size),
                                                 1);
                                assert_memory_equal(member, n % 2 ? "1" : "0", 1);
                                assert_int_equal(primus_tar_next(&record, &iterator, &name, &name_size,
                                                                 &member, &member_size),
                                                 0);
                        }
                        assert_int_equal(n, 5);
                        run_close(&x);
                        run_done(&x);
                }
        set_done(&s);
}

/* A file that is cut while it is read gives no bytes that are not in it. */
static void test_shrunk(void **state) {
        struct set s = text_set(20000);
        struct fake_feed like = base;
        struct run x;
        struct primus_record record;
        int r;

        like.mode = DELIVERY_DESCRIPTOR;
        like.task_size = 0;
        run_start(&x, &like, &s);
        assert_int_equal(primus_next(x.p, &record), 1);
        assert_int_equal(truncate(s.paths[0], (off_t)s.size[0] / 2), 0);
        while ((r = primus_next(x.p, &record)) > 0 && record.task == 1)
                assert_null(memchr(record.data, 0, record.size));
        assert_int_equal(r, -EBADMSG);
        assert_non_null(strstr(primus_error(x.p), "shorter"));
        assert_int_equal(primus_next(x.p, &record), 1);
        assert_int_equal(record.task, 2);
        run_close(&x);
        assert_non_null(strstr(x.log, "FAIL 1 the file has become shorter"));
        run_done(&x);
        set_done(&s);
}

static void test_fork(void **state) {
        struct set s = text_set(10);
        struct fake_feed like = base;
        struct run x;
        struct primus_record record;
        int status;
        pid_t pid;

        like.mode = DELIVERY_DESCRIPTOR;
        run_start(&x, &like, &s);
        assert_int_equal(primus_next(x.p, &record), 1);
        pid = fork();
        if (pid == 0) {
                int r = primus_next(x.p, &record);
                bool right = r == -ECHILD && strstr(primus_error(x.p), "fork");

                primus_close(x.p);
                _exit(right ? 0 : 1);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
        assert_int_equal(primus_next(x.p, &record), 1); /* the child took nothing with it */
        run_close(&x);
        run_done(&x);
        set_done(&s);
}

static void test_poll(void **state) {
        struct set s = text_set(1000);

        for (size_t m = 0; m < 3; m++) {
                struct fake_feed like = base;
                struct run x;
                struct primus_record record;
                struct reader reader = { .s = &s };
                struct pollfd w;
                int r;

                like.mode = modes[m];
                run_start(&x, &like, &s);
                w = (struct pollfd){ .fd = primus_get_fd(x.p), .events = POLLIN };
                assert_true(w.fd >= 0);
                do {
                        assert_int_equal(poll(&w, 1, 5000), 1);
                        r = primus_next(x.p, &record);
                        if (r > 0)
                                assert_true(expect_line(&reader, &record));
                } while (r > 0);
                assert_int_equal(r, 0);
                assert_int_equal(reader.at, s.size[FILES - 1]);
                run_close(&x);
                run_done(&x);
        }
        set_done(&s);
}

static void test_not_an_executor(void **state) {
        struct primus *p = NULL;

        unsetenv("PRIMUS_FEED");
        setenv("PRIMUS_JOB", "1", 1);
        assert_int_equal(primus_open(NULL, &p), -ENOENT);
        assert_non_null(strstr(primus_error(NULL), "no data"));
        unsetenv("PRIMUS_JOB");
        setenv("PRIMUS_FEED", "@primus-feed/test/nobody", 1);
        assert_int_equal(primus_open(NULL, &p), -ECONNREFUSED);
        setenv("PRIMUS_FEED", "/not/abstract", 1);
        assert_int_equal(primus_open(NULL, &p), -EINVAL);
        assert_null(p);
        unsetenv("PRIMUS_FEED");
        primus_close(NULL);
}

/* Without Primus, from a file. Acknowledging and checkpoints do nothing then. */
static void test_by_hand(void **state) {
        struct set s = text_set(1000);
        struct reader reader = { .s = &s };
        struct primus_record record;
        struct primus *p;
        void *checkpoint;
        size_t size;
        int old = fcntl(0, F_DUPFD_CLOEXEC, 10), fd = open(s.paths[0], O_RDONLY | O_CLOEXEC);

        assert_int_equal(dup2(fd, 0), 0);
        close(fd);
        assert_int_equal(primus_open(NULL, &p), 0);
        assert_int_equal(primus_get_mode(p), PRIMUS_STDIN);
        while (primus_next(p, &record) > 0) {
                assert_true(expect_line(&reader, &record));
                assert_int_equal(primus_ack(p), 0);
        }
        assert_int_equal(reader.at, s.size[0]);
        assert_int_equal(primus_checkpoint(p, &checkpoint, &size), 0);
        assert_int_equal(primus_checkpoint_commit(p, checkpoint, size), 0);
        free(checkpoint);
        primus_close(p);
        dup2(old, 0);
        close(old);
        set_done(&s);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_lines),
                cmocka_unit_test(test_blocks),
                cmocka_unit_test(test_explicit),
                cmocka_unit_test(test_ranges),
                cmocka_unit_test(test_checkpoints),
                cmocka_unit_test(test_large_checkpoint),
                cmocka_unit_test(test_wrong_checkpoints),
                cmocka_unit_test(test_broken),
                cmocka_unit_test(test_broken_off),
                cmocka_unit_test(test_where),
                cmocka_unit_test(test_trim),
                cmocka_unit_test(test_long_records),
                cmocka_unit_test(test_formats),
                cmocka_unit_test(test_tar),
                cmocka_unit_test(test_shrunk),
                cmocka_unit_test(test_fork),
                cmocka_unit_test(test_poll),
                cmocka_unit_test(test_not_an_executor),
                cmocka_unit_test(test_by_hand),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
