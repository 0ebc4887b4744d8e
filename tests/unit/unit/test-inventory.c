/* SPDX-License-Identifier: Apache-2.0 */
#include "agentd/device/inventory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"
#include "lib/base/file.h"

static char root[] = "/tmp/primus-inventory-XXXXXX";

static int setup(void **state) {
        return mkdtemp(root) ? 0 : -1;
}

static int teardown(void **state) {
        return remove_tree(root);
}

static void put(const char *path, const char *text) {
        _cleanup_free_ char *full = NULL, *directory = NULL;

        assert_true(asprintf(&full, "%s%s", root, path) >= 0);
        directory = strndup(full, (size_t)(strrchr(full, '/') - full));
        assert_int_equal(make_directories(directory, 0755), 0);
        assert_int_equal(write_file_atomic(full, text, strlen(text), 0644, false), 0);
}

static void test_nothing(void **state) {
        const struct inventory_limits none = { 0 };
        struct inventory i;

        assert_int_equal(inventory_read_host(root, &none, &i), 0);
        assert_int_equal(i.cpus, 0);
        assert_true(i.memory == 0 && i.n_gpus == 0 && !i.controllers);
        assert_string_equal(i.os, "");
        inventory_done(&i);
}

static void test_host(void **state) {
        const struct inventory_limits limits = { .memory_reserve = 1 << 20 },
                                      fixed = { .cpus = 5, .memory = 12345 };
        struct inventory i;

        put("/sys/devices/system/cpu/online", "0-3,8,10-11\n");
        put("/proc/meminfo", "MemTotal:       4096 kB\nMemFree: 1 kB\n");
        put("/sys/fs/cgroup/cgroup.controllers", "cpuset cpu io memory pids\n");
        put("/etc/os-release", "NAME=x\nPRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\n");
        put("/proc/driver/nvidia/gpus/0000:3b:00.0/information",
            "Model: \t\t NVIDIA H200\nIRQ:   \t\t 33\nGPU UUID: \t "
            "GPU-11111111-2222-3333-4444-555555555555\nDevice Minor: \t 1\n");
        put("/proc/driver/nvidia/gpus/0000:19:00.0/information",
            "Model: \t\t NVIDIA H200\nGPU UUID: \t GPU-????????\nDevice Minor: \t 0\n");
        put("/proc/driver/nvidia/gpus/0000:af:00.0/information",
            "Model: \t\t NVIDIA H200\nDevice Minor: \t 7\n"); /* no node */
        put("/dev/nvidia0", "");
        put("/dev/nvidia1", "");
        put("/sys/class/kfd/kfd/topology/nodes/0/properties", "cpu_cores_count 8\nsimd_count 0\n");
        put("/sys/class/kfd/kfd/topology/nodes/1/properties",
            "simd_count 304\ngfx_target_version 90402\ndrm_render_minor 128\nunique_id 255\n");
        put("/sys/class/kfd/kfd/topology/nodes/1/mem_banks/0/properties", "size_in_bytes 206141652992\n");
        put("/dev/dri/renderD128", "");

        assert_int_equal(inventory_read_host(root, &limits, &i), 0);
        assert_int_equal(i.cpus, 7);
        assert_true(i.memory == (4096 << 10) - (1 << 20));
        assert_true(i.controllers);
        assert_string_equal(i.os, "Debian GNU/Linux 12 (bookworm)");
        assert_int_equal(i.n_gpus, 3);
        assert_string_equal(i.gpus[0].uuid, "pci-0000:19:00.0"); /* PCI order, as CUDA counts them */
        assert_string_equal(i.gpus[0].nodes, "/dev/nvidia0");
        assert_string_equal(i.gpus[1].uuid, "GPU-11111111-2222-3333-4444-555555555555");
        assert_string_equal(i.gpus[1].model, "NVIDIA H200");
        assert_string_equal(i.gpus[2].uuid, "kfd-00000000000000ff");
        assert_string_equal(i.gpus[2].nodes, "/dev/dri/renderD128");
        assert_true(i.gpus[2].memory == UINT64_C(206141652992));
        inventory_done(&i);

        assert_int_equal(inventory_read_host(root, &fixed, &i), 0);
        assert_int_equal(i.cpus, 5);
        assert_true(i.memory == 12345);
        inventory_done(&i);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_nothing),
                cmocka_unit_test(test_host),
        };
        return cmocka_run_group_tests(tests, setup, teardown);
}
