/* SPDX-License-Identifier: Apache-2.0 */
/* Data pipes. Invariant: used is the sum of what pipe_make() handed out and pipe_return() has not taken back.
 */
#include "agentd/feed/pipes.h"

#include <fcntl.h>

#include "lib/base/cleanup.h"

int pipe_make(struct pipe_budget *b, uint32_t size, int ret_fds[2], uint32_t *ret_size) {
        int r;

        if (pipe2(ret_fds, O_CLOEXEC) < 0)
                return -errno;
        size = size == 0 ? PIPE_SIZE_DEFAULT : MIN(size, PIPE_SIZE_MAX);
        if (size <= PIPE_SIZE_DEFAULT || b->used + size <= b->limit)
                (void)fcntl(ret_fds[1], F_SETPIPE_SZ, (int)size);
        r = fcntl(ret_fds[1], F_GETPIPE_SZ);
        if (r < 0) {
                r = -errno;
                (void)close(ret_fds[0]);
                (void)close(ret_fds[1]);
                return r;
        }
        *ret_size = (uint32_t)r;
        b->used += (uint32_t)r;
        return 0;
}

void pipe_return(struct pipe_budget *b, uint32_t size) {
        b->used -= MIN(b->used, (uint64_t)size);
}
