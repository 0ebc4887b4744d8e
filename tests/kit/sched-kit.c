/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/kit/sched-kit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

struct sched *sched_kit_cluster(uint32_t n, uint32_t per_switch) {
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

struct sched_shape sched_kit_cpus(uint32_t n, uint32_t each) {
        return (struct sched_shape){ .min = n, .max = n, .cpu_milli = each * 1000 };
}

int sched_kit_place(struct sched *s, const struct sched_gang *g, struct sched_placement *ret) {
        struct sched_no_fit why;

        return sched_place(s, g, ret, &why);
}

void sched_kit_release(struct sched *s, struct sched_placement *p) {
        for (size_t i = 0; i < p->n; i++)
                sched_release(s, &p->items[i].hold);
        sched_placement_done(p);
}

void sched_kit_occupy(struct sched *s, uint32_t slot, uint32_t n) {
        assert_int_equal(sched_reserve(s, &(struct sched_hold){ .slot = slot, .cpu_milli = n * 1000 }), 0);
}

uint32_t sched_kit_domains(const struct sched *s, const struct sched_placement *p, uint32_t level) {
        uint64_t seen = 0;

        for (size_t i = 0; i < p->n; i++)
                seen |= UINT64_C(1) << sched_node_domain(s, p->items[i].hold.slot, level);
        return (uint32_t)__builtin_popcountll(seen);
}
