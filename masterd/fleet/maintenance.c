/* SPDX-License-Identifier: Apache-2.0 */
/* Maintenance windows. Invariant: the list of windows is ordered by the time at which they begin, windows of
 * a node do not overlap, and a node has the maintenance hold exactly while one of its windows lasts. */
#include "masterd/fleet/maintenance.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "lib/base/clock.h"
#include "lib/base/format.h"
#include "lib/base/log.h"
#include "lib/base/utf8.h"
#include "masterd/core/manager.h"
#include "masterd/fleet/fleet-parts.h"
#include "masterd/fleet/hosts.h"

struct window *maintenance_windows(const struct manager *m) {
        return m->fleet->windows;
}

static int by_begin(const struct window *a, const struct window *b) {
        return (a->from_real > b->from_real) - (a->from_real < b->from_real);
}

static void window_free(struct manager *m, struct window *w) {
        DL_DELETE(m->fleet->windows, w);
        m->fleet->n_windows--;
        free(w->reason);
        free(w);
}

static struct window_record record_of(const struct window *w) {
        return (struct window_record){ .node = w->node->name,
                                       .from_real = w->from_real,
                                       .to_real = w->to_real,
                                       .reason = w->reason,
                                       .uid = w->uid };
}

static int insert(struct manager *m, struct node *node, const struct window_record *r) {
        struct window *w = calloc(1, sizeof(*w));

        if (!w)
                return -ENOMEM;
        *w = (struct window){ .node = node,
                              .from_real = r->from_real,
                              .to_real = r->to_real,
                              .reason = strndup(r->reason, (size_t)utf8_fit(r->reason, HOLD_REASON_MAX)),
                              .uid = r->uid };
        if (!w->reason) {
                free(w);
                return -ENOMEM;
        }
        DL_INSERT_INORDER(m->fleet->windows, w, by_begin);
        m->fleet->n_windows++;
        return 0;
}

int maintenance_add(struct manager *m, struct node *node, uint64_t from_real, uint64_t to_real,
                    const char *reason, uint32_t uid) {
        struct window_record record = {
                .node = node->name, .from_real = from_real, .to_real = to_real, .reason = reason, .uid = uid
        };
        struct window *w;
        int r;

        if (from_real == 0 || to_real <= from_real || to_real <= now_real())
                return -EINVAL;
        if (m->fleet->n_windows >= WINDOWS_MAX)
                return -E2BIG;
        DL_FOREACH (m->fleet->windows, w)
                if (w->node == node && from_real < w->to_real && w->from_real < to_real)
                        return -EEXIST;
        r = insert(m, node, &record);
        if (r < 0)
                return r;
        store_put_window(m->store, &record);
        manager_touch(m);
        hosts_arm(m);
        return 0;
}

static bool is_on(const struct window *w, uint64_t now) {
        return w->from_real <= now && now < w->to_real;
}

static void end(struct manager *m, struct window *w, const char *why) {
        struct window_record record = record_of(w);
        struct node *node = w->node;

        store_delete_window(m->store, &record);
        manager_touch(m);
        window_free(m, w);
        (void)hosts_release(m, node, HOLD_MAINTENANCE, why);
        manager_schedule(m); /* what was kept off it may come */
}

int maintenance_cancel(struct manager *m, struct node *node, uint64_t from_real) {
        struct window *w;

        DL_FOREACH (m->fleet->windows, w)
                if (w->node == node && w->from_real == from_real) {
                        end(m, w, "the maintenance window was cancelled");
                        hosts_arm(m);
                        return 0;
                }
        return -ENOENT;
}

static void begin(struct manager *m, const struct window *w) {
        struct node_hold value = {
                .drain = true,
                .uid = w->uid,
                .since_real = w->from_real,
                .deadline_real = w->from_real, /* whatever has not ended by now is moved */
                .grace_usec = UINT64_MAX,
        };
        char until[FORMAT_TIME_MAX], reason[HOLD_REASON_MAX + 64];

        snprintf(reason, sizeof(reason), "until %s%s%s", format_time(w->to_real, until, sizeof(until)),
                 *w->reason ? ": " : "", w->reason);
        (void)hosts_hold(m, w->node, HOLD_MAINTENANCE, &value, reason);
}

uint64_t maintenance_run(struct manager *m, uint64_t now_real) {
        uint64_t next = UINT64_MAX;
        struct window *w, *following;

        DL_FOREACH_SAFE (m->fleet->windows, w, following) {
                if (w->to_real <= now_real) {
                        end(m, w, "the maintenance window is over");
                        continue;
                }
                if (is_on(w, now_real) && !w->node->holds[HOLD_MAINTENANCE].set)
                        begin(m, w);
                next = MIN(next, w->from_real > now_real ? w->from_real : w->to_real);
        }
        return next;
}

void maintenance_forget(struct manager *m, const struct node *node) {
        struct window *w, *following;

        DL_FOREACH_SAFE (m->fleet->windows, w, following)
                if (!node || w->node == node)
                        window_free(m, w);
}

static int load_window(void *userdata, const struct window_record *r) {
        struct manager *m = userdata;
        struct node *node = nodes_get(&m->nodes, r->node);

        return node ? insert(m, node, r) : 0;
}

int maintenance_load(struct manager *m) {
        return store_load_windows(m->store, load_window, m);
}
