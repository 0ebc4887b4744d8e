/* SPDX-License-Identifier: Apache-2.0 */
/* What a host is to blame for. Strikes fade with time; what several jobs of several users say weighs more
 * than what one says again and again; what a job does on every host is the job's own. When they come to too
 * much, the host is kept out (quarantine), after a time let in with a single executor (probation), and by
 * that one's end released, or kept out for twice as long. No user decides that alone: what one user's jobs
 * say counts up to a share, and where it comes to too much by itself, the host is kept from that user's jobs
 * and from nobody else's. Pure; times are CLOCK_REALTIME microseconds, since all of this is stored. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BLAME_STRIKES_MAX 32u
#define BLAME_TEXT_MAX 200u

/* The numbers are stored. */
enum strike_kind {
        STRIKE_EXECUTOR,  /* an executor failed; it weighs a quarter while the job has nothing on other hosts
                           */
        STRIKE_START,     /* systemd or the agent could not start one; the same */
        STRIKE_NO_RECORD, /* one vanished without a record */
        STRIKE_BUS,       /* SIGBUS: bad memory, or a file system that goes away */
        STRIKE_RULE,      /* the job's exitCodes say so */
        STRIKE_PROLOG,    /* the site's prolog failed */
        STRIKE_LINK,      /* the host was LOST */
        STRIKE_HEALTH,    /* an executor was sick there, and its job holds the host responsible */
        _STRIKE_MAX,
};

struct strike {
        uint64_t when;
        uint32_t job, user; /* 0: of no job */
        uint8_t kind;       /* enum strike_kind */
        bool alone;         /* the job had executors on this host alone */
};

enum blame_state {
        BLAME_CLEAR,
        BLAME_QUARANTINED, /* takes nothing until then */
        BLAME_PROBATION,   /* takes one executor at a time */
        _BLAME_STATE_MAX,
};

/* The host is kept from one user's jobs. */
struct shun {
        uint32_t user;
        uint32_t times; /* in a row */
        uint64_t until;
};
#define BLAME_SHUNS_MAX 16u

/* Zero-initialised. Stored by masterd/fleet/blaming.c. */
struct blame {
        uint32_t state; /* enum blame_state */
        uint32_t times; /* quarantines in a row */
        uint64_t since; /* of the state */
        uint64_t until; /* of QUARANTINED */
        uint32_t n_strikes;
        uint32_t n_shuns;
        struct strike strikes[BLAME_STRIKES_MAX]; /* oldest first */
        struct shun shuns[BLAME_SHUNS_MAX];
};

struct blame_policy {
        uint32_t threshold_milli; /* thousandths; 0: nobody is ever kept out */
        uint64_t half_life_usec;
        uint64_t quarantine_usec; /* the first; then doubled, up to BLAME_QUARANTINE_MAX */
        uint32_t users;           /* so many users it takes, where executors are all that speaks; 0 as 1 */
};
#define BLAME_QUARANTINE_MAX (UINT64_C(86400) * 1000000)

/* What the strikes come to now, in thousandths. */
uint32_t blame_score(const struct blame_policy *p, const struct blame *b, uint64_t now);

enum blame_due {
        BLAME_NOTHING,
        BLAME_SHUN,       /* too much for this user alone: blame_shun() */
        BLAME_QUARANTINE, /* too much: blame_quarantine(), unless something speaks against it */
};
/* Enters a strike; where there is no room, the oldest goes of whoever has most, so that nobody drives out
 * what others say. What is due: the threshold is reached, or on probation enough users have failed again. */
enum blame_due blame_strike(const struct blame_policy *p, struct blame *b, const struct strike *s,
                            uint64_t now);
/* The job turned out to fail elsewhere too: takes back its failures. True: there were some. */
bool blame_withdraw(struct blame *b, uint32_t job);

/* What was held against the host as that was none of its fault. True: there was some. */
bool blame_withdraw_kind(struct blame *b, enum strike_kind kind);

void blame_quarantine(const struct blame_policy *p, struct blame *b, uint64_t now);
/* The quarantine is over: true when that was due. */
bool blame_probe(struct blame *b, uint64_t now);
/* The host is kept from the user's jobs for a time, doubled each time in a row. Returns until when. Where
 * there is no room, another's goes that ends first. */
uint64_t blame_shun(const struct blame_policy *p, struct blame *b, uint32_t user, uint64_t now);
/* Until when it is kept from that user's jobs; 0: it is not, or not any more. */
uint64_t blame_shunned(const struct blame *b, uint32_t user, uint64_t now);
/* One of the user's jobs, placed there at this time, did well: when that was behind the time for which the
 * host had been kept from them, that is forgotten, and so is what they have said. True: it was so. */
bool blame_reconcile(struct blame *b, uint32_t user, uint64_t placed);
/* Nothing is left of it. */
void blame_release(struct blame *b, uint64_t now);

/* "3 jobs of 2 users: 4 failed executors, 1 SIGBUS", into buf. Returns buf. */
char *blame_text(const struct blame *b, char buf[static BLAME_TEXT_MAX]);
