/* SPDX-License-Identifier: Apache-2.0 */
/* How far an executor says that it is. Invariants: the file is the user's, so it is opened without following
 * links or waiting, and its first 16 bytes are read whatever it became; it lies in /run, which all need, so
 * it stays that short. */
#include "agentd/metrics/progress.h"

#include <endian.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/cleanup.h"

#define PAGE_BYTES 16
#define PROGRESS_PATH "/run/primus/x/%s/progress"

int progress_open(const char *root, const char *unit) {
        _cleanup_close_ int fd = -EBADF;
        _cleanup_free_ char *path = NULL;
        struct stat st;

        if (asprintf(&path, "%s" PROGRESS_PATH, root, unit) < 0)
                return -ENOMEM;
        fd = open(path, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        if (fd < 0 || fstat(fd, &st) < 0)
                return -errno;
        return S_ISREG(st.st_mode) ? TAKE_FD(fd) : -EINVAL;
}

void progress_fill(int fd, uint64_t now_boot, uint64_t values[static _TELEMETRY_MAX]) {
        uint64_t page[3], when; /* the third has nothing to say, but that there is more */
        ssize_t n = pread(fd, page, sizeof(page), 0);

        /* What it says holds even where what was written behind it cannot be cut off. */
        if (n > PAGE_BYTES && ftruncate(fd, PAGE_BYTES) < 0)
                n = PAGE_BYTES;
        if (n < PAGE_BYTES || (when = le64toh(page[1])) == 0)
                return;
        values[TELEMETRY_PROGRESS_STEP] = le64toh(page[0]);
        values[TELEMETRY_PROGRESS_AGE_USEC] = when < now_boot ? now_boot - when : 0;
}
