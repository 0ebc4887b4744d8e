/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel's complaints. Invariants: the first row that fits counts, so what is milder and looks alike
 * stands above; a line counts only where the kernel has written its beginning, since the names of processes
 * and files that it repeats in others are anybody's. */
#include "agentd/host/kernel-lines.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"

#define PROCESS_NAME_MAX 15u
#define HOUR (3600 * USEC_PER_SEC)
#define DAY (24 * HOUR)

static const struct {
        const char *has, *and; /* it begins with the one, behind what begins lines, and has the other; NULL:
                                  nothing */
        enum condition_kind kind;
        enum condition_severity severity; /* CONDITION_FINE: looks like a complaint, and is none */
        const char *subject;
        const char *of; /* the word behind that is added to the subject; NULL: none */
        uint64_t for_usec;
} rows[] = {
        /* memory and processor */
        { "Memory cgroup out of memory", NULL, CONDITION_KERNEL, CONDITION_FINE, "", NULL,
          0 }, /* a job's own limit */
        { "[Hardware Error]", "Corrected error", CONDITION_KERNEL, CONDITION_NOTE, "hardware", NULL, HOUR },
        { "[Hardware Error]", "Uncorrected", CONDITION_KERNEL, CONDITION_DRAIN, "hardware", NULL, DAY },
        { "[Hardware Error]", "ontext corrupt", CONDITION_KERNEL, CONDITION_DRAIN, "hardware", NULL, DAY },
        { "[Hardware Error]", NULL, CONDITION_KERNEL, CONDITION_WARN, "hardware", NULL, HOUR },
        { "EDAC", " UE ", CONDITION_KERNEL, CONDITION_DRAIN, "memory", NULL, DAY },
        { "EDAC", " CE ", CONDITION_KERNEL, CONDITION_NOTE, "memory", NULL, HOUR },
        { "Memory failure: ", NULL, CONDITION_KERNEL, CONDITION_WARN, "memory", NULL, DAY },
        { "Out of memory: Killed process", NULL, CONDITION_KERNEL, CONDITION_WARN, "out of memory", NULL,
          HOUR },
        { "BUG: soft lockup", NULL, CONDITION_KERNEL, CONDITION_WARN, "lockup", NULL, HOUR },
        { "Watchdog detected hard LOCKUP", NULL, CONDITION_KERNEL, CONDITION_DRAIN, "lockup", NULL, DAY },
        { "INFO: rcu_", "detected stalls on CPUs", CONDITION_KERNEL, CONDITION_WARN, "lockup", NULL, HOUR },
        { "INFO: rcu_", "self-detected stall on CPU", CONDITION_KERNEL, CONDITION_WARN, "lockup", NULL,
          HOUR },
        { "INFO: task ", "blocked for more than", CONDITION_KERNEL, CONDITION_WARN, "hung task", NULL, HOUR },
        { "kernel BUG at ", NULL, CONDITION_KERNEL, CONDITION_DRAIN, "bug", NULL, DAY },
        { "BUG: unable to handle", NULL, CONDITION_KERNEL, CONDITION_DRAIN, "bug", NULL, DAY },
        { "Oops: ", "[#", CONDITION_KERNEL, CONDITION_DRAIN, "bug", NULL, DAY },
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
        { "nf_conntrack: ", "table full", CONDITION_KERNEL, CONDITION_WARN, "conntrack", NULL, HOUR / 6 },
};

/* ---- where a line begins ---- */

static const char *skip_word(const char *s, const char *stop) {
        size_t n = strcspn(s, stop);

        return n > 0 && s[n] ? s + n : NULL;
}

/* "pcieport 0000:00:1c.0: ", "igb 0000:01:00.0 eth0: ": the driver's name and an address have no brackets. */
static const char *skip_device(const char *s) {
        const char *p = skip_word(s, " :[(");
        unsigned domain, bus, device, function;
        int n = 0;

        if (!p || sscanf(p, " %4x:%2x:%2x.%1x%n", &domain, &bus, &device, &function, &n) != 4)
                return s;
        p += n;
        if (*p == ' ' && !(p = skip_word(p + 1, ":[( ")))
                return s;
        return p[0] == ':' && p[1] == ' ' ? p + 2 : s;
}

/* "{1}[Hardware Error]: " */
static const char *skip_number(const char *s) {
        size_t n = *s == '{' ? strspn(s + 1, "0123456789") : 0;

        return n > 0 && s[n + 1] == '}' ? s + n + 2 : s;
}

/* Behind the words of the kernel's that stand before what it says. */
static const char *skip_head(const char *s) {
        static const char *const heads[] = { "watchdog: ", "NMI watchdog: ",       "mce: ",
                                             "rcu: ",      "blk_update_request: ", "print_req_error: ",
                                             "AER: ",      "Internal error: " };

        s = skip_number(skip_device(s));
        for (size_t i = 0; i < ELEMENTSOF(heads);) {
                size_t n = strlen(heads[i]);

                if (strncmp(s, heads[i], n) != 0)
                        i++;
                else {
                        s += n;
                        i = 0;
                }
        }
        return s;
}

/* "NAME[123]: segfault at ...", "NAME invoked oom-killer: ...": the kernel begins with the name of a process,
 * 15 bytes that its owner chose. */
static bool begins_with_process(const char *line) {
        static const char *const behind[] = {
                " invoked ", ": page allocation", " uses ",       " used ",
                " sent ",    ": potentially ",    ": unhandled ",
        };

        for (size_t i = 0; i < PROCESS_NAME_MAX + 1 && line[i]; i++) {
                const char *s = line + i, *number = *s == '['                  ? s + 1
                                                    : strncmp(s, " (", 2) == 0 ? s + 2
                                                                               : NULL;

                if (number) {
                        size_t digits = strspn(number, "0123456789");
                        if (digits > 0 && strchr("])", number[digits]) && number[digits])
                                return true;
                }
                for (size_t k = 0; k < ELEMENTSOF(behind); k++)
                        if (strncmp(s, behind[k], strlen(behind[k])) == 0)
                                return true;
        }
        return false;
}

/* ---- what it says ---- */

bool kernel_line_is_gpu(const char *line) {
        return strncmp(line, "NVRM: Xid", 9) == 0 && !begins_with_process(line);
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
        const char *says = skip_head(line);

        if (begins_with_process(line))
                return false;
        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                const char *word;

                if (strncmp(says, rows[i].has, strlen(rows[i].has)) != 0 ||
                    (rows[i].and &&!strstr(says, rows[i].and)))
                        continue;
                if (rows[i].severity == CONDITION_FINE)
                        return false;
                *ret = (struct kernel_complaint){ .kind = rows[i].kind,
                                                  .severity = rows[i].severity,
                                                  .for_usec = rows[i].for_usec };
                word = rows[i].of ? strstr(says, rows[i].of) : NULL;
                if (word)
                        snprintf(ret->subject, sizeof(ret->subject), "%s %.*s", rows[i].subject,
                                 MIN(word_length(word + strlen(rows[i].of)), 32), word + strlen(rows[i].of));
                else
                        snprintf(ret->subject, sizeof(ret->subject), "%s", rows[i].subject);
                return true;
        }
        return false;
}
