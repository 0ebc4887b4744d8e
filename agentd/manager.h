/* SPDX-License-Identifier: Apache-2.0 */
/* All state of agentd, and who hears of what. The parts (units, link, feed, bundles) do not know each other;
 * they meet here. */
#pragma once

#include <systemd/sd-bus.h>
#include <systemd/sd-event.h>

#include "agentd/captures.h"
#include "agentd/conf.h"
#include "agentd/data.h"
#include "agentd/gpus.h"
#include "agentd/hostwatch.h"
#include "agentd/link.h"
#include "agentd/logs.h"
#include "agentd/observe/observer.h"
#include "agentd/serving.h"
#include "agentd/sessions.h"
#include "agentd/traces.h"
#include "agentd/unit/admission.h"
#include "agentd/unit/units.h"
#include "lib/base/cleanup.h"
#include "lib/base/worker.h"
#include "lib/unit/linkstate.h"

struct manager {
        sd_event *event;
        sd_bus *bus;               /* the system bus */
        sd_bus *starter;           /* primus-starter */
        struct observer *observer; /* primus-starter's eyes */
        struct settings settings;
        char *node, boot_id[SD_ID128_STRING_MAX];
        struct inventory inventory;
        struct tls_credentials *credentials;
        struct worker *resolver, *remover;
        struct units *units;
        struct link *link;
        struct link_state link_state;
        struct fence fence;
        struct data *data;
        struct logs *logs;
        struct sessions *sessions;
        struct serving *serving;
        struct hostwatch *watch;
        struct gpus *gpus;
        struct eyes *eyes;
        struct captures *captures;
        struct traces *traces;
        struct private_guard *private_guard;
        struct {
                sd_event_source *timer;
                bool running, known, ok;
                char text[HOOK_TEXT_MAX]; /* why not */
        } health;
        sd_event_source *partition; /* runs also while the link is down */
        sd_event_source *renewal;
        char *renewal_key; /* PEM, of the request under way */
        unsigned ended;    /* heartbeats until memory is given back, see manager.c */
        bool ready;
        char *refused; /* why masterd or this agent refuses the other; NULL: neither does */
};

int manager_new(sd_event *event, struct manager **ret);
void manager_free(struct manager *m);
DEFINE_CLEANUP(struct manager *, manager_free)

/* Reads anew what the host has. < 0, logged: it stays as it was. */
int manager_load_inventory(struct manager *m);
/* All that is on the host is known, or may be: the link is started once it is. */
void manager_go_on(struct manager *m);

/* orders.c: what masterd may call on either connection; userdata is the manager. */
extern const sd_bus_vtable orders_vtable[], bulk_orders_vtable[];

/* agentbus.c: offers org.primus.Agent1 on the system bus. */
int agent_bus_offer(struct manager *m);
void agent_bus_changed(struct manager *m, const char *property);

/* renew.c: looks after the certificate while the link is up. */
int renewal_start(struct manager *m);
/* From the start on: warns while the certificate is to be renewed and there is no link, and when it has
 * expired. */
int renewal_watch(struct manager *m);
/* Loads the identity, finishing a renewal that a crash interrupted. */
int identity_load(struct tls_credentials **ret, char **ret_name);
