/* SPDX-License-Identifier: Apache-2.0 */
/* What is told only by comparing: who hangs while others work, a gang that stands still, who holds up the
 * others. Invariant: who waits for a peer that works is not called hung before it has waited three times as
 * long. */
#include <stdlib.h>

#include "masterd/health/internal.h"

/* Waiting for a peer that works (a checkpoint, an evaluation), and compilers that come and go, are borne so
 * many times as long. */
#define PATIENCE 3u
/* Others that data lies unread at in so many looks are not waiting for anybody. */
#define UNREAD_ELSEWHERE 0.2F
#define COMPUTES_LEAST 0.1F /* CPUs */

static int by_value(const void *a, const void *b) {
        float x = *(const float *)a, y = *(const float *)b;

        return (x > y) - (x < y);
}

void rankings_forget(struct health_gang *g) {
        for (size_t i = 0; i < ELEMENTSOF(g->rankings); i++)
                g->rankings[i].valid = false;
}

static const struct ranking *rank(struct health_gang *g, uint32_t role, enum rate r) {
        struct ranking *k = g->rankings + r;

        if (k->valid && k->role == role && k->rate == r)
                return k;
        *k = (struct ranking){ .valid = true, .role = role, .rate = r, .values = k->values };
        for (const struct member *m = g->members; m; m = m->hh.next)
                if (m->key.role == role && m->rates[r] >= 0)
                        k->values[k->n++] = m->rates[r];
        qsort(k->values, k->n, sizeof(*k->values), by_value);
        return k;
}

float member_median_of_others(struct health_gang *g, const struct member *m, enum rate r) {
        const struct ranking *k = rank(g, m->key.role, r);
        bool among = m->rates[r] >= 0;
        size_t n = k->n - among, middle = n / 2, low = 0, high = k->n;

        if (n == 0)
                return -1;
        /* Its own is the first of its value, for what the others are it does not matter which. */
        while (among && low < high) {
                size_t at = low + (high - low) / 2;
                if (k->values[at] < m->rates[r])
                        low = at + 1;
                else
                        high = at;
        }
        return k->values[among && middle >= low ? middle + 1 : middle];
}

static bool is_heard(const struct member *m, uint64_t now) {
        return m->seen_usec > 0 && now - m->seen_usec <= HEARD_WITHIN;
}

/* It has done something worth the name, so standing still is new to it. */
static bool has_worked(const struct member *m, uint64_t after) {
        return m->worked_usec >= MIN(60 * SECOND, after / 4) || m->moved_usec > 0;
}

struct stand {
        size_t n, n_heard, n_still;
        size_t n_fresh;   /* have made progress in half of the time */
        size_t n_working; /* make progress now */
        bool worked;
        struct member *least; /* that stands still for the shortest time */
};

static uint64_t patience(const struct health_gang *g, const struct member *m) {
        uint64_t after = member_rules(g, m)->of[VERDICT_HUNG].after_usec;

        return m->rates[RATE_CHURN] > 0.3F && !m->stopped ? PATIENCE * after : after;
}

static struct stand stand_of(const struct health_gang *g, uint64_t now) {
        struct stand s = {};
        struct member *m;

        for (m = g->members; m; m = m->hh.next) {
                const struct health_rule *rule = member_rules(g, m)->of + VERDICT_HUNG;

                if (rule->off)
                        continue;
                s.n++;
                if (!is_heard(m, now))
                        continue;
                s.n_heard++;
                s.worked = s.worked || has_worked(m, rule->after_usec);
                if (m->still_usec >= patience(g, m)) {
                        s.n_still++;
                        if (!s.least || m->still_usec < s.least->still_usec)
                                s.least = m;
                } else if (m->still_usec < rule->after_usec / 2)
                        s.n_fresh++;
                s.n_working += m->still_usec < MIN(30 * SECOND, rule->after_usec / 4);
        }
        return s;
}

/* ---- all of them */
static void standstill_tell(struct health_gang *g, const struct stand *s, uint64_t now, verdict_handler f,
                            void *userdata) {
        struct health_verdict v = { .kind = VERDICT_HUNG,
                                    .begins = g->standstill.up,
                                    .gang = true,
                                    .n_members = (uint32_t)s->n_still,
                                    .since_usec = g->standstill.since_usec };
        enum health_wait usual = WAIT_UNKNOWN;
        struct member *m;
        size_t n = 0;
        int odd;

        if (v.begins) {
                for (m = g->members; m; m = m->hh.next) {
                        if (member_rules(g, m)->of[VERDICT_HUNG].off)
                                continue;
                        g->scratch[n] = m;
                        g->waits[n++] = evidence_wait(m, now);
                }
                odd = health_odd_one(g->waits, n, &usual);
                if (odd >= 0) {
                        v.suspect = true;
                        v.role = g->scratch[odd]->key.role;
                        v.index = g->scratch[odd]->key.index;
                }
                evidence_standstill(s->n_still, s->least, odd < 0 ? NULL : g->scratch[odd], usual,
                                    odd < 0 ? WAIT_UNKNOWN : g->waits[odd], &v);
        }
        f(&v, userdata);
}

static void standstill_judge(struct health_gang *g, const struct stand *s, uint64_t now, verdict_handler f,
                             void *userdata) {
        /* Some that are not heard (a cut cable) stand still as well, for all that is known. */
        bool stands =
                s->n > 1 && s->worked && s->n_still > 0 && s->n_still == s->n_heard && 2 * s->n_heard >= s->n;

        if (stands && !g->standstill.up) {
                g->standstill = (struct holding){ .up = true, .since_usec = now - s->least->still_usec };
                standstill_tell(g, s, now, f, userdata);
        } else if (g->standstill.up && (s->n < 2 || 2 * s->n_fresh > s->n_heard)) {
                g->standstill = (struct holding){};
                standstill_tell(g, s, now, f, userdata);
        }
}

/* ---- one of them */
static uint64_t hung_after(const struct health_gang *g, const struct member *m, const struct stand *s) {
        uint64_t after = patience(g, m);

        if (s->n == 1)
                return after;
        if (m->stopped) /* where nobody else goes on, all of them are about to stand still */
                return s->n_fresh > 0 ? after : after + after / 4;
        /* Most of the others work on as if nothing were: they do not wait for it, nor it for them. */
        if (m->alone_usec >= after / 2)
                return after;
        return MAX(after, PATIENCE * member_rules(g, m)->of[VERDICT_HUNG].after_usec);
}

static void hung_judge(struct health_gang *g, struct member *m, const struct stand *s, uint64_t dt,
                       uint64_t now) {
        const struct health_rule *rule = member_rules(g, m)->of + VERDICT_HUNG;
        struct holding *h = m->holding + VERDICT_HUNG;

        if (rule->off) {
                h->up = false;
                return;
        }
        if (g->standstill.up || !is_heard(m, now))
                return;
        if (m->still_usec == 0)
                m->alone_usec = 0;
        else if (s->n >= 4 && 2 * s->n_working > s->n - 1)
                m->alone_usec += dt;
        if (!h->up && m->still_usec >= hung_after(g, m, s) &&
            (m->stopped || has_worked(m, rule->after_usec))) {
                h->up = true;
                h->since_usec = m->seen_usec - MIN(m->still_usec, m->seen_usec);
        } else if (h->up && m->still_usec == 0 && m->n_progress >= 2)
                h->up = false;
}

/* ---- who holds up the others */
bool member_exchanges(const struct member *m) {
        return m->moved_usec > 0 && m->seen_usec - MIN(m->moved_usec, m->seen_usec) <= 30 * SECOND;
}

/* Data from the others lies unread at it, and at nobody else. */
static bool lets_lie(struct health_gang *g, const struct member *m, float least) {
        float others;

        if (m->rates[RATE_UNREAD] < least)
                return false;
        others = member_median_of_others(g, m, RATE_UNREAD);
        return others >= 0 && others <= UNREAD_ELSEWHERE && others < m->rates[RATE_UNREAD] / 3;
}

/* Peers that ask before they send leave nothing to lie; but where waiting blocks, who is waited for is the
 * one that computes. With fewer than three, who does more need not be who is late. */
static bool computes_alone(struct health_gang *g, const struct member *m) {
        bool up = m->holding[VERDICT_STRAGGLER].up;
        float others;

        if (g->n_members < 3 || m->rates[RATE_CPU] < COMPUTES_LEAST)
                return false;
        others = member_median_of_others(g, m, RATE_CPU);
        return others >= 0 && m->rates[RATE_CPU] > (up ? 2 : 3) * others;
}

static bool holds_up(struct health_gang *g, struct member *m) {
        const struct health_rule *rule = member_rules(g, m)->of + VERDICT_STRAGGLER;
        float least = (float)rule->share_milli / 1000;
        bool apart;

        if (rule->off)
                return false;
        if (m->holding[VERDICT_STRAGGLER].up)
                least *= 0.6F;
        /* Also where the others show it already: what it is in is the reason that people read. */
        apart = apart_judge(g, m, least);
        return apart || lets_lie(g, m, least) || computes_alone(g, m);
}

static void straggler_judge(struct health_gang *g, struct member *m, uint64_t dt, uint64_t now) {
        if (m->holding[VERDICT_STRAGGLER].held_usec == 0)
                apart_forget(m);
        if (dt > 0 && member_exchanges(m) &&
            holding_take(m->holding + VERDICT_STRAGGLER, holds_up(g, m), dt,
                         member_rules(g, m)->of[VERDICT_STRAGGLER].after_usec, now))
                apart_stands(g, m, now);
}

void gang_judge(struct health_gang *g, uint64_t now, verdict_handler f, void *userdata) {
        struct stand s = stand_of(g, now);
        struct member *m;

        standstill_judge(g, &s, now, f, userdata);
        for (m = g->members; m; m = m->hh.next) {
                /* Observed since the last time. */
                uint64_t dt = m->judged_usec > 0 && m->seen_usec > m->judged_usec
                                      ? m->seen_usec - m->judged_usec
                                      : 0;

                if (dt > HEARD_WITHIN)
                        dt = 0;
                m->judged_usec = m->seen_usec;
                hung_judge(g, m, &s, dt, now);
                straggler_judge(g, m, dt, now);
        }
}
