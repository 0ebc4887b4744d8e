/* SPDX-License-Identifier: Apache-2.0 */
/* org.primus.Starter1.Observe on a connection: whatever looking at executors takes a privilege for. */
#pragma once

#include <systemd/sd-bus.h>
#include <systemd/sd-event.h>

#include "lib/base/cleanup.h"
#include "starter/observe/widened.h"

struct observe_options {
        const char *root;        /* before every path; "" in life */
        const char *work_dir;    /* of jobs; NULL: /var/lib/primus-agent/work */
        const char *private_dir; /* of units; NULL: /run/primus/x */
        struct widened *widened; /* of all connections; stays the caller's */
};

struct observe;
/* Offers the interface at STARTER_PATH. What a call makes lasts until observe_free(), to be called when the
 * connection has ended: programs leave the kernel then, and children are killed. options:
 * copied, but not what it points to. The connection must pass descriptors (sd_bus_negotiate_fds()). */
int observe_offer(sd_bus *connection, sd_event *event, const struct observe_options *options,
                  struct observe **ret);
void observe_free(struct observe *o);
DEFINE_CLEANUP(struct observe *, observe_free)
