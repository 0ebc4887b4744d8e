/* SPDX-License-Identifier: Apache-2.0 */
/* primus-starter's side of a connection in the test's own process: real files below a directory, and whatever
 * systemd is at the other end of a bus. */
#pragma once

#include "starter/calls/starter.h"

struct starter_kit {
        struct starter starter;
        sd_bus *server, *client; /* client: what agentd has */
        struct connection *connection;
};

/* connect, userdata: as of relay_new(). root: a directory that is there; its directories are made as
 * "primus-starter --prepare" makes them, with this process's own ids. node: the host's name. Both, and the
 * busses, stay the caller's. */
void starter_kit_new(struct starter_kit *k, sd_event *event, sd_bus *systemd,
                     int (*connect)(sd_bus **ret, void *userdata), void *userdata, const char *root,
                     const char *node);
void starter_kit_done(struct starter_kit *k);
