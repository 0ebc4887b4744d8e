/* SPDX-License-Identifier: Apache-2.0 */
/* Which of some regular expressions (lib/base/pattern.h) lines match. Pure; takes processor time, so it is
 * for threads. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "lib/wire/find.h"

#define FIND_USEC_MAX UINT64_C(200000) /* of one call: nobody is charged for it */

/* data: lines, each but the last with its newline. ret has one for each pattern. 1: all was looked at; 0: the
 * time was over before that; -EINVAL: a pattern is none; -ENOMEM. */
int find_lines(const char *data, size_t size, char *const *patterns, size_t n, struct found_line *ret);
