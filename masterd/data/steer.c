/* SPDX-License-Identifier: Apache-2.0 */
/* Sources that people pause, resume, remove and re-weight while their tasks are given out. */
#include <errno.h>

#include <utlist.h>

#include "masterd/data/internal.h"

enum work_list steer_queue(const struct data *d, uint32_t source) {
        uint32_t flags = d->order.at.sources[source].flags;

        if (flags & ORDER_REMOVED)
                return LIST_UNWANTED;
        return flags & ORDER_PAUSED ? LIST_HELD : LIST_QUEUE;
}

/* From where they are to where they belong now; those of LIST_HELD were there first. */
static void sort_out(struct data *d, uint32_t source, enum work_list from) {
        struct task *t = d->lists[from] ? d->lists[from]->prev : NULL, *before;

        for (; t; t = before) {
                before = t == d->lists[from] ? NULL : t->prev;
                if (t->source == source && steer_queue(d, source) != from)
                        work_move_first(d, work_of(t));
        }
}

int data_steer(struct data *d, uint32_t source, const struct data_steering *how) {
        uint32_t flags = (how->paused ? ORDER_PAUSED : 0) | (how->removed ? ORDER_REMOVED : 0);
        struct order_step step = { .source = source, .weight = how->weight, .flags = flags };
        const struct order_source *s;
        int r;

        if (source >= d->config.n_sources)
                return -ENODATA;
        if (d->restoring)
                return -EBUSY;
        s = d->order.at.sources + source;
        if (s->flags & ORDER_REMOVED)
                return -ESTALE;
        if (s->flags == flags && (how->weight == 0 || how->weight == s->weight))
                return 0;
        r = d->late ? 0 : blocks_cut(d, d->n_touched);
        r = r < 0 ? r : blocks_step(d, &step);
        if (r < 0)
                return r;
        d->state_dirty = d->urgent = true;
        sort_out(d, source, LIST_HELD);
        sort_out(d, source, LIST_QUEUE);
        return 0;
}

void data_steering(const struct data *d, uint32_t source, struct data_steering *ret) {
        const struct order_source *s = d->order.at.sources + source;

        *ret = (struct data_steering){ .weight = s->weight,
                                       .paused = s->flags & ORDER_PAUSED,
                                       .removed = s->flags & ORDER_REMOVED };
}

void steer_skip_unwanted(struct data *d) {
        while (d->lists[LIST_UNWANTED])
                data_skip(d, d->lists[LIST_UNWANTED], NULL);
}
