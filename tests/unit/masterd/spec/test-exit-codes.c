/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"
#include "masterd/spec/spec-failure.h"

static void test_valid(void **state) {
        static const struct {
                const char *codes;
                bool valid;
        } table[] = {
                { "75", true },       { "1-255", true },        { "130-140,SIGSEGV,oom", true },
                { "1, 2 , 3", true }, { "SIGRTMIN", false },    { "", false },
                { ",1", false },      { "1,", false },          { "1,,2", false },
                { "0", false },       { "256", false },         { "9-8", false },
                { "-1", false },      { "1-", false },          { "segv", false },
                { "SIG", false },     { "x", false },           { "75 76", false },
                { "watchdog", true }, { "oom,watchdog", true }, { "watch", false },
        };
        const char *why;

        for (size_t i = 0; i < ELEMENTSOF(table); i++) {
                why = NULL;
                if (exit_codes_valid(table[i].codes, &why) != table[i].valid)
                        fail_msg("'%s'", table[i].codes);
                if (!table[i].valid)
                        assert_non_null(why);
        }
}

static void test_match(void **state) {
        static const struct {
                const char *codes;
                int status;
                enum exit_kind kind;
                bool matches;
        } table[] = {
                { "75", 75, false, true },
                { "75", 76, false, false },
                { "70-75", 70, false, true },
                { "70-75", 75, false, true },
                { "70-75", 76, false, false },
                { "SIGSEGV", 139, false, true },
                { "139", 139, false, true },
                { "SIGSEGV", 11, false, false },
                { "1,2, 3", 3, false, true },
                { "oom", 137, true, true },
                { "137,SIGKILL", 137, true, false },
                { "oom", 137, false, false },
                { "137,oom", 137, false, true },
                { "1", 0, false, false },
                { "1", -1, false, false },
                { "watchdog", 134, EXIT_KIND_WATCHDOG, true },
                { "134,SIGABRT,oom", 134, EXIT_KIND_WATCHDOG, false },
                { "watchdog", 134, EXIT_KIND_STATUS, false },
        };

        for (size_t i = 0; i < ELEMENTSOF(table); i++)
                if (exit_codes_match(table[i].codes, table[i].status, table[i].kind) != table[i].matches)
                        fail_msg("'%s' and %d", table[i].codes, table[i].status);
}

int main(void) {
        const struct CMUnitTest tests[] = { cmocka_unit_test(test_valid), cmocka_unit_test(test_match) };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
