/* SPDX-License-Identifier: Apache-2.0 */
/* From records back to tasks. Records may come from a savepoint that somebody has changed: what they say is
 * believed only as far as it adds up. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include "lib/base/cleanup.h"
#include "lib/base/packed.h"
#include "masterd/data/internal.h"

#define SOON 128u

int data_restore_state(struct data *d, const void *state, size_t size) {
        const uint8_t *from = state;
        uint32_t n = size > STATE_HEAD ? packed_u32(from + 4) : 0;
        size_t counts = (size_t)n * STATE_COUNTS * 8, place;

        if (d->has_state)
                return -EEXIST;
        if (n == 0 || n > d->config.n_sources)
                return -EUCLEAN;
        place = size > STATE_HEAD + counts
                        ? order_place_length(&d->order, from + STATE_HEAD, size - STATE_HEAD - counts)
                        : 0;
        if (place == 0 || size != STATE_HEAD + place + counts || packed_u32(from) != STATE_VERSION)
                return -EUCLEAN;
        memcpy(d->state, from, size);
        d->state_size = size;
        d->n_planned = packed_u64(from + 8);
        d->n_split_off = packed_u64(from + 16);
        if (d->n_planned >= TASK_SPLIT_OFF || d->n_split_off >= TASK_SPLIT_OFF)
                return -EUCLEAN;
        from += STATE_HEAD + place;
        for (size_t i = 0; i < n; i++)
                for (size_t k = 0; k < STATE_COUNTS; k++, from += 8) {
                        *counts_field(d->counts + i, k) += packed_u64(from);
                        *counts_field(&d->all, k) += packed_u64(from);
                }
        d->has_state = d->restoring = true;
        return 0;
}

int data_restore_block(struct data *d, uint64_t index, const void *state, size_t state_size, const void *over,
                       size_t over_size) {
        struct block *b, *behind;
        int r;

        if (over_size != sizeof(b->gone) || index >= TASK_SPLIT_OFF / BLOCK_TASKS)
                return -EUCLEAN;
        behind = d->blocks ? d->blocks->prev : NULL; /* mostly: they come in their order */
        while (behind && behind->index > index)
                behind = behind == d->blocks ? NULL : behind->prev;
        if (behind && behind->index == index)
                return -EEXIST;
        r = blocks_add(d, index, state, state_size, &b);
        if (r < 0)
                return r;
        DL_DELETE(d->blocks, b);
        if (behind)
                DL_APPEND_ELEM(d->blocks, behind, b);
        else
                DL_PREPEND(d->blocks, b);
        memcpy(b->gone, over, over_size);
        for (size_t i = 0; i < sizeof(b->gone); i++)
                b->n_gone += (uint32_t)__builtin_popcount(b->gone[i]);
        b->on_disk = true;
        b->dirty = false;
        d->restoring = true;
        return 0;
}

int data_restore_task(struct data *d, const struct task *t) {
        static const struct data_file none = { .path = "" };
        struct work *w;
        int r;

        if (t->id == 0 || (t->id & ~TASK_SPLIT_OFF) == 0 || t->source >= d->config.n_sources ||
            t->epoch >= d->config.epochs || t->file >= data_n_files(d, t->source) || t->start > t->acked ||
            t->acked > t->end || t->place == TASK_FINISHED || (unsigned)t->place >= _TASK_PLACE_MAX)
                return -EUCLEAN;
        w = work_new(d, t->id, t->source, t->epoch, t->file, &none, t->start, t->end);
        if (!w)
                return -ENOMEM;
        w->t.acked = w->t.read = t->acked;
        w->t.skip = t->skip;
        w->t.records = t->records;
        w->t.records_before = MIN(t->records_before, t->records);
        w->t.failures = t->failures;
        w->t.place = t->place == TASK_LEASED ? TASK_PENDING : t->place;
        if (t->error && *t->error && !(w->t.error = strndup(t->error, TASK_TEXT_MAX)))
                r = -ENOMEM;
        else
                r = work_add(d, w);
        if (r < 0) {
                work_free(d, w);
                return r;
        }
        work_put(d, w, LIST_RESTORED);
        w->has_row = true;
        d->restoring = true;
        return 0;
}

/* ---- whether it adds up ---- */

/* Plans a block again, and counts what it stands for by source. */
static int plan_again(struct data *d, struct block *b, uint64_t *plain) {
        uint64_t first = b->index * BLOCK_TASKS;
        int r;

        if (first >= d->n_planned)
                return -EUCLEAN;
        r = block_replay(d, b, (uint32_t)MIN(d->n_planned - first, (uint64_t)BLOCK_TASKS));
        for (uint32_t i = 0; r >= 0 && i < b->n_planned; i++)
                plain[b->plan[i].source] += !block_is_gone(b, i);
        for (uint32_t i = b->n_planned; r >= 0 && i < BLOCK_TASKS; i++)
                if (block_is_gone(b, i))
                        return -EUCLEAN;
        return r;
}

static int check_counts(struct data *d, const uint64_t *plain) {
        uint64_t split_off = 0;

        for (uint32_t i = 0; i < d->config.n_sources; i++) {
                const struct counts *c = d->counts + i;
                uint64_t over;
                if (__builtin_add_overflow(c->done, c->skipped, &over) || c->split_off > d->n_split_off ||
                    order_made(&d->order, i) + c->split_off != over + c->live + plain[i])
                        return -EUCLEAN;
                split_off += c->split_off;
        }
        return split_off == d->n_split_off ? 0 : -EUCLEAN;
}

/* Each row is of a task that was made and that no block stands for. */
static int check_rows(struct data *d) {
        const struct task *t;

        DL_FOREACH (d->lists[LIST_RESTORED], t)
                if (t->id & TASK_SPLIT_OFF ? (t->id & ~TASK_SPLIT_OFF) > d->n_split_off
                                           : t->id > d->n_planned)
                        return -EUCLEAN;
        return 0;
}

int restore_check(struct data *d) {
        _cleanup_free_ uint64_t *plain = calloc(d->config.n_sources + 1, sizeof(*plain));
        const uint8_t *place = d->state + STATE_HEAD;
        struct block *b;
        int r = 0;

        if (!plain)
                return -ENOMEM;
        if (!d->has_state)
                return -EUCLEAN;
        DL_FOREACH (d->blocks, b) {
                r = plan_again(d, b, plain);
                if (r < 0)
                        return r;
        }
        /* The one that is not full yet is always there. */
        b = d->blocks ? d->blocks->prev : NULL;
        if (d->n_planned % BLOCK_TASKS != 0 && (!b || b->index != d->n_planned / BLOCK_TASKS))
                return -EUCLEAN;
        r = order_place_read(&d->order, place,
                             order_place_length(&d->order, place, d->state_size - STATE_HEAD), d->n_planned);
        if (r >= 0)
                r = check_rows(d);
        if (r >= 0)
                r = check_counts(d, plain);
        if (r < 0)
                return r;
        d->n_touched = d->n_planned;
        d->making = d->blocks;
        if (!d->loaded)
                d->n_flushed = d->n_durable = d->n_planned;
        return 0;
}

/* ---- tasks again ---- */

/* The row of its file is here: it becomes whole. */
static int complete_work(struct data *d, struct work *w, const struct data_file *what) {
        struct task *t = &w->t;
        struct work *whole;

        if (t->start < what->first || t->end > what->last)
                return -EUCLEAN;
        whole = work_new(d, t->id, t->source, t->epoch, t->file, what, t->start, t->end);
        if (!whole)
                return -ENOMEM;
        whole->t.acked = whole->t.read = t->acked;
        whole->t.skip = t->skip;
        whole->t.records = t->records;
        whole->t.records_before = t->records_before;
        whole->t.failures = t->failures;
        whole->t.place = t->place;
        whole->t.error = TAKE_PTR(t->error);
        whole->has_row = w->has_row && !d->loaded;
        work_count(d, t, (uint64_t)-1); /* what it has to do is known only now */
        work_count(d, &whole->t, 1);
        ids_replace(t->id & TASK_SPLIT_OFF ? &d->split_ids : &d->ids, t->id & ~TASK_SPLIT_OFF, whole);
        DL_DELETE(d->lists[LIST_RESTORED], t);
        work_free(d, w);
        if (d->loaded)
                work_changed(d, whole);
        if (whole->t.place == TASK_GAVE_UP)
                work_put(d, whole, LIST_GAVE_UP);
        else if (d->loaded)
                work_put_fresh(d, whole);
        else
                work_put(d, whole, LIST_QUEUE);
        return 0;
}

static int complete_rows(struct data *d) {
        const struct data_file *what;
        struct task *t;
        uint32_t n = 0;
        int r;

        while ((t = d->lists[LIST_RESTORED])) {
                r = listing_row(&d->listing, t->source, t->file, &what);
                if (r == 0)
                        break;
                if (r > 0)
                        r = complete_work(d, work_of(t), what);
                if (r < 0)
                        return r;
        }
        for (; t && n < SOON; t = t->next, n++) {
                r = listing_row(&d->listing, t->source, t->file, &what);
                if (r < 0)
                        return r;
        }
        return n == 0;
}

int data_restored(struct data *d) {
        int r;

        if (!d->restoring)
                return DATA_READY;
        if (!d->checked) {
                r = restore_check(d);
                if (r < 0)
                        return r;
                d->checked = true;
        }
        r = complete_rows(d);
        if (r <= 0)
                return r < 0 ? r : DATA_MISSING;
        while (d->making) {
                r = blocks_make(d);
                if (r <= 0)
                        return r < 0 ? r : DATA_MISSING;
        }
        DL_SORT(d->lists[LIST_QUEUE], work_order);
        DL_SORT(d->lists[LIST_FRESH], work_order);
        d->restoring = false;
        return DATA_READY;
}
