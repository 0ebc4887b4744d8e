/* SPDX-License-Identifier: Apache-2.0 */
#include "masterd/data/parts.h"

static uint64_t cut(uint64_t size, uint64_t length) {
        uint64_t n = size / length, rest = size % length;

        return n + (rest > 0 && rest >= length / 4);
}

struct parts parts_of(const struct data_file *f, uint32_t ppm, uint64_t key) {
        struct parts p = { .n = 1, .ppm = ppm, .phase = (uint32_t)(key % SAMPLE_ALL) };

        if (f->split > 0 && f->size != TASK_UNKNOWN && f->size > f->split && f->first == 0 &&
            f->last == f->size) {
                p.length = f->split;
                p.n = cut(f->size, p.length);
                if (p.n > FILE_PARTS_MAX) {
                        p.length = f->size / FILE_PARTS_MAX + 1;
                        p.n = cut(f->size, p.length);
                }
                if (p.n <= 1)
                        p.n = 1, p.length = 0;
        }
        /* Part i is taken where floor((i * ppm + phase) / SAMPLE_ALL) steps. */
        p.taken = (p.n * ppm + p.phase) / SAMPLE_ALL;
        return p;
}

/* The lowest i of which floor(((i + 1) * ppm + phase) / SAMPLE_ALL) is k + 1. */
static uint64_t taken_part(const struct parts *p, uint64_t k) {
        return ((k + 1) * SAMPLE_ALL - p->phase + p->ppm - 1) / p->ppm - 1;
}

void parts_range(const struct parts *p, const struct data_file *f, uint64_t k, uint64_t *ret_start,
                 uint64_t *ret_end) {
        uint64_t i = taken_part(p, k);

        if (p->length == 0) {
                *ret_start = f->first;
                *ret_end = f->last;
                return;
        }
        *ret_start = i * p->length;
        *ret_end = i == p->n - 1 ? f->size : *ret_start + p->length;
}

uint64_t parts_bytes(const struct parts *p, const struct data_file *f) {
        uint64_t start, end;

        if (p->taken == 0)
                return 0;
        parts_range(p, f, p->taken - 1, &start, &end); /* only the last one is of another length */
        return (p->taken - 1) * p->length + task_length(f, start, end);
}

uint64_t task_length(const struct data_file *f, uint64_t start, uint64_t end) {
        if (end != TASK_TO_END)
                return end - start;
        return f->size != TASK_UNKNOWN ? f->size : 0;
}
