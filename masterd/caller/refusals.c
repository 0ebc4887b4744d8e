/* SPDX-License-Identifier: Apache-2.0 */
/* Invariant: every refusal is either admitted or in exactly one count that refusals_over() gives out. */
#include "masterd/caller/refusals.h"

#include <errno.h>
#include <stdlib.h>

#include <uthash.h>

struct row {
        UT_hash_handle hh;
        uint32_t uid;
        uint64_t since;
        uint64_t n;
};

struct refusals {
        struct row *rows;
};

int refusals_new(struct refusals **ret) {
        *ret = calloc(1, sizeof(**ret));
        return *ret ? 0 : -ENOMEM;
}

static void row_free(struct refusals *r, struct row *w) {
        HASH_DEL(r->rows, w);
        free(w);
}

struct refusals *refusals_free(struct refusals *r) {
        struct row *w, *next;

        if (!r)
                return NULL;
        HASH_ITER (hh, r->rows, w, next)
                row_free(r, w);
        free(r);
        return NULL;
}

static struct row *find(const struct refusals *r, uint32_t uid) {
        struct row *w;

        HASH_FIND(hh, r->rows, &uid, sizeof(uid), w);
        if (!w && HASH_COUNT(r->rows) >= REFUSALS_WHO_MAX) {
                uid = REFUSALS_OTHERS;
                HASH_FIND(hh, r->rows, &uid, sizeof(uid), w);
        }
        return w;
}

bool refusals_full(const struct refusals *r, uint32_t uid) {
        const struct row *w = find(r, uid);

        return w && w->n >= REFUSALS_MAX;
}

bool refusals_admit(struct refusals *r, uint32_t uid, uint64_t now) {
        struct row *w = find(r, uid);

        if (!w) {
                w = calloc(1, sizeof(*w));
                if (!w)
                        return true; /* rather a line too many */
                w->uid = HASH_COUNT(r->rows) >= REFUSALS_WHO_MAX ? REFUSALS_OTHERS : uid;
                w->since = now;
                HASH_ADD(hh, r->rows, uid, sizeof(w->uid), w);
        }
        return w->n++ < REFUSALS_MAX;
}

bool refusals_any(const struct refusals *r) {
        return r->rows != NULL;
}

bool refusals_over(struct refusals *r, uint64_t now, bool all, uint32_t *ret_uid, uint64_t *ret_suppressed) {
        struct row *w, *next;

        HASH_ITER (hh, r->rows, w, next)
                if (all || now >= usec_add(w->since, REFUSALS_USEC)) {
                        *ret_uid = w->uid;
                        *ret_suppressed = w->n > REFUSALS_MAX ? w->n - REFUSALS_MAX : 0;
                        row_free(r, w);
                        return true;
                }
        return false;
}
