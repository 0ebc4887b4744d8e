/* SPDX-License-Identifier: Apache-2.0 */
#include "masterd/checkpoint/registry.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static struct checkpoint *put(struct checkpoints *c, uint64_t id, uint32_t owner, const char *path,
                              int expected) {
        char mine[64];
        struct checkpoint_facts f = {
                .path = mine, .host = "n1", .metrics = "{}", .metric = "", .owner = owner, .job = 7
        };
        struct checkpoint *x = NULL;

        snprintf(mine, sizeof(mine), "%s", path); /* it keeps texts of its own */
        assert_int_equal(checkpoints_put(c, id, &f, &x), expected);
        memset(mine, 'x', sizeof(mine) - 1);
        return x;
}

static void test_put(void **state) {
        struct checkpoints *c;
        struct checkpoint *a, *b, *other;

        assert_int_equal(checkpoints_new(&c), 0);
        a = put(c, 0, 1000, "/a", 0);
        b = put(c, 0, 1000, "/b", 0);
        other = put(c, 0, 1001, "/a", 0);
        assert_int_equal(a->id, 1);
        assert_int_equal(other->id, 3);
        assert_string_equal(a->facts.path, "/a");
        assert_ptr_equal(checkpoints_find(c, 1000, "/a"), a);
        assert_ptr_equal(checkpoints_find(c, 1001, "/a"), other);
        assert_null(checkpoints_find(c, 1001, "/b"));
        assert_null(checkpoints_find(c, 1002, "/a"));
        /* Again: the same one, which keeps its pin, and its place. */
        a->pinned = a->marked = true;
        assert_ptr_equal(put(c, 0, 1000, "/a", 1), a);
        assert_true(a->pinned && !a->marked && a->id == 1);
        assert_ptr_equal(checkpoints_find(c, 1000, "/a"), a);
        assert_ptr_equal(checkpoints_after(c, 1000, 0), a);
        assert_ptr_equal(checkpoints_after(c, 1000, 1), b);
        assert_null(checkpoints_after(c, 1000, 2));
        assert_ptr_equal(checkpoints_after(c, 1001, 0), other);
        assert_ptr_equal(checkpoints_after(c, 1001, 2), other);
        assert_null(checkpoints_after(c, 1002, 0));
        assert_ptr_equal(checkpoints_after_of_all(c, 2), other);
        /* Behind one that has gone. */
        checkpoints_remove(c, b);
        assert_null(checkpoints_get(c, 2));
        assert_null(checkpoints_after(c, 1000, 1));
        assert_ptr_equal(checkpoints_after_of_all(c, 2), other);
        checkpoints_remove(c, other);
        assert_null(checkpoints_after(c, 1001, 0));
        assert_int_equal(put(c, 0, 1001, "/a", 0)->id, 4); /* no number twice */
        checkpoints_free(c);
        checkpoints_free(NULL);
}

static void test_load(void **state) {
        struct checkpoints *c;

        assert_int_equal(checkpoints_new(&c), 0);
        (void)put(c, 5, 1000, "/a", 0);
        (void)put(c, 5, 1000, "/b", -EEXIST);
        (void)put(c, 4, 1000, "/b", -EEXIST);
        assert_null(checkpoints_find(c, 1000, "/b"));
        checkpoints_begin(c, 3);
        assert_int_equal(checkpoints_next_id(c), 6);
        checkpoints_begin(c, 100);
        assert_int_equal(put(c, 0, 1000, "/b", 0)->id, 100);
        checkpoints_free(c);
}

static void test_bounds(void **state) {
        struct checkpoints *c;
        char path[32];

        assert_int_equal(checkpoints_new(&c), 0);
        for (uint32_t i = 0; i < CHECKPOINTS_MAX; i++) {
                snprintf(path, sizeof(path), "/%u", i);
                (void)put(c, 0, 1000 + i / CHECKPOINTS_PER_USER_MAX, path, 0);
        }
        (void)put(c, 0, 1000, "/more", -ENOSPC);
        (void)put(c, 0, 2000, "/more", -ENOSPC);
        checkpoints_remove(c, checkpoints_get(c, CHECKPOINTS_MAX));
        (void)put(c, 0, 1000, "/more", -EDQUOT);
        (void)put(c, 0, 1000, "/0", 1); /* what is there is */
        (void)put(c, 0, 2000, "/more", 0);
        checkpoints_free(c);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_put),
                cmocka_unit_test(test_load),
                cmocka_unit_test(test_bounds),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
