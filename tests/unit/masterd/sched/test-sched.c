/* SPDX-License-Identifier: Apache-2.0 */
/* Random operations against a model that is too simple to be wrong: a list of what is held. After every step
 * nothing is held twice or beyond what a node has, and the scheduler's own counts are those of the model; and
 * a gang that does not fit would not fit either by putting its executors one by one, largest first, where
 * they fit best. */
#include "masterd/sched/sched.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "tests/kit/random.h"

#define NODES 12u
#define GANGS 64u
#define SHAPES 3u

struct model_node {
        bool exists, usable;
        struct sched_capacity capacity;
};

struct model {
        struct sched *s;
        struct model_node nodes[NODES];
        struct sched_placement gangs[GANGS];
};

/* What is held on a node, from the list alone. */
static struct sched_usage tally(const struct model *m, uint32_t slot) {
        struct sched_usage u = { .capacity = m->nodes[slot].capacity, .usable = m->nodes[slot].usable };
        bool ports[65536 / 64] = {};

        for (size_t g = 0; g < GANGS; g++)
                for (size_t i = 0; i < m->gangs[g].n; i++) {
                        const struct sched_hold *h = &m->gangs[g].items[i].hold;
                        if (h->slot != slot)
                                continue;
                        assert_true((u.gpus & h->gpus) == 0);
                        u.gpus |= h->gpus;
                        u.cpu_milli += h->cpu_milli;
                        u.memory += h->memory;
                        u.executors++;
                        u.ports += h->n_ports;
                        for (uint32_t k = 0; k < h->n_ports; k++) {
                                uint32_t p = (uint32_t)h->ports[k] - u.capacity.port_first;
                                assert_true(h->ports[k] <= u.capacity.port_last);
                                assert_false(ports[p]);
                                ports[p] = true;
                        }
                }
        return u;
}

static void check(const struct model *m) {
        for (uint32_t i = 0; i < NODES; i++) {
                struct sched_usage want, got;
                if (!m->nodes[i].exists) {
                        assert_int_equal(sched_node_usage(m->s, i, &got), -ENOENT);
                        continue;
                }
                want = tally(m, i);
                assert_int_equal(sched_node_usage(m->s, i, &got), 0);
                assert_true(want.cpu_milli == got.cpu_milli && want.memory == got.memory &&
                            want.gpus == got.gpus && want.ports == got.ports &&
                            want.executors == got.executors && want.usable == got.usable);
                assert_true(got.cpu_milli <= got.capacity.cpu_milli && got.memory <= got.capacity.memory);
                assert_true(got.executors <= got.capacity.executors);
                assert_true(got.gpus >> got.capacity.gpus == 0);
        }
}

static bool contains(const uint32_t *list, size_t n, uint32_t slot) {
        for (size_t i = 0; i < n; i++)
                if (list[i] == slot)
                        return true;
        return false;
}

/* Whether one by one, largest first, best fit finds room for the min of every shape. */
static bool fits_simply(const struct model *m, const struct sched_gang *g) {
        struct sched_usage u[NODES];
        uint32_t there[NODES], order[SHAPES];

        for (uint32_t i = 0; i < NODES; i++)
                u[i] = tally(m, i);
        for (uint32_t i = 0; i < g->n_shapes; i++) {
                uint32_t k = i;
                for (; k > 0; k--) {
                        const struct sched_shape *a = &g->shapes[i], *b = &g->shapes[order[k - 1]];
                        if (a->gpus != b->gpus             ? a->gpus < b->gpus
                            : a->cpu_milli != b->cpu_milli ? a->cpu_milli < b->cpu_milli
                                                           : a->memory <= b->memory)
                                break;
                        order[k] = order[k - 1];
                }
                order[k] = i;
        }
        for (uint32_t i = 0; i < g->n_shapes; i++) {
                const struct sched_shape *h = &g->shapes[order[i]];
                memset(there, 0, sizeof(there));
                for (uint32_t k = 0; k < h->min; k++) {
                        uint32_t best = UINT32_MAX;
                        uint64_t least = UINT64_MAX;
                        for (uint32_t n = 0; n < NODES; n++) {
                                const struct sched_capacity *c = &u[n].capacity;
                                uint64_t gpus = (uint64_t)c->gpus - (uint64_t)__builtin_popcountll(u[n].gpus);
                                uint64_t cpu = c->cpu_milli - u[n].cpu_milli, left;
                                uint32_t ports = c->port_first ? (uint32_t)c->port_last - c->port_first + 1 -
                                                                         u[n].ports
                                                               : 0;
                                if (!m->nodes[n].exists || !u[n].usable || u[n].executors >= c->executors ||
                                    cpu < h->cpu_milli || c->memory - u[n].memory < h->memory ||
                                    gpus < h->gpus || ports < h->ports ||
                                    (h->max_per_node > 0 && there[n] >= h->max_per_node) ||
                                    (h->restricted && !contains(h->allowed, h->n_allowed, n)) ||
                                    contains(h->excluded, h->n_excluded, n))
                                        continue;
                                left = (gpus - h->gpus) << 32 |
                                       (h->cpu_milli == 0 && h->memory > 0
                                                ? (c->memory - u[n].memory - h->memory) >> 20
                                                : cpu - h->cpu_milli);
                                if (left < least) {
                                        least = left;
                                        best = n;
                                }
                        }
                        if (best == UINT32_MAX)
                                return false;
                        there[best]++;
                        u[best].cpu_milli += h->cpu_milli;
                        u[best].memory += h->memory;
                        u[best].ports += h->ports;
                        u[best].executors++;
                        for (uint32_t b = 0, left = h->gpus; left > 0; b++)
                                if (!(u[best].gpus >> b & 1)) {
                                        u[best].gpus |= UINT64_C(1) << b;
                                        left--;
                                }
                }
        }
        return true;
}

static struct sched_capacity random_capacity(void) {
        return (struct sched_capacity){
                .cpu_milli = 1000 * (1 + random_below(16)),
                .memory = ((uint64_t)(1 + random_below(32)) << 29) +
                          random_below(1000), /* also not by the MiB */
                .gpus = random_below(3) ? 0 : random_below(9),
                .port_first = 30000,
                .port_last = (uint16_t)(30000 + random_below(20)),
                .executors = 1 + random_below(20),
        };
}

static void random_shape(struct sched_shape *h, uint32_t lists[static 2 * NODES]) {
        uint32_t n = 1 + random_below(6);

        *h = (struct sched_shape){
                .min = n,
                .max = n + (random_below(4) ? 0 : random_below(6)),
                .cpu_milli = random_below(4) ? 100 * random_below(40) : 0,
                .memory = random_below(3) ? (uint64_t)random_below(16) << 28 : random_below(4000),
                .gpus = random_below(3) ? 0 : random_below(5),
                .ports = random_below(3),
                .max_per_node = random_below(3) ? 0 : 1 + random_below(3),
                .restricted = random_below(4) == 0,
                .allowed = lists,
                .excluded = lists + NODES,
                .n_excluded = random_below(4) ? 0 : random_below(3),
        };
        h->n_allowed = h->restricted ? 1 + random_below(NODES) : 0;
        for (uint32_t i = 0; i < 2 * NODES; i++)
                lists[i] = random_below(NODES);
}

/* What a placement must be like, beside being held. */
static void check_placement(const struct sched_gang *g, const struct sched_placement *p) {
        uint32_t n[SHAPES] = {};

        for (size_t i = 0; i < p->n; i++) {
                const struct sched_item *item = &p->items[i];
                const struct sched_shape *h = &g->shapes[item->shape];
                uint32_t there = 0;
                assert_int_equal(item->member, n[item->shape]++);
                assert_int_equal(__builtin_popcountll(item->hold.gpus), h->gpus);
                assert_int_equal(item->hold.n_ports, h->ports);
                assert_true(item->hold.memory == h->memory && item->hold.cpu_milli == h->cpu_milli);
                assert_true(!h->restricted || contains(h->allowed, h->n_allowed, item->hold.slot));
                assert_false(contains(h->excluded, h->n_excluded, item->hold.slot));
                for (size_t k = 0; k < p->n; k++)
                        there += p->items[k].shape == item->shape && p->items[k].hold.slot == item->hold.slot;
                assert_true(h->max_per_node == 0 || there <= h->max_per_node);
        }
        for (uint32_t i = 0; i < g->n_shapes; i++)
                assert_true(n[i] >= g->shapes[i].min && n[i] <= g->shapes[i].max);
}

static void place_random(struct model *m, struct sched_placement *where, unsigned counts[static 2]) {
        struct sched_shape shapes[SHAPES];
        uint32_t lists[SHAPES][2 * NODES];
        struct sched_gang g = { shapes, 1 + random_below(SHAPES) };
        struct sched_no_fit why;
        int r;

        for (uint32_t i = 0; i < g.n_shapes; i++)
                random_shape(&shapes[i], lists[i]);
        r = sched_place(m->s, &g, where, &why);
        if (r == SCHED_E_NO_FIT) {
                assert_false(fits_simply(m, &g));
                assert_true(why.fits <= why.wanted && why.shape < g.n_shapes && why.scarce != 0);
                counts[1]++;
        } else {
                assert_int_equal(r, 0);
                check_placement(&g, where);
                counts[0]++;
        }
}

static void drop(struct model *m, size_t g) {
        struct sched_placement *p = &m->gangs[g];

        for (size_t i = 0; i < p->n; i++)
                sched_release(m->s, &p->items[i].hold);
        sched_placement_done(p);
}

static bool in_use(const struct model *m, uint32_t slot) {
        return tally(m, slot).executors > 0;
}

static void test_random(void **state) {
        struct model m = {};
        unsigned counts[2] = {};

        seed = now_real();
        print_message("seed %llu\n", (unsigned long long)seed);
        assert_int_equal(sched_new(&m.s), 0);
        for (unsigned step = 0; step < 6000; step++) {
                uint32_t what = random_below(20), node = random_below(NODES), slot;
                size_t g = random_below(GANGS);
                if (what < 11) {
                        if (m.gangs[g].n == 0)
                                place_random(&m, &m.gangs[g], counts);
                } else if (what < 16)
                        drop(&m, g);
                else if (what < 18 && !m.nodes[node].exists) {
                        struct sched_capacity c = random_capacity();
                        assert_int_equal(sched_node_add(m.s, &c, &slot), 0);
                        assert_true(slot < NODES && !m.nodes[slot].exists);
                        m.nodes[slot] = (struct model_node){ true, true, c };
                } else if (what < 19 && m.nodes[node].exists) {
                        m.nodes[node].usable = random_below(4) > 0;
                        sched_node_set_usable(m.s, node, m.nodes[node].usable);
                } else if (m.nodes[node].exists && random_below(4) == 0) {
                        bool busy = in_use(&m, node);
                        assert_int_equal(sched_node_remove(m.s, node), busy ? -EBUSY : 0);
                        m.nodes[node].exists = busy;
                }
                check(&m);
        }
        for (size_t g = 0; g < GANGS; g++)
                drop(&m, g);
        check(&m);
        sched_free(m.s);
        print_message("%u gangs placed, %u not\n", counts[0], counts[1]);
        assert_true(counts[0] > 200 && counts[1] > 200);
}

/* What a restarted master knows from its records gives the same state. */
static void test_reserve_rebuilds(void **state) {
        struct model m = {}, again = {};
        unsigned counts[2] = {};
        uint32_t slot;

        seed = now_real();
        assert_int_equal(sched_new(&m.s), 0);
        assert_int_equal(sched_new(&again.s), 0);
        for (uint32_t i = 0; i < NODES; i++) {
                m.nodes[i] = again.nodes[i] = (struct model_node){ true, true, random_capacity() };
                assert_int_equal(sched_node_add(m.s, &m.nodes[i].capacity, &slot), 0);
                assert_int_equal(sched_node_add(again.s, &m.nodes[i].capacity, &slot), 0);
        }
        for (size_t g = 0; g < GANGS; g++)
                place_random(&m, &m.gangs[g], counts);
        for (size_t g = GANGS; g-- > 0;)
                for (size_t i = 0; i < m.gangs[g].n; i++)
                        assert_int_equal(sched_reserve(again.s, &m.gangs[g].items[i].hold), 0);
        memcpy(again.gangs, m.gangs, sizeof(m.gangs));
        check(&again);
        for (size_t g = 0; g < GANGS; g++)
                drop(&m, g);
        sched_free(m.s);
        sched_free(again.s);
}

/* A clone is held to the same model, gives the same answers, and shares nothing with the original. */
static void test_clone(void **state) {
        struct model m = {}, twin = {};
        unsigned counts[2] = {};

        seed = now_real();
        print_message("seed %llu\n", (unsigned long long)seed);
        assert_int_equal(sched_new(&m.s), 0);
        assert_int_equal(sched_clone(m.s, &twin.s), 0); /* of nothing */
        sched_free(twin.s);
        for (uint32_t i = 0; i < NODES; i++) {
                uint32_t slot;
                m.nodes[i] = (struct model_node){ true, i % 5 > 0, random_capacity() };
                assert_int_equal(sched_node_add(m.s, &m.nodes[i].capacity, &slot), 0);
                sched_node_set_usable(m.s, slot, m.nodes[i].usable);
        }
        for (size_t g = 0; g < GANGS / 2; g++)
                place_random(&m, &m.gangs[g], counts);
        twin = m;
        assert_int_equal(sched_clone(m.s, &twin.s), 0);
        for (size_t g = GANGS / 2; g < GANGS; g++) {
                uint64_t before = seed;
                place_random(&m, &m.gangs[g], counts);
                seed = before;
                place_random(&twin, &twin.gangs[g], counts);
                assert_int_equal(m.gangs[g].n, twin.gangs[g].n);
                for (size_t i = 0; i < m.gangs[g].n; i++) {
                        const struct sched_hold *a = &m.gangs[g].items[i].hold,
                                                *b = &twin.gangs[g].items[i].hold;
                        assert_true(a->slot == b->slot && a->gpus == b->gpus && a->n_ports == b->n_ports);
                        assert_true(a->n_ports == 0 ||
                                    memcmp(a->ports, b->ports, a->n_ports * sizeof(*a->ports)) == 0);
                }
        }
        for (size_t g = 0; g < GANGS / 2; g++) /* held in both; the arrays are m's */
                for (size_t i = 0; i < m.gangs[g].n; i++)
                        sched_release(twin.s, &m.gangs[g].items[i].hold);
        check(&m);
        memset(twin.gangs, 0, sizeof(*twin.gangs) * (GANGS / 2));
        check(&twin);
        for (size_t g = 0; g < GANGS; g++) {
                drop(&m, g);
                drop(&twin, g);
        }
        sched_free(m.s);
        sched_free(twin.s);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_random),
                cmocka_unit_test(test_reserve_rebuilds),
                cmocka_unit_test(test_clone),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
