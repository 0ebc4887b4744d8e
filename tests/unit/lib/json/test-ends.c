/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/json/ends.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"

static void texts(void **state) {
        static const struct {
                struct attempt_end end;
                const char *text;
        } cases[] = {
                { { "RUNNING", "success", "", true, 0 }, "" },
                { { "PENDING", NULL, "no GPU is free", false, 0 }, "no GPU is free" },
                { { "SUCCEEDED", "success", NULL, true, 0 }, "" },
                { { "FAILED", "exit-code", "", true, 3 }, "exit 3" },
                { { "FAILED", "exit-code", "", false, 0 }, "exit-code" },
                { { "FAILED", "signal", "", true, SIGSEGV }, "signal SEGV" },
                { { "FAILED", "core-dump", "", true, SIGABRT }, "signal ABRT (core dumped)" },
                { { "FAILED", "signal", "", true, 200 }, "signal ?" },
                { { "FAILED", "oom-kill", "", false, 0 }, "killed: out of memory" },
                { { "FAILED", "oom-kill", "of 1G", false, 0 }, "killed: of 1G" },
                { { "KILLED", "timeout", "", false, 0 }, "killed: time limit" },
                { { "LOST", NULL, "n1 is silent", false, 0 }, "n1 is silent" },
        };
        char text[64];

        for (size_t i = 0; i < ELEMENTSOF(cases); i++)
                assert_string_equal(attempt_end_text(&cases[i].end, text, sizeof(text)), cases[i].text);
}

static void states(void **state) {
        assert_true(state_is_end("LOST") && state_is_end("SUCCEEDED"));
        assert_false(state_is_end("RUNNING") || state_is_end(""));
}

int main(void) {
        const struct CMUnitTest tests[] = { cmocka_unit_test(texts), cmocka_unit_test(states) };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
