/* SPDX-License-Identifier: Apache-2.0 */
/* Events of a job as a story: what many executors did alike at the same time is one line. Pure. */
#pragma once

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/cleanup.h"

struct story_event {
        uint64_t sequence, time;
        const char *kind, *role, *text; /* role "": the job */
        uint32_t index;
};
/* Of rows of the shape json_event, from the n-th on: so many as there are behind it. The texts stay theirs.
 * Allocated; NULL: out of memory. */
struct story_event *story_events(const json_t *rows, size_t first);

struct story_line {
        uint64_t time, until; /* of the first and the last event in it */
        char *kind;
        char *who;  /* "worker/0-63", or "" */
        char *text; /* "attempt 1 on n1, n2 and 6 more: exit status 0" */
        size_t n;   /* events */
};
void story_lines_free(struct story_line *l, size_t n);

/* Groups events, in the order of their first ones; events of the job stand alone, and nothing is moved over
 * one. Allocated. 0 or -ENOMEM. */
int story_tell(const struct story_event *events, size_t n, struct story_line **ret, size_t *ret_n);

/* "0-3,7,9-12" of indices, which are sorted here; at most so many parts, then "...". Allocated. */
char *story_indices(uint32_t *indices, size_t n);

/* "+0.9s", "+2min 3s": how long after begin, into buf. Returns buf. */
char *story_after(uint64_t begin, uint64_t time, char *buf, size_t size);
#define STORY_AFTER_MAX 56
