/* SPDX-License-Identifier: Apache-2.0 */
/* The forms in which values may be written, over a schema of the test's own. */
#include "masterd/spec/read.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"
#include "tests/kit/json.h"

struct thing {
        bool flag;
        uint32_t n, milli, word, chosen;
        uint64_t scaled, duration, size;
        char *text;
        char **texts, **nodes, **map;
        size_t n_texts, n_nodes, n_map, n_items;
        struct item {
                uint32_t value;
        } * items;
};

#define AT(m) .offset = offsetof(struct thing, m)
static const char *const words[] = { "NO", "YES" };
static const struct key item_keys[] = { { "value", KEY_U32, .offset = 0, .max = 9, .preset = 5 } };
static const struct schema item_schema = { item_keys, 1 };
static const struct schema nothing = {};
static const struct key keys[] = {
        { "flag", KEY_BOOL, AT(flag) },
        { "n", KEY_U32, AT(n), .min = 1, .max = 10, .preset = 3 },
        { "zeroN", KEY_U32, AT(n), .min = 1, .max = 10, .preset = 3, .zero_is_preset = true },
        { "milli", KEY_MILLI, AT(milli), .max = 100 },
        { "scaled", KEY_SCALED, AT(scaled), .max = 100, .scale = 1000 },
        { "duration", KEY_DURATION, AT(duration), .max = 100000000, .preset = UINT64_MAX },
        { "size", KEY_SIZE, AT(size), .max = 1 << 20 },
        { "word", KEY_ENUM, AT(word), .names = words, .max = 1 },
        { "text", KEY_TEXT, AT(text), .max = 8, .preset_text = "preset" },
        { "texts", KEY_TEXTS, AT(texts), .count = offsetof(struct thing, n_texts), .max = 3 },
        { "nodes", KEY_NODES, AT(nodes), .count = offsetof(struct thing, n_nodes), .max = 10 },
        { "map", KEY_MAP, AT(map), .count = offsetof(struct thing, n_map), .max = 3 },
        { "items", KEY_LIST, AT(items), .count = offsetof(struct thing, n_items), .max = 3,
          .message = &item_schema, .item_size = sizeof(struct item) },
        { "this", KEY_MESSAGE, .offset = 0, .message = &nothing, .group = 1, .choosing = true,
          .choice_at = offsetof(struct thing, chosen), .choice = 7 },
        { "that", KEY_MESSAGE, .offset = 0, .message = &nothing, .group = 1 },
        { "dead", KEY_NUMBER, STATUS_WARN, "is dead", NO_TARGET },
        { "future", KEY_BOOL, STATUS_UNBUILT, "is not built", NO_TARGET },
};
static const struct schema schema = { keys, ELEMENTSOF(keys) };

/* Reads a configuration; the first entry of the diagnostics, or "", is to be message. */
static struct thing *read_thing(const char *text, const char *message) {
        struct reader *r = calloc(1, sizeof(*r));
        struct thing *t = calloc(1, sizeof(*t));
        struct diagnostics d = {};
        json_t *root = json_loads(text, 0, NULL);

        assert_non_null(root);
        r->diagnostics = &d;
        assert_int_equal(schema_preset(&schema, t), 0);
        assert_int_equal(read_message(r, &schema, root, t), 0);
        if (d.n == 0)
                assert_string_equal(message, "");
        else {
                _cleanup_free_ char *line = diagnostic_format(&d.items[0]);
                assert_string_equal(line, message);
        }
        diagnostics_done(&d);
        json_decref(root);
        free(r);
        return t;
}

static void thing_done(struct thing *t) {
        schema_done(&schema, t);
        free(t);
}

static void test_presets(void **state) {
        static const char *const nothings[] = {
                "{}",
                JSON({ "flag" : null, "n" : null, "text" : null, "texts" : null, "map" : null }),
                JSON({ "items" : null, "this" : null }),
                JSON({ "zeroN" : 0 }),
                JSON({ "future" : false }),
                JSON({ "future" : "false" }),
        };
        for (size_t i = 0; i < ELEMENTSOF(nothings); i++) {
                struct thing *t = read_thing(nothings[i], "");
                assert_false(t->flag);
                assert_int_equal(t->n, 3);
                assert_true(t->duration == UINT64_MAX);
                assert_string_equal(t->text, "preset");
                assert_non_null(t->texts);
                assert_null(t->texts[0]);
                assert_int_equal(t->n_items, 0);
                assert_int_equal(t->chosen, 0);
                thing_done(t);
        }
}

static void test_forms(void **state) {
        struct thing *t = read_thing(JSON({
                                             "flag" : "true",
                                             "n" : "7",
                                             "milli" : 0.25,
                                             "scaled" : "5",
                                             "duration" : 1.5,
                                             "size" : "64K",
                                             "word" : "YES",
                                             "text" : "x",
                                             "texts" : [ "a", "b" ],
                                             "nodes" : "n[1-3]",
                                             "map" : { "B" : "2", "A" : "" },
                                             "items" : [ {}, { "value" : 2 } ],
                                             "this" : {}
                                     }),
                                     "flag: a text where a truth value belongs; write true without quotes");
        assert_true(t->flag);
        assert_int_equal(t->n, 7);
        assert_int_equal(t->milli, 250);
        assert_true(t->scaled == 5000);
        assert_true(t->duration == 1500000);
        assert_true(t->size == 65536);
        assert_int_equal(t->word, 1);
        assert_string_equal(t->text, "x");
        assert_int_equal(t->n_texts, 2);
        assert_string_equal(t->texts[1], "b");
        assert_int_equal(t->n_nodes, 3);
        assert_string_equal(t->nodes[2], "n3");
        assert_int_equal(t->n_map, 2);
        assert_string_equal(t->map[0], "A=");
        assert_string_equal(t->map[1], "B=2");
        assert_int_equal(t->n_items, 2);
        assert_int_equal(t->items[0].value, 5);
        assert_int_equal(t->items[1].value, 2);
        assert_int_equal(t->chosen, 7);
        thing_done(t);

        t = read_thing(JSON({
                               "n" : 7.0,
                               "milli" : "99.5",
                               "duration" : "infinity",
                               "size" : 10,
                               "word" : 1,
                               "nodes" : [ "n9", "n8" ]
                       }),
                       "");
        assert_int_equal(t->n, 7);
        assert_int_equal(t->milli, 99500);
        assert_true(t->duration == UINT64_MAX);
        assert_int_equal(t->word, 1);
        assert_string_equal(t->nodes[0], "n9");
        thing_done(t);
}

static void test_errors(void **state) {
        static const struct {
                const char *text, *message;
        } table[] = {
                { JSON({ "flag" : 1 }), "flag: must be true or false, not 1" },
                { JSON({ "flag" : "yes" }), "flag: must be true or false, not \"yes\"" },
                { JSON({ "n" : 0 }), "n: must be 1 to 10, not 0" },
                { JSON({ "n" : "11" }), "n: must be 1 to 10, not 11" },
                { JSON({ "n" : "" }), "n: must be a whole number, not \"\"" },
                { JSON({ "n" : "0x5" }), "n: must be a whole number, not \"0x5\"" },
                { JSON({ "n" : "1e999" }), "n: must be a whole number, not \"1e999\"" },
                { JSON({ "n" : true }), "n: must be a whole number, not true" },
                { JSON({ "n" : 9223372036854775807 }), "n: must be 1 to 10, not 9223372036854775807" },
                { JSON({ "n" : -9223372036854775808 }), "n: must be 1 to 10, not -9223372036854775808" },
                { JSON({ "milli" : 100.001 }), "milli: must be 0 to 100, not 100.001" },
                { JSON({ "milli" : 1e300 }), "milli: must be 0 to 100, not 1e+300" },
                { JSON({ "milli" : 0.0005 }), "milli: must have at most three decimals, not 0.0005" },
                { JSON({ "duration" : 1e300 }), "duration: must be 0s to 1min 40s, not 1e+300" },
                { JSON({ "duration" : "-1s" }),
                  "duration: must be a duration (90, \"90s\", \"2h 30min\"), not \"-1s\"" },
                { JSON({ "size" : -1 }), "size: must be 0 to 1M, not -1" },
                { JSON({ "size" : [] }), "size: must be a size (65536, \"64K\", \"1M\"), not an array" },
                { JSON({ "word" : 2 }), "word: must be \"NO\" or \"YES\", not 2" },
                { JSON({ "word" : "yes" }), "word: must be \"NO\" or \"YES\", not \"yes\"" },
                { JSON({ "text" : "123456789" }), "text: has 9 bytes; at most 8 are accepted" },
                { JSON({ "text" : false }), "text: must be text in quotes: \"false\"" },
                { JSON({ "texts" : [ "a", {} ] }), "texts[1]: must be text, not an object" },
                { JSON({ "texts" : [ "1", "2", "3", "4" ] }),
                  "texts: has 4 entries; at most 3 are accepted" },
                { JSON({ "nodes" : "n[1-11]" }), "nodes: names more than 10 hosts" },
                { JSON({ "map" : { "a" : [] } }), "map.a: must be text, not an array" },
                { JSON({ "items" : [ { "value" : 10 } ] }), "items[0].value: must be 0 to 9, not 10" },
                { JSON({ "items" : [ {}, 5 ] }), "items[1]: must be an object, not 5" },
                { JSON({ "this" : {}, "that" : {} }), "that: cannot be given together with this" },
                { JSON({ "this" : [] }), "this: must be an object, not an array" },
                { JSON({ "dead" : 1 }), "dead: is dead" },
                { JSON({ "future" : true }), "future: is not built" },
                { JSON({ "zero_n" : 1, "zeroN" : 1 }), "zeroN: given twice, in two spellings" },
                { JSON({ "texd" : 1 }), "texd: unknown key; did you mean \"text\"?" },
                { JSON({ "Flag" : true }), "Flag: unknown key; did you mean \"flag\"?" },
                { JSON({ "something" : 1 }), "something: unknown key" },
                { JSON({
                          "text" : "0123456789012345678901234567890123456789x",
                          "size" : "0123456789012345678901234567890123456789x"
                  }),
                  "size: must be a size (65536, \"64K\", \"1M\"), not "
                  "\"0123456789012345678901234567890123456789...\"" },
        };
        for (size_t i = 0; i < ELEMENTSOF(table); i++) {
                struct thing *t = read_thing(table[i].text, table[i].message);
                assert_in_range(t->n, 1, 10); /* never outside the bounds */
                assert_true(t->milli <= 100000);
                thing_done(t);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = { cmocka_unit_test(test_presets), cmocka_unit_test(test_forms),
                                            cmocka_unit_test(test_errors) };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
