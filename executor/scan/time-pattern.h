/* SPDX-License-Identifier: Apache-2.0 */
/* Paths that hold a time, {{YYYY}} {{MM}} {{DD}} {{HH}}, and the days or hours of a range; and words in
 * braces, {a,b} and {00..15}. Pure: what it is now is nobody's question here. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/wire/input.h"

#define PATTERN_BYTES_MAX 4095u   /* of a pattern, and of whatever comes of one */
#define PATTERN_WORDS_MAX 100000u /* that braces make */

enum time_step {
        TIME_STEP_NONE, /* the pattern holds no time */
        TIME_STEP_DAY,
        TIME_STEP_HOUR
};

/* How often the pattern makes something new. -EINVAL: "{{" that none of the four names follows. */
int time_pattern_step(const char *pattern, enum time_step *ret);

/* The pattern with the time filled in, zero padded. {{HH}} of a day (hour -1) is 00. -EINVAL: no such name,
 * or a point that is no time; -ENAMETOOLONG; -ENOMEM. */
int time_pattern_expand(const char *pattern, const struct time_point *t, char **ret);

/* A date that the calendar has, hour -1 to 23, year 1 to 9999. */
bool time_point_valid(const struct time_point *t);
/* The next day or hour. false: the calendar ends (t is unchanged). */
bool time_point_next(struct time_point *t, enum time_step step);

/* The first point of a range that begins at from and the last one of a range that ends with to: a day that is
 * stepped through by hours begins at 0 and ends with 23; hours stepped through by days are their day. */
struct time_point time_range_first(const struct time_point *from, enum time_step step);
struct time_point time_range_last(const struct time_point *to, enum time_step step);

/* A pattern's words: {a,b} is each of the two, {00..15} each number of the same width (8..11 is without
 * padding), nested too; braces without a comma or a range stand for themselves, and so do those behind a
 * backslash. In the order of writing; *ret is NULL-ended, words_free() it. -E2BIG: more than
 * PATTERN_WORDS_MAX, or 32 MiB; -ENAMETOOLONG: one is longer than PATTERN_BYTES_MAX; -ENOMEM. */
int words_expand(const char *pattern, char ***ret, size_t *ret_n);
char **words_free(char **words);
static inline void words_free_p(char ***words) {
        words_free(*words);
}
