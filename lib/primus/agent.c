/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/primus/agent.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "lib/base/cleanup.h"

#define IDENTIFY_MSEC 10000

int agent_thread(pthread_t *ret, void *(*run)(void *), void *userdata) {
        sigset_t all, before;
        int r;

        (void)sigfillset(&all);
        (void)pthread_sigmask(SIG_SETMASK, &all, &before);
        r = pthread_create(ret, NULL, run, userdata);
        (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
        return r;
}

int agent_path(char ret[static 108]) {
        const char *path = getenv("PRIMUS_SOCKET");

        if (!path || !*path || strlen(path) >= 108)
                return -ENOENT;
        strcpy(ret, path);
        return 0;
}

int agent_say(int fd, uint32_t type, const void *body, size_t size, int flags) {
        struct feed_header header = { .type = type, .size = (uint32_t)size };
        struct iovec iov[] = { { &header, sizeof(header) }, { (void *)(uintptr_t)body, size } };
        struct msghdr m = { .msg_iov = iov, .msg_iovlen = 2 };

        return sendmsg(fd, &m, MSG_NOSIGNAL | flags) < 0 ? -errno : 0;
}

int agent_hear(int fd, int msec, struct feed_header *ret, uint8_t *body, size_t size) {
        struct pollfd p = { .fd = fd, .events = POLLIN };
        struct iovec iov[] = { { ret, sizeof(*ret) }, { body, size } };
        struct msghdr m = { .msg_iov = iov, .msg_iovlen = 2 };
        int r = poll(&p, 1, msec);
        ssize_t n;

        if (r <= 0)
                return r < 0 && errno != EINTR ? -errno : 0;
        n = recvmsg(fd, &m, 0);
        /* The other side has gone without reading all; what it said before lies there still. */
        if (n < 0 && errno == ECONNRESET)
                n = recvmsg(fd, &m, 0);
        if (n < 0)
                return errno == EINTR ? 0 : -errno;
        if (n < (ssize_t)sizeof(*ret) || ret->size != (size_t)n - sizeof(*ret) || (m.msg_flags & MSG_TRUNC))
                return n == 0 ? -ECONNRESET : -EPROTO;
        return 1;
}

static int identify_self(int fd, char why[static AGENT_WHY_MAX]) {
        struct feed_hello hello = { .version = FEED_VERSION, .pid = (uint32_t)getpid() };
        struct feed_welcome welcome;
        struct feed_header header;
        uint8_t body[600];
        int r = agent_say(fd, FEED_HELLO, &hello, sizeof(hello), 0);

        if (r == -EPIPE || r == -ECONNRESET) /* refused already: why comes next */
                r = 0;
        while (r >= 0) {
                r = agent_hear(fd, IDENTIFY_MSEC, &header, body, sizeof(body));
                if (r == 0)
                        return -ETIMEDOUT;
                if (r < 0)
                        return r;
                switch (header.type) {
                case FEED_CHALLENGE:
                        r = agent_say(fd, FEED_ANSWER, body, header.size, 0);
                        break;
                case FEED_WELCOME:
                        if (header.size < sizeof(welcome))
                                return -EPROTO;
                        memcpy(&welcome, body, sizeof(welcome));
                        if (welcome.version >= FEED_VERSION_RESULTS)
                                return 0;
                        snprintf(
                                why, AGENT_WHY_MAX,
                                "this host's primus-agentd is of a release that knows neither searches nor metrics");
                        return -EOPNOTSUPP;
                case FEED_REFUSED:
                        snprintf(why, AGENT_WHY_MAX, "%.*s", (int)MIN(header.size, 400u), (const char *)body);
                        return -ECONNREFUSED;
                default:
                        return -EPROTO;
                }
        }
        return r;
}

int agent_dial(const char *path, char why[static AGENT_WHY_MAX]) {
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), r;

        *why = 0;
        if (fd < 0)
                return -errno;
        memcpy(address.sun_path, path, strlen(path) + 1);
        r = connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0 ? -errno : identify_self(fd, why);
        if (r >= 0)
                return fd;
        (void)close(fd);
        return r;
}
