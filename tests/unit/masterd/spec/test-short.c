/* SPDX-License-Identifier: Apache-2.0 */
/* Short keys, jobs of one role that is not written as one, and words from elsewhere. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "masterd/spec/edit.h"
#include "masterd/spec/spec.h"
#include "tests/kit/json.h"

static struct job_spec *parse(const char *text) {
        struct diagnostics d = {};
        struct job_spec *s = NULL;
        int r = spec_parse(json_text(text), strlen(text), &s, &d);

        for (size_t i = 0; i < d.n; i++)
                print_message("%s\n", d.items[i].message);
        assert_int_equal(r, 0);
        assert_int_equal(d.n, 0);
        diagnostics_done(&d);
        return s;
}

/* Both say the same. */
static void assert_same(const char *brief, const char *plain) {
        _cleanup_(spec_free_p) struct job_spec *a = parse(brief), *b = parse(plain);
        _cleanup_free_ char *x = NULL, *y = NULL;

        assert_int_equal(spec_effective(a, &x), 0);
        assert_int_equal(spec_effective(b, &y), 0);
        assert_string_equal(x, y);
}

static void test_each(void **state) {
        static const struct {
                const char *brief, *plain;
        } same[] = {
                { "'cpus': 1.5", "'vcores': 1.5" },
                { "'cpus': 0", "'vcores': 0" },
                { "'memory': '2G'", "'memoryMb': 2048" },
                { "'memory': 1048577", "'memoryMb': 2" },
                { "'gpus': 2", "'gpuNum': 2" },
                { "'ports': 3", "'portNum': 3" },
                { "'retries': 3", "'failover': {'commonFailoverPolicy': {'maxFailureTimes': 4}}" },
                { "'retries': 0", "'failover': {'commonFailoverPolicy': {'maxFailureTimes': 1}}" },
                { "'time': '2h'", "'timeLimit': 7200" },
                { "'time': 'infinity'", "'num': 1" },
                { "'hosts': 3", "'num': 3, 'scheduleStrategy': {'replicasPerNode': 1}" },
                { "'hosts': 3, 'perHost': 4", "'num': 12, 'scheduleStrategy': {'replicasPerNode': 4}" },
                { "'num': 6, 'perHost': 2", "'num': 6, 'scheduleStrategy': {'replicasPerNode': 2}" },
        };
        char brief[256], plain[256];

        for (size_t i = 0; i < ELEMENTSOF(same); i++) {
                snprintf(brief, sizeof(brief), "{'role': [{'name': 'w', 'command': 'x', %s}]}",
                         same[i].brief);
                snprintf(plain, sizeof(plain), "{'role': [{'roleName': 'w', 'command': 'x', %s}]}",
                         same[i].plain);
                assert_same(brief, plain);
        }
}

static void test_one_role(void **state) {
        assert_same(JSON({ "command" : "x" }),
                    JSON({ "role" : [ { "roleName" : "worker", "command" : "x" } ] }));
        assert_same(JSON({ "command" : "x", "role" : null }),
                    JSON({ "role" : [ { "roleName" : "worker", "command" : "x" } ] }));
        assert_same(JSON({ "argv" : ["x"], "roleName" : "ps" }),
                    JSON({ "role" : [ { "roleName" : "ps", "argv" : ["x"] } ] }));
        assert_same(
                JSON({
                        "name" : "n",
                        "command" : "x",
                        "num" : 2,
                        "success_percent" : 50,
                        "env" : { "A" : "1" },
                        "time" : 5
                }),
                JSON({
                        "name" : "n",
                        "timeLimit" : 5,
                        "env" : { "A" : "1" },
                        "role" : [
                                { "roleName" : "worker", "num" : 2, "command" : "x", "successPercent" : 50 }
                        ]
                }));
}

/* line:column, where and what of the first error, as the user wrote it. */

static void test_refused(void **state) {
        static const struct {
                const char *text, *error;
        } refused[] = {
                { "{'command': 'x', 'gpus': 100}", "1:26: gpus: must be 0 to 64, not 100" },
                { "{\"command\": \"x\",\n  \"vcores\": \"many\"}",
                  "2:13: vcores: must be a number, not \"many\"" },
                { "{'command': 'x', 'memory': 16}", "1:28: memory: must be 1M to 64T, not 16" },
                { "{'command': 'x', 'gpus': 0, 'gpuNum': 2}",
                  "1:26: gpus: cannot be given together with gpuNum" },
                { "{'command': 'x', 'failover': {}, 'retries': 1}",
                  "1:45: retries: cannot be given together with failover" },
                { "{'command': 'x', 'num': 2, 'hosts': 1}",
                  "1:37: hosts: cannot be given together with num" },
                { "{'command': 'x', 'perHost': 1, 'scheduleStrategy': {}}",
                  "1:29: perHost: cannot be given together with scheduleStrategy" },
                { "{'command': 'x', 'time': 1, 'timeLimit': 2}",
                  "1:26: time: cannot be given together with timeLimit" },
                { "{'role': [{'name': 'a', 'roleName': 'b', 'command': 'x'}]}",
                  "1:20: role[0].name: cannot be given together with roleName" },
                { "{'role': [{'command': 'x'}]}", "1:11: role[0].roleName: missing" },
                { "{'role': [{'roleName': 'a', 'command': 'x'}], 'retries': 3}",
                  "1:47: retries: unknown key; it belongs in the job's role.retries" },
                { "{'cmd': 'x', 'num': 2}", "1:2: cmd: unknown key; did you mean \"command\"?" },
                { "{'comand': 'x', 'num': 2}", "1:2: comand: unknown key; did you mean \"command\"?" },
                { "{'command': 'x', 'num_gpus': 2}", "1:18: num_gpus: unknown key; did you mean \"gpus\"?" },
                { "{'command': 'x', 'partition': 'a'}",
                  "1:18: partition: unknown key; did you mean \"queue\"?" },
                { "{'role': [{'roleName': 'a', 'command': 'x', 'WallTime': 2}]}",
                  "1:45: role[0].WallTime: unknown key; did you mean \"time\"?" },
        };

        for (size_t i = 0; i < ELEMENTSOF(refused); i++) {
                struct diagnostics d = {};
                struct job_spec *s = NULL;
                _cleanup_free_ char *line = NULL;

                assert_int_equal(spec_parse(json_text(refused[i].text), strlen(refused[i].text), &s, &d),
                                 -EBADMSG);
                for (size_t j = 0; !line && j < d.n; j++)
                        if (!strstr(d.items[j].message, "say what to run"))
                                line = diagnostic_format(&d.items[j]);
                assert_string_equal(line, refused[i].error);
                diagnostics_done(&d);
        }
}

/* What a job that is there has are the long keys; its changes are told in their terms. */
static void test_changed(void **state) {
        static const struct {
                const char *path, *error;
        } changes[] = {
                { "time", "time: time is a key of job files alone; a job that is there has timeLimit" },
                { "worker.memory",
                  "worker.memory: memory is a key of job files alone; a job that is there has memoryMb" },
                { "worker.hosts",
                  "worker.hosts: hosts is a key of job files alone; a job that is there has num" },
        };
        _cleanup_(spec_free_p) struct job_spec *s = parse("{'command': 'x', 'memory': '1G'}");

        for (size_t i = 0; i < ELEMENTSOF(changes); i++) {
                const struct spec_edit edit = { EDIT_SET, changes[i].path, "2" };
                struct job_spec *after = NULL;
                char *text = NULL, *what = NULL;
                char error[SPEC_EDIT_TEXT_MAX];
                struct edit_effects effects = {};

                assert_int_equal(spec_edit(s, &edit, 1, &after, &text, &what, &effects, error), -EINVAL);
                assert_string_equal(error, changes[i].error);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_each),
                cmocka_unit_test(test_one_role),
                cmocka_unit_test(test_refused),
                cmocka_unit_test(test_changed),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
