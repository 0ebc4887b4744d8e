/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of start orders. Invariant: an order that passes names a valid executor of an allowed user. */
#include "agentd/core/admission.h"

#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "lib/base/cleanup.h"

bool fence_accepts(const struct fence *f, uint64_t term, uint64_t epoch) {
        return term >= f->term_seen && term == f->term && (epoch == 0 || epoch == f->epoch);
}

static bool taken(int family, uint16_t port) {
        _cleanup_close_ int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
        struct sockaddr_in6 v6 = { .sin6_family = AF_INET6,
                                   .sin6_port = htons(port),
                                   .sin6_addr = in6addr_any };
        struct sockaddr_in v4 = { .sin_family = AF_INET,
                                  .sin_port = htons(port),
                                  .sin_addr.s_addr = htonl(INADDR_ANY) };
        const int one = 1;
        int r;

        if (fd < 0)
                return false; /* no such family here */
        /* With SO_REUSEADDR connections in TIME_WAIT do not count, a listener does. */
        (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
        if (family == AF_INET6) {
                (void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof(one));
                r = bind(fd, (struct sockaddr *)&v6, sizeof(v6));
        } else
                r = bind(fd, (struct sockaddr *)&v4, sizeof(v4));
        return r < 0 && errno == EADDRINUSE;
}

uint16_t ports_taken(const uint16_t *ports, size_t n) {
        for (size_t i = 0; i < n; i++)
                if (ports[i] != 0 && (taken(AF_INET, ports[i]) || taken(AF_INET6, ports[i])))
                        return ports[i];
        return 0;
}
