/* SPDX-License-Identifier: Apache-2.0 */
/* A treap (Seidel and Aragon 1996). Invariants: in order by (value, age falling); a node's weight is not
 * below its children's; n counts a node and all below it. The weight is a hash of the age, so that the shape
 * is the same each time. */
#include "masterd/search/rank.h"

#include <stdbool.h>
#include <stddef.h>

/* The finalizer of splitmix64. */
static uint32_t scatter_bits(uint64_t x) {
        x += UINT64_C(0x9e3779b97f4a7c15);
        x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
        x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
        return (uint32_t)(x >> 32);
}

static bool stands_before(const struct rank_node *a, const struct rank_node *b) {
        return a->value < b->value || (!(b->value < a->value) && a->age > b->age);
}

static void recount_node(struct rank_node *n) {
        n->n = 1 + rank_count(n->left) + rank_count(n->right);
}

/* What stands before key, and the rest. */
static void split_tree(struct rank_node *root, const struct rank_node *key, struct rank_node **ret_left,
                       struct rank_node **ret_right) {
        if (!root) {
                *ret_left = *ret_right = NULL;
        } else if (stands_before(root, key)) {
                split_tree(root->right, key, &root->right, ret_right);
                *ret_left = root;
                recount_node(root);
        } else {
                split_tree(root->left, key, ret_left, &root->left);
                *ret_right = root;
                recount_node(root);
        }
}

static struct rank_node *join_trees(struct rank_node *a, struct rank_node *b) {
        if (!a || !b)
                return a ? a : b;
        if (a->weight >= b->weight) {
                a->right = join_trees(a->right, b);
                recount_node(a);
                return a;
        }
        b->left = join_trees(a, b->left);
        recount_node(b);
        return b;
}

uint32_t rank_insert(struct rank_node **root, struct rank_node *n) {
        struct rank_node *left, *right;
        uint32_t place;

        *n = (struct rank_node){ .value = n->value, .age = n->age, .weight = scatter_bits(n->age), .n = 1 };
        split_tree(*root, n, &left, &right);
        place = rank_count(left);
        *root = join_trees(join_trees(left, n), right);
        return place;
}

void rank_remove(struct rank_node **root, struct rank_node *n) {
        while (*root && *root != n) {
                (*root)->n--;
                root = stands_before(n, *root) ? &(*root)->left : &(*root)->right;
        }
        if (*root)
                *root = join_trees(n->left, n->right);
}

struct rank_node *rank_at(struct rank_node *root, uint32_t place) {
        while (root && place != rank_count(root->left))
                if (place < rank_count(root->left)) {
                        root = root->left;
                } else {
                        place -= rank_count(root->left) + 1;
                        root = root->right;
                }
        return root;
}
