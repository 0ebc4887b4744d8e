/* SPDX-License-Identifier: Apache-2.0 */
/* Looking for room in the flat arrays. Invariant: an answer is exact; the arrays of small integers only
 * sieve. */
#include <errno.h>

#include "lib/base/cleanup.h"
#include "masterd/sched/internal.h"

#define SCORE_MAX 0xffffff /* of what is left of CPU or memory, below the GPUs */

/* What is asked for, in the units of the arrays, rounded so that the sieve lets through all that fit. */
struct sieve {
        int32_t cpu, memory_mib, gpus, ports;
        int32_t flip;  /* all ones below the sign with worst fit: the most left over is the least then */
        uint32_t rank; /* of the filter that nodes must have */
};

/* GPUs that are no whole ones are not in the array. */
static uint32_t counted_gpus(const struct need *n) {
        return n->filter && n->filter->gpus ? 0 : n->gpus;
}

static struct sieve sieve_for(const struct need *n) {
        return (struct sieve){ (int32_t)n->cpu_milli, (int32_t)(n->memory >> 20), (int32_t)counted_gpus(n),
                               (int32_t)n->ports,     n->worst ? INT32_MAX : 0,   0 };
}

/* How many fit by what the flat arrays do not know; at most limit. */
static uint32_t special_count(const struct sched *s, const struct need *n, uint32_t i, uint32_t limit) {
        const struct sched_node *node = &s->nodes[i];
        uint64_t gpus = 0;

        if (!fit_matches(n, i))
                return 0;
        if (n->owner != 0 && node->held.executors > 0 && node->owner != n->owner &&
            s->gang_stamp[i] != n->gang_mark)
                return 0;
        if (n->shm > 0) {
                uint64_t room = node->capacity.shm - MIN(node->held.shm, node->capacity.shm);
                limit = (uint32_t)MIN(limit, room / n->shm);
        }
        if (n->gpus > 0 && (n->filter || need_is_exact(n))) {
                gpus = layout_will_do(s, n, i) & ~node_taken_gpus(node);
                limit = MIN(limit, (uint32_t)__builtin_popcountll(gpus) / n->gpus);
        }
        return limit > 0 && need_is_exact(n) ? layout_count(node, n, gpus, false, limit) : limit;
}

static bool fits(const struct sched *s, const struct need *n, uint32_t i) {
        return s->executors[i] > 0 && s->gpus[i] >= (int32_t)counted_gpus(n) &&
               s->cpu[i] >= (int32_t)n->cpu_milli && s->memory[i] >= n->memory &&
               s->ports[i] >= (int32_t)n->ports && (!n->special || special_count(s, n, i, 1) > 0);
}

/* What is left on slot i: GPUs, and below them the resource that counts for this request. */
static int32_t score(const struct sched *s, const struct sieve *v, const int32_t *main, int32_t need_main,
                     uint32_t i) {
        int32_t left = main[i] - need_main;

        return ((int32_t)((uint32_t)(s->gpus[i] - v->gpus) << 24) + (left < SCORE_MAX ? left : SCORE_MAX)) ^
               v->flip;
}

/* The least score in a block; INT32_MAX: nothing passes the sieve. No branches, so that it becomes vector
 * code; one function of it for requests with a filter, one for those without. */
static inline __attribute__((always_inline)) int32_t block_least(const struct sched *s, const struct sieve *v,
                                                                 const int32_t *restrict main,
                                                                 int32_t need_main, uint32_t begin,
                                                                 const uint8_t *restrict rank) {
        const int32_t *restrict cpu = s->cpu + begin, *restrict memory = s->memory_mib + begin,
                                *restrict gpus = s->gpus + begin, *restrict ports = s->ports + begin,
                                *restrict executors = s->executors + begin;
        struct sieve w = *v;
        int32_t least = INT32_MAX;

        main += begin;
        for (uint32_t i = 0; i < BLOCK; i++) {
                int32_t left = main[i] - need_main;
                int32_t lacks = -(int32_t)(cpu[i] < w.cpu) | -(int32_t)(memory[i] < w.memory_mib) |
                                -(int32_t)(gpus[i] < w.gpus) | -(int32_t)(ports[i] < w.ports) |
                                -(int32_t)(executors[i] < 1); /* all ones, or none */
                int32_t value =
                        (int32_t)((uint32_t)(gpus[i] - w.gpus) << 24) + (left < SCORE_MAX ? left : SCORE_MAX);
                if (rank) {
                        lacks |= -(int32_t)(rank[begin + i] != w.rank);
                        value ^= w.flip;
                }
                value = (value & ~lacks) | (INT32_MAX & lacks);
                least = value < least ? value : least;
        }
        return least;
}

static int32_t plain_least(const struct sched *s, const struct sieve *v, const int32_t *main,
                           int32_t need_main, uint32_t begin) {
        return block_least(s, v, main, need_main, begin, NULL);
}

static int32_t filtered_least(const struct sched *s, const struct sieve *v, const int32_t *main,
                              int32_t need_main, uint32_t begin, const uint8_t *rank) {
        return block_least(s, v, main, need_main, begin, rank);
}

/* Without the sieve: for requests that pass it on every node that looked best, but lack less than a MiB of
 * memory or something that the arrays do not know. */
static uint32_t fit_best_slowly(const struct sched *s, const struct need *n, const struct sieve *v,
                                const int32_t *main, int32_t need_main, const uint8_t *rank) {
        uint32_t best = SLOT_NONE;
        int32_t least = INT32_MAX;

        for (uint32_t i = 0; i < s->n; i++)
                if ((!rank || rank[i] == v->rank) && s->executors[i] > 0) {
                        int32_t l = score(s, v, main, need_main, i);
                        if ((l < least || best == SLOT_NONE) && fits(s, n, i)) {
                                least = l;
                                best = i;
                        }
                }
        return best;
}

/* Among nodes of one rank. */
static uint32_t fit_best_ranked(const struct sched *s, const struct need *n, const struct sieve *v,
                                const uint8_t *rank) {
        bool by_memory = n->cpu_milli == 0 && n->memory > 0;
        const int32_t *main = by_memory ? s->memory_mib : s->cpu;
        int32_t need_main = by_memory ? v->memory_mib : v->cpu, least = INT32_MAX;
        uint32_t block = 0;

        if (v->flip && !rank)
                return fit_best_slowly(s, n, v, main, need_main, rank);
        for (uint32_t b = 0; b < s->n; b += BLOCK) {
                int32_t l = rank ? filtered_least(s, v, main, need_main, b, rank)
                                 : plain_least(s, v, main, need_main, b);
                if (l < least) {
                        least = l;
                        block = b;
                }
        }
        if (least == INT32_MAX && !v->flip)
                return SLOT_NONE;
        for (uint32_t i = block; i < block + BLOCK && i < s->n; i++)
                if ((!rank || rank[i] == v->rank) && score(s, v, main, need_main, i) == least &&
                    fits(s, n, i))
                        return i;
        return fit_best_slowly(s, n, v, main, need_main, rank);
}

uint32_t fit_best(const struct sched *s, const struct need *n) {
        struct sieve v = sieve_for(n);
        uint32_t best;

        if (!n->filter)
                return fit_best_ranked(s, n, &v, NULL);
        for (v.rank = 0; v.rank < FILTER_OUT; v.rank++) {
                if (n->filter->counts[v.rank] == 0)
                        continue;
                best = fit_best_ranked(s, n, &v, n->filter->rank);
                if (best != SLOT_NONE)
                        return best;
        }
        return SLOT_NONE;
}

/* What is left, behind how much the node is preferred. */
static uint64_t ranked_left(const struct sched *s, const struct need *n, uint32_t slot) {
        uint64_t rank = n->filter ? n->filter->rank[slot] : 0;

        return rank << 56 | (fit_left(s, n, slot, 1) & ((UINT64_C(1) << 56) - 1));
}

uint32_t fit_best_of(const struct sched *s, const struct need *n, const uint32_t *slots, size_t n_slots) {
        uint32_t best = SLOT_NONE;
        uint64_t least = UINT64_MAX;

        for (size_t i = 0; i < n_slots; i++) {
                uint64_t left;
                if (slots[i] >= s->n || !fits(s, n, slots[i]))
                        continue;
                left = ranked_left(s, n, slots[i]);
                if (left < least || (left == least && slots[i] < best)) {
                        least = left;
                        best = slots[i];
                }
        }
        return best;
}

uint32_t fit_count(const struct sched *s, const struct need *n, uint32_t i, uint32_t limit) {
        uint32_t k = limit, gpus = counted_gpus(n);

        if (s->executors[i] <= 0 || s->gpus[i] < (int32_t)gpus || s->cpu[i] < (int32_t)n->cpu_milli ||
            s->memory[i] < n->memory || s->ports[i] < (int32_t)n->ports)
                return 0;
        k = MIN(k, (uint32_t)s->executors[i]);
        /* The products first: mostly all that are wanted fit, and a division is slow. */
        if (n->cpu_milli > 0 && (uint64_t)n->cpu_milli * k > (uint64_t)s->cpu[i])
                k = (uint32_t)s->cpu[i] / n->cpu_milli;
        if (gpus > 0 && (uint64_t)gpus * k > (uint64_t)s->gpus[i])
                k = (uint32_t)s->gpus[i] / gpus;
        if (n->ports > 0 && (uint64_t)n->ports * k > (uint64_t)s->ports[i])
                k = (uint32_t)s->ports[i] / n->ports;
        if (n->memory > 0 && s->memory[i] / k < n->memory)
                k = (uint32_t)(s->memory[i] / n->memory);
        return n->special ? special_count(s, n, i, k) : k;
}

/* CPU or memory in 28 bits, GPUs above. */
#define LEFT_BITS 28
#define LEFT_MAX ((UINT64_C(1) << (LEFT_BITS + 7)) - 1)

uint64_t fit_left(const struct sched *s, const struct need *n, uint32_t i, uint32_t k) {
        uint64_t taken = (uint64_t)n->gpus * k, gpus = (uint64_t)s->gpus[i], left, all;

        gpus -= MIN(taken, gpus); /* parts of GPUs are not among the free ones */
        if (n->cpu_milli == 0 && n->memory > 0)
                left = (s->memory[i] - n->memory * k) >> 20;
        else
                left = (uint64_t)s->cpu[i] - (uint64_t)n->cpu_milli * k;
        all = gpus << LEFT_BITS | MIN(left, (UINT64_C(1) << LEFT_BITS) - 1);
        return n->worst ? LEFT_MAX - all : all;
}

uint32_t fit_lacking(const struct sched *s, const struct need *n, uint32_t i) {
        return fit_lacking_for(s, n, i, 1);
}

/* Below 0: more is held than there is. */
static bool less(int64_t there, uint64_t of_one, uint32_t k) {
        return there < 0 || of_one > (uint64_t)there / k;
}

uint32_t fit_lacking_for(const struct sched *s, const struct need *n, uint32_t i, uint32_t k) {
        const struct sched_node *node = &s->nodes[i];
        uint32_t bits = (less(s->cpu[i], n->cpu_milli, k) ? SCHED_CPU : 0u) |
                        (s->memory[i] / k < n->memory ? SCHED_MEMORY : 0u) |
                        (less(s->gpus[i], counted_gpus(n), k) ? SCHED_GPUS : 0u) |
                        (less(s->ports[i], n->ports, k) ? SCHED_PORTS : 0u) |
                        (less(s->executors[i], 1, k) ? SCHED_EXECUTORS : 0u);
        uint64_t gpus;

        if (node->owner != 0 && !node->open)
                return SCHED_WHOLE_HOSTS;
        if (!n->special)
                return bits;
        gpus = layout_will_do(s, n, i) & ~node_taken_gpus(node);
        if (less(__builtin_popcountll(gpus), n->gpus, k))
                bits |= SCHED_GPUS;
        if ((node->capacity.shm - MIN(node->held.shm, node->capacity.shm)) / k < n->shm)
                bits |= SCHED_SHM;
        if (need_is_exact(n) && !(bits & SCHED_GPUS) && layout_count(node, n, gpus, false, k) < k)
                bits |= SCHED_CPU_SETS;
        if (n->owner != 0 && node->held.executors > 0 && node->owner != n->owner &&
            s->gang_stamp[i] != n->gang_mark)
                bits |= SCHED_WHOLE_HOSTS;
        return bits;
}

uint32_t fit_capacity(const struct sched *s, const struct need *n, uint32_t slot, uint32_t limit) {
        return fit_empty(s, n, slot, MIN(limit, s->nodes[slot].capacity.executors));
}

uint32_t fit_empty(const struct sched *s, const struct need *n, uint32_t slot, uint32_t limit) {
        const struct sched_node *node = &s->nodes[slot];
        const struct sched_capacity *c = &node->capacity;
        uint32_t ports = capacity_ports(c);
        uint64_t k = limit, gpus = layout_will_do(s, n, slot);

        if (!fit_matches(n, slot))
                return 0;
        if (n->cpu_milli > 0)
                k = MIN(k, (uint64_t)c->cpu_milli / n->cpu_milli);
        if (n->memory > 0)
                k = MIN(k, c->memory / n->memory);
        if (n->gpus > 0)
                k = MIN(k, (uint64_t)(uint32_t)__builtin_popcountll(gpus) / n->gpus);
        if (n->ports > 0)
                k = MIN(k, (uint64_t)ports / n->ports);
        if (n->shm > 0)
                k = MIN(k, c->shm / n->shm);
        return need_is_exact(n) ? layout_count(node, n, gpus, true, (uint32_t)k) : (uint32_t)k;
}
