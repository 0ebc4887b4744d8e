/* SPDX-License-Identifier: Apache-2.0 */
/* Bodies of packets as executors write them, and cut or lying ones. */
#include "agentd/feed/packet.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"

/* In memory of exactly that size, so that a sanitizer sees a look behind it. */
static uint8_t *body_of(const void *head, size_t head_size, const void *rest, size_t rest_size) {
        uint8_t *body = malloc(head_size + rest_size);

        assert_non_null(body);
        memcpy(body, head, head_size);
        if (rest_size > 0)
                memcpy(body + head_size, rest, rest_size);
        return body;
}

static void test_progress(void **state) {
        const struct feed_progress p = { .credits = UINT32_MAX,
                                         .flags = FEED_PROGRESS_SYNC | FEED_PROGRESS_HUNGRY,
                                         .hungry = 3,
                                         .unserved = 9,
                                         .sync = 77 };
        _cleanup_free_ uint8_t *body = body_of(&p, sizeof(p), "tasks", 5);
        struct feed_report f;

        assert_int_equal(packet_read_progress(body, sizeof(p) + 5, &f), 0);
        assert_int_equal(f.credits, LINK_CREDITS_MAX);
        assert_true(f.has_sync && f.sync == 77 && f.has_hungry && f.hungry == 3);
        assert_int_equal(f.unserved, 3); /* never more than wait */
        assert_int_equal(f.size, 5);
        assert_ptr_equal(f.progress, body + sizeof(p));
        for (size_t n = 0; n < sizeof(p); n++) {
                _cleanup_free_ uint8_t *cut = body_of(body, n, NULL, 0);
                assert_int_equal(packet_read_progress(cut, n, &f), -EBADMSG);
        }
        assert_int_equal(packet_read_progress(body, sizeof(p) + TASKS_WIRE_MAX + 1, &f), -EBADMSG);
}

static void test_entries(void **state) {
        struct feed_entries e = { .passed = 5, .waiting_size = 4 };
        _cleanup_free_ uint8_t *body = body_of(&e, sizeof(e), "hourENTRIES", 11);
        struct scan_batch b;

        assert_int_equal(packet_read_entries(body, sizeof(e) + 11, &b), 0);
        assert_string_equal(b.waiting_for, "hour");
        assert_int_equal(b.size, 7);
        assert_memory_equal(b.entries, "ENTRIES", 7);
        assert_int_equal(b.passed, 5);
        assert_int_equal(packet_read_entries(body, sizeof(e) + 4, &b), 0);
        assert_int_equal(b.size, 0);
        assert_int_equal(packet_read_entries(body, sizeof(e) + 3, &b), -EBADMSG); /* less than it says */
        assert_int_equal(packet_read_entries(body, sizeof(e) - 1, &b), -EBADMSG);
}

static void test_entries_lie(void **state) {
        static const uint8_t rest[LINK_TEXT_MAX + 1] = "a";
        struct feed_entries e = { .waiting_size = 2 };
        _cleanup_free_ uint8_t *zero = body_of(&e, sizeof(e), rest, sizeof(rest)), *long_text = NULL;
        struct scan_batch b;

        assert_int_equal(packet_read_entries(zero, sizeof(e) + sizeof(rest), &b),
                         -EBADMSG); /* NUL in the text */
        e.waiting_size = sizeof(rest);
        long_text = body_of(&e, sizeof(e), rest, sizeof(rest));
        memset(long_text + sizeof(e), 'x', sizeof(rest));
        assert_int_equal(packet_read_entries(long_text, sizeof(e) + sizeof(rest), &b), -EBADMSG);
}

static void test_bye(void **state) {
        struct feed_bye bye = { .failed = 1, .text_size = 4 };
        _cleanup_free_ uint8_t *body = body_of(&bye, sizeof(bye), "gone", 4), *many = NULL;
        _cleanup_free_ char *text = NULL, *none = NULL, *large = calloc(1, PACKET_ERROR_MAX + 1);
        struct feed_bye got;

        assert_int_equal(packet_read_bye(body, sizeof(bye) + 4, &got, &text), 0);
        assert_int_equal(got.failed, 1);
        assert_string_equal(text, "gone");
        assert_int_equal(packet_read_bye(body, sizeof(bye) + 3, &got, &none), -EBADMSG);
        assert_int_equal(packet_read_bye(body, sizeof(bye) - 1, &got, &none), -EBADMSG);
        assert_non_null(large);
        memset(large, 'x', PACKET_ERROR_MAX + 1);
        bye.text_size = PACKET_ERROR_MAX + 1;
        many = body_of(&bye, sizeof(bye), large, bye.text_size);
        assert_int_equal(packet_read_bye(many, sizeof(bye) + bye.text_size, &got, &none), -EBADMSG);
        assert_null(none);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_progress),
                cmocka_unit_test(test_entries),
                cmocka_unit_test(test_entries_lie),
                cmocka_unit_test(test_bye),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
