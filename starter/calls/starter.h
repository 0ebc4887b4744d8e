/* SPDX-License-Identifier: Apache-2.0 */
/* What all of the starter knows: the loop, systemd, the host's own policy. A connection is agentd. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <systemd/sd-bus.h>
#include <systemd/sd-event.h>

#include "lib/base/cleanup.h"
#include "lib/wire/messages.h"
#include "lib/wire/starter.h"
#include "starter/calls/relay.h"
#include "starter/files/remover.h"
#include "starter/policy/lookup.h"
#include "starter/policy/policy.h"
#include "starter/unit/open-files.h"

struct starter {
        sd_event *event;
        sd_bus *systemd;  /* the system bus */
        const char *root; /* "" in life, see lib/unit/files.h */
        struct policy policy;
        struct open_files open_files; /* of executors whose role does not say */
        struct lookup *lookup;        /* of its names */
        struct relay *relay;
        struct remover *remover;
        uid_t agent_uid; /* of primus-agentd */
        bool ports_open; /* the kernel takes no program that keeps ports: it is not asked again */
};

/* One agentd. */
struct connection {
        struct starter *starter;
        sd_bus *bus; /* borrowed */
        char *node;  /* NULL before SetInventory */
        struct inventory inventory;
        unsigned n_relayed;
};

/* Offers org.primus.Starter1.Units on the bus. */
int connection_new(struct starter *starter, sd_bus *bus, struct connection **ret);
void connection_free(struct connection *c);
DEFINE_CLEANUP(struct connection *, connection_free)

/* ---- handlers in files of their own ---- */

int starter_method_start(sd_bus_message *call, void *userdata, sd_bus_error *error);
int starter_method_get(sd_bus_message *call, void *userdata, sd_bus_error *error);
int starter_method_session(sd_bus_message *call, void *userdata, sd_bus_error *error);
int starter_method_hook(sd_bus_message *call, void *userdata, sd_bus_error *error);
int starter_method_inventory(sd_bus_message *call, void *userdata, sd_bus_error *error);

/* Refuses a call that is not within the bounds of the interface. */
int starter_malformed(int r, sd_bus_error *error);
