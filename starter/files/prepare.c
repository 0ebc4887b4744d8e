/* SPDX-License-Identifier: Apache-2.0 */
/* The directories of a host. Invariant: what agentd's user may write has nothing of root's below it, and no
 * configuration is read from there. */
#include "starter/files/prepare.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <systemd/sd-id128.h>

#include "lib/base/cleanup.h"
#include "lib/base/file.h"
#include "lib/base/log.h"
#include "lib/base/unitname.h"
#include "lib/unit/files.h"

#define NODE_DIR PRIMUS_SYSCONFDIR "/node"

static const struct {
        const char *path;
        mode_t mode;
        bool agents;   /* of agentd's user, else root's and of its group */
        bool contents; /* what is in it is agentd's user's as well: it was root's before there was one */
        bool only;     /* where it is there */
        bool metrics;  /* and what is made in it is of the group that may read metrics */
} directories[] = {
        { .path = RUN_DIR, .mode = 0755 },
        { .path = AGENT_DIR, .mode = 02755, .agents = true, .metrics = true },
        { .path = PRIVATE_DIR, .mode = 02711 },
        { .path = EXITS_DIR, .mode = 02750 },
        { .path = HOOKED_DIR, .mode = 0711 },
        { .path = ALONE_DIR, .mode = 0755 },
        { .path = STATE_DIR, .mode = 0711 },
        { .path = WORK_DIR, .mode = 0751 },
        { .path = ARTIFACTS_DIR, .mode = 0751 },
        { .path = BUNDLES_DIR, .mode = 0711, .agents = true },
        { .path = STATE_DIR "/progress", .mode = 0700, .agents = true, .contents = true },
        { .path = NODE_DIR, .mode = 0755, .agents = true, .contents = true, .only = true },
};

/* Regular files and directories alone, and not what has another name elsewhere. */
static int give(int dir_fd, uid_t uid, gid_t gid) {
        int copy = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), r = 0;
        _cleanup_closedir_ DIR *dir = copy < 0 ? NULL : fdopendir(copy);
        struct dirent *e;

        if (!dir) {
                close_fd(copy);
                return -errno;
        }
        while ((e = readdir(dir))) {
                _cleanup_close_ int fd = -EBADF;
                struct stat st;

                if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
                        continue;
                fd = openat(dir_fd, e->d_name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
                if (fd < 0 || fstat(fd, &st) < 0 || st.st_uid != 0 || !S_ISREG(st.st_mode) ||
                    st.st_nlink != 1)
                        continue;
                if (fchown(fd, uid, gid) < 0)
                        r = -errno;
        }
        return r;
}

/* The cache of bundles has a directory for each user, which an agentd that was root made. */
static void give_users(const char *root, uid_t uid, gid_t gid) {
        _cleanup_free_ char *path = NULL;
        _cleanup_closedir_ DIR *dir = NULL;
        struct dirent *e;

        if (asprintf(&path, "%s" BUNDLES_DIR, root) < 0 || !(dir = opendir(path)))
                return;
        while ((e = readdir(dir)))
                if (strspn(e->d_name, "0123456789") == strlen(e->d_name) &&
                    fchownat(dirfd(dir), e->d_name, uid, gid, AT_SYMLINK_NOFOLLOW) < 0)
                        log_warning_errno(-errno, "Cannot give %s/%s to agentd", path, e->d_name);
}

/* Executors that were started by an agentd that was root, and run on. */
static void give_executors(const char *root, gid_t gid) {
        static const struct {
                const char *name;
                mode_t mode;
        } files[] = { { "progress", 0660 }, { "stop", 0640 }, { "ready", 0640 }, { "is-ready", 0640 } };
        _cleanup_free_ char *path = NULL;
        _cleanup_closedir_ DIR *dir = NULL;
        struct dirent *e;

        if (asprintf(&path, "%s" PRIVATE_DIR, root) < 0 || !(dir = opendir(path)))
                return;
        while ((e = readdir(dir))) {
                _cleanup_close_ int fd = -EBADF;

                if (!executor_unit_name_valid(e->d_name))
                        continue;
                fd = openat(dirfd(dir), e->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
                if (fd < 0)
                        continue;
                for (size_t i = 0; i < ELEMENTSOF(files); i++) {
                        _cleanup_close_ int file = openat(
                                fd, files[i].name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
                        struct stat st;

                        if (file >= 0 && fstat(file, &st) >= 0 && S_ISREG(st.st_mode) && st.st_nlink == 1 &&
                            fchown(file, (uid_t)-1, gid) >= 0)
                                (void)fchmod(file, files[i].mode);
                }
        }
}

static void give_records(const char *root, gid_t gid) {
        _cleanup_free_ char *path = NULL;
        _cleanup_closedir_ DIR *dir = NULL;
        struct dirent *e;

        if (asprintf(&path, "%s" EXITS_DIR, root) < 0 || !(dir = opendir(path)))
                return;
        while ((e = readdir(dir)))
                if (executor_unit_name_valid(e->d_name) &&
                    (fchownat(dirfd(dir), e->d_name, (uid_t)-1, gid, AT_SYMLINK_NOFOLLOW) < 0 ||
                     fchmodat(dirfd(dir), e->d_name, 0640, 0) < 0))
                        log_warning_errno(-errno, "Cannot give %s/%s to agentd", path, e->d_name);
}

static int make_directory(const char *root, size_t i, uid_t uid, gid_t gid, gid_t metrics) {
        _cleanup_free_ char *path = NULL;
        _cleanup_close_ int fd = -EBADF;
        const bool agents = directories[i].agents;
        int r;

        if (asprintf(&path, "%s%s", root, directories[i].path) < 0) {
                path = NULL;
                return -ENOMEM;
        }
        if (!directories[i].only && (r = make_directories(path, 0755)) < 0)
                return r;
        fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0)
                return directories[i].only && errno == ENOENT ? 0 : -errno;
        if (fchown(fd, agents ? uid : (uid_t)-1, directories[i].metrics ? metrics : gid) < 0 ||
            fchmod(fd, directories[i].mode) < 0)
                return -errno;
        return directories[i].contents ? give(fd, uid, gid) : 0;
}

/* What an agentd that was root has written beside them. */
static void give_own(const char *root, uid_t uid, gid_t gid) {
        static const char *const names[] = { "link", "conditions", "tail" };

        for (size_t i = 0; i < ELEMENTSOF(names); i++) {
                _cleanup_free_ char *from = NULL, *to = NULL;

                if (asprintf(&from, "%s" RUN_DIR "/%s", root, names[i]) < 0)
                        from = NULL;
                if (asprintf(&to, "%s" AGENT_DIR "/%s", root, names[i]) < 0)
                        to = NULL;
                if (from && to && lchown(from, uid, gid) >= 0)
                        (void)renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE);
        }
        /* Executors of that time dial it there. */
        _cleanup_free_ char *feed = NULL;
        if (asprintf(&feed, "%s" RUN_DIR "/feed.sock", root) < 0)
                feed = NULL;
        if (feed && unlink(feed) >= 0 && symlink("agent/feed.sock", feed) < 0)
                log_warning_errno(-errno, "Cannot make " RUN_DIR "/feed.sock");
}

/* In a container the boot's id lies over that of the kernel's, and is not to be seen in the namespace of a
 * service whose /proc/sys is protected: an agentd that asked there would tell of no reboot. */
static int tell_boot(const char *root) {
        char text[SD_ID128_STRING_MAX];
        _cleanup_free_ char *path = NULL;
        sd_id128_t boot;
        int r;

        if (asprintf(&path, "%s" BOOT_FILE, root) < 0) {
                path = NULL;
                return -ENOMEM;
        }
        r = sd_id128_get_boot(&boot);
        if (r < 0)
                return r;
        sd_id128_to_string(boot, text);
        return write_file_atomic(path, text, strlen(text), 0644, false);
}

int prepare(const char *root, uid_t uid, gid_t gid, gid_t metrics) {
        int result = 0;

        for (size_t i = 0; i < ELEMENTSOF(directories); i++) {
                int r = make_directory(root, i, uid, gid, metrics);

                if (r < 0)
                        result = log_error_errno(r, "Cannot make %s as it should be", directories[i].path);
        }
        if (result < 0)
                return result;
        result = tell_boot(root);
        if (result < 0)
                return log_error_errno(result, "Cannot write " BOOT_FILE);
        give_own(root, uid, gid);
        give_users(root, uid, gid);
        give_executors(root, gid);
        give_records(root, gid);
        return 0;
}
