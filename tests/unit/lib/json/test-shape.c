/* SPDX-License-Identifier: Apache-2.0 */
/* Messages through tables: each is compared as the text that --json would print. */
#include "lib/json/shape.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tests/kit/json.h"

#include "lib/json/get.h"
#include "tests/kit/message-kit.h"

/* Text of the value, which is taken. */
static void assert_json(json_t *value, const char *expected) {
        _cleanup_free_ char *text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);

        json_decref(value);
        assert_non_null(text);
        assert_string_equal(text, json_text(expected));
}

static json_t *twice(const json_t *o) {
        uint64_t n = json_get_number(o, "secret");

        return n ? json_integer((json_int_t)n * 2) : NULL;
}

static const struct json_member part[] = {
        { "second", "s", .at = 2 },
        { "first", "u", .at = 1 },
        { "key", "t", .absent = JSON_ZERO_NONE },
};
static const struct json_shape parts = { "part", "(usa{sv})", part, ELEMENTSOF(part) };

static const struct json_member member[] = {
        { "text", "s", .key = "Text" },
        { "or_none", "s", .absent = JSON_OR_NONE },
        { "or_null", "u", .absent = JSON_OR_NULL },
        { "zero_null", "t", .absent = JSON_ZERO_NULL },
        { "most_null", "t", .absent = JSON_MOST_NULL },
        { "most_none", "u", .absent = JSON_MOST_NONE },
        { "real", "d" },
        { "flag", "b" },
        { "parts", "a(usa{sv})", .parts = &parts },
        { "double", "u", .make = twice },
        { "bytes", "ay" },
        { "numbers", "a{st}" },
        { "secret", "u", .hidden = true },
        { "plain", "i", .unseen = true },
};
static const struct json_shape shape = { "shape", "a{sv}", member, ELEMENTSOF(member) };
static const struct json_shape open_shape = { "open", "a{sv}", member, ELEMENTSOF(member), .open = true };

#define NOTHING                                                                                              \
        "{'text':'','or_null':null,'zero_null':null,'most_null':0,'most_none':0,'real':0.0,"                 \
        "'flag':false,'parts':[],'bytes':'','numbers':{},'plain':0}"

static void of_nothing(void **state) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = message_new();
        json_t *o = NULL;

        assert_true(sd_bus_message_append(m, "a{sv}", 0) >= 0);
        message_seal(m);
        assert_int_equal(json_read_object(m, &shape, false, &o), 0);
        assert_json(o, NOTHING);
}

static void of_everything(void **state) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = message_new();
        json_t *o = NULL;

        /* In another order than the table's; what it does not know, and of another type than it says,
         * between. */
        assert_true(sd_bus_message_append(
                            m, "a{sv}", 15, "secret", "u", 21, "flag", "b", 1, "unknown", "a(su)", 1, "x", 1,
                            "real", "d", 0.5, "or_none", "u", 7, "Text", "s", "Ä\"", "zero_null", "t",
                            UINT64_C(0), "most_null", "t", UINT64_MAX, "most_none", "u", UINT32_MAX,
                            "or_null", "u", UINT32_MAX, "bytes", "ay", 2, 'a', 0xff, "plain", "i", -5,
                            "numbers", "a{st}", 2, "b", UINT64_C(2), "a", UINT64_C(1), "parts", "a(usa{sv})",
                            2, 1, "one", 1, "key", "t", UINT64_C(3), 2, "two", 0, "simple", "s", "new") >= 0);
        message_seal(m);
        assert_int_equal(json_read_object(m, &shape, false, &o), 0);
#define PARTS "[{'second':'one','first':1,'key':3},{'second':'two','first':2}]"
#define BEGIN                                                                                                \
        "{\"text\":\"Ä\\\"\",\"or_null\":4294967295,\"zero_null\":null,\"most_null\":null,\"real\":0.5,"    \
        "'flag':true,'parts':" PARTS ",'double':42,'bytes':'a?','numbers':{'b':2,'a':1}"
        assert_json(o, BEGIN ",'plain':-5}");
        /* What people are shown. */
        assert_true(sd_bus_message_rewind(m, true) >= 0);
        assert_int_equal(json_read_object(m, &shape, true, &o), 0);
        assert_json(o, BEGIN ",'secret':21}");
        /* Keys of basic types that are new. */
        assert_true(sd_bus_message_rewind(m, true) >= 0);
        assert_int_equal(json_read_object(m, &open_shape, false, &o), 0);
        assert_json(o, BEGIN ",'plain':-5,'or_none':7,'simple':'new'}");
}

static void lists(void **state) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = message_new(), *other = message_new(),
                                                        *none = message_new();
        json_t *list = NULL;

        assert_true(sd_bus_message_append(m, "a(usa{sv})", 1, 7, "x", 0) >= 0);
        message_seal(m);
        assert_int_equal(json_read_list(m, &parts, false, &list), 0);
        assert_json(list, "[{'second':'x','first':7}]");
        assert_true(sd_bus_message_append(none, "aa{sv}", 0) >= 0);
        message_seal(none);
        assert_int_equal(json_read_list(none, &shape, false, &list), 0);
        assert_json(list, "[]");
        /* Of another master. */
        assert_true(sd_bus_message_append(other, "a(us)", 1, 7, "x") >= 0);
        message_seal(other);
        list = NULL;
        assert_true(json_read_list(other, &parts, false, &list) < 0);
        assert_null(list);
}

static void anything(void **state) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = message_new();
        json_t *value = NULL;

        assert_true(sd_bus_message_append(m, "a{sv}(yv)d", 2, "list", "a(sb)", 1, "x", 0, "map", "a{sad}", 1,
                                          "y", 2, 1.5, (double)INFINITY, 255, "x", INT64_C(-7),
                                          (double)NAN) >= 0);
        message_seal(m);
        assert_int_equal(json_read_any(m, &value), 0);
        assert_json(value, "{'list':[['x',false]],'map':{'y':[1.5,null]}}");
        assert_int_equal(json_read_any(m, &value), 0);
        assert_json(value, "[255,-7]");
        assert_int_equal(json_read_any(m, &value), 0);
        assert_json(value, "null");
        assert_int_equal(json_read_any(m, &value), -EBADMSG);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(of_nothing),
                cmocka_unit_test(of_everything),
                cmocka_unit_test(lists),
                cmocka_unit_test(anything),
        };

        return cmocka_run_group_tests(tests, message_setup, message_teardown);
}
