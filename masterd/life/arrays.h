/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays: a job that stands for many. The array has a number, a state and a configuration, and no executors
 * that run; its elements are jobs with numbers of their own and the array's configuration, made when their
 * turn comes. How an element stands is in its own record alone. */
#pragma once

#include "masterd/job/array.h"
#include "masterd/job/job.h"
#include "masterd/store/store.h"

struct manager;

/* The configuration of a stored element. In memory all elements of an array have one together. */
int arrays_load_spec(struct manager *m, const struct job_record *r, struct job_spec **ret);
/* Makes the job an array when its configuration says so. */
int arrays_prepare(struct job *j);

/* The array that the job is an element of, as the latest of that index; NULL: it is none. */
struct job *arrays_of(struct manager *m, const struct job *element, uint32_t *ret_position);

/* The search that the job is the searcher of, as the latest of it; NULL: it is none. */
struct job *arrays_of_searcher(struct manager *m, const struct job *element);

/* When the job is an array: makes elements whose turn has come, and returns true. */
bool arrays_take(struct manager *m, struct job *j);
/* The job has another state; it has ended. When it is an element, its array follows. */
void arrays_job_changed(struct manager *m, struct job *j);
void arrays_job_ended(struct manager *m, struct job *j);
/* The job has a first error, or has ended with one: that of the first element that failed is its array's. */
void arrays_first_error(struct manager *m, const struct job *j);
/* The array is being stopped: so are its elements. */
void arrays_stop(struct manager *m, struct job *j, const char *reason);

/* From the store: an element that is active, whose array is in memory; how any element stands. */
int arrays_adopt(struct manager *m, struct job *element);
void arrays_loaded(struct job *array, const struct element_record *r);

/* What did not succeed runs again, under the same number. The array has ended and is in memory; env and
 * secrets are its. */
int arrays_again(struct manager *m, struct job *j, uint32_t uid);

/* A search goes on, with so many trials altogether (0: as many as it was to have): at once, or, when it has
 * ended, under the same number; env and secrets are its. Of one that has trials to come, or gets some. */
int arrays_continue(struct manager *m, struct job *j, uint32_t max_trials, uint32_t uid);

/* The manager goes; no array is left. */
void arrays_free_owners(struct manager *m);
