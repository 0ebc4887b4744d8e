/* SPDX-License-Identifier: Apache-2.0 */
#include "agentd/metrics/host.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/file.h"
#include "tests/kit/root-kit.h"

static char *page(bool agent) {
        _cleanup_(exposition_free_p) struct exposition *x = NULL;
        char *text;
        size_t size;

        assert_int_equal(exposition_new(&x), 0);
        exposition_begin(x, true);
        if (agent)
                host_add_agent(x, "", "");
        else
                host_add(x, root_kit, "node=\"a\"");
        assert_int_equal(exposition_end(x, &text, &size), 0);
        text = realloc(text, size + 1);
        text[size] = 0;
        return text;
}

static void test_nothing(void **state) {
        _cleanup_free_ char *text = page(false);

        assert_string_equal(text, "# EOF\n");
}

static void test_host(void **state) {
        static const char *const expected[] = {
                "primus_node_load{node=\"a\",minutes=\"1\"} 0.5\n",
                "primus_node_load{node=\"a\",minutes=\"5\"} 12.07\n",
                "primus_node_load{node=\"a\",minutes=\"15\"} 3\n",
                "primus_node_memory_total_bytes{node=\"a\"} 2097152\n",
                "primus_node_memory_available_bytes{node=\"a\"} 1024\n",
                "{node=\"a\",resource=\"cpu\",kind=\"some\"} 0.000007\n",
                "{node=\"a\",resource=\"io\",kind=\"full\"} 9\n",
        };
        _cleanup_free_ char *text = NULL;

        root_put("/proc/loadavg", "0.50 12.07 3.00 1/100 4242\n");
        root_put("/proc/meminfo", "MemTotal:  2048 kB\nMemFree: 5 kB\nMemAvailable: 1 kB\n");
        root_put("/proc/pressure/cpu", "some avg10=0.00 total=7\nfull avg10=0.00 total=8\n");
        root_put("/proc/pressure/io", "some avg10=0.00 total=1\nfull avg10=0.00 total=9000000\n");
        text = page(false);
        for (size_t i = 0; i < ELEMENTSOF(expected); i++)
                assert_non_null(strstr(text, expected[i]));
        assert_null(strstr(text, "resource=\"cpu\",kind=\"full\""));
        assert_null(strstr(text, "resource=\"memory\""));
}

static void test_agent(void **state) {
        _cleanup_free_ char *text = page(true);

        assert_non_null(strstr(text, "primus_agent_cpu_seconds_total 0"));
        assert_non_null(strstr(text, "primus_agent_memory_resident_bytes "));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_nothing),
                cmocka_unit_test(test_host),
                cmocka_unit_test(test_agent),
        };

        return cmocka_run_group_tests(tests, root_setup, root_teardown);
}
