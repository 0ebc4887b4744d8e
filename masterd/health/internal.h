/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the verdict engine share. */
#pragma once

#include <uthash.h>

#include "lib/base/cleanup.h"
#include "masterd/health/health.h"
#include "masterd/health/leak.h"

#define SECOND UINT64_C(1000000)

/* What is kept of an executor besides its latest sample: rates, smoothed over some samples. Shares are of the
 * time (1: all of it), RATE_CPU is CPUs, bytes are per second. */
enum rate {
        RATE_CPU,
        RATE_THROTTLED,
        RATE_RUNQUEUE,
        RATE_MEMORY_FULL,
        RATE_IO_FULL,
        RATE_DATA_WAIT,
        RATE_NET,
        RATE_FILES,
        RATE_RETRANSMITS,
        RATE_RTT, /* a gauge, usec */
        RATE_GPU,
        RATE_POWER,  /* a gauge, W */
        RATE_UNREAD, /* of the looks, while it exchanges data with others */
        RATE_CHURN,  /* of the samples, before which processes of it came or went */
        /* How many of its processes were found waiting in that, on average of the looks (health_look()). */
        RATE_SLEEPS,
        RATE_STORAGE,
        RATE_PIPES,
        RATE_SERVERS,
        RATE_LOCKS,
        _RATE_MAX,
};

/* How long a condition has held, as observed. It rises while it holds and falls while it does not, so one
 * that wavers begins and ends nothing. */
struct holding {
        uint64_t held_usec;
        uint64_t since_usec; /* when it began to hold */
        bool up;             /* a verdict stands */
        bool told;           /* and was handed on */
};

#define KEPT_FIELDS 23u

/* Where a program was in some looks. A look and the signal that asks for the place are not the same moment,
 * so there are others than the one that is meant. */
struct place {
        char *text; /* NULL: free */
        uint32_t n; /* looks that found it */
};
#define PLACES_KEPT 3u

struct member {
        struct {
                uint32_t role, index;
        } key;
        UT_hash_handle hh;
        struct health_facts facts;
        uint64_t seen_usec;           /* 0: no sample yet */
        uint64_t before[KEPT_FIELDS]; /* of the latest sample, what the next one is compared with */
        float rates[_RATE_MAX];       /* < 0: unknown */
        float power_least, power_most;

        uint64_t still_usec;  /* observed without progress, up to the latest sample */
        uint64_t alone_usec;  /* of still_usec, while most of the others made progress */
        uint64_t worked_usec; /* with progress, since the attempt began */
        uint64_t moved_usec;  /* when it last exchanged data with others */
        uint64_t judged_usec; /* the sample that the gang's verdicts have seen */
        uint64_t killed;      /* by the kernel for lack of memory, not told yet */
        uint16_t n_progress;  /* samples in a row with progress */
        uint16_t n_looks;     /* at its threads */
        uint8_t apart;        /* what it was found in while the others wait for it, from 1; 0: in nothing */
        uint8_t n_asked;      /* looks at it meanwhile, for the place */
        uint64_t place_until; /* the verdict waits for the place until then; 0: it never stood */
        struct place places[PLACES_KEPT];
        bool stopped, blocked; /* all of its threads are stopped; some are in D state */
        bool dry;              /* there is no data for it */
        bool spins;            /* has peers, and its CPU use is no progress */
        struct leak_fit fit;   /* of VERDICT_LEAKING */
        struct holding holding[_VERDICT_MAX];
        struct leak leak;
};
_Static_assert(sizeof(struct member) <= 1024, "what is kept of each executor is bounded");

/* One rate of a role's members, in order: made when it is asked for, and good until something changes. */
struct ranking {
        bool valid;
        uint32_t role;
        enum rate rate;
        size_t n;
        float *values; /* room for all members */
};

struct health_gang {
        struct member *members; /* by key */
        size_t n_members;
        struct health_rules *rules; /* by role */
        uint32_t n_rules;
        struct holding standstill;
        struct member **scratch; /* these have room for all members */
        enum health_wait *waits;
        size_t n_room;
        struct ranking rankings[_RATE_MAX];
};

const struct health_rules *member_rules(const struct health_gang *g, const struct member *m);

struct member *member_find(const struct health_gang *g, uint32_t role, uint32_t index); /* NULL: none */

/* Of the latest sample; of what is kept. */
uint64_t member_value(const struct member *m, enum telemetry_field f);

/* Rises or falls by dt. True: the verdict stands. */
bool holding_take(struct holding *h, bool condition, uint64_t dt, uint64_t after, uint64_t now);

/* What the latest sample says of hung, of stragglers: compares members. */
void gang_judge(struct health_gang *g, uint64_t now, verdict_handler f, void *userdata);

/* What the others (of the same role, but not m) are at; < 0: not known of any. O(log n), and one sorting for
 * all members of a role that ask for the same. */
float member_median_of_others(struct health_gang *g, const struct member *m, enum rate r);
/* The place where it is held up will be known soon, and the verdict waits for it. */
bool apart_wants_place(const struct member *m, uint64_t now);
/* Its verdict stands: from the first time on, until it is forgotten, it waits so long for the place. */
void apart_stands(const struct health_gang *g, struct member *m, uint64_t now);
/* It exchanges data with others now. */
bool member_exchanges(const struct member *m);
void member_free(struct member *m);

/* Its main threads are, by least more than those of its peers, where nobody waits for peers, and theirs wait.
 */
bool apart_judge(struct health_gang *g, struct member *m, float least);
/* What that was, while it is still so. */
struct apart {
        const char *resource, *what; /* static */
        const char *place;           /* of the member; NULL: not known */
        float mine, others;
};
void apart_forget(struct member *m);
bool apart_differs(struct health_gang *g, const struct member *m, struct apart *ret);
/* A rate, or who is in the gang, has changed. */
void rankings_forget(struct health_gang *g);

/* The evidence, as sentence and numbers, into v. */
void evidence_member(struct health_gang *g, const struct member *m, enum verdict_kind kind,
                     struct health_verdict *v);
/* All of n stand still; suspect NULL: samples show none. */
void evidence_standstill(size_t n, const struct member *least, const struct member *suspect,
                         enum health_wait usual, enum health_wait odd, struct health_verdict *v);
/* What a member does, as its samples tell. */
enum health_wait evidence_wait(const struct member *m, uint64_t now_usec);
/* No sample for so long: not heard of. */
#define HEARD_WITHIN (60 * SECOND)
