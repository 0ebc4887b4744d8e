/* SPDX-License-Identifier: Apache-2.0 */
/* Sources that people add, pause, resume, end, remove and re-weight while tasks are given out. */
#include <errno.h>
#include <string.h>

#include <utlist.h>

#include "lib/base/grow.h"
#include "masterd/data/internal.h"

enum work_list steer_queue(const struct data *d, const struct task *t) {
        uint32_t flags = d->order.at.sources[t->source].flags;

        if (flags & ORDER_REMOVED || (flags & ORDER_ENDED && is_stream(t)))
                return LIST_UNWANTED;
        return flags & ORDER_PAUSED ? LIST_HELD : LIST_QUEUE;
}

/* From where they are to where they belong now; those of LIST_HELD were there first. */
static void sort_out(struct data *d, uint32_t source, enum work_list from) {
        struct task *t = d->lists[from] ? d->lists[from]->prev : NULL, *before;

        for (; t; t = before) {
                before = t == d->lists[from] ? NULL : t->prev;
                if (t->source == source && (from == LIST_DEFERRED || steer_queue(d, t) != from))
                        work_move_first(d, work_of(t));
        }
}

/* For a step before the first task that nobody has had, after which there are so many sources. */
static int prepare_step(struct data *d, uint32_t n_sources) {
        int r = d->late ? 0 : blocks_cut(d, d->n_touched);

        return r < 0 ? r : blocks_step_room(d, n_sources, BLOCK_STEPS_MAX);
}

int data_steer(struct data *d, uint32_t source, const struct data_steering *how) {
        uint32_t flags = (how->paused ? ORDER_PAUSED : 0) | (how->removed ? ORDER_REMOVED : 0) |
                         (how->ended ? ORDER_ENDED : 0);
        struct order_step step = { .source = source, .weight = how->weight, .flags = flags };
        const struct order_source *s;
        int r;

        if (source >= d->order.at.n_sources)
                return -ENODATA;
        if (d->restoring)
                return -EBUSY;
        s = d->order.at.sources + source;
        if (s->flags & ORDER_REMOVED)
                return -ESTALE;
        step.flags = flags |= s->flags & ORDER_ENDED;
        if (s->flags == flags && (how->weight == 0 || how->weight == s->weight))
                return 0;
        r = prepare_step(d, d->order.at.n_sources);
        if (r < 0)
                return r;
        blocks_step(d, &step);
        sort_out(d, source, LIST_HELD);
        sort_out(d, source, LIST_QUEUE);
        if (flags & ORDER_ENDED)
                sort_out(d, source, LIST_DEFERRED);
        return 0;
}

/* ---- adding ---- */

/* Nothing is another one for that, but where it lies. */
static int reserve_sources(struct data *d, size_t n) {
        uint32_t *weights = d->weights;
        uint8_t *state;

        if (ARRAY_GROW(d->counts, n) < 0 || ARRAY_GROW(d->listing.sources, n) < 0 ||
            order_reserve(&d->order, n) < 0 || ARRAY_GROW(weights, n) < 0)
                return -ENOMEM;
        if (!d->weights)
                memset(weights, 0, n * sizeof(*weights));
        d->config.weights = d->order.weights = d->weights = weights;
        state = realloc(d->state, records_state_max(n));
        if (!state)
                return -ENOMEM;
        d->state = state;
        return 0;
}

int data_append_room(struct data *d, size_t n) {
        size_t all = d->config.n_sources + n;
        int r;

        if (all > INPUT_SOURCES_MAX)
                return -ENOSPC;
        if (d->restoring || d->order.at.n_sources < d->config.n_sources)
                return -EBUSY;
        r = reserve_sources(d, all);
        return r < 0 ? r : prepare_step(d, (uint32_t)all);
}

void data_append(struct data *d, uint32_t weight) {
        uint32_t n = (uint32_t)d->config.n_sources;

        d->counts[n] = (struct counts){};
        d->listing.sources[n] = (struct listed_source){};
        d->weights[n] = weight;
        d->config.n_sources++;
        d->listing.n_sources++;
        order_extend(&d->order);
        blocks_step(d, &(struct order_step){ .source = n, .weight = weight });
}

int data_append_rest(struct data *d) {
        for (uint32_t n; (n = d->order.at.n_sources) < d->config.n_sources;) {
                int r = d->restoring ? -EBUSY : blocks_step_room(d, n + 1, BLOCK_STEPS_EVER);
                if (r < 0)
                        return r;
                blocks_step(d, &(struct order_step){ .source = n, .weight = d->weights ? d->weights[n] : 0 });
        }
        return 0;
}

void data_steering(const struct data *d, uint32_t source, struct data_steering *ret) {
        const struct order_source *s = d->order.at.sources + source;

        *ret = (struct data_steering){ .weight = s->weight,
                                       .paused = s->flags & ORDER_PAUSED,
                                       .removed = s->flags & ORDER_REMOVED,
                                       .ended = s->flags & ORDER_ENDED };
}

void steer_skip_unwanted(struct data *d) {
        while (d->lists[LIST_UNWANTED])
                data_skip(d, d->lists[LIST_UNWANTED], NULL);
}
