/* SPDX-License-Identifier: Apache-2.0 */
/* States to bytes and back; bytes cut short, changed, or of nobody; tables that have more or fewer fields. */
#include "masterd/store/codec.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"

struct item {
        uint32_t a;
        uint64_t b;
};
struct state {
        bool flag;
        uint8_t small;
        uint32_t middle;
        uint64_t large;
        char text[8];
        struct item part;
        struct item list[3];
        uint32_t n;
};

static const struct codec_field item_codec[] = { CODEC_FIELD(U32, 1, item, a),
                                                 CODEC_FIELD(U64, 2, item, b),
                                                 {} };
static const struct codec_field codec[] = {
        CODEC_FIELD(BOOL, 1, state, flag),
        CODEC_FIELD(U8, 2, state, small),
        CODEC_FIELD(U32, 3, state, middle),
        CODEC_FIELD(U64, 100, state, large), /* a key of two bytes */
        CODEC_FIELD(TEXT, 5, state, text),
        CODEC_STRUCT(6, state, part, item_codec),
        CODEC_ARRAY(7, state, list, n, item_codec),
        {},
};
/* The same of a version that knew less. */
static const struct codec_field fewer[] = { CODEC_FIELD(U8, 2, state, small), {} };

static const struct state full = {
        .flag = true,
        .small = 255,
        .middle = UINT32_MAX,
        .large = UINT64_MAX,
        .text = "1234567",
        .part = { 1, UINT64_C(1) << 63 },
        .list = { { 127, 128 }, {}, { 0, 16384 } }, /* an element of zeros is one too */
        .n = 3,
};

static uint64_t seed = 7;

static uint32_t dice(uint32_t n) {
        seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
        return (uint32_t)(seed >> 33) % n;
}

static void test_round_trip(void **state) {
        uint8_t bytes[CODEC_SIZE_MAX];
        struct state s;
        ssize_t n = codec_write(codec, &full, bytes, sizeof(bytes));

        assert_true(n > 0);
        memset(&s, 0xa5, sizeof(s));
        assert_int_equal(codec_read(codec, bytes, (size_t)n, &s), 0);
        assert_true(s.flag && s.small == 255 && s.middle == UINT32_MAX && s.large == UINT64_MAX && s.n == 3);
        assert_string_equal(s.text, "1234567");
        assert_memory_equal(&s.part.b, &full.part.b, sizeof(s.part.b));
        for (int i = 0; i < 3; i++)
                assert_true(s.list[i].a == full.list[i].a && s.list[i].b == full.list[i].b);

        /* Nothing but a version where all is zero. */
        n = codec_write(codec, &(struct state){}, bytes, sizeof(bytes));
        assert_int_equal(n, 1);
        assert_int_equal(codec_read(codec, bytes, 1, &s), 0);
        assert_true(!s.flag && s.large == 0 && !*s.text && s.part.b == 0 && s.n == 0 && s.list[2].b == 0);
}

/* On disk it is this, for good. */
static void test_form(void **state) {
        static const uint8_t wanted[] = { 0x10, 0x04, 7,   0xc8, 0x01, 0x80, 0x01, 0x0b,
                                          2,    'a',  'b', 0x0f, 2,    0x02, 9 };
        struct state s = { .small = 7, .large = 128, .text = "ab", .n = 1, .list[0].a = 9 };
        uint8_t bytes[64];

        assert_int_equal(codec_write(codec, &s, bytes, sizeof(bytes)), sizeof(wanted));
        assert_memory_equal(bytes, wanted, sizeof(wanted));
}

static void test_no_room(void **state) {
        uint8_t bytes[CODEC_SIZE_MAX];
        ssize_t n = codec_write(codec, &full, bytes, sizeof(bytes));

        for (ssize_t size = 0; size < n; size++) {
                memset(bytes, 0xa5, sizeof(bytes));
                assert_int_equal(codec_write(codec, &full, bytes, (size_t)size), -ENOBUFS);
                assert_int_equal(bytes[size], 0xa5);
        }
}

/* A field of a later version is passed over, one of an earlier is zero. */
static void test_other_tables(void **state) {
        uint8_t bytes[CODEC_SIZE_MAX];
        ssize_t n = codec_write(codec, &full, bytes, sizeof(bytes));
        struct state s = {};

        assert_int_equal(codec_read(fewer, bytes, (size_t)n, &s), 0);
        assert_int_equal(s.small, 255);
        assert_int_equal(s.middle, 0);
        n = codec_write(fewer, &full, bytes, sizeof(bytes));
        s = full;
        assert_int_equal(codec_read(codec, bytes, (size_t)n, &s), 0);
        assert_int_equal(s.small, 255);
        assert_true(s.middle == 0 && s.n == 0);
        s = full;
        assert_int_equal(codec_read(codec, "", 0, &s), 0);
        assert_true(s.small == 0 && s.n == 0);
}

static void test_refused(void **state) {
#define BYTES(...) (const uint8_t[]){ __VA_ARGS__ }, sizeof((const uint8_t[]){ __VA_ARGS__ })
        const struct {
                const uint8_t *data;
                size_t size;
                int r;
        } cases[] = {
                { BYTES(0x11), -EPROTONOSUPPORT },
                { BYTES(2, 4), -EPROTONOSUPPORT },        /* what older stores had */
                { BYTES(0x10, 0x02, 2), -EBADMSG },       /* neither false nor true */
                { BYTES(0x10, 0x04, 0x80, 2), -EBADMSG }, /* 256 in a byte */
                { BYTES(0x10, 0x06, 0x80, 0x80, 0x80, 0x80, 0x10), -EBADMSG },
                { BYTES(0x10, 0x05, 1, 1), -EBADMSG }, /* a number that comes as bytes */
                { BYTES(0x10, 0x0a, 1), -EBADMSG },    /* a text that comes as a number */
                { BYTES(0x10, 0x0b, 8, 'a', 'a', 'a', 'a', 'a', 'a', 'a', 'a'), -EBADMSG },
                { BYTES(0x10, 0x0b, 2, 'a', 0), -EBADMSG },
                { BYTES(0x10, 0x0b, 3, 'a', 'a'), -EBADMSG },                  /* longer than all */
                { BYTES(0x10, 0x0f, 0, 0x0f, 0, 0x0f, 0, 0x0f, 0), -EBADMSG }, /* four of three */
                { BYTES(0x10, 0x0d, 1, 0x02), -EBADMSG },                      /* cut off within the part */
                { BYTES(0x10, 0x04), -EBADMSG },
                { BYTES(0x10, 0xc8, 0x01, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02),
                  -EBADMSG },
                { BYTES(0x10, 0xc8, 0x01, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00),
                  -EBADMSG },
                { BYTES(0x10, 0xf1, 0x07, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01),
                  -EBADMSG },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                struct state s;
                assert_int_equal(codec_read(codec, cases[i].data, cases[i].size, &s), cases[i].r);
        }
}

/* Bytes cut off are refused, or are what came before them; bytes at random are refused, or come back as read.
 */
static void test_damaged(void **state) {
        uint8_t bytes[CODEC_SIZE_MAX], again[CODEC_SIZE_MAX];
        size_t size = (size_t)codec_write(codec, &full, bytes, sizeof(bytes));
        unsigned read = 0;

        for (size_t n = 0; n < size; n++) {
                _cleanup_free_ uint8_t *exact = malloc(n + !n); /* a look behind its end is seen */
                struct state s;
                memcpy(exact, bytes, n);
                (void)codec_read(codec, exact, n, &s);
        }
        for (unsigned run = 0; run < 200000; run++) {
                size_t n = run % 2 ? (size_t)codec_write(codec, &full, bytes, sizeof(bytes)) : 1 + dice(48);
                struct state s, t;
                for (size_t i = 1; i < n; i++)
                        if (run % 2 == 0 || dice(20) == 0)
                                bytes[i] = (uint8_t)(dice(3) ? dice(20) : dice(256));
                bytes[0] = CODEC_VERSION;
                if (codec_read(codec, bytes, n, &s) < 0)
                        continue;
                read++;
                n = (size_t)codec_write(codec, &s, again, sizeof(again));
                assert_int_equal(codec_read(codec, again, n, &t), 0);
                assert_true(s.flag == t.flag && s.small == t.small && s.middle == t.middle &&
                            s.large == t.large && s.n == t.n && s.part.a == t.part.a && s.part.b == t.part.b);
                assert_string_equal(s.text, t.text);
                for (uint32_t i = 0; i < s.n; i++)
                        assert_true(s.list[i].a == t.list[i].a && s.list[i].b == t.list[i].b);
        }
        assert_true(read > 1000);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_round_trip), cmocka_unit_test(test_form),
                cmocka_unit_test(test_no_room),    cmocka_unit_test(test_other_tables),
                cmocka_unit_test(test_refused),    cmocka_unit_test(test_damaged),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
