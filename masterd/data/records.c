/* SPDX-License-Identifier: Apache-2.0 */
/* What of a job's data goes to disk: all that has changed since the last time, in one go. */
#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include "lib/base/packed.h"
#include "masterd/data/internal.h"

size_t records_state_size(const struct data *d) {
        return STATE_HEAD + order_place_size(&d->order) + d->config.n_sources * STATE_COUNTS * 8;
}

size_t records_state_max(size_t n_sources) {
        return STATE_HEAD + order_place_max(n_sources) + n_sources * STATE_COUNTS * 8;
}

void records_state_write(const struct data *d, uint8_t *to) {
        to = packed_put_u64(to, STATE_VERSION | (uint64_t)d->config.n_sources << 32);
        to = packed_put_u64(to, d->n_planned);
        to = packed_put_u64(to, d->n_split_off);
        order_place_write(&d->order, to);
        to += order_place_size(&d->order);
        for (size_t i = 0; i < d->config.n_sources; i++)
                for (size_t k = 0; k < STATE_COUNTS; k++)
                        to = packed_put_u64(to, *counts_field(d->counts + i, k));
}

bool data_urgent(const struct data *d) {
        return !d->restoring && (d->urgent || d->n_flushed < d->n_planned);
}

bool data_dirty(const struct data *d) {
        return !d->restoring && (d->state_dirty || data_urgent(d));
}

static void flush_block(struct data *d, struct block *b, const struct data_sink *sink, void *userdata) {
        if (!b->dirty)
                return;
        b->dirty = false;
        if (b->n_gone < BLOCK_TASKS) {
                sink->put_block(userdata, b->index, b->state, b->state_size, b->gone, sizeof(b->gone));
                b->on_disk = true;
                return;
        }
        if (b->on_disk)
                sink->delete_block(userdata, b->index);
        blocks_free(d, &d->blocks, b);
}

uint64_t data_flush(struct data *d, const struct data_sink *sink, void *userdata) {
        struct block *b, *next_block;
        struct task *t, *next_task;
        struct work *w, *next;

        d->mark++;
        if (d->restoring)
                return d->mark;
        if (d->state_dirty || d->n_flushed < d->n_planned) {
                d->state_size = records_state_size(d); /* there is room for the larger place */
                records_state_write(d, d->state);
                sink->put_state(userdata, d->state, d->state_size);
        }
        /* Ahead of those that are in their place now. */
        DL_FOREACH_SAFE (d->dropped, b, next_block) {
                if (b->on_disk)
                        sink->delete_block(userdata, b->index);
                blocks_free(d, &d->dropped, b);
        }
        DL_FOREACH_SAFE (d->blocks, b, next_block)
                flush_block(d, b, sink, userdata);
        DL_FOREACH_SAFE2 (d->dirty, w, next, dirty_next) {
                sink->put_task(userdata, &w->t);
                w->has_row = true;
                w->dirty = false;
        }
        d->dirty = NULL;
        DL_FOREACH_SAFE (d->lists[LIST_DEAD], t, next_task) {
                sink->delete_task(userdata, t->id);
                work_free(d, work_of(t));
        }
        d->lists[LIST_DEAD] = NULL;
        d->n_flushed = d->n_planned;
        d->urgent = d->state_dirty = false;
        return d->mark;
}
