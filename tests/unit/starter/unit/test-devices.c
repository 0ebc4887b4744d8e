/* SPDX-License-Identifier: Apache-2.0 */
/* Device rules and the names of visible GPUs, of orders of all kinds. */
#include "starter/unit/devices.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "lib/unit/identity.h"

#include "tests/kit/message-kit.h"

/* Two whole GPUs, one cut into two, one of AMD's with a number of its own and one without. */
static struct gpu_info gpus[] = {
        { .uuid = (char *)"GPU-0", .nodes = (char *)"/dev/nvidia0" },
        { .uuid = (char *)"GPU-1", .nodes = (char *)"/dev/nvidia1" },
        { .uuid = (char *)"MIG-a",
          .nodes = (char *)"/dev/nvidia2 /dev/nvidia-caps/nvidia-cap12 "
                           "/dev/nvidia-caps/nvidia-cap13" },
        { .uuid = (char *)"MIG-b",
          .nodes = (char *)"/dev/nvidia2 /dev/nvidia-caps/nvidia-cap21 "
                           "/dev/nvidia-caps/nvidia-cap22" },
        { .uuid = (char *)"kfd-00000000000000ff", .nodes = (char *)"/dev/dri/renderD128" },
        { .uuid = (char *)"kfd-at-0:6200", .nodes = (char *)"/dev/dri/renderD129" },
};
static const struct inventory inventory = { .gpus = gpus, .n_gpus = ELEMENTSOF(gpus) };
static char *none[] = { NULL };

static struct unit_context context_of(const struct inventory *i) {
        return (struct unit_context){
                .node = "n2", .term = 7, .directory = "/data", .work = "/work", .inventory = i
        };
}

static struct start_order order_of(char **list) {
        return (struct start_order){ .id = { .job = 418, .role = "worker", .attempt = 1 },
                                     .env = none,
                                     .identity = none,
                                     .gpus = list,
                                     .visible_gpus = list };
}

/* Everything that is said of a property, in one line: "null rw,zero rw". */
static void read_nodes(sd_bus_message *m, char *buf, size_t size) {
        const char *node, *rights;
        size_t l = strlen(buf);

        assert_true(sd_bus_message_enter_container(m, 'v', "a(ss)") > 0);
        assert_true(sd_bus_message_enter_container(m, 'a', "(ss)") > 0);
        l += (size_t)snprintf(buf + l, size - l, "[");
        while (sd_bus_message_read(m, "(ss)", &node, &rights) > 0) {
                assert_string_equal(rights, "rw"); /* no m: nothing is made anew */
                l += (size_t)snprintf(buf + l, size - l, "%s ", node);
        }
        snprintf(buf + l, size - l, "]");
        assert_true(sd_bus_message_exit_container(m) >= 0);
        assert_true(sd_bus_message_exit_container(m) >= 0);
}

static void read_properties(sd_bus_message *m, char *nodes, size_t size, bool *ret_memlock) {
        bool closed = false;
        const char *name, *policy;
        uint64_t limit;

        nodes[0] = 0;
        *ret_memlock = false;
        while (sd_bus_message_enter_container(m, 'r', "sv") > 0) {
                assert_true(sd_bus_message_read(m, "s", &name) > 0);
                if (strcmp(name, "DevicePolicy") == 0) {
                        assert_true(sd_bus_message_read(m, "v", "s", &policy) > 0);
                        assert_string_equal(policy, "closed");
                        closed = true;
                } else if (strcmp(name, "DeviceAllow") == 0)
                        read_nodes(m, nodes, size);
                else {
                        assert_string_equal(name, "LimitMEMLOCK");
                        assert_true(sd_bus_message_read(m, "v", "t", &limit) > 0);
                        assert_true(limit == UINT64_MAX);
                        *ret_memlock = true;
                }
                assert_true(sd_bus_message_exit_container(m) >= 0);
        }
        assert_true(closed);
}

static void assert_rules(const struct start_order *o, const struct inventory *i, const char *expected,
                         bool memlock) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = message_new();
        const struct unit_context c = context_of(i);
        char nodes[2048], *why = NULL;
        bool locks;

        assert_true(sd_bus_message_open_container(m, 'a', "(sv)") >= 0);
        assert_int_equal(devices_append(m, o, &c, &why) < 0, 0);
        assert_true(sd_bus_message_close_container(m) >= 0);
        assert_true(sd_bus_message_seal(m, 1, 0) >= 0);
        assert_true(sd_bus_message_enter_container(m, 'a', "(sv)") > 0);
        read_properties(m, nodes, sizeof(nodes), &locks);
        assert_string_equal(nodes, expected);
        assert_int_equal(locks, memlock);
}

#define NVIDIA "/dev/nvidiactl /dev/nvidia-uvm /dev/nvidia-uvm-tools /dev/nvidia-modeset char-nvidia-uvm "

static void test_rules(void **state) {
        char *one[] = { (char *)"GPU-1", NULL }, *part[] = { (char *)"MIG-b", NULL },
             *amd[] = { (char *)"kfd-00000000000000ff", NULL };
        struct start_order o = order_of(none);

        /* None: on a host with GPUs, on one without, and where nothing is known. */
        assert_rules(&o, &inventory, "[/dev/fuse ]", false);
        assert_rules(&o, &(struct inventory){}, "[/dev/fuse ]", false);
        assert_rules(&o, NULL, "[/dev/fuse ]", false);

        o = order_of(one);
        assert_rules(&o, &inventory, "[/dev/fuse /dev/nvidia1 " NVIDIA "]", false);
        o = order_of(part);
        assert_rules(
                &o, &inventory,
                "[/dev/fuse /dev/nvidia2 /dev/nvidia-caps/nvidia-cap21 /dev/nvidia-caps/nvidia-cap22 " NVIDIA
                "]",
                false);
        o = order_of(amd);
        assert_rules(&o, &inventory, "[/dev/fuse /dev/dri/renderD128 /dev/kfd ]", false);

        o = order_of(none);
        o.extra.rdma = 1;
        assert_rules(&o, &inventory, "[/dev/fuse char-infiniband_verbs /dev/infiniband/rdma_cm ]", true);
}

static void test_refused(void **state) {
        char *unknown[] = { (char *)"GPU-0", (char *)"GPU-7", NULL };
        struct start_order o = order_of(unknown);
        const struct unit_context c = context_of(&inventory);
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = message_new();
        _cleanup_free_ char *why = NULL;

        assert_int_equal(devices_append(m, &o, &c, &why), -EINVAL);
        assert_string_equal(why, "host n2 has no GPU GPU-7");
}

/* A unit that runs is told anew: what it had goes, and a GPU that has left the host is left out. */
static void test_change(void **state) {
        char *left[] = { (char *)"GPU-0", (char *)"GPU-gone", NULL };
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = message_new();
        char nodes[2048] = "";
        const char *unit, *name;
        int runtime;

        assert_true(devices_build(m, "u.service", left, &inventory, false) >= 0);
        assert_true(sd_bus_message_seal(m, 1, 0) >= 0);
        assert_true(sd_bus_message_read(m, "sb", &unit, &runtime) > 0);
        assert_string_equal(unit, "u.service");
        assert_true(runtime);
        assert_true(sd_bus_message_enter_container(m, 'a', "(sv)") > 0);
        while (sd_bus_message_enter_container(m, 'r', "sv") > 0) {
                assert_true(sd_bus_message_read(m, "s", &name) > 0);
                assert_string_equal(name, "DeviceAllow");
                read_nodes(m, nodes, sizeof(nodes));
                assert_true(sd_bus_message_exit_container(m) >= 0);
        }
        assert_string_equal(nodes, "[][/dev/fuse /dev/nvidia0 " NVIDIA "]");
}

static void assert_variable(const struct start_order *o, const struct inventory *i, const char *name,
                            const char *expected) {
        const struct unit_context c = context_of(i);
        _cleanup_(strings_free_p) char **env = NULL;
        const char *value;

        assert_int_equal(unit_environment(o, &c, &env), 0);
        value = environment_find(env, name);
        if (!expected)
                assert_null(value);
        else {
                assert_non_null(value);
                assert_string_equal(value, expected);
        }
}

static void test_visible(void **state) {
        char *mixed[] = { (char *)"GPU-1", (char *)"MIG-b",         (char *)"kfd-00000000000000ff",
                          (char *)"GPU-0", (char *)"kfd-at-0:6200", NULL };
        struct gpu_info nameless[] = {
                { .uuid = (char *)"pci-0000:19:00.0", .nodes = (char *)"/dev/nvidia0" },
                { .uuid = (char *)"pci-0000:3b:00.0", .nodes = (char *)"/dev/nvidia1" }
        };
        const struct inventory two = { .gpus = nameless, .n_gpus = 2 };
        char *second[] = { nameless[1].uuid, NULL };
        struct start_order o = order_of(mixed);

        /* In the order of the order, each vendor's its own; what has no uuid of its own by its position. */
        assert_variable(&o, &inventory, "CUDA_VISIBLE_DEVICES", "GPU-1,MIG-b,GPU-0");
        assert_variable(&o, &inventory, "ROCR_VISIBLE_DEVICES", "GPU-00000000000000ff,1");
        assert_variable(&o, &inventory, "CUDA_DEVICE_ORDER", "PCI_BUS_ID");
        o = order_of(second);
        assert_variable(&o, &two, "CUDA_VISIBLE_DEVICES", "1");
        assert_variable(&o, &two, "ROCR_VISIBLE_DEVICES", NULL);

        o = order_of(none); /* told that there are none, rather than left to find them */
        assert_variable(&o, &inventory, "CUDA_VISIBLE_DEVICES", "");
        assert_variable(&o, NULL, "CUDA_VISIBLE_DEVICES", NULL);
}

static void test_identity(void **state) {
        struct start_order o = order_of(none);
        const struct unit_context c = context_of(&inventory);
        _cleanup_(strings_free_p) char **env = NULL;

        o.extra.gpus = (char *)"GPU-0 MIG-a";
        o.extra.rdma = 1;
        assert_int_equal(unit_identity(&o, c.node, c.term, &env), 0);
        assert_string_equal(environment_find(env, "PRIMUS_GPUS"), "GPU-0 MIG-a");
        assert_string_equal(environment_find(env, "PRIMUS_RDMA"), "1");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_rules),    cmocka_unit_test(test_refused),
                cmocka_unit_test(test_change),   cmocka_unit_test(test_visible),
                cmocka_unit_test(test_identity),
        };
        return cmocka_run_group_tests(tests, message_setup, message_teardown);
}
