/* SPDX-License-Identifier: Apache-2.0 */
#include "masterd/core/host-event.h"

#include <stdarg.h>
#include <stdio.h>

#include "lib/base/clock.h"
#include "lib/base/utf8.h"
#include "masterd/core/manager.h"

#define TEXT_MAX 512u

void host_event(struct manager *m, struct node *node, int level, const char *kind, const char *what, ...) {
        char text[TEXT_MAX];
        va_list arguments;

        va_start(arguments, what);
        (void)vsnprintf(text, sizeof(text), what, arguments);
        va_end(arguments);
        text[utf8_fit(text, sizeof(text) - 1)] = 0; /* not in the middle of a letter */
        log_full(level, 0, &(struct log_fields){ .node = node->name }, "Node %s %s", node->name, text);
        store_put_node_event(m->store, &(struct node_event_record){ .node = node->name,
                                                                    .seq = ++node->n_events,
                                                                    .time_real = now_real(),
                                                                    .kind = kind,
                                                                    .text = text });
        manager_touch(m);
}

/* A node that is not known any more has none. */
static int load_last(void *userdata, const struct node_event_record *r) {
        struct manager *m = userdata;
        struct node *node = nodes_get(&m->nodes, r->node);

        if (node)
                node->n_events = r->seq;
        return 0;
}

int host_events_load(struct manager *m) {
        return store_load_last_node_events(m->store, load_last, m);
}
