/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"
#include "tests/kit/json.h"
#include "tests/kit/message-kit.h"
#include "webd/route/route.h"

/* Takes the message. */
static void assert_parts(const struct call *c, sd_bus_message *m, const char *expected) {
        _cleanup_(json_decref_p) json_t *o = NULL;
        _cleanup_free_ char *text = NULL;

        message_seal(m);
        assert_true(parts_read(c, m, &o) >= 0);
        text = json_dumps(o, JSON_COMPACT | JSON_ENCODE_ANY);
        assert_string_equal(text, json_text(expected));
        sd_bus_message_unref(m);
}

static void named(void **state) {
        static const struct call log = { .parts = {
                                                 { "text", PART_TEXT }, { "next", PART_HEX }, { "end" } } };
        static const struct call submit = { .parts = { { "job" }, { NULL, PART_SKIP }, { "warnings" } } };
        static const struct call nothing = {};
        sd_bus_message *m = message_new();

        assert_true(sd_bus_message_append_array(m, 'y', "a\0\xff\n", 4) >= 0);
        assert_true(sd_bus_message_append_array(m, 'y', "\x01\xfe", 2) >= 0);
        assert_true(sd_bus_message_append(m, "b", true) >= 0);
        assert_parts(&log, m, "{'text':'a??\\n','next':'01fe','end':true}");

        m = message_new();
        assert_true(sd_bus_message_append(m, "uoas", 7, "/a/b", 1, "careful") >= 0);
        assert_parts(&submit, m, "{'job':7,'warnings':['careful']}");
        assert_parts(&nothing, message_new(), "{}");
}

static void whole(void **state) {
        static const struct call any = { .parts = { { NULL, PART_ALL } } };
        static const struct call raw = { .parts = { { NULL, PART_RAW } } };
        sd_bus_message *m = message_new();
        const char *bytes;
        size_t n;

        assert_true(sd_bus_message_append(m, "a{sv}", 1, "at", "t", UINT64_C(5)) >= 0);
        assert_parts(&any, m, "{'at':5}");
        m = message_new();
        assert_true(sd_bus_message_append_array(m, 'y', "{}", 2) >= 0);
        message_seal(m);
        assert_true(parts_raw(&raw, m, &bytes, &n) >= 0);
        assert_int_equal(n, 2);
        assert_memory_equal(bytes, "{}", 2);
        sd_bus_message_unref(m);
}

static void broken(void **state) {
        static const struct call log = { .parts = { { "text", PART_TEXT } } };
        sd_bus_message *m = message_new();
        json_t *o = NULL;

        assert_true(sd_bus_message_append(m, "s", "no bytes") >= 0);
        message_seal(m);
        assert_true(parts_read(&log, m, &o) < 0);
        assert_null(o);
        sd_bus_message_unref(m);
}

int main(void) {
        const struct CMUnitTest tests[] = { cmocka_unit_test(named), cmocka_unit_test(whole),
                                            cmocka_unit_test(broken) };

        return cmocka_run_group_tests(tests, message_setup, message_teardown);
}
