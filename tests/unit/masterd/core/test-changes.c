/* SPDX-License-Identifier: Apache-2.0 */
#include "masterd/core/changes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* What changes_each() tells, such as "3 n1 1". */
static int tell(const struct change *x, void *userdata) {
        char *text = userdata;
        size_t n = strlen(text);

        if (x->node)
                snprintf(text + n, 64 - n, "%s%s", n > 0 ? " " : "", x->node);
        else
                snprintf(text + n, 64 - n, "%s%u", n > 0 ? " " : "", x->job);
        return 0;
}

static void assert_since(const struct changes *c, uint64_t since, const char *expected) {
        char text[64] = "";

        assert_true(changes_known(c, since));
        assert_int_equal(changes_each(c, since, tell, text), 0);
        assert_string_equal(text, expected);
}

static void each_once(void **state) {
        _cleanup_(changes_free_p) struct changes *c = changes_new(10);

        assert_int_equal(changes_now(c), 0);
        assert_since(c, 0, "");
        changes_job(c, 1);
        changes_node(c, "n1");
        changes_job(c, 2);
        changes_job(c, 1);
        /* A host that is called as a job's number is no job. */
        changes_node(c, "2");
        assert_int_equal(changes_now(c), 5);
        assert_since(c, 0, "2 1 2 n1");
        assert_since(c, 3, "2 1");
        assert_since(c, 4, "2");
        assert_since(c, 5, "");
        assert_false(changes_known(c, 6));
}

static int stop(const struct change *x, void *userdata) {
        return ++*(int *)userdata == 2 ? -E2BIG : 0;
}

static void forgotten(void **state) {
        _cleanup_(changes_free_p) struct changes *c = changes_new(3);
        int n = 0;

        for (uint32_t i = 1; i <= 5; i++)
                changes_job(c, i);
        /* 1 and 2 are forgotten: who saw the change of 2 has missed nothing that is. */
        assert_false(changes_known(c, 1));
        assert_since(c, 2, "5 4 3");
        changes_job(c, 3);
        assert_since(c, 2, "3 5 4");
        assert_int_equal(changes_each(c, 2, stop, &n), -E2BIG);
        assert_int_equal(n, 2);
}

int main(void) {
        const struct CMUnitTest tests[] = { cmocka_unit_test(each_once), cmocka_unit_test(forgotten) };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
