/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/wire/tcp.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "lib/base/cleanup.h"

#define IDLE_SEC 10
#define INTERVAL_SEC 5
#define PROBES 3
#define GIVE_UP_MSEC 20000

void tcp_set_options(int fd) {
        static const struct {
                int level, name, value;
        } table[] = {
                { IPPROTO_TCP, TCP_NODELAY, 1 },         { SOL_SOCKET, SO_KEEPALIVE, 1 },
                { IPPROTO_TCP, TCP_KEEPIDLE, IDLE_SEC }, { IPPROTO_TCP, TCP_KEEPINTVL, INTERVAL_SEC },
                { IPPROTO_TCP, TCP_KEEPCNT, PROBES },    { IPPROTO_TCP, TCP_USER_TIMEOUT, GIVE_UP_MSEC },
        };
        for (size_t i = 0; i < ELEMENTSOF(table); i++)
                (void)setsockopt(fd, table[i].level, table[i].name, &table[i].value, sizeof table[i].value);
}
