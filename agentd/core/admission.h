/* SPDX-License-Identifier: Apache-2.0 */
/* What is checked of a start order before anything is made of it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/policy/serve.h"
#include "lib/wire/messages.h"

struct fence {
        uint64_t term, epoch; /* of the registration that is valid */
        uint64_t term_seen;   /* the highest term this host ever followed */
};

/* True when an order of that term and epoch may be carried out. epoch 0: the order has none. */
bool fence_accepts(const struct fence *f, uint64_t term, uint64_t epoch);

/* The first of the ports that something on this host listens on or has bound, for TCP in either family; 0:
 * none. */
uint16_t ports_taken(const uint16_t *ports, size_t n);
