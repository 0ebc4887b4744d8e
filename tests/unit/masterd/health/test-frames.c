/* SPDX-License-Identifier: Apache-2.0 */
/* Where Python programs are, and which of a gang is elsewhere. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "masterd/health/frames.h"

static const struct {
        const char *text, *frame; /* NULL: none */
} cases[] = {
        { "Current thread 0x00007f00 (most recent call first):\n  File \"/srv/x/bug.py\", line 7 in "
          "save_checkpoint\n"
          "  File \"/srv/x/bug.py\", line 20 in <module>\n",
          "save_checkpoint (bug.py:7)" },
        /* Other threads come before it. */
        { "Thread 0x00007f01 (most recent call first):\n  File \"/usr/lib/python3.11/threading.py\", line "
          "327 in wait\n\n"
          "Current thread 0x00007f00 (most recent call first):\n  File \"a.py\", line 1 in <module>\n",
          "<module> (a.py:1)" },
        { "Stack (most recent call first):\n  File \"a.py\", line 1 in f", "f (a.py:1)" },
        { "Current thread 0x00007f00 (most recent call first):\n  File \"/a\", line 3 in b.py\", line 4 in "
          "g\n",
          "g (a\", line 3 in b.py:4)" },
        { "Current thread 0x00007f00 (most recent call first):\n  File \"\033[2J.py\", line 4 in \xc3\xa4\n",
          "?? (?[2J.py:4)" },
        { "Current thread 0x00007f00 (most recent call first):\n  <no Python frame>\n", NULL },
        { "Current thread 0x00007f00 (most recent call first):\n  File \"a.py\", line x in f\n", NULL },
        { "Current thread 0x00007f00 (most recent call first):\n  File \"a.py\", line 5 in ", NULL },
        { "Current thread 0x00007f00 (most recent call first):\n  File \"a.py", NULL },
        { "Current thread ", NULL },
        { "Current thread \n", NULL },
        { "File", NULL },
        { "", NULL },
};

static void test_innermost(void **state) {
        char frame[FRAME_MAX];

        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                memset(frame, 'x', sizeof(frame));
                if (cases[i].frame) {
                        assert_true(frame_innermost(cases[i].text, frame));
                        assert_string_equal(frame, cases[i].frame);
                } else
                        assert_false(frame_innermost(cases[i].text, frame));
        }
}

static void test_long(void **state) {
        char text[2000], frame[FRAME_MAX];

        memset(text, 'a', sizeof(text));
        memcpy(text, "Stack (most recent call first):\n  File \"", 40);
        memcpy(text + 900, "\", line 999999999 in ", 21);
        text[sizeof(text) - 1] = 0;
        assert_true(frame_innermost(text, frame));
        assert_true(strlen(frame) < sizeof(frame));
        assert_non_null(strstr(frame, ":999999999)"));
}

static void test_odd(void **state) {
        static const struct {
                const char *frames[6];
                size_t n;
                int odd;
        } worlds[] = {
                { { "a", "a", "b", "a" }, 4, 2 },
                { { "b", "a", "a" }, 3, 0 },
                { { "a", "b", "a" }, 3, 1 },
                { { "a", "b" }, 2, -1 },
                { { "a", "b", "c" }, 3, -1 },
                { { "a", "a", "a" }, 3, -1 },
                { { "a", "a", "b", "b" }, 4, -1 },
                { { "a", NULL, "b", "a" }, 4, -1 },
                { { "a", "a", "b", "c", "a" }, 5, -1 },
        };
        size_t usual;

        for (size_t i = 0; i < sizeof(worlds) / sizeof(worlds[0]); i++) {
                assert_int_equal(frames_odd_one(worlds[i].frames, worlds[i].n, &usual), worlds[i].odd);
                if (worlds[i].odd >= 0)
                        assert_string_equal(worlds[i].frames[usual], "a");
        }
}

static void test_text(void **state) {
        const char *const frames[] = { "b", "a", NULL, "a", "c" };
        const char *const many[] = { "1", "2", "3", "4", "5", "6" };
        const char *const none[] = { NULL, NULL };
        char buf[64], small[8];

        assert_string_equal(frames_text(frames, 5, buf, sizeof(buf)), "2 in a, 1 in b, 1 in c");
        assert_string_equal(frames_text(many, 6, buf, sizeof(buf)),
                            "1 in 1, 1 in 2, 1 in 3, 1 in 4, 2 elsewhere");
        assert_string_equal(frames_text(none, 2, buf, sizeof(buf)), "");
        assert_string_equal(frames_text(frames, 5, small, sizeof(small)), "2 in a,");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_innermost),
                cmocka_unit_test(test_long),
                cmocka_unit_test(test_odd),
                cmocka_unit_test(test_text),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
