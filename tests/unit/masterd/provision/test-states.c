/* SPDX-License-Identifier: Apache-2.0 */
/* The table written out once more, as a list of what is allowed: every other pair is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"
#include "masterd/provision/decide.h"

static const struct {
        int from, event, to;
} allowed[] = {
        { INSTANCE_WANTED, INSTANCE_ACCEPTED, INSTANCE_STARTING },
        { INSTANCE_WANTED, INSTANCE_REGISTERED, INSTANCE_JOINED }, /* before `up` has ended */
        { INSTANCE_WANTED, INSTANCE_GIVEN_BACK, INSTANCE_STOPPING },
        { INSTANCE_STARTING, INSTANCE_ACCEPTED, INSTANCE_STARTING }, /* asked again after a restart of ours */
        { INSTANCE_STARTING, INSTANCE_REGISTERED, INSTANCE_JOINED },
        { INSTANCE_STARTING, INSTANCE_GIVEN_BACK, INSTANCE_STOPPING },
        { INSTANCE_JOINED, INSTANCE_ACCEPTED, INSTANCE_JOINED },
        { INSTANCE_JOINED, INSTANCE_REGISTERED, INSTANCE_JOINED },
        { INSTANCE_JOINED, INSTANCE_USABLE, INSTANCE_READY },
        { INSTANCE_JOINED, INSTANCE_GIVEN_BACK, INSTANCE_STOPPING },
        { INSTANCE_READY, INSTANCE_ACCEPTED, INSTANCE_READY },
        { INSTANCE_READY, INSTANCE_REGISTERED, INSTANCE_READY },
        { INSTANCE_READY, INSTANCE_LEAVES, INSTANCE_DRAINING },
        { INSTANCE_READY, INSTANCE_GIVEN_BACK, INSTANCE_STOPPING },
        { INSTANCE_DRAINING, INSTANCE_ACCEPTED, INSTANCE_DRAINING },
        { INSTANCE_DRAINING, INSTANCE_REGISTERED, INSTANCE_DRAINING },
        { INSTANCE_DRAINING, INSTANCE_KEPT, INSTANCE_READY },
        { INSTANCE_DRAINING, INSTANCE_GIVEN_BACK, INSTANCE_STOPPING },
        { INSTANCE_STOPPING, INSTANCE_ACCEPTED, INSTANCE_STOPPING }, /* given back while `up` ran */
        { INSTANCE_STOPPING, INSTANCE_GIVEN_BACK, INSTANCE_STOPPING },
};

static int expected(int from, int event) {
        for (size_t i = 0; i < ELEMENTSOF(allowed); i++)
                if (allowed[i].from == from && allowed[i].event == event)
                        return allowed[i].to;
        return _INSTANCE_STATE_INVALID;
}

static void test_table(void **state) {
        for (int s = 0; s < _INSTANCE_STATE_MAX; s++)
                for (int e = 0; e < _INSTANCE_EVENT_MAX; e++)
                        assert_int_equal(instance_next((enum instance_state)s, (enum instance_event)e),
                                         expected(s, e));
}

static void test_nothing_comes_back(void **state) {
        for (int e = 0; e < _INSTANCE_EVENT_MAX; e++) {
                int next = instance_next(INSTANCE_STOPPING, (enum instance_event)e);
                assert_true(next == INSTANCE_STOPPING || next == _INSTANCE_STATE_INVALID);
        }
}

static void test_names(void **state) {
        for (int s = 0; s < _INSTANCE_STATE_MAX; s++)
                assert_non_null(instance_state_to_string((enum instance_state)s));
        assert_string_equal(instance_state_to_string(INSTANCE_WANTED), "WANTED");
        assert_string_equal(instance_state_to_string(INSTANCE_STOPPING), "STOPPING");
        assert_null(instance_state_to_string(_INSTANCE_STATE_MAX));
        assert_null(instance_state_to_string(_INSTANCE_STATE_INVALID));
        /* On disk. */
        assert_int_equal(INSTANCE_WANTED, 0);
        assert_int_equal(INSTANCE_STOPPING, 5);
}

static void test_words_of_a_list(void **state) {
        for (int s = SEEN_PENDING; s <= SEEN_FAILED; s++)
                assert_int_equal(instance_seen_from_string(instance_seen_to_string((enum instance_seen)s)),
                                 s);
        assert_int_equal(instance_seen_from_string("pending"), SEEN_PENDING);
        assert_int_equal(instance_seen_from_string("failed"), SEEN_FAILED);
        /* Nobody lists what is not there. */
        assert_int_equal(instance_seen_from_string("absent"), _SEEN_MAX);
        assert_int_equal(instance_seen_from_string("not asked"), _SEEN_MAX);
        assert_int_equal(instance_seen_from_string("Running"), _SEEN_MAX);
        assert_int_equal(instance_seen_from_string(""), _SEEN_MAX);
        assert_int_equal(instance_seen_from_string(NULL), _SEEN_MAX);
        assert_string_equal(instance_seen_to_string(SEEN_ABSENT), "absent");
        assert_null(instance_seen_to_string(_SEEN_MAX));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_table),
                cmocka_unit_test(test_nothing_comes_back),
                cmocka_unit_test(test_names),
                cmocka_unit_test(test_words_of_a_list),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
