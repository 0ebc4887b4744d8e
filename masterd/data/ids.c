/* SPDX-License-Identifier: Apache-2.0 */
#include "masterd/data/ids.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#define BITS 6u
#define WAYS (1u << BITS)

struct ids_node {
        unsigned n; /* slots in use */
        void *slots[WAYS];
};

static unsigned way(uint64_t id, unsigned level) {
        return level * BITS >= 64 ? 0 : (unsigned)(id >> (level * BITS)) & (WAYS - 1);
}

/* Whether numbers up to id fit under a root of that height. */
static bool reaches(unsigned height, uint64_t id) {
        return height * BITS >= 64 || id >> (height * BITS) == 0;
}

static struct ids_node *node_new(struct ids *t) {
        struct ids_node *n = calloc(1, sizeof(*n));

        if (n)
                t->n_nodes++;
        return n;
}

static void node_free(struct ids *t, struct ids_node *n) {
        t->n_nodes--;
        free(n);
}

/* Takes empty nodes away on the path to id, from the leaf upwards. */
static void prune(struct ids *t, uint64_t id) {
        while (t->root) {
                struct ids_node *n = t->root, *parent = NULL;
                unsigned level = t->height - 1;
                for (; level > 0 && n->slots[way(id, level)]; level--) {
                        parent = n;
                        n = n->slots[way(id, level)];
                }
                if (n->n > 0)
                        return;
                node_free(t, n);
                if (!parent) {
                        t->root = NULL;
                        t->height = 0;
                        return;
                }
                parent->slots[way(id, level + 1)] = NULL;
                parent->n--;
        }
}

static int grow_table(struct ids *t, uint64_t id) {
        while (!t->root || !reaches(t->height, id)) {
                struct ids_node *n = node_new(t);
                if (!n)
                        return -ENOMEM;
                if (t->root) {
                        n->slots[0] = t->root;
                        n->n = 1;
                }
                t->root = n;
                t->height++;
        }
        return 0;
}

int ids_add(struct ids *t, uint64_t id, void *value) {
        struct ids_node *n;
        void **slot;

        if (grow_table(t, id) < 0) {
                prune(t, id);
                return -ENOMEM;
        }
        n = t->root;
        for (unsigned level = t->height - 1; level > 0; level--) {
                slot = &n->slots[way(id, level)];
                if (!*slot) {
                        if (!(*slot = node_new(t))) {
                                prune(t, id);
                                return -ENOMEM;
                        }
                        n->n++;
                }
                n = *slot;
        }
        slot = &n->slots[way(id, 0)];
        if (*slot)
                return -EEXIST;
        *slot = value;
        n->n++;
        return 0;
}

static struct ids_node *leaf(const struct ids *t, uint64_t id) {
        struct ids_node *n = t->root;

        if (!n || !reaches(t->height, id))
                return NULL;
        for (unsigned level = t->height - 1; n && level > 0; level--)
                n = n->slots[way(id, level)];
        return n;
}

void *ids_find(const struct ids *t, uint64_t id) {
        struct ids_node *n = leaf(t, id);

        return n ? n->slots[way(id, 0)] : NULL;
}

void ids_replace(struct ids *t, uint64_t id, void *value) {
        struct ids_node *n = leaf(t, id);

        if (n && n->slots[way(id, 0)])
                n->slots[way(id, 0)] = value;
}

void *ids_remove(struct ids *t, uint64_t id) {
        struct ids_node *n = leaf(t, id);
        void *value = n ? n->slots[way(id, 0)] : NULL;

        if (!value)
                return NULL;
        n->slots[way(id, 0)] = NULL;
        if (--n->n == 0)
                prune(t, id);
        return value;
}

/* bounded: the path so far is that of from, so what is below it counts as well. */
static void *next_in(const struct ids_node *n, unsigned level, uint64_t from, bool bounded) {
        for (unsigned i = bounded ? way(from, level) : 0; i < WAYS; i++) {
                void *found = n->slots[i];
                if (found && level > 0)
                        found = next_in(found, level - 1, from, bounded && i == way(from, level));
                if (found)
                        return found;
        }
        return NULL;
}

void *ids_next(const struct ids *t, uint64_t from) {
        return t->root && reaches(t->height, from) ? next_in(t->root, t->height - 1, from, true) : NULL;
}

static void free_below(struct ids *t, struct ids_node *n, unsigned level) {
        for (unsigned i = 0; level > 0 && i < WAYS; i++)
                if (n->slots[i])
                        free_below(t, n->slots[i], level - 1);
        node_free(t, n);
}

void ids_done(struct ids *t) {
        if (t->root)
                free_below(t, t->root, t->height - 1);
        *t = (struct ids){};
}

size_t ids_memory(const struct ids *t) {
        return t->n_nodes * sizeof(struct ids_node);
}
