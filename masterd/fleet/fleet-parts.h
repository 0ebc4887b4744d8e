/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of fleet share: what they know beside the nodes themselves. */
#pragma once

#include <stdint.h>
#include <systemd/sd-bus.h>
#include <systemd/sd-event.h>

#include "lib/base/addr.h"

struct fleet {
        sd_event_source *live_timer;  /* liveness.c */
        sd_event_source *hosts_timer; /* hosts.c: deadlines of drains, windows */
        sd_event_source *blame_timer; /* blaming.c: a quarantine is over, or a probe has run long enough */
        struct shunner *shunners;     /* blaming.c: users that some host is kept from, by uid */
        struct window *windows;       /* maintenance.c: by the time they begin */
        uint32_t n_windows;
        struct addr reached;        /* ownhost.c: this host's address as other hosts know it */
        struct hooks *hooks;        /* hooks.c; NULL: none are run */
        struct unit_run *unit_runs; /* unit-run.c */
        sd_bus_slot *unit_filter;   /* the same */
        struct bus_owner *systemd;  /* the same: of its name; NULL: no unit was started yet */
};
