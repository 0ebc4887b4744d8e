/* SPDX-License-Identifier: Apache-2.0 */
/* Users take turns, none holds more than his share, and each keeps his own order. */
#include "lib/base/turns.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

struct item {
        struct turn turn;
        uint32_t uid;
        unsigned n;
};

static void wait_for(struct turns *t, struct item *x, uint32_t uid, unsigned n) {
        *x = (struct item){ .uid = uid, .n = n };
        assert_int_equal(turns_wait(t, uid, &x->turn), 0);
}

static void expect(struct turns *t, uint32_t uid, unsigned n) {
        struct item *x = (struct item *)turns_next(t);

        assert_non_null(x);
        assert_int_equal(x->uid, uid);
        assert_int_equal(x->n, n);
        assert_int_equal(x->turn.user->uid, uid);
}

static void test_turns(void **state) {
        struct turns t = { .places = 8, .share = 6 };
        struct item many[10], few[2];
        struct turns_user *user;

        for (unsigned i = 0; i < 10; i++)
                wait_for(&t, many + i, 1, i);
        expect(&t, 1, 0);
        user = many[0].turn.user;
        wait_for(&t, few, 2, 0);
        wait_for(&t, few + 1, 2, 1);
        /* The one behind whom he stands had his turn before he came. */
        expect(&t, 1, 1);
        expect(&t, 2, 0);
        expect(&t, 1, 2);
        expect(&t, 2, 1);
        for (unsigned i = 3; i < 6; i++)
                expect(&t, 1, i);
        assert_int_equal(t.held, 8);
        assert_false(turns_may_go(&t));
        assert_null(turns_next(&t));
        /* There is a place, and it is not his. */
        turns_give_back(&t, few[0].turn.user);
        assert_null(turns_next(&t));
        turns_give_back(&t, user);
        expect(&t, 1, 6);
        assert_null(turns_next(&t));
        for (unsigned i = 0; i < 6; i++)
                turns_give_back(&t, user);
        turns_give_back(&t, few[1].turn.user);
        for (unsigned i = 7; i < 10; i++)
                expect(&t, 1, i);
        for (unsigned i = 0; i < 3; i++)
                turns_give_back(&t, many[9].turn.user);
        assert_int_equal(t.held, 0);
        assert_null(t.users);
}

static void test_dropped(void **state) {
        struct turns t = { .places = 1, .share = 1 };
        struct item list[4];

        for (unsigned i = 0; i < 4; i++)
                wait_for(&t, list + i, i % 2, i);
        expect(&t, 0, 0);
        for (unsigned i = 0; i < 3; i++)
                assert_non_null(turns_drop(&t));
        assert_null(turns_drop(&t));
        turns_give_back(&t, list[0].turn.user);
        assert_null(t.users);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_turns),
                cmocka_unit_test(test_dropped),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
