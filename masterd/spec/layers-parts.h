/* SPDX-License-Identifier: Apache-2.0 */
/* What the layers are made of, for layers.c and layers-origins.c. */
#pragma once

#include "masterd/spec/layers.h"
#include "masterd/spec/schema.h"

static inline void json_unref_p(json_t **v) {
        json_decref(*v);
}

/* The member of o that says what the key says, under any of its names or in another key of its group; k NULL:
 * what is called so. NULL: there is none, or it is null. */
json_t *layers_said(const struct schema *s, const json_t *o, const struct key *k, const char *name);

/* What stands in an object of a schema; NULL: the members of a map. */
static inline const struct schema *layers_schema(const struct key *k) {
        return k && (k->type == KEY_MESSAGE || k->type == KEY_LIST) ? k->message : NULL;
}

/* A configuration as its text has it, in the long form. NULL: broken, or no memory. */
json_t *layers_long_form(const char *text, size_t size);
