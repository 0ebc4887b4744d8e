/* SPDX-License-Identifier: Apache-2.0 */
#include "masterd/conf/exit-rules.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "masterd/conf/conf.h"

static void test_sections(void **state) {
        static const char *const bad[] = { "", "a b", "a/b",
                                           "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" };
        struct conf c = {};
        const char *why = NULL;
        char name[16];
        void *first = exit_rules_find_section(&c, "nccl", &why);

        assert_non_null(first);
        assert_ptr_equal(exit_rules_find_section(&c, "nccl", &why), first);
        for (size_t i = 0; i < ELEMENTSOF(bad); i++) {
                assert_null(exit_rules_find_section(&c, bad[i], &why));
                assert_non_null(strstr(why, "a rule's name is"));
        }
        for (unsigned i = 1; i < SITE_EXIT_RULES_MAX; i++) {
                snprintf(name, sizeof(name), "r%u", i);
                assert_non_null(exit_rules_find_section(&c, name, &why));
        }
        assert_null(exit_rules_find_section(&c, "more", &why));
        assert_non_null(strstr(why, "32 rules already"));
        assert_int_equal(exit_rules_check(&c.exit_rules), SITE_EXIT_RULES_MAX);
        assert_int_equal(c.exit_rules.n, 0);
}

static void test_values(void **state) {
        struct exit_rule_spec rule = {};
        const char *why = NULL;

        assert_int_equal(exit_rules_parse_codes("130-120", &rule.codes, &why), -EINVAL);
        assert_non_null(strstr(why, "end is before its beginning"));
        assert_int_equal(exit_rules_parse_codes("1-255", &rule.codes, &why), 0);
        assert_int_equal(exit_rules_parse_output("a(", &rule.output, &why), -EINVAL);
        assert_non_null(strstr(why, "is no regular expression"));
        assert_int_equal(exit_rules_parse_output("a", &rule.output, &why), 0);
        assert_int_equal(exit_rules_parse_output("b", &rule.output, &why), 0);
        assert_string_equal(rule.output, "b");
        assert_int_equal(exit_rules_parse_output("", &rule.output, &why), 0);
        assert_null(rule.output);
        assert_int_equal(exit_rules_parse_action("drain", &rule.action, &why), -EINVAL);
        assert_int_equal(exit_rules_parse_action("note", &rule.action, &why), 0);
        assert_int_equal(rule.action, EXIT_ACTION_NOTE);
        assert_int_equal(exit_rules_parse_codes("", &rule.codes, &why), 0);
}

/* What lacks something goes, and the others stay in their order under their names. */
static void test_check(void **state) {
        static const char *const names[] = { "first", "no-action", "second", "nothing" };
        struct conf c = {};
        const char *why;

        for (size_t i = 0; i < ELEMENTSOF(names); i++) {
                struct exit_rule_spec *rule = exit_rules_find_section(&c, names[i], &why);

                if (i != 1)
                        assert_int_equal(exit_rules_parse_action("blame", &rule->action, &why), 0);
                if (i != 3)
                        assert_int_equal(exit_rules_parse_output(names[i], &rule->output, &why), 0);
        }
        assert_int_equal(exit_rules_check(&c.exit_rules), 2);
        assert_int_equal(c.exit_rules.n, 2);
        assert_string_equal(c.exit_rules.names[1], "second");
        assert_string_equal(c.exit_rules.rules[1].output, "second");
        exit_rules_done(&c.exit_rules);
}

int main(void) {
        const struct CMUnitTest tests[] = { cmocka_unit_test(test_sections), cmocka_unit_test(test_values),
                                            cmocka_unit_test(test_check) };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
