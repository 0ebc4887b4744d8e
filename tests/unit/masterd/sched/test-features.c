/* SPDX-License-Identifier: Apache-2.0 */
/* Where executors go that ask for more than CPUs and memory: what is chosen, not only that it is allowed (for
 * that, test-place-random.c). */
#include "masterd/sched/sched.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"

#define GIB (UINT64_C(1) << 30)

/* Nodes of 8 CPUs; node i is of switch i / per_switch, two switches to a rack. */
static struct sched *cluster(uint32_t n, uint32_t per_switch) {
        static const char *const levels[] = { "switch", "rack" };
        struct sched *s;

        assert_int_equal(sched_new(&s), 0);
        assert_int_equal(sched_topology_set(s, levels, 2), 0);
        for (uint32_t i = 0; i < n; i++) {
                struct sched_capacity c = { 8000, 64 * GIB, 0, 30000, 30999, 100, 8 * GIB };
                char texts[3][24];
                const char *labels[] = { texts[0], texts[1], texts[2] };
                uint32_t slot;
                snprintf(texts[0], sizeof(texts[0]), "host=n%u", i);
                snprintf(texts[1], sizeof(texts[1]), "switch=s%u", i / per_switch % 2);
                snprintf(texts[2], sizeof(texts[2]), "rack=r%u", i / per_switch / 2);
                assert_int_equal(sched_node_add(s, &c, &slot), 0);
                assert_int_equal(
                        sched_node_describe(s, slot,
                                            &(struct sched_description){ .labels = labels, .n_labels = 3 }),
                        0);
        }
        return s;
}

static struct sched_shape cpus(uint32_t n, uint32_t each) {
        return (struct sched_shape){ .min = n, .max = n, .cpu_milli = each * 1000 };
}

static int place(struct sched *s, const struct sched_gang *g, struct sched_placement *ret) {
        struct sched_no_fit why;

        return sched_place(s, g, ret, &why);
}

static void release(struct sched *s, struct sched_placement *p) {
        for (size_t i = 0; i < p->n; i++)
                sched_release(s, &p->items[i].hold);
        sched_placement_done(p);
}

static void occupy(struct sched *s, uint32_t slot, uint32_t n) {
        assert_int_equal(sched_reserve(s, &(struct sched_hold){ .slot = slot, .cpu_milli = n * 1000 }), 0);
}

static uint32_t domains_used(const struct sched *s, const struct sched_placement *p, uint32_t level) {
        uint64_t seen = 0;

        for (size_t i = 0; i < p->n; i++)
                seen |= UINT64_C(1) << sched_node_domain(s, p->items[i].hold.slot, level);
        return (uint32_t)__builtin_popcountll(seen);
}

/* s0 of rack r0 is another switch than s0 of r1. */
static void test_domains(void **state) {
        _cleanup_(sched_free_p) struct sched *s = cluster(8, 2);
        const char *labels[] = { "switch=s0" };

        assert_int_equal(sched_node_domain(s, 0, 0), sched_node_domain(s, 1, 0));
        assert_int_not_equal(sched_node_domain(s, 0, 0), sched_node_domain(s, 2, 0));
        assert_int_not_equal(sched_node_domain(s, 0, 0), sched_node_domain(s, 4, 0));
        assert_int_equal(sched_node_domain(s, 0, 1), sched_node_domain(s, 3, 1));
        assert_int_not_equal(sched_node_domain(s, 3, 1), sched_node_domain(s, 4, 1));
        assert_int_equal(sched_node_domain(s, 0, 2), 0);
        assert_int_equal(
                sched_node_describe(s, 0, &(struct sched_description){ .labels = labels, .n_labels = 1 }), 0);
        assert_int_equal(sched_node_domain(s, 0, 0), 0); /* no rack, so no switch of a rack */
}

static void test_pack(void **state) {
        _cleanup_(sched_free_p) struct sched *s = cluster(12, 3); /* 2 racks × 2 switches × 3 nodes */
        struct sched_shape h = cpus(6, 4);
        struct sched_gang g = { .shapes = &h, .n_shapes = 1, .topology = SCHED_PACK };
        struct sched_placement p;

        for (uint32_t i = 0; i < 6; i++) /* rack 0 is tight: half of each node */
                occupy(s, i, 4);
        occupy(s, 9, 8);
        assert_int_equal(place(s, &g, &p), 0); /* 3 whole nodes are only at switch 2 */
        assert_int_equal(domains_used(s, &p, 0), 1);
        assert_int_equal(sched_node_domain(s, p.items[0].hold.slot, 0), sched_node_domain(s, 6, 0));
        release(s, &p);
        h = cpus(5, 8);
        assert_int_equal(place(s, &g, &p), 0); /* one rack, two switches */
        assert_int_equal(domains_used(s, &p, 1), 1);
        assert_int_equal(domains_used(s, &p, 0), 2);
        release(s, &p);
        h = cpus(14, 4);
        g.level = 1;
        assert_int_equal(place(s, &g, &p), 0); /* both racks */
        assert_int_equal(domains_used(s, &p, 1), 2);
        release(s, &p);
}

static void test_require(void **state) {
        _cleanup_(sched_free_p) struct sched *s = cluster(12, 3);
        struct sched_shape shapes[2] = { cpus(5, 4), cpus(1, 4) };
        struct sched_gang g = { .shapes = shapes, .n_shapes = 2, .topology = SCHED_REQUIRE };
        uint32_t there[] = { 10 };
        struct sched_placement p;
        struct sched_no_fit why;
        char text[SCHED_NO_FIT_TEXT_MAX];

        assert_int_equal(place(s, &g, &p), 0);
        assert_int_equal(domains_used(s, &p, 0), 1);
        release(s, &p);
        shapes[1].present = there; /* stays where it is */
        shapes[1].n_present = 1;
        assert_int_equal(place(s, &g, &p), 0);
        for (size_t i = 0; i < p.n; i++)
                assert_int_equal(sched_node_domain(s, p.items[i].hold.slot, 0), sched_node_domain(s, 10, 0));
        release(s, &p);
        shapes[1].n_present = 0;
        shapes[0].min = shapes[0].max = 7;
        assert_int_equal(sched_place(s, &g, &p, &why), SCHED_E_NO_FIT);
        assert_int_equal(why.scarce, SCHED_TOPOLOGY);
        assert_true(why.never);
        assert_non_null(strstr(sched_no_fit_text(&why, text, sizeof(text)), "one domain of the topology"));
        g.level = 1;
        assert_int_equal(place(s, &g, &p), 0);
        release(s, &p);
        g.level = 7;
        assert_int_equal(place(s, &g, &p), SCHED_E_NO_FIT);
}

static void test_spread(void **state) {
        _cleanup_(sched_free_p) struct sched *s = cluster(12, 3);
        struct sched_shape h = cpus(8, 1);
        struct sched_gang g = { .shapes = &h, .n_shapes = 1, .topology = SCHED_SPREAD };
        uint32_t in[16] = {};
        struct sched_placement p;

        assert_int_equal(place(s, &g, &p), 0);
        for (size_t i = 0; i < p.n; i++)
                in[sched_node_domain(s, p.items[i].hold.slot, 0)]++;
        for (uint32_t i = 0; i < 4; i++)
                assert_int_equal(in[sched_node_domain(s, i * 3, 0)], 2);
        release(s, &p);
        h.max = 200; /* elastic: all that fits */
        assert_int_equal(place(s, &g, &p), 0);
        assert_int_equal(p.n, 96);
        release(s, &p);
        h = cpus(12, 1);
        h.per_node = 3;
        g.level = 1;
        assert_int_equal(place(s, &g, &p), 0);
        assert_int_equal(domains_used(s, &p, 1), 2);
        release(s, &p);
        /* Over hosts, whatever levels there are: none gets a second one while another has room and none. */
        h = cpus(18, 1);
        g.level = SCHED_LEVEL_NODE;
        memset(in, 0, sizeof(in));
        assert_int_equal(place(s, &g, &p), 0);
        for (size_t i = 0; i < p.n; i++)
                in[p.items[i].hold.slot]++;
        for (uint32_t i = 0; i < 12; i++)
                assert_in_range(in[i], 1, 2);
        release(s, &p);
        /* Hosts that have no more room do not hold it up. */
        h = cpus(96, 1);
        assert_int_equal(place(s, &g, &p), 0);
        release(s, &p);
}

static void test_preferences(void **state) {
        _cleanup_(sched_free_p) struct sched *s = cluster(12, 3);
        _cleanup_(constraint_free_p) struct constraint *r1 = NULL, *s1 = NULL, *n4 = NULL, *none = NULL;
        struct sched_preference preferred[3];
        struct sched_shape h = cpus(1, 1);
        struct sched_gang g = { .shapes = &h, .n_shapes = 1 };
        const struct constraint *required[1];
        struct sched_placement p;
        struct sched_no_fit why;
        char text[SCHED_NO_FIT_TEXT_MAX];

        assert_int_equal(constraint_parse("rack=r1", &r1, NULL), 0);
        assert_int_equal(constraint_parse("switch=s1", &s1, NULL), 0);
        assert_int_equal(constraint_parse("host=n4", &n4, NULL), 0);
        assert_int_equal(constraint_parse("floor=3", &none, NULL), 0);
        preferred[0] = (struct sched_preference){ r1, 10 };
        preferred[1] = (struct sched_preference){ s1, 5 };
        preferred[2] = (struct sched_preference){ n4, 4 };
        h.preferred = preferred;
        h.n_preferred = 2;
        occupy(s, 0, 7); /* the best fit otherwise */
        assert_int_equal(place(s, &g, &p), 0);
        assert_int_equal(p.items[0].hold.slot, 9); /* both */
        release(s, &p);
        for (uint32_t i = 9; i < 12; i++)
                occupy(s, i, 8);
        assert_int_equal(place(s, &g, &p), 0);
        assert_int_equal(p.items[0].hold.slot, 6); /* the heavier */
        release(s, &p);
        for (uint32_t i = 6; i < 9; i++)
                occupy(s, i, 8);
        h.n_preferred = 3;
        assert_int_equal(place(s, &g, &p), 0);
        assert_int_equal(p.items[0].hold.slot, 4);
        release(s, &p);
        h.min = h.max = 3; /* they only order */
        h.max_per_node = 1;
        assert_int_equal(place(s, &g, &p), 0);
        assert_int_equal(p.items[0].hold.slot, 4);
        release(s, &p);
        required[0] = none;
        h.required = required;
        h.n_required = 1;
        assert_int_equal(sched_place(s, &g, &p, &why), SCHED_E_NO_FIT);
        assert_int_equal(why.unmatched, 12);
        assert_string_equal(sched_no_fit_text(&why, text, sizeof(text)),
                            "none of 12 usable nodes meets its constraints");
        assert_int_equal(sched_constraint_count(s, r1), 6);
        assert_int_equal(sched_constraint_count(s, none), 0);
        assert_string_equal(sched_node_label(s, 4, "host"), "n4");
        assert_null(sched_node_label(s, 4, "floor"));
        assert_null(sched_node_label(s, 99, "host"));
}

static void test_worst(void **state) {
        _cleanup_(sched_free_p) struct sched *s = cluster(4, 1);
        struct sched_shape h = cpus(3, 1);
        struct sched_gang g = { .shapes = &h, .n_shapes = 1 };
        struct sched_placement p;

        h.worst = true;
        occupy(s, 0, 2);
        occupy(s, 1, 1);
        h.min = h.max = 1;
        assert_int_equal(place(s, &g, &p), 0);
        assert_int_equal(p.items[0].hold.slot, 2);
        release(s, &p);
        h.worst = false;
        assert_int_equal(place(s, &g, &p), 0);
        assert_int_equal(p.items[0].hold.slot, 0);
        release(s, &p);
}

/* 4 CPUs and 2 GPUs in each of two NUMA nodes. */
static struct sched *numa_node(void) {
        struct sched_gpu gpus[4] = { { "A100", 40960, NULL, 0 },
                                     { "A100", 40960, NULL, 0 },
                                     { "H100", 81559, NULL, 1 },
                                     { "H100", 81559, NULL, 1 } };
        struct sched_cpuset numa[2] = { { { 0x0f } }, { { 0xf0 } } };
        struct sched_capacity c = { 8000, 64 * GIB, 4, 30000, 30999, 100, 0 };
        struct sched *s;
        uint32_t slot;

        assert_int_equal(sched_new(&s), 0);
        assert_int_equal(sched_node_add(s, &c, &slot), 0);
        assert_int_equal(sched_node_describe(s, slot,
                                             &(struct sched_description){
                                                     .gpus = gpus, .n_gpus = 4, .numa = numa, .n_numa = 2 }),
                         0);
        return s;
}

static void test_numa(void **state) {
        _cleanup_(sched_free_p) struct sched *s = numa_node();
        struct sched_shape h = cpus(1, 3);
        struct sched_gang g = { .shapes = &h, .n_shapes = 1 };
        struct sched_placement p, q, o;

        h.exclusive_cpus = true;
        h.gpus = 1;
        h.gpu.model = "h100";
        h.numa = SCHED_NUMA_PREFER;
        assert_int_equal(place(s, &g, &p), 0);
        assert_int_equal(p.items[0].hold.gpus, 4);
        assert_int_equal(p.items[0].hold.cpus->bits[0], 0x70); /* those of its GPU */
        assert_int_equal(place(s, &g, &q), 0);
        assert_int_equal(q.items[0].hold.gpus, 8);
        assert_int_equal(q.items[0].hold.cpus->bits[0], 0x83); /* as many as are left there, and others */
        release(s, &q);
        h.numa = SCHED_NUMA_REQUIRE;
        assert_int_equal(place(s, &g, &q), SCHED_E_NO_FIT);
        h.cpu_milli = 1000;
        assert_int_equal(place(s, &g, &q), 0);
        assert_int_equal(q.items[0].hold.cpus->bits[0], 0x80);
        h.gpu.model = NULL; /* the one that is less worth */
        assert_int_equal(place(s, &g, &o), 0);
        assert_int_equal(o.items[0].hold.gpus, 1);
        assert_int_equal(o.items[0].hold.cpus->bits[0], 0x01);
        release(s, &o);
        release(s, &q);
        release(s, &p);
        h = cpus(1, 1); /* shared ones are counted together with these */
        h.min = h.max = 8;
        assert_int_equal(place(s, &g, &p), 0);
        h.min = h.max = 1;
        h.exclusive_cpus = true;
        assert_int_equal(place(s, &g, &q), SCHED_E_NO_FIT);
        release(s, &p);
        h.cpu_milli = 1500;
        assert_int_equal(place(s, &g, &q), -EINVAL);
}

static void test_parts(void **state) {
        _cleanup_(sched_free_p) struct sched *s = NULL;
        struct sched_gpu gpus[3] = { { "A100", 10240, "1g.10gb", 0 },
                                     { "A100", 10240, "1g.10gb", 0 },
                                     { "A100", 40960, NULL, 0 } };
        struct sched_capacity c = { 8000, 64 * GIB, 3, 30000, 30999, 100, 0 };
        struct sched_shape h = cpus(1, 1);
        struct sched_gang g = { .shapes = &h, .n_shapes = 1 };
        struct sched_placement p, q;
        uint32_t slot;

        assert_int_equal(sched_new(&s), 0);
        assert_int_equal(sched_node_add(s, &c, &slot), 0);
        assert_int_equal(
                sched_node_describe(s, slot, &(struct sched_description){ .gpus = gpus, .n_gpus = 3 }), 0);
        h.gpus = 1;
        assert_int_equal(place(s, &g, &p), 0);
        assert_int_equal(p.items[0].hold.gpus, 4); /* a part is no GPU */
        assert_int_equal(place(s, &g, &q), SCHED_E_NO_FIT);
        h.gpu.mig = "1g.10gb";
        h.gpus = 2;
        assert_int_equal(place(s, &g, &q), 0);
        assert_int_equal(q.items[0].hold.gpus, 3);
        release(s, &p);
        release(s, &q);
}

/* Two pairs that are joined, of neighbours or not: a pair is given out together, and a single one does not
 * tear a whole pair where one is torn already. */
static void test_links(void **state) {
        _cleanup_(sched_free_p) struct sched *s = NULL;
        struct sched_gpu gpus[4] = { { "A100", 40960, NULL, 0, .links = 1 << 2 },
                                     { "A100", 40960, NULL, 0, .links = 1 << 3 },
                                     { "A100", 40960, NULL, 0, .links = 1 << 0 },
                                     { "A100", 40960, NULL, 0, .links = 1 << 1 } };
        struct sched_capacity c = { 8000, 64 * GIB, 4, 30000, 30999, 100, 0 };
        struct sched_shape h = cpus(1, 1), two = cpus(2, 1);
        struct sched_gang g = { .shapes = &h, .n_shapes = 1 }, pair = { .shapes = &two, .n_shapes = 1 };
        struct sched_placement p, q;
        uint32_t slot;

        assert_int_equal(sched_new(&s), 0);
        assert_int_equal(sched_node_add(s, &c, &slot), 0);
        assert_int_equal(
                sched_node_describe(s, slot, &(struct sched_description){ .gpus = gpus, .n_gpus = 4 }), 0);
        h.gpus = 2;
        assert_int_equal(place(s, &g, &p), 0);
        assert_int_equal(p.items[0].hold.gpus, 5);
        release(s, &p);

        h.gpus = two.gpus = 1; /* two executors of a gang are as one */
        assert_int_equal(place(s, &pair, &p), 0);
        assert_int_equal(p.items[0].hold.gpus | p.items[1].hold.gpus, 5);
        release(s, &p);

        assert_int_equal(place(s, &g, &p), 0);
        assert_int_equal(p.items[0].hold.gpus, 1);
        assert_int_equal(place(s, &g, &q), 0);
        assert_int_equal(q.items[0].hold.gpus, 4); /* what the first has torn */
        release(s, &q);
        h.gpus = 2;
        assert_int_equal(place(s, &g, &q), 0);
        assert_int_equal(q.items[0].hold.gpus, 10);
        release(s, &p);
        release(s, &q);
}

static void test_whole_hosts(void **state) {
        _cleanup_(sched_free_p) struct sched *s = cluster(3, 1);
        struct sched_shape h = cpus(2, 3), small = cpus(1, 1);
        struct sched_gang g = { .shapes = &h, .n_shapes = 1, .whole_hosts = 7 },
                          other = { .shapes = &small, .n_shapes = 1 };
        uint32_t present[1];
        struct sched_placement p, q;
        struct sched_no_fit why;

        occupy(s, 0, 1);
        assert_int_equal(place(s, &g, &p), 0);
        assert_int_not_equal(p.items[0].hold.slot, 0);
        assert_int_equal(p.items[0].hold.slot, p.items[1].hold.slot);
        small.min = small.max = 16;
        assert_int_equal(sched_place(s, &other, &q, &why), SCHED_E_NO_FIT); /* 7 + 8 */
        small.min = small.max = 15;
        assert_int_equal(place(s, &other, &q), 0);
        h.min = h.max = 1; /* one more of the gang comes beside the others */
        h.cpu_milli = 2000;
        present[0] = p.items[0].hold.slot;
        h.present = present;
        h.n_present = 1;
        struct sched_placement more;
        assert_int_equal(place(s, &g, &more), 0);
        assert_int_equal(more.items[0].hold.slot, present[0]);
        release(s, &q);
        release(s, &p);
        small.min = small.max = 16;
        assert_int_equal(place(s, &other, &q), SCHED_E_NO_FIT); /* it still has its host */
        release(s, &more);
        assert_int_equal(place(s, &other, &q), 0);
        release(s, &q);
}

static void test_near_and_apart(void **state) {
        _cleanup_(sched_free_p) struct sched *s = cluster(4, 1);
        struct sched_shape shapes[2] = { cpus(2, 1), cpus(2, 6) };
        struct sched_gang g = { .shapes = shapes, .n_shapes = 2 };
        struct sched_placement p;

        occupy(s, 0, 6); /* where the small ones would go, were they alone */
        shapes[1].near = 1;
        assert_int_equal(place(s, &g, &p), 0);
        for (size_t i = 2; i < 4; i++)
                assert_true(p.items[i].hold.slot == p.items[0].hold.slot ||
                            p.items[i].hold.slot == p.items[1].hold.slot);
        release(s, &p);
        shapes[1].near = 0;
        shapes[1].apart = 3; /* from the small ones, and from each other */
        assert_int_equal(place(s, &g, &p), 0);
        assert_int_not_equal(p.items[2].hold.slot, p.items[3].hold.slot);
        for (size_t i = 0; i < 2; i++)
                for (size_t k = 2; k < 4; k++)
                        assert_int_not_equal(p.items[i].hold.slot, p.items[k].hold.slot);
        release(s, &p);
        shapes[0].near = 2;
        shapes[1] = cpus(2, 1);
        shapes[1].near = 1;
        assert_int_equal(place(s, &g, &p), -EINVAL); /* a circle */
}

static void test_consumables(void **state) {
        _cleanup_(sched_free_p) struct sched *s = cluster(4, 1);
        struct sched_amount amount = { .n = 3 };
        struct sched_shape h = cpus(2, 1);
        struct sched_gang g = { .shapes = &h, .n_shapes = 1 };
        struct sched_placement p, q;
        struct sched_no_fit why;
        uint64_t total, held;
        const char *name;

        assert_int_equal(sched_consumable_set(s, "matlab", 10, &amount.index), 0);
        assert_int_equal(sched_consumable_set(s, "matlab", 8, &amount.index), 0);
        h.amounts = &amount;
        h.n_amounts = 1;
        assert_int_equal(place(s, &g, &p), 0);
        assert_int_equal(sched_consumable_get(s, amount.index, &name, &total, &held), 0);
        assert_true(total == 8 && held == 6 && strcmp(name, "matlab") == 0);
        h.min = h.max = 1;
        assert_int_equal(sched_place(s, &g, &q, &why), SCHED_E_NO_FIT);
        assert_int_equal(why.scarce, SCHED_CONSUMABLES);
        assert_false(why.never);
        release(s, &p);
        h.min = h.max = 3;
        assert_int_equal(sched_place(s, &g, &q, &why), SCHED_E_NO_FIT);
        assert_true(why.never);
        h.min = 1; /* as many as there are licences */
        assert_int_equal(place(s, &g, &q), 0);
        assert_int_equal(q.n, 2);
        release(s, &q);
        assert_int_equal(sched_consumable_find(s, "maple", &amount.index), -ENOENT);
}

static void test_bad(void **state) {
        _cleanup_(sched_free_p) struct sched *s = cluster(2, 1);
        const char *twice[] = { "a=1", "a=2" }, *no_label[] = { "a b" }, *keys[] = { "rack", "a b" };
        struct sched_cpuset overlapping[2] = { { { 3 } }, { { 6 } } };
        struct sched_gpu long_name = {
                .model = "0123456789012345678901234567890123456789012345678901234567890123"
        };
        struct sched_shape h = cpus(1, 1);
        struct sched_gang g = { .shapes = &h, .n_shapes = 1 };
        struct sched_placement p;

        assert_int_equal(
                sched_node_describe(s, 0, &(struct sched_description){ .labels = twice, .n_labels = 2 }),
                -EINVAL);
        assert_int_equal(
                sched_node_describe(s, 0, &(struct sched_description){ .labels = no_label, .n_labels = 1 }),
                -EINVAL);
        assert_int_equal(
                sched_node_describe(s, 0, &(struct sched_description){ .numa = overlapping, .n_numa = 2 }),
                -EINVAL);
        assert_int_equal(
                sched_node_describe(s, 0, &(struct sched_description){ .gpus = &long_name, .n_gpus = 1 }),
                -EINVAL);
        assert_int_equal(sched_node_describe(s, 9, &(struct sched_description){}), -ENOENT);
        assert_string_equal(sched_node_label(s, 0, "host"), "n0"); /* nothing has changed */
        assert_int_equal(sched_topology_set(s, keys, 2), -EINVAL);
        assert_int_not_equal(sched_node_domain(s, 0, 1), 0);
        h.apart = 2;
        assert_int_equal(place(s, &g, &p), -EINVAL);
        h.apart = 0;
        h.near = 1;
        assert_int_equal(place(s, &g, &p), -EINVAL);
        h.near = 0;
        h.n_amounts = 1;
        h.amounts = &(struct sched_amount){ 3, 1 };
        assert_int_equal(place(s, &g, &p), -EINVAL);
        h.n_amounts = 0;
        g.topology = 9;
        assert_int_equal(place(s, &g, &p), -EINVAL);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_domains),
                cmocka_unit_test(test_pack),
                cmocka_unit_test(test_require),
                cmocka_unit_test(test_spread),
                cmocka_unit_test(test_preferences),
                cmocka_unit_test(test_worst),
                cmocka_unit_test(test_numa),
                cmocka_unit_test(test_parts),
                cmocka_unit_test(test_links),
                cmocka_unit_test(test_whole_hosts),
                cmocka_unit_test(test_near_and_apart),
                cmocka_unit_test(test_consumables),
                cmocka_unit_test(test_bad),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
