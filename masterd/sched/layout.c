/* SPDX-License-Identifier: Apache-2.0 */
/* Which GPUs and CPUs of a node an executor gets. Invariant: what layout_count() finds room for, that many
 * times layout_pick() succeeds. So counting is in closed form: an executor that has to be within one NUMA
 * node takes from that one alone, and for the others all CPUs are alike and all GPUs that will do are. */
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "lib/base/cleanup.h"
#include "masterd/sched/internal.h"

#define WORDS (SCHED_CPUS_MAX / 64)

void layout_unref(struct layout *l) {
        if (l && --l->refs == 0)
                free(l);
}

/* ---- what there is ---- */

static int copy_word(char *to, size_t size, const char *from) {
        size_t n = from ? strlen(from) : 0;

        if (n >= size)
                return -EINVAL;
        memcpy(to, from ?: "", n + 1);
        return 0;
}

static int fill_layout(struct layout *l, const struct sched_description *d) {
        const uint64_t all = l->n_gpus >= 64 ? UINT64_MAX : (UINT64_C(1) << l->n_gpus) - 1;
        struct sched_cpuset seen = {};
        bool any = false, complete = true;

        for (uint32_t i = 0; i < l->n_numa; i++) {
                l->numa[i] = d->numa[i];
                for (uint32_t w = 0; w < WORDS; w++) {
                        if (seen.bits[w] & d->numa[i].bits[w])
                                return -EINVAL;
                        seen.bits[w] |= d->numa[i].bits[w];
                        l->cpus_in[i] += (uint32_t)__builtin_popcountll(d->numa[i].bits[w]);
                        if (d->numa[i].bits[w])
                                l->words = MAX(l->words, w + 1);
                }
        }
        for (uint32_t i = 0; i < l->n_gpus; i++) {
                struct gpu_kind *k = &l->gpus[i];
                if (copy_word(k->model, sizeof(k->model), d->gpus[i].model) < 0 ||
                    copy_word(k->mig, sizeof(k->mig), d->gpus[i].mig) < 0)
                        return -EINVAL;
                k->memory_mib = d->gpus[i].memory_mib;
                k->numa = d->gpus[i].numa < l->n_numa ? d->gpus[i].numa : 0;
                if (k->mig[0])
                        l->parts |= UINT64_C(1) << i;
                l->gpus_of[k->numa] |= UINT64_C(1) << i;
                l->mixed |= i > 0 && k->memory_mib != l->gpus[0].memory_mib;
                k->links = d->gpus[i].links & all & ~(UINT64_C(1) << i);
                any |= k->links != 0;
                complete &= k->links == (all & ~(UINT64_C(1) << i));
        }
        l->linked = any && !complete && !l->mixed;
        return 0;
}

static bool same(const struct layout *a, const struct layout *b) {
        return a->n_gpus == b->n_gpus && a->n_numa == b->n_numa &&
               memcmp(a->numa, b->numa, a->n_numa * sizeof(*a->numa)) == 0 &&
               memcmp(a->gpus, b->gpus, a->n_gpus * sizeof(*a->gpus)) == 0;
}

int layout_get(struct sched *s, const struct sched_description *d, struct layout **ret) {
        struct layout *l;

        if (d->n_gpus > SCHED_GPUS_MAX || d->n_numa > SCHED_NUMA_MAX)
                return -EINVAL;
        l = calloc(1, sizeof(*l) + d->n_numa * sizeof(*l->numa) + d->n_gpus * sizeof(*l->gpus));
        if (!l)
                return -ENOMEM;
        l->refs = 1;
        l->n_gpus = (uint32_t)d->n_gpus;
        l->n_numa = (uint32_t)d->n_numa;
        l->numa = (struct sched_cpuset *)(l + 1);
        l->gpus = (struct gpu_kind *)(l->numa + l->n_numa);
        if (fill_layout(l, d) < 0) {
                layout_unref(l);
                return -EINVAL;
        }
        for (uint32_t i = 0; i < LAYOUTS_MAX; i++)
                if (s->layouts[i] && same(s->layouts[i], l)) {
                        layout_unref(l);
                        s->layouts[i]->refs++;
                        *ret = s->layouts[i];
                        return 0;
                }
        layout_unref(s->layouts[s->next_layout]);
        s->layouts[s->next_layout] = l;
        s->next_layout = (s->next_layout + 1) % LAYOUTS_MAX;
        l->refs++;
        *ret = l;
        return 0;
}

static uint64_t all_gpus(const struct sched_node *n) {
        return n->capacity.gpus >= 64 ? UINT64_MAX : (UINT64_C(1) << n->capacity.gpus) - 1;
}

uint64_t layout_whole(const struct sched_node *n) {
        return all_gpus(n) & ~(n->layout ? n->layout->parts : 0);
}

uint64_t layout_will_do(const struct sched *s, const struct need *n, uint32_t slot) {
        const struct sched_node *node = &s->nodes[slot];

        return n->filter && n->filter->gpus ? all_gpus(node) & n->filter->gpus[slot] : layout_whole(node);
}

/* ---- counting ---- */

static uint32_t bits(uint64_t word) {
        return (uint32_t)__builtin_popcountll(word);
}

static uint32_t free_cpus(const struct sched_node *node, uint32_t numa, bool empty) {
        const struct layout *l = node->layout;
        uint32_t n = 0;

        if (empty || !node->cpus)
                return l->cpus_in[numa];
        for (uint32_t w = 0; w < l->words; w++)
                n += bits(l->numa[numa].bits[w] & ~node->cpus->bits[w]);
        return n;
}

/* GPUs of a NUMA node; those that no description knows are of the first. */
static uint64_t gpus_of(const struct layout *l, uint32_t numa, uint64_t gpus) {
        uint64_t known = l->n_gpus >= 64 ? UINT64_MAX : (UINT64_C(1) << l->n_gpus) - 1;

        return gpus & (l->gpus_of[numa] | (numa == 0 ? ~known : 0));
}

static uint32_t share_among(uint32_t have, uint32_t need, uint32_t limit) {
        return need == 0 ? limit : MIN(limit, have / need);
}

uint32_t layout_count(const struct sched_node *node, const struct need *n, uint64_t gpus, bool empty,
                      uint32_t limit) {
        const struct layout *l = node->layout;
        uint32_t cpus = 0, k = 0;

        if (!l || l->n_numa == 0) /* one NUMA node, without CPUs that we know */
                return n->cpus > 0 ? 0 : share_among(bits(gpus), n->gpus, limit);
        if (n->numa != SCHED_NUMA_REQUIRE) {
                for (uint32_t i = 0; i < l->n_numa && n->cpus > 0; i++)
                        cpus += free_cpus(node, i, empty);
                return share_among(cpus, n->cpus, share_among(bits(gpus), n->gpus, limit));
        }
        for (uint32_t i = 0; i < l->n_numa && k < limit; i++)
                k += share_among(n->cpus > 0 ? free_cpus(node, i, empty) : 0, n->cpus,
                                 share_among(bits(gpus_of(l, i, gpus)), n->gpus, limit));
        return MIN(k, limit);
}

/* ---- choosing ---- */

static uint64_t links_of(const struct layout *l, uint32_t gpu) {
        return gpu < l->n_gpus ? l->gpus[gpu].links : 0;
}

/* From one GPU on, each time the one that is joined to most of those picked, and of these to least of the
 * rest: what stays behind is joined as well. Adds up the joints among those picked, and takes off those that
 * are torn. */
static uint64_t grow_pick(const struct layout *l, uint64_t gpus, uint32_t first, uint32_t n,
                          int32_t *ret_score) {
        uint64_t picked = UINT64_C(1) << first;
        int32_t within = 0, torn = 0;

        while (bits(picked) < n) {
                int32_t best_score = INT32_MIN;
                uint32_t best = 0;

                for (uint64_t b = gpus & ~picked; b; b &= b - 1) {
                        uint32_t i = (uint32_t)__builtin_ctzll(b);
                        int32_t score = (int32_t)(bits(links_of(l, i) & picked) * 64) -
                                        (int32_t)bits(links_of(l, i) & gpus & ~picked);
                        if (score > best_score) {
                                best_score = score;
                                best = i;
                        }
                }
                picked |= UINT64_C(1) << best;
        }
        for (uint64_t b = picked; b; b &= b - 1) {
                uint64_t links = links_of(l, (uint32_t)__builtin_ctzll(b));
                within += (int32_t)bits(links & picked);
                torn += (int32_t)bits(links & gpus & ~picked);
        }
        *ret_score = within * 64 - torn;
        return picked;
}

static uint64_t pick_linked(const struct layout *l, uint64_t gpus, uint32_t n) {
        int32_t score, best_score = INT32_MIN;
        uint64_t best = 0;

        for (uint64_t b = gpus; b; b &= b - 1) {
                uint64_t picked = grow_pick(l, gpus, (uint32_t)__builtin_ctzll(b), n, &score);
                if (score > best_score) {
                        best_score = score;
                        best = picked;
                }
        }
        return best;
}

uint64_t layout_pick_gpus(const struct sched_node *node, uint64_t gpus, uint32_t n) {
        const struct layout *l = node->layout;
        uint64_t picked = 0;

        if (l && l->linked && n > 0 && bits(gpus) > n)
                return pick_linked(l, gpus, n);
        for (; n > 0; n--) {
                uint64_t rest = gpus & ~picked;
                uint32_t best = (uint32_t)__builtin_ctzll(rest);
                if (l && l->mixed)
                        for (uint64_t b = rest; b; b &= b - 1) {
                                uint32_t i = (uint32_t)__builtin_ctzll(b);
                                if (i < l->n_gpus && l->gpus[i].memory_mib < l->gpus[best].memory_mib)
                                        best = i;
                        }
                picked |= UINT64_C(1) << best;
        }
        return picked;
}

/* Takes n free CPUs of a NUMA node, or as many as there are; returns how many. */
static uint32_t take_cpus(const struct sched_node *node, uint32_t numa, uint32_t n,
                          struct sched_cpuset *set) {
        const struct layout *l = node->layout;
        uint32_t taken = 0;

        for (uint32_t w = 0; w < l->words && taken < n; w++) {
                uint64_t b = l->numa[numa].bits[w] & ~(node->cpus ? node->cpus->bits[w] : 0) & ~set->bits[w];
                for (; b && taken < n; b &= b - 1, taken++)
                        set->bits[w] |= b & -b;
        }
        return taken;
}

/* The NUMA node that has all of it, and of these the one with least GPUs and then CPUs to spare. */
static uint32_t tightest(const struct sched_node *node, const struct need *n, uint64_t gpus) {
        const struct layout *l = node->layout;
        uint32_t best = UINT32_MAX;
        uint64_t least = UINT64_MAX;

        for (uint32_t i = 0; i < l->n_numa; i++) {
                uint32_t g = bits(gpus_of(l, i, gpus)), c = free_cpus(node, i, false);
                uint64_t left = ((uint64_t)g << 32) + c;
                if (g >= n->gpus && c >= n->cpus && left < least) {
                        least = left;
                        best = i;
                }
        }
        return best;
}

/* The NUMA node with most of both that was not taken from yet. */
static uint32_t fullest(const struct sched_node *node, uint64_t gpus, uint64_t used) {
        const struct layout *l = node->layout;
        uint32_t best = UINT32_MAX;
        uint64_t most = 0;

        for (uint32_t i = 0; i < l->n_numa; i++) {
                uint64_t has = ((uint64_t)bits(gpus_of(l, i, gpus)) << 32) + free_cpus(node, i, false) + 1;
                if (!(used >> i & 1) && has > most) {
                        most = has;
                        best = i;
                }
        }
        return best;
}

void layout_pick(const struct sched_node *node, const struct need *n, uint64_t gpus, uint64_t *ret_gpus,
                 struct sched_cpuset *ret_cpus) {
        const struct layout *l = node->layout;
        uint32_t c = n->cpus, g = n->gpus, numa;
        struct sched_cpuset cpus = {};
        uint64_t picked = 0;

        if (!l || l->n_numa == 0) {
                *ret_gpus = layout_pick_gpus(node, gpus, g);
                *ret_cpus = cpus;
                return;
        }
        numa = tightest(node, n, gpus);
        if (numa == UINT32_MAX)
                numa = fullest(node, gpus, 0);
        for (uint64_t used = 0; numa != UINT32_MAX && (c > 0 || g > 0); numa = fullest(node, gpus, used)) {
                uint64_t here = gpus_of(l, numa, gpus);
                uint32_t k = MIN(g, bits(here));
                picked |= layout_pick_gpus(node, here, k);
                g -= k;
                c -= take_cpus(node, numa, c, &cpus);
                used |= UINT64_C(1) << numa;
        }
        *ret_gpus = picked;
        *ret_cpus = cpus;
}
