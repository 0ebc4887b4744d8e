/* SPDX-License-Identifier: Apache-2.0 */
/* The trials of a job that is a search: which there are (masterd/search/search.h), and what each is given.
 * Pure; who makes and ends them is masterd/life/searches.c.
 *
 * What happens to them are events, stored in their order. A new master tells them again: that is its state.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "masterd/search/search.h"
#include "masterd/search/space.h"
#include "masterd/spec/spec-search.h"

enum trial_event_kind {
        TRIAL_CREATED,
        TRIAL_VALIDATED,
        TRIAL_EXITED,
        TRIAL_STOPPED, /* its searcher wants it to end */
        TRIAL_CLOSED,  /* the searcher has ended, as exit says; trial is 0 */
        TRIAL_GROWN,   /* there are to be so many trials altogether as time says; trial is 0 */
        _TRIAL_EVENT_MAX,
};
struct trial_event {
        enum trial_event_kind kind;
        uint32_t trial; /* of TRIAL_CREATED: filled in */
        uint64_t time;
        double metric;
        enum search_exit exit;
        const char *given; /* TRIAL_CREATED of one with a searcher: JSON, at most TRIAL_GIVEN_MAX bytes */
};
#define TRIAL_GIVEN_MAX (16u << 10)
#define TRIALS_GIVEN_MAX (16u << 20) /* bytes of all trials of a search together */
/* As it is kept for the searcher, which reads all of them when it begins, and again when it was lost. */
struct trial_note {
        uint8_t kind, exit, verdict;
        uint32_t trial;
        uint64_t time;
        double metric;
};

struct trials {
        struct search_settings settings;
        struct search *search;
        uint64_t n_events; /* that changed something */
        uint64_t broken;   /* the stored event that does not follow from those before it; 0: all do */
        uint64_t seed;
        struct space *space; /* NULL: the searcher has it in its head alone */
        /* Of a search with a searcher: all events, n_events of them, and what each trial was given. */
        struct trial_note *notes;
        char **given;
        uint32_t n_given;
        size_t given_bytes;
        bool failed; /* its searcher has ended, and not well */
};

/* -EINVAL: a spec that is not complete; -ENOMEM. */
int trials_new(const struct search_spec *spec, struct trials **ret);
/* Bytes of memory that it takes; of what its searcher says, those that it takes now. */
size_t trials_bytes(const struct trials *t);
/* Bytes more, when there are to be so many trials. */
size_t trials_growth(const struct trials *t, uint32_t max_trials);
/* Bytes of the largest that a trial may be given. */
size_t trials_given_max(const struct trials *t);
struct trials *trials_free(struct trials *t);
static inline void trials_free_p(struct trials **t) {
        trials_free(*t);
}

/* Something has happened. Returns what is decided: enum search_verdict of TRIAL_VALIDATED, else 0; negative:
 * it changed nothing (-EAGAIN, -EALREADY, -ENOENT; -E2BIG: what it is given is too much), or -ENOMEM. Of a
 * verdict SEARCH_PAST n_events stays as it was. */
int trials_follow(struct trials *t, struct trial_event *e, struct search_reason *ret_reason);

/* What the trial is given, as compact JSON; allocated. -ENOENT: a list or a grid has no such; -ENOMEM. */
int trials_given(const struct trials *t, uint32_t trial, char **ret_json);
