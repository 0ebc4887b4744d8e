/* SPDX-License-Identifier: Apache-2.0 */
/* The trainer's processes as far as the sharing out of tasks goes: who has nothing, who is next, and what the
 * master is told of it. Pure.
 *
 * Invariant, with masterd/data/takers.h: a process that waits while tasks are pending is always served,
 * whoever else holds what. So what comes goes first to those that have nothing; as many tasks are asked for
 * as processes wait for which nothing is at hand, whatever the others hold; and that there are such, or more
 * of them than the master can know of, is said at once. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/clock.h"

/* A process that asks for tasks one by one. Zeroed at first. */
struct seat {
        uint32_t credits; /* tasks that it has asked for */
        uint32_t given;   /* tasks that it has and is not through with */
        uint64_t turn;    /* when it was given one last, counted in tasks */
        bool out;         /* it has been told the end, or is gone */
};
static inline bool seat_asks(const struct seat *s) {
        return s->credits > 0 && !s->out;
}
/* It can do nothing before it gets a task. */
static inline bool seat_is_hungry(const struct seat *s) {
        return seat_asks(s) && s->given == 0;
}
/* Which of two gets the next task: who has less, and then who has waited for longer. Either may be NULL. */
struct seat *seat_first(struct seat *a, struct seat *b);
void seat_give(struct seat *s, uint64_t *turns);
void seat_take_back(struct seat *s);

/* When those that wait are told that no more comes: not while another one has what it has not read, since
 * that would be theirs if it died. But they may wait for each other (a DataLoader takes from its workers in
 * turn), so also when nothing has been read for so long; that is found out once. masterd does so between
 * executors. */
#define END_STILL_USEC (2 * USEC_PER_SEC)
struct end_wait {
        bool leaving;         /* one is gone, and what it had is not given back yet */
        bool reading;         /* one has something that it has not read */
        uint64_t still_since; /* nothing has been read since */
};
/* When that is, at the earliest; USEC_INFINITY: not before that changes. */
uint64_t end_due(const struct end_wait *w, uint64_t now);

/* Who waits now. */
struct hunger {
        uint32_t hungry;   /* processes that can do nothing before they get data */
        uint32_t unserved; /* so many of them for which nothing is at hand */
};
/* at_hand: tasks that any of them may have. */
static inline struct hunger hunger_of(uint32_t hungry, uint64_t at_hand) {
        return (struct hunger){ hungry, at_hand < hungry ? hungry - (uint32_t)at_hand : 0 };
}

/* What the master knows of it, as far as we do: what was said last, less what has been granted since. */
struct told {
        uint32_t credits;
        struct hunger hunger;
};
/* Whether that has to be said at once. */
bool told_is_news(const struct told *t, uint32_t credits, struct hunger now);
/* Whether that is worth saying some time soon: somebody waits, or nobody does any more. */
bool told_has_changed(const struct told *t, struct hunger now);
void told_granted(struct told *t);
