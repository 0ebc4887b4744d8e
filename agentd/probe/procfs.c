/* SPDX-License-Identifier: Apache-2.0 */
/* A unit's figures by /proc. Invariant: a process that ends meanwhile is left out and is no error. */
#include "agentd/probe/procfs.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/base/cleanup.h"

#define DIRECTORIES_MAX 4096u /* jobs below the slice, units of a job */

/* ---- finding the unit ---- */

static DIR *open_directory(int parent, const char *name) {
        int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        DIR *dir = fd < 0 ? NULL : fdopendir(fd);

        if (!dir)
                close_fd(fd);
        return dir;
}

static bool is_directory(const struct dirent *entry) {
        return *entry->d_name != '.' && (entry->d_type == DT_DIR || entry->d_type == DT_UNKNOWN);
}

static int find_in(int job_fd, uint64_t id) {
        DIR *dir = open_directory(job_fd, ".");
        struct dirent *entry;
        int fd = -ENOENT;

        for (size_t i = 0; dir && fd < 0 && i < DIRECTORIES_MAX && (entry = readdir(dir)); i++)
                if (is_directory(entry) && entry->d_ino == id)
                        fd = openat(job_fd, entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (dir)
                (void)closedir(dir);
        return fd < 0 ? -ENOENT : fd;
}

int procfs_find(int slice_fd, uint64_t cgroup_id) {
        DIR *dir = open_directory(slice_fd, ".");
        struct dirent *entry;
        int fd = -ENOENT;

        for (size_t i = 0; dir && fd < 0 && i < DIRECTORIES_MAX && (entry = readdir(dir)); i++) {
                _cleanup_close_ int job = -EBADF;

                if (!is_directory(entry))
                        continue;
                job = openat(slice_fd, entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
                if (job >= 0)
                        fd = find_in(job, cgroup_id);
        }
        if (dir)
                (void)closedir(dir);
        return fd;
}

/* ---- reading ---- */

static bool read_text(int dir, const char *path, char *buf, size_t size) {
        _cleanup_close_ int fd = openat(dir, path, O_RDONLY | O_CLOEXEC);
        ssize_t n = fd < 0 ? -1 : read(fd, buf, size - 1);

        if (n <= 0)
                return false;
        buf[n] = 0;
        return true;
}

struct look {
        int proc;
        unsigned looked; /* also at what has ended, and at what ended meanwhile */
        unsigned tasks, running, blocked, stopped;
        uint64_t run_delay_ns, read_bytes, write_bytes, block_read_bytes, block_write_bytes;
        uint64_t resident, shared; /* pages */
        bool io, memory, all;      /* io, memory: could be read; all: nobody was left out */
};

static uint64_t number_behind(const char *text, const char *key) {
        const char *p = strstr(text, key);

        return p ? strtoull(p + strlen(key), NULL, 10) : 0;
}

static void look_at_io(struct look *l, const char *pid) {
        char path[64], text[512];

        snprintf(path, sizeof(path), "%s/io", pid);
        if (!read_text(l->proc, path, text, sizeof(text)))
                return;
        l->io = true;
        l->read_bytes += number_behind(text, "rchar: ");
        l->write_bytes += number_behind(text, "wchar: ");
        l->block_read_bytes += number_behind(text, "\nread_bytes: ");
        l->block_write_bytes += number_behind(text, "\nwrite_bytes: ");
}

static void look_at_memory(struct look *l, const char *pid) {
        uint64_t resident, shared;
        char path[64], text[128];

        snprintf(path, sizeof(path), "%s/statm", pid);
        if (!read_text(l->proc, path, text, sizeof(text)) ||
            sscanf(text, "%*u %" SCNu64 " %" SCNu64, &resident, &shared) != 2)
                return;
        l->memory = true;
        l->resident += resident;
        l->shared += MIN(shared, resident);
}

static void look_at_task(struct look *l, const char *pid, const char *tid) {
        char path[320], text[1024], *p;

        snprintf(path, sizeof(path), "%s/task/%s/stat", pid, tid);
        if (!read_text(l->proc, path, text, sizeof(text)) || !(p = strrchr(text, ')')) || p[1] != ' ')
                return;
        switch (p[2]) {
        case 'Z':
        case 'X':
                return;
        case 'R':
                l->running++;
                break;
        case 'D':
                l->blocked++;
                break;
        case 'T':
        case 't':
                l->stopped++;
                break;
        default:
                break;
        }
        l->tasks++;
        snprintf(path, sizeof(path), "%s/task/%s/schedstat", pid, tid);
        if (read_text(l->proc, path, text, sizeof(text)) && (p = strchr(text, ' ')))
                l->run_delay_ns += strtoull(p + 1, NULL, 10);
}

static void look_at_process(struct look *l, const char *pid) {
        char path[64];
        struct dirent *entry;
        DIR *dir;

        look_at_io(l, pid);
        look_at_memory(l, pid);
        snprintf(path, sizeof(path), "%s/task", pid);
        dir = open_directory(l->proc, path);
        l->looked += !dir;
        while (dir && (entry = readdir(dir))) {
                if (*entry->d_name == '.')
                        continue;
                if (l->looked++ >= PROCFS_TASKS_MAX) {
                        l->all = false;
                        break;
                }
                look_at_task(l, pid, entry->d_name);
        }
        if (dir)
                (void)closedir(dir);
}

static void put_value(uint64_t values[static _TELEMETRY_MAX], enum telemetry_field f, uint64_t value) {
        if (values[f] == TELEMETRY_UNKNOWN)
                values[f] = value;
}

int procfs_fill(int proc_fd, int unit_fd, uint64_t values[static _TELEMETRY_MAX]) {
        struct look l = { .proc = proc_fd, .all = true };
        _cleanup_fclose_ FILE *list = NULL;
        int fd = openat(unit_fd, "cgroup.procs", O_RDONLY | O_CLOEXEC);
        char pid[32];

        if (fd < 0 || !(list = fdopen(fd, "re"))) {
                int r = -errno;

                close_fd(fd);
                return r;
        }
        errno = 0;
        while (fscanf(list, "%31s", pid) == 1) {
                if (l.looked >= PROCFS_TASKS_MAX) {
                        l.all = false;
                        break;
                }
                look_at_process(&l, pid);
        }
        if (ferror(list))
                return -ENODEV; /* the directory is there no more */
        if (l.tasks > 0 || l.all) {
                put_value(values, TELEMETRY_TASKS, l.tasks);
                put_value(values, TELEMETRY_TASKS_RUNNING, l.running);
                put_value(values, TELEMETRY_TASKS_BLOCKED, l.blocked);
                put_value(values, TELEMETRY_TASKS_STOPPED, l.stopped);
        }
        if (!l.all)
                return 0;
        put_value(values, TELEMETRY_RUNQUEUE_WAIT_USEC, l.run_delay_ns / 1000);
        if (l.memory) {
                uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

                put_value(values, TELEMETRY_MEMORY_BYTES, l.resident * page);
                put_value(values, TELEMETRY_MEMORY_ANON_BYTES, (l.resident - l.shared) * page);
        }
        if (l.io) {
                put_value(values, TELEMETRY_READ_BYTES, l.read_bytes);
                put_value(values, TELEMETRY_WRITE_BYTES, l.write_bytes);
                put_value(values, TELEMETRY_BLOCK_READ_BYTES, l.block_read_bytes);
                put_value(values, TELEMETRY_BLOCK_WRITE_BYTES, l.block_write_bytes);
        }
        return 0;
}
