/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/wire/input.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"
#include "tests/kit/json.h"

#define FILES(spec) "{\"inputManager\": {\"fileConfig\": {\"inputs\": [{\"spec\": " spec "}]}}}"

static struct input *read_text(const char *text) {
        _cleanup_free_ char *error = NULL;
        struct input *i = NULL;
        int r = input_read(text, strlen(text), &i, &error);

        if (r < 0)
                fail_msg("%s: %s", text, error);
        return i;
}

static void test_defaults(void **state) {
        _cleanup_(input_free_p) struct input *i = read_text(FILES(JSON({ "pathPattern" : "/d" })));
        const struct input_source *s = &i->sources[0];

        assert_int_equal(i->n_sources, 1);
        assert_string_equal(s->name, "0");
        assert_int_equal(s->kind, SOURCE_FILES);
        assert_int_equal(s->format, FORMAT_TEXT);
        assert_int_equal(s->compression, COMPRESSION_AUTO);
        assert_string_equal(s->path_pattern, "/d");
        assert_string_equal(s->name_pattern, "*");
        assert_null(s->success_markers[0]);
        assert_null(s->config[0]);
        assert_false(s->has_range);
        assert_true(s->split == 64 << 20);
        assert_int_equal(s->weight, 0);
        assert_int_equal(i->mode, DELIVERY_STDIN);
        assert_int_equal(i->ack, ACK_LAG);
        assert_int_equal(i->order, ORDER_LISTED);
        assert_true(i->pipe_size == 1 << 20 && i->slot_size == 1 << 20 && i->slots == 16);
        assert_true(i->max_record == 64 << 20 && i->poll_usec == 60000000);
}

static void test_everything(void **state) {
        _cleanup_(input_free_p) struct input *i = read_text(JSON({
                "inputManager" : {
                        "fileConfig" : {
                                "inputs" : [
                                        {
                                                "name" : "logs",
                                                "spec" : {
                                                        "pathPattern" : "file:///d/{{YYYY}}",
                                                        "namePattern" : "*.gz",
                                                        "successMarkerPatterns" : [ "_SUCCESS", "a*" ],
                                                        "rewindSkipNum" : 3,
                                                        "split" : 0,
                                                        "weight" : 7,
                                                        "timeRange" : {
                                                                "from" : "2026-01-31",
                                                                "to" : "2026-02-01T05"
                                                        },
                                                        "csvInput" : { "multiline" : true },
                                                        "compression" : "zstd"
                                                }
                                        },
                                        {
                                                "spec" : {
                                                        "pathPattern" : "s3://bucket/key",
                                                        "tfrecordInput" : {},
                                                        "s3" : {
                                                                "endpoint" : "http://127.0.0.1:9000",
                                                                "region" : "eu"
                                                        },
                                                        "timeRange" :
                                                                { "from" : "2026-01-31T00", "to" : "now" }
                                                }
                                        },
                                        {
                                                "spec" : {
                                                        "commandInput" : { "command" : "seq 9" },
                                                        "fixedInput" : { "recordSize" : 2 }
                                                }
                                        },
                                        { "spec" : { "pathPattern" : "https://h/p", "rawInput" : {} } }
                                ]
                        },
                        "kafkaConfig" : {
                                "kafkaMessageType" : "PB",
                                "topics" : [ {
                                        "topic" : "t",
                                        "consumerGroup" : "g",
                                        "config" :
                                                { "bootstrap.servers" : "h:1,i:2", "sasl.password" : "a=b" },
                                        "kafkaStartUpMode" : "TIMESTAMP",
                                        "startUpTimestamp" : 1700000000000,
                                        "weight" : 2
                                } ]
                        }
                },
                "input" : {
                        "mode" : "ring",
                        "ack" : "explicit",
                        "order" : "shuffle",
                        "seed" : 9,
                        "window" : 100,
                        "slots" : 4,
                        "slotSize" : 65536,
                        "poll" : "500ms",
                        "split" : 1000,
                        "maxRecord" : 5,
                        "pipeSize" : 4096
                }
        }));
        const struct input_source *s = i->sources;

        assert_int_equal(i->n_sources, 5);
        assert_string_equal(s[0].name, "logs");
        assert_string_equal(s[0].path_pattern, "/d/{{YYYY}}");
        assert_string_equal(s[0].success_markers[1], "a*");
        assert_null(s[0].success_markers[2]);
        assert_int_equal(s[0].rewind_skip, 3);
        assert_true(s[0].split == 0 && s[0].weight == 7 && s[0].multiline && s[0].format == FORMAT_CSV);
        assert_int_equal(s[0].compression, COMPRESSION_ZSTD);
        assert_true(s[0].has_range && !s[0].to_now);
        assert_true(s[0].from.year == 2026 && s[0].from.month == 1 && s[0].from.day == 31);
        assert_int_equal(s[0].from.hour, -1);
        assert_int_equal(s[0].to.hour, 5);
        assert_int_equal(s[1].kind, SOURCE_S3);
        assert_string_equal(s[1].name, "1");
        assert_string_equal(s[1].s3_region, "eu");
        assert_true(s[1].to_now && s[1].from.hour == 0 && s[1].split == 1000);
        assert_int_equal(s[2].kind, SOURCE_COMMAND);
        assert_null(s[2].path_pattern);
        assert_string_equal(s[2].command, "seq 9");
        assert_true(s[2].format == FORMAT_FIXED && s[2].record_size == 2);
        assert_true(s[3].kind == SOURCE_HTTP && s[3].format == FORMAT_RAW && s[3].record_size == 1 << 20);
        assert_int_equal(s[4].kind, SOURCE_KAFKA);
        assert_int_equal(s[4].format, FORMAT_MESSAGE);
        assert_string_equal(s[4].name, "t");
        assert_string_equal(s[4].group, "g");
        assert_string_equal(s[4].config[1], "sasl.password=a=b");
        assert_null(s[4].config[2]);
        assert_true(s[4].start == KAFKA_TIMESTAMP && s[4].start_timestamp == 1700000000000);
        assert_true(s[4].message_type == KAFKA_PB && s[4].weight == 2);
        assert_true(i->mode == DELIVERY_RING && i->ack == ACK_EXPLICIT && i->order == ORDER_SHUFFLE);
        assert_true(i->seed == 9 && i->window == 100 && i->slots == 4 && i->slot_size == 65536);
        assert_true(i->poll_usec == 500000 && i->max_record == 5 && i->pipe_size == 4096);
}

/* Each is refused with that line. */
static void test_refused(void **state) {
        static const struct {
                const char *text, *error;
        } cases[] = {
                { "", "input.json: is no JSON object: line 1: " },
                { "[]", "input.json: is no JSON object: line 1: it is something else" },
                { "{}", "inputManager: 0 sources" },
                { JSON({ "inputManager" : 3 }), "inputManager.inputManager: must be an object" },
                { FILES("7"), "inputs[0].spec: must be an object" },
                { FILES("{}"), "inputs[0].pathPattern: is missing" },
                { FILES(JSON({ "pathPattern" : "d" })), "inputs[0].pathPattern: must be an absolute path" },
                { FILES(JSON({ "pathPattern" : "file://d" })),
                  "inputs[0].pathPattern: must be an absolute path" },
                { FILES(JSON({ "pathPattern" : 1 })), "inputs[0].pathPattern: must be text" },
                { FILES(JSON({ "pathPattern" : "/d", "split" : -1 })),
                  "inputs[0].split: must be a whole number" },
                { FILES(JSON({ "pathPattern" : "/d", "split" : 1.5 })),
                  "inputs[0].split: must be a whole number" },
                { FILES(JSON({ "pathPattern" : "/d", "compression" : "xz" })),
                  "inputs[0].compression: is not one" },
                { FILES(JSON({ "pathPattern" : "/d", "rawInput" : {}, "csvInput" : {} })),
                  "inputs[0].csvInput: is a second format" },
                { FILES(JSON({ "pathPattern" : "/d", "fixedInput" : {} })),
                  "inputs[0].fixedInput.recordSize: is missing" },
                { FILES(JSON({ "pathPattern" : "/d", "rawInput" : { "blockSize" : 0 } })),
                  "inputs[0].blockSize: must" },
                { FILES(JSON({ "commandInput" : { "command" : "" } })),
                  "inputs[0].commandInput.command: is missing" },
                { FILES(JSON({ "pathPattern" : "/d", "timeRange" : {} })),
                  "inputs[0].timeRange.from: must be" },
                { FILES(JSON({ "pathPattern" : "/d", "timeRange" : { "from" : "2026-02-30" } })),
                  "inputs[0].timeRange.from: must be" },
                { FILES(JSON({
                          "pathPattern" : "/d",
                          "timeRange" : { "from" : "2026-02-03", "to" : "2026-02-02T23" }
                  })),
                  "inputs[0].timeRange: ends before it begins" },
                { FILES(JSON({ "pathPattern" : "/d", "successMarkerPatterns" : [3] })),
                  "inputs[0].successMarkerPatterns: must be text" },
                { JSON({ "inputManager" : { "kafkaConfig" : { "topics" : [ { "consumerGroup" : "g" } ] } } }),
                  "topics[0].topic: is missing" },
                { JSON({
                          "inputManager" : {
                                  "kafkaConfig" :
                                          { "topics" : [ { "topic" : "a/b", "consumerGroup" : "g" } ] }
                          }
                  }),
                  "topics[0].topic: is missing, or no topic's name" },
                { JSON({
                          "inputManager" : {
                                  "kafkaConfig" : {
                                          "topics" : [ {
                                                  "topic" : "t",
                                                  "consumerGroup" : "g",
                                                  "config" : { "a=b" : "c" }
                                          } ]
                                  }
                          }
                  }),
                  "topics[0].config: has a name that cannot be one" },
                { JSON({ "input" : { "mode" : "pipe" } }), "input.mode: is not one" },
                { JSON({ "input" : { "slots" : 3 } }), "input.slots: must be a power of two" },
                { JSON({ "input" : { "slotSize" : 65537 } }), "input.slotSize: must be a multiple" },
                { JSON({ "input" : { "slots" : 4096, "slotSize" : 1048576 } }),
                  "input.slots: the ring must have" },
                { JSON({ "input" : { "poll" : 0 } }), "input.poll: must be a duration" },
                { JSON({ "input" : { "poll" : "soon" } }), "input.poll: must be a duration" },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_free_ char *error = NULL;
                struct input *in = NULL;

                assert_int_equal(input_read(cases[i].text, strlen(cases[i].text), &in, &error), -EBADMSG);
                assert_null(in);
                if (strncmp(error, cases[i].error, strlen(cases[i].error)) != 0 || strchr(error, '\n'))
                        fail_msg("\"%s\", not \"%s...\"", error, cases[i].error);
        }
}

static void test_bounds(void **state) {
        _cleanup_free_ char *text = calloc(1, INPUT_TEXT_MAX + 2), *error = NULL, *many = NULL,
                            *second = NULL;
        struct input *in = NULL;
        size_t size;
        FILE *f;

        memset(text, ' ', INPUT_TEXT_MAX + 1);
        assert_int_equal(input_read(text, INPUT_TEXT_MAX + 1, &in, &error), -EBADMSG);
        f = open_memstream(&many, &size);
        fputs("{\"inputManager\": {\"fileConfig\": {\"inputs\": [", f);
        for (unsigned i = 0; i < INPUT_SOURCES_MAX + 1; i++)
                fprintf(f, "%s{\"spec\": {\"pathPattern\": \"/%u\"}}", i > 0 ? "," : "", i);
        fputs("]}}}", f);
        fclose(f);
        assert_int_equal(input_read(many, size, &in, &second), -EBADMSG);
        assert_non_null(strstr(second, "inputs: has 1025 entries"));
        assert_null(input_free(NULL));
}

static void test_words(void **state) {
        for (int i = 0; i < _ACK_MODE_MAX; i++)
                assert_int_equal((int)ack_mode_from_string(ack_mode_to_string((enum ack_mode)i)), i);
        assert_int_equal((int)ack_mode_from_string(NULL), _ACK_MODE_INVALID);
        assert_null(source_kind_to_string(_SOURCE_KIND_INVALID));
        assert_string_equal(source_kind_to_string(SOURCE_S3), "s3");
        for (int i = 0; i < _FORMAT_MAX; i++)
                assert_non_null(record_format_to_string((enum record_format)i));
        assert_int_equal(compression_from_string("zstd"), COMPRESSION_ZSTD);
        assert_int_equal(input_delivery_from_string("descriptor"), DELIVERY_DESCRIPTOR);
        assert_int_equal(input_order_from_string("shuffle"), ORDER_SHUFFLE);
        assert_int_equal(kafka_start_from_string("LATEST"), KAFKA_LATEST);
        assert_int_equal((int)kafka_message_type_from_string("XML"), _KAFKA_MESSAGE_TYPE_INVALID);
}

static void test_times(void **state) {
        static const char *const wrong[] = { "",           "2026",          "2026-1-31",     "2026-01-3x",
                                             "2026/01/31", "2026-01-31T",   "2026-01-31 05", "2026-01-31T24",
                                             "2025-02-29", "2026-13-01",    "1969-12-31",    "2026-01-00",
                                             "-026-01-01", "2026-01-31T-1", "2100-02-29" };
        struct time_point t, u;
        char buf[TIME_POINT_MAX];

        for (size_t i = 0; i < ELEMENTSOF(wrong); i++)
                assert_int_equal(time_point_parse(wrong[i], &t), -EINVAL);
        assert_int_equal(time_point_parse("2024-02-29T07", &t), 0);
        assert_string_equal(time_point_format(&t, buf), "2024-02-29T07");
        assert_int_equal(time_point_parse("2024-02-29", &u), 0);
        assert_string_equal(time_point_format(&u, buf), "2024-02-29");
        assert_true(time_point_compare(&t, &u) < 0); /* until the end of the day */
        assert_true(time_point_compare(&u, &t) < 0);
        assert_int_equal(time_point_parse("2024-03-01", &u), 0);
        assert_true(time_point_compare(&u, &t) > 0);
}

static void test_compression(void **state) {
        static const struct {
                enum source_kind kind;
                enum compression given;
                const char *path;
                enum compression expected;
        } cases[] = {
                { SOURCE_FILES, COMPRESSION_AUTO, "/a.gz", COMPRESSION_GZIP },
                { SOURCE_FILES, COMPRESSION_AUTO, "/a.tgz", COMPRESSION_GZIP },
                { SOURCE_FILES, COMPRESSION_AUTO, "/a.txt.zst", COMPRESSION_ZSTD },
                { SOURCE_FILES, COMPRESSION_AUTO, "/a.gz.txt", COMPRESSION_NONE },
                { SOURCE_FILES, COMPRESSION_NONE, "/a.gz", COMPRESSION_NONE },
                { SOURCE_FILES, COMPRESSION_GZIP, "/a", COMPRESSION_GZIP },
                { SOURCE_HTTP, COMPRESSION_AUTO, "http://h/a.gz?x=1", COMPRESSION_GZIP },
                { SOURCE_HTTP, COMPRESSION_AUTO, "http://h/a?f=b.gz", COMPRESSION_NONE },
                { SOURCE_COMMAND, COMPRESSION_AUTO, "/a.gz", COMPRESSION_NONE },
                { SOURCE_COMMAND, COMPRESSION_ZSTD, "/a", COMPRESSION_ZSTD },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                struct input_source s = { .kind = cases[i].kind, .compression = cases[i].given };
                assert_int_equal(input_compression(&s, cases[i].path), cases[i].expected);
        }
}

static void test_splittable(void **state) {
        struct input_source s = { .kind = SOURCE_FILES };

        for (enum record_format f = 0; f < FORMAT_MESSAGE; f++) {
                s.format = f;
                assert_int_equal(input_splittable(&s, "/a"), f != FORMAT_TAR);
                assert_false(input_splittable(&s, "/a.gz"));
        }
        s.format = FORMAT_CSV;
        s.multiline = true;
        assert_false(input_splittable(&s, "/a"));
        s = (struct input_source){ .kind = SOURCE_COMMAND };
        assert_false(input_splittable(&s, "/a"));
        s.kind = SOURCE_S3;
        assert_true(input_splittable(&s, "s3://b/k"));
}

static void test_append(void **state) {
        _cleanup_(input_free_p) struct input *i = read_text(FILES(JSON({ "pathPattern" : "/a" })));
        static const char one[] = FILES(JSON({ "pathPattern" : "/b", "textInput" : {} }));
        static const char two[] = JSON({
                "inputManager" : {
                        "fileConfig" : {
                                "inputs" : [
                                        { "spec" : { "pathPattern" : "/b" } },
                                        { "spec" : { "pathPattern" : "/c" } }
                                ]
                        }
                }
        });
        char *error = NULL;
        const struct input_source *first;

        assert_int_equal(input_reserve(i), 0);
        first = i->sources;
        assert_int_equal(input_append(i, one, strlen(one), &error), 0);
        assert_int_equal(i->n_sources, 2);
        assert_ptr_equal(i->sources, first);
        assert_string_equal(first[0].path_pattern, "/a");
        assert_string_equal(first[1].path_pattern, "/b");
        assert_int_equal(input_append(i, two, strlen(two), &error), -EBADMSG);
        assert_string_equal(error, "one source is added at a time");
        free(error);
        assert_int_equal(input_append(i, "{", 1, &error), -EBADMSG);
        free(error);
        assert_int_equal(i->n_sources, 2);
        while (i->n_sources < INPUT_SOURCES_MAX)
                assert_int_equal(input_append(i, one, strlen(one), &error), 0);
        assert_int_equal(input_append(i, one, strlen(one), &error), -ENOSPC);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_defaults),    cmocka_unit_test(test_everything),
                cmocka_unit_test(test_refused),     cmocka_unit_test(test_bounds),
                cmocka_unit_test(test_words),       cmocka_unit_test(test_times),
                cmocka_unit_test(test_compression), cmocka_unit_test(test_splittable),
                cmocka_unit_test(test_append),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
