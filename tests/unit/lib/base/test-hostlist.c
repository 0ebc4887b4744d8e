/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/hostlist.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"

static void test_expand(void **state) {
        static const struct {
                const char *text;
                int r;
                const char *joined;
        } table[] = {
                { "n1", 0, "n1 " },
                { "n[1-3,7],gpu01", 0, "n1 n2 n3 n7 gpu01 " },
                { "rack[01-02]n[1-2]", 0, "rack01n1 rack01n2 rack02n1 rack02n2 " },
                { "n[8-11]", 0, "n8 n9 n10 n11 " },
                { "n[08-10]", 0, "n08 n09 n10 " },
                { "n2,n1,n2", 0, "n2 n1 " },
                { "n[1]x", 0, "n1x " },
                { "", -EINVAL, NULL },
                { ",", -EINVAL, NULL },
                { "n1,", -EINVAL, NULL },
                { "n[", -EINVAL, NULL },
                { "n[]", -EINVAL, NULL },
                { "n]", -EINVAL, NULL },
                { "n[3-1]", -EINVAL, NULL },
                { "n[1-]", -EINVAL, NULL },
                { "n[1,]", -EINVAL, NULL },
                { "n[[1]]", -EINVAL, NULL },
                { "n[a]", -EINVAL, NULL },
                { "N1", -EINVAL, NULL },
                { "n[1234567890]", -EINVAL, NULL },
                { "n[1-999999999]", -E2BIG, NULL },
                { "n[1,1][1,1][1,1][1,1][1,1][1,1][1,1][1,1][1,1][1,1][1,1][1,1][1,1][1,1][1,1]", -E2BIG,
                  NULL },
        };
        for (size_t i = 0; i < ELEMENTSOF(table); i++) {
                char joined[256] = "", **names;
                size_t n;
                assert_int_equal(hostlist_expand(table[i].text, 100, &names, &n), table[i].r);
                if (table[i].r < 0)
                        continue;
                for (size_t k = 0; k < n; k++)
                        strcat(strcat(joined, names[k]), " ");
                assert_null(names[n]);
                assert_string_equal(joined, table[i].joined);
                hostlist_free(names);
        }
        hostlist_free(NULL);
}

static void test_limit(void **state) {
        char **names;

        assert_int_equal(hostlist_expand("n[1-100]", 100, &names, NULL), 0);
        hostlist_free(names);
        assert_int_equal(hostlist_expand("n[1-101]", 100, &names, NULL), -E2BIG);
}

static void test_compress(void **state) {
        static const struct {
                const char *names[8];
                const char *text;
        } table[] = {
                { { "n1", "n2", "n3", "n7" }, "n[1-3,7]" },
                { { "n1", "n10", "n9", "n8" }, "n[1,8-10]" },
                { { "gpu01", "gpu02", "n1" }, "gpu[01,02],n1" },
                { { "n09", "n10", "n11" }, "n[09-11]" },
                { { "n1", "n01", "n2" }, "n[1,01,2]" },
                { { "login", "n1" }, "login,n1" },
                { { "a", "b" }, "a,b" },
                { {}, "" },
        };
        for (size_t i = 0; i < ELEMENTSOF(table); i++) {
                _cleanup_free_ char *text = NULL;
                char **names;
                size_t n = 0, m;
                while (n < 8 && table[i].names[n])
                        n++;
                text = hostlist_compress(table[i].names, n);
                assert_string_equal(text, table[i].text);
                if (n == 0)
                        continue;
                assert_int_equal(hostlist_expand(text, 100, &names, &m), 0);
                assert_int_equal(n, m);
                hostlist_free(names);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_expand),
                cmocka_unit_test(test_limit),
                cmocka_unit_test(test_compress),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
