/* SPDX-License-Identifier: Apache-2.0 */
/* Who is next, and what is news. */
#include "executor/feed/seats.h"

#include <stddef.h>

struct seat *seat_first(struct seat *a, struct seat *b) {
        if (!a || !seat_asks(a))
                return b && seat_asks(b) ? b : NULL;
        if (!b || !seat_asks(b))
                return a;
        if (a->given != b->given)
                return a->given < b->given ? a : b;
        return b->turn < a->turn ? b : a;
}

void seat_give(struct seat *s, uint64_t *turns) {
        s->credits--;
        s->given++;
        s->turn = ++*turns;
}

void seat_take_back(struct seat *s) {
        s->given -= s->given > 0;
}

uint64_t end_due(const struct end_wait *w, uint64_t now) {
        if (w->leaving)
                return USEC_INFINITY;
        return w->reading ? w->still_since + END_STILL_USEC : now;
}

bool told_is_news(const struct told *t, uint32_t credits, struct hunger now) {
        return credits > t->credits || now.unserved > t->hunger.unserved;
}

bool told_has_changed(const struct told *t, struct hunger now) {
        return (now.hungry > 0) != (t->hunger.hungry > 0);
}

void told_granted(struct told *t) {
        t->credits -= t->credits > 0;
        t->hunger.unserved -= t->hunger.unserved > 0;
}
