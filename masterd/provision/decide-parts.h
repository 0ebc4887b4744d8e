/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of a decision share, for this room alone. */
#pragma once

#include "masterd/provision/decide.h"

#define NEVER UINT64_MAX
#define MINUTE_USEC UINT64_C(60000000)

typedef unsigned __int128 wide; /* costs of as many instances as there may be, added */

struct tally {
        uint32_t n;
        uint32_t shape[PROVISION_SHAPES_MAX];
        wide cost;
};

/* Invariant: the counts are those that there will be once the plan so far is carried out. */
struct deciding {
        const struct provision_conf *conf;
        const struct provision_trouble *trouble;
        const struct provision_instance *instances;
        size_t n;
        const struct provision_pace *pace;
        uint64_t now;
        uint32_t min, max;

        bool *done; /* by instance: it has its action */
        struct provision_plan plan;

        struct tally there;   /* not STOPPING, or stuck in it: what new ones are held against */
        struct tally coming;  /* on their way */
        struct tally staying; /* there, and not DRAINING: what the limits are held against */
        uint32_t sound;       /* staying, and of use: what min counts */
        uint32_t empty; /* staying, of use, on their way or with nothing on it, and not wanted: what spare
                           counts */
        uint32_t asked; /* in the last minute */
        uint64_t first_asked; /* when the first of them was */
};

/* a + b that stays at NEVER. */
static inline uint64_t after(uint64_t a, uint64_t b) {
        return a > NEVER - b ? NEVER : a + b;
}

static inline bool is_there(const struct provision_instance *i) {
        return i->state != INSTANCE_STOPPING || i->stuck;
}

static inline bool is_coming(const struct provision_instance *i) {
        return i->state <= INSTANCE_JOINED;
}

static inline bool is_sound(const struct provision_instance *i) {
        return !i->failing && i->seen != SEEN_STOPPING;
}

/* Whatever was meant to be placed where nothing is, or what goes by itself. */
static inline bool is_wanted(const struct provision_instance *i) {
        return i->wanted && is_sound(i);
}

static inline bool is_spare(const struct provision_instance *i) {
        return is_sound(i) && !i->wanted && (is_coming(i) || i->idle_since > 0);
}

uint64_t cost_of(const struct deciding *d, uint32_t shape); /* 0 of one that the settings do not have */
uint32_t max_of(const struct deciding *d, uint32_t shape);
void count_staying(struct deciding *d, const struct provision_instance *i);
void uncount_staying(struct deciding *d, const struct provision_instance *i);
void tally_add(struct tally *t, const struct deciding *d, uint32_t shape);
/* A time at which to decide again; one that has passed is none. */
void wake(struct deciding *d, uint64_t when);
/* -ENOMEM. Add an action, and keep the counts. */
int act_on(struct deciding *d, enum provision_verb verb, uint32_t instance, bool failed, const char *why);
int ask_for(struct deciding *d, uint32_t shape, uint32_t job, const char *why);

/* -ENOMEM. All but UP. */
int decide_away(struct deciding *d);
/* -ENOMEM. */
int decide_up(struct deciding *d, const struct provision_demand *demand, size_t n);
