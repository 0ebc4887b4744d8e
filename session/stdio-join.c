/* SPDX-License-Identifier: Apache-2.0 */
/* primus-stdio join: what a session runs, between its standard input and output and the one who holds those
 * of the executor's command. */
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/socket.h>
#include <time.h>

#include "lib/base/cleanup.h"
#include "lib/wire/session.h"
#include "session/stdio-parts.h"

#define CONNECT_TRIES 100
#define CONNECT_NSEC 50000000

struct side {
        uint8_t data[SESSION_DATA_MAX];
        size_t at, size;
};

static int connect_once(const struct sockaddr_un *address) {
        _cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

        if (fd < 0 || connect(fd, (const struct sockaddr *)address, sizeof(*address)) < 0)
                return -errno;
        return stdio_is_ours(fd) ? TAKE_FD(fd) : -EPERM;
}

/* False: it has ended. */
static bool fill_side(int fd, struct side *s) {
        ssize_t n = read(fd, s->data, sizeof(s->data));

        if (n < 0)
                return errno == EINTR;
        s->at = 0;
        s->size = (size_t)n;
        return n > 0;
}

static bool drain_side(int fd, struct side *s) {
        ssize_t n = send(fd, s->data + s->at, s->size - s->at, MSG_NOSIGNAL | MSG_DONTWAIT);

        if (n < 0 && errno == ENOTSOCK)
                n = write(fd, s->data + s->at, s->size - s->at);
        if (n < 0)
                return errno == EINTR || errno == EAGAIN;
        s->at += (size_t)n;
        return true;
}

int stdio_join(void) {
        static struct side to, from;
        _cleanup_close_ int fd = -EBADF;
        struct sockaddr_un address;
        int r = stdio_address(&address);

        if (r < 0)
                return stdio_fail(r == -EINVAL ? "$" STDIO_VARIABLE " is not what 'primusctl run' sets"
                                               : "no place of a standard input",
                                  r);
        for (int i = 0; i < CONNECT_TRIES; i++) {
                struct timespec t = { .tv_nsec = CONNECT_NSEC };

                fd = connect_once(&address);
                if (fd >= 0 || (fd != -ENOENT && fd != -ECONNREFUSED && fd != -EAGAIN))
                        break;
                (void)nanosleep(&t, NULL);
        }
        if (fd < 0)
                return stdio_fail("nobody holds the standard input of this executor's command", fd);
        for (;;) {
                bool idle_to = to.at == to.size, idle_from = from.at == from.size;
                struct pollfd p[] = {
                        { .fd = idle_to ? STDIN_FILENO : -1, .events = POLLIN },
                        /* Without an event its end would wake us again and again. */
                        { .fd = idle_to && !idle_from ? -1 : fd,
                          .events = (short)((idle_to ? 0 : POLLOUT) | (idle_from ? POLLIN : 0)) },
                        { .fd = idle_from ? -1 : STDOUT_FILENO, .events = POLLOUT },
                };

                if (poll(p, 3, -1) < 0)
                        continue;
                if (p[0].revents && !fill_side(STDIN_FILENO, &to))
                        return EXIT_SUCCESS;
                if (p[1].revents & POLLOUT && !drain_side(fd, &to))
                        to.at = to.size; /* it has ended; what it said still comes */
                if (p[1].revents & (POLLIN | POLLHUP | POLLERR) && idle_from && !fill_side(fd, &from))
                        return EXIT_SUCCESS;
                if (p[2].revents && !drain_side(STDOUT_FILENO, &from))
                        return EXIT_SUCCESS;
        }
}
