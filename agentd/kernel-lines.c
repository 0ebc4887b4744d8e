/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel's complaints. Invariant: the first row that fits counts, so what is milder and looks alike
 * stands above. */
#include "agentd/kernel-lines.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"

#define HOUR (3600 * USEC_PER_SEC)
#define DAY (24 * HOUR)

static const struct {
        const char *has, *and; /* both are in the line; and may be NULL */
        enum condition_kind kind;
        enum condition_severity severity; /* CONDITION_FINE: looks like a complaint, and is none */
        const char *subject;
        const char *of; /* the word behind that is added to the subject; NULL: none */
        uint64_t for_usec;
} rows[] = {
        /* memory and processor */
        { "Memory cgroup out of memory", NULL, CONDITION_KERNEL, CONDITION_FINE, "", NULL,
          0 }, /* a job's own limit */
        { "Hardware Error", "Corrected error", CONDITION_KERNEL, CONDITION_NOTE, "hardware", NULL, HOUR },
        { "Hardware Error", "Uncorrected", CONDITION_KERNEL, CONDITION_DRAIN, "hardware", NULL, DAY },
        { "Hardware Error", "ontext corrupt", CONDITION_KERNEL, CONDITION_DRAIN, "hardware", NULL, DAY },
        { "Hardware Error", NULL, CONDITION_KERNEL, CONDITION_WARN, "hardware", NULL, HOUR },
        { "EDAC", " UE ", CONDITION_KERNEL, CONDITION_DRAIN, "memory", NULL, DAY },
        { "EDAC", " CE ", CONDITION_KERNEL, CONDITION_NOTE, "memory", NULL, HOUR },
        { "Memory failure: ", NULL, CONDITION_KERNEL, CONDITION_WARN, "memory", NULL, DAY },
        { "Out of memory: Killed process", NULL, CONDITION_KERNEL, CONDITION_WARN, "out of memory", NULL,
          HOUR },
        { "soft lockup", NULL, CONDITION_KERNEL, CONDITION_WARN, "lockup", NULL, HOUR },
        { "hard LOCKUP", NULL, CONDITION_KERNEL, CONDITION_DRAIN, "lockup", NULL, DAY },
        { "detected stalls on CPUs", NULL, CONDITION_KERNEL, CONDITION_WARN, "lockup", NULL, HOUR },
        { "self-detected stall on CPU", NULL, CONDITION_KERNEL, CONDITION_WARN, "lockup", NULL, HOUR },
        { "INFO: task ", "blocked for more than", CONDITION_KERNEL, CONDITION_WARN, "hung task", NULL, HOUR },
        { "kernel BUG at ", NULL, CONDITION_KERNEL, CONDITION_DRAIN, "bug", NULL, DAY },
        { "BUG: unable to handle", NULL, CONDITION_KERNEL, CONDITION_DRAIN, "bug", NULL, DAY },
        { "Oops: ", NULL, CONDITION_KERNEL, CONDITION_DRAIN, "bug", NULL, DAY },
        /* file systems and disks */
        { "EXT4-fs error (device ", NULL, CONDITION_KERNEL, CONDITION_DRAIN, "ext4", "(device ", DAY },
        { "EXT4-fs (", "emounting filesystem read-only", CONDITION_KERNEL, CONDITION_DRAIN, "ext4",
          "EXT4-fs (", DAY },
        { "XFS (", "orruption", CONDITION_KERNEL, CONDITION_DRAIN, "xfs", "XFS (", DAY },
        { "XFS (", "as been shut down", CONDITION_KERNEL, CONDITION_DRAIN, "xfs", "XFS (", DAY },
        { "XFS (", "hutting down filesystem", CONDITION_KERNEL, CONDITION_DRAIN, "xfs", "XFS (", DAY },
        { "BTRFS critical (device ", NULL, CONDITION_KERNEL, CONDITION_DRAIN, "btrfs", "(device ", DAY },
        { "BTRFS error (device ", NULL, CONDITION_KERNEL, CONDITION_WARN, "btrfs", "(device ", DAY },
        { "Buffer I/O error on dev ", NULL, CONDITION_KERNEL, CONDITION_WARN, "disk", "on dev ", HOUR },
        { "I/O error, dev ", NULL, CONDITION_KERNEL, CONDITION_WARN, "disk", "error, dev ", HOUR },
        { "nvme nvme", "controller is down", CONDITION_KERNEL, CONDITION_WARN, "disk", "nvme ", HOUR },
        { "nvme nvme", "Removing after probe failure", CONDITION_KERNEL, CONDITION_DRAIN, "disk", "nvme ",
          DAY },
        { "nfs: server ", "not responding", CONDITION_KERNEL, CONDITION_WARN, "nfs", "server ", HOUR / 6 },
        /* buses and network */
        { "PCIe Bus Error: severity=Corrected", NULL, CONDITION_KERNEL, CONDITION_NOTE, "pcie", NULL, HOUR },
        { "PCIe Bus Error: severity=Uncorrected (Fatal)", NULL, CONDITION_KERNEL, CONDITION_DRAIN, "pcie",
          NULL, DAY },
        { "PCIe Bus Error: severity=Uncorrect", NULL, CONDITION_KERNEL, CONDITION_WARN, "pcie", NULL, HOUR },
        { "NETDEV WATCHDOG: ", NULL, CONDITION_KERNEL, CONDITION_WARN, "network", "WATCHDOG: ", HOUR },
        { "nf_conntrack: table full", NULL, CONDITION_KERNEL, CONDITION_WARN, "conntrack", NULL, HOUR / 6 },
};

bool kernel_line_is_gpu(const char *line) {
        return strstr(line, "NVRM: Xid");
}

bool kernel_line_wanted(const char *line) {
        struct kernel_complaint c;

        return kernel_line_is_gpu(line) || kernel_line_read(line, &c);
}

/* A word as a device's name is written: "sda1)", "nvme0n1,", "eth0". */
static int word_length(const char *s) {
        return (int)strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-");
}

bool kernel_line_read(const char *line, struct kernel_complaint *ret) {
        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                const char *word;

                if (!strstr(line, rows[i].has) || (rows[i].and &&!strstr(line, rows[i].and)))
                        continue;
                if (rows[i].severity == CONDITION_FINE)
                        return false;
                *ret = (struct kernel_complaint){ .kind = rows[i].kind,
                                                  .severity = rows[i].severity,
                                                  .for_usec = rows[i].for_usec };
                word = rows[i].of ? strstr(line, rows[i].of) : NULL;
                if (word)
                        snprintf(ret->subject, sizeof(ret->subject), "%s %.*s", rows[i].subject,
                                 MIN(word_length(word + strlen(rows[i].of)), 32), word + strlen(rows[i].of));
                else
                        snprintf(ret->subject, sizeof(ret->subject), "%s", rows[i].subject);
                return true;
        }
        return false;
}
