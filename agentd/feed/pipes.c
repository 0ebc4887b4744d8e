/* SPDX-License-Identifier: Apache-2.0 */
/* Data pipes. Invariant: used is the sum of what pipe_make() handed out and pipe_return() has not taken back.
 */
#include "agentd/feed/pipes.h"

#include <fcntl.h>

#include "lib/base/cleanup.h"

/* The size that it may have: 0, or negative errno. */
static int set_size(struct pipe_budget *b, int fd, uint32_t size, uint32_t *ret) {
        int now = fcntl(fd, F_GETPIPE_SZ);

        if (now < 0)
                return -errno;
        if (size > PIPE_SIZE_DEFAULT && b->used + size > b->limit)
                size = PIPE_SIZE_DEFAULT;
        /* Beyond the sum of a user's pipes each is a page or two from its beginning. */
        if ((uint32_t)now != size && fcntl(fd, F_SETPIPE_SZ, (int)size) < 0 && (uint32_t)now < size &&
            b->widen) {
                b->widen(fd, size, b->userdata);
                *ret = size;
                return 0;
        }
        now = fcntl(fd, F_GETPIPE_SZ);
        if (now < 0)
                return -errno;
        *ret = (uint32_t)now;
        return 0;
}

int pipe_make(struct pipe_budget *b, uint32_t size, int ret_fds[2], uint32_t *ret_size) {
        int r;

        if (pipe2(ret_fds, O_CLOEXEC) < 0)
                return -errno;
        size = size == 0 ? PIPE_SIZE_DEFAULT : MIN(size, PIPE_SIZE_MAX);
        r = set_size(b, ret_fds[1], size, ret_size);
        if (r < 0) {
                (void)close(ret_fds[0]);
                (void)close(ret_fds[1]);
                return r;
        }
        b->used += *ret_size;
        return 0;
}

void pipe_return(struct pipe_budget *b, uint32_t size) {
        b->used -= MIN(b->used, (uint64_t)size);
}
