/* SPDX-License-Identifier: Apache-2.0 */
/* A trial's parameters in the arguments of its command: "--lr={hp.lr}". What is text stands there as it is,
 * anything else as JSON; of nested ones names are joined by dots. Only in arguments, each of which stays one:
 * in a shell's command a value would be a part of the program. Pure. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "masterd/search/space.h"

#define FILLED_MAX (128u << 10) /* bytes of an argument: what the kernel takes (MAX_ARG_STRLEN) */

/* The next place for a parameter in a text, and where it goes on behind that. False: there is none. */
bool filled_next(const char **at, char ret_name[static SPACE_NAME_MAX + 1]);
/* Whether one of them has such a place. */
bool filled_any(char *const *argv);
/* What a trial was given under a name; borrowed, NULL: nothing. */
const json_t *filled_value(const json_t *given, const char *name);
/* argv with the values in it; an argument with a parameter that this trial does not have is left out. *ret is
 * allocated, NULL-ended. -E2BIG: one would be longer than FILLED_MAX; -ENOMEM. */
int filled_argv(char *const *argv, const json_t *given, char ***ret);
