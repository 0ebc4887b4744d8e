/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of CPUs as the kernel writes them: "0-3,8". */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define CPULIST_TEXT_MAX 8192u /* of 1,024 CPUs in any combination */

/* Into a set of n_words words, bit N of which is CPU N; "" is the empty set. A newline at the end is fine.
 * -EINVAL: not of that form, descending, or a number outside the set; then bits is unchanged. */
int cpulist_parse(const char *text, uint64_t *bits, size_t n_words);
/* Allocated; "" for the empty set. NULL: no memory. */
char *cpulist_format(const uint64_t *bits, size_t n_words);
