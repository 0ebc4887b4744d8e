/* SPDX-License-Identifier: Apache-2.0 */
/* Who is at the other end. Invariant: a path of control groups that a user may have made (below a delegated
 * one) is never taken for an executor's, since the path is read from its top. */
#include "agentd/feed/identity.h"

#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "lib/base/cgroup-unit.h"
#include "lib/base/cleanup.h"
#include "lib/base/file.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

#define CGROUP_MAX (64u << 10)

int identity_open(int fd, struct identity *ret) {
        struct ucred peer;
        socklen_t size = sizeof(peer);
        int pidfd = -EBADF, on = 1;

        if (setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) < 0 ||
            getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0)
                return -errno;
        size = sizeof(pidfd);
        if (getsockopt(fd, SOL_SOCKET, SO_PEERPIDFD, &pidfd, &size) < 0) {
                if (errno != ENOPROTOOPT)
                        return -errno;
                /* The number may have been given to another process since; then the challenge, which that one
                 * does not see, is answered by none with this number. */
                pidfd = (int)syscall(SYS_pidfd_open, peer.pid, 0);
                if (pidfd < 0)
                        return -errno;
        }
        *ret = (struct identity){ .pid = peer.pid, .uid = peer.uid, .pidfd = pidfd };
        return 0;
}

int identity_alive(const struct identity *i) {
        struct pollfd pfd = { .fd = i->pidfd, .events = POLLIN };

        return poll(&pfd, 1, 0) == 0; /* readable once it has ended */
}

int identity_parse_cgroup(const char *text, const char *init, char ret[static IDENTITY_UNIT_MAX]) {
        return cgroup_unit_parse(text, init, ret, IDENTITY_UNIT_MAX);
}

int identity_unit(const struct identity *i, char ret[static IDENTITY_UNIT_MAX]) {
        _cleanup_free_ char *text = NULL, *init = NULL;
        char path[64];
        int r;

        snprintf(path, sizeof(path), "/proc/%d/cgroup", (int)i->pid);
        r = read_file(path, CGROUP_MAX, &text, NULL);
        if (r < 0)
                return r;
        r = read_file("/proc/1/cgroup", CGROUP_MAX, &init, NULL);
        if (r < 0)
                return r;
        return identity_parse_cgroup(text, init, ret);
}
