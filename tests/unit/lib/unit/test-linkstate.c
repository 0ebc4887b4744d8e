/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/unit/linkstate.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/file.h"

static char root[] = "/tmp/primus-link-XXXXXX";

static int setup(void **state) {
        _cleanup_free_ char *path = NULL;

        assert_non_null(mkdtemp(root));
        assert_true(asprintf(&path, "%s/run/primus/agent", root) >= 0);
        return make_directories(path, 0755);
}

static int teardown(void **state) {
        return remove_tree(root);
}

static void test_deadline(void **state) {
        const uint64_t s = USEC_PER_SEC;

        assert_true(link_state_deadline(&(struct link_state){ 0 }) == USEC_INFINITY);
        assert_true(link_state_deadline(&(struct link_state){ .acked_boot = 100 * s, .lost_usec = 60 * s }) ==
                    150 * s);
        assert_true(link_state_deadline(&(struct link_state){ .acked_boot = 100 * s, .lost_usec = 6 * s }) ==
                    104 * s);
        assert_true(link_state_deadline(&(struct link_state){ .acked_boot = 100 * s,
                                                              .lost_usec = USEC_INFINITY }) == USEC_INFINITY);
}

/* After agentd's own, and before masterd's, whatever LostSec= is. */
static void test_alone(void **state) {
        const uint64_t s = USEC_PER_SEC;

        assert_true(link_state_alone(&(struct link_state){ 0 }) == USEC_INFINITY);
        assert_true(link_state_alone(&(struct link_state){ .acked_boot = 100 * s, .lost_usec = 60 * s }) ==
                    151 * s);
        for (uint64_t lost = s / 10; lost < 3600 * s; lost = lost * 5 / 4) {
                const struct link_state l = { .acked_boot = 100 * s, .lost_usec = lost };
                const uint64_t own = link_state_deadline(&l), at = link_state_alone(&l);

                assert_true(own < at && at - own <= s);
                assert_true(100 * s + lost - at >= 2 * (at - own)); /* most of the margin is left */
        }
}

static void test_file(void **state) {
        struct link_state s = { .cluster.bytes = { 1, 2, 3 },
                                .term = 9,
                                .acked_boot = 12345,
                                .lost_usec = 60000000 },
                          t;
        _cleanup_free_ char *path = NULL;

        assert_int_equal(link_state_load(root, &t), 0); /* none yet */
        assert_true(t.term == 0);
        assert_int_equal(link_state_save(root, &s), 0);
        assert_int_equal(link_state_load(root, &t), 0);
        assert_true(t.term == 9 && t.acked_boot == 12345 && t.lost_usec == 60000000 &&
                    sd_id128_equal(s.cluster, t.cluster));

        assert_true(asprintf(&path, "%s/run/primus/agent/link", root) >= 0);
        assert_int_equal(
                write_file_atomic(path, "BOOT=000102030405060708090a0b0c0d0e0f\nTERM=4\n", 45, 0600, false),
                0);
        assert_int_equal(link_state_load(root, &t), 0); /* of another boot */
        assert_true(t.term == 0);
        assert_int_equal(write_file_atomic(path, "TERM=-4\n", 8, 0600, false), 0);
        assert_int_equal(link_state_load(root, &t), -EBADMSG);
        assert_true(t.term == 0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_deadline),
                cmocka_unit_test(test_alone),
                cmocka_unit_test(test_file),
        };
        return cmocka_run_group_tests(tests, setup, teardown);
}
