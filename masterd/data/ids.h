/* SPDX-License-Identifier: Apache-2.0 */
/* Pointers by number, in the order of their numbers: a radix tree of 64 ways. Numbers that are close together
 * share a node, which makes it small for tasks: they are made in sequence and go nearly in sequence. Finding
 * takes one step for each 6 bits of the largest number. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct ids_node;
struct ids {
        struct ids_node *root;
        unsigned height; /* levels; 0: empty */
        size_t n_nodes;
};

/* value: not NULL. -EEXIST, -ENOMEM. */
int ids_add(struct ids *t, uint64_t id, void *value);
void *ids_find(const struct ids *t, uint64_t id);
/* Another value for a number that is there. */
void ids_replace(struct ids *t, uint64_t id, void *value);
/* What was there, or NULL. */
void *ids_remove(struct ids *t, uint64_t id);
/* Of the lowest number >= from; NULL: none. */
void *ids_next(const struct ids *t, uint64_t from);
/* Forgets the nodes, not the values. */
void ids_done(struct ids *t);
size_t ids_memory(const struct ids *t);
