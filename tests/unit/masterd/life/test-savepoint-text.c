/* SPDX-License-Identifier: Apache-2.0 */
#include "masterd/life/savepoint-text.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"
#include "tests/kit/json.h"

static void test_names(void **state) {
        char longest[SAVEPOINT_NAME_MAX + 2];

        assert_true(savepoint_name_valid("418-1"));
        assert_true(savepoint_name_valid("Before.the_change-2"));
        assert_false(savepoint_name_valid(""));
        assert_false(savepoint_name_valid(".a"));
        assert_false(savepoint_name_valid("-a"));
        assert_false(savepoint_name_valid("_a"));
        assert_false(savepoint_name_valid("a/b"));
        assert_false(savepoint_name_valid("a b"));
        assert_false(savepoint_name_valid("\xc3\xa4"));
        memset(longest, 'a', sizeof(longest));
        longest[SAVEPOINT_NAME_MAX + 1] = 0;
        assert_false(savepoint_name_valid(longest));
        longest[SAVEPOINT_NAME_MAX] = 0;
        assert_true(savepoint_name_valid(longest));
}

static void test_manifest(void **state) {
        static const char *const sources[] = { "train", "topic" };
        const struct savepoint_header h = {
                .name = "418-1",
                .job = 418,
                .job_uid = SD_ID128_MAKE(01, 02, 03, 04, 05, 06, 07, 08, 09, 0a, 0b, 0c, 0d, 0e, 0f, 10),
                .job_name = "digits",
                .owner = UINT32_MAX - 1,
                .created_real = UINT64_C(1795000000000000),
                .complete = true,
                .sources = sources,
                .n_sources = 2,
        };
        char *text, *data;

        assert_int_equal(
                savepoint_manifest(&h, JSON({ "blocks" : [ { "q" : 9223372036854775807 } ] }), &text), 0);
        assert_non_null(
                strstr(text, json_text("'version':1,'name':'418-1','job':418,"
                                       "'jobUid':'0102030405060708090a0b0c0d0e0f10','jobName':'digits',"
                                       "'owner':4294967294,'created':1795000000000000,'complete':true,"
                                       "'sources':['train','topic']")));
        assert_int_equal(savepoint_manifest_data(text, strlen(text), &data), 0);
        assert_string_equal(data, json_text("{'blocks':[{'q':9223372036854775807}]}"));
        free(data);
        for (size_t n = 0; n < strlen(text); n++) /* cut anywhere, it is none */
                assert_int_equal(savepoint_manifest_data(text, n, &data), -EBADMSG);
        free(text);
        assert_int_equal(savepoint_manifest(&h, "{", &text), -EBADMSG);

        static const char *const bad[] = { "",
                                           "[]",
                                           "null",
                                           "{}",
                                           JSON({ "data" : {} }),
                                           JSON({ "version" : 2, "data" : {} }),
                                           JSON({ "version" : "1", "data" : {} }),
                                           JSON({ "version" : 1 }),
                                           JSON({ "version" : 1, "data" : {}, "data" : {} }),
                                           "{\"version\": 1, \"data\": {}} x" };
        for (size_t i = 0; i < ELEMENTSOF(bad); i++)
                assert_int_equal(savepoint_manifest_data(bad[i], strlen(bad[i]), &data), -EBADMSG);
}

#define CONFIG(pattern, more, input, rest)                                                                   \
        "{'name': 'a', 'inputManager': {'fileConfig': {'inputs': [{'name': 'train', 'spec':"                 \
        " {'pathPattern': '" pattern "', 'textInput': {}" more "}}]}}, 'input': {" input "}, 'role': [" rest \
        "]}"
#define A CONFIG("/d/*", "", "'mode': 'stdin', 'seed': 1", "")

static const struct {
        const char *then, *now, *difference; /* NULL: the same data */
} pairs[] = {
        { A, A, NULL },
        { "{}", "{}", NULL },
        /* How it is delivered, and who reads it. */
        { A, CONFIG("/d/*", "", "'mode': 'ring', 'seed': 1, 'ack': 'exit'", JSON({ "roleNum" : 9 })), NULL },
        { A, CONFIG("/d/*", ", 'rewindSkipNum': 3", "'seed': 1", ""), NULL },
        /* What the tasks are. */
        { A, CONFIG("/e/*", "", "'seed': 1", ""),
          "inputManager.fileConfig.inputs[0].spec.pathPattern was '/d/*' and is '/e/*'" },
        { A, CONFIG("/d/*", ", 'split': 5", "'seed': 1", ""),
          "inputManager.fileConfig.inputs[0].spec.split was not set and is 5" },
        { CONFIG("/d/*", ", 'split': 5", "'seed': 1", ""), A,
          "inputManager.fileConfig.inputs[0].spec.split was 5 and is not set" },
        { A, CONFIG("/d/*", "", "'seed': 2", ""), "input.seed was 1 and is 2" },
        { A, CONFIG("/d/*", "", "'seed': '1'", ""), "input.seed was 1 and is '1'" },
        { A, CONFIG("/d/*", "", "'seed': 1, 'order': 'shuffle'", ""),
          "input.order was not set and is 'shuffle'" },
        { JSON({ "input" : { "a" : [ 1, 2 ] } }), JSON({ "input" : { "a" : [1] } }),
          "input.a was [1,2] and is [1]" },
        { A, "{}",
          "inputManager was {'fileConfig':{'inputs':[{'name':'train','spec':{'pathPattern':'/d/"
          "*','textInput':{}}}]}} and is not set" },
};

static void test_same_data(void **state) {
        char *difference;

        for (size_t i = 0; i < ELEMENTSOF(pairs); i++) {
                difference = NULL;
                assert_int_equal(
                        savepoint_same_data(json_text(pairs[i].then), json_text(pairs[i].now), &difference),
                        pairs[i].difference ? 1 : 0);
                if (pairs[i].difference)
                        assert_string_equal(difference, json_text(pairs[i].difference));
                free(difference);
        }
        assert_int_equal(savepoint_same_data("{", json_text(A), &difference), -EBADMSG);
        assert_int_equal(savepoint_same_data(json_text(A), "[]", &difference), -EBADMSG);
}

static void test_long_values_are_cut(void **state) {
        _cleanup_free_ char *difference = NULL;
        char then[1024], now[64];

        snprintf(then, sizeof(then), JSON({ "input" : { "x" : "%0600d" } }), 0);
        snprintf(now, sizeof(now), JSON({ "input" : { "x" : 1 } }));
        assert_int_equal(savepoint_same_data(then, now, &difference), 1);
        assert_true(strlen(difference) < 200);
        assert_non_null(strstr(difference, "… and is 1"));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_names),
                cmocka_unit_test(test_manifest),
                cmocka_unit_test(test_same_data),
                cmocka_unit_test(test_long_values_are_cut),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
