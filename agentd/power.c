/* SPDX-License-Identifier: Apache-2.0 */
/* Rebooting the host and switching it off, by systemd's targets. */
#include "agentd/power.h"

#include <errno.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/log.h"

static const struct {
        const char *action, *target;
} targets[] = { { "reboot", "reboot.target" }, { "poweroff", "poweroff.target" } };

static int on_reply(sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        const sd_bus_error *e = sd_bus_message_get_error(reply);

        if (e)
                log_error("systemd does not start the target: %s", e->message ? e->message : e->name);
        return 0;
}

int power_start(sd_bus *bus, const char *action) {
        for (size_t i = 0; i < ELEMENTSOF(targets); i++)
                if (strcmp(action, targets[i].action) == 0)
                        return sd_bus_call_method_async(
                                bus, NULL, "org.freedesktop.systemd1", "/org/freedesktop/systemd1",
                                "org.freedesktop.systemd1.Manager", "StartUnit", on_reply, NULL, "ss",
                                targets[i].target, "replace-irreversibly");
        return -EINVAL;
}
