/* SPDX-License-Identifier: Apache-2.0 */
/* Who sleeps, or waits for storage, while the others wait for it. Peers that ask before they send (gloo)
 * leave no data lying, and who sleeps computes nothing; but its main thread is elsewhere than where the
 * others wait. Invariant: the looks at a member need not be at the same time as those at another; shares are
 * compared. */
#include <stdlib.h>
#include <string.h>

#include "masterd/health/internal.h"

/* A look counts as much as so many before it. */
#define LOOKS_KEPT 16.0F
/* In the time that the verdict takes. */
#define LOOKS_OF_RULE 40u
/* Of the rule's share: looks are fewer than those at connections, and what a step computes is in none of
 * these. */
#define OF_SHARE 0.8F
/* Shares of fewer looks say nothing. */
#define LOOKS_LEAST 6u
/* The place was found in so many looks more than any other: between a look and the signal it may have gone
 * on. */
#define PLACE_AHEAD 3u
/* A program that has said nothing of its place in so many looks that found it waiting (it is no Python) is
 * not waited for. */
#define ASKED_SILENT 6u
/* Nor one that cannot be looked at; behind the time that the verdict takes. */
#define PLACE_WITHIN (30 * SECOND)

static const struct {
        enum rate rate;
        const char *resource;
        const char *what;
        bool peers; /* where waiting for peers may look like that */
} aparts[] = {
        { RATE_SLEEPS, "sleep", "its program sleeps", false },
        { RATE_STORAGE, "storage", "it waits for storage", false },
        { RATE_PIPES, "pipe", "it waits for another process", false },
        { RATE_SERVERS, "network", "it waits for a server", true },
};

static enum rate rate_of(enum health_wait w) {
        switch (w) {
        case WAIT_SLEEP:
                return RATE_SLEEPS;
        case WAIT_DISK:
                return RATE_STORAGE;
        case WAIT_PIPE:
                return RATE_PIPES;
        case WAIT_NETWORK:
                return RATE_SERVERS;
        case WAIT_FUTEX:
                return RATE_LOCKS;
        default:
                return _RATE_MAX;
        }
}

/* The most frequent places, after Misra and Gries (1982): what is found in more than a fourth of the looks
 * stays. */
static void note_place(struct member *m, const char *text) {
        struct place *unused = NULL;

        for (struct place *p = m->places; p < m->places + PLACES_KEPT; p++) {
                if (p->text && strcmp(p->text, text) == 0) {
                        p->n++;
                        return;
                }
                if (!p->text)
                        unused = p;
        }
        if (unused) {
                unused->text = strdup(text);
                unused->n = unused->text ? 1 : 0;
                return;
        }
        for (struct place *p = m->places; p < m->places + PLACES_KEPT; p++)
                if (--p->n == 0) {
                        free(p->text);
                        p->text = NULL;
                }
}

/* Found most; NULL: none was. ret_ahead, or NULL: in so many looks more than any other. */
static const char *place_of(const struct member *m, uint32_t *ret_ahead) {
        const struct place *first = NULL;
        uint32_t second = 0;

        for (const struct place *p = m->places; p < m->places + PLACES_KEPT; p++)
                if (p->text && (!first || p->n > first->n)) {
                        second = first ? first->n : 0;
                        first = p;
                } else if (p->text)
                        second = MAX(second, p->n);
        if (ret_ahead)
                *ret_ahead = first ? first->n - second : 0;
        return first ? first->text : NULL;
}

/* Where its program is costs it a signal: only who is suspected already is asked. */
static bool is_asked(const struct member *m) {
        return m->apart > 0 && m->holding[VERDICT_STRAGGLER].held_usec > 0;
}

void health_look(struct health_gang *g, uint32_t role, uint32_t index, const enum health_wait *threads,
                 const bool *mains, size_t n, const char *place) {
        static const enum rate rates[] = { RATE_SLEEPS, RATE_STORAGE, RATE_PIPES, RATE_SERVERS, RATE_LOCKS };
        struct member *m = member_find(g, role, index);
        float counts[_RATE_MAX] = {};

        if (!m || n == 0)
                return;
        /* Of programs of several processes all are counted: what is common to the gang (launchers that sleep,
         * loaders that wait for work) cancels out. */
        for (size_t i = 0; i < n; i++)
                if (mains[i] && rate_of(threads[i]) < _RATE_MAX)
                        counts[rate_of(threads[i])]++;
        m->n_looks = (uint16_t)MIN(m->n_looks + 1, 1000);
        for (size_t i = 0; i < ELEMENTSOF(rates); i++) {
                float *r = m->rates + rates[i];

                *r = m->n_looks == 1 ? counts[rates[i]]
                                     : *r + (counts[rates[i]] - *r) / MIN((float)m->n_looks, LOOKS_KEPT);
        }
        rankings_forget(g);
        /* A look that found it elsewhere says nothing of whether its place can be found. */
        if (!is_asked(m) || counts[aparts[m->apart - 1].rate] <= 0)
                return;
        m->n_asked = (uint8_t)MIN(m->n_asked + 1u, ASKED_SILENT);
        if (place)
                note_place(m, place);
}

static float more(struct health_gang *g, const struct member *m, enum rate r) {
        float others = member_median_of_others(g, m, r);

        return others < 0 ? 0 : m->rates[r] - others;
}

/* The others wait for each other in locks, or in the network; who keeps them waiting does so less. */
static bool is_apart(struct health_gang *g, const struct member *m, size_t which, float least) {
        float waits;

        if (more(g, m, aparts[which].rate) < least)
                return false;
        waits = -more(g, m, RATE_LOCKS);
        if (!aparts[which].peers)
                waits -= more(g, m, RATE_SERVERS);
        return waits >= least / 2;
}

bool apart_judge(struct health_gang *g, struct member *m, float least) {
        if (g->n_members < 3 || m->n_looks < LOOKS_LEAST)
                return false;
        least *= OF_SHARE;
        for (size_t i = 0; i < ELEMENTSOF(aparts); i++)
                if (is_apart(g, m, i, least)) {
                        m->apart = (uint8_t)(i + 1);
                        return true;
                }
        return false;
}

bool apart_differs(struct health_gang *g, const struct member *m, struct apart *ret) {
        if (m->apart == 0)
                return false;
        *ret = (struct apart){ .resource = aparts[m->apart - 1].resource,
                               .what = aparts[m->apart - 1].what,
                               .place = place_of(m, NULL),
                               .mine = m->rates[aparts[m->apart - 1].rate],
                               .others = member_median_of_others(g, m, aparts[m->apart - 1].rate) };
        return ret->mine - MAX(ret->others, 0.0F) >= 0.25F;
}

void apart_forget(struct member *m) {
        m->apart = 0;
        m->n_asked = 0;
        m->place_until = 0;
        for (size_t i = 0; i < PLACES_KEPT; i++)
                free(m->places[i].text);
        memset(m->places, 0, sizeof(m->places));
}

void apart_stands(const struct health_gang *g, struct member *m, uint64_t now) {
        if (m->place_until == 0)
                m->place_until =
                        now + MIN(member_rules(g, m)->of[VERDICT_STRAGGLER].after_usec, PLACE_WITHIN);
}

bool apart_wants_place(const struct member *m, uint64_t now) {
        uint32_t ahead;
        const char *place = place_of(m, &ahead);

        return is_asked(m) && ahead < PLACE_AHEAD && (place || m->n_asked < ASKED_SILENT) &&
               now < m->place_until;
}

enum health_looked health_wants_look(const struct health_gang *g, uint32_t role, uint32_t index,
                                     uint64_t now_usec, uint64_t *ret_every_usec) {
        const struct member *m = member_find(g, role, index);
        const struct health_rule *rule = m ? member_rules(g, m)->of + VERDICT_STRAGGLER : NULL;

        if (!rule || rule->off || g->n_members < 3 || !member_exchanges(m) ||
            now_usec - m->seen_usec > HEARD_WITHIN)
                return LOOK_NONE;
        *ret_every_usec = rule->after_usec / LOOKS_OF_RULE;
        return is_asked(m) ? LOOK_PLACE : LOOK_THREADS;
}
