/* SPDX-License-Identifier: Apache-2.0 */
#include "agentd/unit/exit-explain.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"

static void test_explanations(void **state) {
        static const struct {
                const char *result, *code;
                int status;
                const char *part;
        } table[] = {
                { "exit-code", "exited", 203, "command not found or not executable on host n2: train" },
                { "exit-code", "exited", 200, "directory /data does not exist on host n2" },
                { "exit-code", "exited", 217, "no user with uid 1000 on host n2" },
                { "oom-kill", "killed", 9, "out of memory on host n2" },
                { "watchdog", "dumped", 6, "stopped on host n2: its watchdog was not fed" },
                { "no-record", "", 0, "no exit record" },
                { "exit-code", "exited", 1, "" },
                { "success", "exited", 0, "" },
        };
        for (size_t i = 0; i < ELEMENTSOF(table); i++) {
                struct exit_report e = { .status = table[i].status };
                _cleanup_free_ char *text = NULL;

                strcpy(e.result, table[i].result);
                strcpy(e.code, table[i].code);
                text = exit_explain(&e, "n2", "train", "/data", 1000);
                assert_non_null(text);
                assert_non_null(strstr(text, table[i].part));
                assert_true(*table[i].part || !*text);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = { cmocka_unit_test(test_explanations) };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
