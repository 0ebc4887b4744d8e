/* SPDX-License-Identifier: Apache-2.0 */
/* Files of packet bodies, each behind its size. Invariant: only bodies that packet_read_progress() accepts
 * are written. */
#include "agentd/feed/final.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include "agentd/feed/packet.h"
#include "lib/base/cleanup.h"
#include "lib/base/file.h"

static int path_of(const char *root, const char *unit, char **ret) {
        return asprintf(ret, "%s" FINAL_DIR "%s%s", root, unit ? "/" : "", unit ? unit : "") < 0 ? -ENOMEM
                                                                                                 : 0;
}

static int open_file(const char *root, const char *unit, int flags) {
        _cleanup_free_ char *path = NULL, *directory = NULL;
        int fd, r = path_of(root, unit, &path);

        if (r < 0)
                return r;
        fd = open(path, flags | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (fd >= 0 || errno != ENOENT || !(flags & O_CREAT))
                return fd < 0 ? -errno : fd;
        r = path_of(root, NULL, &directory);
        if (r >= 0)
                r = make_directories(directory, 0700);
        if (r < 0)
                return r;
        fd = open(path, flags | O_NOFOLLOW | O_CLOEXEC, 0600);
        return fd < 0 ? -errno : fd;
}

int final_put(const char *root, const char *unit, const void *body, size_t size, bool first) {
        _cleanup_close_ int fd = -EBADF;
        uint32_t length = (uint32_t)size;
        struct iovec iov[2] = { { &length, sizeof(length) }, { (void *)body, size } };
        struct stat st;

        if (size > FEED_PACKET_MAX)
                return -EFBIG;
        fd = open_file(root, unit, O_WRONLY | O_CREAT | O_APPEND | (first ? O_TRUNC : 0));
        if (fd < 0)
                return fd;
        if (fstat(fd, &st) < 0)
                return -errno;
        if ((uint64_t)st.st_size + sizeof(length) + size > FINAL_MAX)
                return -EFBIG;
        ssize_t l = writev(fd, iov, ELEMENTSOF(iov));
        if (l < 0)
                return -errno;
        return (size_t)l == sizeof(length) + size ? 0 : -ENOSPC;
}

int final_read(const char *root, const char *unit, final_handler handler, void *userdata) {
        _cleanup_free_ char *path = NULL, *text = NULL;
        size_t size, at = 0;
        int r = path_of(root, unit, &path);

        if (r >= 0)
                r = read_file(path, FINAL_MAX, &text, &size);
        if (r < 0)
                return r == -ENOENT ? 0 : r;
        while (r >= 0 && at < size) {
                struct feed_report report;
                uint32_t length;

                if (size - at < sizeof(length)) {
                        r = -EBADMSG;
                        break;
                }
                memcpy(&length, text + at, sizeof(length));
                at += sizeof(length);
                r = length > size - at ? -EBADMSG
                                       : packet_read_progress((const uint8_t *)text + at, length, &report);
                if (r < 0)
                        break;
                at += length;
                report.credits = 0;
                r = handler(&report, userdata);
        }
        return r < 0 ? r : 0;
}

void final_delete(const char *root, const char *unit) {
        _cleanup_free_ char *path = NULL;

        if (path_of(root, unit, &path) >= 0)
                (void)unlink(path);
}

int final_sweep(const char *root, bool (*keep)(const char *unit, void *userdata), void *userdata) {
        _cleanup_free_ char *path = NULL;
        struct dirent *entry;
        DIR *dir;
        int r = path_of(root, NULL, &path);

        if (r < 0)
                return r;
        dir = opendir(path);
        if (!dir)
                return errno == ENOENT ? 0 : -errno;
        while ((entry = readdir(dir)))
                if (entry->d_name[0] != '.' && !keep(entry->d_name, userdata))
                        (void)unlinkat(dirfd(dir), entry->d_name, 0);
        (void)closedir(dir);
        return 0;
}
