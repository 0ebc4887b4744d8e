/* SPDX-License-Identifier: Apache-2.0 */
/* Invariants: the score follows from the strikes and the time alone; strikes of fewer users than the policy
 * asks for never reach the threshold by themselves. */
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
        [STRIKE_NO_RECORD] = { 2000, true, "executors gone without a record" },
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

/* Of those that the user's jobs made; 0: of those that are of no job. */
static uint64_t sum_of(const struct blame_policy *p, const struct blame *b, bool of_job, uint32_t user,
                       uint64_t now) {
        uint64_t sum = 0;

        for (uint32_t i = 0; i < b->n_strikes; i++) {
                const struct strike *s = b->strikes + i;
                unsigned n = repeats(b, i);
                if ((s->job != 0) == of_job && (!of_job || s->user == user) && n < 16)
                        sum += faded(weight_of(s), usec_sub(now, s->when), p->half_life_usec) >> n;
        }
        return sum;
}

/* The strike is the first of its user; those of no job have none. */
static bool is_first_of_user(const struct blame *b, uint32_t i) {
        if (b->strikes[i].job == 0)
                return false;
        for (uint32_t k = 0; k < i; k++)
                if (b->strikes[k].job != 0 && b->strikes[k].user == b->strikes[i].user)
                        return false;
        return true;
}

/* So much counts of one user at most: exactly so that as many users as it takes reach the threshold together,
 * each further one adding half as much again to all, and one fewer does not. */
static uint64_t share_of_user(const struct blame_policy *p) {
        uint64_t users = MAX(p->users, 1u), parts = users * (users + 1);

        return (UINT64_C(2) * p->threshold_milli + parts - 1) / parts;
}

uint32_t blame_score(const struct blame_policy *p, const struct blame *b, uint64_t now) {
        uint64_t share = share_of_user(p), sum = sum_of(p, b, false, 0, now);
        unsigned users = 0;

        for (uint32_t i = 0; i < b->n_strikes; i++) {
                uint64_t of_user;
                if (!is_first_of_user(b, i))
                        continue;
                of_user = sum_of(p, b, true, b->strikes[i].user, now);
                sum += MIN(of_user, share);
                /* What is left of an old mistake makes nobody a witness. */
                users += of_user * 2 >= share;
        }
        /* Half as much again for each further user. */
        return (uint32_t)MIN(sum * (1 + MAX(users, 1u)) / 2, (uint64_t)UINT32_MAX);
}

/* How many users' jobs have failed there since then. */
static unsigned users_since(const struct blame *b, uint64_t since) {
        unsigned n = 0;

        for (uint32_t i = 0; i < b->n_strikes; i++) {
                bool counts = b->strikes[i].job != 0 && b->strikes[i].when >= since;
                for (uint32_t k = 0; counts && k < i; k++)
                        counts = b->strikes[k].job == 0 || b->strikes[k].when < since ||
                                 b->strikes[k].user != b->strikes[i].user;
                n += counts;
        }
        return n;
}

static void drop_strike(struct blame *b, uint32_t i) {
        memmove(b->strikes + i, b->strikes + i + 1, (b->n_strikes - i - 1) * sizeof(b->strikes[0]));
        b->n_strikes--;
}

/* Of no job are all of one. */
static bool same_witness(const struct strike *a, const struct strike *b) {
        return a->job == 0 || b->job == 0 ? a->job == b->job : a->user == b->user;
}

static void make_room(struct blame *b) {
        uint32_t most = 0, oldest = 0;

        for (uint32_t i = 0; i < b->n_strikes; i++) {
                uint32_t n = 0;
                for (uint32_t k = i; k < b->n_strikes; k++)
                        n += same_witness(b->strikes + i, b->strikes + k);
                if (n > most) { /* the first of them is the oldest */
                        most = n;
                        oldest = i;
                }
        }
        drop_strike(b, oldest);
}

static bool is_too_much(const struct blame_policy *p, const struct blame *b, const struct strike *s,
                        uint64_t now) {
        switch ((enum blame_state)b->state) {
        case BLAME_PROBATION:
                return s->job == 0 || users_since(b, b->since) >= p->users;
        case BLAME_CLEAR:
                return blame_score(p, b, now) >= p->threshold_milli;
        default:
                return false;
        }
}

enum blame_due blame_strike(const struct blame_policy *p, struct blame *b, const struct strike *s,
                            uint64_t now) {
        if (p->threshold_milli == 0)
                return BLAME_NOTHING;
        if (b->n_strikes == BLAME_STRIKES_MAX)
                make_room(b);
        b->strikes[b->n_strikes] = *s;
        b->strikes[b->n_strikes++].when = now;
        if (is_too_much(p, b, s, now))
                return BLAME_QUARANTINE;
        if (s->job == 0 || b->state == BLAME_QUARANTINED || blame_shunned(b, s->user, now) > 0)
                return BLAME_NOTHING;
        return sum_of(p, b, true, s->user, now) >= p->threshold_milli ? BLAME_SHUN : BLAME_NOTHING;
}

/* ---- of one user */

static struct shun *shun_of(const struct blame *b, uint32_t user) {
        for (uint32_t i = 0; i < b->n_shuns; i++)
                if (b->shuns[i].user == user)
                        return (struct shun *)b->shuns + i;
        return NULL;
}

static struct shun *shun_new(struct blame *b, uint32_t user) {
        struct shun *x = b->shuns;

        if (b->n_shuns < BLAME_SHUNS_MAX)
                x = b->shuns + b->n_shuns++;
        else
                for (uint32_t i = 1; i < b->n_shuns; i++)
                        if (b->shuns[i].until < x->until)
                                x = b->shuns + i;
        *x = (struct shun){ .user = user };
        return x;
}

static uint64_t doubled(uint64_t length, uint32_t times) {
        for (uint32_t i = 0; i < times && length < BLAME_QUARANTINE_MAX; i++)
                length = usec_add(length, length);
        return MIN(length, BLAME_QUARANTINE_MAX);
}

uint64_t blame_shun(const struct blame_policy *p, struct blame *b, uint32_t user, uint64_t now) {
        struct shun *x = shun_of(b, user);

        if (!x)
                x = shun_new(b, user);
        /* What is long over is no row. */
        if (x->times > 0 && usec_add(x->until, BLAME_QUARANTINE_MAX) < now)
                x->times = 0;
        x->until = usec_add(now, doubled(p->quarantine_usec, x->times));
        x->times++;
        return x->until;
}

uint64_t blame_shunned(const struct blame *b, uint32_t user, uint64_t now) {
        const struct shun *x = shun_of(b, user);

        return x && x->until > now ? x->until : 0;
}

bool blame_reconcile(struct blame *b, uint32_t user, uint64_t placed) {
        struct shun *x = shun_of(b, user);

        if (!x || placed < x->until)
                return false;
        *x = b->shuns[--b->n_shuns];
        for (uint32_t i = b->n_strikes; i > 0; i--)
                if (b->strikes[i - 1].job != 0 && b->strikes[i - 1].user == user)
                        drop_strike(b, i - 1);
        return true;
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
        b->state = BLAME_QUARANTINED;
        b->since = now;
        b->until = usec_add(now, doubled(p->quarantine_usec, b->times++));
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
