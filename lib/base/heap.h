/* SPDX-License-Identifier: Apache-2.0 */
/* What things take of the heap: pure sums, for bounds on what one user may have somebody hold. */
#pragma once

#include <stddef.h>
#include <string.h>

#include "lib/base/cleanup.h"

/* An allocation of so many bytes, with what the allocator adds to it. */
static inline size_t heap_of(size_t size) {
        return (MAX(size, (size_t)24) + 8 + 15) & ~(size_t)15;
}

/* A string that was allocated; NULL: 0. */
static inline size_t heap_of_string(const char *s) {
        return s ? heap_of(strlen(s) + 1) : 0;
}

/* A list ended by NULL, and its strings (lib/base/strv.h). */
static inline size_t heap_of_strings(char *const *list) {
        size_t n = 0, sum = 0;

        for (; list && list[n]; n++)
                sum += heap_of_string(list[n]);
        return list ? sum + heap_of((n + 1) * sizeof(*list)) : 0;
}
