/* SPDX-License-Identifier: Apache-2.0 */
/* How the elements of an array stand: which are made, which run, how they ended. Pure; who makes and ends
 * them is masterd/life/arrays.c. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/element.h"
#include "masterd/job/states.h"
#include "masterd/job/trials.h"
#include "masterd/spec/array.h"
#include "masterd/spec/spec.h"

/* Elements that are under way at a time at most, of one array and of all arrays of a user together (but one
 * of each, so that all go on). The same holds for the bytes that they take. */
#define ARRAY_WINDOW 1000u

enum element_state {
        ELEMENT_UNMADE,
        ELEMENT_WAITS, /* its job is there, and has not started */
        ELEMENT_RUNS,
        ELEMENT_SUCCEEDED,
        ELEMENT_FAILED,
        ELEMENT_KILLED,
        ELEMENT_PARKED, /* a trial that holds nothing, and waits for its search */
        _ELEMENT_STATE_MAX,
};

/* What elements of all arrays of a user take together. */
struct array_share {
        uint32_t n;
        size_t bytes;
};

struct array {
        struct array_range range; /* of a search: its trials so far */
        struct trials *trials;    /* it is a search: it says whether there is to be another; else NULL */
        struct {
                struct job_spec *spec; /* NULL: not made yet */
                uint32_t job;          /* the latest; 0: none */
                enum element_state state;
        } searcher; /* of a search that has one: an element at no position, of the index ELEMENT_SEARCHER */
        struct job_spec *element; /* the configuration that its elements have together; NULL: none made yet */
        size_t element_bytes;     /* what each of them takes, as soon as one was made */
        uint8_t *states;          /* enum element_state, by position in the range */
        uint32_t *jobs;           /* number of the latest job of each; 0: none */
        uint32_t n_state[_ELEMENT_STATE_MAX];
        uint32_t next;             /* none before it is UNMADE */
        bool filling;              /* more will be made soon */
        struct array_share *share; /* what is under way of all arrays of its owner, or NULL; borrowed */
};

/* -EINVAL, -ENOMEM. */
int array_new(const char *text, struct array **ret);
/* Of a search. The same. */
int array_new_search(const struct search_spec *spec, struct array **ret);
/* Its next trial, which it wanted: its place here, too. -ENOMEM. */
int array_grow(struct array *a);
struct array *array_free(struct array *a);

/* The position of an index; -ENOENT: the array has no such. */
int array_find(const struct array *a, uint32_t index, uint32_t *ret_position);

/* What a job's state is for its array. */
enum element_state element_state_of(enum job_state s);
void array_set(struct array *a, uint32_t position, enum element_state s);

/* From now on it counts what is under way there as well, and takes it back when it goes. Once. */
void array_join(struct array *a, struct array_share *share);
/* Each element takes so many bytes. Said once, when the first one is made or loaded. */
void array_weigh(struct array *a, size_t element_bytes);

/* The next one to make, when one more may be under way: of ARRAY_WINDOW, and of so many bytes. Of a search it
 * may be the one behind all that there are: then array_grow() comes first. */
bool array_wants(struct array *a, size_t bytes_max, uint32_t *ret_position);
size_t array_bytes(const struct array *a);       /* that it takes itself */
uint32_t array_active(const struct array *a);    /* WAITS and RUNS, but for the searcher */
uint32_t array_under_way(const struct array *a); /* and PARKED: those whose job has not ended */
/* Those that are yet to be made, that wait, or are parked. */
uint32_t array_waiting(const struct array *a);
/* The element there has a job that has not ended. */
static inline bool array_goes(const struct array *a, uint32_t position) {
        return a->states[position] == ELEMENT_WAITS || a->states[position] == ELEMENT_RUNS ||
               a->states[position] == ELEMENT_PARKED;
}
static inline bool array_searcher_active(const struct array *a) {
        return a->searcher.state == ELEMENT_WAITS || a->searcher.state == ELEMENT_RUNS;
}
bool array_over(const struct array *a);      /* every element has ended, and there is to be no other */
uint32_t array_total(const struct array *a); /* elements, also those that are to come */

/* Those that did not succeed are to be made again; of an array without active elements. Returns how many. */
uint32_t array_again(struct array *a);

/* "97 of 100 succeeded, 3 failed; 8 run", into buf. Returns buf. */
char *array_text(const struct array *a, char *buf, size_t size);
#define ARRAY_SUMMARY_MAX 160
