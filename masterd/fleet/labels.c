/* SPDX-License-Identifier: Apache-2.0 */
#include "masterd/fleet/labels.h"

#include "lib/base/try.h"
#include "masterd/core/manager.h"
#include "masterd/queue/placement.h"

int labels_set(struct manager *m, struct node *node, const char *key, const char *value) {
        const struct label_record record = { .node = node->name, .key = key, .value = value };
        int r = node_set_label(node, key, value);

        if (r <= 0)
                return r;
        if (value)
                store_put_label(m->store, &record);
        else
                store_delete_label(m->store, &record);
        manager_touch(m);
        return r;
}

int labels_apply(struct manager *m, struct node *node) {
        TRY(node_merge_labels(node, node->inventory.labels));
        TRY(placement_node_changed(m, node));
        manager_schedule(m);
        return 0;
}
