/* SPDX-License-Identifier: Apache-2.0 */
/* Over which network executors on several hosts meet: the fastest that all of them are in, where that is
 * known to be faster than the one in which they reach the master. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "lib/base/addr.h"

struct node;

/* False: they meet at node->address. A network counts where each of the hosts has said that it is in it, with
 * an address of its own and a link that is well; it has to be at least twice as fast as the slowest host's
 * usual one. NULL among nodes is passed over, and nodes may repeat. O(n). */
bool network_choose(const struct node *const *nodes, size_t n, struct addr_cidr *ret);
/* The host's address in it. */
const struct addr *network_address(const struct node *node, const struct addr_cidr *network);
