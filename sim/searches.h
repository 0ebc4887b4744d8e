/* SPDX-License-Identifier: Apache-2.0 */
/* The searches of a trace: their trials are jobs of the world that come as the search makes them, report at
 * each rung what is made up, and end when masterd's own search (masterd/search) says so. */
#pragma once

#include <jansson.h>

#include "sim/trace.h"
#include "sim/world.h"

struct searches;

/* The first trials of all of them; the others come while the world runs. *ret and t stay as long as w. */
int searches_begin(const struct trace *t, struct world *w, struct searches **ret);
struct searches *searches_free(struct searches *s);
/* A list, a search each: trials, results, how many were stopped early, what part of all units was trained,
 * when the last one ended, the best one. NULL: no memory. */
json_t *searches_numbers(const struct searches *s);
