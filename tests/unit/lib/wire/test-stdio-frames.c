/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/wire/stdio-frames.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "lib/base/bytes.h"

static void test_frames(void **state) {
        uint8_t frame[STDIO_FRAME_MAX] = { 0 };

        stdio_head(frame, STDIO_INPUT, 3);
        assert_int_equal(frame[0], STDIO_INPUT);
        for (size_t n = 0; n < 8; n++)
                assert_int_equal(stdio_frame_size(frame, n), 0);
        assert_int_equal(stdio_frame_size(frame, 8), 8);
        assert_int_equal(stdio_frame_size(frame, 9), 8);
        stdio_head(frame, STDIO_INPUT, STDIO_DATA_MAX);
        assert_int_equal(stdio_frame_size(frame, sizeof(frame)), sizeof(frame));
        stdio_head(frame, STDIO_INPUT, STDIO_DATA_MAX + 1);
        assert_int_equal(stdio_frame_size(frame, STDIO_HEAD), -1);
        stdio_head(frame, STDIO_INPUT, UINT32_MAX);
        assert_int_equal(stdio_frame_size(frame, STDIO_HEAD), -1);
}

/* A stream through a ring of five, in pieces of up to four, read by two. */
static void test_bytes(void **state) {
        struct bytes b;
        uint8_t next = 0, seen = 0;

        assert_int_equal(bytes_init(&b, 5), 0);
        b.from = b.to = UINT64_C(1) << 40;
        for (int turn = 0; turn < 1000; turn++) {
                uint8_t piece[4];
                const uint8_t *at;
                size_t n = bytes_room(&b) < 4 ? bytes_room(&b) : 4, l;

                for (size_t i = 0; i < n; i++)
                        piece[i] = next++;
                bytes_put(&b, piece, n);
                l = bytes_at(&b, b.from, &at);
                assert_true(l > 0 && l <= b.to - b.from);
                for (size_t i = 0; i < l && i < 2; i++, b.from++)
                        assert_int_equal(at[i], seen++);
        }
        assert_int_equal(bytes_at(&b, b.to, &(const uint8_t *){ NULL }), 0);
        free(b.ring);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_frames),
                cmocka_unit_test(test_bytes),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
