/* SPDX-License-Identifier: Apache-2.0 */
/* Models: checkpoints that somebody has given a name, each time a version more. They are their owner's, as
 * the checkpoint is, and say what it was, also when it is gone. Pure: no clock, bus, store. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MODEL_NAME_MAX 64u
#define MODEL_NOTE_MAX 1024u
#define MODEL_LABEL_MAX 64u
#define MODEL_LABELS_MAX 16u
#define MODELS_PER_USER_MAX 1000u /* versions */
#define MODELS_MAX 10000u

struct model {
        uint32_t owner;
        const char *name;
        uint32_t version; /* from 1 */
        uint64_t checkpoint;
        const char *path, *host, *metric; /* of the checkpoint, as it was */
        double value;                     /* NaN: it had none */
        uint64_t step, registered_real;
        const char *note;   /* one line */
        const char *labels; /* with a space in between */
        bool archived;      /* it does not keep its checkpoint any more */
        struct model *prev, *next;
};

struct models;

int models_new(struct models **ret);
void models_free(struct models *all);

/* 1 to 64 letters, digits, _, . and -, the first a letter: no number, no path. */
bool model_name_valid(const char *name);
bool model_note_valid(const char *note);
/* One label. */
bool model_label_valid(const char *label);

/* A version with texts of its own. version 0: the next of that name. -EDQUOT, -ENOSPC: there are as many as
 * the user may have, as there may be; -EEXIST; -ENOMEM. */
int models_add(struct models *all, const struct model *m, struct model **ret);
/* version 0: the latest that is not archived. NULL: there is none. */
struct model *models_find(const struct models *all, uint32_t owner, const char *name, uint32_t version);
/* Other words for it; NULL: as before. -ENOMEM, and nothing has changed. */
int models_edit(struct model *m, const char *note, const char *labels);
/* In the order of registration; after NULL: the first. */
struct model *models_next(const struct models *all, const struct model *after);
