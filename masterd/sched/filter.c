/* SPDX-License-Identifier: Apache-2.0 */
/* Constraints, evaluated once for every node and then remembered: asking again costs a look-up. Invariant: a
 * filter says for each slot what the node's labels and GPUs say now; one that nobody can bring up to date,
 * because a clone looks at it too, is forgotten. */
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "lib/base/cleanup.h"
#include "masterd/sched/internal.h"

#define EXACT_PREFERENCES 6u /* so many are told apart by every combination of them */

void filter_unref(struct filter *f) {
        if (!f || --f->refs > 0)
                return;
        for (size_t i = 0; i < f->n_required; i++)
                constraint_free(f->required[i]);
        for (size_t i = 0; i < f->n_preferred; i++)
                constraint_free(f->preferred[i]);
        free(f->required);
        free(f->preferred);
        free(f->weights);
        free(f->model);
        free(f->mig);
        free(f->rank);
        free(f->gpus);
        free(f);
}

/* ---- which one ---- */

static uint64_t hash_text(uint64_t h, const char *text) { /* FNV-1a */
        for (; *text; text++)
                h = (h ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
        return (h ^ 0xff) * UINT64_C(0x100000001b3);
}

static uint64_t hash_shape(const struct sched_shape *h) {
        uint64_t hash = UINT64_C(0xcbf29ce484222325);

        for (size_t i = 0; i < h->n_required; i++)
                hash = hash_text(hash, h->required[i]->text);
        hash = hash_text(hash, "");
        for (size_t i = 0; i < h->n_preferred; i++)
                hash = hash_text(hash ^ h->preferred[i].weight, h->preferred[i].constraint->text);
        hash = hash_text(hash, h->gpu.model ?: "");
        hash = hash_text(hash, h->gpu.mig ?: "");
        return hash ^ h->gpu.memory_mib;
}

static bool equal(const char *a, const char *b) {
        return a == b || (a && b && strcmp(a, b) == 0);
}

static bool is_for(const struct filter *f, const struct sched_shape *h) {
        if (f->n_required != h->n_required || f->n_preferred != h->n_preferred ||
            f->memory_mib != h->gpu.memory_mib || !equal(f->model, h->gpu.model) ||
            !equal(f->mig, h->gpu.mig))
                return false;
        for (size_t i = 0; i < f->n_required; i++)
                if (strcmp(f->required[i]->text, h->required[i]->text) != 0)
                        return false;
        for (size_t i = 0; i < f->n_preferred; i++)
                if (f->weights[i] != h->preferred[i].weight ||
                    strcmp(f->preferred[i]->text, h->preferred[i].constraint->text) != 0)
                        return false;
        return true;
}

/* ---- what it says ---- */

static uint64_t gpus_that_do(const struct filter *f, const struct sched_node *n) {
        const struct layout *l = n->layout;
        uint64_t gpus = 0;

        for (uint32_t i = 0; l && i < l->n_gpus; i++) {
                const struct gpu_kind *k = &l->gpus[i];
                if ((!f->model || strcasecmp(f->model, k->model) == 0) && k->memory_mib >= f->memory_mib &&
                    strcmp(f->mig ?: "", k->mig) == 0)
                        gpus |= UINT64_C(1) << i;
        }
        return gpus;
}

static uint64_t missed(const struct filter *f, uint32_t met) {
        uint64_t weight = 0;

        for (size_t i = 0; i < f->n_preferred; i++)
                weight += met >> i & 1 ? 0 : f->weights[i];
        return weight;
}

/* With few preferences every combination of them has a step of its own: how many others miss less. */
static void make_steps(struct filter *f) {
        uint32_t n = f->n_preferred <= EXACT_PREFERENCES ? 1u << f->n_preferred : 0;

        for (uint32_t met = 0; met < n; met++)
                for (uint32_t other = 0; other < n; other++)
                        f->steps[met] += missed(f, other) < missed(f, met);
}

/* The weight that is missed, from none (0) to all of it. With many preferences, differences below 1/254 of
 * the sum are none. */
static uint8_t rank_of(const struct filter *f, uint32_t met) {
        if (f->n_preferred <= EXACT_PREFERENCES)
                return f->steps[met];
        return (uint8_t)(missed(f, met) * (FILTER_OUT - 1) / missed(f, 0));
}

static uint8_t evaluate(const struct filter *f, const struct sched_node *n, uint64_t *ret_gpus) {
        const char *const *labels = n->labels ? n->labels->labels : NULL;
        size_t n_labels = n->labels ? n->labels->n : 0;
        uint32_t met = 0;

        *ret_gpus = f->gpus ? gpus_that_do(f, n) : 0;
        if (!n->exists || (f->gpus && *ret_gpus == 0))
                return FILTER_OUT;
        for (size_t i = 0; i < f->n_required; i++)
                if (!constraint_met(f->required[i], labels, n_labels))
                        return FILTER_OUT;
        for (size_t i = 0; i < f->n_preferred; i++)
                met |= (uint32_t)constraint_met(f->preferred[i], labels, n_labels) << i;
        return f->n_preferred > 0 ? rank_of(f, met) : 0;
}

static void update(struct filter *f, const struct sched *s, uint32_t slot) {
        uint64_t gpus;
        uint8_t rank = evaluate(f, &s->nodes[slot], &gpus);

        f->counts[f->rank[slot]]--;
        f->counts[rank]++;
        f->rank[slot] = rank;
        if (f->gpus)
                f->gpus[slot] = gpus;
}

/* Makes it as long as the arrays. */
static int lengthen(struct filter *f, uint32_t n) {
        uint8_t *rank = realloc(f->rank, n * sizeof(*rank));
        uint64_t *gpus;

        if (!rank)
                return -ENOMEM;
        f->rank = rank;
        if (f->gpus) {
                gpus = realloc(f->gpus, n * sizeof(*gpus));
                if (!gpus)
                        return -ENOMEM;
                memset(gpus + f->allocated, 0, (n - f->allocated) * sizeof(*gpus));
                f->gpus = gpus;
        }
        memset(rank + f->allocated, FILTER_OUT, n - f->allocated);
        f->counts[FILTER_OUT] += n - f->allocated;
        f->allocated = n;
        return 0;
}

static void forget_filter(struct sched *s, size_t i) {
        filter_unref(s->filters[i]);
        s->filters[i] = s->filters[--s->n_filters];
}

void filters_update(struct sched *s, uint32_t slot) {
        for (size_t i = 0; i < s->n_filters;) {
                struct filter *f = s->filters[i];
                if (f->refs > 1 || (f->allocated < s->allocated && lengthen(f, s->allocated) < 0))
                        forget_filter(s, i);
                else {
                        update(f, s, slot);
                        i++;
                }
        }
}

/* ---- making one ---- */

static int copy_text(char **to, const char *from) {
        *to = from ? strdup(from) : NULL;
        return from && !*to ? -ENOMEM : 0;
}

static int copy(struct filter *f, const struct sched_shape *h) {
        if (!(f->required = calloc(h->n_required ?: 1, sizeof(*f->required))) ||
            !(f->preferred = calloc(h->n_preferred ?: 1, sizeof(*f->preferred))) ||
            !(f->weights = calloc(h->n_preferred ?: 1, sizeof(*f->weights))) ||
            copy_text(&f->model, h->gpu.model) < 0 || copy_text(&f->mig, h->gpu.mig) < 0)
                return -ENOMEM;
        f->memory_mib = h->gpu.memory_mib;
        for (; f->n_required < h->n_required; f->n_required++)
                if (constraint_parse(h->required[f->n_required]->text, &f->required[f->n_required], NULL) < 0)
                        return -ENOMEM;
        for (; f->n_preferred < h->n_preferred; f->n_preferred++) {
                const struct sched_preference *p = &h->preferred[f->n_preferred];
                if (constraint_parse(p->constraint->text, &f->preferred[f->n_preferred], NULL) < 0)
                        return -ENOMEM;
                f->weights[f->n_preferred] = p->weight;
        }
        if ((f->model || f->mig || f->memory_mib > 0) && !(f->gpus = calloc(1, sizeof(*f->gpus))))
                return -ENOMEM;
        return 0;
}

static int filter_new(struct sched *s, const struct sched_shape *h, uint64_t hash, struct filter **ret) {
        struct filter *f = calloc(1, sizeof(*f));

        if (!f)
                return -ENOMEM;
        f->refs = 1;
        f->hash = hash;
        if (copy(f, h) < 0 || lengthen(f, MAX(s->allocated, 1u)) < 0) {
                filter_unref(f);
                return -ENOMEM;
        }
        make_steps(f);
        for (uint32_t i = 0; i < s->n; i++)
                update(f, s, i);
        *ret = f;
        return 0;
}

int filter_get(struct sched *s, const struct sched_shape *h, const struct filter **ret) {
        size_t oldest = 0;
        struct filter *f;
        uint64_t hash;
        int r;

        *ret = NULL;
        if (h->n_required == 0 && h->n_preferred == 0 && !h->gpu.model && !h->gpu.mig &&
            h->gpu.memory_mib == 0)
                return 0;
        hash = hash_shape(h);
        for (size_t i = 0; i < s->n_filters; i++) {
                f = s->filters[i];
                if (f->hash == hash && f->allocated >= s->allocated && is_for(f, h)) {
                        f->used = ++s->filter_clock;
                        *ret = f;
                        return 0;
                }
                if (f->used < s->filters[oldest]->used)
                        oldest = i;
        }
        r = filter_new(s, h, hash, &f);
        if (r < 0)
                return r;
        if (s->n_filters == FILTERS_MAX)
                forget_filter(s, oldest);
        f->used = ++s->filter_clock;
        s->filters[s->n_filters++] = f;
        *ret = f;
        return 0;
}

int sched_shape_nodes(struct sched *s, const struct sched_shape *h, uint32_t *ret) {
        const struct filter *f;
        int r = filter_get(s, h, &f);

        if (r >= 0)
                *ret = f ? s->allocated - MIN(f->counts[FILTER_OUT], s->allocated) : s->existing;
        return r;
}
