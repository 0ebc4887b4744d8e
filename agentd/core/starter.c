/* SPDX-License-Identifier: Apache-2.0 */
/* The connection to primus-starter, which is started by it. */
#include "agentd/core/starter.h"

#include "lib/base/cleanup.h"
#include "lib/base/log.h"
#include "lib/base/try.h"

static int on_gone(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        log_error("The connection to primus-starter has ended");
        return sd_event_exit(userdata, -ECONNRESET);
}

int starter_open(sd_event *event, sd_bus **ret) {
        _cleanup_(sd_bus_close_unrefp) sd_bus *bus = NULL;

        TRY(sd_bus_new(&bus));
        TRY(sd_bus_set_address(bus, "unix:path=" STARTER_SOCKET));
        TRY(sd_bus_set_description(bus, "starter"));
        TRY(sd_bus_negotiate_fds(bus, true));
        TRY(sd_bus_start(bus));
        TRY(sd_bus_match_signal(bus, NULL, NULL, "/org/freedesktop/DBus/Local", "org.freedesktop.DBus.Local",
                                "Disconnected", on_gone, event));
        TRY(sd_bus_attach_event(bus, event, SD_EVENT_PRIORITY_NORMAL));
        *ret = TAKE_PTR(bus);
        return 0;
}
