/* SPDX-License-Identifier: Apache-2.0 */
/* GPUs out of use. Invariant: what the scheduler is told of a host is those of the list that the host has. */
#include "masterd/fleet/gpus-off.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/parse.h"
#include "lib/base/utf8.h"
#include "masterd/core/host-event.h"
#include "masterd/core/manager.h"
#include "masterd/node/gpus.h"
#include "masterd/queue/placement.h"

static struct gpu_off *off_of(const struct node *node, const char *uuid) {
        struct gpu_off *g;

        DL_FOREACH (node->gpus_off, g)
                if (strcmp(g->uuid, uuid) == 0)
                        return g;
        return NULL;
}

const char *gpus_off_find(const struct node *node, const char *word) {
        const struct inventory *v = &node->inventory;
        const struct gpu_off *g = off_of(node, word);
        uint64_t number;
        int i;

        if (g)
                return g->uuid;
        if (parse_u64(word, 0, NODE_GPUS_MAX - 1, &number) >= 0)
                return number < v->n_gpus ? v->gpus[number].uuid : NULL;
        i = gpus_index(v, word);
        return i >= 0 ? v->gpus[i].uuid : NULL;
}

static uint64_t bits_off(const struct node *node) {
        const struct gpu_off *g;
        uint64_t bits = 0;

        DL_FOREACH (node->gpus_off, g) {
                int i = gpus_index(&node->inventory, g->uuid);
                if (i >= 0)
                        bits |= UINT64_C(1) << i;
        }
        return bits;
}

void gpus_off_apply(struct manager *m, struct node *node) {
        placement_set_gpus_off(m, node, bits_off(node));
}

static void off_free(struct node *node, struct gpu_off *g) {
        DL_DELETE(node->gpus_off, g);
        free(g->uuid);
        free(g->reason);
        free(g);
}

static int off_add(struct node *node, const struct gpu_off_record *r) {
        struct gpu_off *g = calloc(1, sizeof(*g));

        if (!g)
                return -ENOMEM;
        *g = (struct gpu_off){ .uuid = strdup(r->uuid),
                               .uid = r->uid,
                               .since_real = r->since_real,
                               .reason = strndup(r->reason, (size_t)utf8_fit(r->reason, HOLD_REASON_MAX)) };
        DL_APPEND(node->gpus_off, g);
        if (g->uuid && g->reason)
                return 0;
        off_free(node, g);
        return -ENOMEM;
}

int gpus_off_add(struct manager *m, struct node *node, const char *uuid, uint32_t uid, const char *reason) {
        struct gpu_off_record r = {
                .node = node->name, .uuid = uuid, .uid = uid, .since_real = now_real(), .reason = reason
        };
        const struct gpu_off *g;
        size_t n;
        int k;

        if (off_of(node, uuid))
                return -EALREADY;
        DL_COUNT(node->gpus_off, g, n);
        if (n >= GPUS_OFF_MAX)
                return -E2BIG;
        k = off_add(node, &r);
        if (k < 0)
                return k;
        r.reason = node->gpus_off->prev->reason; /* as much of it as is kept */
        store_put_gpu_off(m->store, &r);
        manager_touch(m);
        host_event(m, node, LOG_NOTICE, "gpu-off", "has GPU %s taken out of use by uid %u%s%s", uuid, uid,
                   *r.reason ? ": " : "", r.reason);
        gpus_off_apply(m, node);
        return 0;
}

bool gpus_off_remove(struct manager *m, struct node *node, const char *uuid, uint32_t uid) {
        struct gpu_off *g = off_of(node, uuid);

        if (!g)
                return false;
        host_event(m, node, LOG_NOTICE, "gpu-on", "has GPU %s in use again, by uid %u", uuid, uid);
        store_delete_gpu_off(m->store, &(struct gpu_off_record){ .node = node->name, .uuid = g->uuid });
        manager_touch(m);
        off_free(node, g);
        gpus_off_apply(m, node);
        manager_schedule(m);
        return true;
}

void gpus_off_forget(struct node *node) {
        while (node->gpus_off)
                off_free(node, node->gpus_off);
}

static int load_gpu_off(void *userdata, const struct gpu_off_record *r) {
        struct manager *m = userdata;
        struct node *node = nodes_get(&m->nodes, r->node);

        return node ? off_add(node, r) : 0;
}

int gpus_off_load(struct manager *m) {
        struct node *node, *next;
        int r = store_load_gpus_off(m->store, load_gpu_off, m);

        HASH_ITER (hh, m->nodes.by_name, node, next)
                if (r >= 0)
                        gpus_off_apply(m, node);
        return r;
}

void gpus_off_free_all(struct manager *m) {
        struct node *node, *next;

        HASH_ITER (hh, m->nodes.by_name, node, next)
                gpus_off_forget(node);
}
