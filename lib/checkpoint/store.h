/* SPDX-License-Identifier: Apache-2.0 */
/* What saving and finding have in common. The layout is primus.checkpoints':
 *
 *     DIRECTORY/step-000000001000/rank-0/...        what was written
 *                                 manifest-0.json
 *              .step-000000001000                   the same, of which parts are missing
 *              .gone-step-000000001000-PID          what is being removed
 *              .lock
 *
 * Invariant: a name that begins with step- is a whole checkpoint's, and gets there by one rename. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/checkpoint/manifest.h"
#include "lib/primus/primus.h"

#define STEP_NAME_MAX 32u

struct teller;

struct primus_store {
        char *directory; /* absolute */
        char *metric;    /* NULL: none counts */
        uint32_t keep, keep_best, rank, world;
        bool larger, looks;
        /* what is being written */
        bool writing;
        uint64_t step;
        char *here;
        struct primus *feed;
        void *data;
        size_t data_size;
        /* saved, and the others have not yet */
        bool waits;
        char told[STEP_NAME_MAX]; /* that masterd was told of last */
        struct teller *teller;
        char error[WHY_MAX];
};

struct primus_saved {
        char *path; /* of this rank's part, or NULL */
        char *metadata_text;
        struct manifest m;
};

/* A line for primus_store_error(); returns -error. */
int store_fail(struct primus_store *s, int error, const char *format, ...)
        __attribute__((format(printf, 3, 4)));

void step_name(uint64_t step, char ret[static STEP_NAME_MAX]);
/* The directory of a whole one. For free(); NULL: no memory. */
char *store_path(const struct primus_store *s, uint64_t step);
/* Steps of those that are whole, the latest first; *ret is for free(). */
int store_steps(struct primus_store *s, uint64_t **ret, size_t *ret_n);
/* Looks at one, as this rank sees it. -EBADMSG: it is not whole; why. */
int store_look(struct primus_store *s, uint64_t step, bool verify, struct primus_saved **ret,
               char why[static WHY_MAX]);
/* The lower the better; NAN: nobody knows. */
double store_worth(const struct primus_store *s, const struct primus_saved *c);

/* ---- for masterd, which knows of checkpoints ---- */

/* Of a checkpoint that is there, or is not any more. Nobody waits for it; outside of Primus nothing. */
void store_tell_saved(struct primus_store *s, uint64_t step);
void store_tell_gone(struct primus_store *s, uint64_t step);
/* Waits up to ten seconds until all is told. */
void teller_end(struct teller *t);
