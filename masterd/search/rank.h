/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers in order, and at which place each is: what a rung needs to know of a new result. A treap whose
 * nodes count what hangs below them: O(log n) each. By hand, since neither uthash nor libc has an ordered set
 * that knows places. Pure. */
#pragma once

#include <stdint.h>

struct rank_node {
        struct rank_node *left, *right;
        double value; /* no NaN */
        uint64_t age; /* of equal ones the younger (higher) stands first */
        uint32_t weight, n;
};

/* The value and age are the caller's, the node too, for as long as it is in there. Returns its place: how
 * many are smaller. */
uint32_t rank_insert(struct rank_node **root, struct rank_node *n);
void rank_remove(struct rank_node **root, struct rank_node *n);
/* That at a place below rank_count(). */
struct rank_node *rank_at(struct rank_node *root, uint32_t place);
static inline uint32_t rank_count(const struct rank_node *root) {
        return root ? root->n : 0;
}
