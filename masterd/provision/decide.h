/* SPDX-License-Identifier: Apache-2.0 */
/* When hosts that are made by demand are made and given back: of one provider, from what it has, what is
 * asked for and what time it is, to what is to be done. Pure: times are arguments, CLOCK_REALTIME
 * microseconds, for they are on disk. The same input gives the same answer.
 *
 * What others do, and where they go wrong, is in docs/decisions/provision.md. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PROVISION_SHAPES_MAX 16u
#define PROVISION_INSTANCES_MAX 10000u
#define PROVISION_WHY_MAX 128u

/* The life of an instance. What is gone has no state: its row goes. The numbers are on disk. */
enum instance_state {
        INSTANCE_WANTED,   /* recorded; its provider is asked for it, until that says yes */
        INSTANCE_STARTING, /* the provider has said yes; its host has not joined */
        INSTANCE_JOINED,   /* its host is a node and has registered, but is not to be used yet */
        INSTANCE_READY,    /* takes executors */
        INSTANCE_DRAINING, /* takes no new ones; what demand returns for is kept */
        INSTANCE_STOPPING, /* given back: nothing brings it back */
        _INSTANCE_STATE_MAX,
        _INSTANCE_STATE_INVALID = -22,
};
const char *instance_state_to_string(enum instance_state s); /* "WANTED" ... */

enum instance_event {
        INSTANCE_ACCEPTED, /* `up` ended well; its host may have been quicker */
        INSTANCE_REGISTERED,
        INSTANCE_USABLE, /* its node takes executors */
        INSTANCE_LEAVES,
        INSTANCE_KEPT,       /* demand is back */
        INSTANCE_GIVEN_BACK, /* recorded before its provider is told */
        _INSTANCE_EVENT_MAX,
};
/* _INSTANCE_STATE_INVALID: there is no such transition. */
enum instance_state instance_next(enum instance_state s, enum instance_event e);

/* What the provider's last complete list says. */
enum instance_seen {
        SEEN_NOT_ASKED, /* there was none since the instance was recorded, or none for so long that it says
                           nothing */
        SEEN_PENDING,
        SEEN_RUNNING,
        SEEN_STOPPING,
        SEEN_STOPPED,
        SEEN_FAILED,
        SEEN_ABSENT,
        _SEEN_MAX,
};
enum instance_seen instance_seen_from_string(const char *s); /* "pending" ... "failed"; else _SEEN_MAX */
const char *instance_seen_to_string(enum instance_seen s);

struct provision_shape {
        uint32_t max;  /* instances of it at a time */
        uint64_t cost; /* of one, an hour, in millionths of whatever the site counts in */
};

struct provision_conf {
        struct provision_shape shapes[PROVISION_SHAPES_MAX];
        uint32_t n_shapes;
        uint32_t min, max;      /* instances */
        uint32_t spare;         /* that are empty and ready, or on their way, beyond what is asked for */
        uint32_t starting_max;  /* on their way (WANTED, STARTING, JOINED) at a time; 0: any number */
        uint32_t per_minute;    /* asked for in a minute; 0: any number */
        uint64_t cost_max;      /* an hour, of all; 0: any */
        uint64_t idle_usec;     /* empty for so long: it goes */
        uint64_t min_life_usec; /* not before it has been there for so long */
        uint64_t start_usec;    /* from its being recorded to its registration; and from that to READY */
        uint64_t lost_usec;     /* its node not heard of for so long, though it is listed: it goes */
        uint64_t absent_usec;   /* a new one need not be in lists before; default a minute */
};
/* Determined's: idle 20 min, start 20 min, lost 10 min; max 5. */
void provision_conf_defaults(struct provision_conf *c);

/* What is known of a shape's failures; zero-initialised. In memory alone: a new master tries once. */
struct provision_trouble {
        uint64_t failed[3];     /* when the last ones were */
        uint32_t backoffs;      /* in a row */
        uint64_t blocked_until; /* 0: it is not */
        bool unavailable;       /* blocked because there are none; means nothing where it is not blocked */
        bool told; /* blocked because the provider said so: no success of an earlier one ends that */
        char why[PROVISION_WHY_MAX]; /* one line, whatever was given */
};
#define PROVISION_UNAVAILABLE_USEC UINT64_C(1800000000) /* out of stock is remembered for so long */
/* One could not be made or did not start. Three within 30 min block the shape for a minute; from then on each
 * one does, for 2, 4 ... 30 min, until one succeeds. Those that fail while it is blocked were asked for
 * before that, and make it no longer. */
void provision_failed(struct provision_trouble *t, const char *why, uint64_t now);
/* There are none to be had (exit status 69). */
void provision_unavailable(struct provision_trouble *t, const char *why, uint64_t now);
/* The provider asks to be asked later (75), or cannot be used as it is set up (78): at least so long. */
void provision_later(struct provision_trouble *t, uint64_t usec, const char *why, uint64_t now);
/* One is READY. What the provider said of others holds on. */
void provision_succeeded(struct provision_trouble *t);
bool provision_blocked(const struct provision_trouble *t, uint64_t now);

struct provision_instance {
        enum instance_state state;
        uint32_t shape;      /* beyond n_shapes: one that the settings do not have any more */
        uint64_t made;       /* when it was recorded */
        uint64_t since;      /* in this state since */
        uint64_t idle_since; /* its node has nothing on it since; 0: it has, or it is not READY or DRAINING */
        uint64_t lost_since; /* its node is LOST since; 0: it is not, or it never registered */
        enum instance_seen seen;
        uint32_t absent; /* complete lists in a row that do not have it */
        bool wanted;     /* what waits would be placed there, now or as soon as it is ready */
        bool held;       /* a person keeps it */
        bool leaves;     /* a person gives it back: DRAINING, nothing keeps it */
        bool stuck;      /* STOPPING for so long that it may be there for good: it counts for the limits */
        bool failing;    /* its node is held for whatever reason: nothing is placed there */
};

/* So many new ones of a shape, all or none, for a job: 0 for none in particular. What is on its way for it is
 * not asked for again: that is `wanted`. What can use any number is as many entries of one. */
struct provision_demand {
        uint32_t shape, n;
        uint32_t job;
};

enum provision_verb {
        PROVISION_UP,     /* one of .shape, for .job */
        PROVISION_DRAIN,  /* .instance takes nothing new */
        PROVISION_KEEP,   /* .instance is not drained after all */
        PROVISION_STOP,   /* .instance is given back: nothing runs there */
        PROVISION_FORGET, /* .instance is gone, or never was: its row and its node go */
        _PROVISION_VERB_MAX,
};
struct provision_action {
        enum provision_verb verb;
        uint32_t instance;           /* index; of UP UINT32_MAX */
        uint32_t shape, job;         /* job: of UP */
        bool failed;                 /* STOP, FORGET: it counts as a failure of its shape */
        char why[PROVISION_WHY_MAX]; /* one line for people, without the instance's name */
};

struct provision_plan {
        struct provision_action *actions; /* allocated; what makes room stands before UP, which takes it */
        size_t n;
        uint64_t next; /* when to decide again though nothing has changed; UINT64_MAX: never */
        /* Of what was asked for, not granted, and why, by demand[]; "": granted. */
        char (*refused)[PROVISION_WHY_MAX]; /* allocated, n_demand of them */
        uint64_t cost; /* an hour, of those that are there (not STOPPING, or stuck), by this plan */
};
void provision_plan_done(struct provision_plan *p);

/* What was asked for in the last minute, for conf.per_minute; asked: times of the last n, any order. */
struct provision_pace {
        const uint64_t *asked;
        size_t n;
};

/* -ENOMEM. O(n log n) of instances. trouble: one for each shape; it and pace may be NULL, for none. At most
 * one action for an instance; once they are carried out, what is left to do is decided anew. In this order:
 *
 * FORGET: absent from two complete lists in a row (STOPPING: that were begun since), else absent_usec after
 * it was recorded, in any state but WANTED (failed where it never was READY), but not while its node is
 * connected: a list may lie, and a host that speaks is there. A list that failed says nothing: the caller
 * leaves seen and absent as they were; with STOP it begins anew with them (SEEN_NOT_ASKED, 0).
 *
 * STOP: WANTED or STARTING for longer than start_usec since it was recorded, or JOINED for as long; JOINED,
 * READY or DRAINING whose node is lost for lost_usec, and which is listed; listed as stopped or failed, in
 * any state before STOPPING, but not while its node is connected. All are failures where it never was READY.
 *
 * KEEP: DRAINING, not given back by a person, and held, or else wanted or missing from min or spare and not
 * above a limit. From then on it has to be empty for idle_usec again.
 *
 * Above a limit (max; its shape's max or cost_max, where min stays; a shape that the settings do not have any
 * more has the max 0): WANTED, STARTING and JOINED are STOPped (newest first), then READY ones that are empty
 * are DRAINed; what is of no use comes first, and what is wanted last. Busy ones never go for that.
 *
 * DRAIN: READY, not wanted, empty for idle_usec, lived for min_life_usec; so that at least min, and spare
 * idle ones, stay. Which: dearest first, then empty for longest, then newest. Before them go those of no use,
 * which are failing or taken back by the provider (SEEN_STOPPING); they are not wanted, and count neither for
 * min nor as spare, but for the limits.
 *
 * STOP: DRAINING with nothing on it.
 *
 * UP: demand in order, as far as max, the shape's max, cost_max, starting_max, the pace and trouble allow;
 * all of one entry or nothing of it where max or cost_max do not allow it now (the next entry may fit), as
 * much as may be now otherwise (starting_max, pace: the rest comes later). A shape that has been blocked by
 * its failures is tried with one until one succeeds. Then min, then spare, of the cheapest shape that may be
 * (first by index among equals).
 *
 * What is held is kept: of all this only FORGET and KEEP are done to it. */
int provision_decide(const struct provision_conf *conf, const struct provision_trouble *trouble,
                     const struct provision_instance *instances, size_t n,
                     const struct provision_demand *demand, size_t n_demand,
                     const struct provision_pace *pace, uint64_t now, struct provision_plan *ret);
