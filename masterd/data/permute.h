/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers that look random and are the same everywhere: a hash, and a permutation without memory. What they
 * give is part of the format on disk: a job that goes on after an upgrade must find its order again. */
#pragma once

#include <stdint.h>

/* Of two words. Not for secrets. */
uint64_t permute_hash(uint64_t a, uint64_t b);
/* Where i goes in the permutation of [0, n) that key chooses; i < n. A Feistel network over the next even
 * number of bits, walked until it comes out below n: fewer than 4 rounds of it on average. */
uint64_t permute(uint64_t key, uint64_t n, uint64_t i);
