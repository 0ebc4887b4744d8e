/* SPDX-License-Identifier: Apache-2.0 */
/* Whole configurations: upstream's, ours, and those that are refused (tests/data). */
#include "masterd/spec/spec.h"

#include <errno.h>
#include <glob.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/clock.h"
#include "lib/base/file.h"
#include "tests/kit/json.h"

static const char *data_dir;

typedef int (*parse_function)(const char *text, size_t size, struct job_spec **ret, struct diagnostics *d);

static struct job_spec *parse_by(parse_function f, const char *text, size_t expected_warnings) {
        struct diagnostics d = {};
        struct job_spec *s = NULL;
        int r = f(text, strlen(text), &s, &d);

        for (size_t i = 0; i < d.n && (r < 0 || d.n_warnings != expected_warnings); i++) {
                _cleanup_free_ char *line = diagnostic_format(&d.items[i]);
                print_message("%s\n", line);
        }
        assert_int_equal(r, 0);
        assert_int_equal(d.n_warnings, expected_warnings);
        diagnostics_done(&d);
        return s;
}

static struct job_spec *parse(const char *text, size_t expected_warnings) {
        return parse_by(spec_parse, text, expected_warnings);
}

/* The effective configuration reads back, without a warning, to the same effective configuration. */
static void assert_settled(const struct job_spec *s) {
        _cleanup_(spec_free_p) struct job_spec *again = NULL;
        _cleanup_free_ char *once = NULL, *twice = NULL;

        assert_int_equal(spec_effective(s, &once), 0);
        again = parse_by(spec_load, once, 0);
        assert_int_equal(spec_effective(again, &twice), 0);
        assert_string_equal(once, twice);
}

static struct job_spec *parse_file(const char *name, size_t expected_warnings) {
        _cleanup_free_ char *path = NULL, *text = NULL;

        assert_true(asprintf(&path, "%s/%s", data_dir, name) > 0);
        assert_int_equal(read_file(path, SPEC_TEXT_MAX, &text, NULL), 0);
        return parse(text, expected_warnings);
}

static void test_upstream_hello(void **state) {
        _cleanup_(spec_free_p) struct job_spec *s = parse_file("upstream/hello.json", 3);

        assert_string_equal(s->name, "primus-hello");
        assert_int_equal(s->n_roles, 3);
        assert_int_equal(s->schedule_policy, SCHEDULE_POLICY_GANG);
        for (size_t i = 0; i < 3; i++) {
                const struct role_spec *role = &s->roles[i];
                assert_int_equal(role->num, 1);
                assert_int_equal(role->min_num, 1);
                assert_int_equal(role->cpu_milli, 1000);
                assert_true(role->memory == 512 << 20);
                assert_int_equal(role->success_percent, 100);
                assert_int_equal(role->failover.restart_type, RESTART_ON_FAILURE);
                assert_int_equal(role->failover.max_failure_times, 1);
                assert_int_equal(role->failover.max_failure_policy, FAILURE_FAIL_ATTEMPT);
                assert_string_equal(role->argv[0], "/bin/bash");
                assert_string_equal(role->argv[2], role->command);
                assert_null(role->argv[3]);
        }
        assert_settled(s);
}

static void test_upstream_data(void **state) {
        _cleanup_(spec_free_p) struct job_spec *s = parse_file("upstream/input-file-text.json", 4);

        assert_int_equal(s->roles[0].input_policy, INPUT_STREAMING);
        assert_int_equal(s->roles[0].failover.max_failure_times, 3);
        assert_int_equal(s->n_inputs, 1);
        assert_string_equal(s->inputs[0].name, "data");
        assert_string_equal(s->inputs[0].path_pattern, "/primus/examples/input-file-text/data/");
        assert_string_equal(s->inputs[0].name_pattern, "*");
        assert_true(s->graceful_shutdown); /* written as "true" */
        assert_int_equal(s->task_success_milli, 100000);
        assert_int_equal(s->task_failed_milli, 50000);
        assert_int_equal(s->max_task_attempts, 2);
        assert_settled(s);
}

static void test_upstream_parameter_server(void **state) {
        _cleanup_(spec_free_p) struct job_spec *s = parse_file("upstream/tensorflow-parameterserver.json", 4);

        assert_int_equal(s->n_files, 1);
        assert_string_equal(s->files[0], "tensorflow-parameterserver");
        assert_int_equal(spec_role(s, "chief")->success_percent, 100);
        assert_int_equal(spec_role(s, "ps")->success_percent, 0);
        assert_int_equal(spec_role(s, "worker")->success_percent, 0);
        assert_null(spec_role(s, "evaluator"));
        assert_int_equal(spec_executors(s), 3);
        assert_settled(s);
}

static void test_upstream_kafka(void **state) {
        /* the JVM's memory, progressManagerType, two deserializers, enable.auto.commit, and the placeholder
         */
        _cleanup_(spec_free_p) struct job_spec *s = parse_file("upstream/input-kafka-text.json", 6);
        const struct topic_spec *t = &s->topics[0];

        assert_int_equal(s->n_inputs, 0);
        assert_int_equal(spec_n_sources(s), 1);
        assert_int_equal(s->message_type, KAFKA_JSON);
        assert_string_equal(t->topic, "primus-example-input-kafka-text");
        assert_string_equal(t->group, "primus-example");
        assert_int_equal(t->start, KAFKA_EARLIEST);
        assert_int_equal(t->n_config, 2);
        assert_string_equal(t->config[0], "auto.offset.reset=earliest");
        assert_string_equal(t->config[1], "bootstrap.servers=<kafka-broker-ip:port>");
        assert_null(t->config[2]);
}

static void test_defaults(void **state) {
        _cleanup_(spec_free_p) struct job_spec *s =
                parse(JSON({ "role" : [ { "role_name" : "w", "command" : "true" } ] }), 0);
        const struct role_spec *role = &s->roles[0];

        assert_string_equal(s->name, "job");
        assert_string_equal(s->queue, "default");
        assert_int_equal(s->max_app_attempts, 1);
        assert_int_equal(s->waits.priority, SPEC_PRIORITY_NONE);
        assert_false(s->waits.requeue || s->waits.preemptible || s->waits.signal);
        assert_true(s->stop_grace_usec == 10 * USEC_PER_SEC);
        assert_true(s->time_limit_usec == USEC_INFINITY);
        assert_true(s->failure_window_usec == USEC_INFINITY);
        assert_true(s->backoff.initial_usec == USEC_PER_SEC);
        assert_true(s->backoff.max_usec == 60 * USEC_PER_SEC);
        assert_int_equal(s->on_partition, SPEC_PARTITION_REPLACE);
        assert_false(s->new_privileges);
        assert_null(s->cwd);
        assert_null(s->output);
        assert_null(s->env[0]);
        assert_null(s->files[0]);
        assert_null(s->nodes[0]);
        assert_int_equal(spec_n_sources(s), 0);
        assert_int_equal(role->num, 1);
        assert_true(role->memory == 1 << 30);
        assert_int_equal(role->ports, 1);
        assert_int_equal(role->success_percent, 100);
        assert_int_equal(role->failover.max_failure_times, 1);
        assert_int_equal(role->failover.max_failure_policy, FAILURE_FAIL_APP);
        assert_null(role->env[0]);
        assert_true(role->time_limit_usec == USEC_INFINITY);
        assert_settled(s);
}

static void test_everything(void **state) {
        _cleanup_(spec_free_p) struct job_spec *s = parse_file("every-key.json", 2);
        const struct role_spec *ps = spec_role(s, "ps"), *worker = spec_role(s, "worker");

        assert_string_equal(s->env[0], "A=1=2");
        assert_string_equal(s->env[1], "B=");
        assert_int_equal(s->max_app_attempts, 3);
        assert_int_equal(s->waits.priority, -7);
        assert_true(s->waits.requeue && s->waits.preemptible);
        assert_int_equal(s->waits.signal_number, SIGUSR1);
        assert_true(s->waits.signal_before_usec == 120 * USEC_PER_SEC);
        assert_true(s->stop_grace_usec == 120 * USEC_PER_SEC);
        assert_int_equal(s->n_nodes, 3);
        assert_true(s->time_limit_usec == 129600 * USEC_PER_SEC);
        assert_true(s->failure_window_usec == 600500 * USEC_PER_MSEC);
        assert_true(s->backoff.initial_usec == 0);
        assert_int_equal(s->schedule_policy, SCHEDULE_POLICY_ORDER);
        assert_int_equal(s->order[0].schedule_type, SCHEDULE_DYNAMIC);
        assert_string_equal(s->order[1].role, "worker");
        assert_int_equal(ps->cpu_milli, 500);
        assert_int_equal(ps->memory, 0);
        assert_int_equal(ps->min_num, 1);
        assert_null(ps->command);
        assert_int_equal(ps->n_argv, 3);
        assert_string_equal(ps->argv[2], "");
        assert_int_equal(ps->n_nodes, 1);
        assert_int_equal(ps->failover.form, FAILOVER_HYBRID);
        assert_int_equal(ps->failover.restart_type, RESTART_ALWAYS);
        assert_int_equal(ps->failover.max_failure_policy, FAILURE_NONE);
        assert_int_equal(ps->max_per_node, 2);
        assert_int_equal(ps->category, ROLE_CATEGORY_PS);
        assert_true(ps->time_limit_usec == 90 * USEC_PER_SEC);
        assert_int_equal(worker->per_node, 2);
        assert_int_equal(worker->n_nodes, 3); /* the job's */
        assert_string_equal(s->inputs[0].name, "0");
        assert_string_equal(s->inputs[1].name_pattern, "*.txt");
        assert_int_equal(s->task_success_milli, 100000);
        assert_int_equal(s->task_failed_milli, 125);
        assert_int_equal(s->input_ack, ACK_EXIT);
        assert_true(s->pipe_size == 65536);
        assert_settled(s);
}

/* Circulating mistakes that are taken as they were meant. */
static void test_slips(void **state) {
        _cleanup_(spec_free_p) struct job_spec *s =
                parse(JSON({
                              "role" : [ {
                                      "roleName" : "w",
                                      "command" : "true",
                                      "failover" : {
                                              "commonFailoverPolicy" :
                                                      { "commonFailover" : { "maxFailureTimes" : 4 } }
                                      }
                              } ]
                      }),
                      1);
        assert_int_equal(s->roles[0].failover.max_failure_times, 4);
        assert_settled(s);
}

/* In place of a command, and kept as it was said. */
static void test_actors(void **state) {
        _cleanup_(spec_free_p) struct job_spec *s =
                parse(JSON({
                              "name" : "pool",
                              "role" : [
                                      { "roleName" : "driver", "argv" : [ "python3", "driver.py" ] },
                                      { "roleName" : "hosts", "num" : 2, "actors" : 8 }
                              ]
                      }),
                      0);
        const struct role_spec *hosts = spec_role(s, "hosts"), *driver = spec_role(s, "driver");

        assert_int_equal(hosts->n_argv, 4);
        assert_string_equal(hosts->argv[2], "primus.actors.host");
        assert_string_equal(hosts->argv[3], "8");
        assert_true(hosts->limits.delegate && !driver->limits.delegate && driver->n_argv == 2);
        assert_settled(s);
}

static void test_limits(void **state) {
        _cleanup_(spec_free_p) struct job_spec *s =
                parse(JSON({
                              "name" : "limits",
                              "role" : [
                                      {
                                              "roleName" : "a",
                                              "command" : "true",
                                              "memoryMb" : 512,
                                              "memoryHighMb" : 400,
                                              "cpuWeight" : 300,
                                              "tasksMax" : 64,
                                              "openFiles" : 4096,
                                              "lockedMemoryMb" : 8,
                                              "delegate" : true,
                                              "shmMb" : 100,
                                              "io" : [
                                                      { "weight" : 50 },
                                                      { "path" : "/data", "readMBps" : 4, "writeIops" : 90 }
                                              ]
                                      },
                                      {
                                              "roleName" : "b",
                                              "command" : "true",
                                              "memoryMb" : 0,
                                              "shmMb" : 9,
                                              "tasksMax" : 0
                                      }
                              ]
                      }),
                      0);
        const struct limits_spec *a = &spec_role(s, "a")->limits, *b = &spec_role(s, "b")->limits;

        assert_true(a->memory_high == UINT64_C(400) << 20 && a->locked_memory == UINT64_C(8) << 20);
        assert_true(a->cpu_weight == 300 && a->tasks == 64 && a->open_files == 4096);
        assert_true(a->delegate && !b->delegate);
        assert_int_equal(a->n_io, 2);
        assert_true(!a->io[0].path && a->io[0].weight == 50);
        assert_string_equal(a->io[1].path, "/data");
        assert_true(a->io[1].read_bps == 4000000 && a->io[1].write_bps == 0 && a->io[1].write_iops == 90);
        assert_true(b->memory_high == 0 && b->tasks == SPEC_TASKS_PRESET && b->n_io == 0);
        assert_settled(s);
}

static void test_corpus(void **state) {
        _cleanup_free_ char *pattern = NULL;
        glob_t found;

        assert_true(asprintf(&pattern, "%s/bad-configs/*.json", data_dir) > 0);
        assert_int_equal(glob(pattern, 0, NULL, &found), 0);
        assert_true(found.gl_pathc > 80);
        for (size_t i = 0; i < found.gl_pathc; i++) {
                const char *path = found.gl_pathv[i];
                _cleanup_free_ char *text = NULL, *expected_path = NULL, *expected = NULL, *line = NULL;
                struct diagnostics d = {};
                struct job_spec *s = NULL;
                size_t size;

                assert_true(asprintf(&expected_path, "%.*s.error", (int)(strlen(path) - strlen(".json")),
                                     path) > 0);
                assert_int_equal(read_file(path, SPEC_TEXT_MAX, &text, &size), 0);
                assert_int_equal(read_file(expected_path, 4096, &expected, NULL), 0);
                expected[strcspn(expected, "\n")] = 0;
                if (spec_parse(text, size, &s, &d) != -EBADMSG)
                        fail_msg("%s is not refused", path);
                assert_null(s);
                line = diagnostic_format(diagnostics_first_error(&d));
                assert_string_equal(line, expected);
                diagnostics_done(&d);
        }
        globfree(&found);
}

/* Large nonsense is refused quickly. 2 s leaves room for a sanitizer on a busy machine. */
static void test_large(void **state) {
        static const char *const units[] = { "[",  "{\"a\":", "\"",       "1,", "[1],", "{\"a\":1},",
                                             "/*", "//\n",    "\xc3\xa9", " ",  "\\" };
        _cleanup_free_ char *text = malloc(SPEC_TEXT_MAX + 1);

        for (size_t i = 0; i < ELEMENTSOF(units); i++)
                for (unsigned whole = 0; whole < 2; whole++) {
                        static const char begin[] = "{\"role\": [";
                        size_t n = whole ? 0 : strlen(begin), step = strlen(units[i]);
                        struct diagnostics d = {};
                        struct job_spec *s = NULL;
                        uint64_t started = now_boot();
                        memcpy(text, begin, n);
                        for (; n + step <= SPEC_TEXT_MAX; n += step)
                                memcpy(text + n, units[i], step);
                        assert_int_equal(spec_parse(text, n, &s, &d), -EBADMSG);
                        assert_true(now_boot() - started < 2 * USEC_PER_SEC);
                        diagnostics_done(&d);
                }
}

static void test_too_large(void **state) {
        size_t size = (size_t)100 << 20;
        _cleanup_free_ char *text = calloc(1, size), *line = NULL;
        struct diagnostics d = {};
        struct job_spec *s = NULL;

        assert_int_equal(spec_parse(text, size, &s, &d), -EBADMSG);
        line = diagnostic_format(&d.items[0]);
        assert_string_equal(line, "the configuration has 104857600 bytes; at most 4194304 are accepted");
        diagnostics_done(&d);
}

/* What is accepted at the bounds can be loaded again, though it is larger then. */
static void test_effective_is_larger(void **state) {
        _cleanup_(spec_free_p) struct job_spec *s = NULL;
        _cleanup_free_ char *text = NULL, *json = NULL;
        size_t size;
        FILE *f = open_memstream(&text, &size);

        fputs("{\"role\": [", f);
        for (unsigned i = 0; i < 6; i++)
                fprintf(f, "%s{\"roleName\": \"w%u\", \"command\": \"true\", \"nodes\": \"%s[1-9999]x\"}",
                        i > 0 ? "," : "", i, "a-name-that-is-as-long-as-it-may-be-for-the-hosts-of-a-lab");
        for (unsigned i = 6; i < SPEC_ROLES_MAX; i++) {
                fprintf(f, ",{\"roleName\": \"w%u\", \"command\": \"true\", \"env\": {", i);
                for (unsigned j = 0; j < 1000; j++)
                        fprintf(f, "%s\"V%u\":\"\"", j > 0 ? "," : "", j);
                fputs("}}", f);
        }
        fputs("]}", f);
        fclose(f);
        s = parse(text, 0);
        assert_int_equal(spec_effective(s, &json), 0);
        assert_true(strlen(json) > SPEC_TEXT_MAX);
        assert_settled(s);
}

/* Many roles at the bound, many errors: the list stays bounded and has positions. */
static void test_many_errors(void **state) {
        _cleanup_free_ char *text = NULL;
        struct diagnostics d = {};
        struct job_spec *s = NULL;
        size_t size;
        FILE *f = open_memstream(&text, &size);

        fputs("{\"role\": [", f);
        for (unsigned i = 0; i < SPEC_ROLES_MAX; i++)
                fprintf(f, "%s\n{\"roleName\": \"w%u\", \"num\": -1, \"jvmMemoryMb\": 5}", i > 0 ? "," : "",
                        i);
        fputs("]}", f);
        fclose(f);
        assert_int_equal(spec_parse(text, size, &s, &d), -EBADMSG);
        assert_int_equal(d.n, DIAGNOSTICS_MAX);
        assert_int_equal(d.n_errors, SPEC_ROLES_MAX);
        assert_int_equal(d.n_warnings, SPEC_ROLES_MAX);
        for (size_t i = 0; i < d.n; i++)
                assert_true(d.items[i].line > 1);
        diagnostics_done(&d);
}

/* For somebody else than the owner: names of variables without their values; all else is there. */
static void test_masked(void **state) {
        const char *text = JSON({
                "env" : { "KEY" : "hidden-1" },
                "visible" : "pool",
                "role" : [ {
                        "roleName" : "w",
                        "inputPolicy" : "STREAMING",
                        "command" : "train",
                        "env" : { "TOKEN" : "hidden-2" },
                        "consumables" : { "matlab" : 2 }
                } ],
                "inputManager" : {
                        "kafkaConfig" : {
                                "topics" : [ {
                                        "topic" : "t",
                                        "consumerGroup" : "g",
                                        "config" : {
                                                "bootstrap.servers" : "hidden:1",
                                                "sasl.password" : "hidden-3"
                                        }
                                } ]
                        }
                }
        });
        struct job_spec *s = parse(text, 0);
        _cleanup_free_ char *masked = NULL, *whole = NULL;

        assert_int_equal(spec_masked(s, &masked), 0);
        assert_null(strstr(masked, "hidden"));
        assert_non_null(strstr(masked, "\"KEY\": \"***\""));
        assert_non_null(strstr(masked, "\"TOKEN\": \"***\""));
        assert_non_null(strstr(masked, "\"sasl.password\": \"***\""));
        assert_non_null(strstr(masked, "\"matlab\": 2") ?: strstr(masked, "\"matlab\": \"2\""));
        assert_non_null(strstr(masked, "\"visible\": \"pool\""));
        assert_int_equal(spec_effective(s, &whole), 0);
        assert_non_null(strstr(whole, "hidden-1"));
        spec_free(s);
}

int main(int argc, char **argv) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_upstream_hello),
                cmocka_unit_test(test_upstream_data),
                cmocka_unit_test(test_upstream_parameter_server),
                cmocka_unit_test(test_upstream_kafka),
                cmocka_unit_test(test_defaults),
                cmocka_unit_test(test_everything),
                cmocka_unit_test(test_slips),
                cmocka_unit_test(test_actors),
                cmocka_unit_test(test_limits),
                cmocka_unit_test(test_corpus),
                cmocka_unit_test(test_large),
                cmocka_unit_test(test_too_large),
                cmocka_unit_test(test_many_errors),
                cmocka_unit_test(test_effective_is_larger),
                cmocka_unit_test(test_masked),
        };
        if (argc != 2)
                return EXIT_FAILURE;
        data_dir = argv[1];
        return cmocka_run_group_tests(tests, NULL, NULL);
}
