/* SPDX-License-Identifier: Apache-2.0 */
/* Samples over a sealed message, between programs that know more and fewer fields. */
#include "lib/wire/telemetry.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"
#include "tests/kit/message-kit.h"

static const struct executor_id id = { .job_uid = SD_ID128_MAKE(01, 02, 03, 04, 05, 06, 07, 08, 09, 0a, 0b,
                                                                0c, 0d, 0e, 0f, 10),
                                       .job = 418,
                                       .role = "worker",
                                       .index = 3,
                                       .attempt = 2 };

/* n values, 1, 2, 3 ..., as another program would write them. */
static void append_values(sd_bus_message *m, size_t n) {
        assert_true(sd_bus_message_open_container(m, 'r', LINK_ID_SIGNATURE "at") >= 0);
        assert_true(executor_id_append(m, &id) >= 0);
        assert_true(sd_bus_message_open_container(m, 'a', "t") >= 0);
        for (uint64_t i = 1; i <= n; i++)
                assert_true(sd_bus_message_append(m, "t", i) >= 0);
        assert_true(sd_bus_message_close_container(m) >= 0);
        assert_true(sd_bus_message_close_container(m) >= 0);
}

static void test_round_trip(void **state) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = message_new();
        struct telemetry_sample s = { .id = id }, got;

        telemetry_clear(s.values);
        s.values[TELEMETRY_CPU_USEC] = 7;
        s.values[TELEMETRY_PROGRESS_AGE_USEC] = 0;
        assert_true(sd_bus_message_open_container(m, 'a', TELEMETRY_SAMPLE_SIGNATURE) >= 0);
        assert_true(telemetry_sample_append(m, &s) >= 0);
        append_values(m, 2);                  /* an older agent */
        append_values(m, _TELEMETRY_MAX + 3); /* a newer one */
        append_values(m, 0);
        assert_true(sd_bus_message_close_container(m) >= 0);
        message_seal(m);
        assert_true(sd_bus_message_enter_container(m, 'a', TELEMETRY_SAMPLE_SIGNATURE) > 0);
        assert_int_equal(telemetry_sample_read(m, &got), 1);
        assert_true(executor_id_equal(&got.id, &id));
        assert_memory_equal(got.values, s.values, sizeof(s.values));
        assert_int_equal(telemetry_sample_read(m, &got), 1);
        assert_int_equal(got.values[1], 2);
        for (size_t i = 2; i < _TELEMETRY_MAX; i++)
                assert_true(got.values[i] == TELEMETRY_UNKNOWN);
        assert_int_equal(telemetry_sample_read(m, &got), 1);
        assert_int_equal(got.values[_TELEMETRY_MAX - 1], _TELEMETRY_MAX);
        assert_int_equal(telemetry_sample_read(m, &got), 1);
        assert_true(got.values[0] == TELEMETRY_UNKNOWN);
        assert_int_equal(telemetry_sample_read(m, &got), 0);
}

static void test_growth(void **state) {
        assert_int_equal(telemetry_growth(3, 10), 7);
        assert_int_equal(telemetry_growth(10, 3), 3); /* agentd was restarted */
        assert_true(telemetry_growth(TELEMETRY_UNKNOWN, 3) == TELEMETRY_UNKNOWN);
        assert_true(telemetry_growth(3, TELEMETRY_UNKNOWN) == TELEMETRY_UNKNOWN);
}

static void test_names(void **state) {
        for (size_t i = 0; i < _TELEMETRY_MAX; i++)
                for (size_t k = 0; k < i; k++)
                        assert_string_not_equal(telemetry_field_name(i), telemetry_field_name(k));
        assert_null(telemetry_field_name(_TELEMETRY_MAX));
        assert_int_equal(telemetry_field_kind(TELEMETRY_CPU_USEC), TELEMETRY_COUNTER);
        assert_int_equal(telemetry_field_kind(TELEMETRY_TASKS), TELEMETRY_GAUGE);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_round_trip),
                cmocka_unit_test(test_growth),
                cmocka_unit_test(test_names),
        };
        return cmocka_run_group_tests(tests, message_setup, message_teardown);
}
