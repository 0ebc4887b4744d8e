/* SPDX-License-Identifier: Apache-2.0 */
/* Between places in a JSON document ("role[0].command") and bytes of its text: jansson keeps no positions, so
 * when there is something to report the text is walked a second time. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define PLACE_DEPTH_MAX 33u

/* A way down from the root: member names and element indices. Names are not owned. */
struct place {
        struct place_step {
                const char *key; /* NULL: an element */
                size_t index;
        } steps[PLACE_DEPTH_MAX];
        size_t n;
        bool at_key; /* the member's name rather than its value */
};

/* One step down; a step too many is dropped. */
void place_push(struct place *p, const char *key, size_t index);

/* "role[0].env[\"a b\"]", long and odd names cut and cleaned. NULL on ENOMEM. */
char *place_format(const struct place *p);

/* True when a member written as text (n bytes between the quotes) is called name; role_name is roleName, as
 * in protobuf's JSON. */
bool member_is_called(const char *text, size_t n, const char *name);

/* Finds where each of n places is in well-formed JSON, in one pass. What is not there (a missing member) is
 * the place of the nearest thing around it. */
void locate_places(const char *text, size_t size, const struct place *const places[], size_t n,
                   size_t ret_offsets[]);

/* The way to what is at a byte; the text need only be well-formed up to there. Names are allocated in one
 * block, which the caller frees. -ENOMEM. */
int locate_offset(const char *text, size_t size, size_t offset, struct place *ret, char **ret_names);
