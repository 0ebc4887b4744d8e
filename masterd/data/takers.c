/* SPDX-License-Identifier: Apache-2.0 */
/* Turns and shares. Everybody has his share, so that few tasks are spread over all who wait, and many go in
 * few messages. Towards the end nobody holds much that he has not begun: others would have nothing to do, or
 * are about to come. Invariant: takers.h. */
#include "masterd/data/takers.h"

#include <assert.h>
#include <utlist.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"

static bool counts(enum taker_list list) {
        return list == TAKER_STARVED || list == TAKER_WANTING;
}

/* To the end of a list; of the one that it is in, too. */
static void put_taker(struct takers *s, struct taker *t, enum taker_list list) {
        if (t->list != TAKER_OUT) {
                assert(s->n[t->list] > 0);
                DL_DELETE(s->lists[t->list], t);
                s->n[t->list]--;
        }
        if (list != TAKER_OUT) {
                DL_APPEND(s->lists[list], t);
                s->n[list]++;
        }
        t->list = list;
}

static void set_credits(struct takers *s, struct taker *t, uint32_t credits, enum taker_list list) {
        assert(!counts(t->list) || s->credits >= t->credits);
        if (counts(t->list))
                s->credits -= t->credits;
        t->credits = credits;
        if (counts(list))
                s->credits += credits;
}

static void set_hungry(struct takers *s, struct taker *t, uint32_t hungry) {
        assert(t->hungry == 0 || s->n_hungry > 0);
        s->n_hungry += (uint32_t)(hungry > 0) - (uint32_t)(t->hungry > 0);
        t->hungry = hungry;
}

void takers_say(struct takers *s, struct taker *t, const struct taker_word *w, uint64_t now) {
        bool wants = w->open && w->credits > 0;
        enum taker_list list = !wants ? TAKER_OUT : w->unserved > 0 ? TAKER_STARVED : TAKER_WANTING;

        /* One that holds nothing asks for what its readers need to be busy; else also for what would save
         * messages. (That nothing it holds is unread is not enough: what is on its way to it says otherwise
         * there, and small tasks would go to it alone.) */
        if (w->idle)
                t->prefetch = MAX(w->credits, TAKERS_PREFETCH_MIN);
        t->speaks = w->speaks;
        t->unserved = wants ? w->unserved : 0;
        set_hungry(s, t, w->open ? w->hungry : 0);
        if (t->hungry == 0)
                t->waits_usec = 0;
        else if (t->waits_usec == 0)
                t->waits_usec = now;
        set_credits(s, t, MIN(w->credits, TAKERS_CREDITS_MAX), list);
        if (list != t->list) /* else it keeps its place */
                put_taker(s, t, list);
}

void takers_out(struct takers *s, struct taker *t) {
        set_credits(s, t, 0, TAKER_OUT);
        put_taker(s, t, TAKER_OUT);
        t->unserved = 0;
        set_hungry(s, t, 0);
        t->waits_usec = 0;
}

static void begin_round(struct takers *s, struct takers_turn *u, enum taker_list list) {
        u->list = list;
        u->round = s->n[list];
        u->share = MAX(u->pending / u->round, UINT64_C(1));
        u->most = u->pending / (2 * (uint64_t)MAX(u->fed, 1u));
}

/* How many more may be with it. */
static uint64_t room_of(const struct takers_turn *u, const struct taker *t) {
        uint64_t most = MAX(u->most, (uint64_t)t->prefetch), room = most - MIN(most, (uint64_t)t->n_unread);

        if (!t->speaks && t->aside_usec > 0 && u->now >= usec_add(t->aside_usec, TAKERS_PATIENCE_USEC))
                room = MAX(room, UINT64_C(1));
        return MIN(room, (uint64_t)t->credits);
}

static void let_back(struct takers *s, uint64_t now) {
        struct taker *t, *next;

        DL_FOREACH_SAFE (s->lists[TAKER_ASIDE], t, next)
                if (!t->speaks && now >= usec_add(t->aside_usec, TAKERS_PATIENCE_USEC)) {
                        set_credits(s, t, t->credits, TAKER_WANTING);
                        put_taker(s, t, TAKER_WANTING);
                }
}

struct taker *takers_next(struct takers *s, struct takers_turn *u, uint32_t *ret_n) {
        if (u->round == 0 && u->list == TAKER_OUT)
                let_back(s, u->now);
        for (;;) {
                enum taker_list list = s->lists[TAKER_STARVED] ? TAKER_STARVED : TAKER_WANTING;
                struct taker *t = s->lists[list];
                uint64_t n;

                if (!t)
                        return NULL;
                if (u->round == 0 || u->list != list)
                        begin_round(s, u, list);
                u->round--;
                n = list == TAKER_STARVED ? MIN(t->unserved, t->credits) : room_of(u, t);
                if (n > 0) {
                        *ret_n = (uint32_t)MIN(n, u->share);
                        return t;
                }
                set_credits(s, t, t->credits, TAKER_ASIDE);
                put_taker(s, t, TAKER_ASIDE);
                if (t->aside_usec == 0) /* until it gets something, however often it says the same */
                        t->aside_usec = u->now;
        }
}

void takers_gave(struct takers *s, struct takers_turn *u, struct taker *t, uint32_t n) {
        uint32_t left = t->credits - MIN(n, t->credits);
        enum taker_list list;

        t->unserved -= MIN(n, t->unserved);
        list = left == 0 ? TAKER_OUT : t->unserved > 0 ? TAKER_STARVED : TAKER_WANTING;
        set_credits(s, t, left, list);
        put_taker(s, t, list); /* behind all others */
        t->aside_usec = 0;
        if (t->waits_usec > 0)
                t->waits_usec = u->now;
        u->pending -= MIN(u->pending, (uint64_t)n);
}

bool takers_any(const struct takers *s) {
        return s->lists[TAKER_STARVED] || s->lists[TAKER_WANTING] || s->lists[TAKER_ASIDE];
}

uint64_t takers_due(const struct takers *s) {
        const struct taker *t;
        uint64_t due = UINT64_MAX;

        DL_FOREACH (s->lists[TAKER_ASIDE], t)
                if (!t->speaks)
                        due = MIN(due, usec_add(t->aside_usec, TAKERS_PATIENCE_USEC));
        return due;
}
