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

/* What is left out is filled in; how many trials a grid and a list have, too; and all of it reads back as it
 * was. */
static void test_search(void **state) {
        static const struct {
                const char *text;
                uint32_t trials;
        } cases[] = {
                { JSON({
                          "search" : { "method" : "random", "space" : { "x" : 1 }, "maxTrials" : 3 },
                          "command" : "x"
                  }),
                  3 },
                { JSON({
                          "search" :
                                  { "method" : "list", "points" : [ { "x" : 1 }, { "y" : [ 1.25, null ] } ] },
                          "command" : "x"
                  }),
                  2 },
                { JSON({
                          "search" : {
                                  "method" : "grid",
                                  "space" : {
                                          "x" : {
                                                  "type" : "double",
                                                  "minval" : 0.1,
                                                  "maxval" : 0.3,
                                                  "count" : 5
                                          }
                                  }
                          },
                          "command" : "x"
                  }),
                  5 },
                { JSON({
                          "search" : {
                                  "method" : "adaptive-asha",
                                  "space" : { "x" : 1 },
                                  "maxTrials" : 9,
                                  "maxTime" : 9,
                                  "metric" : "val/loss",
                                  "smaller" : false,
                                  "rungs" : [ 3, 1 ],
                                  "seed" : 77
                          },
                          "command" : "x"
                  }),
                  9 },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_(spec_free_p) struct job_spec *s = taken(cases[i].text), *again = NULL,
                                                       *none = taken(JSON({ "command" : "x" }));
                _cleanup_free_ char *once = NULL, *twice = NULL;
                struct search_settings settings;

                assert_int_equal(s->search.max_trials, cases[i].trials);
                assert_int_equal(spec_effective(s, &once), 0);
                again = taken(once);
                assert_int_equal(spec_effective(again, &twice), 0);
                assert_string_equal(once, twice);
                assert_int_equal(search_spec_settings(&s->search, &settings), 0);
                assert_int_equal(settings.max_trials, cases[i].trials);
                assert_true(settings.larger == (i == 3) && settings.n_rungs == (i == 3 ? 2 : 0));
                spec_make_trial(s);
                assert_false(search_spec_given(&s->search));
                assert_false(search_spec_given(&none->search));
        }
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
                { JSON({ "search" : {}, "command" : "x" }), "search.method", "missing" },
                { JSON({ "search" : { "method" : "random" }, "command" : "x" }), "search.space", "missing" },
                { JSON({ "search" : { "method" : "random", "space" : { "x" : 1 } }, "command" : "x" }),
                  "search.maxTrials", "missing" },
                { JSON({
                          "search" : { "method" : "random", "space" : { "x" : 1 }, "maxTrials" : 3 },
                          "array" : "0-3",
                          "command" : "x"
                  }),
                  "array", "a search is an array of its own" },
                { JSON({
                          "search" : { "method" : "random", "space" : "x", "maxTrials" : 3 },
                          "command" : "x"
                  }),
                  "search.space", "an object or an array" },
                { JSON({
                          "search" : {
                                  "method" : "random",
                                  "space" : { "x" : { "type" : "int", "minval" : 3, "maxval" : 2 } },
                                  "maxTrials" : 3
                          },
                          "command" : "x"
                  }),
                  "search.space", "x: minval must not be above maxval" },
                { JSON({
                          "search" : {
                                  "method" : "random",
                                  "space" : { "x" : 1 },
                                  "maxTrials" : 3,
                                  "maxTime" : 3
                          },
                          "command" : "x"
                  }),
                  "search.maxTime", "means nothing to this method" },
                { JSON({
                          "search" : {
                                  "method" : "asha",
                                  "space" : { "x" : 1 },
                                  "maxTrials" : 3,
                                  "maxTime" : 3
                          },
                          "command" : "x"
                  }),
                  "search.metric", "missing" },
                { JSON({
                          "search" : {
                                  "method" : "asha",
                                  "space" : { "x" : 1 },
                                  "maxTrials" : 3,
                                  "maxTime" : 3,
                                  "metric" : "the loss"
                          },
                          "command" : "x"
                  }),
                  "search.metric", "must be letters" },
                { JSON({
                          "search" : {
                                  "method" : "asha",
                                  "space" : { "x" : 1 },
                                  "maxTrials" : 0,
                                  "maxTime" : -3,
                                  "metric" : "loss"
                          },
                          "command" : "x"
                  }),
                  "search.maxTime", "must be 1 to" },
                { JSON({
                          "search" : {
                                  "method" : "grid",
                                  "space" : { "x" : { "type" : "int", "minval" : 0, "maxval" : 9 } }
                          },
                          "command" : "x"
                  }),
                  "search.space", "a grid needs" },
                { JSON({
                          "search" : {
                                  "method" : "grid",
                                  "space" : { "x" : { "type" : "categorical", "vals" : [ 1, 2, 3 ] } },
                                  "maxTrials" : 2
                          },
                          "command" : "x"
                  }),
                  "search.maxTrials", "space has 3 points" },
                { JSON({
                          "search" : { "method" : "list", "points" : [ { "x" : 1 }, { "x.y" : 2 } ] },
                          "command" : "x"
                  }),
                  "search.points[1]", "a name must be" },
                { JSON({ "search" : { "method" : "list", "points" : [] }, "command" : "x" }), "search.points",
                  "1 to 100000 objects" },
                { JSON({
                          "search" : {
                                  "method" : "adaptive-asha",
                                  "space" : { "x" : 1 },
                                  "maxTrials" : 3,
                                  "maxTime" : 3,
                                  "metric" : "loss",
                                  "rungs" : [ 1, 2 ]
                          },
                          "command" : "x"
                  }),
                  "search.rungs", "falling numbers" },
                { JSON({
                          "search" : {
                                  "method" : "random",
                                  "space" : { "x" : 1 },
                                  "maxTrials" : 3,
                                  "variant" : "promote"
                          },
                          "command" : "x"
                  }),
                  "search.variant", "means nothing to this method" },
                { JSON({
                          "search" : {
                                  "method" : "asha",
                                  "space" : { "x" : 1 },
                                  "maxTrials" : 1001,
                                  "maxTime" : 3,
                                  "metric" : "loss",
                                  "variant" : "promote"
                          },
                          "command" : "x"
                  }),
                  "search.maxTrials", "at most 1000 where trials are parked" },
                { JSON({
                          "search" : {
                                  "method" : "asha",
                                  "space" : { "x" : 1 },
                                  "maxTrials" : 3,
                                  "maxTime" : 3,
                                  "metric" : "loss",
                                  "variant" : "promote"
                          },
                          "role" : [
                                  { "roleName" : "w", "command" : "x" },
                                  { "roleName" : "searcher", "command" : "y" }
                          ]
                  }),
                  "search.variant", "does not know of parked trials" },
                { JSON({
                          "search" : { "method" : "random", "space" : { "x" : 1 }, "maxTrials" : 3 },
                          "command" : "train {hp.x}"
                  }),
                  "command", "a shell would take the value of {hp.x}" },
                { JSON({
                          "search" :
                                  { "method" : "random", "space" : { "x" : { "y" : 1 } }, "maxTrials" : 3 },
                          "role" : [ { "roleName" : "w", "argv" : [ "a", "{hp.x}{hp.x.y}", "{hp.x.z}" ] } ]
                  }),
                  "role[0].argv", "{hp.x.z}: the search has no parameter" },
                { JSON({
                          "search" : { "method" : "list", "points" : [ { "x" : 1 }, { "y" : { "z" : 2 } } ] },
                          "role" : [ { "roleName" : "w", "argv" : [ "a", "{hp.x}{hp.y.z}", "{hp.z}" ] } ]
                  }),
                  "role[0].argv", "{hp.z}: the search has no parameter" },
                { JSON({
                          "search" : { "method" : "external", "metric" : "loss", "maxTrials" : 3 },
                          "role" : [
                                  { "roleName" : "w", "argv" : [ "{hp.x}", "{hp.y}" ] },
                                  { "roleName" : "searcher", "argv" : ["{hp.x}"] }
                          ]
                  }),
                  "role[0].argv", "{hp.x}: which program it is" },
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
                cmocka_unit_test(test_command), cmocka_unit_test(test_hosts),   cmocka_unit_test(test_search),
                cmocka_unit_test(test_refused), cmocka_unit_test(test_signals),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
