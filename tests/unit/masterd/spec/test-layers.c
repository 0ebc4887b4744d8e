/* SPDX-License-Identifier: Apache-2.0 */
#include "masterd/spec/layers.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"
#include "tests/kit/json.h"

static void add(struct layers *l, const char *name, const char *text) {
        _cleanup_free_ char *error = NULL;

        if (layers_add(l, name, json_text(text), strlen(text), &error) < 0)
                fail_msg("%s", error);
}

static struct job_spec *parse(const struct layers *l, const char *pool, const char *text) {
        struct diagnostics d = {};
        struct job_spec *s = NULL;

        if (spec_parse_layered(json_text(text), strlen(text), l, pool, &s, &d) < 0) {
                _cleanup_free_ char *line = diagnostic_format(diagnostics_first_error(&d));

                fail_msg("%s\n%s", line, text);
        }
        diagnostics_done(&d);
        return s;
}

static const char *variable(char *const *env, const char *name) {
        for (; env && *env; env++)
                if (strncmp(*env, name, strlen(name)) == 0 && (*env)[strlen(name)] == '=')
                        return *env + strlen(name) + 1;
        return "none";
}

#define ONE "{'command': 'x'}"
#define TWO                                                                                                  \
        "{'role': [{'roleName': 'a', 'command': 'x', 'memory': '2G'}, {'roleName': 'b', 'command': 'x', 'cpus': 3}]}"

static void test_nothing(void **state) {
        _cleanup_(spec_free_p) struct job_spec *s = parse(NULL, NULL, ONE);
        _cleanup_free_ char *error = NULL;

        (void)state;
        assert_int_equal(layers_n(NULL), 0);
        assert_int_equal(layers_check(NULL, s, &error), 0);
}

/* What a job says wins, under whatever name it says it; what it does not say is added to each role. */
static void test_defaults(void **state) {
        _cleanup_(layers_free_p) struct layers *l = layers_new();
        _cleanup_(spec_free_p) struct job_spec *s = NULL;

        (void)state;
        add(l, "10-a.json",
            "{'defaults': {'priority': 3, 'role': {'memoryMb': 512, 'vcores': 2, 'env': {'A': '1', 'B': '1'}}}}");
        add(l, "20-b.json", "{'defaults': {'priority': 4, 'time': '2h', 'role': {'env': {'B': '2'}}}}");
        s = parse(l, NULL, TWO);
        assert_int_equal(s->waits.priority, 4);
        assert_true(s->roles[0].memory == UINT64_C(2) << 30);
        assert_true(s->roles[1].memory == UINT64_C(512) << 20);
        assert_int_equal(s->roles[0].cpu_milli, 2000);
        assert_int_equal(s->roles[1].cpu_milli, 3000);
        assert_string_equal(variable(s->roles[1].env, "A"), "1");
        assert_string_equal(variable(s->roles[1].env, "B"), "2");
}

/* A file may be as short as a job of one role, and a job too. */
static void test_short(void **state) {
        _cleanup_(layers_free_p) struct layers *l = layers_new();
        _cleanup_(spec_free_p) struct job_spec *s = NULL;

        (void)state;
        add(l, "a.json", "{'defaults': {'memory': '3G', 'env': {'LR': 0.10}, 'retries': 2}} // all of it");
        s = parse(l, NULL, "{'command': 'x', 'env': {'X': '1'}}");
        assert_int_equal(s->n_roles, 1);
        assert_true(s->roles[0].memory == UINT64_C(3) << 30);
}

static void test_pools(void **state) {
        _cleanup_(layers_free_p) struct layers *l = layers_new();
        _cleanup_(spec_free_p) struct job_spec *other = NULL, *own = NULL, *given = NULL;

        (void)state;
        add(l, "a.json", "{'pools': ['night', 'late'], 'defaults': {'priority': 7}}");
        other = parse(l, NULL, ONE);
        own = parse(l, NULL, "{'command': 'x', 'queue': 'late'}");
        given = parse(l, "night", ONE);
        assert_int_equal(other->waits.priority, INT32_MIN); /* the pool's */
        assert_int_equal(own->waits.priority, 7);
        assert_int_equal(given->waits.priority, 7);
}

static void check(const struct layers *l, const char *text, const char *error) {
        _cleanup_(spec_free_p) struct job_spec *s = parse(l, NULL, text);
        _cleanup_free_ char *why = NULL;
        int r = layers_check(l, s, &why);

        assert_int_equal(r, error ? -EBADMSG : 0);
        if (error)
                assert_string_equal(why, error);
}

/* A forced value that a job does not give it gets; the same, however it is written, is no contradiction. */
static void test_forced(void **state) {
        _cleanup_(layers_free_p) struct layers *l = layers_new();
        _cleanup_(spec_free_p) struct job_spec *s = NULL;

        (void)state;
        add(l, "f.json", "{'forced': {'onPartition': 'stop', 'memoryMb': 1024, 'env': {'IF': 'ib0'}}}");
        s = parse(l, NULL, ONE);
        assert_true(s->roles[0].memory == UINT64_C(1) << 30);
        assert_string_equal(variable(s->env, "IF"), "ib0");
        check(l, ONE, NULL);
        check(l, "{'command': 'x', 'memory': '1G', 'onPartition': 'stop', 'env': {'IF': 'ib0', 'X': '1'}}",
              NULL);
        check(l, "{'command': 'x', 'memory': '2G'}",
              "role[0].memoryMb: f.json forces 1024 for all jobs of this pool, and not 2048; leave it out");
        check(l, "{'command': 'x', 'env': {'IF': 'secret'}}",
              "env.IF: f.json forces another value for all jobs of this pool; leave it out");
        check(l,
              "{'role': [{'roleName': 'a', 'command': 'x'}, {'roleName': 'b', 'command': 'x', 'memoryMb': 1}]}",
              "role[1].memoryMb: f.json forces 1024 for all jobs of this pool, and not 1; leave it out");
        check(l, "{'command': 'x', 'onPartition': 'wait'}",
              json_text(
                      "onPartition: f.json forces 'stop' for all jobs of this pool, and not 'wait'; leave it out"));
}

/* Which file it is; of two that force one key, the first. */
static void test_forced_by(void **state) {
        _cleanup_(layers_free_p) struct layers *l = layers_new();

        (void)state;
        add(l, "1.json", "{'forced': {'env': {'AB': '1'}, 'onPartition': 'stop'}}");
        add(l, "2.json", "{'pools': ['night'], 'forced': {'cpus': 2}}");
        add(l, "3.json", "{'forced': {'role': {'cpus': 1, 'env': {'C': '1'}}, 'onPartition': 'wait'}}");
        check(l, ONE, NULL);
        check(l, "{'command': 'x', 'onPartition': 'stop'}", NULL);
        check(l, "{'command': 'x', 'onPartition': 'wait'}",
              json_text(
                      "onPartition: 1.json forces 'stop' for all jobs of this pool, and not 'wait'; leave it out"));
        check(l, "{'command': 'x', 'env': {'AB': '2'}}",
              "env.AB: 1.json forces another value for all jobs of this pool; leave it out");
        check(l, "{'command': 'x', 'vcores': 2}",
              "role[0].vcores: 3.json forces 1 for all jobs of this pool, and not 2; leave it out");
        check(l, "{'command': 'x', 'vcores': 3, 'queue': 'night'}",
              "role[0].vcores: 2.json forces 2 for all jobs of this pool, and not 3; leave it out");
}

static void test_bad_files(void **state) {
        static const struct {
                const char *text, *error;
        } table[] = {
                { "", "a.json:1:1: " },
                { "{", "a.json:1:" },
                { "[]", "a.json:1:1: must be an object" },
                { "{'default': {}}", "a.json: default: unknown key; there are pools, defaults and forced" },
                { "{'defaults': {}, 'defaults': {}}", "a.json:1:" },
                { "{'defaults': 3}", "a.json: defaults: must be an object" },
                { "{'pools': []}", "a.json: pools: must be a list" },
                { "{'pools': [3]}", "a.json: pools[0]: must be the name of a pool" },
                { "{'defaults': {'comand': 'x'}}", "a.json: defaults.comand: unknown key" },
                { "{'forced': {'role': {'memmory': 3}}}", "a.json: forced.role.memmory: unknown key" },
                { "{'forced': {'role': {'gpus': 'x'}}}", "a.json: forced.role.gpus: " },
                { "{'forced': {'role': []}}", "a.json: forced.role: must be an object" },
                { "{'defaults': {'queue': 'a'}}", "a.json: defaults.queue: is for each job to say" },
                { "{'defaults': {'name': 'a'}}", "a.json: defaults.name: is for each job to say" },
                { "{'defaults': {'role': {'roleName': 'a'}}}", "a.json: defaults.role.roleName: is for" },
                { "{'defaults': {'memory': '1G', 'memoryMb': 3}}", "a.json: defaults.role.memory" },
                { "{'defaults': {'priority': 1000000}}", "a.json: defaults.priority: " },
        };

        (void)state;
        for (size_t i = 0; i < ELEMENTSOF(table); i++) {
                _cleanup_(layers_free_p) struct layers *l = layers_new();
                _cleanup_free_ char *error = NULL;
                int r = layers_add(l, "a.json", json_text(table[i].text), strlen(table[i].text), &error);

                if (r != -EBADMSG || strncmp(error, table[i].error, strlen(table[i].error)) != 0)
                        fail_msg("%s: %d, %s", table[i].text, r, error ? error : "");
                assert_int_equal(layers_n(l), 0);
        }
}

static void test_bounds(void **state) {
        _cleanup_(layers_free_p) struct layers *l = layers_new();
        _cleanup_free_ char *large = calloc(1, LAYER_TEXT_MAX + 2), *error = NULL;
        _cleanup_free_ char *deep = calloc(1, 1000), *other = NULL;

        (void)state;
        memset(large, ' ', LAYER_TEXT_MAX + 1);
        large[0] = '{';
        large[LAYER_TEXT_MAX] = '}';
        assert_int_equal(layers_add(l, "large.json", large, LAYER_TEXT_MAX + 1, &error), -EBADMSG);
        memset(deep, '[', 900);
        assert_int_equal(layers_add(l, "deep.json", deep, 900, &other), -EBADMSG);
        for (size_t i = 0; i < LAYERS_MAX; i++)
                add(l, "a.json", "{}");
        assert_int_equal(layers_add(l, "a.json", "{}", 2, &error), -E2BIG);
}

static int note_origin(const char *path, const char *value, const char *from, void *userdata) {
        FILE *f = userdata;

        if (!from || *from || strcmp(path, "requeue") == 0)
                fprintf(f, "%s=%s %s\n", path, value, !from ? "own" : *from ? from : "built in");
        return 0;
}

static void test_origins(void **state) {
        static const char text[] =
                "{'name': 'n', 'command': 'x', 'memory': '2G', 'retries': 1, 'env': {'A': '1'}}";
        _cleanup_(layers_free_p) struct layers *l = layers_new();
        _cleanup_(spec_free_p) struct job_spec *s = NULL;
        char said[8192] = "";
        FILE *f = fmemopen(said, sizeof(said), "w");

        (void)state;
        add(l, "d.json", "{'defaults': {'time': '1h', 'cpus': 2, 'env': {'A': '2', 'B': '2'}}}");
        add(l, "f.json", "{'forced': {'onPartition': 'stop'}}");
        s = parse(l, NULL, text);
        assert_int_equal(layers_origins(l, NULL, json_text(text), strlen(text), s, note_origin, f), 0);
        fclose(f);
        for (const char *const *line =
                     (const char *const[]){ "name='n' own\n", "onPartition='stop' f.json\n",
                                            "role[0].command='x' own\n", "role[0].memoryMb=2048 own\n",
                                            "role[0].vcores=2", " d.json\n", "env.A='1' own\n",
                                            "env.B='2' d.json\n", "requeue=false built in\n", NULL };
             *line; line++)
                if (!strstr(said, json_text(*line)))
                        fail_msg("no %s in:\n%s", *line, said);
        assert_null(strstr(said, "vcores=2 own"));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_nothing),   cmocka_unit_test(test_defaults),
                cmocka_unit_test(test_short),     cmocka_unit_test(test_pools),
                cmocka_unit_test(test_forced),    cmocka_unit_test(test_forced_by),
                cmocka_unit_test(test_bad_files), cmocka_unit_test(test_bounds),
                cmocka_unit_test(test_origins),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
