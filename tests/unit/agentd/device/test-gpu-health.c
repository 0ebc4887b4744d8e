/* SPDX-License-Identifier: Apache-2.0 */
#include "agentd/device/gpu-health.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"

static struct gpu_state a_gpu(void) {
        struct gpu_state s = { .uuid = "GPU-0" };

        for (size_t i = 0; i < _GPU_VALUE_MAX; i++)
                s.values[i] = GPU_UNKNOWN;
        return s;
}

static void assert_verdict(const struct gpu_state *s, enum gpu_severity severity, const char *part) {
        struct gpu_health h = {};
        char text[GPU_HEALTH_TEXT_MAX];

        assert_int_equal(gpu_health_judge(&h, s, text), severity);
        if (*part)
                assert_non_null(strstr(text, part));
        else
                assert_string_equal(text, "");
}

static void test_states(void **state) {
        struct gpu_state s = a_gpu();

        assert_verdict(&s, GPU_FINE, ""); /* nothing is known of it */
        memset(s.values, 0, sizeof(s.values));
        assert_verdict(&s, GPU_FINE, "");
        s.values[GPU_REMAP_PENDING] = 1;
        assert_verdict(&s, GPU_WARN, "to be remapped");
        s.values[GPU_ECC_UNCORRECTED] = 3;
        assert_verdict(&s, GPU_WARN, "3 ECC errors");
        s.values[GPU_RECOVERY] = GPU_RECOVERY_RESET;
        assert_verdict(&s, GPU_DRAIN, "demands a reset");
        s.values[GPU_RECOVERY] = GPU_RECOVERY_REBOOT;
        assert_verdict(&s, GPU_DRAIN, "restart of the host");
        s.values[GPU_REMAP_FAILURE] = 1;
        assert_verdict(&s, GPU_DRAIN, "to be replaced");
        s.lost = true;
        assert_verdict(&s, GPU_DRAIN, "fallen off");
        s = a_gpu();
        s.lost = s.reset_required = true;
        assert_verdict(&s, GPU_DRAIN, "demands a reset");
}

/* A clock that is held back for a moment is nothing; one that stays so is, until it is free again. */
static void test_throttle(void **state) {
        struct gpu_state s = a_gpu();
        struct gpu_health h = {};
        char text[GPU_HEALTH_TEXT_MAX];

        s.values[GPU_THROTTLE] = GPU_THROTTLE_THERMAL_HARDWARE | GPU_THROTTLE_POWER_CAP;
        s.values[GPU_TEMPERATURE] = 93;
        for (unsigned i = 1; i < GPU_HEALTH_LOOKS; i++)
                assert_int_equal(gpu_health_judge(&h, &s, text), GPU_FINE);
        assert_int_equal(gpu_health_judge(&h, &s, text), GPU_WARN);
        assert_non_null(strstr(text, "93"));
        s.values[GPU_THROTTLE] = GPU_THROTTLE_POWER_CAP; /* its own power limit is no fault */
        assert_int_equal(gpu_health_judge(&h, &s, text), GPU_FINE);
        s.values[GPU_THROTTLE] = GPU_THROTTLE_POWER_BRAKE;
        for (unsigned i = 0; i < GPU_HEALTH_LOOKS; i++)
                (void)gpu_health_judge(&h, &s, text);
        assert_non_null(strstr(text, "power brake"));
}

static void test_replays(void **state) {
        struct gpu_state s = a_gpu();
        struct gpu_health h = {};
        char text[GPU_HEALTH_TEXT_MAX];

        s.values[GPU_PCIE_REPLAYS] = 100000; /* from before: not this agent's to judge */
        assert_int_equal(gpu_health_judge(&h, &s, text), GPU_FINE);
        for (unsigned i = 0; i < 20; i++) {
                s.values[GPU_PCIE_REPLAYS] += 2;
                assert_int_equal(gpu_health_judge(&h, &s, text), GPU_FINE);
        }
        for (unsigned i = 0; i < GPU_HEALTH_LOOKS; i++) {
                s.values[GPU_PCIE_REPLAYS] += GPU_HEALTH_REPLAYS;
                (void)gpu_health_judge(&h, &s, text);
        }
        assert_non_null(strstr(text, "PCIe link"));
        assert_int_equal(gpu_health_judge(&h, &s, text), GPU_FINE);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_states),
                cmocka_unit_test(test_throttle),
                cmocka_unit_test(test_replays),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
