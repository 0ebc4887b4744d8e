/* SPDX-License-Identifier: Apache-2.0 */
/* Who wants tasks of a job, whose turn it is, and how many of them are his. Pure: the caller counts what is
 * pending, grants, and says what time it is.
 *
 * Invariant: *a process of a trainer that waits while tasks are pending is always served, whoever else holds
 * what.* Trainers' processes wait for each other (a DataLoader takes batches from its workers in turn, ranks
 * meet in collectives), so one that waits for a task keeps all others from reading what they hold, and
 * nothing would ever change any more. Three keep it between them:
 *   - here: a feeder that says that somebody waits there (unserved) comes before all others, gets that many,
 *     and is never set aside, however much its other processes hold;
 *   - executor/feed/seats.h: a feeder says so at once, asks for that many whatever else it has, and
 *   - gives what it has first to those of its processes that have nothing.
 * A feeder of the release before says nothing of those who wait. What it asks for and is not given, because
 * it holds unread tasks enough, it gets one by one, TAKERS_PATIENCE_USEC apart. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define TAKERS_CREDITS_MAX 256u /* tasks that one feeder is given ahead */
#define TAKERS_PREFETCH_MIN 2u  /* a task that is read, and one to go on with */
#define TAKERS_PATIENCE_USEC (UINT64_C(1000) * 1000)
#define TAKERS_STARVED_USEC                                                                                  \
        (UINT64_C(5000) * 1000) /* who has waited for so long beside pending tasks starves */

enum taker_list {
        TAKER_OUT,     /* wants nothing, or cannot be reached */
        TAKER_STARVED, /* somebody waits there, and nothing is at hand for him */
        TAKER_WANTING,
        TAKER_ASIDE, /* wants more than is good for the others; until it says anything */
        _TAKER_LIST_MAX
};

/* A feeder. Zeroed at first. */
struct taker {
        uint32_t credits;  /* so many tasks more it takes */
        uint32_t unserved; /* processes that wait there, and for which nothing is at hand */
        uint32_t hungry;   /* that wait, whether something is at hand or not */
        uint32_t prefetch; /* so many that are not read may be with it even when there are few */
        uint32_t n_unread; /* the caller's: tasks that it holds and that are not read to their end */
        bool speaks;       /* it says who waits */
        enum taker_list list;
        uint64_t aside_usec; /* it has got nothing since it was set aside then; 0: it was not */
        uint64_t waits_usec; /* somebody waits there, and nothing has been granted to it, since; 0: no */
        struct taker *prev, *next; /* in its list (utlist) */
};

struct takers {
        struct taker *lists[_TAKER_LIST_MAX];
        uint32_t n[_TAKER_LIST_MAX];
        uint64_t credits;  /* of those who are to get something */
        uint32_t n_hungry; /* feeders where somebody waits */
};

/* What a feeder says: how many tasks it takes, and who waits. speaks: of a release that says that. open: it
 * may be granted tasks; otherwise it is OUT. idle: it holds none. */
struct taker_word {
        uint32_t credits, unserved, hungry;
        bool speaks, open, idle;
};
void takers_say(struct takers *s, struct taker *t, const struct taker_word *w, uint64_t now);
/* Out of all lists: it is gone, or cannot be reached until it says something again. */
void takers_out(struct takers *s, struct taker *t);

/* One distribution of so many pending tasks among fed feeders that are there or about to come. */
struct takers_turn {
        uint64_t pending, now;
        uint32_t fed;
        uint32_t round; /* so many have not had their turn */
        enum taker_list list;
        uint64_t share, most;
};
static inline struct takers_turn takers_begin(uint64_t pending, uint32_t fed, uint64_t now) {
        return (struct takers_turn){ .pending = pending, .now = now, .fed = fed };
}
/* Whose turn it is, and how many tasks are his, at least one. NULL: nobody wants any. Then takers_gave(), or
 * takers_out() where he cannot be reached. */
struct taker *takers_next(struct takers *s, struct takers_turn *u, uint32_t *ret_n);
void takers_gave(struct takers *s, struct takers_turn *u, struct taker *t, uint32_t n);

/* Whether anybody wants any, set aside or not. */
bool takers_any(const struct takers *s);
/* When somebody who was set aside gets another chance, with tasks pending; UINT64_MAX: nobody. */
uint64_t takers_due(const struct takers *s);
