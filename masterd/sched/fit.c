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
};

static struct sieve sieve_for(const struct need *n) {
        return (struct sieve){ (int32_t)n->cpu_milli, (int32_t)(n->memory >> 20), (int32_t)n->gpus,
                               (int32_t)n->ports };
}

static bool fits(const struct sched *s, const struct need *n, uint32_t i) {
        return s->executors[i] > 0 && s->gpus[i] >= (int32_t)n->gpus && s->cpu[i] >= (int32_t)n->cpu_milli &&
               s->memory[i] >= n->memory && s->ports[i] >= (int32_t)n->ports;
}

/* What is left on slot i: GPUs, and below them the resource that counts for this request. */
static int32_t score(const int32_t *gpus, const int32_t *main, int32_t need_gpus, int32_t need_main,
                     uint32_t i) {
        int32_t left = main[i] - need_main;

        return ((gpus[i] - need_gpus) << 24) + (left < SCORE_MAX ? left : SCORE_MAX);
}

/* The least score in a block; INT32_MAX: nothing passes the sieve. No branches, so that it becomes vector
 * code. */
static int32_t block_least(const struct sched *s, const struct sieve *v, const int32_t *restrict main,
                           int32_t need_main, uint32_t begin) {
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
                value = (value & ~lacks) | (INT32_MAX & lacks);
                least = value < least ? value : least;
        }
        return least;
}

/* Without the sieve: for requests that pass it by less than a MiB of memory on every node that looked best.
 */
static uint32_t fit_best_slowly(const struct sched *s, const struct need *n, const int32_t *main,
                                int32_t need_main) {
        uint32_t best = SLOT_NONE;
        int32_t least = INT32_MAX;

        for (uint32_t i = 0; i < s->n; i++)
                if (fits(s, n, i)) {
                        int32_t v = score(s->gpus, main, (int32_t)n->gpus, need_main, i);
                        if (v < least) {
                                least = v;
                                best = i;
                        }
                }
        return best;
}

uint32_t fit_best(const struct sched *s, const struct need *n) {
        bool by_memory = n->cpu_milli == 0 && n->memory > 0;
        const int32_t *main = by_memory ? s->memory_mib : s->cpu;
        struct sieve v = sieve_for(n);
        int32_t need_main = by_memory ? v.memory_mib : v.cpu, least = INT32_MAX;
        uint32_t block = 0;

        for (uint32_t b = 0; b < s->n; b += BLOCK) {
                int32_t l = block_least(s, &v, main, need_main, b);
                if (l < least) {
                        least = l;
                        block = b;
                }
        }
        if (least == INT32_MAX)
                return SLOT_NONE;
        for (uint32_t i = block; i < block + BLOCK; i++)
                if (fits(s, n, i) && score(s->gpus, main, v.gpus, need_main, i) == least)
                        return i;
        return fit_best_slowly(s, n, main, need_main);
}

uint32_t fit_best_of(const struct sched *s, const struct need *n, const uint32_t *slots, size_t n_slots) {
        uint32_t best = SLOT_NONE;
        uint64_t least = UINT64_MAX;

        for (size_t i = 0; i < n_slots; i++) {
                uint64_t left;
                if (slots[i] >= s->n || !fits(s, n, slots[i]))
                        continue;
                left = fit_left(s, n, slots[i], 1);
                if (left < least || (left == least && slots[i] < best)) {
                        least = left;
                        best = slots[i];
                }
        }
        return best;
}

uint32_t fit_count(const struct sched *s, const struct need *n, uint32_t i, uint32_t limit) {
        uint32_t k = limit;

        if (!fits(s, n, i))
                return 0;
        k = MIN(k, (uint32_t)s->executors[i]);
        /* The products first: mostly all that are wanted fit, and a division is slow. */
        if (n->cpu_milli > 0 && (uint64_t)n->cpu_milli * k > (uint64_t)s->cpu[i])
                k = (uint32_t)s->cpu[i] / n->cpu_milli;
        if (n->gpus > 0 && (uint64_t)n->gpus * k > (uint64_t)s->gpus[i])
                k = (uint32_t)s->gpus[i] / n->gpus;
        if (n->ports > 0 && (uint64_t)n->ports * k > (uint64_t)s->ports[i])
                k = (uint32_t)s->ports[i] / n->ports;
        if (n->memory > 0 && s->memory[i] / k < n->memory)
                k = (uint32_t)(s->memory[i] / n->memory);
        return k;
}

uint64_t fit_left(const struct sched *s, const struct need *n, uint32_t i, uint32_t k) {
        uint64_t gpus = (uint64_t)s->gpus[i] - (uint64_t)n->gpus * k, left;

        if (n->cpu_milli == 0 && n->memory > 0)
                left = (s->memory[i] - n->memory * k) >> 20;
        else
                left = (uint64_t)s->cpu[i] - (uint64_t)n->cpu_milli * k;
        return gpus << 32 | MIN(left, (uint64_t)UINT32_MAX);
}

uint32_t fit_lacking(const struct sched *s, const struct need *n, uint32_t i) {
        return (s->cpu[i] < (int32_t)n->cpu_milli ? SCHED_CPU : 0u) |
               (s->memory[i] < n->memory ? SCHED_MEMORY : 0u) |
               (s->gpus[i] < (int32_t)n->gpus ? SCHED_GPUS : 0u) |
               (s->ports[i] < (int32_t)n->ports ? SCHED_PORTS : 0u) |
               (s->executors[i] == 0 ? SCHED_EXECUTORS : 0u);
}

uint32_t fit_capacity(const struct sched_capacity *c, const struct need *n, uint32_t limit) {
        uint32_t ports = c->port_first == 0 ? 0 : (uint32_t)c->port_last - c->port_first + 1;
        uint64_t k = MIN(limit, c->executors);

        if (n->cpu_milli > 0)
                k = MIN(k, (uint64_t)c->cpu_milli / n->cpu_milli);
        if (n->memory > 0)
                k = MIN(k, c->memory / n->memory);
        if (n->gpus > 0)
                k = MIN(k, (uint64_t)c->gpus / n->gpus);
        if (n->ports > 0)
                k = MIN(k, (uint64_t)ports / n->ports);
        return (uint32_t)k;
}
