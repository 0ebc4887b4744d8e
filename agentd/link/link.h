/* SPDX-License-Identifier: Apache-2.0 */
/* The link to masterd: dialling (names are resolved in a thread), TLS, Hello, Register, heartbeats, and
 * coming back after a loss, jittered. A second connection carries bulk (files, logs), so that a heartbeat
 * never waits behind a bundle; a third one, where somebody calls, what people say. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <systemd/sd-bus.h>
#include <systemd/sd-event.h>

#include "lib/base/addr.h"
#include "lib/base/cleanup.h"
#include "lib/base/worker.h"
#include "lib/wire/messages.h"
#include "lib/wire/peer.h"

struct link;

struct link_options {
        const char *master; /* HOST[:PORT] */
        const char *node;   /* the certificate's name */
        const char *boot_id;
        uint64_t lost_usec; /* of the master that was followed before, on this boot; 0: not known */
        const sd_bus_vtable *orders, *bulk_orders; /* what masterd may call on either connection */
        void *orders_data;
};

/* That masterd, or this agent, refuses the other. */
struct link_refused {
        const char *why;
        bool removed;       /* somebody has taken this host out of the cluster, by name */
        uint64_t sent_boot; /* when Hello was sent that masterd answered so (CLOCK_BOOTTIME), where it is for
                               the version; */
        struct link_refusal who; /* and who answered. 0: another reason, or an answer without it */
};

struct link_ops {
        /* masterd has answered Hello. < 0 with *ret_why: it is not one to follow. */
        int (*welcome)(const struct welcome *w, const char **ret_why, void *userdata);
        /* Appends inventory, a(unit), a(exit) and a{sv} of Register; local is the address masterd is reached
         * from. */
        int (*registration)(sd_bus_message *m, const struct addr *local, void *userdata);
        /* Registered, by what was sent at that time (CLOCK_BOOTTIME). */
        void (*up)(uint64_t sent_boot, void *userdata);
        void (*down)(void *userdata); /* no longer */
        void (*bulk_up)(void *userdata);
        void (*bulk_down)(void *userdata);
        void (*calls_up)(void *userdata);
        void (*calls_down)(void *userdata); /* also where it did not come up */
        /* The main connection is closed, and tried again more rarely, until up(). */
        void (*refused)(const struct link_refused *r, void *userdata);
        /* masterd has acknowledged the heartbeat that was sent at that time (CLOCK_BOOTTIME). */
        void (*acked)(uint64_t sent_boot, void *userdata);
};

/* Strings and credentials stay the caller's. Dials at once. */
int link_new(sd_event *event, struct worker *worker, struct tls_credentials *credentials,
             const struct link_options *options, const struct link_ops *ops, void *userdata,
             struct link **ret);
/* After worker_free(). */
void link_free(struct link *l);
DEFINE_CLEANUP(struct link *, link_free)

/* For connections to come; borrowed. */
void link_set_credentials(struct link *l, struct tls_credentials *credentials);

sd_bus *link_bus(struct link *l);      /* NULL while not registered */
sd_bus *link_bulk_bus(struct link *l); /* NULL while there is none */
/* The third connection, for calls of this host's people. It is there while it is wanted. */
sd_bus *link_calls_bus(struct link *l);
void link_want_calls(struct link *l, bool wanted);
/* It is registered with a master that takes them from this host. */
bool link_takes_calls(const struct link *l);
bool link_is_congested(struct link *l,
                       bool bulk); /* much is waiting for the network: hold back what can wait */
/* What can be left out is left out while more than this is on its way. */
#define LINK_QUEUE_CAUTIOUS (UINT64_C(256) << 10)
uint64_t link_queued(struct link *l); /* bytes that wait for the network on the main connection */
/* Of the link's version, as spoken with this master: see lib/wire/version.h. */
uint16_t link_minor(const struct link *l);
const struct welcome *link_welcome(const struct link *l); /* of the last master; term 0: none yet */
/* HeartbeatAck has come. When that heartbeat was sent (CLOCK_BOOTTIME); 0: it is none of ours, or too old. */
uint64_t link_heartbeat_acked(struct link *l, uint64_t seq);
/* Ends the connection, if there is one, and registers anew: the host has something else to say of itself. */
void link_again(struct link *l, const char *why);

/* A call or message to masterd on the main or the bulk connection. -ENOTCONN. */
int link_message(struct link *l, bool bulk, const char *member, sd_bus_message **ret);
/* Sends without asking for an answer. */
int link_send(struct link *l, sd_bus_message *m);
