/* SPDX-License-Identifier: Apache-2.0 */
/* Limits of an order as properties, what they mean on a host, and the small parts that go with them. */
#include "starter/unit/enforce.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "executor/programs/oom.h"
#include "lib/base/cleanup.h"
#include "lib/base/file.h"
#include "starter/unit/host.h"
#include "tests/kit/message-kit.h"
#include "tests/kit/root-kit.h"

static int setup(void **state) {
        assert_int_equal(root_setup(state), 0);
        return message_setup(state);
}

static int teardown(void **state) {
        (void)message_teardown(state);
        return root_teardown(state);
}

/* ---- properties ---- */

static sd_bus_message *build(const struct start_order *o, const struct unit_context *c) {
        sd_bus_message *m = message_new();

        assert_true(sd_bus_message_open_container(m, 'a', "(sv)") >= 0);
        assert_true(limits_append(m, o, c) >= 0);
        assert_true(sd_bus_message_close_container(m) >= 0);
        assert_true(sd_bus_message_seal(m, 1, 0) >= 0);
        return m;
}

static void assert_rate(sd_bus_message *m, const char *name, const char *device, uint64_t expected) {
        const char *s;
        uint64_t n;

        assert_true(message_find_property(m, "", name, "a(st)"));
        assert_true(sd_bus_message_enter_container(m, 'a', "(st)") > 0);
        assert_true(sd_bus_message_read(m, "(st)", &s, &n) > 0);
        assert_string_equal(s, device);
        assert_true(n == expected);
        assert_true(sd_bus_message_read(m, "(st)", &s, &n) == 0); /* and no other */
}

static void assert_byte(sd_bus_message *m, const char *name, uint8_t expected) {
        const void *bytes;
        size_t size;

        assert_true(message_find_property(m, "", name, "ay"));
        assert_true(sd_bus_message_read_array(m, 'y', &bytes, &size) > 0);
        assert_int_equal(size, 1);
        assert_int_equal(*(const uint8_t *)bytes, expected);
}

static void test_properties(void **state) {
        struct io_limit io[] = { { .path = (char *)"/dev/vda", .read_bps = 4000000, .weight = 300 },
                                 { .path = (char *)"/dev/vdb", .write_iops = 50 },
                                 { .path = (char *)"", .weight = 20 } };
        static uint16_t ports[] = { 23005, 23009 };
        const struct inventory inventory = { .port_first = 23000, .port_last = 23099 };
        struct start_order o = { .tasks_max = 500,
                                 .memory_max = 1 << 30,
                                 .ports = ports,
                                 .n_ports = 2,
                                 .extra = { .memory_high = 1 << 29,
                                            .cpu_weight = 250,
                                            .open_files = 4096,
                                            .locked_memory = 1 << 20,
                                            .cpus = (char *)"2-3",
                                            .numa = "require" } };
        struct ports_pins pins = { .bind4 = "/four", .bind6 = "/six" };
        struct shm_names shm;
        struct unit_context c = { .inventory = &inventory,
                                  .io = io,
                                  .n_io = 3,
                                  .numa_nodes = 2,
                                  .tasks_bound = 1000,
                                  .pins = &pins,
                                  .shm = &shm };
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        const char *type, *path;
        int32_t family, protocol;
        uint16_t n, first;
        int ignore;

        shm_names(418, (sd_id128_t){ .bytes = { 0xab, 0xcd, 0xef, 0x01 } }, &shm);
        m = build(&o, &c);
        message_assert_number(m, "", "MemoryMax", 1 << 30);
        message_assert_number(m, "", "MemorySwapMax", 0);
        message_assert_number(m, "", "MemoryHigh", 1 << 29);
        message_assert_number(m, "", "CPUWeight", 250);
        message_assert_number(m, "", "TasksMax", 500);
        message_assert_number(m, "", "LimitNOFILE", 4096);
        message_assert_number(m, "", "LimitNOFILESoft", 4096);
        message_assert_number(m, "", "LimitMEMLOCK", 1 << 20);
        message_assert_number(m, "", "IOWeight", 20);
        assert_rate(m, "IOReadBandwidthMax", "/dev/vda", 4000000);
        assert_rate(m, "IOWriteIOPSMax", "/dev/vdb", 50);
        assert_rate(m, "IODeviceWeight", "/dev/vda", 300);
        assert_false(message_find_property(m, "", "IOWriteBandwidthMax", "a(st)"));
        assert_byte(m, "AllowedCPUs", 12);
        assert_byte(m, "NUMAMask", 2);
        assert_true(message_find_property(m, "", "NUMAPolicy", "i"));

        assert_true(message_find_property(m, "", "SocketBindAllow", "a(iiqq)"));
        assert_true(sd_bus_message_enter_container(m, 'a', "(iiqq)") > 0);
        assert_true(sd_bus_message_read(m, "(iiqq)", &family, &protocol, &n, &first) > 0);
        assert_true(family == 0 && protocol == 0 && n == 1 && first == 23005);
        assert_true(message_find_property(m, "", "SocketBindDeny", "a(iiqq)"));
        assert_true(sd_bus_message_enter_container(m, 'a', "(iiqq)") > 0);
        assert_true(sd_bus_message_read(m, "(iiqq)", &family, &protocol, &n, &first) > 0);
        assert_true(n == 100 && first == 23000);
        assert_true(message_find_property(m, "", "BPFProgram", "a(ss)"));
        assert_true(sd_bus_message_enter_container(m, 'a', "(ss)") > 0);
        assert_true(sd_bus_message_read(m, "(ss)", &type, &path) > 0);
        assert_string_equal(type, "bind4");
        assert_string_equal(path, "/four");

        assert_true(message_find_property(m, "", "BindPaths", "a(ssbt)"));
        assert_true(sd_bus_message_enter_container(m, 'a', "(ssbt)") > 0);
        assert_true(sd_bus_message_enter_container(m, 'r', "ssbt") > 0);
        assert_true(sd_bus_message_read(m, "ssb", &type, &path, &ignore) > 0);
        assert_string_equal(type, "/run/primus/shm/418.abcdef01");
        assert_string_equal(path, "/dev/shm");
}

/* Nothing asked for is nothing said; and the host keeps half of its processes for itself. */
static void test_nothing(void **state) {
        static const char *const names[] = { "MemoryHigh", "CPUWeight",       "IOWeight",   "NUMAPolicy",
                                             "BindPaths",  "SocketBindAllow", "BPFProgram", "LimitNOFILE" };
        static const char *const signatures[] = { "t", "t", "t", "i", "a(ssbt)", "a(iiqq)", "a(ss)", "t" };
        struct start_order o = { .tasks_max = 16384 };
        const struct unit_context c = { .tasks_bound = 1000 };
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = build(&o, &c), *other = NULL;

        for (size_t i = 0; i < ELEMENTSOF(names); i++)
                assert_false(message_find_property(m, "", names[i], signatures[i]));
        message_assert_number(m, "", "TasksMax", 1000);
        o.tasks_max = 0;
        other = build(&o, &c);
        message_assert_number(other, "", "TasksMax", 1000);
}

/* A preference for several nodes is none. */
static void test_numa(void **state) {
        struct start_order o = { .extra = { .numa = "prefer" } };
        struct unit_context c = { .numa_nodes = 4 };
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *one = build(&o, &c), *two = NULL;

        assert_byte(one, "NUMAMask", 4);
        c.numa_nodes = 6;
        two = build(&o, &c);
        assert_false(message_find_property(two, "", "NUMAPolicy", "i"));
}

/* What systemd has is raised and never lowered, and a role's own goes before it. */
static void test_open_files(void **state) {
        static const struct {
                uint32_t at_least;
                uint64_t soft, hard;
                struct open_files expected;
        } cases[] = {
                { 65536, 1024, 524288, { 65536, 524288 } },
                { 65536, 1024, 4096, { 4096, 4096 } },
                { 65536, 1024, UINT64_MAX, { 65536, UINT64_MAX } },
                { 65536, 100000, 524288, { 0, 0 } },
                { 65536, 1024, 1024, { 0, 0 } },
                { 0, 1024, 524288, { 0, 0 } },
                { 512, 1024, 524288, { 0, 0 } },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                const struct open_files f =
                        open_files_decide(cases[i].at_least, cases[i].soft, cases[i].hard);
                struct start_order o = {};
                struct unit_context c = { .open_files = f };
                _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = build(&o, &c), *own = NULL;

                assert_true(f.soft == cases[i].expected.soft && f.hard == cases[i].expected.hard);
                if (f.soft == 0)
                        assert_false(message_find_property(m, "", "LimitNOFILESoft", "t"));
                else {
                        message_assert_number(m, "", "LimitNOFILE", f.hard);
                        message_assert_number(m, "", "LimitNOFILESoft", f.soft);
                }
                o.extra.open_files = 50;
                own = build(&o, &c);
                message_assert_number(own, "", "LimitNOFILE", 50);
                message_assert_number(own, "", "LimitNOFILESoft", 50);
        }
}

static void test_changes(void **state) {
        struct unit_limits l = { .cpu_usec_per_sec = 500000, .memory_max = 1 << 20 };
        const struct slice_limits slice = { 1 << 20, 400000, 77, 300 };
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *old = message_new(), *now = message_new(),
                                                        *made = message_new(), *changed = message_new();

        assert_true(limits_build(old, "u", &l) >= 0);
        assert_true(sd_bus_message_seal(old, 1, 0) >= 0);
        assert_false(message_find_property(old, "sb", "MemoryHigh",
                                           "t")); /* an older master does not know of it */
        l.has_more = true;
        l.tasks_max = 9;
        assert_true(limits_build(now, "u", &l) >= 0);
        assert_true(sd_bus_message_seal(now, 1, 0) >= 0);
        message_assert_number(now, "sb", "MemoryHigh", UINT64_MAX);
        message_assert_number(now, "sb", "CPUWeight", UINT64_MAX);
        message_assert_number(now, "sb", "TasksMax", 9);
        assert_true(slice_build(made, 418, &slice) >= 0);
        assert_true(sd_bus_message_seal(made, 1, 0) >= 0);
        message_assert_number(made, "ss", "MemoryMax", (1 << 20) + (16 << 20));
        message_assert_number(made, "ss", "CPUQuotaPerSecUSec", 400000);
        message_assert_number(made, "ss", "TasksMax", 77);
        message_assert_number(made, "ss", "CPUWeight", 300);
        assert_true(slice_update_build(changed, 418, &(struct slice_limits){}) >= 0);
        assert_true(sd_bus_message_seal(changed, 1, 0) >= 0);
        message_assert_number(changed, "sb", "MemoryMax", UINT64_MAX);
        message_assert_number(changed, "sb", "TasksMax", UINT64_MAX);
}

/* ---- the host ---- */

static void put_link(const char *target, const char *path) {
        char full[256];

        snprintf(full, sizeof(full), "%s%s", root_kit, path);
        assert_int_equal(symlink(target, full), 0);
}

static void test_disks(void **state) {
        struct io_limit io = { .path = (char *)"/data/a b/c", .read_bps = 1 }, *list;
        _cleanup_free_ char *why = NULL, *other = NULL;
        size_t n;

        assert_int_equal(host_io(root_kit, "n1", &io, 1, &list, &n, &why), 0);
        assert_int_equal(n, 0); /* no controller: nothing can be enforced, and nothing fails */
        root_put("/sys/fs/cgroup/cgroup.controllers", "cpuset cpu io memory pids\n");
        root_put("/proc/1/mountinfo",
                 "22 1 254:0 / / rw - ext4 /dev/root rw\n"
                 "30 22 254:17 / /data rw,noatime shared:5 master:1 - ext4 /dev/vdb1 rw\n"
                 "31 22 0:25 / /data/a\\040b rw - tmpfs tmpfs rw\n"
                 "32 22 259:3 / /database rw - xfs /dev/nvme0n1p3 rw\n");
        root_put("/sys/devices/virtio1/block/vdb/vdb1/partition", "1\n");
        root_put("/sys/devices/virtio0/block/vda/dev", "254:0\n");
        root_put("/sys/dev/block/none", "");
        put_link("../../devices/virtio1/block/vdb/vdb1", "/sys/dev/block/254:17");
        put_link("../../devices/virtio0/block/vda", "/sys/dev/block/254:0");

        assert_int_equal(host_io(root_kit, "n1", &io, 1, &list, &n, &why), -EINVAL);
        assert_string_equal(why, "io of /data/a b/c cannot be limited on host n1: it is on a file system of "
                                 "type tmpfs, and not on a disk of the host");
        io.path = (char *)"/data/x"; /* of a partition the whole disk */
        assert_int_equal(host_io(root_kit, "n1", &io, 1, &list, &n, NULL), 0);
        assert_string_equal(list[0].path, "/dev/vdb");
        assert_true(n == 1 && list[0].read_bps == 1);
        io_limits_free(list, n);
        io.path = (char *)"/datab"; /* below no other mount than the root */
        assert_int_equal(host_io(root_kit, "n1", &io, 1, &list, &n, NULL), 0);
        assert_string_equal(list[0].path, "/dev/vda");
        io_limits_free(list, n);
        io.path = (char *)"/dev/nvme9n1";
        assert_int_equal(host_io(root_kit, "n1", &io, 1, &list, &n, &other), -EINVAL);
        assert_string_equal(other, "io of /dev/nvme9n1 cannot be limited: host n1 has no such device");
        io.path = (char *)"";
        assert_int_equal(host_io(root_kit, "n1", &io, 1, &list, &n, NULL), 0);
        assert_string_equal(list[0].path, "");
        io_limits_free(list, n);
}

static void assert_refused(const char *path, const char *says) {
        struct io_limit io = { .path = (char *)path, .read_bps = 1 }, *list;
        _cleanup_free_ char *why = NULL;
        size_t n;

        assert_int_equal(host_io(root_kit, "n1", &io, 1, &list, &n, &why), -EINVAL);
        assert_non_null(strstr(why, says));
}

/* What there is beside the devices, its answers do not tell: root sees more than who asks. */
static void test_outside(void **state) {
        char target[256];

        root_put("/sys/fs/cgroup/cgroup.controllers", "io\n");
        root_put("/secret", "");
        root_put("/dev/plain", "");
        put_link("../secret", "/dev/up");
        snprintf(target, sizeof(target), "%s/secret", root_kit);
        put_link(target, "/dev/away");
        put_link("plain", "/dev/beside");
        assert_refused("/dev/plain", "it is not a block device");
        assert_refused("/dev/beside", "it is not a block device");
        assert_refused("/dev/none", "has no such device");
        root_put("/sys/class/block/vdz/dev", "254:77\n");
        put_link("../../devices/virtio7/block/vdz", "/sys/dev/block/254:77");
        struct io_limit io = { .path = (char *)"/dev/vdz", .read_bps = 1 }, *list;
        size_t n;
        assert_int_equal(host_io(root_kit, "n1", &io, 1, &list, &n, NULL), 0);
        assert_string_equal(list[0].path, "/dev/vdz");
        io_limits_free(list, n);
        assert_refused("/dev/up", "has no such device");
        assert_refused("/dev/away", "has no such device");
        assert_refused("/dev//secret/../plain/", "must not have ..");
        assert_refused("/dev/../secret", "must not have ..");
        assert_refused("/dev/../none", "must not have ..");
        assert_refused("/data/..", "must not have ..");
        assert_refused("/dev//secret", "has no such device");
}

static void test_host(void **state) {
        root_put("/proc/sys/kernel/threads-max", "9000\n");
        assert_true(host_tasks_bound(root_kit) == 0);
        root_put("/proc/sys/kernel/pid_max", "4194304\n");
        assert_true(host_tasks_bound(root_kit) == 4500);
        root_put("/sys/devices/system/node/node0/cpulist", "0-3\n");
        assert_true(host_numa_nodes(root_kit, "0-1") == 0); /* of one node there is no choice */
        root_put("/sys/devices/system/node/node2/cpulist", "4-7\n");
        assert_true(host_numa_nodes(root_kit, "5") == 4);
        assert_true(host_numa_nodes(root_kit, "3-4") == 5);
        assert_true(host_numa_nodes(root_kit, NULL) == 0);
}

static void test_shm_names(void **state) {
        static const char *const bad[] = { "run-primus-shm-418.abcdef0.mount",
                                           "run-primus-shm-418.abcdef012.mount",
                                           "run-primus-shm-.abcdef01.mount",
                                           "run-primus-shm-418.ABCDEF01.mount",
                                           "run-primus-shm-418.abcdef01.service",
                                           "run-primus-418.abcdef01.mount",
                                           "" };
        struct shm_names a, b;

        shm_names(418, (sd_id128_t){ .bytes = { 0xab, 0xcd, 0xef, 0x01 } }, &a);
        assert_string_equal(a.unit, "run-primus-shm-418.abcdef01.mount");
        assert_true(shm_unit_parse(a.unit, &b));
        assert_string_equal(a.path, b.path);
        assert_true(shm_entry_parse("418.abcdef01", &b));
        assert_string_equal(a.unit, b.unit);
        for (size_t i = 0; i < ELEMENTSOF(bad); i++)
                assert_false(shm_unit_parse(bad[i], &b));
}

/* ---- ports ---- */

/* What the kernel would do with it. */
static bool allows(const struct bpf_insn *p, int n, uint16_t port) {
        uint64_t r0 = 2, r2 = 0;

        for (int i = 0; i < n; i++) {
                const uint32_t imm = (uint32_t)p[i].imm;
                switch (p[i].code) {
                case BPF_LDX | BPF_MEM | BPF_W:
                        r2 = port;
                        break;
                case BPF_ALU | BPF_END | BPF_TO_BE: /* told in our own order above */
                        break;
                case BPF_JMP | BPF_JLT | BPF_K:
                        i += r2 < imm ? p[i].off : 0;
                        break;
                case BPF_JMP | BPF_JGT | BPF_K:
                        i += r2 > imm ? p[i].off : 0;
                        break;
                case BPF_JMP | BPF_JEQ | BPF_K:
                        i += r2 == imm ? p[i].off : 0;
                        break;
                case BPF_ALU64 | BPF_MOV | BPF_K:
                        r0 = imm;
                        break;
                case BPF_JMP | BPF_EXIT:
                        assert_true(r0 <= 1);
                        return r0 == 1;
                default:
                        fail();
                }
        }
        fail();
        return false;
}

static void test_ports(void **state) {
        static const uint16_t granted[] = { 23005, 23009, 23099 };
        struct bpf_insn program[PORTS_INSTRUCTIONS_MAX];
        static uint16_t many[PORTS_INSTRUCTIONS_MAX];

        for (size_t k = 0; k <= ELEMENTSOF(granted); k++) {
                int n = ports_program(23000, 23099, granted, k, program);
                assert_true(n > 0);
                for (uint32_t port = 0; port <= UINT16_MAX; port++) {
                        bool expected = port < 23000 || port > 23099;
                        for (size_t i = 0; i < k; i++)
                                expected |= port == granted[i];
                        assert_int_equal(allows(program, n, (uint16_t)port), expected);
                }
        }
        assert_int_equal(ports_program(1, 2, many, ELEMENTSOF(many), program), -E2BIG);
}

/* ---- the kernel's words ---- */

#define UNIT "primus-7-worker-0.1.service"
#define SLICE "/primus.slice/primus-7.slice"
#define LOG(limit, group, task, pid)                                                                         \
        "<6>[  114.0] oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=x,mems_allowed=0-1,"       \
        "oom_memcg=" limit ",task_memcg=" group ",task=" task ",pid=" pid ",uid=1000\n"
#define KILLED(pid)                                                                                          \
        "<3>[  114.1] Memory cgroup out of memory: Killed process " pid " (python3) total-vm:106016kB, "     \
        "anon-rss:65300kB, file-rss:5196kB, shmem-rss:4kB, UID:1000 pgtables:188kB oom_score_adj:0\n"

static void test_oom(void **state) {
        static const char
                own[] = LOG(SLICE "/other.service", SLICE "/other.service", "ps", "9") KILLED("9")
                        LOG(SLICE "/" UNIT, SLICE "/" UNIT, "pyth\x1bn3",
                            "395") "Tasks in " SLICE "/" UNIT
                                   " are going to be killed due to memory.oom.group set\n" KILLED("395")
                                           KILLED("396"),
                job[] = LOG(SLICE, SLICE "/" UNIT, "python3", "12"),
                above[] = LOG("/primus.slice", SLICE "/" UNIT "/sub", "python3", "12"),
                host[] = "oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/,mems_allowed=0,"
                         "global_oom,task_memcg=" SLICE "/" UNIT ",task=a,pid=5,uid=0\n"
                         "Out of memory: Killed process 5 (a) total-vm:1kB, anon-rss:7kB",
                foreign[] = LOG(SLICE, SLICE "/x" UNIT, "python3", "12"),
                contained[] = LOG("/machine.slice/n1.scope" SLICE, "/machine.slice/n1.scope" SLICE "/" UNIT,
                                  "python3", "12");
        /* Groups that a user made below his own, and other jobs' slices. */
        static const char *const others[] = {
                LOG("/user.slice", "/user.slice/user-1000.slice/user@1000.service" SLICE "/" UNIT, "x", "12"),
                LOG("/user.slice", "/user.slice/user-1000.slice/user@1000.service/" UNIT, "x", "12"),
                LOG("/primus.slice", "/primus.slice/primus-8.slice/" UNIT, "x", "12"),
                LOG("/primus.slice", SLICE "/primus-7-w-0.1.service/" UNIT, "x", "12"),
                LOG("/primus.slice", "/system.slice" SLICE "x/" UNIT, "x", "12"),
        };
        struct oom oom;

        assert_true(oom_parse(own, strlen(own), UNIT, &oom));
        assert_string_equal(oom.task, "pyth?n3");
        assert_true(oom.pid == 395 && oom.at == OOM_AT_UNIT && oom.held == (65300u + 5196u + 4u) * 1024u);
        assert_true(oom_parse(job, strlen(job), UNIT, &oom));
        assert_true(oom.at == OOM_AT_JOB && oom.held == 0 && oom.pid == 12);
        assert_true(oom_parse(above, strlen(above), UNIT, &oom));
        assert_int_equal(oom.at, OOM_AT_ABOVE);
        assert_true(oom_parse(host, strlen(host), UNIT, &oom));
        assert_true(oom.at == OOM_AT_HOST && oom.held == 7168);
        assert_false(oom_parse(foreign, strlen(foreign), UNIT, &oom));
        assert_true(oom_parse(contained, strlen(contained), UNIT, &oom));
        assert_int_equal(oom.at, OOM_AT_JOB);
        for (size_t i = 0; i < ELEMENTSOF(others); i++)
                assert_false(oom_parse(others[i], strlen(others[i]), UNIT, &oom));
        for (size_t n = 0; n < strlen(own); n++) /* any part of it */
                (void)oom_parse(own, n, UNIT, &oom);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_properties), cmocka_unit_test(test_nothing),
                cmocka_unit_test(test_numa),       cmocka_unit_test(test_open_files),
                cmocka_unit_test(test_changes),    cmocka_unit_test(test_disks),
                cmocka_unit_test(test_outside),    cmocka_unit_test(test_host),
                cmocka_unit_test(test_shm_names),  cmocka_unit_test(test_ports),
                cmocka_unit_test(test_oom),
        };
        return cmocka_run_group_tests(tests, setup, teardown);
}
