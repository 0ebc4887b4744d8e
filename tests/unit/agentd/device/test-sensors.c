/* SPDX-License-Identifier: Apache-2.0 */
/* agentd/device/sensors.c and agentd/host/kernel-lines.c. */
#include "agentd/device/sensors.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agentd/host/kernel-lines.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"

#define GiB (UINT64_C(1) << 30)

static const struct room warn = { 10, 10 * GiB }, drain = { 2, GiB };

static enum condition_severity judge(uint64_t size, uint64_t available, char text[static 160]) {
        const struct disk_facts d = { .size = size, .available = available };

        return disk_judge(&d, &warn, &drain, CONDITION_DRAIN, text, 160);
}

static void test_disks(void **state) {
        struct disk_facts d = {
                .size = 100 * GiB, .available = 50 * GiB, .files = 1000000, .files_left = 10000
        };
        char text[160];

        assert_int_equal(judge(100 * GiB, 50 * GiB, text), CONDITION_FINE);
        assert_int_equal(judge(100 * GiB, 9 * GiB, text), CONDITION_WARN);
        assert_string_equal(text, "91% full, 9G of 100G left");
        assert_int_equal(judge(100 * GiB, GiB / 2, text), CONDITION_DRAIN);
        /* A large one has room where a share of it is little, a small one where a number of bytes would be
         * much. */
        assert_int_equal(judge(20000 * GiB, 100 * GiB, text), CONDITION_FINE);
        assert_int_equal(judge(20000 * GiB, 9 * GiB, text), CONDITION_WARN);
        assert_int_equal(judge(64 << 20, 32 << 20, text), CONDITION_FINE);
        assert_int_equal(judge(64 << 20, 0, text), CONDITION_DRAIN);
        assert_int_equal(judge(0, 0, text), CONDITION_FINE);
        assert_int_equal(disk_judge(&d, &warn, &drain, CONDITION_DRAIN, text, sizeof(text)), CONDITION_DRAIN);
        assert_string_equal(text, "10000 of 1000000 inodes left");
        assert_int_equal(disk_judge(&d, &warn, &drain, CONDITION_WARN, text, sizeof(text)), CONDITION_WARN);
        d = (struct disk_facts){ .size = GiB, .available = GiB, .read_only = true };
        assert_int_equal(disk_judge(&d, &warn, &drain, CONDITION_DRAIN, text, sizeof(text)), CONDITION_DRAIN);
        assert_int_equal(disk_read("", "/tmp", &d), 0);
        assert_true(d.size > 0);
        assert_true(disk_read("", "/no/such/path", &d) < 0);
}

static void test_clock(void **state) {
        uint64_t now = UINT64_C(1700000000) * USEC_PER_SEC;
        struct clock_watch w = {};
        struct clock_sample s;
        char text[160];

        assert_false(clock_best(&w, &s));
        for (unsigned i = 0; i < 8; i++)
                clock_note(&w, now + 3 * USEC_PER_SEC, now, 1000);
        assert_int_equal(clock_judge(&w, USEC_PER_SEC, text, sizeof(text)), CONDITION_WARN);
        assert_non_null(strstr(text, "3s behind masterd's"));
        assert_int_equal(clock_judge(&w, 5 * USEC_PER_SEC, text, sizeof(text)), CONDITION_FINE);
        for (unsigned i = 0; i < 8; i++)
                clock_note(&w, now - 3600 * USEC_PER_SEC, now, 1000);
        assert_int_equal(clock_judge(&w, USEC_PER_SEC, text, sizeof(text)), CONDITION_DRAIN);
        assert_non_null(strstr(text, "1h ahead of"));
        /* Answers that came late prove nothing, and one that came at once everything. */
        w = (struct clock_watch){};
        for (unsigned i = 0; i < 7; i++)
                clock_note(&w, now + 2 * USEC_PER_SEC, now, 8 * USEC_PER_SEC);
        assert_int_equal(clock_judge(&w, USEC_PER_SEC, text, sizeof(text)), CONDITION_WARN);
        clock_note(&w, now, now, 1000);
        assert_int_equal(clock_judge(&w, USEC_PER_SEC, text, sizeof(text)), CONDITION_FINE);
}

static void test_lines(void **state) {
        static const struct {
                const char *line, *subject;
                enum condition_severity severity;
        } lines[] = {
                { "EXT4-fs error (device sda1): ext4_lookup:1785: inode #2: comm ls: deleted inode "
                  "referenced: 12",
                  "ext4 sda1", CONDITION_DRAIN },
                { "EXT4-fs (sdb2): Remounting filesystem read-only", "ext4 sdb2", CONDITION_DRAIN },
                { "XFS (nvme0n1p3): Metadata corruption detected at xfs_agf_read_verify", "xfs nvme0n1p3",
                  CONDITION_DRAIN },
                { "I/O error, dev sda, sector 2048 op 0x0:(READ) flags 0x0 phys_seg 1 prio class 2",
                  "disk sda", CONDITION_WARN },
                { "Buffer I/O error on dev dm-3, logical block 0, lost async page write", "disk dm-3",
                  CONDITION_WARN },
                { "mce: [Hardware Error]: CPU 3: Machine check events logged", "hardware", CONDITION_WARN },
                { "{1}[Hardware Error]: event severity: corrected; Corrected error, no action required.",
                  "hardware", CONDITION_NOTE },
                { "mce: [Hardware Error]: Machine check: Processor context corrupt", "hardware",
                  CONDITION_DRAIN },
                { "EDAC MC0: 1 UE memory read error on CPU_SrcID#0", "memory", CONDITION_DRAIN },
                { "watchdog: BUG: soft lockup - CPU#2 stuck for 23s! [python3:4711]", "lockup",
                  CONDITION_WARN },
                { "INFO: task python3:4711 blocked for more than 120 seconds.", "hung task", CONDITION_WARN },
                { "Out of memory: Killed process 4711 (python3) total-vm:1kB", "out of memory",
                  CONDITION_WARN },
                { "pcieport 0000:00:01.0: PCIe Bus Error: severity=Corrected, type=Physical Layer", "pcie",
                  CONDITION_NOTE },
                { "pcieport 0000:00:01.0: PCIe Bus Error: severity=Uncorrected (Fatal), type=Transaction "
                  "Layer",
                  "pcie", CONDITION_DRAIN },
                { "nfs: server data.example not responding, still trying", "nfs data.example",
                  CONDITION_WARN },
                { "NETDEV WATCHDOG: eth0 (mlx5_core): transmit queue 0 timed out", "network eth0",
                  CONDITION_WARN },
                { "igb 0000:01:00.0 eth0: NETDEV WATCHDOG: CPU: 3: transmit queue 1 timed out 5000 ms",
                  "network CPU", CONDITION_WARN },
                { "nvme 0000:01:00.0: AER: PCIe Bus Error: severity=Corrected, type=Physical Layer", "pcie",
                  CONDITION_NOTE },
                { "blk_update_request: I/O error, dev sdb, sector 9", "disk sdb", CONDITION_WARN },
                { "Internal error: Oops: 0000000096000004 [#1] SMP", "bug", CONDITION_DRAIN },
                { "Oops: 0002 [#1] PREEMPT SMP NOPTI", "bug", CONDITION_DRAIN },
                { "NMI watchdog: Watchdog detected hard LOCKUP on cpu 3", "lockup", CONDITION_DRAIN },
                { "rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:", "lockup", CONDITION_WARN },
                { "nf_conntrack: nf_conntrack: table full, dropping packet", "conntrack", CONDITION_WARN },
                { "Memory cgroup out of memory: Killed process 4711 (python3)", NULL, CONDITION_FINE },
                { "EXT4-fs (sda1): mounted filesystem with ordered data mode", NULL, CONDITION_FINE },
                { "usb 1-1: new high-speed USB device number 2", NULL, CONDITION_FINE },
                { "", NULL, CONDITION_FINE },
        };

        for (size_t i = 0; i < ELEMENTSOF(lines); i++) {
                struct kernel_complaint c;
                bool is = kernel_line_read(lines[i].line, &c);
                assert_int_equal(is, lines[i].subject != NULL);
                assert_int_equal(kernel_line_wanted(lines[i].line), is);
                if (!is)
                        continue;
                assert_string_equal(c.subject, lines[i].subject);
                assert_int_equal(c.severity, lines[i].severity);
                assert_true(c.for_usec > 0);
        }
}

/* A local user's program may be called anything, as may the file in which it crashed, and the kernel repeats
 * that. Hosts are not drained for it. */
static void test_forged_lines(void **state) {
        static const char *const lines[] = {
                "Oops: [4711]: segfault at 0 ip 000055d0 sp 00007ffc error 4 in Oops: 0002 [#1][55d0+1000]",
                "kernel BUG at x[4711]: segfault at 0 ip 000055d0 sp 00007ffc error 4 in x[55d0+1000]",
                "EDAC UE [4711]: segfault at 0 ip 000055d0 sp 00007ffc error 4 in EDAC MC0: 1 UE "
                "x[55d0+1000]",
                "XFS (orruption[4711]: segfault at 0 ip 000055d0 sp 00007ffc error 4",
                "x[4711]: segfault at 0 ip 000055d0 sp 00007ffc error 4 in EXT4-fs error (device "
                "sda1)[55d0+1000]",
                "x[4711]: segfault at 0 ip 000055d0 error 4 in {1}[Hardware Error]: Uncorrected[55d0+1000]",
                "traps: Oops: [4711] general protection fault ip:55d0 sp:7ffc error:0 in Oops: [55d0+1000]",
                "Oops:  invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0 [#",
                "hard LOCKUP: page allocation failure: order:0, mode:0xcc0(GFP_KERNEL), nodemask=(null)",
                "CPU: 3 PID: 4711 Comm: Oops:  [# Not tainted 6.1.0 #1",
                "[   4711]  1000  4711     2345     1234    65536        0             0 Oops: [#",
                "a 00:0:0.0: BUG[4711]: segfault at 0 ip 000055d0 sp 00007ffc error 4",
                "NVRM: Xid (PCI:[4711]: segfault at 0 ip 55d0 in NVRM: Xid (PCI:0000:01:00): 79, "
                "x[55d0+1000]",
                "x[4711]: segfault at 0 ip 55d0 error 4 in NVRM: Xid (PCI:0000:01:00): 79, pid=1[55d0+1000]",
                "nvme nvme0 (4711): drop_caches: controller is down",
        };
        struct kernel_complaint c;

        for (size_t i = 0; i < ELEMENTSOF(lines); i++) {
                assert_false(kernel_line_read(lines[i], &c));
                assert_false(kernel_line_wanted(lines[i]));
        }
        assert_true(
                kernel_line_wanted("NVRM: Xid (PCI:0000:01:00): 79, pid=4711, GPU has fallen off the bus."));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_disks),
                cmocka_unit_test(test_clock),
                cmocka_unit_test(test_lines),
                cmocka_unit_test(test_forged_lines),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
