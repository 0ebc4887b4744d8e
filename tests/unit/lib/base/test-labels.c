/* SPDX-License-Identifier: Apache-2.0 */
/* Labels and conditions as people write them. */
#include "lib/base/labels.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"

static const char *const labels[] = { "rack=r1", "zone=a", "ssd", "gpu.model=H100", "empty=" };

static void test_labels(void **state) {
        static const char *const good[] = { "rack=r1", "ssd", "a.b/c-d_e=1.2:3/4", "x=" }, *const bad[] = {
                "", "=", "=x", "-a=b", "a b=c", "a=b c", "a=b,c", "a=(b)", "a=b=c", "a=\n", "a!", "a=\xc3\xa4"
        };
        char large[LABEL_MAX + 2];
        const char *why;

        for (size_t i = 0; i < ELEMENTSOF(good); i++)
                assert_int_equal(label_check(good[i], NULL), 0);
        for (size_t i = 0; i < ELEMENTSOF(bad); i++) {
                why = NULL;
                assert_int_equal(label_check(bad[i], &why), -EINVAL);
                assert_non_null(why);
        }
        memset(large, 'a', sizeof(large) - 1);
        large[sizeof(large) - 1] = 0;
        assert_int_equal(label_check(large, NULL), -EINVAL);
        large[LABEL_MAX] = 0;
        assert_int_equal(label_check(large, NULL), 0);
        assert_string_equal(label_value("rack=r1", "rack"), "r1");
        assert_string_equal(label_value("ssd", "ssd"), "");
        assert_null(label_value("rack=r1", "rac"));
        assert_null(label_value("rac=r1", "rack"));
}

static void check(const char *text, const char *canonical, bool met) {
        _cleanup_(constraint_free_p) struct constraint *c = NULL, *again = NULL;

        assert_int_equal(constraint_parse(text, &c, NULL), 0);
        assert_string_equal(c->text, canonical);
        assert_int_equal(constraint_met(c, labels, ELEMENTSOF(labels)), met);
        assert_int_equal(constraint_parse(c->text, &again, NULL), 0);
        assert_string_equal(again->text, canonical);
}

static void test_constraints(void **state) {
        check("ssd", "ssd", true);
        check(" ! ssd ", "!ssd", false);
        check("!hdd", "!hdd", true);
        check("hdd", "hdd", false);
        check("gpu.model=H100", "gpu.model=H100", true);
        check("gpu.model == H100", "gpu.model=H100", true);
        check("gpu.model=A100", "gpu.model=A100", false);
        check("rack != r1", "rack!=r1", false);
        check("rack!=r3", "rack!=r3", true);
        check("floor!=3", "floor!=3", true); /* has none */
        check("zone in (b, a)", "zone in (b,a)", true);
        check("zone in(b)", "zone=b", false);
        check("zone notin (b,c)", "zone notin (b,c)", true);
        check("floor in (1,2)", "floor in (1,2)", false);
        check("empty=", "empty=", true);
        check("ssd=", "ssd=", true);
        check("inner", "inner", false); /* a key that begins like a word */
}

static void test_bad_constraints(void **state) {
        static const char *const bad[] = { "",        "!",          "a b",       "a in",
                                           "a in ()", "a in (b",    "a in (b,)", "a in (b) c",
                                           "a=b c",   "!a=b",       "a<3",       "a in b",
                                           "a=b,c",   "(a)",        "a==!b",     "a notin (,)",
                                           "a!b",     "a in (b c)", "\xff" };

        for (size_t i = 0; i < ELEMENTSOF(bad); i++) {
                struct constraint *c;
                const char *why = NULL;
                assert_int_equal(constraint_parse(bad[i], &c, &why), -EINVAL);
                assert_non_null(why);
        }
        constraint_free(NULL);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_labels),
                cmocka_unit_test(test_constraints),
                cmocka_unit_test(test_bad_constraints),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
