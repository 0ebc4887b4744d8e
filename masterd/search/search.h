/* SPDX-License-Identifier: Apache-2.0 */
/* A search: which trials there are, and which of them go on. Pure: no clock, bus or store. What it decides is
 * a function of its settings and of the events that it is told, in their order; so the stored events are its
 * state, and told again they decide the same.
 *
 * Asynchronous successive halving, in the variant that stops (Li et al., "A System for Massively Parallel
 * Hyperparameter Tuning", 2020; the stopping variant and the brackets as Determined has them): a bracket has
 * rungs, each at so many units of training. A trial that comes to a rung goes on if it is among the best
 * 1/divisor of those that came there so far, the first one always. Methods without rungs only count.
 *
 * In the variant that promotes (the paper's own) nobody goes on by being first, and who is not among the best
 * is parked instead: it goes on when others that come to its rung make it one of them.
 *
 * A search may have a searcher: a program that says which trials there are to be, and may stop them. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SEARCH_TRIALS_MAX 100000u
#define SEARCH_RUNGS_MAX 16u
#define SEARCH_BRACKETS_MAX 16u
#define SEARCH_DIVISOR_MAX 1000u
#define SEARCH_PROMOTE_MAX 1000u            /* trials where they are parked: each stays until the end */
#define SEARCH_TIME_MAX (UINT64_C(1) << 53) /* what a double counts exactly */

enum search_method {
        SEARCH_RANDOM,
        SEARCH_GRID,
        SEARCH_LIST,
        SEARCH_EXTERNAL, /* its searcher says all; of those with rungs it may say what trials are given */
        SEARCH_ASHA,
        SEARCH_ADAPTIVE,
        SEARCH_HYPERBAND,
        _SEARCH_METHOD_MAX,
};
enum search_mode {
        SEARCH_STANDARD,     /* the half of the brackets that stops most */
        SEARCH_CONSERVATIVE, /* all, down to one that stops nobody early */
        SEARCH_AGGRESSIVE,   /* the one with most rungs alone */
        _SEARCH_MODE_MAX,
};

enum search_variant {
        SEARCH_VARIANT_STOP,
        SEARCH_VARIANT_PROMOTE,
        _SEARCH_VARIANT_MAX,
};

extern const char *const search_method_names[_SEARCH_METHOD_MAX];
extern const char *const search_mode_names[_SEARCH_MODE_MAX];
static inline const char *search_method_to_string(enum search_method m) {
        return m < _SEARCH_METHOD_MAX ? search_method_names[m] : NULL;
}

struct search_settings {
        enum search_method method;
        enum search_mode mode;
        enum search_variant variant;         /* of those with rungs; with a searcher that which stops */
        bool larger;                         /* a larger metric is better */
        bool searcher;                       /* it has one; SEARCH_EXTERNAL always */
        uint32_t max_trials;                 /* >= 1, invalid ones not counted */
        uint32_t max_concurrent;             /* 0: no limit */
        uint32_t divisor;                    /* >= 2 */
        uint32_t max_rungs;                  /* 1 ... SEARCH_RUNGS_MAX; of SEARCH_ASHA: so many it has */
        uint64_t max_time;                   /* units of the top rung */
        uint32_t rungs[SEARCH_BRACKETS_MAX]; /* SEARCH_ADAPTIVE: of its brackets, instead of the mode's */
        uint32_t n_rungs;                    /* 0: the mode's */
};

/* Trials that such a search may have. */
static inline uint32_t search_trials_max(const struct search_settings *s) {
        return s->variant == SEARCH_VARIANT_PROMOTE ? SEARCH_PROMOTE_MAX : SEARCH_TRIALS_MAX;
}

/* Methods that stop trials by their results. */
static inline bool search_has_rungs(enum search_method m) {
        return m >= SEARCH_ASHA;
}

struct search_bracket {
        uint32_t n_rungs; /* 0: nobody is stopped */
        uint32_t trials;  /* of max_trials */
        uint32_t at_once; /* that it begins with */
};
/* The brackets of a search. Returns how many. */
size_t search_brackets(const struct search_settings *s,
                       struct search_bracket ret[static SEARCH_BRACKETS_MAX]);
/* How many trials of a bracket come to each of its rungs, if every rung is full before it decides. */
void search_expect(const struct search_settings *s, const struct search_bracket *b,
                   uint32_t ret[static SEARCH_RUNGS_MAX]);
/* Units of rung i of n. */
uint64_t search_units(const struct search_settings *s, uint32_t n, uint32_t i);

struct search;
/* -EINVAL: settings outside their bounds; -ENOMEM. */
int search_new(const struct search_settings *settings, struct search **ret);
struct search *search_free(struct search *s);
static inline void search_free_p(struct search **s) {
        search_free(*s);
}
/* Bytes of memory that it takes when all its trials are made, but for results of further rungs. */
size_t search_bytes(const struct search *s);
size_t search_trial_bytes(void); /* of that, each */

/* ---- events ---- */

/* Whether another trial is to be made now. False of one with a searcher, which says so itself. */
bool search_wants(const struct search *s);
/* Whether there may be others, now or later. */
bool search_to_come(const struct search *s);
/* It has been: its number is how many there were before. -EAGAIN: none is wanted, or (with a searcher) there
 * are as many as there may be, or it has ended; -ENOMEM. */
int search_created(struct search *s, uint32_t *ret_trial);
/* There are to be so many trials altogether, more than before; what was decided stays. -EINVAL: it is a grid,
 * a list or a searcher's, or so many there cannot be; -EALREADY: there are to be as many. */
int search_grow(struct search *s, uint32_t max_trials);
/* The searcher wants a trial to end, as a success. -ENOENT: no such trial; -EALREADY: it does, or has. */
int search_stopped(struct search *s, uint32_t trial);
/* The searcher has ended: no more trials. -EALREADY. */
int search_closed(struct search *s);

enum search_verdict {
        SEARCH_GOES_ON,
        SEARCH_STOP, /* the trial is to end, as a success */
        SEARCH_PAST, /* a step that it has reported before, or it is over: nothing follows */
        SEARCH_PARK, /* the trial is to let go of what it holds, and to wait */
        _SEARCH_VERDICT_MAX,
};
/* Why, of the highest rung that it came to with this report. */
struct search_reason {
        bool ranked;
        uint32_t rung, n_rungs;
        uint64_t units;
        uint32_t place, of, keep; /* place from 0 on, among of; those below keep go on */
};
/* A result at that many units of training, each a step later than the one before. NaN: as bad as can be.
 * -ENOENT: no such trial; -ENOMEM. Else enum search_verdict. */
int search_validated(struct search *s, uint32_t trial, uint64_t time, double metric,
                     struct search_reason *ret);

/* What an event decided of other trials than its own; asked for until there is nothing more. */
struct search_other {
        uint32_t trial;
        bool promoted; /* it was parked, and is to go on; else it is to end, as a success: no place can come
                        */
};
/* False: nothing more. */
bool search_take_other(struct search *s, struct search_other *ret);

/* Whether a result at that time would come to a rung: that one may stop it. */
bool search_ranks(const struct search *s, uint32_t trial, uint64_t time);

enum search_exit {
        SEARCH_SUCCEEDED,
        SEARCH_FAILED,  /* its attempts are used up, or somebody killed it: the worst of its rung */
        SEARCH_INVALID, /* it says that its parameters make no sense: as if it had not been, and (but of a
                           grid or a list) another instead */
        _SEARCH_EXIT_MAX,
};
/* It has ended. -ENOENT: no such trial, or it has ended before; -ENOMEM. */
int search_exited(struct search *s, uint32_t trial, enum search_exit e);

/* ---- how it stands ---- */

/* Nothing runs, and nothing is to be made. */
bool search_over(const struct search *s);
/* So many invalid ones say that the space is wrong: no more are made. */
bool search_gave_up(const struct search *s);

enum search_trial_state {
        SEARCH_TRIAL_RUNS,
        SEARCH_TRIAL_PARKED,
        SEARCH_TRIAL_STOPPED, /* told to end */
        SEARCH_TRIAL_SUCCEEDED,
        SEARCH_TRIAL_FAILED,
        SEARCH_TRIAL_INVALID,
        _SEARCH_TRIAL_STATE_MAX,
};
const char *search_trial_state_to_string(enum search_trial_state s);
struct search_trial {
        enum search_trial_state state;
        uint32_t bracket, rung; /* rungs that it has behind it */
        bool reported;
        uint64_t time;      /* of its latest report */
        double last, best;  /* metrics, as reported; NaN where none was a number */
        uint64_t best_time; /* where the best was */
};
/* False: no such. */
bool search_trial(const struct search *s, uint32_t trial, struct search_trial *ret);
uint32_t search_n_trials(const struct search *s);
uint32_t search_n_invalid(const struct search *s);
/* The trial with the best result so far. False: none has one. */
bool search_best(const struct search *s, uint32_t *ret_trial);
/* Its brackets as they are by now. Returns how many. */
size_t search_plans(const struct search *s, struct search_bracket ret[static SEARCH_BRACKETS_MAX]);
/* How many came to a rung of a bracket. */
uint32_t search_rung_count(const struct search *s, uint32_t bracket, uint32_t rung);
