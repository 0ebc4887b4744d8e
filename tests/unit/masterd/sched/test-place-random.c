/* SPDX-License-Identifier: Apache-2.0 */
/* Random small clusters and gangs that ask for everything at once, a few thousand of them, against rules that
 * are written down once more here: nothing is held twice or beyond what there is, every gang is whole and
 * where it may be, clones give the same answers, what is given back is free again. And what did not fit would
 * not have fitted: exactly for one shape; for several, a search of all ways finds one so rarely
 * (MISSES_PERMILLE). */
#include "masterd/sched/sched.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "tests/kit/random.h"

#define SEEDS 2500u
#define NODES 6u
#define GANGS 10u
#define SHAPES 3u
#define GIB (UINT64_C(1) << 30)
#define MISSES_PERMILLE 20u

static bool chance(uint32_t one_in) {
        return random_below(one_in) == 0;
}

static const char *const constraint_texts[] = { "ssd",     "!ssd",          "zone=a",
                                                "zone!=a", "zone in (a,b)", "rack notin (r1,r2)" };
static struct constraint *constraints[ELEMENTSOF(constraint_texts)];
static const char *const levels[] = { "switch", "rack" };

struct machine {
        struct sched_capacity capacity;
        char labels[5][24];
        const char *label_list[5];
        size_t n_labels;
        struct sched_gpu gpus[4];
        struct sched_cpuset numa[2];
        size_t n_numa;
};

struct held_gang {
        struct sched_shape shapes[SHAPES];
        const struct constraint *required[SHAPES][2];
        struct sched_preference preferred[SHAPES][2];
        struct sched_amount amount[SHAPES];
        uint32_t present[SHAPES][16];
        struct sched_gang gang;
        struct sched_placement placement, more; /* what was placed first, and what came to it later */
};

struct world {
        struct sched *s;
        struct machine machines[NODES];
        uint32_t n;
        struct held_gang gangs[GANGS];
        uint64_t licences;
};

/* ---- what there is ---- */

static void add_label(struct machine *m, const char *key, const char *value) {
        snprintf(m->labels[m->n_labels], sizeof(m->labels[0]), "%s=%s", key, value);
        m->label_list[m->n_labels] = m->labels[m->n_labels];
        m->n_labels++;
}

static void random_machine(struct machine *m) {
        static const char *const names[][3] = { { "a", "b", "c" },
                                                { "r1", "r2", "r3" },
                                                { "s1", "s2", "s3" } };
        uint32_t cpus = 2 + random_below(7);

        *m = (struct machine){ .capacity = { .cpu_milli = cpus * 1000,
                                             .memory = (4 + random_below(28)) * GIB,
                                             .gpus = chance(3) ? random_below(5) : 0,
                                             .port_first = 30000,
                                             .port_last = 30011,
                                             .executors = 12,
                                             .shm = random_below(4) * GIB } };
        if (chance(2))
                add_label(m, "ssd", "");
        if (!chance(4))
                add_label(m, "zone", names[0][random_below(3)]);
        if (!chance(6)) {
                add_label(m, "rack", names[1][random_below(2)]);
                if (!chance(6))
                        add_label(m, "switch", names[2][random_below(2)]);
        }
        for (uint32_t i = 0; i < m->capacity.gpus; i++)
                m->gpus[i] = (struct sched_gpu){ .model = chance(2) ? "H100" : "A100",
                                                 .memory_mib = chance(2) ? 40960 : 81920,
                                                 .mig = chance(5) ? "1g.10gb" : NULL,
                                                 .numa = random_below(2) };
        m->n_numa = chance(5) ? 0 : 1 + random_below(2);
        for (uint32_t i = 0; i < cpus && m->n_numa > 0; i++)
                m->numa[i % m->n_numa].bits[i / 3] |= UINT64_C(1) << (i % 3 * 20); /* in several words */
}

static void make_world(struct world *w) {
        uint32_t slot, index;

        *w = (struct world){ .n = 1 + random_below(NODES), .licences = random_below(8) };
        assert_int_equal(sched_new(&w->s), 0);
        assert_int_equal(sched_consumable_set(w->s, "matlab", w->licences, &index), 0);
        if (chance(2))
                assert_int_equal(sched_topology_set(w->s, levels, 2), 0);
        for (uint32_t i = 0; i < w->n; i++) {
                struct machine *m = &w->machines[i];
                random_machine(m);
                assert_int_equal(sched_node_add(w->s, &m->capacity, &slot), 0);
                assert_int_equal(slot, i);
                assert_int_equal(sched_node_describe(w->s, slot,
                                                     &(struct sched_description){ m->label_list, m->n_labels,
                                                                                  m->gpus, m->capacity.gpus,
                                                                                  m->numa, m->n_numa }),
                                 0);
        }
        assert_int_equal(sched_topology_set(w->s, levels, 2), 0); /* before the nodes or behind them */
}

/* ---- what is asked for ---- */

static void random_shape(struct held_gang *g, uint32_t i) {
        struct sched_shape *h = &g->shapes[i];
        uint32_t n = 1 + random_below(3);

        *h = (struct sched_shape){ .min = n,
                                   .max = n + (chance(4) ? random_below(3) : 0),
                                   .cpu_milli = 500 * random_below(8),
                                   .memory = random_below(6) * GIB,
                                   .gpus = chance(4) ? 1 + random_below(2) : 0,
                                   .ports = random_below(2),
                                   .max_per_node = chance(5) ? 1 + random_below(2) : 0,
                                   .shm = chance(5) ? GIB * (1 + random_below(2)) : 0,
                                   .required = g->required[i],
                                   .preferred = g->preferred[i],
                                   .amounts = &g->amount[i],
                                   .n_amounts = chance(5),
                                   .worst = chance(5) };
        h->n_required = chance(3) ? 1 + random_below(2) : 0;
        h->n_preferred = chance(4) ? 1 + random_below(2) : 0;
        for (size_t k = 0; k < 2; k++) {
                g->required[i][k] = constraints[random_below(ELEMENTSOF(constraints))];
                g->preferred[i][k] =
                        (struct sched_preference){ constraints[random_below(ELEMENTSOF(constraints))],
                                                   1 + random_below(9) };
        }
        g->amount[i] = (struct sched_amount){ 0, 1 + random_below(3) };
        if (h->gpus > 0 && chance(2))
                h->gpu = (struct sched_gpu_want){ .model = chance(2) ? "h100" : NULL,
                                                  .memory_mib = chance(3) ? 50000 : 0,
                                                  .mig = chance(3) ? "1g.10gb" : NULL };
        if (chance(5)) {
                h->exclusive_cpus = true;
                h->cpu_milli = 1000 * (1 + random_below(3));
        }
        if (chance(3))
                h->numa = (uint8_t)random_below(3);
}

static void random_gang(struct held_gang *g, uint64_t id) {
        *g = (struct held_gang){ .gang = { .shapes = g->shapes,
                                           .n_shapes = 1 + random_below(SHAPES),
                                           .topology = (uint8_t)(chance(2) ? random_below(4) : 0),
                                           .level = random_below(2),
                                           .whole_hosts = chance(5) ? id : 0 } };
        for (uint32_t i = 0; i < g->gang.n_shapes; i++) {
                random_shape(g, i);
                if (chance(5))
                        g->shapes[i].apart = UINT64_C(1) << random_below((uint32_t)g->gang.n_shapes);
                if (i > 0 && chance(5))
                        g->shapes[i].near = UINT64_C(1) << random_below(i);
        }
}

/* ---- the rules ---- */

static bool meets(const struct machine *m, const struct sched_shape *h) {
        for (size_t i = 0; i < h->n_required; i++)
                if (!constraint_met(h->required[i], m->label_list, m->n_labels))
                        return false;
        return true;
}

static uint64_t gpus_that_do(const struct machine *m, const struct sched_shape *h) {
        uint64_t gpus = 0;

        for (uint32_t i = 0; i < m->capacity.gpus; i++) {
                const struct sched_gpu *g = &m->gpus[i];
                bool part = g->mig != NULL, wanted = h->gpu.mig != NULL;
                gpus |= (uint64_t)(part == wanted && g->memory_mib >= h->gpu.memory_mib &&
                                   (!h->gpu.model || g->model[0] == (h->gpu.model[0] & ~0x20)))
                        << i;
        }
        return gpus;
}

static uint32_t size_of(const struct sched_cpuset *c) {
        uint32_t n = 0;

        for (size_t i = 0; i < ELEMENTSOF(c->bits); i++)
                n += (uint32_t)__builtin_popcountll(c->bits[i]);
        return n;
}

static struct sched_cpuset without(const struct sched_cpuset *a, const struct sched_cpuset *b) {
        struct sched_cpuset c;

        for (size_t i = 0; i < ELEMENTSOF(c.bits); i++)
                c.bits[i] = a->bits[i] & ~b->bits[i];
        return c;
}

static uint64_t gpus_of(const struct machine *m, size_t numa) {
        uint64_t gpus = 0;

        for (uint32_t i = 0; i < m->capacity.gpus; i++)
                gpus |= (uint64_t)((m->gpus[i].numa < m->n_numa ? m->gpus[i].numa : 0) == numa) << i;
        return gpus;
}

static void check_item(const struct world *w, const struct sched_shape *h, const struct sched_hold *hold) {
        const struct machine *m = &w->machines[hold->slot];
        bool aligned = m->n_numa == 0;

        assert_true(meets(m, h));
        assert_true(hold->cpu_milli == h->cpu_milli && hold->memory == h->memory && hold->shm == h->shm);
        assert_int_equal(hold->n_ports, h->ports);
        assert_int_equal(hold->n_amounts, h->n_amounts);
        assert_int_equal(__builtin_popcountll(hold->gpus), h->gpus);
        assert_true((hold->gpus & ~gpus_that_do(m, h)) == 0);
        assert_int_equal(hold->cpus != NULL, h->exclusive_cpus);
        if (hold->cpus)
                assert_int_equal(size_of(hold->cpus), h->cpu_milli / 1000);
        for (size_t i = 0; i < m->n_numa; i++) {
                struct sched_cpuset elsewhere =
                        hold->cpus ? without(hold->cpus, &m->numa[i]) : (struct sched_cpuset){};
                aligned |= (hold->gpus & ~gpus_of(m, i)) == 0 && size_of(&elsewhere) == 0;
        }
        if (h->numa == SCHED_NUMA_REQUIRE)
                assert_true(aligned);
}

/* Both of what came first and what came later. */
static size_t n_items(const struct held_gang *g) {
        return g->placement.n + g->more.n;
}

static const struct sched_item *item(const struct held_gang *g, size_t i) {
        return i < g->placement.n ? &g->placement.items[i] : &g->more.items[i - g->placement.n];
}

static uint32_t count_on(const struct held_gang *g, uint32_t shape, uint32_t slot) {
        uint32_t n = 0;

        for (size_t i = 0; i < n_items(g); i++)
                n += item(g, i)->shape == shape && item(g, i)->hold.slot == slot;
        return n;
}

static void check_gang(const struct world *w, const struct held_gang *g) {
        uint32_t domain = 0;

        for (size_t i = 0; i < n_items(g); i++) {
                const struct sched_item *t = item(g, i);
                const struct sched_shape *h = &g->shapes[t->shape];
                uint32_t d = sched_node_domain(w->s, t->hold.slot, g->gang.level);
                check_item(w, h, &t->hold);
                assert_true(t->hold.owner == g->gang.whole_hosts);
                if (h->max_per_node > 0)
                        assert_true(count_on(g, t->shape, t->hold.slot) <= h->max_per_node);
                for (uint32_t k = 0; k < g->gang.n_shapes; k++) {
                        uint32_t there = count_on(g, k, t->hold.slot);
                        if (h->apart >> k & 1)
                                assert_int_equal(there, k == t->shape);
                        if (h->near >> k & 1)
                                assert_true(there > 0);
                }
                if (g->gang.topology == SCHED_REQUIRE) {
                        assert_true(d != 0 && (domain == 0 || d == domain));
                        domain = d;
                }
        }
}

/* All gangs together against what there is, and against what the scheduler says. */
static void check_world(const struct world *w) {
        uint64_t licences = 0, said, total;
        const char *name;

        for (uint32_t slot = 0; slot < w->n; slot++) {
                const struct machine *m = &w->machines[slot];
                struct sched_usage want = { .capacity = m->capacity, .usable = true }, got;
                uint64_t ports = 0;
                for (size_t g = 0; g < GANGS; g++)
                        for (size_t i = 0; i < n_items(&w->gangs[g]); i++) {
                                const struct sched_hold *h = &item(&w->gangs[g], i)->hold;
                                if (h->slot != slot)
                                        continue;
                                assert_true(want.executors == 0 || want.owner == h->owner);
                                want.owner = h->owner;
                                want.executors++;
                                want.cpu_milli += h->cpu_milli;
                                want.memory += h->memory;
                                want.shm += h->shm;
                                assert_true((want.gpus & h->gpus) == 0);
                                want.gpus |= h->gpus;
                                for (size_t k = 0; h->cpus && k < ELEMENTSOF(want.cpus.bits); k++) {
                                        assert_true((want.cpus.bits[k] & h->cpus->bits[k]) == 0);
                                        want.cpus.bits[k] |= h->cpus->bits[k];
                                }
                                for (uint32_t k = 0; k < h->n_ports; k++) {
                                        assert_true(h->ports[k] >= 30000 && h->ports[k] <= 30011 &&
                                                    !(ports >> (h->ports[k] - 30000) & 1));
                                        ports |= UINT64_C(1) << (h->ports[k] - 30000);
                                        want.ports++;
                                }
                                licences += h->n_amounts > 0 ? h->amounts[0].n : 0;
                        }
                assert_int_equal(sched_node_usage(w->s, slot, &got), 0);
                assert_true(got.cpu_milli == want.cpu_milli && got.memory == want.memory &&
                            got.shm == want.shm && got.gpus == want.gpus && got.ports == want.ports &&
                            got.executors == want.executors && got.owner == want.owner);
                assert_memory_equal(&got.cpus, &want.cpus, sizeof(got.cpus));
                assert_true(got.cpu_milli <= m->capacity.cpu_milli && got.memory <= m->capacity.memory &&
                            got.shm <= m->capacity.shm && got.executors <= m->capacity.executors);
        }
        assert_int_equal(sched_consumable_get(w->s, 0, &name, &total, &said), 0);
        assert_true(licences == said && said <= w->licences && total == w->licences);
}

/* ---- what would fit ---- */

static uint32_t least(uint32_t a, uint64_t have, uint64_t need) {
        return need == 0 ? a : (uint32_t)MIN((uint64_t)a, have / need);
}

/* How many of a shape fit on a node as it is. */
static uint32_t room_for(const struct world *w, const struct held_gang *g, uint32_t shape, uint32_t slot) {
        const struct sched_shape *h = &g->shapes[shape];
        const struct machine *m = &w->machines[slot];
        const struct sched_capacity *c = &m->capacity;
        uint32_t k, by_numa = 0, cpus = 0;
        struct sched_usage u;
        uint64_t gpus;

        assert_int_equal(sched_node_usage(w->s, slot, &u), 0);
        if (!meets(m, h) || u.owner != 0 || (g->gang.whole_hosts != 0 && u.executors > 0))
                return 0;
        k = c->executors - u.executors;
        k = h->max_per_node > 0 ? MIN(k, h->max_per_node) : k;
        k = h->apart >> shape & 1 ? MIN(k, 1u) : k;
        k = least(k, c->cpu_milli - u.cpu_milli, h->cpu_milli);
        k = least(k, c->memory - u.memory, h->memory);
        k = least(k, c->shm - u.shm, h->shm);
        k = least(k, 12 - u.ports, h->ports);
        gpus = gpus_that_do(m, h) & ~u.gpus;
        k = least(k, (uint64_t)__builtin_popcountll(gpus), h->gpus);
        for (size_t i = 0; i < m->n_numa; i++) {
                struct sched_cpuset free_cpus = without(&m->numa[i], &u.cpus);
                uint32_t here = size_of(&free_cpus);
                cpus += here;
                here = least(k, here, h->exclusive_cpus ? h->cpu_milli / 1000 : 0);
                by_numa += least(here, (uint64_t)__builtin_popcountll(gpus & gpus_of(m, i)), h->gpus);
        }
        k = least(k, cpus, h->exclusive_cpus ? h->cpu_milli / 1000 : 0);
        if (h->numa == SCHED_NUMA_REQUIRE && m->n_numa > 0 && (h->exclusive_cpus || h->gpus > 0))
                k = MIN(k, by_numa);
        return k;
}

static bool one_shape_fits(const struct world *w, const struct held_gang *g) {
        const struct sched_shape *h = &g->shapes[0];
        uint32_t total = 0, in_domain[16] = {}, best = 0;
        uint64_t said, all;
        const char *name;

        for (uint32_t i = 0; i < w->n; i++) {
                uint32_t k = room_for(w, g, 0, i), d = sched_node_domain(w->s, i, g->gang.level);
                total += k;
                if (d > 0)
                        in_domain[d] += k;
        }
        for (uint32_t d = 1; d < ELEMENTSOF(in_domain); d++)
                best = MAX(best, in_domain[d]);
        assert_int_equal(sched_consumable_get(w->s, 0, &name, &all, &said), 0);
        if (h->n_amounts > 0 && (all - said) / h->amounts[0].n < h->min)
                return false;
        return (g->gang.topology == SCHED_REQUIRE ? best : total) >= h->min;
}

/* Tries all ways for several shapes, one executor after the other, on a clone, by holding them. GPUs and CPUs
 * have numbers, so gangs with these are left out. */
static bool some_way(const struct world *w, struct sched *s, const struct held_gang *g, uint32_t shape,
                     uint32_t member, uint32_t (*there)[NODES], uint32_t domain) {
        const struct sched_shape *h = &g->shapes[shape];

        if (shape == g->gang.n_shapes) { /* all are placed: near is about the whole */
                for (uint32_t i = 0; i < g->gang.n_shapes; i++)
                        for (uint32_t slot = 0; slot < w->n; slot++)
                                for (uint32_t k = 0; k < i; k++)
                                        if ((g->shapes[i].near >> k & 1) && there[i][slot] > 0 &&
                                            there[k][slot] == 0)
                                                return false;
                return true;
        }
        if (member == h->min)
                return some_way(w, s, g, shape + 1, 0, there, domain);
        for (uint32_t slot = 0; slot < w->n; slot++) {
                const struct machine *m = &w->machines[slot];
                uint32_t d = sched_node_domain(w->s, slot, g->gang.level), mine = 0;
                struct sched_hold hold = { .slot = slot,
                                           .cpu_milli = h->cpu_milli,
                                           .memory = h->memory,
                                           .shm = h->shm,
                                           .amounts = h->amounts,
                                           .n_amounts = (uint32_t)h->n_amounts,
                                           .owner = g->gang.whole_hosts };
                struct sched_usage u;
                uint64_t held, total;
                const char *name;
                bool apart = false, found;
                for (uint32_t k = 0; k < g->gang.n_shapes; k++) {
                        mine += there[k][slot];
                        apart |= there[k][slot] > 0 &&
                                 ((h->apart >> k & 1) || (g->shapes[k].apart >> shape & 1));
                }
                (void)sched_node_usage(s, slot, &u);
                (void)sched_consumable_get(s, 0, &name, &total, &held);
                if (apart || !meets(m, h) || (u.owner != 0 && mine == 0) ||
                    (g->gang.whole_hosts != 0 && u.executors > mine) ||
                    (h->max_per_node > 0 && there[shape][slot] >= h->max_per_node) ||
                    (g->gang.topology == SCHED_REQUIRE && (d == 0 || (domain != 0 && d != domain))) ||
                    u.cpu_milli + h->cpu_milli > m->capacity.cpu_milli ||
                    u.memory + h->memory > m->capacity.memory || u.shm + h->shm > m->capacity.shm ||
                    u.executors >= m->capacity.executors || u.ports + h->ports > 12 ||
                    (h->n_amounts > 0 && held + h->amounts[0].n > total))
                        continue;
                hold.n_ports = 0; /* there are 12 for 12 executors with one each */
                if (sched_reserve(s, &hold) != 0)
                        continue;
                there[shape][slot]++;
                found = some_way(w, s, g, shape, member + 1, there,
                                 g->gang.topology == SCHED_REQUIRE ? d : domain);
                there[shape][slot]--;
                sched_release(s, &hold);
                if (found)
                        return true;
        }
        return false;
}

static bool numbered(const struct held_gang *g) {
        for (uint32_t i = 0; i < g->gang.n_shapes; i++)
                if (g->shapes[i].gpus > 0 || g->shapes[i].exclusive_cpus)
                        return true;
        return false;
}

/* ---- together ---- */

struct counts {
        unsigned placed, refused, searched, missed, more;
};

static void same_placement(const struct sched_placement *a, const struct sched_placement *b) {
        assert_int_equal(a->n, b->n);
        for (size_t i = 0; i < a->n; i++) {
                const struct sched_hold *x = &a->items[i].hold, *y = &b->items[i].hold;
                assert_true(x->slot == y->slot && x->gpus == y->gpus && x->n_ports == y->n_ports &&
                            a->items[i].shape == b->items[i].shape &&
                            a->items[i].member == b->items[i].member);
                assert_true(!x->cpus || memcmp(x->cpus, y->cpus, sizeof(*x->cpus)) == 0);
                assert_true(x->n_ports == 0 ||
                            memcmp(x->ports, y->ports, x->n_ports * sizeof(*x->ports)) == 0);
        }
}

static void try_gang(struct world *w, struct held_gang *g, struct counts *c) {
        _cleanup_(sched_free_p) struct sched *clone = NULL;
        _cleanup_(sched_placement_done) struct sched_placement again = {};
        uint32_t there[SHAPES][NODES] = {};
        char text[SCHED_NO_FIT_TEXT_MAX];
        struct sched_no_fit why;
        int r;

        assert_int_equal(sched_clone(w->s, &clone), 0);
        r = sched_place(w->s, &g->gang, &g->placement, &why);
        assert_int_equal(sched_place(clone, &g->gang, &again, NULL), r);
        if (r == 0) {
                uint32_t n[SHAPES] = {};
                same_placement(&g->placement, &again);
                for (size_t i = 0; i < g->placement.n; i++)
                        assert_int_equal(g->placement.items[i].member, n[g->placement.items[i].shape]++);
                for (uint32_t i = 0; i < g->gang.n_shapes; i++)
                        assert_true(n[i] >= g->shapes[i].min && n[i] <= g->shapes[i].max);
                c->placed++;
                return;
        }
        assert_int_equal(r, SCHED_E_NO_FIT);
        assert_true(*sched_no_fit_text(&why, text, sizeof(text)));
        c->refused++;
        if (g->gang.n_shapes == 1)
                assert_false(one_shape_fits(w, g));
        else if (!numbered(g)) {
                c->searched++;
                c->missed += some_way(w, clone, g, 0, 0, there, 0);
        }
}

/* One more of each shape for a gang that holds something. */
static void try_more(struct world *w, struct held_gang *g, struct counts *c) {
        uint32_t min[SHAPES], max[SHAPES];

        for (uint32_t i = 0; i < g->gang.n_shapes; i++) {
                struct sched_shape *h = &g->shapes[i];
                min[i] = h->min;
                max[i] = h->max;
                h->min = i == 0;
                h->max = 1;
                h->n_present = 0;
                h->present = g->present[i];
                for (size_t k = 0; k < g->placement.n; k++)
                        if (g->placement.items[k].shape == i)
                                g->present[i][h->n_present++] = g->placement.items[k].hold.slot;
        }
        c->more += sched_place(w->s, &g->gang, &g->more, NULL) == 0;
        for (uint32_t i = 0; i < g->gang.n_shapes; i++) {
                g->shapes[i].min = min[i];
                g->shapes[i].max = max[i];
                g->shapes[i].n_present = 0;
        }
}

static void drop(struct world *w, struct held_gang *g) {
        for (size_t i = n_items(g); i-- > 0;)
                sched_release(w->s, &item(g, i)->hold);
        sched_placement_done(&g->placement);
        sched_placement_done(&g->more);
}

static void test_random(void **state) {
        struct counts c = {};
        uint64_t first = now_real();

        print_message("first seed %llu\n", (unsigned long long)first);
        for (uint64_t k = 0; k < SEEDS; k++) {
                struct world w;
                seed = first + k;
                make_world(&w);
                for (unsigned step = 0; step < 14; step++) {
                        struct held_gang *g = &w.gangs[random_below(GANGS)];
                        if (n_items(g) == 0) {
                                random_gang(g, 1 + (uint64_t)(g - w.gangs));
                                try_gang(&w, g, &c);
                        } else if (g->more.n == 0 && chance(2))
                                try_more(&w, g, &c);
                        else
                                drop(&w, g);
                        check_gang(&w, g);
                        check_world(&w);
                }
                for (size_t i = 0; i < GANGS; i++)
                        drop(&w, &w.gangs[i]);
                check_world(&w);
                sched_free(w.s);
        }
        print_message(
                "%u placed, %u refused, %u extended; a search found a way for %u of %u with several shapes\n",
                c.placed, c.refused, c.more, c.missed, c.searched);
        assert_true(c.placed > SEEDS && c.refused > SEEDS && c.more > SEEDS / 10 && c.searched > SEEDS / 10);
        assert_true(c.missed * 1000 <= c.searched * MISSES_PERMILLE);
}

/* What fits on an empty cluster is told of the same one when it is full, and when no node of it may be used.
 */
static void test_ever(void **state) {
        uint32_t n_fit = 0, n_not = 0, n_short = 0;

        for (uint64_t k = 0; k < SEEDS; k++) {
                struct sched_placement p = { 0 };
                struct sched_ever ever;
                struct held_gang *g;
                struct world w;
                uint32_t used = 0;
                int fits;

                seed = 77000 + k;
                make_world(&w);
                g = &w.gangs[0];
                random_gang(g, 1);
                g->gang = (struct sched_gang){ .shapes = g->shapes, .n_shapes = 1 };
                g->shapes[0].n_amounts = 0;
                g->shapes[0].apart = 0;
                g->shapes[0].numa = 0;
                g->shapes[0].max = g->shapes[0].min += random_below(6);
                if (chance(4)) {
                        g->shapes[0].per_node = 1 + random_below(2);
                        g->shapes[0].max = g->shapes[0].min *= g->shapes[0].per_node;
                        g->shapes[0].max_per_node = 0;
                }
                fits = sched_place(w.s, &g->gang, &p, NULL);
                assert_true(fits == 0 || fits == SCHED_E_NO_FIT);
                for (size_t i = 0; i < GANGS && used < 3; i++, used++) {
                        struct sched_gang filler = {
                                .shapes = &(struct sched_shape){ .min = 1, .max = 9, .cpu_milli = 500 },
                                .n_shapes = 1
                        };
                        struct sched_placement f = { 0 };
                        if (sched_place(w.s, &filler, &f, NULL) == 0)
                                sched_placement_done(&f);
                }
                for (uint32_t i = 0; i < w.n; i++)
                        sched_node_set_usable(w.s, i, chance(2));
                assert_int_equal(sched_shape_ever(w.s, &g->shapes[0], &ever), 0);
                assert_int_equal(ever.fits == g->shapes[0].min, fits == 0);
                assert_true(ever.fits <= g->shapes[0].min && (ever.fits == 0 || ever.short_ == 0));
                n_fit += fits == 0;
                n_not += fits != 0;
                n_short += ever.short_ != 0;
                sched_placement_done(&p);
                sched_free(w.s);
        }
        assert_true(n_fit > SEEDS / 4 && n_not > SEEDS / 10 && n_short > SEEDS / 20);
}

static int setup(void **state) {
        for (size_t i = 0; i < ELEMENTSOF(constraints); i++)
                assert_int_equal(constraint_parse(constraint_texts[i], &constraints[i], NULL), 0);
        return 0;
}

static int teardown(void **state) {
        for (size_t i = 0; i < ELEMENTSOF(constraints); i++)
                constraints[i] = constraint_free(constraints[i]);
        return 0;
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_random),
                cmocka_unit_test(test_ever),
        };
        return cmocka_run_group_tests(tests, setup, teardown);
}
