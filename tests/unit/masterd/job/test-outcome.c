/* SPDX-License-Identifier: Apache-2.0 */
#include "masterd/job/outcome.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"

#define REQUESTED 1
#define LOCAL 2
#define LIMIT (UINT64_C(512) << 20)

static void test_outcomes(void **state) {
        static const struct {
                const char *result, *code;
                int32_t status;
                unsigned asked;
                uint64_t oom_kills, memory, runtime;
                const char *detail;
                enum executor_event event;
                const char *text;
        } table[] = {
                { "success", "exited", 0, 0, 0, 0, 0, "", EXECUTOR_EVENT_SUCCEEDED, "exit status 0" },
                { "success", "exited", 0, 0, UINT64_MAX, 0, 0, NULL, EXECUTOR_EVENT_SUCCEEDED,
                  "exit status 0" },
                { "exit-code", "exited", 3, 0, 0, 0, 0, "", EXECUTOR_EVENT_FAILED, "exit status 3" },
                { "exit-code", "", 0, 0, 0, 0, 0, "", EXECUTOR_EVENT_FAILED,
                  "the job's files could not be unpacked" },
                { "exit-code", "exited", 127, 0, 0, 0, 0, "foo: command not found", EXECUTOR_EVENT_FAILED,
                  "exit status 127: foo: command not found" },
                { "signal", "killed", 11, 0, 0, 0, 0, "", EXECUTOR_EVENT_FAILED, "signal SEGV" },
                { "core-dump", "dumped", 6, 0, 0, 0, 0, "", EXECUTOR_EVENT_FAILED,
                  "signal ABRT (core dumped)" },
                { "signal", "killed", 4711, 0, 0, 0, 0, "", EXECUTOR_EVENT_FAILED, "signal ?" },
                /* A SIGTERM that nobody is known to have asked for: systemd calls it a success, we do not. */
                { "success", "killed", 15, 0, 0, 0, 0, "", EXECUTOR_EVENT_FAILED, "signal TERM" },
                { "resources", "", 0, 0, 0, 0, 0, "", EXECUTOR_EVENT_FAILED, "resources" },
                { "", "", 0, 0, 0, 0, 0, "", EXECUTOR_EVENT_FAILED, "no status" },

                /* out of memory: a failure, however it looks */
                { "oom-kill", "killed", 9, 0, 1, LIMIT, 0, "", EXECUTOR_EVENT_FAILED,
                  "out of memory (limit 512M)" },
                { "oom-kill", "killed", 9, 0, UINT64_MAX, 0, 0, "", EXECUTOR_EVENT_FAILED,
                  "out of memory (no limit of its own: the host's)" },
                { "exit-code", "exited", 137, 0, 1, LIMIT, 0, "", EXECUTOR_EVENT_FAILED,
                  "out of memory (limit 512M)" },
                { "exit-code", "exited", 137, 0, 0, LIMIT, 0, "", EXECUTOR_EVENT_FAILED, "exit status 137" },
                { "success", "exited", 0, 0, 2, LIMIT, 0, "", EXECUTOR_EVENT_FAILED,
                  "out of memory (limit 512M)" },

                /* somebody asked: neither failure nor success, whatever happened on the way out */
                { "success", "killed", 15, REQUESTED, 0, 0, 0, "", EXECUTOR_EVENT_KILLED,
                  "stopped, signal TERM" },
                { "success", "exited", 0, REQUESTED, 0, 0, 0, "", EXECUTOR_EVENT_KILLED,
                  "stopped, exit status 0" },
                { "exit-code", "exited", 1, REQUESTED, 0, 0, 0, "", EXECUTOR_EVENT_KILLED,
                  "stopped, exit status 1" },
                { "timeout", "killed", 9, REQUESTED, 0, 0, 5 * USEC_PER_SEC, "", EXECUTOR_EVENT_KILLED,
                  "stopped, signal KILL" },
                { "oom-kill", "killed", 9, REQUESTED, 1, LIMIT, 0, "", EXECUTOR_EVENT_KILLED,
                  "stopped, signal KILL" },
                { "success", "killed", 15, LOCAL, 0, 0, 0, "", EXECUTOR_EVENT_KILLED,
                  "stopped by somebody on the host, signal TERM" },
                { "success", "killed", 15, REQUESTED | LOCAL, 0, 0, 0, "", EXECUTOR_EVENT_KILLED,
                  "stopped, signal TERM" },

                { "timeout", "killed", 15, 0, 0, 0, 90 * USEC_PER_SEC, "", EXECUTOR_EVENT_FAILED,
                  "ran longer than its time limit (1min 30s)" },
                { "timeout", "killed", 15, 0, 0, 0, 0, "", EXECUTOR_EVENT_FAILED, "signal TERM" },
                { "no-record", "", 0, 0, UINT64_MAX, 0, 0, "", EXECUTOR_EVENT_LOST,
                  "vanished without a record" },
                { "no-record", "", 0, 0, UINT64_MAX, 0, 0, "reset-failed?", EXECUTOR_EVENT_LOST,
                  "vanished without a record: reset-failed?" },
        };
        for (size_t i = 0; i < ELEMENTSOF(table); i++) {
                struct exit_report e = { .status = table[i].status,
                                         .stop_requested = table[i].asked & REQUESTED,
                                         .stop_local = table[i].asked & LOCAL,
                                         .oom_kills = table[i].oom_kills,
                                         .detail = (char *)table[i].detail };
                char text[OUTCOME_TEXT_MAX];
                strcpy(e.result, table[i].result);
                strcpy(e.code, table[i].code);
                assert_int_equal(outcome_of(&e, table[i].memory, table[i].runtime, text), table[i].event);
                assert_string_equal(text, table[i].text);
        }
}

/* However long the detail, the text ends. */
static void test_long_detail(void **state) {
        static const char *const results[] = { "exit-code", "no-record" };
        char detail[4096], text[OUTCOME_TEXT_MAX];
        struct exit_report e = { .code = "exited", .status = 1, .detail = detail };

        memset(detail, 'x', sizeof(detail) - 1);
        detail[sizeof(detail) - 1] = 0;
        for (size_t i = 0; i < ELEMENTSOF(results); i++) {
                strcpy(e.result, results[i]);
                (void)outcome_of(&e, 0, 0, text);
                assert_int_equal(strlen(text), OUTCOME_TEXT_MAX - 1);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_outcomes),
                cmocka_unit_test(test_long_detail),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
