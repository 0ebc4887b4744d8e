/* SPDX-License-Identifier: Apache-2.0 */
/* Both ends of a connection to the starter. */
#include "agentd/starter-here.h"

#include <stdbool.h>
#include <sys/socket.h>

#include "starter/observe/observe.h"

struct starter_here {
        sd_bus *bus;
        struct observe *observe;
};

static int open_end(sd_event *event, int fd, bool server, sd_bus **ret) {
        _cleanup_(sd_bus_unrefp) sd_bus *bus = NULL;
        sd_id128_t id;
        int r;

        if ((r = sd_bus_new(&bus)) < 0 || (r = sd_bus_set_fd(bus, fd, fd)) < 0) {
                close_fd(fd);
                return r;
        }
        if ((server && ((r = sd_id128_randomize(&id)) < 0 || (r = sd_bus_set_server(bus, 1, id)) < 0)) ||
            (r = sd_bus_negotiate_fds(bus, 1)) < 0 || (r = sd_bus_start(bus)) < 0 ||
            (r = sd_bus_attach_event(bus, event, SD_EVENT_PRIORITY_NORMAL)) < 0)
                return r;
        *ret = TAKE_PTR(bus);
        return 0;
}

int starter_here_new(sd_event *event, struct starter_here **ret, sd_bus **ret_bus) {
        _cleanup_(starter_here_free_p) struct starter_here *s = calloc(1, sizeof(*s));
        _cleanup_(sd_bus_close_unrefp) sd_bus *mine = NULL;
        int fds[2], r;

        if (!s)
                return -ENOMEM;
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) < 0)
                return -errno;
        r = open_end(event, fds[0], true, &s->bus);
        if (r < 0) {
                close_fd(fds[1]);
                return r;
        }
        if ((r = open_end(event, fds[1], false, &mine)) < 0 ||
            (r = observe_offer(s->bus, event, NULL, &s->observe)) < 0)
                return r;
        *ret = TAKE_PTR(s);
        *ret_bus = TAKE_PTR(mine);
        return 0;
}

void starter_here_free(struct starter_here *s) {
        if (!s)
                return;
        observe_free(s->observe);
        sd_bus_close_unref(s->bus);
        free(s);
}
