/* SPDX-License-Identifier: Apache-2.0 */
/* Invariant: who is held has a timer that ends it. */
#include "masterd/link/link-hold.h"

#include "masterd/core/manager.h"
#include "masterd/link/link.h"

#define STORE_USEC (5 * USEC_PER_MSEC)
/* However full the store is: its heartbeats wait behind what is not read, and so do the answers that its host
 * goes by under onPartition=stop. */
#define MAX_USEC USEC_PER_SEC
#define NOTICED_MAX 32u
#define CAME_MAX 10u
#define CAME_USEC (10 * USEC_PER_SEC)

static int on_hold(sd_event_source *s, uint64_t usec, void *userdata) {
        struct link *l = userdata;

        if (store_full(l->manager->store) && now_boot() < usec_add(l->held_since, MAX_USEC) &&
            sd_event_source_set_time_relative(s, STORE_USEC) >= 0 &&
            sd_event_source_set_enabled(s, SD_EVENT_ONESHOT) >= 0)
                return 0;
        link_hold_done(l);
        peer_hold(l->peer, false);
        return 0;
}

void link_hold(struct link *l, uint64_t usec) {
        if (l->hold || sd_event_add_time_relative(l->manager->event, &l->hold, CLOCK_BOOTTIME,
                                                  MIN(usec, MAX_USEC), 0, on_hold, l) < 0)
                return;
        l->held_since = now_boot();
        peer_hold(l->peer, true);
}

void link_hold_for_store(struct link *l) {
        if (store_full(l->manager->store))
                link_hold(l, STORE_USEC);
}

void link_noticed(struct link *l) {
        if (!burst_admit(&l->noticed, now_boot(), USEC_PER_SEC, NOTICED_MAX))
                link_hold(l, LINK_NOTICED_USEC);
}

void link_came(struct link *l) {
        if (!burst_admit(&l->node->bursts.came, now_boot(), CAME_USEC, CAME_MAX))
                link_hold(l, MAX_USEC);
}

void link_hold_done(struct link *l) {
        l->hold = sd_event_source_disable_unref(l->hold);
}
