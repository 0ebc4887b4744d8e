/* SPDX-License-Identifier: Apache-2.0 */
/* What a trial's parameters can be: a JSON object, name by name.
 *
 *     a value that is no object, {"type": "const", "val": V}        that value
 *     {"type": "int", "minval": A, "maxval": B}                     A ... B, both included; "step": S
 *     {"type": "double", "minval": A, "maxval": B}                  A <= x < B; "step": S: A + i S <= B
 *     {"type": "log", "minval": A, "maxval": B, "base": 10}         base to the power of A <= x < B
 *     {"type": "categorical", "vals": [...]}                        one of them, whatever it is
 *     an object without "type"                                      the same again, names joined by dots
 *
 * "count": N says how many points a grid has of it; "when": {"NAME": V} or [V, ...] that it is there only
 * where another parameter has such a value. The types and their ends are Determined's, so that its spaces can
 * be taken as they are; step and when are not.
 *
 * What a trial has depends on the seed, its number and the parameter's name alone: not on who asks when, nor
 * on what other parameters there are. Pure. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#define SPACE_NAMES_MAX 256u
#define SPACE_NAME_MAX 128u /* bytes, joined */
#define SPACE_VALUES_MAX 10000u
#define SPACE_DEPTH_MAX 8u
#define SPACE_POINTS_MAX 100000u    /* of a grid, of a list */
#define SPACE_GIVEN_MAX (64u << 10) /* bytes of what one trial is given, as JSON */
#define SPACE_WHY_MAX 256u

struct space;

/* -EINVAL with why, "lr: minval must be below maxval"; -ENOMEM. grid: every parameter says its points. */
int space_read(json_t *j, bool grid, struct space **ret, char why[static SPACE_WHY_MAX]);
struct space *space_free(struct space *s);
static inline void space_free_p(struct space **s) {
        space_free(*s);
}

/* Of a list: an array with what each trial is given, as space_check_given() has let it pass. -ENOMEM. */
int space_of_list(json_t *points, struct space **ret);

/* Bytes of memory that it takes; bytes of the largest that a trial may be given, as JSON. */
size_t space_bytes(const struct space *s);
size_t space_given_max(const struct space *s);

/* Points of a list; of a grid: names in order, the last one changes fastest; what "when" leaves out counts
 * once. 0: every trial has parameters of its own. */
uint32_t space_n_points(const struct space *s);
/* What a trial is given. -ENOENT: there are not so many points; -ENOMEM. */
int space_given(const struct space *s, uint64_t seed, uint32_t trial, json_t **ret);

/* Whether a trial may have something of that name: a parameter, or an object of such. */
bool space_has(const struct space *s, const char *name);

/* The seed for what a trial itself draws: 0 ... 2^31 - 1. */
uint32_t space_trial_seed(uint64_t seed, uint32_t trial);

/* An object with parameters alone, as a list gives them: names that are as they should be, and not too much.
 * -EINVAL with why. */
int space_check_given(json_t *j, char why[static SPACE_WHY_MAX]);
