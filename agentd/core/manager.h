/* SPDX-License-Identifier: Apache-2.0 */
/* All state of agentd: of each part a pointer, which the part alone looks behind. */
#pragma once

#include <systemd/sd-bus.h>
#include <systemd/sd-event.h>

#include "agentd/core/admission.h"
#include "agentd/core/settings.h"
#include "agentd/unit/hooks.h"
#include "lib/base/cleanup.h"
#include "lib/unit/linkstate.h"
#include "lib/wire/messages.h"

struct observer;
struct worker;
struct units;
struct link;
struct data;
struct logs;
struct sessions;
struct serving;
struct hostwatch;
struct gpus;
struct sampling;
struct captures;
struct finds;
struct traces;
struct private_guard;
struct calls;
struct tls_credentials;
struct manager;

/* What rooms need of start.c and the bus above them. */
struct manager_ops {
        /* Reads anew what the host has. < 0, logged: it stays as it was. */
        int (*load_inventory)(struct manager *m);
        /* All that is on the host is known, or may be: the link is started once it is. */
        void (*go_on)(struct manager *m);
        /* A property of org.primus.Agent1 has another value. */
        void (*changed)(struct manager *m, const char *property);
};

struct manager {
        const struct manager_ops *ops;
        sd_event *event;
        sd_bus *bus;               /* the system bus */
        sd_bus *starter;           /* primus-starter */
        struct observer *observer; /* what primus-starter looks at for it */
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
        struct sampling *sampling;
        struct captures *captures;
        struct finds *finds;
        struct traces *traces;
        struct private_guard *private_guard;
        struct calls *calls; /* NULL: this host hands none on */
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
