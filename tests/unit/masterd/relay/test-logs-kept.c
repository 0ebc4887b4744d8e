/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"
#include "lib/base/file.h"
#include "masterd/relay/logs-kept.h"
#include "masterd/relay/logs-worker.h"
#include "masterd/relay/logs.h"

static const struct executor_id id = { .job_uid = SD_ID128_MAKE(01, 02, 03, 04, 05, 06, 07, 08, 09, 0a, 0b,
                                                                0c, 0d, 0e, 0f, 10),
                                       .job = 7,
                                       .role = "worker",
                                       .index = 3,
                                       .attempt = 2 };

struct place {
        char path[64];
        int fd;
};

static int setup(void **state) {
        struct place *p = calloc(1, sizeof(*p));

        assert_non_null(p);
        strcpy(p->path, "/tmp/test-kept.XXXXXX");
        assert_non_null(mkdtemp(p->path));
        p->fd = open(p->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        assert_true(p->fd >= 0);
        *state = p;
        return 0;
}

static int teardown(void **state) {
        struct place *p = *state;

        close(p->fd);
        assert_int_equal(remove_tree(p->path), 0);
        free(p);
        return 0;
}

/* Byte X of the log of these tests; a line ends every 64 bytes. */
static char byte_at(uint64_t x) {
        return x % 64 == 63 ? '\n' : (char)('a' + (x * 31 + x / 977) % 26);
}

static void append(int fd, uint64_t offset, size_t size) {
        _cleanup_free_ char *buf = malloc(size ? size : 1);

        assert_non_null(buf);
        for (size_t i = 0; i < size; i++)
                buf[i] = byte_at(offset + i);
        assert_int_equal(kept_append(fd, &id, offset, buf, size), 0);
}

static void expect(int fd, uint64_t from, uint64_t tail, uint64_t start, uint64_t end) {
        _cleanup_free_ char *buf = NULL;
        size_t size = 4711;
        uint64_t got = 4711;

        assert_int_equal(kept_read(fd, &id, from, tail, &buf, &size, &got), 0);
        assert_int_equal(got, start);
        assert_int_equal(size, end - start);
        for (size_t i = 0; i < size; i++)
                if (buf[i] != byte_at(start + i))
                        fail_msg("byte %zu of [%llu, %llu) is wrong", i, (unsigned long long)start,
                                 (unsigned long long)end);
}

static void test_append(void **state) {
        struct place *p = *state;
        char *buf = NULL;
        size_t size;
        uint64_t start;

        assert_int_equal(kept_read(p->fd, &id, 0, 0, &buf, &size, &start), -ENOENT);
        append(p->fd, 0, 100);
        expect(p->fd, 0, 0, 0, 100);
        append(p->fd, 100, 0);
        append(p->fd, 100, 28);
        append(p->fd, 0, 128);  /* told again */
        append(p->fd, 64, 128); /* partly new */
        expect(p->fd, 0, 0, 0, 192);
        expect(p->fd, 10, 0, 10, 192);
        expect(p->fd, 192, 0, 192, 192);
        expect(p->fd, 5000, 0, 192, 192); /* behind the end: nothing */
        /* A tail begins with a line. */
        expect(p->fd, 0, 100, 128, 192);
        expect(p->fd, 0, 1000, 0, 192);
}

static void test_ring(void **state) {
        struct place *p = *state;
        uint64_t end = 0;
        struct stat st;

        for (size_t step = 1; end < 5 * LOG_KEPT_MAX; step = step * 3 % 40009) {
                append(p->fd, end, step);
                end += step;
                if (step % 5 == 0 && end > LOG_KEPT_MAX)
                        expect(p->fd, end - 1000, 0, end - 1000, end);
        }
        /* All of it: from the first whole line on. */
        uint64_t first = end - LOG_KEPT_MAX;
        expect(p->fd, 0, 0, (first / 64 + 1) * 64, end);
        assert_int_equal(fstatat(p->fd, "7/worker-3.2", &st, 0), 0);
        assert_true(st.st_size <= LOG_KEPT_MAX + 64);
        /* More than the ring at once. */
        append(p->fd, end, 2 * LOG_KEPT_MAX + 77);
        end += 2 * LOG_KEPT_MAX + 77;
        expect(p->fd, end - LOG_KEPT_MAX, 0, end - LOG_KEPT_MAX, end);
}

static void test_gap(void **state) {
        struct place *p = *state;
        uint64_t there = (uint64_t)10 << 30;

        append(p->fd, 0, 5000);
        append(p->fd, there, 300);
        expect(p->fd, there, 0, there, there + 300);
        expect(p->fd, 0, 0, there + 64, there + 300);
        append(p->fd, there + 300, LOG_KEPT_MAX - 300);
        expect(p->fd, there, 0, there, there + LOG_KEPT_MAX);
        assert_int_equal(kept_append(p->fd, &id, UINT64_MAX, "xy", 2), -EOVERFLOW);
}

/* Numbers of jobs may come again in a new cluster: the uid decides. A damaged file counts as none. */
static void test_others(void **state) {
        struct place *p = *state;
        struct executor_id other = id;
        char *buf = NULL;
        size_t size;
        uint64_t start;

        other.job_uid = SD_ID128_MAKE(11, 02, 03, 04, 05, 06, 07, 08, 09, 0a, 0b, 0c, 0d, 0e, 0f, 10);
        append(p->fd, 0, 500);
        assert_int_equal(kept_read(p->fd, &other, 0, 0, &buf, &size, &start), -ENOENT);
        _cleanup_close_ int fd = openat(p->fd, "7/worker-3.2", O_RDWR | O_CLOEXEC);
        assert_true(fd >= 0);
        assert_int_equal(ftruncate(fd, 300), 0);
        assert_int_equal(kept_read(p->fd, &id, 0, 0, &buf, &size, &start), -ENOENT);
        assert_int_equal(ftruncate(fd, 3), 0);
        assert_int_equal(kept_read(p->fd, &id, 0, 0, &buf, &size, &start), -ENOENT);
        append(p->fd, 500, 12);
        expect(p->fd, 500, 0, 500, 512);
        assert_int_equal(kept_append(p->fd, &other, 0, "new\n", 4), 0);
        assert_int_equal(kept_read(p->fd, &other, 0, 0, &buf, &size, &start), 0);
        assert_memory_equal(buf, "new\n", 4);
        free(buf);
        assert_int_equal(kept_forget(p->fd, 7), 0);
        assert_int_equal(kept_forget(p->fd, 7), 0);
        assert_int_equal(kept_read(p->fd, &other, 0, 0, &buf, &size, &start), -ENOENT);
}

/* ---- the thread ---- */

struct answers {
        unsigned n;
        char line[LOG_LINE_MAX];
        size_t size;
        int result;
};

static void on_done(struct log_task *t, void *userdata) {
        struct answers *a = userdata;

        a->n++;
        a->result = t->result;
        a->size = t->size;
        if (t->kind == LOG_TASK_ERROR)
                strcpy(a->line, t->line);
}

static void push(struct log_worker *w, enum log_task_kind kind, uint64_t offset, const char *text,
                 struct answers *a) {
        struct log_task *t = log_task_new(kind, &id);

        assert_non_null(t);
        t->offset = offset;
        if (text) {
                t->data = strdup(text);
                t->size = strlen(text);
        }
        if (a) {
                t->done = on_done;
                t->userdata = a;
        }
        log_worker_push(w, t);
}

static void test_worker(void **state) {
        struct place *p = *state;
        struct answers a = {};
        struct log_worker *w;
        sd_event *event;
        char path[128];

        snprintf(path, sizeof(path), "%s/logs", p->path);
        assert_int_equal(sd_event_new(&event), 0);
        assert_int_equal(log_worker_new(event, path, &w), 0);
        push(w, LOG_TASK_ERROR, 0, NULL, &a);
        push(w, LOG_TASK_APPEND, 0, "one\n", NULL);
        push(w, LOG_TASK_APPEND, 4, "run.sh: line 1: x: command not found\n", NULL);
        push(w, LOG_TASK_ERROR, 0, NULL, &a);
        push(w, LOG_TASK_READ, 4, NULL, &a);
        while (a.n < 3)
                assert_true(sd_event_run(event, 5000000) > 0);
        assert_int_equal(a.result, 0);
        assert_string_equal(a.line, "run.sh: line 1: x: command not found");
        assert_int_equal(a.size, 37);
        assert_int_equal(log_worker_dropped(w), 0);
        push(w, LOG_TASK_FORGET, 0, NULL, NULL);
        push(w, LOG_TASK_READ, 0, NULL, &a);
        while (a.n < 4)
                assert_true(sd_event_run(event, 5000000) > 0);
        assert_int_equal(a.result, -ENOENT);
        /* What waits is written before the end; answers that nobody fetched are dropped. */
        push(w, LOG_TASK_APPEND, 0, "last\n", NULL);
        push(w, LOG_TASK_READ, 0, NULL, &a);
        log_worker_free(w);
        assert_int_equal(a.n, 4);
        snprintf(path, sizeof(path), "%s/logs/7/worker-3.2", p->path);
        assert_int_equal(access(path, F_OK), 0);
        sd_event_unref(event);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_append, setup, teardown),
                cmocka_unit_test_setup_teardown(test_ring, setup, teardown),
                cmocka_unit_test_setup_teardown(test_gap, setup, teardown),
                cmocka_unit_test_setup_teardown(test_others, setup, teardown),
                cmocka_unit_test_setup_teardown(test_worker, setup, teardown),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
