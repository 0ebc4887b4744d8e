/* SPDX-License-Identifier: Apache-2.0 */
/* The connections of agents. Invariants: a node's name is its certificate's; a new connection of a node
 * evicts the old one. */
#include "masterd/link/link.h"

#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/try.h"
#include "lib/wire/messages.h"
#include "masterd/core/manager.h"
#include "masterd/link/identity.h"
#include "masterd/link/link-hold.h"
#include "masterd/link/link-parts.h"
#include "masterd/link/orders.h"

#define REFUSED_INTERVAL (60 * USEC_PER_SEC)
#define REFUSED_BURST 20u

static struct link *link_of(struct manager *m, struct peer *p) {
        struct link *l;

        HASH_FIND_PTR(m->link->links, &p, l);
        return l;
}

sd_bus *link_bus(const struct node *node) {
        return node->link && node->link->registered ? peer_bus(node->link->peer) : NULL;
}

int link_one_way(const struct node *node, const char *member, sd_bus_message **ret) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *message = NULL;
        sd_bus *bus = link_bus(node);

        if (!bus)
                return -ENOTCONN;
        TRY(sd_bus_message_new_method_call(bus, &message, NULL, LINK_PATH, LINK_INTERFACE, member));
        TRY(sd_bus_message_set_expect_reply(message, false));
        *ret = TAKE_PTR(message);
        return 0;
}

static void detach(struct link *l) {
        if (!l->node)
                return;
        if (l->node->link == l) {
                l->node->link = NULL;
                l->manager->link->handlers->main_gone(l->manager, l->node);
        }
        if (l->node->bulk == l) {
                l->manager->link->handlers->bulk_gone(l->manager, l->node);
                l->node->bulk = NULL;
        }
        if (l->node->calls == l) {
                l->manager->link->handlers->calls_gone(l->manager, l);
                l->node->calls = NULL;
        }
        l->node = NULL;
}

static void attach_channel(struct link *l, struct link **place) {
        struct link *before = *place;

        if (before && before != l)
                peer_close(before->peer, "replaced by a new connection of the same node");
        if (before)
                detach(before);
        *place = l;
}

void link_attach_bulk(struct link *l, struct node *node) {
        attach_channel(l, &node->bulk);
}

void link_attach_calls(struct link *l, struct node *node) {
        attach_channel(l, &node->calls);
}

void link_drop(struct node *node, const char *why) {
        struct link *const all[] = { node->link, node->bulk, node->calls };

        for (size_t i = 0; i < ELEMENTSOF(all); i++) {
                if (!all[i])
                        continue;
                detach(all[i]);
                peer_close(all[i]->peer, why);
        }
}

static int on_ready(struct peer *p, void *userdata) {
        struct manager *m = userdata;
        struct link *l = calloc(1, sizeof(*l));
        int r;

        if (!l)
                return -ENOMEM;
        l->manager = m;
        l->peer = p;
        HASH_ADD_PTR(m->link->links, peer, l);
        r = sd_bus_add_object_vtable(peer_bus(p), NULL, LINK_PATH, LINK_INTERFACE, m->link->handlers->vtable,
                                     l);
        if (r < 0) {
                HASH_DEL(m->link->links, l);
                free(l);
        }
        return r;
}

static void on_ended(struct peer *p, const struct peer_end *end, void *userdata) {
        struct manager *m = userdata;
        struct link *l = link_of(m, p);

        if (l) {
                if (l->node && l->node->link == l && node_may_log(l->node, now_boot()))
                        log_full(LOG_NOTICE, 0, &(struct log_fields){ .node = l->node->name },
                                 "Lost the connection to %s: %s", l->node->name, end->why);
                detach(l);
                HASH_DEL(m->link->links, l);
                orders_forget(l);
                link_hold_done(l);
                free(l->build);
                free(l);
        } else
                log_warning("Refused a connection%s%s: %s", peer_name(p) ? " of " : "",
                            peer_name(p) ? peer_name(p) : "", end->why);
        peer_free(p);
}

/* What strangers do to the port; anybody can do it, so a burst is told and the rest only counted. */
static void on_refused(const struct addr *from, const char *name, const char *why, void *userdata) {
        struct manager *m = userdata;
        char text[ADDR_TEXT_MAX];
        uint64_t now = now_boot();

        if (now >= usec_add(m->link->refused_since, REFUSED_INTERVAL)) {
                if (m->link->n_refused > REFUSED_BURST)
                        log_warning("Refused %u more connections within the last minute",
                                    m->link->n_refused - REFUSED_BURST);
                m->link->refused_since = now;
                m->link->n_refused = 0;
        }
        if (m->link->n_refused++ < REFUSED_BURST)
                log_warning("Refused a connection from %s%s%s%s: %s", addr_format(from, text),
                            name ? " (" : "", name ? name : "", name ? ")" : "", why);
}

int link_listen(struct manager *m, const struct link_handlers *link_handlers) {
        static const struct listener_handlers handlers = {
                .link_ready = on_ready,
                .link_ended = on_ended,
                .refused = on_refused,
                .check = identity_check,
                .join = identity_join,
        };
        int r;

        m->link->handlers = link_handlers;
        r = listener_new(m->event, m->conf.listen, m->conf.n_listen, m->link->credentials, &handlers, m,
                         &m->link->listener);

        if (r < 0)
                return log_error_errno(r, "Cannot listen for agents on port %u (Listen= in masterd.conf)",
                                       m->conf.listen[0].port);
        return 0;
}

uint16_t link_port(const struct manager *m) {
        return listener_port(m->link->listener);
}

void link_close_all(struct manager *m) {
        struct link *l, *next;

        listener_free(m->link->listener);
        m->link->listener = NULL;
        HASH_ITER (hh, m->link->links, l, next) {
                detach(l);
                HASH_DEL(m->link->links, l);
                peer_free(l->peer);
                orders_forget(l);
                link_hold_done(l);
                free(l->build);
                free(l);
        }
}
