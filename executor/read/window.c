/* SPDX-License-Identifier: Apache-2.0 */
/* A shuffle of the records within a window. Invariant: which records are in a window, and their order, depend
 * on where it begins, what lies there, and the task's seed; not on who reads it, nor on where somebody else
 * stopped. */
#include <errno.h>

#include "executor/read/bytes.h"
#include "lib/base/cleanup.h"

/* splitmix64 */
static uint64_t random_next(uint64_t *state) {
        uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

        z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
        z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
        return z ^ z >> 31;
}

void window_order(uint32_t *order, uint32_t n, uint64_t seed, uint64_t position) {
        uint64_t state = position;

        state = random_next(&state) ^ seed;
        for (uint32_t i = 0; i < n; i++) {
                /* From the inside out. The high part of a product is even enough: n is far below 2^64. */
                uint32_t j = (uint32_t)(((unsigned __int128)random_next(&state) * (i + 1)) >> 64);

                order[i] = order[j];
                order[j] = i;
        }
}

static int window_room(struct bytes_reader *r, char error[static READ_ERROR_MAX]) {
        struct window *w = &r->window;
        size_t wanted = MIN(MAX((size_t)1024, w->allocated * 2), (size_t)r->q.input->window);
        struct window_record *records;
        uint32_t *order;

        if (w->n < w->allocated)
                return 0;
        records = reallocarray(w->records, wanted, sizeof *records);
        if (records)
                w->records = records;
        order = records ? reallocarray(w->order, wanted, sizeof *order) : NULL;
        if (!order)
                return bytes_no_memory(r, error);
        w->order = order;
        w->allocated = wanted;
        return 0;
}

int window_fill(struct bytes_reader *r, char error[static READ_ERROR_MAX]) {
        struct window *w = &r->window;

        w->n = w->next = 0;
        w->bytes = 0;
        while (w->n < r->q.input->window && w->bytes < WINDOW_BYTES) {
                struct record record;
                int k = window_room(r, error);

                if (k < 0)
                        return k;
                k = hold_record(r, w->bytes, &record, error);
                if (k < 0)
                        return k;
                if (k == 0)
                        break;
                w->records[w->n++] = (struct window_record){
                        .at = w->bytes,
                        .total = record.total,
                        .data = (size_t)(record.data - hold_bytes(r)),
                        .data_size = record.size,
                };
                w->bytes += record.total;
        }
        window_order(w->order, w->n, r->q.task->seed, r->position);
        return w->n > 0;
}
