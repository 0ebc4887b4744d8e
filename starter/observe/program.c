/* SPDX-License-Identifier: Apache-2.0 */
/* Stacks that programs write. Invariant: not a byte of another user's file is read or changed, whatever the
 * user puts under the name. */
#include "starter/observe/program.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>

#include "lib/base/cleanup.h"
#include "lib/wire/capture.h"

#define STEP_USEC 25000u
#define QUIET_STEPS 4u /* of no growth: it is done */

int program_open(const char *directory, pid_t pid, uint32_t uid, struct program *ret) {
        _cleanup_close_ int work = open(directory, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC),
                            below = -EBADF, fd = -EBADF;
        struct stat st;
        char name[32];

        snprintf(name, sizeof(name), "stacks.%d", (int)pid);
        if (work >= 0)
                below = openat(work, "tmp", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (below >= 0)
                fd = openat(below, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        if (fd < 0)
                return errno == ELOOP || errno == ENOTDIR ? -EPERM : -errno;
        if (fstat(fd, &st) < 0)
                return -errno;
        if (!S_ISREG(st.st_mode) || st.st_uid != uid || st.st_nlink != 1)
                return -EPERM;
        if (ftruncate(fd, 0) < 0)
                return -errno;
        ret->fd = TAKE_FD(fd);
        return 0;
}

static off_t size_of(const struct program *p) {
        struct stat st;

        return fstat(p->fd, &st) < 0 ? 0 : st.st_size;
}

void programs_wait(const struct program *p, size_t n) {
        const struct timespec step = { .tv_nsec = STEP_USEC * 1000L };
        off_t before = 0;
        unsigned quiet = 0;

        for (unsigned i = 0; i < PROGRAMS_WAIT_USEC / STEP_USEC && n > 0; i++) {
                bool all = true;
                off_t sum = 0;

                for (size_t k = 0; k < n; k++) {
                        off_t size = size_of(p + k);
                        all &= size > 0;
                        sum += size;
                }
                quiet = all && sum == before ? quiet + 1 : 0;
                before = sum;
                if (quiet >= QUIET_STEPS)
                        return;
                (void)nanosleep(&step, NULL);
        }
}

char *program_read(const struct program *p) {
        _cleanup_free_ char *text = NULL;
        off_t size = size_of(p), from = size > CAPTURE_PYTHON_MAX ? size - CAPTURE_PYTHON_MAX : 0;
        ssize_t n;

        if (size == 0 || !(text = malloc(CAPTURE_PYTHON_MAX + 1)))
                return NULL;
        n = pread(p->fd, text, CAPTURE_PYTHON_MAX, from);
        /* What cannot be taken away would be taken for the next one's answer. */
        if (ftruncate(p->fd, 0) < 0 || n <= 0)
                return NULL;
        text[n] = 0;
        return TAKE_PTR(text);
}

void program_close(struct program *p) {
        p->fd = close_fd(p->fd);
}
