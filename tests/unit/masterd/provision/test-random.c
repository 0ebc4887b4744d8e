/* SPDX-License-Identifier: Apache-2.0 */
/* Random settings, instances, demand, trouble and pace, against the rules written down once more; and that a
 * plan that is carried out leaves nothing to do that would undo it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"
#include "tests/kit/provision-kit.h"
#include "tests/kit/random.h"

#define T KIT_NOW
#define WORLDS 20000u
#define INSTANCES 24u
#define ROOM 128u
#define DEMANDS 5u
#define ASKED 6u
#define ROUNDS 12

typedef unsigned __int128 wide;

struct world {
        struct provision_conf conf;
        struct provision_trouble trouble[PROVISION_SHAPES_MAX];
        struct provision_instance instances[ROOM];
        struct provision_demand demand[DEMANDS];
        uint64_t asked[ROOM];
        size_t n, n_demand, n_asked;
        uint64_t now;
};

struct sum {
        uint32_t there, staying, sound, shape[PROVISION_SHAPES_MAX];
        wide cost;
};

static bool one_in(uint32_t n) {
        return random_below(n) == 0;
}

/* Around the bounds of the settings, and on them. */
static uint64_t ago(void) {
        return T - random_below(13) * 5 * KIT_MINUTE - random_below(3);
}

static struct provision_instance random_instance(const struct provision_conf *c) {
        struct provision_instance i = { .state = (enum instance_state)random_below(_INSTANCE_STATE_MAX),
                                        .shape = one_in(20) ? 99 : random_below(c->n_shapes),
                                        .made = ago(),
                                        .seen = one_in(2) ? SEEN_RUNNING
                                                          : (enum instance_seen)random_below(_SEEN_MAX),
                                        .absent = random_below(4),
                                        .wanted = one_in(3),
                                        .held = one_in(6),
                                        .failing = one_in(8) };

        i.since = MAX(i.made, ago());
        if ((i.state == INSTANCE_READY || i.state == INSTANCE_DRAINING) && !one_in(3))
                i.idle_since = ago();
        if (i.state >= INSTANCE_JOINED && one_in(6))
                i.lost_since = ago();
        return i;
}

static void random_trouble(struct provision_trouble *t) {
        for (uint32_t k = random_below(5); k > 0; k--)
                provision_failed(t, "no", ago());
        if (one_in(10))
                provision_unavailable(t, "none", ago());
        if (one_in(10))
                provision_later(t, 5 * KIT_MINUTE, "later", ago());
}

static void random_world(struct world *w) {
        *w = (struct world){ .n = random_below(INSTANCES + 1),
                             .n_demand = random_below(DEMANDS + 1),
                             .now = T };
        provision_conf_defaults(&w->conf);
        w->conf.n_shapes = 1 + random_below(3);
        for (uint32_t s = 0; s < w->conf.n_shapes; s++) {
                w->conf.shapes[s] =
                        (struct provision_shape){ .max = random_below(20), .cost = random_below(5) };
                if (one_in(4))
                        random_trouble(w->trouble + s);
        }
        w->conf.max = random_below(30);
        w->conf.min = random_below(10);
        w->conf.spare = random_below(4);
        w->conf.starting_max = one_in(2) ? random_below(8) : 0;
        w->conf.per_minute = one_in(2) ? random_below(8) : 0;
        w->conf.cost_max = one_in(2) ? random_below(60) : 0;
        w->conf.min_life_usec = one_in(2) ? 15 * KIT_MINUTE : 0;
        for (size_t k = 0; k < w->n; k++)
                w->instances[k] = random_instance(&w->conf);
        for (uint32_t k = 0; k < w->n_demand; k++)
                w->demand[k] =
                        (struct provision_demand){ .shape = random_below(w->conf.n_shapes + one_in(10)),
                                                   .n = random_below(6),
                                                   .job = k + 1 };
        w->n_asked = random_below(ASKED);
        for (size_t k = 0; k < w->n_asked; k++)
                w->asked[k] = T - random_below(70) * KIT_SECOND;
}

static struct provision_plan decide_world(const struct world *w, uint64_t now) {
        const struct provision_pace pace = { w->asked, w->n_asked };
        struct provision_plan p = { 0 };

        assert_int_equal(provision_decide(&w->conf, w->trouble, w->instances, w->n, w->demand, w->n_demand,
                                          &pace, now, &p),
                         0);
        return p;
}

static void add(struct sum *s, const struct world *w, uint32_t shape) {
        s->there++;
        if (shape < w->conf.n_shapes) {
                s->shape[shape]++;
                s->cost += w->conf.shapes[shape].cost;
        }
}

/* What stays at first, when what is stopped or gone is away, and after the plan. */
enum moment {
        AT_FIRST,
        WITHOUT_ENDS,
        AFTER
};

static bool stays_at(const struct provision_instance *i, int verb, enum moment moment) {
        if (moment != AT_FIRST && (verb == PROVISION_STOP || verb == PROVISION_FORGET))
                return false;
        if (verb == PROVISION_KEEP)
                return moment != WITHOUT_ENDS;
        return i->state < INSTANCE_DRAINING && (moment != AFTER || verb != PROVISION_DRAIN);
}

/* Draining ones are there, and do not stay: shapes and costs are those of what stays, but after the plan,
 * where they are of what is there. */
static struct sum sum_up(const struct world *w, const struct provision_plan *p, enum moment moment) {
        struct sum s = { 0 };

        for (uint32_t k = 0; k < w->n; k++) {
                const struct provision_instance *i = w->instances + k;
                const struct provision_action *a = kit_action(p, k);
                int verb = a ? (int)a->verb : -1;
                bool stays = stays_at(i, verb, moment),
                     ends = verb == PROVISION_STOP || verb == PROVISION_FORGET;
                if (stays || (moment == AFTER && i->state != INSTANCE_STOPPING && !ends))
                        add(&s, w, i->shape);
                s.staying += stays;
                s.sound += stays && !i->failing && i->seen != SEEN_STOPPING;
        }
        for (size_t k = 0; k < p->n && moment == AFTER; k++)
                if (p->actions[k].verb == PROVISION_UP) {
                        add(&s, w, p->actions[k].shape);
                        s.staying++;
                        s.sound++;
                }
        return s;
}

static bool is_late(const struct world *w, const struct provision_instance *i) {
        uint64_t since = i->state == INSTANCE_JOINED ? i->since : i->made;

        return i->state <= INSTANCE_JOINED && w->now - since >= w->conf.start_usec;
}

static bool has_ended(const struct world *w, const struct provision_instance *i) {
        bool listed = i->seen != SEEN_ABSENT && i->seen != SEEN_NOT_ASKED,
             registered = i->state >= INSTANCE_JOINED;

        if (registered && i->lost_since == 0)
                return false;
        if (i->seen == SEEN_STOPPED || i->seen == SEEN_FAILED)
                return true;
        return registered && listed && w->now - i->lost_since >= w->conf.lost_usec;
}

static bool above_a_limit(const struct world *w, const struct sum *s, uint32_t shape) {
        return s->staying > w->conf.max || shape >= w->conf.n_shapes ||
               s->shape[shape] > w->conf.shapes[shape].max ||
               (w->conf.cost_max > 0 && s->cost > w->conf.cost_max);
}

static void check_action(const struct world *w, const struct provision_action *a, const struct sum *first) {
        const struct provision_instance *i = w->instances + a->instance;
        bool settled = i->state == INSTANCE_READY || i->state == INSTANCE_DRAINING;

        assert_true(*a->why != 0);
        assert_int_equal(a->job, 0);
        assert_int_equal(a->shape, i->shape);
        switch (a->verb) {
        case PROVISION_DRAIN:
                assert_int_equal(i->state, INSTANCE_READY);
                assert_true(!i->held && i->idle_since > 0 && !a->failed);
                if ((i->wanted && !i->failing && i->seen != SEEN_STOPPING) ||
                    w->now - i->idle_since < w->conf.idle_usec || w->now - i->made < w->conf.min_life_usec)
                        assert_true(above_a_limit(w, first, i->shape));
                break;
        case PROVISION_KEEP:
                assert_int_equal(i->state, INSTANCE_DRAINING);
                assert_false(a->failed);
                break;
        case PROVISION_STOP:
                assert_true(!i->held && i->state < INSTANCE_STOPPING);
                if (settled && i->idle_since == 0)
                        assert_true(has_ended(w, i));
                if (i->state == INSTANCE_READY)
                        assert_true(has_ended(w, i));
                if (a->failed)
                        assert_true(i->state < INSTANCE_READY && (is_late(w, i) || has_ended(w, i)));
                break;
        case PROVISION_FORGET:
                assert_true(i->state != INSTANCE_WANTED && i->seen == SEEN_ABSENT && i->absent >= 2);
                assert_true(i->lost_since > 0 || i->state == INSTANCE_STARTING ||
                            i->state == INSTANCE_STOPPING);
                assert_int_equal(a->failed, i->state < INSTANCE_READY);
                break;
        default:
                fail();
        }
}

static void check_ups(const struct world *w, const struct provision_plan *p, const struct sum *after) {
        uint32_t coming = 0, ups = 0, recent = 0;

        for (size_t k = 0; k < p->n; k++) {
                const struct provision_action *a = p->actions + k;
                if (a->verb != PROVISION_UP)
                        continue;
                ups++;
                assert_int_equal(a->instance, UINT32_MAX);
                assert_true(a->shape < w->conf.n_shapes && !a->failed && *a->why);
                assert_true(after->there <= w->conf.max);
                assert_true(after->shape[a->shape] <= w->conf.shapes[a->shape].max);
                if (w->conf.cost_max > 0 && w->conf.shapes[a->shape].cost > 0)
                        assert_true(after->cost <= w->conf.cost_max);
                assert_false(provision_blocked(w->trouble + a->shape, w->now));
        }
        for (uint32_t k = 0; k < w->n; k++)
                coming += w->instances[k].state <= INSTANCE_JOINED && !kit_action(p, k);
        for (size_t k = 0; k < w->n_asked; k++)
                recent += w->now - w->asked[k] < KIT_MINUTE;
        if (ups > 0 && w->conf.starting_max > 0)
                assert_true(coming + ups <= w->conf.starting_max);
        if (ups > 0 && w->conf.per_minute > 0)
                assert_true(recent + ups <= w->conf.per_minute);
}

static uint32_t ups_for(const struct provision_plan *p, uint32_t job) {
        uint32_t n = 0;

        for (size_t k = 0; k < p->n; k++)
                n += p->actions[k].verb == PROVISION_UP && p->actions[k].job == job;
        return n;
}

static void check_plan(const struct world *w, const struct provision_plan *p) {
        struct sum before = sum_up(w, p, WITHOUT_ENDS), after = sum_up(w, p, AFTER),
                   first = sum_up(w, p, AT_FIRST);
        bool seen[ROOM] = { false }, ups = false;

        for (size_t k = 0; k < p->n; k++) {
                const struct provision_action *a = p->actions + k;
                ups = ups || a->verb == PROVISION_UP;
                if (a->verb == PROVISION_UP)
                        continue;
                assert_false(ups); /* they come after what makes room for them */
                assert_true(a->instance < w->n && !seen[a->instance]);
                seen[a->instance] = true;
                check_action(w, a, &first);
        }
        check_ups(w, p, &after);
        for (uint32_t k = 0; k < w->n_demand; k++) {
                uint32_t n = ups_for(p, w->demand[k].job);
                assert_true(n <= w->demand[k].n);
                assert_int_equal(n == w->demand[k].n, *p->refused[k] == 0);
                if (n > 0 && n < w->demand[k].n)
                        assert_non_null(strstr(p->refused[k], " now: "));
        }
        /* What is drained brings nobody below min, unless max says so. */
        assert_true(after.sound >= MIN(w->conf.min, before.sound) || after.staying >= w->conf.max);
        assert_true(p->cost == (uint64_t)after.cost);
        assert_true(p->next > w->now);
}

static bool same_plan(const struct provision_plan *a, const struct provision_plan *b) {
        if (a->n != b->n || a->next != b->next || a->cost != b->cost)
                return false;
        for (size_t k = 0; k < a->n; k++)
                if (a->actions[k].verb != b->actions[k].verb ||
                    a->actions[k].instance != b->actions[k].instance ||
                    a->actions[k].shape != b->actions[k].shape ||
                    strcmp(a->actions[k].why, b->actions[k].why) != 0)
                        return false;
        return true;
}

/* As the caller would, with everything else as it was. Verbs are noted in `last`, by row. */
static void carry_out(struct world *w, const struct provision_plan *p, int last[ROOM]) {
        static const enum instance_event events[] = { [PROVISION_DRAIN] = INSTANCE_LEAVES,
                                                      [PROVISION_KEEP] = INSTANCE_KEPT,
                                                      [PROVISION_STOP] = INSTANCE_GIVEN_BACK };

        for (size_t k = 0; k < p->n; k++) {
                const struct provision_action *a = p->actions + k;
                struct provision_instance *i = w->instances + a->instance;
                if (a->verb == PROVISION_UP) {
                        assert_true(w->n < ROOM && w->n_asked < ROOM);
                        last[w->n] = PROVISION_UP;
                        w->instances[w->n++] = (struct provision_instance){
                                .shape = a->shape, .made = w->now, .since = w->now, .wanted = a->job > 0
                        };
                        w->asked[w->n_asked++] = w->now;
                        continue;
                }
                if (last[a->instance] >= 0) /* the only sequel there is */
                        assert_true(last[a->instance] == PROVISION_DRAIN && a->verb == PROVISION_STOP);
                last[a->instance] = (int)a->verb;
                if (a->verb == PROVISION_FORGET) {
                        *i = (struct provision_instance){ .state = INSTANCE_STOPPING, .made = w->now };
                        continue;
                }
                i->state = instance_next(i->state, events[a->verb]);
                i->since = w->now;
                assert_true(i->state >= 0);
                if (a->verb == PROVISION_STOP) /* lists that were begun before say nothing of it */
                        i->seen = SEEN_NOT_ASKED;
        }
        for (uint32_t k = 0; k < w->n_demand; k++)
                w->demand[k].n -= ups_for(p, w->demand[k].job);
}

static void check_rounds(struct world *w) {
        int last[ROOM];
        size_t did = 1;

        memset(last, -1, sizeof(last));
        for (int round = 0; did > 0; round++) {
                struct provision_plan p = decide_world(w, w->now);
                assert_true(round < ROUNDS);
                check_plan(w, &p);
                carry_out(w, &p, last);
                did = p.n;
                provision_plan_done(&p);
        }
}

/* With nothing to do now, there is nothing to do until the plan says so. */
static void check_next(const struct world *w) {
        struct provision_plan p = decide_world(w, w->now), q;
        uint64_t last = p.next == UINT64_MAX ? w->now + 1000 * KIT_HOUR : p.next - 1;

        assert_int_equal(p.n, 0);
        q = decide_world(w, last);
        assert_int_equal(q.n, 0);
        assert_true(q.next == p.next);
        provision_plan_done(&p);
        provision_plan_done(&q);
}

static void test_worlds(void **state) {
        uint32_t verbs[_PROVISION_VERB_MAX] = { 0 };

        for (uint32_t k = 0; k < WORLDS; k++) {
                struct world w;
                struct provision_plan p, again;
                seed = k;
                random_world(&w);
                p = decide_world(&w, w.now);
                again = decide_world(&w, w.now);
                assert_true(same_plan(&p, &again));
                for (int v = 0; v < _PROVISION_VERB_MAX; v++)
                        verbs[v] += kit_count(&p, (enum provision_verb)v);
                provision_plan_done(&p);
                provision_plan_done(&again);
                check_rounds(&w);
                check_next(&w);
        }
        /* None of it holds because nothing happens. */
        for (int v = 0; v < _PROVISION_VERB_MAX; v++)
                assert_true(verbs[v] > WORLDS / 10);
}

int main(void) {
        const struct CMUnitTest tests[] = { cmocka_unit_test(test_worlds) };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
