/* SPDX-License-Identifier: Apache-2.0 */
/* Starting the agent through systemd. Blocking: a person waits for it. */
#include "tools/join/start.h"

#include <inttypes.h>
#include <string.h>
#include <systemd/sd-bus.h>
#include <systemd/sd-daemon.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "tools/join/place.h"

#define AGENT_UNIT "primus-agentd.service"
#define SYSTEMD "org.freedesktop.systemd1"
#define MANAGER SYSTEMD ".Manager"
#define START_USEC (60 * USEC_PER_SEC)
#define CONNECT_USEC (10 * USEC_PER_SEC)
#define LOOK_USEC (50 * USEC_PER_MSEC)

static int call(sd_bus *bus, const char *method, sd_bus_error *error, sd_bus_message **ret,
                const char *signature, ...) {
        va_list ap;
        int r;

        va_start(ap, signature);
        r = sd_bus_call_methodv(bus, SYSTEMD, "/org/freedesktop/systemd1", MANAGER, method, error, ret,
                                signature, ap);
        va_end(ap);
        return r;
}

/* Until systemd is through with it. */
static void wait_for_job(sd_bus *bus, const char *job) {
        uint64_t deadline = usec_add(now_boot(), START_USEC);

        while (now_boot() < deadline) {
                _cleanup_free_ char *state = NULL;
                if (sd_bus_get_property_string(bus, SYSTEMD, job, SYSTEMD ".Job", "State", NULL, &state) < 0)
                        return;
                (void)usleep(LOOK_USEC);
        }
}

/* It runs with the identity it has read. */
void agent_stop(void) {
        _cleanup_(sd_bus_flush_close_unrefp) sd_bus *bus = NULL;
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        const char *job;

        if (sd_booted() > 0 && sd_bus_open_system(&bus) >= 0 &&
            call(bus, "StopUnit", NULL, &reply, "ss", AGENT_UNIT, "replace") >= 0 &&
            sd_bus_message_read(reply, "o", &job) >= 0)
                wait_for_job(bus, job);
}

static int start(sd_bus *bus) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
        const char *job;
        int r;

        /* Enabling reads the files anew, for a package that was installed a moment ago. */
        r = call(bus, "EnableUnitFiles", &error, NULL, "asbb", 1, AGENT_UNIT, 0, 0);
        if (r >= 0)
                r = call(bus, "Reload", &error, NULL, "");
        if (r >= 0)
                r = call(bus, "StartUnit", &error, &reply, "ss", AGENT_UNIT, "replace");
        if (r >= 0)
                r = sd_bus_message_read(reply, "o", &job);
        if (r < 0)
                return fail(JOIN_FAILED,
                            "this host has joined, and primus-agentd cannot be started: %s; try: systemctl "
                            "enable --now primus-agentd",
                            error.message ? error.message : strerror(-r));
        wait_for_job(bus, job);
        return JOIN_OK;
}

static bool is_connected(sd_bus *bus) {
        int connected = 0;

        return sd_bus_get_property_trivial(bus, "org.primus.Agent1", "/org/primus/Agent1",
                                           "org.primus.Agent1.Manager", "Connected", NULL, 'b',
                                           &connected) >= 0 &&
               connected;
}

/* A property of the agent's unit (allocated); NULL: not known. */
static char *unit_property(sd_bus *bus, const char *interface, const char *property) {
        _cleanup_free_ char *path = NULL;
        char *value = NULL;

        if (sd_bus_path_encode("/org/freedesktop/systemd1/unit", AGENT_UNIT, &path) < 0 ||
            sd_bus_get_property_string(bus, SYSTEMD, path, interface, property, NULL, &value) < 0)
                return NULL;
        return value;
}

static int wait_until_connected(sd_bus *bus, const char *node, const char *master) {
        uint64_t deadline = usec_add(now_boot(), CONNECT_USEC);
        _cleanup_free_ char *state = NULL, *status = NULL;

        while (!is_connected(bus) && now_boot() < deadline)
                (void)usleep(LOOK_USEC);
        if (is_connected(bus)) {
                printf("This host is node %s of the cluster of %s, and ready: primusctl -H %s nodes\n", node,
                       master, master);
                return JOIN_OK;
        }
        state = unit_property(bus, SYSTEMD ".Unit", "ActiveState");
        status = unit_property(bus, SYSTEMD ".Service", "StatusText");
        if (!state || strcmp(state, "active") != 0)
                return fail(JOIN_FAILED,
                            "this host has joined as node %s, and primus-agentd does not run (%s): "
                            "systemctl status primus-agentd says why",
                            node, state ? state : "systemd does not know it");
        return fail(
                JOIN_FAILED,
                "this host has joined as node %s, and its agent has not reached masterd yet (%s); it goes "
                "on trying: systemctl status primus-agentd",
                node, status && *status ? status : "it does not say why");
}

int agent_start(const char *node, const char *master) {
        _cleanup_(sd_bus_flush_close_unrefp) sd_bus *bus = NULL;
        int r;

        if (sd_booted() <= 0) {
                printf("This host has joined as node %s. systemd does not run here (a chroot, an image?), so "
                       "the "
                       "agent was not\nstarted. Where it does: systemctl enable --now primus-agentd\n",
                       node);
                return JOIN_OK;
        }
        r = sd_bus_open_system(&bus);
        if (r < 0)
                return fail(
                        JOIN_FAILED,
                        "this host has joined, and the system bus cannot be reached (%s): start the agent "
                        "by: systemctl enable --now primus-agentd",
                        strerror(-r));
        r = start(bus);
        return r ? r : wait_until_connected(bus, node, master);
}
