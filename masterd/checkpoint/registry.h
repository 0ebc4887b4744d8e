/* SPDX-License-Identifier: Apache-2.0 */
/* The checkpoints that trainers have told of, by their owner. Pure: no clock, bus, store. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <uthash.h>

#define CHECKPOINT_PATH_MAX 512u
#define CHECKPOINT_METRICS_MAX 1024u /* bytes of JSON */
#define CHECKPOINT_METRIC_MAX 64u
#define CHECKPOINT_HOST_MAX 255u
#define CHECKPOINT_NO_TRIAL UINT32_MAX
#define CHECKPOINTS_PER_USER_MAX 10000u
#define CHECKPOINTS_MAX 50000u

/* What is known of one. */
struct checkpoint_facts {
        const char *path;    /* absolute: its directory, on */
        const char *host;    /* ... this host, or on all that share it */
        const char *metrics; /* JSON: an object of numbers */
        const char *metric;  /* "": it is not said which is the one that counts */
        double value;        /* of that one; NaN: it has none */
        bool smaller;        /* is better */
        uint32_t owner;
        uint32_t job;   /* the array, where it is an element's */
        uint32_t run;   /* the job that has it: job itself, or the element's own number */
        uint32_t trial; /* index in the array; else CHECKPOINT_NO_TRIAL */
        uint64_t step, saved_real, bytes;
        uint32_t files;
};

struct checkpoint {
        uint64_t id;                   /* counts up, is never used again */
        struct checkpoint_facts facts; /* the texts are its own */
        char *texts;
        bool pinned;                /* stays, whatever a policy says */
        uint32_t held;              /* by so many versions of models: so it does then */
        bool marked;                /* is to be removed: whoever removes it says so when it is gone */
        UT_hash_handle hh, user_hh; /* by id; by path, of its owner; both in the order of the ids */
};

/* Of the job: of the array as a whole, or of one of its elements. */
static inline bool checkpoint_is_of(const struct checkpoint *x, uint32_t job) {
        return x->facts.job == job || x->facts.run == job;
}

struct checkpoints;

int checkpoints_new(struct checkpoints **ret);
void checkpoints_free(struct checkpoints *c);

/* A new one, or another state of the one with that path and owner, which keeps its id and its pin and is not
 * marked any more. id: of a new one; 0: the next. 0: it was added; 1: it was there. -EDQUOT: the owner has as
 * many as one may have; -ENOSPC: there are as many as there may be; -EEXIST: the id is taken; -ENOMEM; all
 * leave what was. */
int checkpoints_put(struct checkpoints *c, uint64_t id, const struct checkpoint_facts *facts,
                    struct checkpoint **ret);
/* The next new one has at least this. */
void checkpoints_begin(struct checkpoints *c, uint64_t next);
uint64_t checkpoints_next_id(const struct checkpoints *c);
struct checkpoint *checkpoints_get(const struct checkpoints *c, uint64_t id);
struct checkpoint *checkpoints_find(const struct checkpoints *c, uint32_t owner, const char *path);
void checkpoints_remove(struct checkpoints *c, struct checkpoint *x);

/* In the order of their ids, from the first behind that id: of one owner; of all. NULL: no more. */
struct checkpoint *checkpoints_after(const struct checkpoints *c, uint32_t owner, uint64_t id);
struct checkpoint *checkpoints_after_of_all(const struct checkpoints *c, uint64_t id);
