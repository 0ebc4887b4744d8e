/* SPDX-License-Identifier: Apache-2.0 */
/* The address of masterd's own host. Invariant: it is one at which some other host has reached us, and one
 * that this host still has; until there is one, the node of this host is alone and loopback is good. */
#include "masterd/fleet/ownhost.h"

#include <sys/socket.h>
#include <utlist.h>

#include "lib/base/cleanup.h"
#include "lib/base/log.h"
#include "masterd/core/manager.h"
#include "masterd/core/notices.h"
#include "masterd/core/record.h"
#include "masterd/fleet/fleet-parts.h"
#include "masterd/job/peers.h"
#include "masterd/life/epochs.h"
#include "masterd/link/link.h"
#include "masterd/queue/placement.h"

/* This host has the address: it can be bound. What needs a scope cannot, and is of no use to others. */
static bool is_ours(const struct addr *a) {
        struct sockaddr_storage ss;
        socklen_t size = addr_to_sockaddr(a, &ss);
        _cleanup_close_ int fd = socket(a->family, SOCK_DGRAM | SOCK_CLOEXEC, 0);

        return fd >= 0 && bind(fd, (struct sockaddr *)&ss, size) >= 0;
}

struct addr ownhost_address(const struct manager *m, const struct node *node, const struct addr *reported) {
        /* What it had before masterd was started again is good until others are back. */
        const struct addr *known = &node->address;

        if (known->family == AF_UNSPEC || addr_is_loopback(known) || !is_ours(known))
                known = &m->fleet->reached;
        if (!addr_is_loopback(reported) || known->family == AF_UNSPEC || addr_is_loopback(known) ||
            !is_ours(known))
                return *reported;
        return *known;
}

static void move(struct manager *m, struct node *node) {
        char text[ADDR_TEXT_MAX];
        struct executor *e;

        if (addr_equal(&m->fleet->reached, &node->address))
                return;
        node->address = m->fleet->reached;
        DL_FOREACH2 (node->executors, e, node_next)
                job_peers_drop(e->job);
        record_node(m, node);
        log_full(LOG_INFO, 0, &(struct log_fields){ .node = node->name },
                 "Node %s is on this host; executors elsewhere reach those here at %s", node->name,
                 addr_format(&node->address, text));
        if (placement_node_changed(m, node) < 0)
                log_oom();
        notice_node_changed(m, node);
        epochs_registered(m, node);
}

/* Some other host is connected by way of the address: found soon, where several ways are usual. */
static bool in_use(const struct manager *m, const struct addr *a) {
        struct node *node, *next;
        struct addr local;

        HASH_ITER (hh, m->nodes.by_name, node, next) {
                if (!node->link || !node->link->peer)
                        continue;
                local = (struct addr){};
                peer_local_address(node->link->peer, &local);
                local.port = 0;
                if (addr_equal(&local, a))
                        return true;
        }
        return false;
}

/* Trainers that run are not told to meet elsewhere because one host more prefers the other family. */
static bool stays(const struct manager *m, const struct node *node) {
        const struct addr *a = &node->address;

        return a->family != AF_UNSPEC && !addr_is_loopback(a) && is_ours(a) &&
               (node->executors || in_use(m, a));
}

void ownhost_registered(struct manager *m, struct node *node) {
        struct node *other, *next;
        struct addr local = {};

        if (!node->link || !node->link->peer)
                return;
        peer_local_address(node->link->peer, &local);
        local.port = 0;
        if (local.family == AF_UNSPEC || addr_is_loopback(&local) ||
            addr_is_loopback(&node->inventory.address) || addr_equal(&local, &m->fleet->reached) ||
            !is_ours(&local))
                return;
        if (m->fleet->reached.family == AF_UNSPEC || !is_ours(&m->fleet->reached) ||
            !in_use(m, &m->fleet->reached))
                m->fleet->reached = local;
        HASH_ITER (hh, m->nodes.by_name, other, next)
                if (addr_is_loopback(&other->inventory.address) && !stays(m, other))
                        move(m, other);
}
