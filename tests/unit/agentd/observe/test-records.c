/* SPDX-License-Identifier: Apache-2.0 */
/* A pipe of records, read as they come: in one piece, byte by byte, cut short, and from somebody who writes
 * anything. */
#include "agentd/observe/records.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

struct heard {
        struct records *records;
        unsigned n, last;
        int end; /* 1: not yet */
};

static void on_record(int r, const struct stream_item *item, void *userdata) {
        struct heard *h = userdata;

        if (item) {
                assert_int_equal(r, 0);
                h->n++;
                h->last = item->number;
                return;
        }
        assert_int_equal(h->end, 1); /* said once */
        h->end = r;
        records_free(h->records); /* as it may */
        h->records = NULL;
}

static size_t record(uint8_t *to, enum stream_type type, uint32_t number) {
        return stream_write(&(struct stream_item){ .type = type, .number = number }, "text", to);
}

/* Writes it in steps, and has all of it read. */
static struct heard read_all(const uint8_t *data, size_t size, size_t step, bool close_it) {
        struct heard h = { .end = 1 };
        sd_event *event;
        int fds[2];

        assert_int_equal(sd_event_new(&event), 0);
        assert_int_equal(pipe2(fds, O_CLOEXEC | O_NONBLOCK), 0);
        assert_int_equal(records_new(event, fds[0], on_record, &h, &h.records), 0);
        for (size_t at = 0; at < size && h.end == 1; at += step) {
                assert_true(write(fds[1], data + at, step < size - at ? step : size - at) > 0);
                while (sd_event_run(event, 0) > 0 && h.end == 1)
                        ;
        }
        (void)close(fds[1]);
        while (close_it && h.end == 1)
                assert_true(sd_event_run(event, 1000000) > 0);
        records_free(h.records);
        sd_event_unref(event);
        return h;
}

static void test_pieces(void **state) {
        static uint8_t data[4 * STREAM_RECORD_MAX];
        static const size_t steps[] = { 1, 7, 4096 };
        size_t size = record(data, STREAM_STACK, 1);

        size += record(data + size, STREAM_STACK, 2);
        for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i++) {
                struct heard h = read_all(data, size, steps[i], true);
                assert_true(h.n == 2 && h.last == 2);
                assert_int_equal(h.end, -EPIPE); /* nobody said that it was all */
        }
        size += record(data + size, STREAM_END, 0);
        for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i++) {
                struct heard h = read_all(data, size, steps[i], true);
                assert_true(h.n == 2 && h.end == 0);
        }
        struct heard h = read_all(data, size, 4096, false); /* the end is enough: the pipe may stay open */
        assert_int_equal(h.end, 0);
}

static void test_nonsense(void **state) {
        uint8_t data[64];
        struct heard h;

        memset(data, 0xff, sizeof(data));
        h = read_all(data, sizeof(data), sizeof(data), true);
        assert_true(h.n == 0 && h.end == -EBADMSG);
        h = read_all(data, 0, 1, true);
        assert_int_equal(h.end, -EPIPE);
}

/* A look has an end, also that of somebody who never stops. */
static void test_too_much(void **state) {
        static uint8_t data[RECORDS_BYTES_MAX + 2 * STREAM_RECORD_MAX];
        size_t size = 0;
        struct heard h;

        while (size <= RECORDS_BYTES_MAX)
                size += record(data + size, STREAM_STACK, 1);
        h = read_all(data, size, 4096, true);
        assert_int_equal(h.end, -EFBIG);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_pieces),
                cmocka_unit_test(test_nonsense),
                cmocka_unit_test(test_too_much),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
