/* SPDX-License-Identifier: Apache-2.0 */
/* The life of a scheduler: its arrays, which are listed here alone, and its clones. */
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "masterd/sched/internal.h"

/* What there is one of for every slot. */
static const struct {
        size_t offset, element;
} arrays[] = {
#define ARRAY(member)                                                                                        \
        { offsetof(struct sched, member), sizeof(*((struct sched *)NULL)->member) }
        ARRAY(nodes),       ARRAY(cpu),         ARRAY(memory_mib),  ARRAY(gpus),        ARRAY(ports),
        ARRAY(executors),   ARRAY(memory),      ARRAY(gang_stamp),  ARRAY(shape_stamp), ARRAY(shape_count),
        ARRAY(allow_stamp), ARRAY(candidates),  ARRAY(universe),    ARRAY(hidden),      ARRAY(level_of[0]),
        ARRAY(level_of[1]), ARRAY(level_of[2]), ARRAY(level_of[3]), ARRAY(level_of[4]), ARRAY(level_of[5]),
        ARRAY(level_of[6]), ARRAY(level_of[7]),
#undef ARRAY
};
_Static_assert(SCHED_LEVELS_MAX == 8, "the levels are listed");
#define LEVEL_0 (ELEMENTSOF(arrays) - SCHED_LEVELS_MAX)

static void **array_of(struct sched *s, size_t i) {
        return (void **)((char *)s + arrays[i].offset);
}

/* Levels that nobody has asked for have no array. */
static bool in_use(const struct sched *s, size_t i) {
        return i < LEVEL_0 || i - LEVEL_0 < s->n_levels;
}

int sched_new(struct sched **ret) {
        struct sched *s = calloc(1, sizeof(*s));

        if (!s)
                return -ENOMEM;
        *ret = s;
        return 0;
}

struct sched *sched_free(struct sched *s) {
        if (!s)
                return NULL;
        for (uint32_t i = 0; i < s->n; i++) {
                free(s->nodes[i].ports);
                free(s->nodes[i].cpus);
                layout_unref(s->nodes[i].layout);
                label_set_unref(s->nodes[i].labels);
        }
        for (size_t i = 0; i < ELEMENTSOF(arrays); i++)
                free(*array_of(s, i));
        for (size_t i = 0; i < s->n_filters; i++)
                filter_unref(s->filters[i]);
        for (size_t i = 0; i < LAYOUTS_MAX; i++)
                layout_unref(s->layouts[i]);
        for (size_t i = 0; i < SCHED_LEVELS_MAX; i++)
                free(s->level_keys[i]);
        for (size_t i = 0; i < s->n_consumables; i++)
                free(s->consumables[i].name);
        domains_unref(s->domains);
        free(s);
        return NULL;
}

int sched_grow(struct sched *s) {
        uint32_t n = s->allocated, m = n ? n * 2 : BLOCK;

        for (size_t i = 0; i < ELEMENTSOF(arrays); i++) {
                void **a = array_of(s, i), *p;
                if (!in_use(s, i))
                        continue;
                p = realloc(*a, m * arrays[i].element);
                if (!p)
                        return -ENOMEM; /* those that did grow are longer than they need be, which is fine */
                memset((char *)p + n * arrays[i].element, 0, (m - n) * arrays[i].element);
                *a = p;
        }
        s->allocated = m;
        return 0;
}

static int duplicate(void *pointer, size_t size) {
        void **p = pointer, *copy;

        if (!*p)
                return 0;
        copy = malloc(size);
        if (!copy)
                return -ENOMEM;
        memcpy(copy, *p, size);
        *p = copy;
        return 0;
}

/* Makes what a node has, and is copied bit by bit, the copy's own. */
static int own_node(struct sched_node *n) {
        uint64_t *ports = TAKE_PTR(n->ports);

        if (duplicate(&n->cpus, sizeof(*n->cpus)) < 0)
                return -ENOMEM;
        if (duplicate(&ports, port_words(&n->capacity) * sizeof(*ports)) < 0) {
                free(TAKE_PTR(n->cpus));
                return -ENOMEM;
        }
        n->ports = ports;
        if (n->layout)
                n->layout->refs++;
        if (n->labels)
                n->labels->refs++;
        return 0;
}

/* The same for what is not an array by slot. */
static int own_rest(struct sched *c, const struct sched *s) {
        for (; c->n_filters < s->n_filters; c->n_filters++) {
                c->filters[c->n_filters] = s->filters[c->n_filters];
                c->filters[c->n_filters]->refs++;
        }
        for (size_t i = 0; i < LAYOUTS_MAX; i++)
                if ((c->layouts[i] = s->layouts[i]))
                        c->layouts[i]->refs++;
        for (size_t i = 0; i < s->n_levels; i++)
                if (!(c->level_keys[i] = strdup(s->level_keys[i])))
                        return -ENOMEM;
        for (; c->n_consumables < s->n_consumables; c->n_consumables++) {
                struct consumable *k = &c->consumables[c->n_consumables];
                *k = s->consumables[c->n_consumables];
                k->name = strdup(k->name);
                if (!k->name)
                        return -ENOMEM;
        }
        c->domains = domains_ref(s->domains);
        return 0;
}

int sched_clone(const struct sched *s, struct sched **ret) {
        _cleanup_(sched_free_p) struct sched *c = calloc(1, sizeof(*c));

        if (!c)
                return -ENOMEM;
        c->allocated = s->allocated;
        c->existing = s->existing;
        c->stamp = s->stamp;
        c->filter_clock = s->filter_clock;
        c->next_layout = s->next_layout;
        c->n_levels = s->n_levels;
        for (size_t i = 0; i < ELEMENTSOF(arrays) && s->allocated > 0; i++) {
                void *original = *array_of((struct sched *)s, i), **a = array_of(c, i);
                if (!original)
                        continue;
                *a = malloc(s->allocated * arrays[i].element);
                if (!*a)
                        return -ENOMEM;
                memcpy(*a, original, s->allocated * arrays[i].element);
        }
        for (; c->n < s->n; c->n++)
                if (own_node(&c->nodes[c->n]) < 0)
                        return -ENOMEM;
        if (own_rest(c, s) < 0)
                return -ENOMEM;
        *ret = TAKE_PTR(c);
        return 0;
}
