/* SPDX-License-Identifier: Apache-2.0 */
/* agentd/telemetry/sampling-page-host.c: the devices of the host. */
#include "agentd/telemetry/sampling-page-host.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static struct exposition *x;

static int setup(void **state) {
        if (exposition_new(&x) < 0)
                return -1;
        exposition_begin(x, true);
        return 0;
}

static int teardown(void **state) {
        exposition_free(x);
        return 0;
}

static char *page(void) {
        size_t size;
        char *text;

        assert_int_equal(exposition_end(x, &text, &size), 0);
        text = realloc(text, size + 1);
        assert_non_null(text);
        text[size] = 0;
        return text;
}

static void test_gpus(void **state) {
        static const char *const expected[] = {
                "primus_gpu_info{node=\"a\",gpu=\"GPU-1\",model=\"Some "
                "\\\"GPU\\\"\",pci=\"0000:3b:00.0\",mig=\"\",parent=\"\"} 1\n",
                "primus_gpu_lost{node=\"a\",gpu=\"GPU-1\"} 0\n"
                "primus_gpu_lost{node=\"a\",gpu=\"GPU-2\"} 1\n",
                "primus_gpu_utilization_ratio{node=\"a\",gpu=\"GPU-1\"} 0.5\n",
                "primus_gpu_energy_joules_total{node=\"a\",gpu=\"GPU-1\"} 1.25\n",
                "primus_gpu_ecc_errors_total{node=\"a\",gpu=\"GPU-1\",type=\"corrected\"} 3\n"
                "primus_gpu_ecc_errors_total{node=\"a\",gpu=\"GPU-1\",type=\"uncorrected\"} 0\n",
                "primus_gpu_throttled{node=\"a\",gpu=\"GPU-1\",reason=\"power-cap\"} 1\n"
                "primus_gpu_throttled{node=\"a\",gpu=\"GPU-1\",reason=\"hardware\"} 0\n",
        };
        static struct gpu_state gpus[2];
        _cleanup_free_ char *text = NULL;

        for (size_t i = 0; i < 2; i++) {
                snprintf(gpus[i].uuid, sizeof(gpus[i].uuid), "GPU-%zu", i + 1);
                for (size_t v = 0; v < _GPU_VALUE_MAX; v++)
                        gpus[i].values[v] = GPU_UNKNOWN;
        }
        strcpy(gpus[0].model, "Some \"GPU\"");
        strcpy(gpus[0].pci, "0000:3b:00.0");
        gpus[0].values[GPU_UTILIZATION] = 500;
        gpus[0].values[GPU_ENERGY_MILLIJOULES] = 1250;
        gpus[0].values[GPU_ECC_CORRECTED] = 3;
        gpus[0].values[GPU_ECC_UNCORRECTED] = 0;
        gpus[0].values[GPU_THROTTLE] = GPU_THROTTLE_POWER_CAP;
        gpus[1].lost = true;
        page_add_gpus(x, "node=\"a\"", gpus, 2);
        text = page();
        for (size_t i = 0; i < ELEMENTSOF(expected); i++)
                assert_non_null(strstr(text, expected[i]));
        assert_null(strstr(text, "primus_gpu_power"));
        assert_null(strstr(text, "GPU-2\",reason"));
}

static void test_links(void **state) {
        static const char *const expected[] = {
                "primus_node_link_up{node=\"a\",device=\"eth0\"} "
                "1\nprimus_node_link_up{node=\"a\",device=\"eth1\"} 0\n",
                "primus_node_link_speed_bytes{node=\"a\",device=\"eth0\"} 3125000000\n#",
                "primus_node_link_network_bytes_total{node=\"a\",device=\"eth0\",dir=\"receive\"} 1\n"
                "primus_node_link_network_bytes_total{node=\"a\",device=\"eth0\",dir=\"transmit\"} 2\n",
                "primus_node_link_downs_total{node=\"a\",device=\"eth1\"} 4\n",
        };
        const struct link_facts links[] = {
                { .name = "eth0", .up = true, .carrier = true, .mbps = 25000, .rx_bytes = 1, .tx_bytes = 2 },
                { .name = "eth1", .up = true, .carrier_downs = 4 },
        };
        _cleanup_free_ char *text = NULL;

        page_add_links(x, "node=\"a\"", links, 2);
        text = page();
        for (size_t i = 0; i < ELEMENTSOF(expected); i++)
                assert_non_null(strstr(text, expected[i]));
}

static void test_none(void **state) {
        _cleanup_free_ char *text = NULL;

        page_add_gpus(x, "node=\"a\"", NULL, 0);
        page_add_links(x, "node=\"a\"", NULL, 0);
        text = page();
        assert_string_equal(text, "# EOF\n");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_gpus, setup, teardown),
                cmocka_unit_test_setup_teardown(test_links, setup, teardown),
                cmocka_unit_test_setup_teardown(test_none, setup, teardown),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
