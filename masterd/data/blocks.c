/* SPDX-License-Identifier: Apache-2.0 */
/* Making tasks, a block of the order at a time: planned (which task of which source), then made one by one as
 * the rows of their files come. A block is kept until all of its tasks are over or have rows of their own. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include "lib/base/cleanup.h"
#include "lib/base/packed.h"
#include "masterd/data/internal.h"

#define SOON 128u /* tasks whose rows are wanted at once; less than half of ROW_GROUPS_MAX */

static int plan_new(struct data *d, struct block *b) {
        if (b->plan)
                return 0;
        b->plan = calloc(BLOCK_TASKS, sizeof(*b->plan));
        d->n_plans += !!b->plan;
        return b->plan ? 0 : -ENOMEM;
}

/* The last one, and how many there are. -EUCLEAN: it is something else. */
static int find_steps(const struct data *d, const uint8_t *state, size_t place, size_t size, size_t *ret_last,
                      uint32_t *ret_n) {
        size_t at = place, length;

        *ret_last = *ret_n = 0;
        for (; at < size; at += BLOCK_STEP_HEAD + length) {
                if (size - at <= BLOCK_STEP_HEAD || *ret_n == BLOCK_STEPS_EVER)
                        return -EUCLEAN;
                length = order_place_length(&d->order, state + at + BLOCK_STEP_HEAD,
                                            size - at - BLOCK_STEP_HEAD);
                if (length == 0)
                        return -EUCLEAN;
                *ret_last = at;
                (*ret_n)++;
        }
        return 0;
}

int blocks_add(struct data *d, uint64_t index, const uint8_t *state, size_t size, struct block **ret) {
        size_t place = state ? order_place_length(&d->order, state, size) : size, last = 0;
        uint32_t n_steps = 0;
        struct block *b;

        if (place == 0 || (state && find_steps(d, state, place, size, &last, &n_steps) < 0))
                return -EUCLEAN;
        b = calloc(1, sizeof(*b));
        if (!b)
                return -ENOMEM;
        b->state = malloc(size);
        if (!b->state || plan_new(d, b) < 0) {
                free(b->state);
                free(b);
                return -ENOMEM;
        }
        b->index = index;
        b->dirty = true;
        b->place_size = place;
        b->last_step = last;
        b->n_steps = n_steps;
        b->state_size = size;
        if (state)
                memcpy(b->state, state, size);
        else
                order_place_write(&d->order, b->state);
        DL_APPEND(d->blocks, b);
        d->n_blocks++;
        d->blocks_memory += size;
        *ret = b;
        return 0;
}

static void plan_free(struct data *d, struct block *b) {
        d->n_plans -= !!b->plan;
        free(b->plan);
        b->plan = NULL;
}

void blocks_free(struct data *d, struct block **list, struct block *b) {
        if (d->making == b)
                d->making = b->next;
        DL_DELETE(*list, b);
        plan_free(d, b);
        d->n_blocks--;
        d->blocks_memory -= b->state_size;
        free(b->state);
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
        d->n_touched = MAX(d->n_touched, id);
        b->gone[i / 8] |= (uint8_t)(1u << i % 8);
        b->n_gone++;
        b->dirty = true;
        d->state_dirty = true;
}

int blocks_plan(struct data *d, enum order_result *ret) {
        struct block *b = last_block(d);
        uint32_t before;

        if (!b || b->n_planned == BLOCK_TASKS) {
                int r = blocks_add(d, d->n_planned / BLOCK_TASKS, NULL, order_place_size(&d->order), &b);
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
                blocks_free(d, &d->blocks, b);
                return 0;
        }
        if (!d->making && b->n_made < b->n_planned)
                d->making = b;
        return b->n_planned > before;
}

/* ---- steered ---- */

/* Goes to where the step at *at leads, if that comes before the block's n-th task. */
static int step_apply(struct data *d, const struct block *b, uint32_t n, size_t *at) {
        size_t place = *at + BLOCK_STEP_HEAD, length;

        if (*at >= b->state_size || packed_u32(b->state + *at) != n)
                return 0;
        length = order_place_length(&d->order, b->state + place, b->state_size - place);
        *at = place + length;
        return order_place_read(&d->order, b->state + place, length, b->index * BLOCK_TASKS + n);
}

int block_replay(struct data *d, struct block *b, uint32_t n) {
        int r = order_place_read(&d->order, b->state, b->place_size, b->index * BLOCK_TASKS);
        size_t at = b->place_size;

        for (b->n_planned = 0; r >= 0; b->n_planned++) {
                struct planned *p = b->plan + b->n_planned;
                r = step_apply(d, b, b->n_planned, &at);
                if (r < 0 || b->n_planned == n)
                        break;
                if (order_next(&d->order, &p->source, &p->number, &p->epoch) != ORDER_TASK)
                        r = -EUCLEAN;
        }
        return r < 0 || at != b->state_size ? -EUCLEAN : 0;
}

/* The block that a step falls into; NULL: it comes at the beginning of one. */
static struct block *step_block(const struct data *d) {
        struct block *b = last_block(d);

        return b && b->n_planned < BLOCK_TASKS ? b : NULL;
}

/* Steps without a task between them are one. */
static bool step_is_new(const struct block *b) {
        return b->last_step == 0 || packed_u32(b->state + b->last_step) != b->n_planned;
}

int blocks_step_room(struct data *d, uint32_t n_sources, uint32_t most) {
        struct block *b = step_block(d);
        uint8_t *state;

        if (!b)
                return 0;
        if (step_is_new(b) && b->n_steps >= most)
                return -EBUSY;
        state = realloc(b->state, (step_is_new(b) ? b->state_size : b->last_step) + BLOCK_STEP_HEAD +
                                          order_place_max(n_sources));
        if (!state)
                return -ENOMEM;
        b->state = state;
        return 0;
}

void blocks_step(struct data *d, const struct order_step *step) {
        struct block *b = step_block(d);

        order_steer(&d->order, step);
        d->state_dirty = d->urgent = true;
        if (!b)
                return;
        if (step_is_new(b)) {
                b->last_step = b->state_size;
                b->n_steps++;
        }
        d->blocks_memory -= b->state_size;
        b->state_size = b->last_step + BLOCK_STEP_HEAD + order_place_size(&d->order);
        d->blocks_memory += b->state_size;
        packed_put_u32(b->state + b->last_step, b->n_planned);
        order_place_write(&d->order, b->state + b->last_step + BLOCK_STEP_HEAD);
        b->dirty = true;
}

/* Tasks of the block from its n-th on, as far as they are made, are forgotten. */
static void block_forget(struct data *d, struct block *b, uint32_t n) {
        for (uint32_t i = n; i < b->n_made; i++) {
                struct work *w = ids_find(&d->ids, b->index * BLOCK_TASKS + i + 1);
                if (w)
                        work_forget(d, w);
        }
        b->n_made = MIN(b->n_made, n);
}

/* The first one that is not made to its end. */
static struct block *first_to_make(const struct data *d) {
        struct block *b;

        DL_FOREACH (d->blocks, b)
                if (b->n_made < b->n_planned)
                        return b;
        return NULL;
}

int blocks_cut(struct data *d, uint64_t n) {
        struct block *b, *next, *at = NULL;
        int r;

        if (n >= d->n_planned)
                return 0;
        DL_FOREACH (d->blocks, b)
                if (b->index == n / BLOCK_TASKS)
                        at = b;
        /* Nobody has had what is behind n: its block is there, and has not come to its end. */
        assert(at);
        r = plan_new(d, at);
        if (r < 0)
                return r;
        DL_FOREACH_SAFE (at, b, next)
                block_forget(d, b, b == at ? n % BLOCK_TASKS : 0);
        /* It was planned so before. */
        r = block_replay(d, at, n % BLOCK_TASKS);
        assert(r >= 0);
        for (b = n % BLOCK_TASKS == 0 ? at : at->next; b; b = next) {
                next = b->next;
                DL_DELETE(d->blocks, b);
                plan_free(d, b);
                DL_APPEND(d->dropped, b);
        }
        d->making = first_to_make(d);
        d->n_planned = n;
        d->n_flushed = MIN(d->n_flushed, n);
        d->n_durable = MIN(d->n_durable, n);
        d->state_dirty = d->urgent = true;
        return 0;
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
        steer_skip_unwanted(d);
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
        return d->n_blocks * sizeof(struct block) + d->blocks_memory +
               d->n_plans * BLOCK_TASKS * sizeof(struct planned);
}
