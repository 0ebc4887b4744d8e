/* SPDX-License-Identifier: Apache-2.0 */
/* Gangs and their members, and what is told of them. Invariant: each verdict that began ends, or its member
 * leaves; it is told once. */
#include "masterd/health/health.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "lib/base/format.h"
#include "masterd/health/internal.h"

/* An end by lack of memory is news for so long. */
#define OOM_STANDS (600 * SECOND)

int health_gang_new(struct health_gang **ret) {
        struct health_gang *g = calloc(1, sizeof(*g));

        if (!g)
                return -ENOMEM;
        *ret = g;
        return 0;
}

void member_free(struct member *m) {
        apart_forget(m);
        free(m);
}

struct health_gang *health_gang_free(struct health_gang *g) {
        struct member *m, *next;

        if (!g)
                return NULL;
        HASH_ITER (hh, g->members, m, next) {
                HASH_DEL(g->members, m);
                member_free(m);
        }
        free(g->rules);
        free(g->scratch);
        for (size_t i = 0; i < ELEMENTSOF(g->rankings); i++)
                free(g->rankings[i].values);
        free(g->waits);
        free(g);
        return NULL;
}

int health_set_rules(struct health_gang *g, uint32_t role, const struct health_rules *rules) {
        if (role >= g->n_rules) {
                struct health_rules *more = reallocarray(g->rules, role + 1, sizeof(*more));

                if (!more)
                        return -ENOMEM;
                g->rules = more;
                while (g->n_rules <= role)
                        g->rules[g->n_rules++] = health_defaults;
        }
        g->rules[role] = *rules;
        return 0;
}

const struct health_rules *member_rules(const struct health_gang *g, const struct member *m) {
        return m->key.role < g->n_rules ? g->rules + m->key.role : &health_defaults;
}

bool holding_take(struct holding *h, bool condition, uint64_t dt, uint64_t after, uint64_t now) {
        after = MAX(after, UINT64_C(1));
        if (condition) {
                if (h->held_usec == 0)
                        h->since_usec = now - MIN(dt, now);
                h->held_usec = MIN(h->held_usec + dt, after);
                if (h->held_usec == after)
                        h->up = true;
        } else {
                h->held_usec -= MIN(2 * dt, h->held_usec);
                if (h->held_usec <= after / 2)
                        h->up = false;
        }
        return h->up;
}

struct member *member_find(const struct health_gang *g, uint32_t role, uint32_t index) {
        struct member key = { .key = { role, index } }, *m;

        HASH_FIND(hh, g->members, &key.key, sizeof(key.key), m);
        return m;
}

/* Room for what compares members: as much as there are. */
static int grow_gang(struct health_gang *g) {
        size_t n = MAX(2 * g->n_room, (size_t)8);
        struct member **scratch;
        enum health_wait *waits;
        float *values;

        if (g->n_members < g->n_room)
                return 0;
        scratch = reallocarray(g->scratch, n, sizeof(*scratch));
        if (!scratch)
                return -ENOMEM;
        g->scratch = scratch;
        for (size_t i = 0; i < ELEMENTSOF(g->rankings); i++) {
                values = reallocarray(g->rankings[i].values, n, sizeof(*values));
                if (!values)
                        return -ENOMEM;
                g->rankings[i].values = values;
        }
        waits = reallocarray(g->waits, n, sizeof(*waits));
        if (!waits)
                return -ENOMEM;
        g->waits = waits;
        g->n_room = n;
        return 0;
}

static void begin_member(const struct health_gang *g, struct member *m, uint64_t now) {
        for (size_t r = 0; r < _RATE_MAX; r++)
                m->rates[r] = -1;
        leak_init(&m->leak, now, member_rules(g, m)->of[VERDICT_LEAKING].after_usec);
}

int health_join(struct health_gang *g, uint32_t role, uint32_t index, uint64_t now_usec,
                const struct health_facts *facts) {
        struct member *m;

        if (grow_gang(g) < 0)
                return -ENOMEM;
        m = calloc(1, sizeof(*m));
        if (!m)
                return -ENOMEM;
        health_leave(g, role, index);
        assert(g->n_members < g->n_room);
        m->key.role = role;
        m->key.index = index;
        m->facts = *facts;
        begin_member(g, m, now_usec);
        HASH_ADD(hh, g->members, key, sizeof(m->key), m);
        g->n_members++;
        rankings_forget(g);
        return 0;
}

void health_leave(struct health_gang *g, uint32_t role, uint32_t index) {
        struct member *m = member_find(g, role, index);

        if (!m)
                return;
        HASH_DEL(g->members, m);
        g->n_members--;
        rankings_forget(g);
        member_free(m);
}

void health_dry(struct health_gang *g, uint32_t role, uint32_t index, bool dry) {
        struct member *m = member_find(g, role, index);

        if (m)
                m->dry = dry;
}

void health_pause(struct health_gang *g) {
        struct member *m;

        for (m = g->members; m; m = m->hh.next) {
                m->seen_usec = m->judged_usec = 0;
                m->still_usec = 0;
                m->n_progress = 0;
                for (size_t k = 0; k < _VERDICT_MAX; k++) {
                        m->holding[k].held_usec = 0;
                        m->holding[k].up = false;
                }
        }
}

static void tell_verdict(struct health_gang *g, struct member *m, enum verdict_kind k, verdict_handler f,
                         void *userdata) {
        struct holding *h = m->holding + k;
        struct health_verdict v = { .kind = k,
                                    .begins = h->up,
                                    .role = m->key.role,
                                    .index = m->key.index,
                                    .since_usec = h->since_usec };

        if (v.begins)
                evidence_member(g, m, k, &v);
        h->told = h->up;
        f(&v, userdata);
}

void health_judge(struct health_gang *g, uint64_t now_usec, verdict_handler f, void *userdata) {
        struct member *m;

        gang_judge(g, now_usec, f, userdata);
        for (m = g->members; m; m = m->hh.next) {
                struct holding *oom = m->holding + VERDICT_OOM;

                if (m->killed > 0 && !member_rules(g, m)->of[VERDICT_OOM].off)
                        *oom = (struct holding){ .up = true, .since_usec = now_usec };
                else if (oom->up && now_usec - oom->since_usec > OOM_STANDS)
                        oom->up = false;
                for (size_t k = 0; k < _VERDICT_MAX; k++)
                        if (m->holding[k].up != m->holding[k].told &&
                            !(k == VERDICT_STRAGGLER && m->holding[k].up && apart_wants_place(m, now_usec)))
                                tell_verdict(g, m, (enum verdict_kind)k, f, userdata);
                m->killed = 0;
        }
}

bool health_crashes(const struct health_rule *rule, const uint64_t *times, const uint32_t *n_at, size_t n,
                    uint64_t now_usec, struct health_verdict *ret) {
        uint64_t first = 0, count = 0;
        char span[FORMAT_DURATION_MAX];

        if (rule->off || rule->count == 0)
                return false;
        for (size_t i = 0; i < n; i++) {
                if (now_usec > times[i] && now_usec - times[i] > rule->within_usec)
                        continue;
                if (count == 0)
                        first = times[i];
                count += n_at ? n_at[i] : 1;
        }
        if (count < rule->count)
                return false;
        *ret = (struct health_verdict){ .kind = VERDICT_CRASH_LOOP, .begins = true, .since_usec = first };
        snprintf(ret->text, sizeof(ret->text), "%" PRIu64 " of its attempts failed within %s", count,
                 format_duration(now_usec > first ? now_usec - first : 0, span, sizeof(span)));
        ret->numbers[ret->n_numbers++] = (struct health_number){ "failures", count };
        ret->numbers[ret->n_numbers++] =
                (struct health_number){ "withinUsec", now_usec > first ? now_usec - first : 0 };
        return true;
}
