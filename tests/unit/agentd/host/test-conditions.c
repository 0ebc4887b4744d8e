/* SPDX-License-Identifier: Apache-2.0 */
/* agentd/host/conditions.c: told at once when it gets worse, later when it gets better, and few times when it
 * flaps. */
#include "agentd/host/conditions.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/base/file.h"

#define SEC USEC_PER_SEC
#define SETTLE (30 * SEC)

struct heard {
        unsigned n;
        struct host_condition last;
};

static void on_tell(const struct host_condition *c, void *userdata) {
        struct heard *h = userdata;

        h->n++;
        h->last = *c;
}

static const struct conditions_ops ops = { .tell = on_tell };

static void test_worse_at_once_better_later(void **state) {
        _cleanup_(conditions_free_p) struct conditions *c = NULL;
        struct heard h = {};
        uint64_t t = 1000 * SEC;

        assert_int_equal(conditions_new(SETTLE, &ops, &h, &c), 0);
        conditions_set_at(c, t, CONDITION_LINK, "eth1", CONDITION_FINE, "");
        assert_int_equal(h.n, 0);
        conditions_set_at(c, t, CONDITION_LINK, "eth1", CONDITION_WARN, "no carrier");
        assert_int_equal(h.n, 1);
        assert_string_equal(h.last.text, "no carrier");
        conditions_set_at(c, t + SEC, CONDITION_LINK, "eth1", CONDITION_WARN, "no carrier");
        assert_int_equal(h.n, 1);
        conditions_set_at(c, t + 2 * SEC, CONDITION_LINK, "eth1", CONDITION_DRAIN, "no carrier\nat all");
        assert_int_equal(h.n, 2);
        assert_string_equal(h.last.text, "no carrier at all");
        conditions_set_at(c, t + 10 * SEC, CONDITION_LINK, "eth1", CONDITION_FINE, "");
        assert_int_equal(h.n, 2);
        assert_true(conditions_tick_at(c, t + 20 * SEC) == t + 10 * SEC + SETTLE);
        assert_int_equal(h.n, 2);
        (void)conditions_tick_at(c, t + 10 * SEC + SETTLE);
        assert_int_equal(h.n, 3);
        assert_int_equal(h.last.severity, CONDITION_FINE);
        assert_true(conditions_tick_at(c, t + 2 * 3600 * SEC) == USEC_INFINITY);
}

/* Down and up every ten seconds for an hour. */
static void test_flapping_is_bounded(void **state) {
        _cleanup_(conditions_free_p) struct conditions *c = NULL;
        struct heard h = {};
        uint64_t t = 1000 * SEC;

        assert_int_equal(conditions_new(SETTLE, &ops, &h, &c), 0);
        for (unsigned i = 0; i < 360; i++, t += 10 * SEC) {
                conditions_set_at(c, t, CONDITION_LINK, "eth1", i % 2 ? CONDITION_FINE : CONDITION_WARN,
                                  "no carrier");
                (void)conditions_tick_at(c, t);
        }
        assert_true(h.n <= 8); /* how often, every ten minutes, and never that it is over */
        assert_int_equal(h.last.severity, CONDITION_WARN);
        assert_non_null(strstr(h.last.text, "times by now"));
        /* And with pauses of two minutes: the settling time outgrows them. */
        h.n = 0;
        for (unsigned i = 0; i < 30; i++, t += 120 * SEC) {
                conditions_set_at(c, t, CONDITION_LINK, "eth2", i % 2 ? CONDITION_FINE : CONDITION_WARN,
                                  "no carrier");
                (void)conditions_tick_at(c, t + 119 * SEC);
        }
        assert_true(h.n < 30);
}

static void test_what_happened_ends(void **state) {
        _cleanup_(conditions_free_p) struct conditions *c = NULL;
        struct heard h = {};
        uint64_t t = 1000 * SEC;

        assert_int_equal(conditions_new(SETTLE, &ops, &h, &c), 0);
        conditions_happened_at(c, t, CONDITION_KERNEL, "ext4", CONDITION_DRAIN, "EXT4-fs error", 600 * SEC);
        conditions_happened_at(c, t + SEC, CONDITION_KERNEL, "ext4", CONDITION_NOTE, "EXT4-fs warning",
                               600 * SEC);
        assert_int_equal(h.last.severity, CONDITION_DRAIN);
        assert_true(conditions_tick_at(c, t + 2 * SEC) == t + 600 * SEC);
        conditions_happened_at(c, t + 300 * SEC, CONDITION_KERNEL, "ext4", CONDITION_DRAIN, "EXT4-fs error",
                               600 * SEC);
        (void)conditions_tick_at(c, t + 601 * SEC);
        assert_int_equal(h.last.severity, CONDITION_DRAIN);
        (void)conditions_tick_at(c, t + 901 * SEC);
        assert_int_equal(h.last.severity, CONDITION_FINE);
}

static void test_there_is_an_end_to_them(void **state) {
        _cleanup_(conditions_free_p) struct conditions *c = NULL;
        struct heard h = {};
        char subject[16];

        assert_int_equal(conditions_new(SETTLE, &ops, &h, &c), 0);
        for (unsigned i = 0; i < 3 * CONDITIONS_MAX; i++) {
                snprintf(subject, sizeof(subject), "disk%u", i);
                conditions_set_at(c, SEC, CONDITION_DISK, subject, CONDITION_NOTE, "nearly full");
        }
        assert_int_equal(h.n, CONDITIONS_MAX);
        /* What is worse finds room, and the one that gives it is told to be over. */
        conditions_set_at(c, SEC, CONDITION_GPU, "GPU-1", CONDITION_DRAIN, "Xid 79");
        assert_int_equal(h.n, CONDITIONS_MAX + 2);
        assert_int_equal(h.last.kind, CONDITION_GPU);
}

static int count(const struct host_condition *x, void *userdata) {
        (*(unsigned *)userdata)++;
        return 0;
}

static void test_over_a_restart(void **state) {
        _cleanup_(conditions_free_p) struct conditions *c = NULL, *again = NULL;
        char root[] = "/tmp/test-conditions-XXXXXX", path[64];
        struct heard h = {};
        uint64_t t = 1000 * SEC;
        unsigned n = 0;

        assert_non_null(mkdtemp(root));
        snprintf(path, sizeof(path), "%s/run/primus/agent", root);
        assert_int_equal(make_directories(path, 0755), 0);
        assert_int_equal(conditions_new(SETTLE, &ops, &h, &c), 0);
        assert_int_equal(conditions_load_at(c, t, root), 0); /* there is none */
        conditions_set_at(c, t, CONDITION_DISK, "/var", CONDITION_WARN, "92% full");
        conditions_happened_at(c, t, CONDITION_KERNEL, "mce", CONDITION_DRAIN, "MCE: bank 4", 3600 * SEC);
        assert_int_equal(conditions_save(c, root), 0);

        assert_int_equal(conditions_new(SETTLE, &ops, &h, &again), 0);
        assert_int_equal(conditions_load_at(again, t + 10 * SEC, root), 0);
        assert_int_equal(conditions_visit(again, count, &n), 0);
        assert_int_equal(n, 2);
        /* Nobody says again that the disk is full. */
        (void)conditions_tick_at(again, t + 200 * SEC);
        n = 0;
        assert_int_equal(conditions_visit(again, count, &n), 0);
        assert_int_equal(n, 1);
        (void)conditions_tick_at(again, t + 3600 * SEC);
        n = 0;
        assert_int_equal(conditions_visit(again, count, &n), 0);
        assert_int_equal(n, 0);
        assert_int_equal(remove_tree(root), 0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_worse_at_once_better_later),
                cmocka_unit_test(test_flapping_is_bounded),
                cmocka_unit_test(test_what_happened_ends),
                cmocka_unit_test(test_there_is_an_end_to_them),
                cmocka_unit_test(test_over_a_restart),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
