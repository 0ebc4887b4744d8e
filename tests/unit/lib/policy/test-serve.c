/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/policy/serve.h"

#include <grp.h>
#include <pwd.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"
#include "tests/kit/root-kit.h"

#define NAMES(...) ((char **)(const char *[]){ __VA_ARGS__, NULL })

static const char *why(const struct serve_policy *p, uint32_t uid) {
        static char buf[SERVE_WHY_MAX];
        struct serve_person who = { .uid = uid };

        return serve_decide(p, &who, "n1", buf);
}

/* Whoever is no person's is served by no settings. */
static void test_never(void **state) {
        static const uint32_t uids[] = { 65534, 65535, UINT32_MAX, UINT32_MAX - 1, 61184, 62000, 65519, 996 };
        struct serve_policy p = { .min_uid = 1, .allow_root = true, .own = { 996 }, .n_own = 1 };
        char buf[SERVE_WHY_MAX];

        for (size_t i = 0; i < ELEMENTSOF(uids); i++) {
                struct serve_person who = { .uid = uids[i], .allowed = true, .in_group = true };
                assert_non_null(serve_decide(&p, &who, "n1", buf));
        }
        assert_non_null(strstr(why(&p, 996), "Primus itself"));
        assert_null(why(&p, 995));
        assert_null(why(&p, 65533));
        assert_null(why(&p, 61183));
        assert_null(why(&p, 65536));
}

static void test_system(void **state) {
        static const uint32_t uids[] = { 1, 33, 100, 996, 999 };
        const struct serve_policy p = { .min_uid = 1000 };
        char buf[SERVE_WHY_MAX];

        for (size_t i = 0; i < ELEMENTSOF(uids); i++) {
                struct serve_person named = { .uid = uids[i], .allowed = true };
                assert_non_null(strstr(why(&p, uids[i]), "system account"));
                assert_non_null(strstr(why(&p, uids[i]), "MinUid="));
                assert_non_null(strstr(why(&p, uids[i]), "host n1"));
                assert_non_null(serve_decide(&p, &named, "n1", buf)); /* AllowUsers= opens nothing below */
        }
        assert_null(why(&p, 1000));
        assert_null(why(&p, UINT32_MAX - 2));
}

static void test_root(void **state) {
        struct serve_policy p = { .min_uid = 1000 };
        struct serve_person denied = { .uid = 0, .denied = true };
        char buf[SERVE_WHY_MAX];

        assert_non_null(strstr(why(&p, 0), "AllowRoot=yes"));
        p.allow_root = true;
        assert_null(why(&p, 0));
        assert_non_null(serve_decide(&p, &denied, "n1", buf));
}

static void test_lists(void **state) {
        static const struct {
                bool users, groups, denied, allowed, in_group, served;
        } cases[] = {
                { .served = true },
                { .denied = true },
                { .denied = true, .allowed = true, .users = true },
                { .denied = true, .in_group = true, .groups = true },
                { .users = true },
                { .groups = true },
                { .users = true, .allowed = true, .served = true },
                { .groups = true, .in_group = true, .served = true },
                { .users = true, .groups = true, .in_group = true, .served = true },
                { .users = true, .groups = true, .allowed = true, .served = true },
                { .users = true, .groups = true },
        };
        char buf[SERVE_WHY_MAX];

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                const struct serve_policy p = { .min_uid = 1000,
                                                .allow_users = cases[i].users ? NAMES("ml") : NULL,
                                                .allow_groups = cases[i].groups ? NAMES("gpu") : NULL };
                const struct serve_person who = { 1000, cases[i].denied, cases[i].allowed,
                                                  cases[i].in_group };
                assert_int_equal(serve_decide(&p, &who, "n1", buf) == NULL, cases[i].served);
        }
}

/* What the number alone tells. */
static void test_number(void **state) {
        struct serve_policy p = { .min_uid = 1000, .deny_users = NAMES("1001", "1002") };
        char buf[SERVE_WHY_MAX];
        bool sure = false;

        assert_null(serve_decide_number(&p, 1000, "n1", buf, &sure));
        assert_true(sure);
        assert_non_null(serve_decide_number(&p, 1002, "n1", buf, NULL));
        p.allow_users = NAMES("1005");
        assert_non_null(serve_decide_number(&p, 1000, "n1", buf, &sure));
        assert_null(serve_decide_number(&p, 1005, "n1", buf, &sure));
        assert_true(sure);
        p.allow_users = NAMES("1005", "ml");
        assert_true(serve_needs_lookup(&p));
        assert_null(serve_decide_number(&p, 1000, "n1", buf, &sure)); /* ml may be that one */
        assert_false(sure);
        assert_non_null(serve_decide_number(&p, 1001, "n1", buf, &sure));
        assert_non_null(serve_decide_number(&p, 33, "n1", buf, &sure));
        assert_non_null(serve_decide_number(&p, 0, "n1", buf, &sure));
}

static void test_values(void **state) {
        static const char *const bad[] = { "a,b", "-x", "a:b", "!eve", "#1", "\"a\"", "\xff", "*" };
        char **names = NULL;
        const char *text;
        uint32_t min = 7;

        assert_int_equal(serve_parse_names("ml  eve 1005 DOM\\user me@lab", &names, &text), 0);
        assert_string_equal(names[3], "DOM\\user");
        assert_null(names[5]);
        for (size_t i = 0; i < ELEMENTSOF(bad); i++) {
                assert_int_equal(serve_parse_names(bad[i], &names, &text), -EINVAL);
                assert_string_equal(names[0], "ml");
        }
        assert_int_equal(serve_parse_names("", &names, &text), 0);
        assert_null(names);
        assert_int_equal(serve_parse_min_uid("500", &min, &text), 0);
        assert_int_equal(min, 500);
        assert_int_equal(serve_parse_min_uid("0", &min, &text), -ERANGE);
        assert_true(serve_parse_min_uid("4294967295", &min, &text) < 0);
        assert_true(serve_parse_min_uid("1000x", &min, &text) < 0);
        assert_int_equal(min, 500);
}

static void test_files(void **state) {
        static const struct {
                const char *text;
                uint32_t min;
        } cases[] = {
                { "", 1000 },
                { "# UID_MIN 5\nUID_MIN\t\t\t 2000\nUID_MAX 60000\nSYS_UID_MIN 100\n", 2000 },
                { "UID_MIN 0x3e8\n", 1000 },
                { "UID_MIN -5\n", 1000 },
                { "UID_MIN 0\n", 1000 },
                { "UID_MIN many\nUID_MIN 500", 500 },
                { "UID_MIN\n", 1000 },
        };
        struct serve_policy p = {};

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                root_put("/etc/login.defs", cases[i].text);
                assert_int_equal(serve_login_min_uid(root_kit), cases[i].min);
        }
        root_put("/etc/passwd", "root:x:0:0::/:/bin/sh\nprimus:x:996:996::/:/bin/false\n"
                                "primusx:x:5:5::/:/bin/false\nprimus-agent:x:995:995::/:/bin/false\n");
        serve_policy_complete(&p, root_kit);
        assert_int_equal(p.min_uid, 1000);
        assert_int_equal(p.n_own, 2);
        assert_non_null(strstr(why(&p, 995), "Primus itself"));
        p.min_uid = 10;
        serve_policy_complete(&p, "/nonexistent");
        assert_int_equal(p.min_uid, 10); /* as it was set */
        assert_int_equal(p.n_own, 0);
}

/* The one user that is everywhere, and his group; who is unknown is in no list. */
static void test_lookup(void **state) {
        struct serve_policy p = { .min_uid = 1000, .allow_users = NAMES("root", "primus-no-such-user") };
        _cleanup_free_ char *unknown = NULL;
        struct serve_person who;
        struct serve_policy copy;
        uint32_t uids[2];
        size_t n = 0;

        assert_int_equal(serve_lookup(&p, 0, &who, &unknown), 0);
        assert_true(who.allowed && !who.denied && !who.in_group);
        assert_string_equal(unknown, " primus-no-such-user");
        assert_int_equal(serve_lookup_uids(p.allow_users, uids, 2, &n), 0);
        assert_int_equal(n, 1);
        assert_int_equal(uids[0], 0);
        p = (struct serve_policy){ .allow_groups = NAMES("root"), .deny_users = NAMES("root") };
        assert_int_equal(serve_lookup(&p, 0, &who, NULL), 0);
        assert_true(who.denied && who.in_group && !who.allowed);
        assert_int_equal(serve_lookup(&p, 3999999999u, &who, NULL), 0);
        assert_true(!who.denied && !who.in_group && !who.allowed);
        assert_int_equal(serve_policy_copy(&copy, &p), 0);
        assert_string_equal(copy.allow_groups[0], "root");
        assert_null(copy.allow_users);
        serve_policy_done(&copy);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_never), cmocka_unit_test(test_system), cmocka_unit_test(test_root),
                cmocka_unit_test(test_lists), cmocka_unit_test(test_number), cmocka_unit_test(test_values),
                cmocka_unit_test(test_files), cmocka_unit_test(test_lookup),
        };
        return cmocka_run_group_tests(tests, root_setup, root_teardown);
}
