/* SPDX-License-Identifier: Apache-2.0 */
/* The files of executors and jobs. Invariant: nothing that PID 1 or agentd goes by (env, stop) can be
 * changed by the job's user: the directory above it is root's. */
#include "starter/files/private.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/file.h"
#include "lib/base/names.h"
#include "lib/base/unitname.h"
#include "lib/base/utf8.h"
#include "lib/unit/files.h"

int environment_format(char *const *env, char **ret, size_t *ret_size, const char **ret_bad) {
        _cleanup_free_ char *text = NULL;
        size_t size = 1;
        char *p;

        for (char *const *e = env; e && *e; e++)
                size += 2 * strlen(*e) + 4;
        p = text = malloc(size);
        if (!text)
                return -ENOMEM;
        for (char *const *e = env; e && *e; e++) {
                const char *equals = strchr(*e, '=');
                char name[256];

                if (ret_bad)
                        *ret_bad = *e;
                if (!equals || (size_t)(equals - *e) >= sizeof(name))
                        return -EINVAL;
                memcpy(name, *e, (size_t)(equals - *e));
                name[equals - *e] = 0;
                if (!env_name_valid(name) || !utf8_valid(equals + 1, strlen(equals + 1)))
                        return -EINVAL;
                p = stpcpy(stpcpy(p, name), "=\"");
                for (const char *v = equals + 1; *v; v++) {
                        if (strchr("\"\\`$", *v))
                                *p++ = '\\';
                        *p++ = *v;
                }
                p = stpcpy(p, "\"\n");
        }
        *p = 0;
        *ret_size = (size_t)(p - text);
        *ret = TAKE_PTR(text);
        return 0;
}

static int private_open(const char *root, const char *unit) {
        _cleanup_free_ char *path = NULL;
        int fd;

        if (asprintf(&path, "%s" PRIVATE_DIR "/%s", root, unit) < 0)
                return -ENOMEM;
        fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        return fd < 0 ? -errno : fd;
}

/* owner UINT32_MAX: stays the caller's. */
static int write_at(int dir_fd, const char *name, const void *data, size_t size, mode_t mode,
                    uint32_t owner) {
        _cleanup_close_ int fd =
                openat(dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        int r;

        if (fd < 0)
                return -errno;
        r = write_all(fd, data, size);
        if (r < 0)
                return r;
        if (fchmod(fd, mode) < 0 || (owner != UINT32_MAX && fchown(fd, owner, (gid_t)-1) < 0))
                return -errno;
        return 0;
}

static bool secret_name_valid(const char *name) {
        return *name && strlen(name) <= 255 && *name != '.' && !strchr(name, '/');
}

static int write_secrets(int dir_fd, uint32_t uid, const struct secret *secrets, size_t n) {
        _cleanup_close_ int fd = -EBADF;
        int r;

        if (mkdirat(dir_fd, "secrets", 0700) < 0)
                return -errno;
        fd = openat(dir_fd, "secrets", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0)
                return -errno;
        for (size_t i = 0; i < n; i++) {
                if (!secret_name_valid(secrets[i].name))
                        return -EINVAL;
                r = write_at(fd, secrets[i].name, secrets[i].data, secrets[i].size, 0400, uid);
                if (r < 0)
                        return r;
        }
        if (fchmod(fd, 0500) < 0 || fchown(fd, uid, (gid_t)-1) < 0)
                return -errno;
        return 0;
}

int private_create(const char *root, const char *unit, uint32_t uid, const char *env, size_t env_size,
                   const struct secret *secrets, size_t n_secrets) {
        _cleanup_free_ char *path = NULL;
        _cleanup_close_ int fd = -EBADF;
        int r;

        if (asprintf(&path, "%s" PRIVATE_DIR "/%s", root, unit) < 0)
                return -ENOMEM;
        if (mkdir(path, 0711) < 0) {
                if (errno == ENOENT) {
                        *strrchr(path, '/') = 0;
                        r = make_directories(path, 0711);
                        path[strlen(path)] = '/';
                } else
                        r = errno == EEXIST ? remove_tree(path) : -errno;
                if (r < 0)
                        return r;
                if (mkdir(path, 0711) < 0)
                        return -errno;
        }
        fd = private_open(root, unit);
        if (fd < 0)
                return fd;
        /* It has the group and the setgid bit of the one above: agentd's group reads what is made in it. */
        r = write_at(fd, "env", env, env_size, 0600, UINT32_MAX);
        if (r >= 0 && n_secrets > 0)
                r = write_secrets(fd, uid, secrets, n_secrets);
        if (r < 0)
                (void)remove_tree(path);
        return r;
}

#define PROGRESS_SIZE 16

int private_create_progress(const char *root, const char *unit, uint32_t uid) {
        static const uint8_t nothing[PROGRESS_SIZE];
        _cleanup_close_ int fd = private_open(root, unit);

        return fd < 0 ? fd : write_at(fd, "progress", nothing, sizeof(nothing), 0660, uid);
}

int private_owner(const char *root, const char *unit, uint32_t *ret) {
        _cleanup_close_ int fd = private_open(root, unit);
        struct stat st;

        if (fd < 0)
                return fd;
        if (fstatat(fd, "progress", &st, AT_SYMLINK_NOFOLLOW) < 0)
                return -errno;
        *ret = st.st_uid;
        return 0;
}

#define RENDEZVOUS_TEMPORARY ".rendezvous"

int private_write_rendezvous(const char *root, const char *unit, uint32_t uid, uint64_t epoch,
                             char *const *env) {
        _cleanup_close_ int fd = private_open(root, unit);
        _cleanup_free_ char *text = NULL;
        size_t size;
        FILE *f;
        int r;

        if (fd < 0)
                return fd;
        f = open_memstream(&text, &size);
        if (!f)
                return -ENOMEM;
        fprintf(f, "PRIMUS_EPOCH=%" PRIu64 "\n", epoch);
        for (char *const *e = env; e && *e; e++) {
                if (strchr(*e, '\n')) {
                        (void)fclose(f);
                        return -EINVAL;
                }
                fprintf(f, "%s\n", *e);
        }
        if (fclose(f) != 0)
                return -ENOMEM;
        if (unlinkat(fd, RENDEZVOUS_TEMPORARY, 0) < 0 && errno != ENOENT)
                return -errno;
        r = write_at(fd, RENDEZVOUS_TEMPORARY, text, size, 0440, uid);
        if (r < 0)
                return r;
        return renameat(fd, RENDEZVOUS_TEMPORARY, fd, "rendezvous") < 0 ? -errno : 0;
}

int private_put(const char *root, const char *unit, const char *name, const void *data, size_t size) {
        _cleanup_close_ int fd = private_open(root, unit);
        int r;

        if (fd < 0)
                return fd;
        r = write_at(fd, name, data, size, 0640, UINT32_MAX);
        return r == -EEXIST ? 0 : r;
}

int private_remove(const char *root, const char *unit) {
        _cleanup_free_ char *path = NULL;

        if (asprintf(&path, "%s" PRIVATE_DIR "/%s", root, unit) < 0)
                return -ENOMEM;
        return remove_tree(path);
}

/* ---- what a prolog leaves to an epilog ---- */

int hooked_mark(const char *root, uint32_t job, sd_id128_t job_uid) {
        _cleanup_free_ char *path = hooked_path(root, job, job_uid), *directory = NULL;
        _cleanup_close_ int fd = -EBADF;
        int r;

        if (!path || asprintf(&directory, "%s" HOOKED_DIR, root) < 0)
                return -ENOMEM;
        r = make_directories(directory, 0711);
        if (r < 0)
                return r;
        fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
        return fd < 0 ? -errno : 0;
}

void hooked_clear(const char *root, uint32_t job, sd_id128_t job_uid) {
        _cleanup_free_ char *path = hooked_path(root, job, job_uid);

        if (path)
                (void)unlink(path);
}

/* ---- work directories ---- */

int work_create(const char *root, uint32_t job, sd_id128_t job_uid, uint32_t uid) {
        _cleanup_free_ char *path = work_path(root, job, job_uid), *parent = NULL;
        _cleanup_close_ int fd = -EBADF;
        bool made = false;
        struct stat st;
        int r;

        if (!path)
                return -ENOMEM;
        if (mkdir(path, 0700) >= 0)
                made = true;
        else if (errno == ENOENT) {
                parent = strndup(path, (size_t)(strrchr(path, '/') - path));
                if (!parent)
                        return -ENOMEM;
                r = make_directories(parent, 0711);
                if (r < 0)
                        return r;
                if (mkdir(path, 0700) < 0)
                        return -errno;
                made = true;
        } else if (errno != EEXIST)
                return -errno;

        fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0 || fstat(fd, &st) < 0)
                return -errno;
        if (made || st.st_uid == 0) { /* root's: agentd died between the steps */
                /* tmp before the directory is the user's: afterwards a link could stand in its place. */
                if ((mkdirat(fd, "tmp", 0700) < 0 && errno != EEXIST) ||
                    fchownat(fd, "tmp", uid, (gid_t)-1, AT_SYMLINK_NOFOLLOW) < 0 || fchmod(fd, 0700) < 0 ||
                    fchown(fd, uid, (gid_t)-1) < 0)
                        return -errno;
                return 0;
        }
        return st.st_uid == uid ? 0 : -EPERM;
}

void work_touch(const char *root, uint32_t job, sd_id128_t job_uid) {
        _cleanup_free_ char *path = work_path(root, job, job_uid);

        /* ctime is what counts, which the user cannot set. */
        if (path)
                (void)utimensat(AT_FDCWD, path, NULL, AT_SYMLINK_NOFOLLOW);
}

/* NUMBER-UID8, or ".NUMBER-UID8.HEX" of a removal that was broken off. */
static bool work_entry_valid(const char *name) {
        const char *n = name + (*name == '.');
        size_t digits = strspn(n, "0123456789");

        if (digits == 0 || digits > 10 || n[digits] != '-' || strspn(n + digits + 1, "0123456789abcdef") != 8)
                return false;
        n += digits + 9;
        if (*name != '.')
                return !*n;
        return *n == '.' && n[1] && strlen(n) <= 20 && strspn(n + 1, "0123456789abcdef") == strlen(n + 1);
}

static int detach_directory(const char *root, const char *directory, const char *name, char **ret) {
        _cleanup_free_ char *from = NULL, *to = NULL;

        if (!work_entry_valid(name))
                return -EINVAL;
        if (asprintf(&from, "%s%s/%s", root, directory, name) < 0)
                return -ENOMEM;
        if (*name == '.') {
                *ret = TAKE_PTR(from);
                return 0;
        }
        if (asprintf(&to, "%s%s/.%s.%llx", root, directory, name, (unsigned long long)now_real()) < 0)
                return -ENOMEM;
        if (rename(from, to) < 0) {
                if (errno != ENOENT)
                        return -errno;
                *ret = NULL;
                return 0;
        }
        *ret = TAKE_PTR(to);
        return 0;
}

int work_detach(const char *root, const char *name, char **ret) {
        return detach_directory(root, WORK_DIR, name, ret);
}

/* ---- artifacts: they outlive the job ---- */

int artifacts_create(const char *root, uint32_t job, sd_id128_t job_uid, uint32_t uid) {
        _cleanup_free_ char *path = artifacts_path(root, job, job_uid);
        _cleanup_close_ int fd = -EBADF;
        struct stat st;

        if (!path)
                return -ENOMEM;
        if (mkdir(path, 0700) < 0 && errno == ENOENT) { /* somebody has made room */
                _cleanup_free_ char *parent = strndup(path, (size_t)(strrchr(path, '/') - path));
                int r = parent ? make_directories(parent, 0751) : -ENOMEM;

                if (r < 0)
                        return r;
                (void)mkdir(path, 0700);
        }
        fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0 || fstat(fd, &st) < 0)
                return -errno;
        if (st.st_uid == 0) /* new, or the starter died between the steps */
                return fchmod(fd, 0700) < 0 || fchown(fd, uid, (gid_t)-1) < 0 ? -errno : 0;
        if (st.st_uid != uid)
                return -EPERM;
        (void)futimens(fd, NULL); /* who is about to remove it looks at ctime */
        return 0;
}

void artifacts_touch(const char *root, uint32_t job, sd_id128_t job_uid) {
        _cleanup_free_ char *path = artifacts_path(root, job, job_uid);

        if (path)
                (void)utimensat(AT_FDCWD, path, NULL, AT_SYMLINK_NOFOLLOW);
}

int artifacts_detach(const char *root, const char *name, char **ret) {
        return detach_directory(root, ARTIFACTS_DIR, name, ret);
}

static DIR *open_directory(const char *root, const char *path) {
        _cleanup_free_ char *full = NULL;

        return asprintf(&full, "%s%s", root, path) < 0 ? NULL : opendir(full);
}

/* ---- what systemd leaves ---- */

#define SYSTEMD_UNITS_DIR "/run/systemd/units"
#define EXTRA_FIELDS "log-extra-fields:"

void extra_fields_remove(const char *root, const char *unit) {
        _cleanup_free_ char *path = NULL;

        if (asprintf(&path, "%s" SYSTEMD_UNITS_DIR "/" EXTRA_FIELDS "%s", root, unit) >= 0)
                (void)unlink(path);
}

/* A unit that runs, or is about to, has a link to its invocation, which is there before the other file. */
void extra_fields_sweep(const char *root) {
        DIR *dir = open_directory(root, SYSTEMD_UNITS_DIR);
        struct dirent *entry;

        if (!dir)
                return;
        while ((entry = readdir(dir))) {
                char invocation[sizeof("invocation:") + UNIT_NAME_MAX];
                const char *unit = entry->d_name + strlen(EXTRA_FIELDS);

                if (strncmp(entry->d_name, EXTRA_FIELDS, strlen(EXTRA_FIELDS)) != 0 ||
                    !executor_unit_name_valid(unit))
                        continue;
                snprintf(invocation, sizeof(invocation), "invocation:%s", unit);
                if (faccessat(dirfd(dir), invocation, F_OK, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT)
                        (void)unlinkat(dirfd(dir), entry->d_name, 0);
        }
        (void)closedir(dir);
}
