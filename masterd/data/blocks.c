/* SPDX-License-Identifier: Apache-2.0 */
/* Making tasks, a block of the order at a time: planned (which task of which source), then made one by one as
 * the rows of their files come. A block is kept until all of its tasks are over or have rows of their own. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include "lib/base/cleanup.h"
#include "masterd/data/internal.h"

#define SOON 128u /* tasks whose rows are wanted at once; less than half of ROW_GROUPS_MAX */

int blocks_add(struct data *d, uint64_t index, struct block **ret) {
        struct block *b = calloc(1, sizeof(*b) + order_place_size(&d->order));

        if (!b)
                return -ENOMEM;
        b->plan = calloc(BLOCK_TASKS, sizeof(*b->plan));
        if (!b->plan) {
                free(b);
                return -ENOMEM;
        }
        b->index = index;
        b->dirty = true;
        order_place_write(&d->order, b->place);
        DL_APPEND(d->blocks, b);
        d->n_blocks++;
        d->n_plans++;
        *ret = b;
        return 0;
}

static void plan_free(struct data *d, struct block *b) {
        d->n_plans -= !!b->plan;
        free(b->plan);
        b->plan = NULL;
}

void blocks_free(struct data *d, struct block *b) {
        if (d->making == b)
                d->making = b->next;
        DL_DELETE(d->blocks, b);
        plan_free(d, b);
        d->n_blocks--;
        free(b);
}

static struct block *last_block(const struct data *d) {
        return d->blocks ? d->blocks->prev : NULL;
}

bool block_is_gone(const struct block *b, uint64_t number) {
        uint32_t i = number % BLOCK_TASKS;

        return b->gone[i / 8] >> i % 8 & 1;
}

void block_gone(struct data *d, struct block *b, uint64_t id) {
        uint32_t i = (id - 1) % BLOCK_TASKS;

        if (block_is_gone(b, i))
                return;
        b->gone[i / 8] |= (uint8_t)(1u << i % 8);
        b->n_gone++;
        b->dirty = true;
        d->state_dirty = true;
}

int blocks_plan(struct data *d, enum order_result *ret) {
        struct block *b = last_block(d);
        uint32_t before;

        if (!b || b->n_planned == BLOCK_TASKS) {
                int r = blocks_add(d, d->n_planned / BLOCK_TASKS, &b);
                if (r < 0)
                        return r;
        }
        before = b->n_planned;
        *ret = ORDER_TASK;
        while (b->n_planned < BLOCK_TASKS) {
                struct planned *p = b->plan + b->n_planned;
                *ret = order_next(&d->order, &p->source, &p->number, &p->epoch);
                if (*ret != ORDER_TASK)
                        break;
                b->n_planned++;
                d->n_planned++;
                d->state_dirty = true;
        }
        if (b->n_planned == 0) {
                blocks_free(d, b);
                return 0;
        }
        if (!d->making && b->n_made < b->n_planned)
                d->making = b;
        return b->n_planned > before;
}

uint64_t blocks_made(const struct data *d) {
        const struct block *b = d->making;

        return b ? b->index * BLOCK_TASKS + b->n_made : d->n_planned;
}

static void made(struct data *d, struct block *b) {
        b->n_made++;
        if (b->n_made < b->n_planned)
                return;
        d->making = b->next;
        if (b->n_made == BLOCK_TASKS)
                plan_free(d, b);
}

/* Rows of what comes next, all in one go. */
static int want_soon(struct data *d, const struct block *b) {
        uint32_t n = 0;
        int r = 0;

        for (uint32_t i = b->n_made; i < b->n_planned && n < SOON && r >= 0; i++)
                if (!block_is_gone(b, i)) {
                        r = listing_soon(&d->listing, b->plan[i].source, b->plan[i].number);
                        n++;
                }
        return r < 0 ? r : 0;
}

int blocks_make(struct data *d) {
        struct block *b = d->making;
        const struct planned *p = b->plan + b->n_made;
        uint64_t number = b->index * BLOCK_TASKS + b->n_made, file, start, end;
        const struct data_file *what;
        struct work *w;
        int r;

        if (block_is_gone(b, number)) { /* after a restart */
                made(d, b);
                return 1;
        }
        r = listing_task(&d->listing, p->source, p->number, &what, &file, &start, &end);
        if (r == 0)
                return want_soon(d, b);
        if (r < 0)
                return r;
        w = work_new(d, number + 1, p->source, p->epoch, file, what, start, end);
        if (!w)
                return -ENOMEM;
        r = work_add(d, w);
        if (r < 0) {
                work_free(d, w);
                return r == -EEXIST ? -EUCLEAN : r;
        }
        w->block = b;
        /* What a topic brought later is in the order in which it came, which its block cannot tell once more
         * has come: its row does. */
        if (w->t.what.batch == UINT64_MAX) {
                work_changed(d, w);
                d->urgent = true;
        }
        work_put_fresh(d, w);
        made(d, b);
        return 1;
}

int data_prepare(struct data *d, uint32_t wanted) {
        enum order_result order;
        int r;

        if (d->restoring)
                return DATA_MISSING;
        while (d->n_pending < wanted && !data_all_made(d)) {
                if (d->making) {
                        r = blocks_make(d);
                        if (r < 0)
                                return r;
                        if (r == 0)
                                return DATA_MISSING;
                        continue;
                }
                r = blocks_plan(d, &order);
                if (r < 0)
                        return r;
                if (r == 0)
                        return order == ORDER_OVER ? DATA_OVER : DATA_WAITS;
        }
        return d->n_pending >= wanted ? DATA_READY : DATA_OVER;
}

bool data_missing(struct data *d, uint32_t *ret_source, uint64_t *ret_first, uint32_t *ret_n) {
        /* In a shuffle nothing is known of the neighbours; otherwise each source goes on where it is. */
        unsigned ahead = d->config.order == ORDER_SHUFFLE
                                 ? 0
                                 : (unsigned)(ROW_GROUPS_MAX / 4 / MAX(d->config.n_sources, (size_t)1));

        return listing_missing(&d->listing, ahead, ret_source, ret_first, ret_n);
}

int data_filled(struct data *d, uint32_t source, uint64_t first, const struct data_file *files, size_t n) {
        return listing_filled(&d->listing, source, first, files, n);
}

size_t blocks_memory(const struct data *d) {
        return d->n_blocks * (sizeof(struct block) + order_place_size(&d->order)) +
               d->n_plans * BLOCK_TASKS * sizeof(struct planned);
}
