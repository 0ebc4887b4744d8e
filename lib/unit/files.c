/* SPDX-License-Identifier: Apache-2.0 */
/* What is to be read of executors' and jobs' files. Invariant: nothing here changes one. */
#include "lib/unit/files.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/file.h"
#include "lib/base/unitname.h"

/* Nobody but root may list it. */
static int private_open(const char *root, const char *unit) {
        _cleanup_free_ char *path = NULL;
        int fd;

        if (asprintf(&path, "%s" PRIVATE_DIR "/%s", root, unit) < 0)
                return -ENOMEM;
        fd = open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        return fd < 0 ? -errno : fd;
}

uint64_t private_rendezvous_epoch(const char *root, const char *unit) {
        _cleanup_close_ int fd = private_open(root, unit);
        /* It is the user's, who may have a lease on it: that is not waited for. */
        _cleanup_close_ int file =
                fd < 0 ? -EBADF : openat(fd, "rendezvous", O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        char text[64] = "";
        uint64_t epoch;

        if (file < 0 || read(file, text, sizeof(text) - 1) <= 0)
                return 0;
        return sscanf(text, "PRIMUS_EPOCH=%" SCNu64 "\n", &epoch) == 1 ? epoch : 0;
}

int private_get(const char *root, const char *unit, const char *name, size_t max, char **ret) {
        _cleanup_free_ char *path = NULL;

        if (asprintf(&path, "%s" PRIVATE_DIR "/%s/%s", root, unit, name) < 0) {
                path = NULL;
                return -ENOMEM;
        }
        return read_file(path, max, ret, NULL);
}

bool private_has(const char *root, const char *unit, const char *name) {
        _cleanup_close_ int fd = private_open(root, unit);

        return fd >= 0 && faccessat(fd, name, F_OK, AT_SYMLINK_NOFOLLOW) >= 0;
}

bool private_stop_marked(const char *root, const char *unit) {
        return private_has(root, unit, "stop");
}

/* ---- jobs ---- */

char *hooked_path(const char *root, uint32_t job, sd_id128_t job_uid) {
        char name[WORK_NAME_MAX], *path;

        return asprintf(&path, "%s" HOOKED_DIR "/%s", root, work_name(job, job_uid, name)) < 0 ? NULL : path;
}

bool hooked_marked(const char *root, uint32_t job, sd_id128_t job_uid) {
        _cleanup_free_ char *path = hooked_path(root, job, job_uid);

        return path && access(path, F_OK) >= 0;
}

static char *job_path(const char *root, const char *directory, uint32_t job, sd_id128_t job_uid) {
        char name[WORK_NAME_MAX], *path;

        return asprintf(&path, "%s%s/%s", root, directory, work_name(job, job_uid, name)) < 0 ? NULL : path;
}

static uint32_t owner_of(const char *path) {
        struct stat st;

        return path && lstat(path, &st) >= 0 ? st.st_uid : 0;
}

uint32_t work_owner(const char *root, uint32_t job, sd_id128_t job_uid) {
        _cleanup_free_ char *path = work_path(root, job, job_uid);

        return owner_of(path);
}

char *work_path(const char *root, uint32_t job, sd_id128_t job_uid) {
        return job_path(root, WORK_DIR, job, job_uid);
}

uint32_t artifacts_owner(const char *root, uint32_t job, sd_id128_t job_uid) {
        _cleanup_free_ char *path = artifacts_path(root, job, job_uid);

        return owner_of(path);
}

char *artifacts_path(const char *root, uint32_t job, sd_id128_t job_uid) {
        return job_path(root, ARTIFACTS_DIR, job, job_uid);
}

static bool is_work_name(const char *name) {
        size_t digits = strspn(name, "0123456789");

        return digits > 0 && name[digits] == '-' && strspn(name + digits + 1, "0123456789abcdef") == 8 &&
               strlen(name) == digits + 9;
}

static DIR *open_directory(const char *root, const char *directory) {
        _cleanup_free_ char *path = NULL;

        return asprintf(&path, "%s%s", root, directory) < 0 ? NULL : opendir(path);
}

static int visit_old(const char *root, const char *directory, uint64_t now_usec, uint64_t age_usec,
                     work_visitor f, void *userdata) {
        DIR *dir = open_directory(root, directory);
        struct dirent *entry;
        struct stat st;
        int r = 0;

        if (!dir)
                return errno == ENOENT ? 0 : -errno;
        while (r >= 0 && (entry = readdir(dir))) {
                const char *name = entry->d_name;

                if (*name == '.') {
                        if (strcmp(name, ".") != 0 && strcmp(name, "..") != 0)
                                r = f(name, userdata);
                } else if (is_work_name(name) && fstatat(dirfd(dir), name, &st, AT_SYMLINK_NOFOLLOW) >= 0 &&
                           (uint64_t)st.st_ctim.tv_sec * USEC_PER_SEC + age_usec < now_usec)
                        r = f(name, userdata);
        }
        (void)closedir(dir);
        return r;
}

int work_visit_old(const char *root, uint64_t now_usec, uint64_t age_usec, work_visitor f, void *userdata) {
        return visit_old(root, WORK_DIR, now_usec, age_usec, f, userdata);
}

int artifacts_visit_old(const char *root, uint64_t now_usec, uint64_t age_usec, work_visitor f,
                        void *userdata) {
        return visit_old(root, ARTIFACTS_DIR, now_usec, age_usec, f, userdata);
}
