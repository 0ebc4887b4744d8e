/* SPDX-License-Identifier: Apache-2.0 */
/* masterd/node/claim.c: who may have a node's name. */
#include "masterd/node/claim.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "masterd/node/node.h"

enum {
        NOBODY,
        UNUSED, /* has never come */
        AWAY,
        THERE
};

static const struct {
        int node;
        const char *token_name;
        bool replace, elsewhere; /* not from where it joined */
        enum claim expected;
} table[] = {
        { NOBODY, "", false, false, CLAIM_NEW },         { NOBODY, "n7", false, false, CLAIM_NEW },
        { NOBODY, "n7", true, false, CLAIM_NEW },        { NOBODY, "n8", false, false, CLAIM_OTHER_NAME },
        { NOBODY, "n8", true, false, CLAIM_OTHER_NAME }, { UNUSED, "", false, false, CLAIM_AGAIN },
        { UNUSED, "", false, true, CLAIM_TAKEN },        { UNUSED, "n7", false, false, CLAIM_AGAIN },
        { UNUSED, "n7", false, true, CLAIM_AGAIN },      { UNUSED, "n7", true, true, CLAIM_AGAIN },
        { AWAY, "", false, false, CLAIM_TAKEN },         { AWAY, "", false, true, CLAIM_TAKEN },
        { AWAY, "n7", false, false, CLAIM_TAKEN },       { AWAY, "n7", true, false, CLAIM_TAKES_OVER },
        { AWAY, "n7", true, true, CLAIM_TAKES_OVER },    { AWAY, "n8", true, true, CLAIM_OTHER_NAME },
        { THERE, "", false, false, CLAIM_CONNECTED },    { THERE, "n7", false, false, CLAIM_CONNECTED },
        { THERE, "n7", true, false, CLAIM_CONNECTED },   { THERE, "n8", true, false, CLAIM_OTHER_NAME },
};

static struct addr address(const char *text) {
        struct addr a;

        assert_int_equal(addr_parse(text, 0, &a), 0);
        return a;
}

static void test_table(void **state) {
        struct node node = { .joined.from = address("192.0.2.7") };

        for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
                struct addr from = address(table[i].elsewhere ? "192.0.2.8:999" : "192.0.2.7:999");

                node.epoch = table[i].node == AWAY || table[i].node == THERE ? 3 : 0;
                node.link = table[i].node == THERE ? (struct link *)&node : NULL;
                if (claim_judge(table[i].node == NOBODY ? NULL : &node, "n7", table[i].token_name,
                                table[i].replace, &from) != table[i].expected)
                        fail_msg("row %zu", i);
        }
}

/* Where a node joined before that was kept, nobody comes from there. */
static void test_unknown_origin(void **state) {
        struct node node = {};
        struct addr from = {};

        assert_int_equal(claim_judge(&node, "n7", "", false, &from), CLAIM_TAKEN);
        assert_int_equal(claim_judge(&node, "n7", "n7", false, &from), CLAIM_AGAIN);
}

/* Whole also with the longest names, and with what is to be typed. */
static void test_refusals(void **state) {
        char text[CLAIM_TEXT_MAX], longest[65];

        memset(longest, 'n', 64);
        longest[64] = 0;
        for (int c = _CLAIM_GRANTED; c < _CLAIM_MAX; c++) {
                assert_ptr_equal(claim_refusal((enum claim)c, longest, longest, text), text);
                assert_true(strlen(text) < sizeof(text) - 1);
                assert_non_null(strstr(text, longest));
                assert_non_null(strstr(text, "--name"));
        }
        assert_non_null(strstr(claim_refusal(CLAIM_TAKEN, "n7", "", text), "token create --replace n7"));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_table),
                cmocka_unit_test(test_unknown_origin),
                cmocka_unit_test(test_refusals),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
