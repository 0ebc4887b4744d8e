/* SPDX-License-Identifier: Apache-2.0 */
/* Searches: arrays whose elements are trials. What happens to a trial, what is decided of it, and what
 * follows for its job are one batch of the store; what is stored is told to the same tables again by a new
 * master. */
#pragma once

#include <systemd/sd-bus.h>

#include "masterd/job/job.h"
#include "masterd/store/store.h"

struct manager;
struct node;
struct trial_report;

/* From the store, in order, before the elements. One that does not follow from what came before makes the
 * search broken. -ENOMEM. */
int searches_loaded(struct job *array, const struct trial_record *r);

/* Its stored events, told to a fresh one from the first on: how many there are, and which is the first that
 * does not follow (0: all do). error: the store did not answer. */
typedef void (*searches_replayed_t)(void *userdata, int error, uint64_t events, uint64_t differs);
/* Of a search, also one that has ended. done is called once, later. -ENOMEM. */
int searches_replay(struct manager *m, const struct job *array, searches_replayed_t done, void *userdata);

/* Why a broken search cannot go on, into buf; NULL: it is not. */
#define SEARCH_BROKEN_MAX 256
const char *searches_broken_text(const struct job *array, char *buf, size_t size);

/* Its next trial is made; given: what its searcher gives it, NULL where there is none. -EAGAIN, -E2BIG: there
 * can be no further one; -ENOMEM. */
int searches_created(struct manager *m, struct job *array, const char *given);
/* There are to be so many trials altogether. As search_grow(). */
int searches_grow(struct manager *m, struct job *array, uint32_t max_trials);
/* Its searcher wants a trial to end; 0 also when it does or has. -ENOENT: no such; -EAGAIN: it has not begun.
 */
int searches_stop(struct manager *m, struct job *array, uint32_t trial);
/* The job of its searcher has ended. */
void searches_closed(struct manager *m, struct job *array, const struct job *searcher);
/* What tells a trial (or ELEMENT_SEARCHER) who it is, NAME=VALUE, into as many as four places. -ENOENT,
 * -ENOMEM. */
int searches_describe(const struct job *array, uint32_t trial, char **env);
/* Whether the job is a trial of a search that goes on. */
bool searches_has(struct manager *m, const struct job *element);
/* A trial says that what it was given makes no sense: it ends, and counts as never made. */
void searches_invalid(struct manager *m, struct job *element);
/* The job of a trial has ended. */
void searches_ended(struct manager *m, struct job *array, const struct job *element);
/* "; best: trial 7, loss 0.031 at 90", into buf; "" where none reported. */
#define SEARCH_BEST_MAX 160
const char *searches_best_text(const struct job *array, char *buf, size_t size);

/* A trial reports a result, or that its parameters make no sense; call is answered when that is on disk, and
 * so is what was decided. 1: it will be; or a negative errno with an error set. */
int searches_reported(struct manager *m, const struct node *node, sd_bus_message *call,
                      const struct trial_report *report, sd_bus_error *error);
