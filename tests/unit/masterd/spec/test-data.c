/* SPDX-License-Identifier: Apache-2.0 */
/* Data in a configuration: what is taken, its effective form, and that executors read from what they are told
 * what the configuration says. What is refused is in tests/data/bad-configs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "lib/wire/input.h"
#include "masterd/spec/spec.h"
#include "tests/kit/json.h"

#define ROLE "'role': [{'roleName': 'w', 'command': 'cat', 'inputPolicy': 'STREAMING'}]"
#define FILES(inputs) "'fileConfig': {'inputs': [" inputs "]}"
#define JOB(manager, input) "{" ROLE ", 'inputManager': {" manager "}, 'input': {" input "}}"
#define TOPIC                                                                                                \
        "{'topic': 't', 'consumerGroup': 'g', 'config': {'bootstrap.servers': 'h:9092', "                    \
        "'sasl.password': 'x'}, 'kafkaStartUpMode': 'TIMESTAMP', 'startUpTimestamp': "                       \
        "\"1700000000123\"}"

static struct job_spec *parse(const char *text) {
        struct diagnostics d = {};
        struct job_spec *s = NULL;

        if (spec_parse(json_text(text), strlen(text), &s, &d) < 0 || d.n > 0) {
                _cleanup_free_ char *line = diagnostic_format(&d.items[0]);
                fail_msg("%s\n%s", line, text);
        }
        diagnostics_done(&d);
        return s;
}

/* What executors read, over the effective configuration as masterd keeps it. */
static struct input *told(const char *text) {
        _cleanup_(spec_free_p) struct job_spec *s = parse(text), *again = NULL;
        _cleanup_free_ char *effective = NULL, *first = NULL, *second = NULL, *error = NULL;
        struct diagnostics d = {};
        struct input *i = NULL;

        assert_int_equal(spec_effective(s, &effective), 0);
        if (spec_load(effective, strlen(effective), &again, &d) < 0 || d.n > 0)
                fail_msg("%s", effective);
        assert_int_equal(spec_input_json(s, &first), 0);
        assert_int_equal(spec_input_json(again, &second), 0);
        assert_string_equal(first, second);
        if (input_read(first, strlen(first), &i, &error) < 0)
                fail_msg("%s\n%s", error, first);
        return i;
}

static void assert_text(const char *a, const char *b) {
        if (!a || !b)
                assert_ptr_equal(a, b);
        else
                assert_string_equal(a, b);
}

static void assert_same(const struct input *a, const struct input *b) {
        assert_int_equal(a->n_sources, b->n_sources);
        assert_true(a->mode == b->mode && a->ack == b->ack && a->pipe_size == b->pipe_size);
        assert_true(a->max_record == b->max_record && a->order == b->order && a->seed == b->seed);
        assert_true(a->window == b->window && a->slots == b->slots && a->slot_size == b->slot_size);
        assert_true(a->poll_usec == b->poll_usec);
        for (size_t i = 0; i < a->n_sources; i++) {
                const struct input_source *x = &a->sources[i], *y = &b->sources[i];
                assert_text(x->name, y->name);
                assert_text(x->path_pattern, y->path_pattern);
                assert_text(x->name_pattern, y->name_pattern);
                assert_text(x->command, y->command);
                assert_text(x->topic, y->topic);
                assert_true(x->kind == y->kind && x->format == y->format && x->compression == y->compression);
                assert_true(x->split == y->split && x->weight == y->weight &&
                            x->rewind_skip == y->rewind_skip && x->record_size == y->record_size);
                assert_true(x->start == y->start && x->message_type == y->message_type);
        }
}

/* What input_read() takes for left out is what the configuration has for left out. */
static void test_defaults_agree(void **state) {
        static const char *const inputs[] = {
                JOB(FILES(JSON({ "spec" : { "pathPattern" : "/d" } })), ""),
                JOB(FILES(JSON({ "spec" : { "pathPattern" : "/d", "rawInput" : {} } })), "'mode': 'ring'"),
                JOB(FILES(JSON({ "spec" : { "commandInput" : { "command" : "seq 3" } } })), "'split': 5"),
                JOB("'kafkaConfig': {'topics': [{'topic': 't', 'consumerGroup': 'g', 'config': "
                    "{'bootstrap.servers': 'h'}}]}",
                    ""),
        };

        for (size_t k = 0; k < ELEMENTSOF(inputs); k++) {
                _cleanup_(input_free_p) struct input *complete = told(inputs[k]), *sparse = NULL;
                _cleanup_free_ char *error = NULL;
                assert_int_equal(input_read(json_text(inputs[k]), strlen(inputs[k]), &sparse, &error), 0);
                assert_same(complete, sparse);
        }
}

static void test_everything(void **state) {
        _cleanup_(input_free_p) struct input *i = told(JSON({
                "role" : [ { "roleName" : "w", "command" : "cat", "inputPolicy" : "STREAMING" } ],
                "inputManager" : {
                        "fileConfig" : {
                                "inputs" : [
                                        {
                                                "name" : "logs",
                                                "spec" : {
                                                        "pathPattern" : "/d/{{YYYY}}{{MM}}{{DD}}",
                                                        "namePattern" : "part-{{HH}}*",
                                                        "successMarkerPatterns" : ["_SUCCESS"],
                                                        "timeRange" : {
                                                                "from" : { "date" : { "date" : 20200131 } },
                                                                "to" : {
                                                                        "dateHour" : {
                                                                                "date" : 20200201,
                                                                                "hour" : 7
                                                                        }
                                                                }
                                                        },
                                                        "textInput" : {},
                                                        "rewindSkipNum" : 2,
                                                        "weight" : 3
                                                }
                                        },
                                        {
                                                "spec" : {
                                                        "path_pattern" : "s3://b/k*",
                                                        "tfrecordInput" : {},
                                                        "compression" : "zstd",
                                                        "s3" : {
                                                                "endpoint" : "http://127.0.0.1:9000",
                                                                "region" : "here"
                                                        },
                                                        "split" : "1M",
                                                        "weight" : 1
                                                }
                                        },
                                        {
                                                "spec" : {
                                                        "pathPattern" : "https://h/d.csv",
                                                        "csvInput" : { "multiline" : true },
                                                        "weight" : 1
                                                }
                                        },
                                        {
                                                "spec" : {
                                                        "pathPattern" : "file:///e/*.tar",
                                                        "tarInput" : {},
                                                        "weight" : 1
                                                }
                                        },
                                        {
                                                "spec" : {
                                                        "pathPattern" : "/p",
                                                        "commandInput" : { "command" : "cat $PRIMUS_FILE" },
                                                        "fixedInput" : { "recordSize" : "4K" },
                                                        "weight" : 1
                                                }
                                        }
                                ]
                        }
                },
                "input" : {
                        "mode" : "ring",
                        "ack" : "checkpoint",
                        "order" : "shuffle",
                        "seed" : 42,
                        "epochs" : 3,
                        "window" : 1000,
                        "split" : "32M",
                        "maxRecord" : "1M",
                        "slots" : 8,
                        "slotSize" : "2M",
                        "poll" : "500ms"
                }
        }));
        const struct input_source *s = i->sources;

        assert_int_equal(i->n_sources, 5);
        assert_true(s[0].has_range && s[0].from.year == 2020 && s[0].from.hour == -1 && s[0].to.hour == 7);
        assert_true(s[0].weight == 3 && s[0].rewind_skip == 2 && s[0].split == 32 << 20);
        assert_string_equal(s[0].success_markers[0], "_SUCCESS");
        assert_true(s[1].kind == SOURCE_S3 && s[1].compression == COMPRESSION_ZSTD && s[1].split == 1 << 20);
        assert_string_equal(s[1].s3_endpoint, "http://127.0.0.1:9000");
        assert_true(s[2].kind == SOURCE_HTTP && s[2].format == FORMAT_CSV && s[2].multiline);
        assert_string_equal(s[3].path_pattern, "/e/*.tar");
        assert_int_equal(s[3].format, FORMAT_TAR);
        assert_true(s[4].kind == SOURCE_COMMAND && s[4].format == FORMAT_FIXED && s[4].record_size == 4096);
        assert_true(i->mode == DELIVERY_RING && i->ack == ACK_CHECKPOINT && i->order == ORDER_SHUFFLE);
        assert_true(i->seed == 42 && i->window == 1000 && i->slots == 8 && i->slot_size == 2 << 20);
        assert_true(i->max_record == 1 << 20 && i->poll_usec == 500000);
}

/* What masterd itself keeps to. */
static void test_masters_part(void **state) {
        _cleanup_(spec_free_p) struct job_spec *s =
                parse("{" ROLE ", 'inputManager': {'fileConfig': {'inputs': [{'spec': {'pathPattern': "
                      "'/d'}}], 'sampleRate': '0.125', 'stopPolicy': {'taskSuccessPercent': 99.5}}, "
                      "'maxTaskAttempts': 7}, 'input': {'epochs': 4}}");

        assert_int_equal(s->sample_ppm, 125000);
        assert_int_equal(s->task_success_milli, 99500);
        assert_int_equal(s->max_task_attempts, 7);
        assert_int_equal(s->epochs, 4);
        assert_true(s->split == 64 << 20 && s->inputs[0].split == 64 << 20);
}

static void test_files_and_topics(void **state) {
        static const char text[] =
                JOB(FILES(JSON({
                            "name" : "d",
                            "spec" : {
                                    "pathPattern" : "/d",
                                    "timeRange" : { "from" : "2020-01-31T05", "to" : { "now" : {} } },
                                    "namePattern" : "{{DD}}"
                            }
                    })) ", 'kafkaConfig': {'topics': [" TOPIC "], "
                        "'kafkaMessageType': 'PB'}",
                    "'ack': 'explicit'");
        _cleanup_(spec_free_p) struct job_spec *s = parse(text);
        _cleanup_(input_free_p) struct input *i = told(text);
        struct spec_source source;

        assert_int_equal(spec_n_sources(s), 2);
        spec_source(s, 0, &source);
        assert_string_equal(source.name, "d");
        assert_string_equal(source.pattern, "/d");
        assert_int_equal(source.kind, SOURCE_FILES);
        spec_source(s, 1, &source);
        assert_string_equal(source.name, "t");
        assert_int_equal(source.kind, SOURCE_KAFKA);
        assert_true(i->sources[0].to_now && i->sources[0].from.hour == 5);
        assert_true(i->sources[1].start == KAFKA_TIMESTAMP && i->sources[1].message_type == KAFKA_PB);
        assert_true(i->sources[1].start_timestamp == 1700000000123);
        assert_string_equal(i->sources[1].config[1], "sasl.password=x");
}

/* Google's storage is read by S3's protocol. */
static void test_gs(void **state) {
        static const struct {
                const char *spec, *endpoint, *region;
        } cases[] = {
                { "'pathPattern': 'gs://b/k'", "https://storage.googleapis.com", "auto" },
                { "'pathPattern': 'gs://b/k', 's3': {'endpoint': 'http://h'}", "http://h", "auto" },
                { "'pathPattern': 'gs://b/k', 's3': {'region': 'x'}", "https://storage.googleapis.com", "x" },
                { "'pathPattern': 's3://b/k'", NULL, NULL },
        };

        for (size_t k = 0; k < ELEMENTSOF(cases); k++) {
                char *text = NULL;
                assert_true(asprintf(&text, JOB(FILES("{'spec': {%s}}"), ""), cases[k].spec) > 0);
                _cleanup_(input_free_p) struct input *i = told(text);
                assert_text(i->sources[0].path_pattern, "s3://b/k");
                assert_text(i->sources[0].s3_endpoint, cases[k].endpoint);
                assert_text(i->sources[0].s3_region, cases[k].region);
                assert_int_equal(i->sources[0].kind, SOURCE_S3);
                free(text);
        }
}

static void test_no_such_source(void **state) {
        static const struct {
                const char *spec, *said;
        } cases[] = {
                { "'pathPattern': 's3://b/k', 'commandInput': {'command': 'x'}", "is no path" },
                { "'pathPattern': 'gs://b/k', 'commandInput': {'command': 'x'}", "is no path" },
                { "'pathPattern': 'http://h/k', 'commandInput': {'command': 'x'}", "is no path" },
                { "'pathPattern': '/d', 's3': {'region': 'x'}", "begins with s3:// or gs://" },
                { "'commandInput': {'command': 'x'}, 's3': {'region': 'x'}", "begins with s3:// or gs://" },
                { "'s3': {'region': 'x'}", "say where the data is" },
        };

        for (size_t k = 0; k < ELEMENTSOF(cases); k++) {
                struct diagnostics d = {};
                struct job_spec *s = NULL;
                char *text = NULL;

                assert_true(asprintf(&text, JOB(FILES("{'spec': {%s}}"), ""), cases[k].spec) > 0);
                assert_true(spec_parse(json_text(text), strlen(text), &s, &d) < 0);
                assert_non_null(strstr(diagnostics_first_error(&d)->message, cases[k].said));
                diagnostics_done(&d);
                free(text);
        }
}

/* The mode decides what is acknowledged how. */
static void test_ack(void **state) {
        static const struct {
                const char *input;
                enum ack_mode ack;
        } cases[] = {
                { "", ACK_LAG },
                { "'mode': 'ring'", ACK_RELEASE },
                { "'mode': 'descriptor'", ACK_RELEASE },
                { "'mode': 'descriptor', 'ack': 'exit'", ACK_EXIT },
                { "'ack': 'checkpoint'", ACK_CHECKPOINT },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_(spec_free_p) struct job_spec *s = NULL;
                _cleanup_free_ char *text = NULL;
                assert_true(asprintf(&text, "{" ROLE ", 'inputManager': {%s}, 'input': {%s}}",
                                     FILES(JSON({ "spec" : { "pathPattern" : "/d" } })), cases[i].input) > 0);
                s = parse(text);
                assert_int_equal(s->input_ack, cases[i].ack);
        }
}

static void test_no_data(void **state) {
        static const char text[] = JSON({ "role" : [ { "roleName" : "w", "command" : "true" } ] });
        _cleanup_(spec_free_p) struct job_spec *s = parse(text);
        _cleanup_free_ char *json = NULL;

        assert_int_equal(spec_input_json(s, &json), 0);
        assert_string_equal(json, "{}");
}

/* Ranks in lockstep are told what they need; others are not told of it at all. */
static void test_lockstep(void **state) {
        static const struct {
                const char *format, *input;
        } cases[] = { { "textInput': {}", "'lockstep': 'off'" },
                      { "fixedInput': {'recordSize': '3K'}",
                        "'lockstep': 'pad', 'order': 'shuffle', 'seed': 7" } };
        _cleanup_(spec_free_p) struct job_spec *a = NULL, *b = NULL;
        _cleanup_free_ char *first = NULL, *second = NULL;
        char *texts[2] = {};

        for (size_t i = 0; i < ELEMENTSOF(cases); i++)
                assert_true(asprintf(&texts[i], "{" ROLE ", 'inputManager': {%s%s%s}, 'input': {%s}}",
                                     "'fileConfig': {'inputs': [{'spec': {'pathPattern': '/d', '",
                                     cases[i].format, "}}]}", cases[i].input) > 0);
        a = parse(texts[0]);
        b = parse(texts[1]);
        assert_int_equal(a->lockstep, LOCKSTEP_OFF);
        assert_int_equal(spec_input_json(a, &first), 0);
        assert_null(strstr(first, "lockstep"));
        assert_int_equal(b->lockstep, LOCKSTEP_PAD);
        assert_int_equal(spec_input_json(b, &second), 0);
        assert_non_null(strstr(second, json_text("'lockstep':'pad'")));
        assert_non_null(strstr(second, json_text("'recordSize':3072")));
        assert_non_null(strstr(second, json_text("'seed':7")));
        assert_non_null(strstr(second, json_text("'order':'shuffle'")));
        free(texts[0]);
        free(texts[1]);
}

/* What means something only beside another key is not taken in silence without it. */
static void test_idle(void **state) {
#define PLAIN(more) FILES("{'spec': {'pathPattern': '/d'}}") more
#define ALONE(rest) "{'role': [{'roleName': 'w', 'command': 'cat'" rest "}"
        static const struct {
                const char *text, *path; /* of the key that the one warning is about; NULL: none is */
        } cases[] = {
                { ALONE("}], 'input': {'mode': 'ring'}"), "input.mode" },
                { ALONE("}], 'input': {'ack': 'checkpoint'}"), "input.ack" },
                { ALONE("}], 'input': {'order': 'shuffle'}"), "input.order" },
                { ALONE("}], 'input': {'lockstep': 'pad'}"), "input.lockstep" },
                { ALONE("}], 'input': {'seed': 1}"), "input.seed" },
                { ALONE("}], 'input': {'epochs': 2}"), "input.epochs" },
                { ALONE("}], 'input': {'window': 9}"), "input.window" },
                { ALONE("}], 'input': {'split': 9}"), "input.split" },
                { ALONE("}], 'input': {'maxRecord': 9}"), "input.maxRecord" },
                { ALONE("}], 'input': {'pipeSize': '8K'}"), "input.pipeSize" },
                { ALONE("}], 'input': {'slots': 2}"), "input.slots" },
                { ALONE("}], 'input': {'slotSize': '2M'}"), "input.slotSize" },
                { ALONE("}], 'input': {'poll': 5}"), "input.poll" },
                { ALONE("}], 'inputManager': {'maxTaskAttempts': 3}"), "inputManager.maxTaskAttempts" },
                { ALONE("}], 'inputManager': {'gracefulShutdown': true}"), "inputManager.gracefulShutdown" },
                { ALONE("}], 'inputManager': {'maxTaskAttempts': 2}, 'input': {'mode': 'stdin'}"), NULL },
                { JOB(PLAIN(), "'pipeSize': '8K'"), NULL },
                { JOB(PLAIN(), "'mode': 'ring', 'pipeSize': '8K'"), "input.pipeSize" },
                { JOB(PLAIN(), "'mode': 'ring', 'slots': 8, 'slotSize': '2M'"), NULL },
                { JOB(PLAIN(), "'mode': 'descriptor', 'slots': 8"), "input.slots" },
                { JOB(PLAIN(), "'slotSize': '2M'"), "input.slotSize" },
                { JOB(PLAIN(), "'seed': 7"), "input.seed" },
                { JOB(PLAIN(), "'seed': 7, 'window': 100"), NULL },
                { JOB(PLAIN(), "'seed': 7, 'order': 'shuffle'"), NULL },
                { JOB(PLAIN(), "'lockstep': 'pad', 'split': 9"), "input.split" },
                { JOB(PLAIN(), "'lockstep': 'pad', 'poll': 5"), "input.poll" },
                { JOB(PLAIN(), "'lockstep': 'pad', 'pipeSize': '8K'"), "input.pipeSize" },
                { JOB(PLAIN(", 'maxTaskAttempts': 3"), "'lockstep': 'pad'"), "inputManager.maxTaskAttempts" },
                { JOB(PLAIN(", 'gracefulShutdown': true"), "'lockstep': 'pad'"),
                  "inputManager.gracefulShutdown" },
                { JOB("'fileConfig': {'inputs': [{'spec': {'pathPattern': '/d'}}], "
                      "'stopPolicy': {'taskFailedPercent': 9}}",
                      "'lockstep': 'pad'"),
                  "inputManager.fileConfig.stopPolicy.taskFailedPercent" },
                { JOB("'kafkaConfig': {'topics': [{'topic': 't', 'consumerGroup': 'g', "
                      "'config': {'bootstrap.servers': 'h:1'}, 'startUpTimestamp': 5}]}",
                      ""),
                  "inputManager.kafkaConfig.topics[0].startUpTimestamp" },
                { ALONE("}], 'blacklistConfig': {'maxFailedContainerPerNode': 3}"),
                  "blacklistConfig.maxFailedContainerPerNode" },
                { ALONE("}], 'blacklistConfig': {'blacklistTimeoutMillis': 3}"),
                  "blacklistConfig.blacklistTimeoutMillis" },
                { ALONE("}], 'blacklistConfig': {'maxBlacklistNode': 3}"),
                  "blacklistConfig.maxBlacklistNode" },
                { ALONE("}], 'blacklistConfig': {'maxBlacklistNode': 3, 'enabled': true}"), NULL },
                { ALONE(", 'exitCodes': [{'codes': '9', 'action': 'blame'}]}], "
                        "'blacklistConfig': {'maxBlacklistNode': 3}"),
                  NULL },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_(spec_free_p) struct job_spec *s = NULL;
                struct diagnostics d = {};

                if (spec_parse(json_text(cases[i].text), strlen(cases[i].text), &s, &d) < 0 ||
                    d.n != (cases[i].path ? 1 : 0) ||
                    (d.n && (strcmp(d.items[0].path, cases[i].path) != 0 || d.items[0].line != 1)))
                        fail_msg("%s: %zu, %s %s", cases[i].text, d.n, d.n ? d.items[0].path : "",
                                 d.n ? d.items[0].message : "");
                diagnostics_done(&d);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_defaults_agree),
                cmocka_unit_test(test_everything),
                cmocka_unit_test(test_masters_part),
                cmocka_unit_test(test_files_and_topics),
                cmocka_unit_test(test_gs),
                cmocka_unit_test(test_no_such_source),
                cmocka_unit_test(test_ack),
                cmocka_unit_test(test_lockstep),
                cmocka_unit_test(test_no_data),
                cmocka_unit_test(test_idle),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
