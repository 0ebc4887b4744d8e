/* SPDX-License-Identifier: Apache-2.0 */
/* Who may look: visible x what the caller is to the owner and the pool. */
#include "masterd/core/sight.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define ML 1000u
#define LAB 4000u
#define PRODDERS 4001u
#define USERS 100u

static struct pool open_pool = { .policy.name = "open", .visible_max = VISIBLE_ALL };
static uint32_t named[] = { ML, 1005 }, prodders[] = { PRODDERS };
static struct pool lab_pool = { .policy.name = "lab",
                                .visible_max = VISIBLE_ALL,
                                .users = (char *)"ml named",
                                .groups = (char *)"prodders",
                                .named = named,
                                .n_named = 2,
                                .gids = prodders,
                                .n_gids = 1,
                                .group = (char *)"lab",
                                .gid = LAB,
                                .group_known = true };
static uint32_t shared[] = { 5000 };
static const struct pools pools = { .shared_gids = shared, .n_shared = 1 };

static uint32_t ml_groups[] = { ML, LAB }, lab_groups[] = { 1001, LAB }, prod_groups[] = { 1002, PRODDERS },
                mls_groups[] = { ML, 1004 }, none_groups[] = { 1003 };
static const struct person ml = {
        .uid = ML, .found = true, .name = "ml", .gid = ML, .groups = ml_groups, .n_groups = 2
};
static const struct person persons[] = {
        { .uid = 1001, .found = true, .gid = 1001, .groups = lab_groups, .n_groups = 2 },
        { .uid = 1002, .found = true, .gid = 1002, .groups = prod_groups, .n_groups = 2 },
        { .uid = 1004, .found = true, .gid = 1004, .groups = mls_groups, .n_groups = 2 },
        { .uid = 1005, .found = true, .gid = 1003, .groups = none_groups, .n_groups = 1 },
        { .uid = 1003, .found = true, .gid = 1003, .groups = none_groups, .n_groups = 1 },
        { .uid = 33, .found = true, .gid = 33, .groups = none_groups, .n_groups = 1 },
        { .uid = 65534, .found = true, .gid = 65534, .groups = none_groups, .n_groups = 1 },
};
enum {
        IN_LAB,
        IN_PRODDERS,
        IN_MLS,
        NAMED,
        NEITHER,
        SYSTEM,
        NOBODY,
        N_PERSONS
};

static struct sight ask(uint32_t visible, struct pool *pool, const struct person *who) {
        return (struct sight){ .visible = visible,
                               .owner = ML,
                               .caller = who->uid,
                               .pools = &pools,
                               .pool = pool,
                               .who = who,
                               .of = &ml,
                               .min_uid = 1000 };
}

static void test_table(void **state) {
        static const struct {
                uint32_t visible;
                struct pool *pool;
                bool may[N_PERSONS];
        } rows[] = {
                { VISIBLE_OWNER, &lab_pool, {} },
                { VISIBLE_OWNER, &open_pool, {} },
                { _VISIBLE_MAX, &open_pool, {} }, /* nobody has said anything */
                { VISIBLE_GROUP, &lab_pool, { [IN_LAB] = true } },
                { VISIBLE_GROUP, &open_pool, { [IN_MLS] = true } },
                { VISIBLE_POOL, &lab_pool, { [IN_PRODDERS] = true, [NAMED] = true } },
                { VISIBLE_POOL, &open_pool, { true, true, true, true, true, false, false } },
                { VISIBLE_ALL, &lab_pool, { true, true, true, true, true, true, true } },
                { VISIBLE_GROUP, NULL, {} }, /* the pool is no more, nor is it known who might use it */
                { VISIBLE_POOL, NULL, {} },
                { VISIBLE_ALL, NULL, {} }, /* nor what its VisibleMax= was */
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++)
                for (size_t k = 0; k < N_PERSONS; k++) {
                        struct sight s = ask(rows[i].visible, rows[i].pool, persons + k);
                        assert_int_equal(sight_may(&s), rows[i].may[k]);
                        /* of whom nothing is known: only where nothing has to be */
                        s.who = NULL;
                        assert_int_equal(sight_may(&s) && sight_needs_caller(&s),
                                         k == NAMED && rows[i].visible == VISIBLE_POOL &&
                                                 rows[i].pool == &lab_pool);
                        s.caller = 0;
                        assert_true(sight_may(&s));
                        s.caller = ML;
                        assert_true(sight_may(&s));
                        assert_false(sight_needs_caller(&s));
                }
}

/* The owner's own group, where it is everybody's, a system's or not known. */
static void test_own_group(void **state) {
        static const uint32_t gids[] = { 0, USERS, 999, 5000, 65534, UINT32_MAX };
        struct sight s = ask(VISIBLE_GROUP, &open_pool, persons + IN_MLS);
        struct person owner = ml, who = persons[IN_MLS];
        char text[SIGHT_TEXT_MAX];

        s.of = &owner;
        s.who = &who;
        assert_true(sight_may(&s) && sight_needs_owner(&s));
        assert_string_equal(sight_text(&s, "ml", text, sizeof(text)),
                            "visible to members of ml's primary group (1000)");
        for (size_t i = 0; i < ELEMENTSOF(gids); i++) {
                uint32_t both[1] = { gids[i] };
                owner.gid = gids[i];
                who.groups = both;
                who.n_groups = 1;
                assert_false(sight_may(&s));
                assert_string_equal(sight_text(&s, "ml", text, sizeof(text)), "visible to its owner only");
        }
        owner = ml;
        who = persons[IN_MLS];
        owner.found = false;
        assert_false(sight_may(&s));
        assert_string_equal(sight_text(&s, "ml", text, sizeof(text)), "visible to its owner only");
        s.of = NULL; /* not known now, and perhaps in a moment */
        assert_false(sight_may(&s));
        assert_string_equal(sight_text(&s, "ml", text, sizeof(text)),
                            "visible to members of ml's primary group, if that is a team");
        s.of = &ml;
        who.found = false;
        assert_false(sight_may(&s));
}

static void test_pools(void **state) {
        struct sight s = ask(VISIBLE_ALL, &lab_pool, persons + NEITHER);
        struct pool p = lab_pool;
        struct pools all = { .visible = _VISIBLE_MAX };
        char text[SIGHT_TEXT_MAX];

        s.pool = &p;
        assert_string_equal(sight_text(&s, "ml", text, sizeof(text)), "visible to everybody");
        p.visible_max = VISIBLE_GROUP; /* lowered later: what there is follows */
        assert_false(sight_may(&s));
        assert_string_equal(sight_text(&s, "ml", text, sizeof(text)), "visible to members of group lab");
        s.who = persons + IN_LAB;
        s.caller = s.who->uid;
        assert_true(sight_may(&s));
        p.group_known = false;
        p.gid = LAB;
        assert_false(sight_may(&s));

        p = lab_pool;
        p.visible = _VISIBLE_MAX;
        assert_int_equal(pool_visible(&all, &p), VISIBLE_GROUP);
        p.group = NULL;
        assert_int_equal(pool_visible(&all, &p), VISIBLE_OWNER);
        all.visible = VISIBLE_POOL;
        assert_int_equal(pool_visible(&all, &p), VISIBLE_POOL);
        p.visible = VISIBLE_ALL;
        assert_int_equal(pool_visible(&all, &p), VISIBLE_ALL);
        p.visible_max = VISIBLE_OWNER;
        assert_int_equal(pool_visible(&all, &p), VISIBLE_OWNER);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_table),
                cmocka_unit_test(test_own_group),
                cmocka_unit_test(test_pools),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
