/* SPDX-License-Identifier: Apache-2.0 */
/* The data of one job as a whole: its parts, its listing, its sums. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include "lib/base/cleanup.h"
#include "masterd/data/internal.h"
#include "masterd/data/parts.h"

static const char *const places[_TASK_PLACE_MAX] = {
        [TASK_PENDING] = "PENDING",
        [TASK_LEASED] = "LEASED",
        [TASK_FINISHED] = "DONE",
        [TASK_GAVE_UP] = "FAILED",
};

const char *task_place_to_string(enum task_place p) {
        return (unsigned)p < _TASK_PLACE_MAX ? places[p] : NULL;
}

static bool any_weight(const struct data_config *c) {
        for (size_t i = 0; c->weights && i < c->n_sources; i++)
                if (c->weights[i] > 0)
                        return true;
        return false;
}

int data_new(const struct data_config *c, struct data **ret) {
        _cleanup_(data_free_p) struct data *d = NULL;
        int r;

        if (c->n_sources == 0 || c->n_sources > INPUT_SOURCES_MAX || c->epochs == 0 || c->max_attempts == 0 ||
            c->sample_ppm == 0 || c->sample_ppm > SAMPLE_ALL || (unsigned)c->order >= _ORDER_MAX)
                return -EINVAL;
        d = calloc(1, sizeof(*d));
        if (!d)
                return -ENOMEM;
        d->config = *c;
        d->config.weights = NULL;
        d->counts = calloc(c->n_sources, sizeof(*d->counts));
        if (!d->counts)
                return -ENOMEM;
        if (any_weight(c)) {
                d->weights = calloc(c->n_sources, sizeof(*d->weights));
                if (!d->weights)
                        return -ENOMEM;
                memcpy(d->weights, c->weights, c->n_sources * sizeof(*d->weights));
                d->config.weights = d->weights;
        }
        r = listing_init(&d->listing, c->n_sources, c->seed, c->sample_ppm);
        if (r < 0)
                return r;
        r = order_init(&d->order, &d->listing, d->config.weights, c->order, c->seed, c->epochs);
        if (r < 0)
                return r;
        d->state = calloc(1, records_state_max(d->config.n_sources));
        if (!d->state)
                return -ENOMEM;
        *ret = TAKE_PTR(d);
        return 0;
}

struct data *data_free(struct data *d) {
        struct task *t, *next;

        if (!d)
                return NULL;
        for (size_t i = 0; i < _WORK_LIST_MAX; i++)
                DL_FOREACH_SAFE (d->lists[i], t, next)
                        work_free(d, work_of(t));
        while (d->blocks)
                blocks_free(d, &d->blocks, d->blocks);
        while (d->dropped)
                blocks_free(d, &d->dropped, d->dropped);
        ids_done(&d->ids);
        ids_done(&d->split_ids);
        order_done(&d->order);
        listing_done(&d->listing);
        free(d->counts);
        free(d->weights);
        free(d->state);
        free(d);
        return NULL;
}

/* ---- listing ---- */

int data_add(struct data *d, uint32_t source, const struct data_file *f) {
        int r = listing_add(&d->listing, source, f);

        if (r < 0)
                return r;
        d->late = d->late || f->batch == UINT64_MAX;
        order_listed(&d->order, source);
        return r;
}

void data_scanned(struct data *d, uint32_t source) {
        if (source >= d->config.n_sources)
                return;
        listing_scanned(&d->listing, source);
        order_listed(&d->order, source);
}

void data_passed(struct data *d, uint32_t source, uint64_t batch) {
        if (source >= d->config.n_sources)
                return;
        listing_passed(&d->listing, source, batch);
        order_listed(&d->order, source);
}

uint64_t data_n_files(const struct data *d, uint32_t source) {
        return source < d->config.n_sources ? d->listing.sources[source].n_files : 0;
}

bool data_all_scanned(const struct data *d) {
        return d->listing.n_scanned == d->listing.n_sources;
}

/* ---- looking ---- */

bool data_all_made(const struct data *d) {
        return data_all_scanned(d) && !d->making && !d->restoring && order_over(&d->order);
}

bool data_exhausted(const struct data *d) {
        return data_all_made(d) && d->n_pending == 0 && !d->lists[LIST_DEFERRED] && !d->lists[LIST_HELD] &&
               !d->lists[LIST_UNWANTED];
}

enum data_hold data_hold(const struct data *d, uint64_t now_usec) {
        if (d->restoring)
                return DATA_HELD_FILES;
        if (d->lists[LIST_QUEUE] || data_next_due(d) <= now_usec)
                return DATA_HELD_NOT;
        if (d->lists[LIST_FRESH])
                return DATA_HELD_DISK;
        if (d->lists[LIST_DEFERRED])
                return DATA_HELD_REST;
        if (d->making)
                return DATA_HELD_FILES;
        return d->lists[LIST_HELD] || order_paused(&d->order) ? DATA_HELD_PAUSED : DATA_HELD_LIST;
}

bool data_over(const struct data *d) {
        return data_exhausted(d) && d->all.leased == 0;
}

/* tasks, bytes: as listed, of all epochs. */
static void totals(const struct counts *c, uint64_t files, uint64_t tasks, uint64_t bytes,
                   struct data_totals *ret) {
        *ret = (struct data_totals){
                .files = files,
                .tasks = tasks + c->split_off,
                .leased = c->leased,
                .done = c->done,
                .failed = c->gave_up,
                .skipped = c->skipped,
                .bytes = bytes + c->learnt,
                .read = c->over_acked + c->live_read,
                .acked = c->over_acked + c->live_acked,
                .records = c->over_records + c->live_records,
                .bytes_failed = c->failed_bytes,
        };
        ret->pending = ret->tasks - c->leased - c->done - c->gave_up - c->skipped;
}

/* In which it has a part: not in those that were over when it was added. An epoch is over when all that each
 * source has is made. */
static uint64_t source_epochs(const struct data *d, uint32_t source) {
        const struct order_source *s = d->order.at.sources + source;
        uint64_t n = d->listing.sources[source].n_tasks;

        return n > 0 ? d->config.epochs - d->order.at.epoch + s->earlier / n : d->config.epochs;
}

/* Of a source that was removed counts what was made: of no more is there anything to be done. */
static uint64_t source_tasks(const struct data *d, uint32_t source) {
        return d->order.at.sources[source].flags & ORDER_REMOVED
                       ? order_made(&d->order, source)
                       : d->listing.sources[source].n_tasks * source_epochs(d, source);
}

static uint64_t source_bytes(const struct data *d, uint32_t source) {
        const struct counts *c = d->counts + source;

        return d->order.at.sources[source].flags & ORDER_REMOVED
                       ? c->over_acked + c->live_bytes - c->learnt
                       : d->listing.sources[source].bytes * source_epochs(d, source);
}

void data_totals(const struct data *d, struct data_totals *ret) {
        const struct listing *l = &d->listing;
        uint64_t tasks = l->n_tasks * d->config.epochs, bytes = l->bytes * d->config.epochs;

        for (uint32_t i = 0; d->order.at.steered && i < d->config.n_sources; i++) {
                tasks -= l->sources[i].n_tasks * d->config.epochs - source_tasks(d, i);
                bytes -= l->sources[i].bytes * d->config.epochs - source_bytes(d, i);
        }
        totals(&d->all, l->n_files, tasks, bytes, ret);
}

void data_source_totals(const struct data *d, uint32_t source, struct data_totals *ret) {
        totals(d->counts + source, d->listing.sources[source].n_files, source_tasks(d, source),
               source_bytes(d, source), ret);
}

#define AT_LOOKS_MAX 16384u /* tasks under way; a look at a job takes no longer */

bool data_at(const struct data *d, uint64_t *ret_batches) {
        unsigned looks = 0;
        size_t hint = 0;

        if (d->config.order != ORDER_LISTED || d->restoring)
                return false;
        for (uint32_t i = 0; i < d->config.n_sources; i++) {
                const struct listed_source *s = d->listing.sources + i;
                uint64_t made = d->order.at.sources[i].made;

                hint = 0;
                ret_batches[i] = made < s->n_tasks              ? listing_batch(&d->listing, i, made, &hint)
                                 : !s->scanned && s->passed > 0 ? s->passed
                                                                : UINT64_MAX;
        }
        for (const struct task *t = data_next_task(d, 0); t; t = data_next_task(d, t->id)) {
                if (++looks > AT_LOOKS_MAX)
                        return false;
                if (t->place != TASK_GAVE_UP)
                        ret_batches[t->source] = MIN(ret_batches[t->source], t->what.batch);
        }
        /* Planned, and not made before the rows of their files are here. */
        for (const struct block *b = d->making; b; b = b->next)
                for (uint32_t i = b->n_made; i < b->n_planned; i++) {
                        const struct planned *p = b->plan + i;

                        hint = 0;
                        if (!block_is_gone(b, i))
                                ret_batches[p->source] =
                                        MIN(ret_batches[p->source],
                                            listing_batch(&d->listing, p->source, p->number, &hint));
                }
        for (uint32_t i = 0; d->order.n_removed > 0 && i < d->config.n_sources; i++)
                if (d->order.at.sources[i].flags & ORDER_REMOVED)
                        ret_batches[i] = UINT64_MAX;
        return true;
}

size_t data_memory(const struct data *d) {
        return sizeof(*d) + d->config.n_sources * sizeof(*d->counts) +
               records_state_max(d->config.n_sources) + listing_memory(&d->listing) + blocks_memory(d) +
               ids_memory(&d->ids) + ids_memory(&d->split_ids) + d->work_memory;
}
