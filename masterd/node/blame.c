/* SPDX-License-Identifier: Apache-2.0 */
/* Invariant: the score follows from the strikes and the time alone. */
#include "masterd/node/blame.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"

static const struct {
        uint32_t weight; /* thousandths */
        bool of_job;     /* evidence against the job as well */
        const char *name;
} kinds[_STRIKE_MAX] = {
        [STRIKE_EXECUTOR] = { 1000, true, "failed executors" },
        [STRIKE_START] = { 1500, true, "failed starts" },
        [STRIKE_NO_RECORD] = { 2000, false, "executors gone without a record" },
        [STRIKE_BUS] = { 3000, true, "SIGBUS" },
        [STRIKE_RULE] = { 3000, true, "by exitCodes" },
        [STRIKE_PROLOG] = { 3000, false, "failed prologs" },
        [STRIKE_LINK] = { 1000, false, "losses of the host" },
        [STRIKE_HEALTH] = { 3000, true, "sick executors" },
};

/* Halves with every half life; linear in between, so that no two machines differ in the last bit. */
static uint64_t faded(uint64_t weight, uint64_t age, uint64_t half_life) {
        uint64_t halves, rest;

        if (half_life == 0 || half_life == USEC_INFINITY)
                return weight;
        halves = age / half_life;
        rest = age % half_life;
        if (halves >= 32)
                return 0;
        weight >>= halves;
        return weight - (weight / 2) * (rest / 1000) / MAX(half_life / 1000, UINT64_C(1));
}

static uint64_t weight_of(const struct strike *s) {
        uint64_t w = s->kind < _STRIKE_MAX ? kinds[s->kind].weight : 0;

        return s->alone && kinds[s->kind].of_job ? w / 4 : w;
}

/* How many strikes before it are of the same job: each counts half of the one before. What is not a job's
 * stands for itself. */
static unsigned repeats(const struct blame *b, uint32_t i) {
        unsigned n = 0;

        if (b->strikes[i].job == 0)
                return 0;
        for (uint32_t k = i + 1; k < b->n_strikes; k++)
                n += b->strikes[k].job == b->strikes[i].job;
        return n;
}

static unsigned distinct_users(const struct blame *b) {
        unsigned n = 0;

        for (uint32_t i = 0; i < b->n_strikes; i++) {
                bool known = b->strikes[i].job == 0;
                for (uint32_t k = 0; !known && k < i; k++)
                        known = b->strikes[k].job != 0 && b->strikes[k].user == b->strikes[i].user;
                n += !known;
        }
        return n;
}

static unsigned distinct_jobs(const struct blame *b) {
        unsigned n = 0;

        for (uint32_t i = 0; i < b->n_strikes; i++) {
                bool known = b->strikes[i].job == 0;
                for (uint32_t k = 0; !known && k < i; k++)
                        known = b->strikes[k].job == b->strikes[i].job;
                n += !known;
        }
        return n;
}

uint32_t blame_score(const struct blame_policy *p, const struct blame *b, uint64_t now) {
        unsigned users = distinct_users(b);
        uint64_t sum = 0;

        for (uint32_t i = 0; i < b->n_strikes; i++) {
                unsigned n = repeats(b, i);
                if (n < 16)
                        sum += faded(weight_of(b->strikes + i), usec_sub(now, b->strikes[i].when),
                                     p->half_life_usec) >>
                               n;
        }
        /* Half as much again for each further user. */
        return (uint32_t)MIN(sum * (1 + MAX(users, 1u)) / 2, (uint64_t)UINT32_MAX);
}

bool blame_strike(const struct blame_policy *p, struct blame *b, const struct strike *s, uint64_t now) {
        if (p->threshold_milli == 0)
                return false;
        if (b->n_strikes == BLAME_STRIKES_MAX) {
                memmove(b->strikes, b->strikes + 1, (BLAME_STRIKES_MAX - 1) * sizeof(b->strikes[0]));
                b->n_strikes--;
        }
        b->strikes[b->n_strikes] = *s;
        b->strikes[b->n_strikes++].when = now;
        switch ((enum blame_state)b->state) {
        case BLAME_PROBATION:
                return true;
        case BLAME_CLEAR:
                return blame_score(p, b, now) >= p->threshold_milli;
        default:
                return false;
        }
}

bool blame_withdraw(struct blame *b, uint32_t job) {
        uint32_t n = 0, before = b->n_strikes;

        for (uint32_t i = 0; i < b->n_strikes; i++)
                if (b->strikes[i].job != job || !kinds[b->strikes[i].kind].of_job ||
                    b->strikes[i].kind == STRIKE_RULE)
                        b->strikes[n++] = b->strikes[i];
        b->n_strikes = n;
        return n != before;
}

bool blame_withdraw_kind(struct blame *b, enum strike_kind kind) {
        uint32_t n = 0, before = b->n_strikes;

        for (uint32_t i = 0; i < b->n_strikes; i++)
                if (b->strikes[i].kind != kind)
                        b->strikes[n++] = b->strikes[i];
        b->n_strikes = n;
        return n != before;
}

void blame_quarantine(const struct blame_policy *p, struct blame *b, uint64_t now) {
        uint64_t length = p->quarantine_usec;

        for (uint32_t i = 0; i < b->times && length < BLAME_QUARANTINE_MAX; i++)
                length = usec_add(length, length);
        b->state = BLAME_QUARANTINED;
        b->times++;
        b->since = now;
        b->until = usec_add(now, MIN(length, BLAME_QUARANTINE_MAX));
}

bool blame_probe(struct blame *b, uint64_t now) {
        if (b->state != BLAME_QUARANTINED || b->until > now)
                return false;
        b->state = BLAME_PROBATION;
        b->since = now;
        return true;
}

void blame_release(struct blame *b, uint64_t now) {
        *b = (struct blame){ .since = now };
}

char *blame_text(const struct blame *b, char buf[static BLAME_TEXT_MAX]) {
        unsigned counts[_STRIKE_MAX] = {}, jobs = distinct_jobs(b), users = distinct_users(b);
        size_t l = 0;
        bool first = true;

        *buf = 0;
        if (jobs > 0)
                l += (size_t)snprintf(buf, BLAME_TEXT_MAX, "%u job%s of %u user%s: ", jobs,
                                      jobs == 1 ? "" : "s", users, users == 1 ? "" : "s");
        for (uint32_t i = 0; i < b->n_strikes; i++)
                if (b->strikes[i].kind < _STRIKE_MAX)
                        counts[b->strikes[i].kind]++;
        for (unsigned k = 0; k < _STRIKE_MAX && l < BLAME_TEXT_MAX; k++) {
                if (counts[k] == 0)
                        continue;
                l += (size_t)snprintf(buf + l, BLAME_TEXT_MAX - l, "%s%u %s", first ? "" : ", ", counts[k],
                                      kinds[k].name);
                first = false;
        }
        return buf;
}
