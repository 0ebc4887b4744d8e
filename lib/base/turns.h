/* SPDX-License-Identifier: Apache-2.0 */
/* Whose start goes next. The places are few; whoever waits for one stands behind those of the same user, and
 * the users take turns, so what one of them has waiting costs another a single turn. No user holds more than
 * his share of the places: there is always one left for somebody else. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <uthash.h>

/* A user that waits for places or holds some. */
struct turns_user {
        UT_hash_handle hh;
        uint32_t uid;
        unsigned held;
        struct turn *waiting;
        struct turns_user *next, *prev; /* in the ring, while one of his may go */
        bool in_ring;
};

/* Part of what waits; nothing in it is the caller's to change. */
struct turn {
        struct turns_user *user;
        struct turn *next, *prev;
};

struct turns {
        unsigned places, share; /* the caller's to set; all else begins with zero */
        unsigned held;
        struct turns_user *users, *ring;
};

/* -ENOMEM. */
int turns_wait(struct turns *t, uint32_t uid, struct turn *x);
/* Whether turns_next() has one. */
bool turns_may_go(const struct turns *t);
/* The one whose turn it is, out of the queue; it holds a place now, x->user's, until turns_give_back(). NULL:
 * nobody may go. */
struct turn *turns_next(struct turns *t);
/* user is not valid afterwards. */
void turns_give_back(struct turns *t, struct turns_user *user);
/* Any of those that wait, out of the queue, without a place; NULL: there are none. For the end. */
struct turn *turns_drop(struct turns *t);
