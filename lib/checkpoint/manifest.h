/* SPDX-License-Identifier: Apache-2.0 */
/* manifest-RANK.json of a checkpoint, as primus.checkpoints of Python writes and reads it. */
#pragma once

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/checkpoint/tree.h"

#define STEP_MAX UINT64_C(999999999999)

struct manifest {
        uint64_t step;
        uint32_t rank, world;
        double time; /* seconds since 1970 */
        json_t *metrics, *metadata, *files;
        void *data; /* where the job's data stood; NULL: it was not said */
        size_t data_size;
};

/* Where a rank's is, in the directory of a checkpoint. For free(); NULL: no memory. */
char *manifest_path(const char *checkpoint, uint32_t rank);
/* What stands in it, which anybody may have written who can write there. -EBADMSG: it is none; why. */
int manifest_read(const char *checkpoint, uint32_t rank, struct manifest *ret, char why[static WHY_MAX]);
/* A metric's value; NAN: it has none, or one that is no number. */
double manifest_metric(const json_t *metrics, const char *name);
/* On disk in that directory when it returns 0; until then under .manifest-RANK.json. */
int manifest_write(const char *checkpoint, const struct manifest *m);
void manifest_clear(struct manifest *m);
