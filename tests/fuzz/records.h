/* SPDX-License-Identifier: Apache-2.0 */
/* What holds for the records of any bytes in any format: each takes at least a byte and lies within what
 * there is; a part of the bytes gives the same record or asks for more; record_last() ends where a walk ends.
 */
#pragma once

#include <stdlib.h>
#include <string.h>

#include "lib/record/record.h"
#include "tests/fuzz/fuzz.h"

static inline void must_be_within(const struct record *r, const uint8_t *buf, size_t size) {
        MUST(r->total > 0 && r->total <= size);
        MUST(r->data >= buf && r->size <= r->total && (size_t)(r->data - buf) <= r->total - r->size);
}

/* Less of the same bytes, in memory of exactly that size: the record, or "more is needed", but no other. */
static inline void check_less(const struct record_format_info *f, const uint8_t *buf, size_t size,
                              const struct record *whole, int outcome) {
        uint8_t *part = malloc(size + 1);
        struct record r;
        const char *why = NULL;
        int k;

        MUST(part);
        memcpy(part, buf, size);
        k = record_next(f, part, size, false, &r, &why);
        if (k > 0) {
                must_be_within(&r, part, size);
                MUST(outcome > 0 && r.size == whole->size && r.total == whole->total);
        } else if (k < 0)
                MUST(why && outcome < 0);
        free(part);
}

static inline void check_records(const struct record_format_info *f, const uint8_t *buf, size_t size,
                                 bool last) {
        size_t at = 0, n = 0, bytes = 0;
        uint64_t counted = 0;
        const char *why = NULL;
        struct record r;
        int k;

        while ((k = record_next(f, buf + at, size - at, last, &r, &why)) > 0) {
                must_be_within(&r, buf + at, size - at);
                if (n < 8) {
                        check_less(f, buf + at, r.total / 2, &r, 1);
                        check_less(f, buf + at, r.total - 1, &r, 1);
                }
                at += r.total;
                n++;
        }
        MUST(k == 0 || why);
        MUST(record_last(f, buf, size, last, &bytes, &counted, &why) < 0 ? k < 0 && n == 0 : bytes == at);
        MUST(counted == 0 || counted == n);
}

/* The first record from position on is the same however much is shown at a time, and a record is there. */
static inline void check_sync(const struct record_format_info *f, const uint8_t *buf, size_t size,
                              size_t from, size_t step) {
        size_t all = 0, at = 0;
        const char *why = NULL;
        int k = record_sync(f, buf + from, size - from, from, true, &all, &why);

        if (k < 0)
                return;
        MUST(k == 1 && all <= size - from);
        for (size_t have = 0;; have = size - from - have < step ? size - from : have + step) {
                bool last = have == size - from;

                k = record_sync(f, buf + from, have, from, last, &at, &why);
                MUST(k >= 0 && (k == 1 || !last));
                if (k == 1)
                        break;
        }
        MUST(at == all);
}
