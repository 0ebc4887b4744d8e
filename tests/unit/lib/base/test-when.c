/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/format.h"
#include "lib/base/when.h"

/* 2026-03-28T22:30:00Z: in Berlin the evening before the clock goes from 02:00 to 03:00. */
#define NOW (UINT64_C(1774737000) * USEC_PER_SEC)

static void test_absolute(void **state) {
        static const struct {
                const char *text, *utc;
        } good[] = {
                { "2026-01-31T08:00:00Z", "2026-01-31T08:00:00Z" },
                { "2026-01-31t08:00:00.25z", "2026-01-31T08:00:00Z" },
                { "2026-01-31 08:00:00+01:00", "2026-01-31T07:00:00Z" },
                { "2026-01-01T00:30:00+01:00", "2025-12-31T23:30:00Z" },
                { "2024-02-29T23:59:59-02:30", "2024-03-01T02:29:59Z" },
        };
        static const char *const bad[] = {
                "",
                "2026",
                "2026-01-31",
                "2026-01-31T08:00:00",
                "2026-01-31T08:00Z",
                "2026-02-29T08:00:00Z",
                "2026-13-01T08:00:00Z",
                "2026-01-31T24:00:00Z",
                "2026-01-31T08:00:60Z",
                "2026-01-31T08:00:00+1",
                "2026-01-31T08:00:00+24:00",
                "2026-01-31T08:00:00Zx",
                "1970-01-01T00:00:00+01:00",
                "1969-12-31T00:00:00Z",
                "-026-01-31T08:00:00Z",
        };
        char text[FORMAT_TIME_MAX];
        uint64_t t = 7;

        for (size_t i = 0; i < ELEMENTSOF(good); i++) {
                assert_int_equal(when_parse_absolute(good[i].text, &t), 0);
                assert_string_equal(format_time(t, text, sizeof(text)), good[i].utc);
        }
        t = 7;
        for (size_t i = 0; i < ELEMENTSOF(bad); i++)
                assert_true(when_parse_absolute(bad[i], &t) < 0);
        assert_int_equal(t, 7);
        assert_int_equal(when_parse_absolute("2026-01-31T08:00:00.123456789Z", &t), 0);
        assert_int_equal(t % USEC_PER_SEC, 123456);
}

static void test_people(void **state) {
        static const struct {
                const char *text, *utc;
        } good[] = {
                { "now", "2026-03-28T22:30:00Z" },
                { "+2h", "2026-03-29T00:30:00Z" },
                { "+90", "2026-03-28T22:31:30Z" },
                { "23:45", "2026-03-28T22:45:00Z" }, /* winter: +1 */
                { "23:30", "2026-03-29T21:30:00Z" }, /* this minute has begun: tomorrow's, summer: +2 */
                { "08:00:30", "2026-03-29T06:00:30Z" },
                { "today 08:00", "2026-03-28T07:00:00Z" },
                { "tomorrow", "2026-03-28T23:00:00Z" },
                { "tomorrow 08:00", "2026-03-29T06:00:00Z" },
                { "2026-12-24", "2026-12-23T23:00:00Z" },
                { "2026-12-24 18:00", "2026-12-24T17:00:00Z" },
                { "2026-12-24T18:00:01", "2026-12-24T17:00:01Z" },
                { "2026-12-24T18:00:00Z", "2026-12-24T18:00:00Z" },
        };
        static const char *const bad[] = {
                "",           "8:00",          "24:00",          "12:60",        "noon",       "+",
                "+x",         "+infinity",     "today",          "tomorrow8:00", "tomorrow 8", "2026-12-24 ",
                "2026-12-32", "2026-12-24 18", "08:00 tomorrow", "yesterday",
        };
        char text[FORMAT_TIME_MAX];
        uint64_t t = 7;

        for (size_t i = 0; i < ELEMENTSOF(good); i++) {
                assert_int_equal(when_parse(good[i].text, NOW, &t), 0);
                assert_string_equal(format_time(t, text, sizeof(text)), good[i].utc);
        }
        t = 7;
        for (size_t i = 0; i < ELEMENTSOF(bad); i++)
                if (when_parse(bad[i], NOW, &t) >= 0)
                        fail_msg("'%s' was taken", bad[i]);
        assert_int_equal(t, 7);
}

int main(void) {
        const struct CMUnitTest tests[] = { cmocka_unit_test(test_absolute), cmocka_unit_test(test_people) };

        /* No file of a zone is needed for this form. */
        setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3", 1);
        tzset();
        return cmocka_run_group_tests(tests, NULL, NULL);
}
