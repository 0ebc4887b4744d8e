/* SPDX-License-Identifier: Apache-2.0 */
/* NUMA nodes and labels, below a root of the test's own. */
#include "agentd/device/locality.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"
#include "tests/kit/root-kit.h"

/* Without gaps, each CPU that is online once; a node of memory alone is none. */
static void test_numa(void **state) {
        struct inventory i = {};

        root_put("/sys/devices/system/cpu/online", "0-7\n");
        assert_int_equal(locality_read_numa(root_kit, &i), 0);
        assert_string_equal(i.numa[0], "0-7"); /* no nodes: all in one */
        assert_null(i.numa[1]);
        inventory_done(&i);
        i = (struct inventory){};
        root_put("/sys/devices/system/node/node0/cpulist", "0-3,8-11\n"); /* of which some are offline */
        root_put("/sys/devices/system/node/node1/cpulist", "\n");
        root_put("/sys/devices/system/node/node10/cpulist", "6-7\n");
        root_put("/sys/devices/system/node/node2/cpulist", "4-5\n");
        root_put("/sys/devices/system/node/possible", "0-10\n");
        assert_int_equal(locality_read_numa(root_kit, &i), 0);
        assert_string_equal(i.numa[0], "0-3");
        assert_string_equal(i.numa[1], "4-5"); /* in the order of the kernel's numbers */
        assert_string_equal(i.numa[2], "6-7");
        assert_null(i.numa[3]);
        root_put("/sys/bus/pci/devices/0000:3b:00.0/local_cpulist", "6-7\n");
        root_put("/sys/bus/pci/devices/0000:af:00.0/local_cpulist", "nonsense\n");
        assert_int_equal(locality_numa_of_pci(root_kit, "0000:3b:00.0", &i), 2);
        assert_int_equal(locality_numa_of_pci(root_kit, "0000:af:00.0", &i), 0);
        assert_int_equal(locality_numa_of_pci(root_kit, "0000:01:00.0", &i), 0);
        inventory_done(&i);
}

static const char *label(const struct inventory *i, const char *key) {
        size_t l = strlen(key);

        for (size_t k = 0; i->labels[k]; k++)
                if (strncmp(i->labels[k], key, l) == 0 && (i->labels[k][l] == '=' || !i->labels[k][l]))
                        return i->labels[k] + l + (i->labels[k][l] == '=');
        return NULL;
}

/* What the configuration says goes before what is found. */
static void test_labels(void **state) {
        char os[] = "os=ours", zone[] = "zone=a", bad[] = "not a label";
        char *extra[] = { os, zone, bad, NULL };
        struct inventory i = {};

        root_put("/etc/os-release", "NAME=x\nID=debian\nVERSION_ID=\"12\"\n");
        assert_int_equal(locality_set_labels(root_kit, NULL, &i), 0);
        assert_string_equal(label(&i, "os"), "debian-12");
        assert_non_null(label(&i, "arch"));
        assert_non_null(label(&i, "kernel"));
        assert_null(label(&i, "zone"));
        inventory_done(&i);
        i = (struct inventory){};
        assert_int_equal(locality_set_labels(root_kit, extra, &i), 0);
        assert_string_equal(label(&i, "os"), "ours");
        assert_string_equal(label(&i, "zone"), "a");
        assert_null(label(&i, "not a label"));
        inventory_done(&i);
}

static void test_shm(void **state) {
        assert_int_equal(locality_read_shm("/nowhere"), 0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_numa, root_setup, root_teardown),
                cmocka_unit_test_setup_teardown(test_labels, root_setup, root_teardown),
                cmocka_unit_test(test_shm),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
