/* SPDX-License-Identifier: Apache-2.0 */
#include "agentd/device/inventory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"
#include "lib/base/file.h"
#include "tests/kit/root-kit.h"

static void test_nothing(void **state) {
        const struct inventory_limits none = { 0 };
        struct inventory i;

        assert_int_equal(inventory_read_host(root_kit, &none, &i), 0);
        assert_int_equal(i.cpus, 0);
        assert_true(i.memory == 0 && i.n_gpus == 0 && !i.controllers);
        assert_string_equal(i.os, "");
        inventory_done(&i);
}

static void test_host(void **state) {
        const struct inventory_limits limits = { .memory_reserve = 1 << 20 },
                                      fixed = { .cpus = 5, .memory = 12345 };
        struct inventory i;

        root_put("/sys/devices/system/cpu/online", "0-3,8,10-11\n");
        root_put("/proc/meminfo", "MemTotal:       4096 kB\nMemFree: 1 kB\n");
        root_put("/sys/fs/cgroup/cgroup.controllers", "cpuset cpu io memory pids\n");
        root_put("/etc/os-release", "NAME=x\nPRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\n");
        root_put("/proc/driver/nvidia/gpus/0000:3b:00.0/information",
                 "Model: \t\t NVIDIA H200\nIRQ:   \t\t 33\nGPU UUID: \t "
                 "GPU-11111111-2222-3333-4444-555555555555\nDevice Minor: \t 1\n");
        root_put("/proc/driver/nvidia/gpus/0000:19:00.0/information",
                 "Model: \t\t NVIDIA H200\nGPU UUID: \t GPU-????????\nDevice Minor: \t 0\n");
        root_put("/proc/driver/nvidia/gpus/0000:af:00.0/information",
                 "Model: \t\t NVIDIA H200\nDevice Minor: \t 7\n"); /* no node */
        root_put("/dev/nvidia0", "");
        root_put("/dev/nvidia1", "");
        root_put("/sys/class/kfd/kfd/topology/nodes/0/properties", "cpu_cores_count 8\nsimd_count 0\n");
        root_put("/sys/class/kfd/kfd/topology/nodes/1/properties",
                 "simd_count 304\ngfx_target_version 90402\ndrm_render_minor 128\nunique_id 255\n");
        root_put("/sys/class/kfd/kfd/topology/nodes/1/mem_banks/0/properties",
                 "size_in_bytes 206141652992\n");
        root_put("/dev/dri/renderD128", "");

        assert_int_equal(inventory_read_host(root_kit, &limits, &i), 0);
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

        assert_int_equal(inventory_read_host(root_kit, &fixed, &i), 0);
        assert_int_equal(i.cpus, 5);
        assert_true(i.memory == 12345);
        inventory_done(&i);
}

/* By NVIDIA's library: whole GPUs and parts with the nodes of their capabilities; what nobody could open is
 * left out. */
static void test_library(void **state) {
        struct gpu_state *states = calloc(4, sizeof(*states));
        struct inventory_limits limits = { .gpus = states, .n_gpus = 4 };
        struct inventory i;

        assert_non_null(states);
        for (unsigned k = 0; k < 4; k++) {
                for (size_t v = 0; v < _GPU_VALUE_MAX; v++)
                        states[k].values[v] = GPU_UNKNOWN;
                strcpy(states[k].model, "NVIDIA H100");
        }
        states[0] = (struct gpu_state){ .uuid = "GPU-a", .model = "NVIDIA H100", .minor = 0, .links = 2 };
        states[0].values[GPU_MEMORY_TOTAL] = 1000;
        strcpy(states[1].uuid, "GPU-b");
        states[1].index = 1;
        states[1].minor = 1;
        states[1].cut = true; /* only its parts */
        strcpy(states[2].uuid, "MIG-c");
        strcpy(states[2].mig, "1g.10gb");
        strcpy(states[2].parent, "GPU-b");
        states[2].minor = 1;
        states[2].instance = 3;
        states[2].compute_instance = 0;
        strcpy(states[3].uuid, "MIG-d"); /* without capabilities */
        strcpy(states[3].mig, "2g.20gb");
        states[3].minor = 1;
        states[3].instance = 4;
        root_put("/proc/driver/nvidia/capabilities/gpu1/mig/gi3/access",
                 "DeviceFileMinor: 30\nDeviceFileMode: 292\n");
        root_put("/proc/driver/nvidia/capabilities/gpu1/mig/gi3/ci0/access", "DeviceFileMinor: 31\n");
        root_put("/dev/nvidia0", "");
        root_put("/dev/nvidia1", "");
        assert_int_equal(inventory_read_host(root_kit, &limits, &i), 0);
        assert_true(i.n_gpus >= 2);
        assert_string_equal(i.gpus[0].uuid, "GPU-a");
        assert_null(i.gpus[0].mig);
        assert_true(i.gpus[0].memory == 1000 && i.gpus[0].links == 0); /* the other is not offered */
        assert_string_equal(i.gpus[1].uuid, "MIG-c");
        assert_string_equal(i.gpus[1].mig, "1g.10gb");
        assert_string_equal(i.gpus[1].parent, "GPU-b");
        assert_string_equal(i.gpus[1].nodes,
                            "/dev/nvidia1 /dev/nvidia-caps/nvidia-cap30 /dev/nvidia-caps/nvidia-cap31");
        for (size_t k = 2; k < i.n_gpus; k++)
                assert_true(strncmp(i.gpus[k].uuid, "kfd-", 4) == 0);
        inventory_done(&i);
        free(states);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_nothing),
                cmocka_unit_test(test_host),
                cmocka_unit_test(test_library),
        };
        return cmocka_run_group_tests(tests, root_setup, root_teardown);
}
