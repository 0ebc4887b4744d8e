/* SPDX-License-Identifier: Apache-2.0 */
/* The master, on its own host: does it run, does it listen, has it room for what it has to keep. Invariant:
 * asking does not start it. */
#include <inttypes.h>
#include <string.h>
#include <sys/statvfs.h>
#include <systemd/sd-bus.h>

#include "lib/base/clock.h"
#include "lib/base/format.h"
#include "tools/primusctl/bus/fields.h"
#include "tools/primusctl/doctor/doctor.h"

#define MASTER "org.primus.Master1"
#define STORE "/var/lib/primus"
#define CALL_USEC (5 * USEC_PER_SEC)
#define ROOM (UINT64_C(1) << 30)

struct master {
        char *version;
        uint32_t jobs, nodes;
};

static void master_done(struct master *m) {
        free(m->version);
}

static int ask(sd_bus *bus, struct master *m) {
        static const struct field fields[] = {
                { "Version", "s", offsetof(struct master, version), NULL },
                { "NumJobs", "u", offsetof(struct master, jobs), NULL },
                { "NumNodes", "u", offsetof(struct master, nodes), NULL },
        };
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *call = NULL, *reply = NULL;
        int r = sd_bus_message_new_method_call(bus, &call, MASTER, "/org/primus/Master1",
                                               "org.freedesktop.DBus.Properties", "GetAll");

        if (r >= 0)
                r = sd_bus_message_append(call, "s", MASTER ".Manager");
        if (r >= 0)
                r = sd_bus_message_set_auto_start(call, false);
        if (r >= 0)
                r = sd_bus_call(bus, call, CALL_USEC, NULL, &reply);
        return r < 0 ? r : read_fields(reply, fields, ELEMENTSOF(fields), m);
}

static void check_store(struct findings *f) {
        char left[FORMAT_SIZE_MAX];
        uint64_t available;
        struct statvfs s;

        if (statvfs(STORE, &s) < 0)
                return;
        available = (uint64_t)s.f_bavail * s.f_frsize;
        format_size(available, left, sizeof(left));
        if (s.f_flag & ST_RDONLY)
                findings_add(f, FINDING_FAIL, "store", "dmesg says why; then: mount -o remount,rw",
                             STORE " is read-only: no job can be submitted");
        else if (available < ROOM)
                findings_add(f, FINDING_WARN, "store", "make room", STORE " has %s left; jobs are kept there",
                             left);
        else
                findings_add(f, FINDING_OK, "store", NULL, STORE ": %s left", left);
}

void doctor_master(struct findings *f) {
        _cleanup_(sd_bus_flush_close_unrefp) sd_bus *bus = NULL;
        _cleanup_(master_done) struct master m = {};
        int r;

        if (!doctor_is_master(""))
                return;
        r = sd_bus_open_system(&bus);
        if (r >= 0)
                r = ask(bus, &m);
        if (r < 0)
                findings_add(
                        f, FINDING_FAIL, "masterd",
                        "systemctl start primus-masterd; systemctl status primus-masterd says why it does "
                        "not run",
                        "primus-masterd is enabled here, and does not answer on the system bus: %s",
                        strerror(-r));
        else
                findings_add(f, FINDING_OK, "masterd", NULL,
                             "version %s runs: %" PRIu32 " node%s, %" PRIu32 " job%s under way",
                             m.version ?: "", m.nodes, m.nodes == 1 ? "" : "s", m.jobs,
                             m.jobs == 1 ? "" : "s");
        check_store(f);
}
