/* SPDX-License-Identifier: Apache-2.0 */
#include "masterd/spec/source-plan.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/kit/json.h"

#define FILE_(name, more) "{'name': '" name "', 'spec': {'pathPattern': '/d/" name "'" more "}}"
#define TOPIC(name, more)                                                                                    \
        "{'topic': '" name "', 'consumerGroup': 'g', 'config': {'bootstrap.servers': 'h:1'}" more "}"
#define ROLE "'role': [{'roleName': 'w', 'command': 'x', 'inputPolicy': 'STREAMING'}]"
#define FILES(list) "{" ROLE ", 'inputManager': {'fileConfig': {'inputs': [" list "]}}}"
#define TOPICS(list) "{" ROLE ", 'inputManager': {'kafkaConfig': {'topics': [" list "]}}}"

/* "a b+3 -c": a stays, b is added with weight 3, c goes; or why not. */
static const char *planned(const char *config, const char *list, const bool *removed, char *buf,
                           size_t size) {
        static const bool none[8];
        _cleanup_(diagnostics_done) struct diagnostics d = {};
        _cleanup_(source_plan_done) struct source_plan p = {};
        _cleanup_(spec_free_p) struct job_spec *now = NULL;
        char error[SPEC_EDIT_TEXT_MAX] = "";
        size_t n = 0;
        int r;

        config = json_text(config);
        if (spec_parse(config, strlen(config), &now, &d) < 0)
                fail_msg("the test's own configuration is wrong: %s", d.items[0].message);
        r = source_plan_make(now, removed ? removed : none, json_text(list), &p, error);
        if (r < 0) {
                assert_int_equal(r, -EINVAL);
                snprintf(buf, size, "%s", error);
                return buf;
        }
        buf[0] = 0;
        for (size_t i = 0; i < p.n; i++) {
                const struct source_wish *w = p.wishes + i;

                n += (size_t)snprintf(buf + n, size - n, "%s%s%s%s", i ? " " : "", w->remove ? "-" : "",
                                      w->name, w->add ? "+" : "");
                if (w->weight > 0)
                        n += (size_t)snprintf(buf + n, size - n, "%u", w->weight);
        }
        return buf;
}

static void check_plan(const char *config, const char *list, const char *expected) {
        char buf[SPEC_EDIT_TEXT_MAX];

        if (strcmp(planned(config, list, NULL, buf, sizeof(buf)), expected) != 0)
                fail_msg("%s: %s", list, buf);
}

static void test_plans(void **state) {
        static const char two[] = FILES(FILE_("a", "") ", " FILE_("b", ""));

        check_plan(two, "[" FILE_("a", "") ", " FILE_("b", "") "]", "a b");
        check_plan(two, "[" FILE_("b", "") ", " FILE_("a", "") "]", "b a");
        check_plan(two, "[" FILE_("c", "") ", " FILE_("a", "") "]", "c+ a -b");
        check_plan(two, "[" FILE_("c", "") "]", "c+ -a -b");
        /* A weight is no other source; what says the defaults says the same. */
        check_plan(two, "[" FILE_("a", ", 'weight': 2") ", " FILE_("c", ", 'weight': 5") "]", "a2 c+5 -b");
        check_plan(two, "[" FILE_("a", ", 'textInput': {}, 'namePattern': '*'") "]", "a -b");
        check_plan(TOPICS(TOPIC("t", "")),
                   "[" TOPIC("t", ", 'weight': 1") ", " TOPIC("u", ", 'weight': 2") "]", "t1 u+2");
}

static void test_refusals(void **state) {
        static const char two[] = FILES(FILE_("a", "") ", " FILE_("b", ""));
        static const struct {
                const char *list, *why;
        } table[] = {
                { "[]", "an array of sources is expected" },
                { "{}", "an array of sources is expected" },
                { "[", "1:1: " },
                { "[7]", "source 1 of the array: a source is an object, with a name" },
                { "[{'spec': {'pathPattern': '/x'}}]", "source 1 of the array" },
                { "[{'name': 'a', 'spec': {'pathPattern': '/elsewhere'}}]",
                  "the source a is there, and is another one than that" },
                { "[" FILE_("a", ", 'rawInput': {}") "]", "the source a is there" },
                { "[" FILE_("c", "") ", " FILE_("c", "") "]", "two sources are called c" },
                { "[" FILE_("a", "") ", " FILE_("c", ", 'weight': 5") "]", "weight" },
                { "[{'name': 'c', 'spec': {'pathPattern': 'relative'}}]",
                  "inputManager.fileConfig.inputs[0].spec.pathPattern: " },
                { "[{'name': 'c', 'spec': {'pathPattern': '/x', 'shards': 2}}]", "shards" },
                { "[" TOPIC("t", "") "]", "the job has no inputManager.kafkaConfig" },
        };
        static const bool gone[] = { false, true };
        char buf[SPEC_EDIT_TEXT_MAX];

        for (size_t i = 0; i < ELEMENTSOF(table); i++)
                if (!strstr(planned(two, table[i].list, NULL, buf, sizeof(buf)), table[i].why))
                        fail_msg("%s: %s", table[i].list, buf);
        /* What was removed is not removed again, and does not come back. */
        assert_string_equal(planned(two, "[" FILE_("a", "") "]", gone, buf, sizeof(buf)), "a");
        assert_non_null(
                strstr(planned(two, "[" FILE_("a", "") ", " FILE_("b", "") "]", gone, buf, sizeof(buf)),
                       "the source b was removed, and that is for ever"));
}

/* The entry that is added has a weight exactly where the configuration's have. */
static void test_added_entries(void **state) {
        static const struct {
                const char *config;
                bool weighted;
        } table[] = { { FILES(FILE_("a", "")), false }, { FILES(FILE_("a", ", 'weight': 2")), true } };

        for (size_t i = 0; i < ELEMENTSOF(table); i++) {
                _cleanup_(diagnostics_done) struct diagnostics d = {};
                _cleanup_(source_plan_done) struct source_plan p = {};
                _cleanup_(spec_free_p) struct job_spec *now = NULL;
                char error[SPEC_EDIT_TEXT_MAX] = "";
                const char *config = json_text(table[i].config);
                bool none[1] = {};

                assert_int_equal(spec_parse(config, strlen(config), &now, &d), 0);
                assert_int_equal(source_plan_make(now, none,
                                                  json_text("[" FILE_("a", ", 'weight': 7") ", " FILE_(
                                                          "b", ", 'weight': 3") "]"),
                                                  &p, error),
                                 0);
                assert_int_equal(p.n, 2);
                assert_null(p.wishes[0].add);
                assert_int_equal(p.wishes[0].weight, 7);
                assert_int_equal(strstr(p.wishes[1].add, "weight") != NULL, table[i].weighted);
                assert_int_equal(p.wishes[1].weight, 3);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = { cmocka_unit_test(test_plans), cmocka_unit_test(test_refusals),
                                            cmocka_unit_test(test_added_entries) };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
