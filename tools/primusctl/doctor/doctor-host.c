/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of a host say. Invariant: nothing is written, nothing is loaded, no program is run. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/file.h"
#include "lib/base/format.h"
#include "tools/primusctl/cli/agent-setting.h"
#include "tools/primusctl/doctor/doctor.h"

#define SYSTEMD_LEAST 252u
#define FILE_MAX (256u << 10)
#define GiB (UINT64_C(1) << 30)

static bool exists(const char *root, const char *path) {
        char full[4096];

        return snprintf(full, sizeof(full), "%s%s", root, path) < (int)sizeof(full) &&
               access(full, F_OK) == 0;
}

/* The first path that the pattern has, below root, or NULL; without root. */
static char *first_match(const char *root, const char *pattern) {
        char full[4096];
        char *found = NULL;
        glob_t g;

        if (snprintf(full, sizeof(full), "%s%s", root, pattern) >= (int)sizeof(full))
                return NULL;
        if (glob(full, 0, NULL, &g) == 0 && g.gl_pathc > 0)
                found = strdup(g.gl_pathv[0] + strlen(root));
        globfree(&g);
        return found;
}

static bool has_word(const char *text, const char *word) {
        size_t l = strlen(word);

        for (const char *p = text; (p = strstr(p, word)); p += l)
                if ((p == text || isspace((unsigned char)p[-1])) && (!p[l] || isspace((unsigned char)p[l])))
                        return true;
        return false;
}

/* ---- systemd, control groups ---- */

static void check_systemd(struct findings *f, const char *root) {
        static const char *const patterns[] = { "/usr/lib/systemd/libsystemd-shared-*.so",
                                                "/usr/lib/*/systemd/libsystemd-shared-*.so",
                                                "/lib/systemd/libsystemd-shared-*.so" };
        _cleanup_free_ char *path = NULL;
        unsigned version = 0;

        if (!exists(root, "/run/systemd/system")) {
                findings_add(f, FINDING_FAIL, "systemd", "boot this host with systemd (package systemd-sysv)",
                             "systemd does not run this host");
                return;
        }
        for (size_t i = 0; i < ELEMENTSOF(patterns) && !path; i++)
                path = first_match(root, patterns[i]);
        if (path)
                version = (unsigned)strtoul(strstr(path, "shared-") + strlen("shared-"), NULL, 10);
        if (version == 0)
                findings_add(f, FINDING_UNKNOWN, "systemd", "systemctl --version says it",
                             "runs this host; its version is not known");
        else if (version < SYSTEMD_LEAST)
                findings_add(
                        f, FINDING_FAIL, "systemd",
                        "upgrade the host: Debian 12, RHEL 9.2, Ubuntu 24.04 have one that is new enough",
                        "version %u; %u is needed", version, SYSTEMD_LEAST);
        else
                findings_add(f, FINDING_OK, "systemd", NULL, "version %u", version);
}

static void check_controllers(struct findings *f, const char *root, const char *have) {
        static const struct {
                const char *name, *lack;
                enum finding_grade grade;
        } controllers[] = {
                { "cpu", "CPU limits", FINDING_FAIL },
                { "memory", "memory limits", FINDING_FAIL },
                { "pids", "limits of tasks", FINDING_WARN },
                { "io", "limits of disk bandwidth", FINDING_WARN },
                { "cpuset", "CPUs of their own", FINDING_WARN },
        };
        bool all = true;

        for (size_t i = 0; i < ELEMENTSOF(controllers); i++) {
                if (has_word(have, controllers[i].name))
                        continue;
                all = false;
                findings_add(f, controllers[i].grade, "controllers",
                             strcmp(controllers[i].name, "memory") == 0
                                     ? "cgroup_enable=memory on the kernel's command line"
                                     : "a kernel with that cgroup controller",
                             "there is no %s controller: executors run without %s", controllers[i].name,
                             controllers[i].lack);
        }
        if (all)
                findings_add(f, FINDING_OK, "controllers", NULL, "cpu, memory, pids, io, cpuset");
}

static void check_cgroup(struct findings *f, const char *root) {
        static const char help[] =
                "systemd.unified_cgroup_hierarchy=1 on the kernel's command line, and a reboot";
        _cleanup_free_ char *controllers = NULL;

        if (read_file_below(root, "/sys/fs/cgroup/cgroup.controllers", 4096, &controllers) >= 0) {
                findings_add(f, FINDING_OK, "cgroup", NULL, "version 2");
                check_controllers(f, root, controllers);
        } else if (exists(root, "/sys/fs/cgroup/unified/cgroup.controllers"))
                findings_add(f, FINDING_FAIL, "cgroup", help,
                             "hybrid: the controllers are version 1's, and limits are not enforced");
        else
                findings_add(f, FINDING_FAIL, "cgroup", help,
                             "there is no cgroup version 2: executors are neither limited nor measured");
}

/* ---- measuring ---- */

static void check_measuring(struct findings *f, const char *root) {
        if (exists(root, "/proc/pressure/memory"))
                findings_add(f, FINDING_OK, "pressure", NULL, "the kernel measures it");
        else
                findings_add(f, FINDING_WARN, "pressure", "psi=1 on the kernel's command line",
                             "the kernel does not measure it (PSI): thrashing is not noticed");
        if (exists(root, "/sys/kernel/btf/vmlinux"))
                findings_add(f, FINDING_OK, "btf", NULL, "/sys/kernel/btf/vmlinux");
        else
                findings_add(f, FINDING_WARN, "btf",
                             "a kernel with CONFIG_DEBUG_INFO_BTF (those of Debian, RHEL and Ubuntu have it)",
                             "the kernel does not describe its types: BPF programs cannot be loaded, and "
                             "executors are measured by procfs");
}

/* ---- devices ---- */

static unsigned count_pci(const char *root, const char *vendor) {
        char full[4096];
        unsigned n = 0;
        glob_t g;

        if (snprintf(full, sizeof(full), "%s/sys/bus/pci/devices/*", root) >= (int)sizeof(full) ||
            glob(full, 0, NULL, &g) != 0)
                return 0;
        for (size_t i = 0; i < g.gl_pathc; i++) {
                _cleanup_free_ char *class = NULL, *id = NULL;
                if (read_file_below(g.gl_pathv[i], "/class", 64, &class) >= 0 &&
                    read_file_below(g.gl_pathv[i], "/vendor", 64, &id) >= 0 &&
                    (strncmp(class, "0x0300", 6) == 0 || strncmp(class, "0x0302", 6) == 0) &&
                    strncmp(id, vendor, strlen(vendor)) == 0)
                        n++;
        }
        globfree(&g);
        return n;
}

static void check_nvidia(struct findings *f, const char *root) {
        static const char *const libraries[] = { "/usr/lib/*/libnvidia-ml.so.1",
                                                 "/usr/lib64/libnvidia-ml.so.1", "/usr/lib/libnvidia-ml.so.1",
                                                 "/usr/local/nvidia/lib64/libnvidia-ml.so.1" };
        _cleanup_free_ char *library = NULL, *node = first_match(root, "/dev/nvidia[0-9]*");
        unsigned n = count_pci(root, "0x10de");

        if (n == 0 && !node)
                return;
        for (size_t i = 0; i < ELEMENTSOF(libraries) && !library; i++)
                library = first_match(root, libraries[i]);
        if (!exists(root, "/proc/driver/nvidia/version") && !node)
                findings_add(f, FINDING_FAIL, "nvidia",
                             "apt install nvidia-driver (Debian: component non-free), and a reboot",
                             "%u GPU%s, and no driver", n, n == 1 ? "" : "s");
        else if (!library)
                findings_add(f, FINDING_WARN, "nvidia",
                             "apt install libnvidia-ml1 (RHEL: nvidia-driver-NVML)",
                             "the driver is there and libnvidia-ml.so.1 (NVML) is not: models, memory and "
                             "health of GPUs are not known");
        else if (!node)
                findings_add(f, FINDING_WARN, "nvidia",
                             "nvidia-modprobe -u -c 0, or the service nvidia-persistenced",
                             "the driver is loaded and there is no /dev/nvidia0");
        else
                findings_add(f, FINDING_OK, "nvidia", NULL, "%u GPU%s, NVML %s", n, n == 1 ? "" : "s",
                             library);
}

static void check_amd(struct findings *f, const char *root) {
        _cleanup_free_ char *render = first_match(root, "/dev/dri/renderD*");
        unsigned n = count_pci(root, "0x1002");

        if (n == 0 && !exists(root, "/dev/kfd"))
                return;
        if (!exists(root, "/dev/kfd") || !render)
                findings_add(f, FINDING_WARN, "amd", "modprobe amdgpu (ROCm's driver: package amdgpu-dkms)",
                             "%u AMD GPU%s, and %s is not there", n, n == 1 ? "" : "s",
                             exists(root, "/dev/kfd") ? "/dev/dri/renderD*" : "/dev/kfd");
        else
                findings_add(f, FINDING_OK, "amd", NULL, "%u GPU%s", n, n == 1 ? "" : "s");
}

static void check_rdma(struct findings *f, const char *root) {
        _cleanup_free_ char *device = first_match(root, "/sys/class/infiniband/*"),
                            *verbs = first_match(root, "/dev/infiniband/uverbs*");

        if (!device)
                return;
        if (!verbs)
                findings_add(f, FINDING_WARN, "rdma", "apt install rdma-core (it loads ib_uverbs)",
                             "%s is there, and /dev/infiniband/uverbs* is not", device);
        else
                findings_add(f, FINDING_OK, "rdma", NULL, "%s", strrchr(device, '/') + 1);
}

/* ---- memory, ports ---- */

static void check_memlock(struct findings *f, const char *root) {
        _cleanup_free_ char *limits = NULL;
        char soft[32], hard[32];
        const char *line;

        if (read_file_below(root, "/proc/1/limits", 16 << 10, &limits) < 0 ||
            !(line = strstr(limits, "Max locked memory")) ||
            sscanf(line + strlen("Max locked memory"), "%31s %31s", soft, hard) != 2)
                findings_add(f, FINDING_UNKNOWN, "memlock", "sudo primusctl doctor",
                             "systemd's limits are root's to read");
        else if (strcmp(hard, "unlimited") != 0 && strtoull(hard, NULL, 10) < (64 << 20) &&
                 exists(root, "/sys/class/infiniband"))
                findings_add(f, FINDING_WARN, "memlock",
                             "DefaultLimitMEMLOCK=infinity in /etc/systemd/system.conf, and a reboot",
                             "systemd itself may lock %s bytes: RDMA and pinned memory need more", hard);
        else
                findings_add(f, FINDING_OK, "memlock", NULL,
                             "executors may be given as much locked memory as they ask for");
}

/* Whether all of first to last is in a list of ranges "22,23000-27999". */
static bool covers(const char *list, unsigned first, unsigned last) {
        for (const char *p = list; *p; p += *p == ',') {
                char *end;
                unsigned long a = strtoul(p, &end, 10), b = a;
                if (*end == '-')
                        b = strtoul(end + 1, &end, 10);
                if (end == p)
                        return false;
                if (a <= first && last <= b)
                        return true;
                p = end;
                if (*p && *p != ',')
                        return false;
        }
        return false;
}

static void check_ports(struct findings *f, const char *root) {
        _cleanup_free_ char *setting = NULL, *local = NULL, *reserved = NULL;
        unsigned first = 23000, last = 27999, from = 0, to = 0;

        if (agent_setting(root, "Ports", &setting) >= 0 &&
            (sscanf(setting, "%u-%u", &first, &last) != 2 || first > last)) {
                findings_add(f, FINDING_FAIL, "ports", "Ports=FIRST-LAST in agentd.conf",
                             "Ports=%s in agentd.conf is not a range", setting);
                return;
        }
        if (read_file_below(root, "/proc/sys/net/ipv4/ip_local_port_range", 64, &local) < 0 ||
            sscanf(local, "%u %u", &from, &to) != 2) {
                findings_add(f, FINDING_UNKNOWN, "ports", NULL,
                             "the kernel does not say which ports it hands out");
                return;
        }
        (void)read_file_below(root, "/proc/sys/net/ipv4/ip_local_reserved_ports", FILE_MAX, &reserved);
        if (reserved)
                reserved[strcspn(reserved, "\n")] = 0;
        if ((last < from || first > to) || (reserved && covers(reserved, first, last)))
                findings_add(f, FINDING_OK, "ports", NULL, "%u-%u are kept for jobs", first, last);
        else
                findings_add(f, FINDING_WARN, "ports",
                             "start primus-agentd, which reserves them, or set "
                             "net.ipv4.ip_local_reserved_ports in /etc/sysctl.d",
                             "the kernel may hand out %u-%u, which are for jobs, to any connection", first,
                             last);
}

/* ---- disks, logs ---- */

static void check_disk(struct findings *f, const char *root, const char *path, bool matters) {
        char full[4096], left[FORMAT_SIZE_MAX], all[FORMAT_SIZE_MAX];
        uint64_t size, available;
        struct statvfs s;

        if (snprintf(full, sizeof(full), "%s%s", root, path) >= (int)sizeof(full) || statvfs(full, &s) < 0)
                return;
        size = (uint64_t)s.f_blocks * s.f_frsize;
        available = (uint64_t)s.f_bavail * s.f_frsize;
        format_size(available, left, sizeof(left));
        format_size(size, all, sizeof(all));
        if (size == 0)
                return;
        if (s.f_flag & ST_RDONLY)
                findings_add(f, matters ? FINDING_FAIL : FINDING_WARN, "disk",
                             "dmesg says why; then: mount -o remount,rw", "%s is read-only", path);
        else if (available < MIN(size / 50, GiB))
                findings_add(f, matters ? FINDING_FAIL : FINDING_WARN, "disk", "make room",
                             "%s is full: %s of %s left", path, left, all);
        else if (available < MIN(size / 10, 10 * GiB))
                findings_add(f, FINDING_WARN, "disk", "make room", "%s is nearly full: %s of %s left", path,
                             left, all);
        else if (s.f_files > 0 && s.f_favail < s.f_files / 50)
                findings_add(f, matters ? FINDING_FAIL : FINDING_WARN, "disk", "remove files",
                             "%s has no inodes left to speak of", path);
        else
                findings_add(f, FINDING_OK, "disk", NULL, "%s: %s of %s left", path, left, all);
}

static void check_disks(struct findings *f, const char *root) {
        bool agent = exists(root, "/var/lib/primus-agent");

        check_disk(f, root, agent ? "/var/lib/primus-agent" : "/var/lib", true);
        check_disk(f, root, "/run", true);
        check_disk(f, root, "/dev/shm", false);
        check_disk(f, root, "/tmp", false);
}

static void check_journal(struct findings *f, const char *root) {
        if (exists(root, "/var/log/journal"))
                findings_add(f, FINDING_OK, "journal", NULL, "kept in /var/log/journal");
        else if (exists(root, "/run/log/journal"))
                findings_add(f, FINDING_WARN, "journal",
                             "mkdir -p /var/log/journal && systemctl restart systemd-journald",
                             "logs of jobs are lost when the host is rebooted");
        else
                findings_add(f, FINDING_FAIL, "journal", "systemctl start systemd-journald",
                             "there is no journal: jobs have no logs");
}

void doctor_host(struct findings *f, const char *root) {
        check_systemd(f, root);
        check_cgroup(f, root);
        check_measuring(f, root);
        check_nvidia(f, root);
        check_amd(f, root);
        check_rdma(f, root);
        check_memlock(f, root);
        check_ports(f, root);
        check_disks(f, root);
        check_journal(f, root);
}
