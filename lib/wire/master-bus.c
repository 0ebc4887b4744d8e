/* SPDX-License-Identifier: Apache-2.0 */
/* Invariant: the system bus goes first, since root and polkit's people are known there alone. */
#include "lib/wire/master-bus.h"

#include <errno.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/try.h"

bool master_is_on(sd_bus *bus) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        int b;

        if (access(MASTER_ENABLED, F_OK) == 0)
                return true;
        return sd_bus_call_method(bus, "org.freedesktop.DBus", "/org/freedesktop/DBus",
                                  "org.freedesktop.DBus", "NameHasOwner", NULL, &reply, "s",
                                  MASTER_NAME) >= 0 &&
               sd_bus_message_read(reply, "b", &b) > 0 && b;
}

static int open_socket(sd_bus **ret) {
        _cleanup_(sd_bus_unrefp) sd_bus *bus = NULL;
        int r;

        TRY(sd_bus_new(&bus));
        TRY(sd_bus_set_address(bus, "unix:path=" MASTER_SOCKET));
        TRY(sd_bus_set_bus_client(bus, true));
        TRY(sd_bus_negotiate_fds(bus, false));
        r = sd_bus_start(bus);
        if (r == -ECONNRESET || r == -EPIPE) /* it ended just now */
                r = -ECONNREFUSED;
        if (r >= 0)
                *ret = TAKE_PTR(bus);
        return r;
}

int master_bus_open(sd_bus **ret, bool *ret_agent) {
        _cleanup_(sd_bus_close_unrefp) sd_bus *system = NULL;
        int r = sd_bus_open_system(&system), k = -ENOENT;

        if (r < 0 || !master_is_on(system))
                k = open_socket(ret);
        *ret_agent = k >= 0;
        if (k >= 0 || k == -ECONNREFUSED)
                return k;
        if (r >= 0)
                *ret = TAKE_PTR(system);
        return r;
}
