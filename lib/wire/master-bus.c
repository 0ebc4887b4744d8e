/* SPDX-License-Identifier: Apache-2.0 */
/* Invariant: the system bus goes first, since root and polkit's people are known there alone. */
#include "lib/wire/master-bus.h"

#include <errno.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/try.h"

bool master_is_here(void) {
        return access(MASTER_ENABLED, F_OK) == 0 || access(MASTER_RUNS, F_OK) == 0;
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

        if (r < 0 || !master_is_here())
                k = open_socket(ret);
        *ret_agent = k >= 0;
        if (k >= 0 || k == -ECONNREFUSED)
                return k;
        if (r >= 0)
                *ret = TAKE_PTR(system);
        return r;
}
