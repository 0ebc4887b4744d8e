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

/* The path of the hierarchy that systemd manages, as a slice of text. */
static const char *systemd_path(const char *text, size_t *ret_size) {
        const char *found = NULL;

        for (const char *line = text; *line;) {
                size_t n = strcspn(line, "\n");
                const char *first = memchr(line, ':', n), *second;

                second = first ? memchr(first + 1, ':', n - (size_t)(first + 1 - line)) : NULL;
                if (second) {
                        size_t controllers = (size_t)(second - first - 1);
                        bool named = controllers == 12 && memcmp(first + 1, "name=systemd", 12) == 0;

                        /* On a hybrid host both are there, and agree; v1's is the one that systemd goes by.
                         */
                        if (named || (controllers == 0 && !found)) {
                                found = second + 1;
                                *ret_size = n - (size_t)(second + 1 - line);
                        }
                        if (named)
                                return found;
                }
                line += n;
                line += *line == '\n';
        }
        return found;
}

static bool has_suffix(const char *s, size_t n, const char *suffix) {
        size_t l = strlen(suffix);

        return n > l && memcmp(s + n - l, suffix, l) == 0;
}

int identity_parse_cgroup(const char *text, const char *init, char ret[static IDENTITY_UNIT_MAX]) {
        static const char top[] = "/primus.slice/", scope[] = "/init.scope";
        size_t n = 0, root = 0;
        const char *path = systemd_path(text, &n), *init_path = systemd_path(init, &root);

        if (!path || !init_path)
                return -ENOENT;
        if (root >= strlen(scope) && memcmp(init_path + root - strlen(scope), scope, strlen(scope)) == 0)
                root -= strlen(scope);
        else if (root == 1)
                root = 0; /* "/" */
        if (n <= root || memcmp(path, init_path, root) != 0)
                return -ENOENT;
        path += root;
        n -= root;
        if (n <= strlen(top) || memcmp(path, top, strlen(top)) != 0)
                return -ENOENT;
        path += strlen(top);
        n -= strlen(top);
        while (n > 0) {
                const char *slash = memchr(path, '/', n);
                size_t l = slash ? (size_t)(slash - path) : n;

                if (has_suffix(path, l, ".service")) {
                        if (l >= IDENTITY_UNIT_MAX)
                                return -ENOENT;
                        memcpy(ret, path, l);
                        ret[l] = 0;
                        return 0;
                }
                if (!has_suffix(path, l, ".slice") || !slash)
                        return -ENOENT;
                path += l + 1;
                n -= l + 1;
        }
        return -ENOENT;
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
