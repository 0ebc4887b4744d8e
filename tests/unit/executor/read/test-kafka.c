/* SPDX-License-Identifier: Apache-2.0 */
/* Partitions read as tasks, against librdkafka's mock cluster. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#include "executor/read/kafka.h"
#include "executor/scan/scan.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/record/record.h"
#include "tests/kit/kafka-mock.h"

static struct kafka_mock *mock;
static char servers[256];
static char *config[4] = { servers, NULL };
static struct input input = { .max_record = 64u << 20 };

static int setup(void **state) {
        mock = kafka_mock_new();
        snprintf(servers, sizeof(servers), "bootstrap.servers=%s", kafka_mock_servers(mock));
        return 0;
}

static int teardown(void **state) {
        kafka_done(5 * USEC_PER_SEC);
        kafka_mock_free(mock);
        return 0;
}

/* Each test has a topic of its own. */
static struct input_source topic(const char *name, int partitions) {
        assert_int_equal(kafka_mock_topic(mock, name, partitions), 0);
        config[1] = NULL;
        return (struct input_source){ .name = (char *)name,
                                      .kind = SOURCE_KAFKA,
                                      .format = FORMAT_MESSAGE,
                                      .topic = (char *)name,
                                      .group = (char *)"group",
                                      .config = config,
                                      .start = KAFKA_EARLIEST,
                                      .message_type = KAFKA_JSON };
}

static struct reader *open_at(const struct input_source *s, const char *path, uint64_t offset, bool framed,
                              atomic_bool *cancel) {
        struct task_grant task = { .task = 1,
                                   .start = 0,
                                   .offset = offset,
                                   .end = TASK_TO_END,
                                   .size = TASK_UNKNOWN,
                                   .path = path };
        struct reader_request q = {
                .input = &input, .source = s, .task = &task, .framed = framed, .cancel = cancel
        };
        char error[READ_ERROR_MAX] = "";
        struct reader *r = NULL;

        if (reader_open(&q, &r, error) < 0)
                fail_msg("%s", error);
        return r;
}

/* A slice; what comes is compared. Returns the position behind it. */
static uint64_t slice(const struct input_source *s, const char *path, uint64_t from, size_t room,
                      uint64_t expected, int end) {
        _cleanup_(reader_close_p) struct reader *r = open_at(s, path, from, false, NULL);
        _cleanup_free_ uint8_t *buf = malloc(room);
        char error[READ_ERROR_MAX] = "", text[512] = "", line[512];
        size_t have = 0;
        uint64_t at = from;
        struct chunk c;
        int k;

        assert_non_null(buf);
        while ((k = reader_next(r, buf, room, &c, error)) > 0) {
                assert_int_equal(c.position, at);
                for (size_t i = 0; i < c.size; i++) {
                        text[have++] = (char)buf[i];
                        if (buf[i] != '\n')
                                continue;
                        text[have] = 0;
                        snprintf(line, sizeof(line), "%s message %llu\n", path, (unsigned long long)at);
                        assert_string_equal(text, line);
                        have = 0;
                        at++;
                }
                assert_int_equal(c.end, at);
        }
        if (k != end)
                fail_msg("%d: %s", k, error);
        assert_int_equal(at - from, expected);
        return at;
}

static void test_slices(void **state) {
        struct input_source s = topic("slices", 2);
        uint64_t before;

        assert_int_equal(kafka_mock_produce(mock, "slices", 0, 0, 15000), 0);
        assert_int_equal(kafka_mock_produce(mock, "slices", 1, 0, 10), 0);
        assert_int_equal(slice(&s, "slices/0", 0, 1 << 20, KAFKA_SLICE, -EAGAIN), KAFKA_SLICE);
        assert_int_equal(slice(&s, "slices/1", 0, 1 << 20, 10, -EAGAIN), 10);
        assert_int_equal(slice(&s, "slices/0", KAFKA_SLICE, 1 << 20, 5000, -EAGAIN), 15000);
        /* Nothing new is a matter of 100 ms, and a new message comes in the next slice. */
        before = now_boot();
        assert_int_equal(slice(&s, "slices/0", 15000, 1 << 20, 0, -EAGAIN), 15000);
        assert_true(now_boot() - before < USEC_PER_SEC);
        assert_int_equal(kafka_mock_produce(mock, "slices", 0, 15000, 3), 0);
        for (unsigned i = 0; i < 20 && before; i++) {
                struct reader *r = open_at(&s, "slices/0", 15000, false, NULL);
                uint8_t buf[4096];
                char error[READ_ERROR_MAX];
                struct chunk c;

                if (reader_next(r, buf, sizeof(buf), &c, error) > 0)
                        before = 0;
                reader_close(r);
        }
        assert_int_equal(before, 0);
        /* Anywhere, and in pieces. */
        assert_int_equal(slice(&s, "slices/0", 14990, 1 << 20, 13, -EAGAIN), 15003);
        assert_int_equal(slice(&s, "slices/0", 14990, 10, 13, -EAGAIN), 15003);
}

static void test_framed(void **state) {
        struct input_source s = topic("framed", 1);
        _cleanup_(reader_close_p) struct reader *r = NULL;
        struct record_format_info format = { .kind = RECORD_MESSAGE };
        char error[READ_ERROR_MAX] = "";
        uint8_t buf[4096] __attribute__((aligned(8)));
        struct chunk c;
        size_t at = 0;

        assert_int_equal(kafka_mock_produce(mock, "framed", 0, 0, 5), 0);
        r = open_at(&s, "framed/0", 1, true, NULL);
        assert_int_equal(reader_next(r, buf, sizeof(buf), &c, error), 1);
        assert_int_equal(c.records, 4);
        assert_true(c.position == 1 && c.end == 5);
        for (unsigned i = 1; i < 5; i++) {
                struct record record;
                const char *why = "";
                char text[64];

                assert_int_equal(record_next(&format, buf + at, c.size - at, true, &record, &why), 1);
                snprintf(text, sizeof(text), "framed/0 message %u", i);
                assert_int_equal(record.offset, i);
                assert_true(record.size == strlen(text) && memcmp(record.data, text, record.size) == 0);
                assert_true(record.timestamp_msec > 0);
                assert_int_equal(record.key_size, i % 2 ? 0 : 5);
                at += record.total;
        }
        assert_int_equal(at, c.size);
}

static void test_large(void **state) {
        struct input_source s = topic("large", 1);
        _cleanup_free_ uint8_t *buf = malloc(1 << 16);
        char error[READ_ERROR_MAX] = "";
        size_t total = 0;
        struct reader *r;
        struct chunk c;
        unsigned n = 0;

        assert_int_equal(kafka_mock_produce_large(mock, "large", 0, 300000), 0);
        r = open_at(&s, "large/0", 0, false, NULL);
        do {
                assert_int_equal(reader_next(r, buf, 1 << 16, &c, error), 1);
                assert_int_equal(c.flags,
                                 (n == 0 ? CHUNK_FIRST : 0) | (total + c.size < 300001 ? CHUNK_MORE : 0));
                total += c.size;
                n++;
        } while (c.flags & CHUNK_MORE);
        assert_int_equal(total, 300001);
        assert_true(c.records == 1 && c.position == 0 && c.end == 1);
        reader_close(r);
        input.max_record = 1000;
        r = open_at(&s, "large/0", 0, false, NULL);
        assert_int_equal(reader_next(r, buf, 1 << 16, &c, error), -E2BIG);
        assert_non_null(strstr(error, "large/0: message 0 has 300000 bytes, more than maxRecord"));
        reader_close(r);
        input.max_record = 64u << 20;
}

static uint64_t first_of(struct input_source *s, int32_t partition, int start) {
        char error[READ_ERROR_MAX] = "";
        uint64_t first = 0;

        s->start = (enum kafka_start)start;
        if (kafka_first(s, partition, false, &first, error) < 0)
                fail_msg("%s", error);
        return first;
}

static void test_commits(void **state) {
        struct input_source s = topic("commits", 2);
        uint64_t at;

        assert_int_equal(kafka_mock_produce(mock, "commits", 0, 0, 100), 0);
        at = slice(&s, "commits/0", 0, 1 << 20, 100, -EAGAIN);
        assert_int_equal(at, 100);
        /* Reading alone commits nothing, nor does going on elsewhere. */
        slice(&s, "commits/0", 50, 1 << 20, 50, -EAGAIN);
        assert_int_equal(kafka_mock_committed(mock, "group", "commits", 0), -1);
        assert_int_equal(kafka_commit(&s, "commits/0", 10, false), 0);
        assert_int_equal(kafka_commit(&s, "commits/0", 20, false), 0); /* within the second: kept back */
        for (unsigned i = 0; i < 50 && kafka_mock_committed(mock, "group", "commits", 0) != 10; i++)
                usleep(20000);
        assert_int_equal(kafka_mock_committed(mock, "group", "commits", 0), 10);
        assert_int_equal(kafka_commit(&s, "commits/0", 30, true), 0);
        for (unsigned i = 0; i < 50 && kafka_mock_committed(mock, "group", "commits", 0) != 30; i++)
                usleep(20000);
        assert_int_equal(kafka_mock_committed(mock, "group", "commits", 0), 30);
        /* Where a listing begins. */
        assert_int_equal(first_of(&s, 0, KAFKA_EARLIEST), 0);
        assert_int_equal(first_of(&s, 0, KAFKA_LATEST), 100);
        assert_int_equal(first_of(&s, 0, KAFKA_GROUP_OFFSETS), 30);
        assert_int_equal(first_of(&s, 1, KAFKA_GROUP_OFFSETS), 0); /* latest of none */
        assert_int_equal(kafka_commit(&s, "commits/0", 40, false), 0);
        kafka_done(5 * USEC_PER_SEC);
        assert_int_equal(kafka_mock_committed(mock, "group", "commits", 0), 40);
}

static void test_without_commit(void **state) {
        struct input_source s = topic("reset", 1);
        char error[READ_ERROR_MAX] = "";
        uint64_t first;

        assert_int_equal(kafka_mock_produce(mock, "reset", 0, 0, 7), 0);
        assert_int_equal(first_of(&s, 0, KAFKA_GROUP_OFFSETS), 7);
        config[1] = (char *)"auto.offset.reset=earliest";
        assert_int_equal(first_of(&s, 0, KAFKA_GROUP_OFFSETS), 0);
        config[1] = (char *)"auto.offset.reset=none";
        assert_true(kafka_first(&s, 0, false, &first, error) < 0);
        assert_non_null(strstr(error, "the group has committed no offset of partition 0"));
        config[1] = NULL;
}

static void test_wrong(void **state) {
        struct input_source s = topic("wrong", 1), t = s;
        char error[READ_ERROR_MAX] = "", *bad[] = { servers, (char *)"no.such.setting=1", NULL };
        struct reader *r;
        uint8_t buf[64];
        struct chunk c;
        int32_t n;

        assert_int_equal(kafka_mock_produce(mock, "wrong", 0, 0, 7), 0);
        r = open_at(&s, "wrong/0", 1000, false, NULL);
        assert_int_equal(reader_next(r, buf, sizeof(buf), &c, error), -ESTALE);
        assert_non_null(strstr(error, "wrong/0: the brokers no longer have message 1000"));
        reader_close(r);
        t.config = bad;
        assert_true(kafka_partitions(&t, &n, error) < 0);
        assert_non_null(strstr(error, "no.such.setting"));
}

static void test_cancel(void **state) {
        struct input_source s = topic("cancel", 1);
        atomic_bool cancel = true;
        struct reader *r = open_at(&s, "cancel/0", 0, false, &cancel);
        char error[READ_ERROR_MAX] = "";
        uint8_t buf[64];
        struct chunk c;

        assert_int_equal(reader_next(r, buf, sizeof(buf), &c, error), -ECANCELED);
        reader_close(r);
}

/* ---- listing ---- */

struct collected {
        struct scan_sink sink;
        char got[512];
        unsigned waits;
        uint64_t passed;
};

static int on_entry(struct scan_sink *sink, const struct scan_entry *e) {
        struct collected *c = (struct collected *)sink;

        assert_true(e->batch >= c->passed && e->last == TASK_TO_END && e->size == TASK_UNKNOWN);
        sprintf(c->got + strlen(c->got), "%s%s@%llu", *c->got ? " " : "", e->path,
                (unsigned long long)e->first);
        return 0;
}

static int on_passed(struct scan_sink *sink, uint64_t batch) {
        ((struct collected *)sink)->passed = batch;
        return 0;
}

static int on_wait(struct scan_sink *sink, const char *waiting_for, uint64_t usec) {
        struct collected *c = (struct collected *)sink;

        assert_string_equal(waiting_for, "");
        return ++c->waits >= 2 ? -ECANCELED : 0;
}

static void test_scan(void **state) {
        struct input_source s = topic("scan", 3);
        struct collected c = { .sink = { on_entry, on_passed, on_wait } }, later = c;
        struct scan_request q = { .source = &s };
        _cleanup_free_ char *error = NULL;

        assert_int_equal(kafka_mock_produce(mock, "scan", 1, 0, 7), 0);
        assert_int_equal(kafka_mock_produce(mock, "scan", 2, 0, 9), 0);
        s.start = KAFKA_LATEST;
        assert_int_equal(scan_source(&q, &c.sink, &error), -ECANCELED);
        assert_string_equal(c.got, "scan/0@0 scan/1@7 scan/2@9");
        assert_int_equal(c.waits, 2);
        /* Behind a cursor they are new ones. */
        q.after = "scan/1";
        assert_int_equal(scan_source(&q, &later.sink, &error), -ECANCELED);
        assert_string_equal(later.got, "scan/2@0");
        assert_null(error);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_slices),         cmocka_unit_test(test_framed),
                cmocka_unit_test(test_large),          cmocka_unit_test(test_commits),
                cmocka_unit_test(test_without_commit), cmocka_unit_test(test_wrong),
                cmocka_unit_test(test_cancel),         cmocka_unit_test(test_scan),
        };

        return cmocka_run_group_tests(tests, setup, teardown);
}
