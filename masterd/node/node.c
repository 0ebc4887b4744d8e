/* SPDX-License-Identifier: Apache-2.0 */
/* The registry of nodes. Invariant: the live list is ordered by last_seen_boot, oldest first. */
#include "masterd/node/node.h"

#include <string.h>
#include <utlist.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"

/* JOINING is 0; nothing goes back to it. */
static const uint8_t table[_NODE_STATE_MAX][_NODE_EVENT_MAX] = {
        [NODE_JOINING] = { [NODE_EVENT_REGISTERED] = NODE_READY, [NODE_EVENT_EXPIRED] = NODE_LOST },
        [NODE_READY] = { [NODE_EVENT_REGISTERED] = NODE_READY,
                         [NODE_EVENT_HEARD] = NODE_READY,
                         [NODE_EVENT_SILENT] = NODE_SUSPECT,
                         [NODE_EVENT_EXPIRED] = NODE_LOST },
        [NODE_DRAINING] = { [NODE_EVENT_REGISTERED] = NODE_DRAINING,
                            [NODE_EVENT_HEARD] = NODE_DRAINING,
                            [NODE_EVENT_SILENT] = NODE_SUSPECT,
                            [NODE_EVENT_EXPIRED] = NODE_LOST },
        [NODE_SUSPECT] = { [NODE_EVENT_REGISTERED] = NODE_READY,
                           [NODE_EVENT_HEARD] = NODE_READY,
                           [NODE_EVENT_SILENT] = NODE_SUSPECT,
                           [NODE_EVENT_EXPIRED] = NODE_LOST },
        /* A heartbeat alone does not bring a LOST node back: it must register, so that stale units are
           stopped first. */
        [NODE_LOST] = { [NODE_EVENT_REGISTERED] = NODE_READY, [NODE_EVENT_EXPIRED] = NODE_LOST },
};

static const char *const names[_NODE_STATE_MAX] = { "JOINING", "READY", "DRAINING", "SUSPECT", "LOST" };

const char *node_state_to_string(enum node_state s) {
        return s >= 0 && s < _NODE_STATE_MAX ? names[s] : NULL;
}

enum node_state node_state_from_string(const char *s) {
        for (size_t i = 0; s && i < _NODE_STATE_MAX; i++)
                if (strcmp(s, names[i]) == 0)
                        return (enum node_state)i;
        return _NODE_STATE_INVALID;
}

enum node_state node_next(enum node_state s, enum node_event e) {
        return table[s][e] ? (enum node_state)table[s][e] : _NODE_STATE_INVALID;
}

struct node *nodes_get(struct nodes *n, const char *name) {
        struct node *node;

        HASH_FIND_STR(n->by_name, name, node);
        return node;
}

static void node_free(struct node *node) {
        free(node->name);
        free(node->version);
        inventory_done(&node->inventory);
        free(node);
}

int nodes_add(struct nodes *n, const char *name, struct node **ret) {
        struct node *node = nodes_get(n, name);

        if (!node) {
                node = calloc(1, sizeof(*node));
                if (!node)
                        return -ENOMEM;
                node->name = strdup(name);
                if (!node->name) {
                        node_free(node);
                        return -ENOMEM;
                }
                HASH_ADD_KEYPTR(hh, n->by_name, node->name, strlen(node->name), node);
                n->n++;
        }
        *ret = node;
        return 0;
}

void nodes_unwatch(struct nodes *n, struct node *node) {
        if (!node->live)
                return;
        if (n->fresh == node)
                n->fresh = node->live_next;
        DL_DELETE2(n->live_head, node, live_prev, live_next);
        node->live = false;
}

void nodes_remove(struct nodes *n, struct node *node) {
        nodes_unwatch(n, node);
        HASH_DEL(n->by_name, node);
        n->n--;
        node_free(node);
}

void nodes_clear(struct nodes *n) {
        struct node *node, *next;

        HASH_ITER (hh, n->by_name, node, next)
                nodes_remove(n, node);
}

void nodes_heard(struct nodes *n, struct node *node, uint64_t now_boot, uint64_t now_real) {
        nodes_unwatch(n, node);
        node->last_seen_boot =
                n->live_head ? MAX(now_boot, n->live_head->live_prev->last_seen_boot) : now_boot;
        node->last_seen_real = now_real;
        DL_APPEND2(n->live_head, node, live_prev, live_next);
        if (!n->fresh)
                n->fresh = node;
        node->live = true;
}

struct node *nodes_next_deadline(struct nodes *n, uint64_t suspect_usec, uint64_t lost_usec,
                                 uint64_t *ret_when) {
        struct node *head = n->live_head;

        if (!head)
                return NULL;
        /* A suspect stops being one only by a sign of life, which moves it behind the others. */
        while (n->fresh && n->fresh->state == NODE_SUSPECT)
                n->fresh = n->fresh->live_next;
        *ret_when = usec_add(head->last_seen_boot,
                             head->state == NODE_SUSPECT ? lost_usec : MIN(suspect_usec, lost_usec));
        if (n->fresh && usec_add(n->fresh->last_seen_boot, suspect_usec) < *ret_when) {
                *ret_when = usec_add(n->fresh->last_seen_boot, suspect_usec);
                return n->fresh;
        }
        return head;
}
