/* SPDX-License-Identifier: Apache-2.0 */
/* Disks, NUMA nodes and room for processes of this host. Invariant: a path of a user's is looked up in tables
 * of the kernel and among the devices of /dev, nowhere else. */
#include "starter/unit/host.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "lib/base/cpulist.h"
#include "lib/base/file.h"
#include "lib/base/parse.h"
#include "starter/unit/environment.h"

#define MOUNTS_MAX (8u << 20)
#define NUMBER_MAX 64u
#define WORDS 16u

/* ---- disks ---- */

static bool has_io_controller(const char *root) {
        _cleanup_free_ char *text = NULL;
        char *save;

        if (read_file_below(root, "/sys/fs/cgroup/cgroup.controllers", 4096, &text) < 0)
                return false;
        for (char *w = strtok_r(text, " \n", &save); w; w = strtok_r(NULL, " \n", &save))
                if (strcmp(w, "io") == 0)
                        return true;
        return false;
}

/* \040 of the table of mounts is a blank; in place. */
static void unescape(char *s) {
        char *to = s;

        for (; *s; s++) {
                if (s[0] == '\\' && s[1] >= '0' && s[1] <= '3' && s[2] >= '0' && s[2] <= '7' && s[3] >= '0' &&
                    s[3] <= '7') {
                        *to++ = (char)((s[1] - '0') << 6 | (s[2] - '0') << 3 | (s[3] - '0'));
                        s += 3;
                } else
                        *to++ = *s;
        }
        *to = 0;
}

struct mount {
        unsigned major, minor;
        char *type, *source;
};

/* A line of mountinfo: "36 35 98:0 /root /mnt/parent rw,noatime master:1 - ext4 /dev/root rw". The parts of
 * it point into the line. */
static bool parse_mount(char *line, char **ret_point, struct mount *ret) {
        char *field[5], *save, *rest = strstr(line, " - ");

        if (!rest)
                return false;
        *rest = 0;
        for (size_t i = 0; i < ELEMENTSOF(field); i++)
                if (!(field[i] = strtok_r(i == 0 ? line : NULL, " ", &save)))
                        return false;
        if (sscanf(field[2], "%u:%u", &ret->major, &ret->minor) != 2)
                return false;
        ret->type = strtok_r(rest + 3, " ", &save);
        ret->source = strtok_r(NULL, " ", &save);
        if (!ret->type || !ret->source)
                return false;
        unescape(field[4]);
        unescape(ret->source);
        *ret_point = field[4];
        return true;
}

static bool is_below(const char *path, const char *point) {
        size_t l = strlen(point);

        return strcmp(point, "/") == 0 || (strncmp(path, point, l) == 0 && (path[l] == 0 || path[l] == '/'));
}

/* By its name in sysfs, which is there also where /dev is not the host's (PrivateDevices=). */
static int device_by_name(const char *root, const char *name, dev_t *ret) {
        _cleanup_free_ char *text = NULL;
        char path[PATH_MAX];
        unsigned major, minor;

        if (snprintf(path, sizeof(path), "/sys/class/block/%s/dev", name) >= (int)sizeof(path))
                return -ENOENT;
        for (char *p = path + strlen("/sys/class/block/"); p < path + strlen(path) - strlen("/dev"); p++)
                if (*p == '/') /* cciss/c0d0 */
                        *p = '!';
        if (read_file_below(root, path, NUMBER_MAX, &text) < 0 || sscanf(text, "%u:%u", &major, &minor) != 2)
                return -ENOENT;
        *ret = makedev(major, minor);
        return 0;
}

/* The device of a node below /dev, or -ENOENT, -ENOTBLK. Nothing outside of that one file system is looked
 * at, whatever the path and links in /dev say: not what is root's to see, nor a mount there (users write to
 * /dev/shm), nor one that hangs. */
static int device_of_node(const char *root, const char *path, dev_t *ret) {
        struct open_how how = { .flags = O_PATH | O_CLOEXEC,
                                .resolve = RESOLVE_BENEATH | RESOLVE_NO_XDEV | RESOLVE_NO_MAGICLINKS };
        _cleanup_close_ int dev = -EBADF, fd = -EBADF;
        _cleanup_free_ char *directory = NULL;
        struct stat st;

        if (asprintf(&directory, "%s/dev", root) < 0)
                return -ENOMEM;
        dev = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (dev < 0)
                return device_by_name(root, path + strlen("/dev/"), ret);
        fd = (int)syscall(SYS_openat2, dev, path + strlen("/dev/"), &how, sizeof(how));
        if (fd < 0 || fstat(fd, &st) < 0)
                return device_by_name(root, path + strlen("/dev/"), ret);
        if (!S_ISBLK(st.st_mode))
                return -ENOTBLK;
        *ret = st.st_rdev;
        return 0;
}

static bool goes_up(const char *path) {
        for (const char *p = strstr(path, "/.."); p; p = strstr(p + 1, "/.."))
                if (p[3] == 0 || p[3] == '/')
                        return true;
        return false;
}

/* What the directory is on. -ENODEV with *ret_type (allocated): no disk. */
static int device_of_directory(const char *root, const char *path, dev_t *ret, char **ret_type) {
        _cleanup_free_ char *text = NULL;
        struct mount best = {};
        size_t longest = 0;
        char *save;
        int r = read_file_below(root, "/proc/1/mountinfo", MOUNTS_MAX, &text);

        if (r < 0)
                return r;
        for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
                struct mount m;
                char *point;
                /* Of two on the same point the later one is seen. */
                if (parse_mount(line, &point, &m) && is_below(path, point) && strlen(point) >= longest) {
                        longest = strlen(point);
                        best = m;
                }
        }
        if (best.major > 0) {
                *ret = makedev(best.major, best.minor);
                return 0;
        }
        /* btrfs has a number of its own, and says which disk it is on. */
        if (best.source && strncmp(best.source, "/dev/", 5) == 0 &&
            device_of_node(root, best.source, ret) == 0)
                return 0;
        *ret_type = strdup(best.type ?: "unknown");
        return *ret_type ? -ENODEV : -ENOMEM;
}

/* Rates are kept for whole disks, not for partitions. Allocated. */
static int whole_disk(const char *root, dev_t device, char **ret) {
        char path[64], target[PATH_MAX], *name;
        _cleanup_free_ char *link = NULL, *partition = NULL;
        ssize_t n;

        snprintf(path, sizeof(path), "/sys/dev/block/%u:%u", major(device), minor(device));
        if (asprintf(&link, "%s%s", root, path) < 0 || asprintf(&partition, "%s/partition", link) < 0)
                return -ENOMEM;
        n = readlink(link, target, sizeof(target) - 1);
        if (n < 0)
                return -ENOENT;
        target[n] = 0;
        if (access(partition, F_OK) == 0 && (name = strrchr(target, '/')))
                *name = 0;
        name = strrchr(target, '/');
        if (!name)
                return -ENOENT;
        for (char *p = ++name; *p; p++)
                if (*p == '!') /* sysfs writes cciss/c0d0 so */
                        *p = '/';
        return asprintf(ret, "/dev/%s", name) < 0 ? -ENOMEM : 0;
}

static int resolve(const char *root, const char *node, const char *path, char **ret, char **ret_why) {
        _cleanup_free_ char *type = NULL;
        dev_t device = 0;
        int r = goes_up(path)                    ? -EXDEV
                : strncmp(path, "/dev/", 5) == 0 ? device_of_node(root, path, &device)
                                                 : device_of_directory(root, path, &device, &type);

        if (r == -EXDEV)
                r = asprintf(ret_why, "io of %s cannot be limited on host %s: the path must not have ..",
                             path, node);
        else if (r == -ENODEV)
                r = asprintf(ret_why,
                             "io of %s cannot be limited on host %s: it is on a file system of type %s, and "
                             "not on a disk of the host",
                             path, node, type);
        else if (r == -ENOTBLK)
                r = asprintf(ret_why, "io of %s cannot be limited on host %s: it is not a block device", path,
                             node);
        else if (r < 0 || (r = whole_disk(root, device, ret)) == -ENOENT)
                r = asprintf(ret_why, "io of %s cannot be limited: host %s has no such device", path, node);
        else
                return r;
        return r < 0 ? -ENOMEM : -EINVAL;
}

int host_io(const char *root, const char *node, const struct io_limit *io, size_t n, struct io_limit **ret,
            size_t *ret_n, char **ret_why) {
        struct io_limit *list;
        int r = 0;

        *ret = NULL;
        *ret_n = 0;
        if (n == 0 || !has_io_controller(root))
                return 0;
        list = calloc(n, sizeof(*list));
        if (!list)
                return -ENOMEM;
        for (size_t i = 0; i < n && r >= 0; i++) {
                list[i] = io[i];
                list[i].path = NULL;
                if (*io[i].path)
                        r = resolve(root, node, io[i].path, &list[i].path, ret_why);
                else if (!(list[i].path = strdup("")))
                        r = -ENOMEM;
        }
        if (r < 0) {
                io_limits_free(list, n);
                return r;
        }
        *ret = list;
        *ret_n = n;
        return 0;
}

/* ---- NUMA nodes ---- */

uint64_t host_numa_nodes(const char *root, const char *cpus) {
        uint64_t mine[WORDS], theirs[WORDS], nodes = 0;
        unsigned n = 0;

        if (!cpus || cpulist_parse(cpus, mine, WORDS) < 0)
                return 0;
        for (unsigned i = 0; i < 1024; i++) {
                _cleanup_free_ char *text = NULL;
                uint64_t both = 0;
                char path[64];

                snprintf(path, sizeof(path), "/sys/devices/system/node/node%u/cpulist", i);
                if (read_file_below(root, path, 4096, &text) < 0)
                        continue;
                n++;
                if (cpulist_parse(text, theirs, WORDS) < 0)
                        continue;
                for (size_t w = 0; w < WORDS; w++)
                        both |= mine[w] & theirs[w];
                if (both && i > 63)
                        return 0;
                if (both)
                        nodes |= UINT64_C(1) << i;
        }
        return n > 1 ? nodes : 0;
}

/* ---- processes ---- */

static uint64_t read_number(const char *root, const char *path) {
        _cleanup_free_ char *text = NULL;
        uint64_t n;

        if (read_file_below(root, path, NUMBER_MAX, &text) < 0)
                return 0;
        text[strcspn(text, "\n")] = 0;
        return parse_u64(text, 1, UINT64_MAX, &n) < 0 ? 0 : n;
}

uint64_t host_tasks_bound(const char *root) {
        uint64_t threads = read_number(root, "/proc/sys/kernel/threads-max"),
                 pids = read_number(root, "/proc/sys/kernel/pid_max");

        return threads == 0 || pids == 0 ? 0 : MAX(MIN(threads, pids) / 2, UINT64_C(1));
}
