/* SPDX-License-Identifier: Apache-2.0 */
/* What no single key can know: defaults that come from other keys, and rules between keys, with the place
 * that they name. More of what is refused is in tests/data/bad-configs. */
#include "masterd/spec/check.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "tests/kit/json.h"

static struct job_spec *taken(const char *text) {
        struct diagnostics d = {};
        struct job_spec *s = NULL;

        if (spec_parse(text, strlen(text), &s, &d) < 0)
                fail_msg("%s", diagnostics_first_error(&d)->message);
        diagnostics_done(&d);
        return s;
}

static void test_command(void **state) {
        _cleanup_(spec_free_p) struct job_spec *s = taken(JSON({
                "role" : [
                        { "roleName" : "w", "command" : "a | b" }, { "roleName" : "v", "argv" : [ "x", "y" ] }
                ]
        }));

        assert_int_equal(s->roles[0].n_argv, 3);
        assert_string_equal(s->roles[0].argv[1], "-c");
        assert_string_equal(s->roles[0].argv[2], "a | b");
        assert_int_equal(s->roles[1].n_argv, 2);
        assert_int_equal(s->roles[0].min_num, s->roles[0].num);
}

static void test_hosts(void **state) {
        _cleanup_(spec_free_p) struct job_spec *s = taken(JSON({
                "nodes" : "n[1-3]",
                "role" : [
                        {
                                "roleName" : "w",
                                "command" : "x",
                                "hosts" : 2,
                                "scheduleStrategy" : { "replicasPerNode" : 4 }
                        },
                        { "roleName" : "v", "command" : "x", "nodes" : ["n9"] }
                ]
        }));

        assert_int_equal(s->roles[0].num, 8);
        assert_int_equal(s->roles[0].hosts, 0);   /* num says it from here on */
        assert_int_equal(s->roles[0].n_nodes, 3); /* the job's, where it has none */
        assert_int_equal(s->roles[1].n_nodes, 1);
}

static void test_refused(void **state) {
        static const struct {
                const char *text, *path, *says;
        } cases[] = {
                { JSON({
                          "role" : [
                                  { "roleName" : "w", "command" : "x" }, { "roleName" : "w", "command" : "x" }
                          ]
                  }),
                  "role[1].roleName", "called w already" },
                { JSON({ "role" : [ { "roleName" : "w" } ] }), "role[0].command", "missing" },
                { JSON({ "role" : [ { "roleName" : "w", "command" : "x", "num" : 2, "minNum" : 3 } ] }),
                  "role[0].minNum", "at most num (2), not 3" },
                { JSON({ "role" : [ { "roleName" : "w", "command" : "x", "inputPolicy" : "STREAMING" } ] }),
                  "role[0].inputPolicy", "needs data" },
                { JSON({
                          "role" : [ {
                                  "roleName" : "w",
                                  "command" : "x",
                                  "num" : 3,
                                  "scheduleStrategy" : { "replicasPerNode" : 2 }
                          } ]
                  }),
                  "role[0].scheduleStrategy.replicasPerNode", "multiple" },
                { JSON({
                          "role" : [ {
                                  "roleName" : "w",
                                  "command" : "x",
                                  "num" : 4,
                                  "nodes" : "n1",
                                  "scheduleStrategy" : { "replicasPerNode" : 2 }
                          } ]
                  }),
                  "role[0].scheduleStrategy", "needs 2 hosts, but nodes names 1" },
                { JSON({ "role" : [ { "roleName" : "w", "command" : "x", "successPercent" : 0 } ] }), "role",
                  "no role is required" },
                { JSON({
                          "signal" : "USR1@60s",
                          "timeLimit" : 60,
                          "role" : [ { "roleName" : "w", "command" : "x" } ]
                  }),
                  "signal", "nothing is left" },
                { JSON({
                          "backoff" : { "initial" : 9, "max" : 8 },
                          "role" : [ { "roleName" : "w", "command" : "x" } ]
                  }),
                  "backoff", "less than initial" },
                { JSON({ "role" : [ { "roleName" : "w", "command" : "x", "ready" : { "tcp" : 1 } } ] }),
                  "role[0].ready.tcp", "no port" },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                struct diagnostics d = {};
                struct job_spec *s = NULL;
                const struct diagnostic *first;

                assert_int_equal(spec_parse(cases[i].text, strlen(cases[i].text), &s, &d), -EBADMSG);
                first = diagnostics_first_error(&d);
                assert_string_equal(first->path, cases[i].path);
                if (!strstr(first->message, cases[i].says))
                        fail_msg("%s: %s", first->path, first->message);
                diagnostics_done(&d);
        }
}

static void test_signals(void **state) {
        uint64_t before;
        int32_t number;

        assert_int_equal(spec_signal_parse("SIGUSR1@2min", &number, &before), 0);
        assert_true(number == SIGUSR1 && before == 120 * USEC_PER_SEC);
        assert_int_equal(spec_signal_parse("TERM", &number, &before), 0);
        assert_true(number == SIGTERM && before == 60 * USEC_PER_SEC);
        assert_int_equal(spec_signal_parse("9", &number, &before), -EINVAL);
        assert_int_equal(spec_signal_parse("KILL", &number, &before), -EINVAL);
        assert_int_equal(spec_signal_parse("USR1@86401s", &number, &before), -EINVAL);
        assert_int_equal(spec_signal_parse("AVERYLONGNAMEOFASIGNAL", &number, &before), -EINVAL);
        assert_int_equal(spec_stack_signal_parse("none", &number), 0);
        assert_int_equal(number, 0);
        assert_int_equal(spec_stack_signal_parse(NULL, &number), 0);
        assert_int_equal(number, SPEC_STACK_SIGNAL_DEFAULT);
        assert_int_equal(spec_stack_signal_parse("USR2@1s", &number), -EINVAL);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_command),
                cmocka_unit_test(test_hosts),
                cmocka_unit_test(test_refused),
                cmocka_unit_test(test_signals),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
