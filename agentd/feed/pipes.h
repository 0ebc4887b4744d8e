/* SPDX-License-Identifier: Apache-2.0 */
/* Data pipes, made by agentd because an ordinary user's pipes stop being large at 64 MiB together (agentd is
 * one, too, and asks the starter for more), and counted against a budget of the host, because their pages are
 * the kernel's memory and nobody's limit. */
#pragma once

#include <stdint.h>

#define PIPE_SIZE_DEFAULT (64u << 10)
#define PIPE_SIZE_MAX (1u << 20)

struct pipe_budget {
        uint64_t limit, used;
        /* Makes a pipe that has what one of an ordinary user's may have so large: somebody mightier does, in
         * a moment. NULL: nobody. */
        void (*widen)(int fd, uint32_t size, void *userdata);
        void *userdata;
};

/* Makes a pipe (closed on exec) of about size bytes, or of the kernel's default where the budget does not
 * allow that. ret_fds: read end, write end. *ret_size is what it holds and what pipe_return() gives back. 0
 * or negative errno. */
int pipe_make(struct pipe_budget *b, uint32_t size, int ret_fds[2], uint32_t *ret_size);
void pipe_return(struct pipe_budget *b, uint32_t size);
