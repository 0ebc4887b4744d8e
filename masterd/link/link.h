/* SPDX-License-Identifier: Apache-2.0 */
/* The connections of agents: who they are, what they say (interface org.primus.Link1, master's side). */
#pragma once

#include "lib/base/turns.h"
#include <stdbool.h>
#include <uthash.h>

#include "lib/base/burst.h"
#include "lib/wire/messages.h"
#include "lib/wire/peer.h"

struct manager;
struct node;
struct order;

struct link {
        struct manager *manager;
        struct peer *peer;
        struct node *node; /* after Hello */
        enum link_channel channel;
        uint16_t minor;  /* of the link's version, as spoken with this agent: see lib/wire/version.h */
        bool registered; /* main: the reconciliation is done, orders may go out */
        char *build;
        struct turns turns;   /* of those that wait to be sent a Start, */
        struct order *starts; /* and who waits for its answer, by unit; orders-start.c's */
        bool register_said;
        sd_event_source *hold; /* not read until the store has room again, or for having said too much */
        uint64_t held_since;
        struct burst noticed; /* what it said of itself, within a second */
        UT_hash_handle hh;    /* by peer */
};

/* What is above the connections: the methods that agents call (userdata: their link), and whom to tell that
 * a host's main connection, or another one, is gone. */
struct link_handlers {
        const sd_bus_vtable *vtable;
        void (*main_gone)(struct manager *m, const struct node *node);
        void (*bulk_gone)(struct manager *m, const struct node *node);
        void (*calls_gone)(struct manager *m, struct link *l);
};

int link_listen(struct manager *m, const struct link_handlers *link_handlers);
/* The port that it listens on. */
uint16_t link_port(const struct manager *m);
void link_close_all(struct manager *m);
/* It is the node's second or third connection from now on, in place of another one. */
void link_attach_bulk(struct link *l, struct node *node);
void link_attach_calls(struct link *l, struct node *node);
/* Closes all connections of the node; the text goes to the log. */
void link_drop(struct node *node, const char *why);
/* The bus for orders, or NULL while the node is not connected and registered. */
sd_bus *link_bus(const struct node *node);
/* A message to the node that is not answered. -ENOTCONN. */
int link_one_way(const struct node *node, const char *member, sd_bus_message **ret);
