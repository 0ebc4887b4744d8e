/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/wire/question.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/kit/json.h"

static const struct question_op ops[] = { { "look", { NULL } }, { "put", { "at", "what" } }, { NULL } };

static char why[QUESTION_WHY_MAX];

static int read_one(const char *text, json_t **ret, unsigned *ret_op) {
        return question_read(json_text(text), 64, ops, ret, ret_op, why);
}

static void test_read(void **state) {
        uint64_t n;
        json_t *j;
        unsigned op;

        assert_int_equal(read_one("{'op': 'put', 'at': 7}", &j, &op), 0);
        assert_int_equal(op, 1);
        assert_int_equal(question_number(j, "at", 7, &n, why), 0);
        assert_int_equal(n, 7);
        assert_int_equal(question_number(j, "at", 6, &n, why), -EINVAL);
        assert_string_equal(why, "at must be an integer of 0 to 6");
        assert_int_equal(question_number(j, "what", 6, &n, why), -EINVAL);
        json_decref(j);
        assert_int_equal(read_one("{'op': 'look'}", &j, &op), 0);
        assert_int_equal(op, 0);
        json_decref(j);
        assert_int_equal(read_one("{'op': 'look', 'at': 1}", &j, &op), -EINVAL);
        assert_non_null(strstr(why, "look has no"));
        assert_int_equal(read_one("{'op': 'walk'}", &j, &op), -ENOENT);
        assert_int_equal(read_one("{'op': 7}", &j, &op), -ENOENT);
        assert_int_equal(read_one("{}", &j, &op), -ENOENT);
        assert_int_equal(read_one("[]", &j, &op), -EBADMSG);
        assert_int_equal(read_one("{'op': 'look', 'op': 'look'}", &j, &op), -EBADMSG);
        assert_int_equal(read_one("{", &j, &op), -EBADMSG);
        assert_int_equal(
                read_one("{'op': 'put', 'what': '0123456789012345678901234567890123456789'}", &j, &op),
                -EBADMSG);
}

static void test_answer(void **state) {
        char *text;

        assert_int_equal(question_answer(json_pack("{s:i}", "n", 1), &text), 0);
        assert_string_equal(text, json_text("{'n':1}"));
        free(text);
        assert_int_equal(question_answer(NULL, &text), -ENOMEM);
        assert_int_equal(question_refuse(why, "no"), -EINVAL);
        assert_string_equal(why, "no");
}

int main(void) {
        const struct CMUnitTest tests[] = { cmocka_unit_test(test_read), cmocka_unit_test(test_answer) };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
