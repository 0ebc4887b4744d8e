/* SPDX-License-Identifier: Apache-2.0 */
/* Control groups by the names of units. Invariant: the name is checked before any path is made of it, and
 * every step of a path is a name below the one before, and no link. (openat2() would do it in one, but
 * RestrictSUIDSGID= closes it.) */
#include "starter/observe/place.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>
#include <sys/statfs.h>

#include "lib/base/cleanup.h"
#include "lib/base/unitname.h"

#define CGROUP2_MAGIC 0x63677270
#define SLICE "primus.slice"
#define DEPTH_MAX 8u         /* a unit that was given its own part of the tree may have made more */
#define DIRECTORIES_MAX 256u /* gone into at each level */

int place_open_below(int top, const char *path, int flags) {
        _cleanup_close_ int at = fcntl(top, F_DUPFD_CLOEXEC, 3);
        char name[NAME_MAX + 1];

        if (at < 0)
                return -errno;
        for (;;) {
                size_t n = strcspn(path, "/");
                bool last = !path[n];
                int fd;

                if (n == 0 || n >= sizeof(name) || (n <= 2 && strncmp(path, "..", n) == 0))
                        return -EINVAL;
                memcpy(name, path, n);
                name[n] = 0;
                fd = openat(at, name, (last ? flags : O_PATH | O_DIRECTORY) | O_NOFOLLOW | O_CLOEXEC);
                if (fd < 0)
                        /* A link that is asked to be a directory is said to be none. */
                        return errno == ENOTDIR ? -ELOOP : -errno;
                if (last)
                        return fd;
                close_fd(at);
                at = fd;
                path += n + 1;
        }
}

static int open_top(const char *root, const char *path) {
        _cleanup_free_ char *full = NULL;
        int fd;

        if (asprintf(&full, "%s%s", root, path) < 0) {
                full = NULL;
                return -ENOMEM;
        }
        fd = open(full, O_PATH | O_DIRECTORY | O_CLOEXEC);
        return fd < 0 ? -errno : fd;
}

int place_hierarchy(const char *root) {
        static const char *const tops[] = { "/sys/fs/cgroup/unified", "/sys/fs/cgroup" };
        struct statfs fs;

        for (size_t i = 0; i < ELEMENTSOF(tops); i++) {
                int fd = open_top(root, tops[i]);

                /* A root of a test's own is no cgroup file system. */
                if (fd >= 0 && (*root || (fstatfs(fd, &fs) == 0 && fs.f_type == CGROUP2_MAGIC)))
                        return fd;
                close_fd(fd);
        }
        return -ENOENT;
}

int place_slice(int hierarchy) {
        return place_open_below(hierarchy, SLICE, O_RDONLY | O_DIRECTORY);
}

uint32_t place_job(const char *unit) {
        return (uint32_t)strtoul(unit + strlen("primus-"), NULL, 10);
}

static int unit_path(const char *unit, char *ret, size_t size) {
        char slice[UNIT_NAME_MAX];

        if (!executor_unit_name_valid(unit))
                return -EINVAL;
        snprintf(ret, size, SLICE "/%s/%s", job_slice_name(place_job(unit), slice), unit);
        return 0;
}

int place_unit(int hierarchy, const char *unit) {
        char path[sizeof(SLICE) + 2 * UNIT_NAME_MAX + 2];
        int r = unit_path(unit, path, sizeof(path));

        return r < 0 ? r : place_open_below(hierarchy, path, O_RDONLY | O_DIRECTORY);
}

int place_unit_of_systemd(const char *root, const char *unit) {
        char path[sizeof(SLICE) + 2 * UNIT_NAME_MAX + 2];
        int r = unit_path(unit, path, sizeof(path));
        _cleanup_close_ int top = r < 0 ? r : open_top(root, "/sys/fs/cgroup/systemd");

        return top < 0 ? top : place_open_below(top, path, O_RDONLY | O_DIRECTORY);
}

/* ---- processes ---- */

static size_t read_processes(int fd, pid_t *ret, size_t max) {
        _cleanup_fclose_ FILE *f = NULL;
        int list = openat(fd, "cgroup.procs", O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
        size_t n = 0;
        int pid;

        if (list < 0 || !(f = fdopen(list, "re"))) {
                close_fd(list);
                return 0;
        }
        while (n < max && fscanf(f, "%d", &pid) == 1)
                if (pid > 1) /* 0: of another namespace of processes */
                        ret[n++] = pid;
        return n;
}

static size_t collect_processes(int fd, pid_t *ret, size_t max, unsigned depth) {
        size_t n = read_processes(fd, ret, max), directories = 0;
        int again = depth < DEPTH_MAX ? openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -EBADF;
        DIR *d = again < 0 ? NULL : fdopendir(again);
        struct dirent *e;

        if (!d) {
                close_fd(again);
                return n;
        }
        while (n < max && directories < DIRECTORIES_MAX && (e = readdir(d))) {
                _cleanup_close_ int below = -EBADF;

                if (*e->d_name == '.' || (e->d_type != DT_DIR && e->d_type != DT_UNKNOWN))
                        continue;
                directories++;
                below = openat(fd, e->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
                if (below >= 0)
                        n += collect_processes(below, ret + n, max - n, depth + 1);
        }
        (void)closedir(d);
        return n;
}

size_t place_processes(int unit_fd, pid_t ret[static PLACE_PROCESSES_MAX]) {
        return collect_processes(unit_fd, ret, PLACE_PROCESSES_MAX, 0);
}
