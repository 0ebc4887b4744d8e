/* SPDX-License-Identifier: Apache-2.0 */
#include "masterd/spec/edit.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/kit/json.h"

static const char config[] = JSON({
        "name" : "j",
        "env" : { "A" : "1" },
        "role" : [
                { "roleName" : "ps", "num" : 1, "command" : "serve" },
                { "roleName" : "worker", "num" : 4, "minNum" : 2, "vcores" : 0.5, "argv" : [ "train", "x" ] }
        ],
        "scheduler" : {
                "schedulePolicy" : {
                        "orderPolicy" : {
                                "rolePolicy" : [
                                        { "roleName" : "ps" },
                                        { "roleName" : "worker", "scheduleType" : "DYNAMIC" }
                                ]
                        }
                }
        }
});

struct edited {
        struct job_spec *spec;
        char *text, *what;
        struct edit_effects effects;
        char error[SPEC_EDIT_TEXT_MAX];
};

static int edit_text(const char *text, const struct spec_edit *edits, size_t n, struct edited *x) {
        _cleanup_(diagnostics_done) struct diagnostics d = {};
        _cleanup_(spec_free_p) struct job_spec *before = NULL;

        *x = (struct edited){};
        if (spec_parse(text, strlen(text), &before, &d) < 0)
                fail_msg("the test's own configuration is wrong");
        return spec_edit(before, edits, n, &x->spec, &x->text, &x->what, &x->effects, x->error);
}

static int edit_all(const struct spec_edit *edits, size_t n, struct edited *x) {
        return edit_text(config, edits, n, x);
}

static void done(struct edited *x) {
        spec_free(x->spec);
        free(x->text);
        free(x->what);
}

#define EDIT(x, ...)                                                                                         \
        edit_all((const struct spec_edit[]){ __VA_ARGS__ },                                                  \
                 sizeof((const struct spec_edit[]){ __VA_ARGS__ }) / sizeof(struct spec_edit), (x))

static void test_set(void **state) {
        struct edited x;

        assert_int_equal(EDIT(&x, { EDIT_SET, "worker.vcores", "0.25" }, { EDIT_SET, "timeLimit", "2h" },
                              { EDIT_SET, "env.B", "7" }, { EDIT_SET, "role.ps.env.A", "x=y" }),
                         0);
        assert_int_equal(spec_role(x.spec, "worker")->cpu_milli, 250);
        assert_true(x.spec->time_limit_usec == UINT64_C(7200000000));
        assert_string_equal(x.spec->env[0], "A=1");
        assert_string_equal(x.spec->env[1], "B=7");
        assert_string_equal(spec_role(x.spec, "ps")->env[0], "A=x=y");
        assert_string_equal(x.what, "worker.vcores: 0.5 -> 0.25, timeLimit: infinity -> 7200, env.B: set, "
                                    "role.ps.env.A: set");
        assert_true(x.effects.limits && x.effects.next && !x.effects.stays);
        done(&x);
        /* Values that may be secrets are not told, nor those of a whole map; amounts are. */
        assert_int_equal(EDIT(&x, { EDIT_SET, "env.A", "secret" },
                              { EDIT_SET, "ps.env", JSON({ "B" : "secret" }) },
                              { EDIT_SET, "visible", "group" }),
                         0);
        assert_string_equal(x.what, "env.A: changed, ps.env: set, visible: nothing -> group");
        assert_int_equal(x.spec->visible, VISIBLE_GROUP);
        done(&x);
        /* Variables are the text that was written, of a whole map, too. */
        assert_int_equal(EDIT(&x,
                              { EDIT_SET, "env", JSON({ "LR" : 0.1, "N" : 1e5, "T" : true, "S" : "1.0" }) },
                              { EDIT_SET, "ps.env", JSON({ "LR" : 3.10 }) }),
                         0);
        assert_string_equal(x.spec->env[0], "LR=0.1");
        assert_string_equal(x.spec->env[1], "N=1e5");
        assert_string_equal(x.spec->env[2], "S=1.0");
        assert_string_equal(x.spec->env[3], "T=true");
        assert_string_equal(spec_role(x.spec, "ps")->env[0], "LR=3.10");
        done(&x);
        /* One that excludes another takes its place. */
        assert_int_equal(EDIT(&x, { EDIT_SET, "worker.command", "train y" }, { EDIT_SET, "env.A", "null" }),
                         0);
        assert_string_equal(spec_role(x.spec, "worker")->command, "train y");
        assert_int_equal(x.spec->n_env, 0);
        done(&x);
        assert_int_equal(EDIT(&x, { EDIT_SET, "worker.argv", JSON([ "a", "b c" ]) }), 0);
        assert_string_equal(spec_role(x.spec, "worker")->argv[1], "b c");
        done(&x);
        /* Nothing is different. */
        assert_int_equal(EDIT(&x, { EDIT_SET, "worker.vcores", "0.5" }, { EDIT_SET, "env.C", "null" }), 0);
        assert_true(x.effects.stays);
        assert_string_equal(x.what, "");
        done(&x);
}

static void test_scale(void **state) {
        struct edited x;

        assert_int_equal(EDIT(&x, { EDIT_SCALE, "worker", "6" }, { EDIT_SCALE, "ps", "2" }), 0);
        assert_int_equal(spec_role(x.spec, "worker")->num, 6);
        assert_int_equal(spec_role(x.spec, "worker")->min_num, 2);
        assert_int_equal(spec_role(x.spec, "ps")->min_num, 2); /* all of them, as before */
        assert_string_equal(x.what, "worker.num: 4 -> 6, ps.num: 1 -> 2");
        done(&x);
}

static void test_roles(void **state) {
        struct edited x;

        assert_int_equal(EDIT(&x, { EDIT_ADD_ROLE, NULL, JSON({ "roleName" : "eval", "command" : "e" }) }),
                         0);
        assert_int_equal(x.spec->n_roles, 3);
        assert_int_equal(x.spec->n_order, 3);
        assert_string_equal(x.spec->order[2].role, "eval");
        assert_string_equal(x.what, "role eval added");
        done(&x);
        assert_int_equal(EDIT(&x, { EDIT_REMOVE_ROLE, "ps", NULL }), 0);
        assert_int_equal(x.spec->n_roles, 1);
        assert_int_equal(x.spec->n_order, 1);
        assert_string_equal(x.what, "role ps removed");
        done(&x);
}

#define FED(...)                                                                                             \
        JSON({                                                                                               \
                "name" : "j",                                                                                \
                "role" : [ { "roleName" : "w", "command" : "c", "inputPolicy" : "STREAMING" } ],             \
                "inputManager" : __VA_ARGS__                                                                 \
        })

static void test_sources(void **state) {
        static const char files[] = FED(
                { "fileConfig" : { "inputs" : [ { "name" : "a", "spec" : { "pathPattern" : "/a" } } ] } });
        static const char topics[] = FED({
                "kafkaConfig" : {
                        "topics" : [ {
                                "topic" : "t",
                                "consumerGroup" : "g",
                                "config" : { "bootstrap.servers" : "h:1" }
                        } ]
                }
        });
        const struct spec_edit file = { EDIT_ADD_SOURCE, NULL,
                                        JSON({ "name" : "b", "spec" : { "pathPattern" : "/b" } }) };
        const struct spec_edit topic = {
                EDIT_ADD_SOURCE, NULL,
                JSON({ "topic" : "u", "consumerGroup" : "g", "config" : { "bootstrap.servers" : "h:1" } })
        };
        static const struct {
                const char *text, *why;
        } list[] = { { "", "1:" },
                     { "[]", "needs a name" },
                     { "{}", "needs a name" },
                     { JSON({ "name" : 3 }), "needs a name" },
                     { JSON({ "name" : "a", "spec" : { "pathPattern" : "/b" } }), "has a source a already" },
                     { JSON({ "name" : "b", "spec" : {} }), "pathPattern" },
                     { JSON({ "name" : "b/c", "spec" : { "pathPattern" : "/b" } }), "name" } };
        char *source = NULL;
        struct edited x;

        assert_int_equal(edit_text(files, &file, 1, &x), 0);
        assert_int_equal(x.spec->n_inputs, 2);
        assert_string_equal(x.spec->inputs[1].name, "b");
        assert_string_equal(x.what, "data source b added");
        assert_int_equal(spec_source_jsons(x.spec, 1, 1, &source), 0);
        assert_non_null(strstr(source, "/b"));
        assert_null(strstr(source, "/a"));
        free(source);
        done(&x);
        assert_int_equal(edit_text(topics, &topic, 1, &x), 0);
        assert_int_equal(x.spec->n_topics, 2);
        assert_string_equal(x.what, "data source u added");
        assert_int_equal(spec_source_jsons(x.spec, 1, 1, &source), 0);
        assert_non_null(strstr(source, json_text("'topic':'u'")));
        assert_null(strstr(source, json_text("'t'")));
        free(source);
        done(&x);
        /* Numbers of sources stay what they are. */
        assert_int_equal(edit_text(topics, &file, 1, &x), -EINVAL);
        assert_string_equal(x.error, "the job reads topics: only a topic can be added to it");
        assert_int_equal(edit_text(files, &topic, 1, &x), -EINVAL);
        assert_non_null(strstr(x.error, "no inputManager.kafkaConfig"));
        assert_int_equal(edit_text(config, &file, 1, &x), -EINVAL);
        assert_non_null(strstr(x.error, "no inputManager that b"));
        for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++) {
                struct spec_edit edit = { EDIT_ADD_SOURCE, NULL, list[i].text };
                assert_int_equal(edit_text(files, &edit, 1, &x), -EINVAL);
                if (!strstr(x.error, list[i].why))
                        fail_msg("%zu: '%s' instead of '%s'", i, x.error, list[i].why);
        }
}

/* For another job: any key, and the same rules as for one that is submitted. */
static void test_anew(void **state) {
        static const struct spec_edit set[] = { { EDIT_SET, "search.maxTrials", "50" },
                                                { EDIT_SET, "search.metric", "loss" },
                                                { EDIT_SET, "cwd", "/tmp" } };
        static const struct {
                struct spec_edit edit;
                const char *says;
        } refused[] = {
                { { EDIT_SET, "search.maxTrials", "many" }, "search.maxTrials" },
                { { EDIT_SET, "search.nothing", "1" }, "there is no key nothing" },
                { { EDIT_SET, "search.method", "asha" }, "missing" },
                { { EDIT_SET, "nothing", "1" }, "there is neither a role nor a key nothing" },
        };
        const char *search = JSON({
                "command" : "x",
                "search" : { "method" : "random", "maxTrials" : 2, "space" : { "a" : 1 } }
        });
        _cleanup_(diagnostics_done) struct diagnostics d = {};
        _cleanup_(spec_free_p) struct job_spec *before = NULL, *after = NULL;
        _cleanup_free_ char *text = NULL;
        char error[SPEC_EDIT_TEXT_MAX];

        assert_int_equal(spec_parse(search, strlen(search), &before, &d), 0);
        assert_int_equal(spec_edit_anew(before, set, 3, &text, error), 0);
        assert_int_equal(spec_load(text, strlen(text), &after, &d), 0);
        assert_int_equal(after->search.max_trials, 50);
        assert_string_equal(after->search.metric, "loss");
        assert_string_equal(after->cwd, "/tmp");
        for (size_t i = 0; i < sizeof(refused) / sizeof(*refused); i++) {
                char *none = NULL;

                assert_int_equal(spec_edit_anew(before, &refused[i].edit, 1, &none, error), -EINVAL);
                if (!strstr(error, refused[i].says))
                        fail_msg("%s: %s", refused[i].edit.path, error);
        }
}

static void test_refused(void **state) {
        static const struct {
                struct spec_edit edit;
                const char *why;
        } list[] = {
                { { EDIT_SET, "speed", "3" }, "neither a role nor a key speed" },
                { { EDIT_SET, "worker", "3" }, "neither a role nor a key worker" },
                { { EDIT_SET, "worker.speed", "3" }, "neither a role nor a key speed" },
                { { EDIT_SET, "role.chief.num", "3" }, "no role chief" },
                { { EDIT_SET, "role", "3" }, "cannot be changed" },
                { { EDIT_SET, "inputManager.gracefulShutdown", "true" }, "cannot be changed" },
                { { EDIT_SET, "worker.gpuNum", "1" }, "cannot be changed" },
                { { EDIT_SET, "worker.vcores", "-1" }, "vcores" },
                { { EDIT_SET, "worker.vcores.x", "1" }, "no keys of its own" },
                { { EDIT_SET, "worker.argv", "[\"a\"" }, "not valid JSON" },
                { { EDIT_SET, "env.", "1" }, "a name is missing" },
                { { EDIT_SET, "env.a b", "1" }, "env" },
                { { EDIT_SET, "", "1" }, "neither" },
                { { EDIT_SET, ".", "1" }, "neither" },
                { { EDIT_SCALE, "worker", "0" }, "at least one executor" },
                { { EDIT_SCALE, "worker", "-1" }, "1 to 100000" },
                { { EDIT_SCALE, "worker", "1" }, "minNum" },
                { { EDIT_SCALE, "worker", "100001" }, "1 to 100000" },
                { { EDIT_SCALE, "worker", "99999999999999999999" }, "not a number" },
                { { EDIT_SCALE, "worker", "two" }, "not a number" },
                { { EDIT_SCALE, "chief", "2" }, "no role chief" },
                { { EDIT_ADD_ROLE, NULL, "{" }, "1:" },
                { { EDIT_ADD_ROLE, NULL, "[]" }, "" },
                { { EDIT_ADD_ROLE, NULL, JSON({ "num" : 2 }) }, "needs a name" },
                { { EDIT_ADD_ROLE, NULL, JSON({ "roleName" : "ps", "command" : "x" }) }, "already" },
                { { EDIT_ADD_ROLE, NULL, JSON({ "roleName" : "x" }) }, "command" },
                { { EDIT_REMOVE_ROLE, "chief", NULL }, "no role chief" },
        };

        for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++) {
                struct edited x;
                assert_int_equal(edit_all(&list[i].edit, 1, &x), -EINVAL);
                if (!strstr(x.error, list[i].why))
                        fail_msg("%zu: '%s' instead of '%s'", i, x.error, list[i].why);
                assert_null(x.spec);
        }
        struct edited x;
        assert_int_equal(EDIT(&x, { EDIT_REMOVE_ROLE, "ps", NULL }, { EDIT_REMOVE_ROLE, "worker", NULL }),
                         -EINVAL);
        assert_non_null(strstr(x.error, "only role"));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_set),     cmocka_unit_test(test_scale), cmocka_unit_test(test_roles),
                cmocka_unit_test(test_sources), cmocka_unit_test(test_anew),  cmocka_unit_test(test_refused),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
