/* SPDX-License-Identifier: Apache-2.0 */
/* What makes a job short to write: one role whose keys stand at the top, and the words that people bring
 * along from other schedulers. */
#pragma once

#include <jansson.h>

#include "masterd/spec/schema.h"

#define SHORT_ROLE "worker" /* the name of a role that has none */

/* Of a job without "role", moves the keys that only a role has into the one role that they describe. 1: it is
 * such a job (also one in which no key of a role is left over, for which nothing is made); 0: it has roles;
 * -ENOMEM. */
int short_form(json_t *root);

/* The key of the schema that is meant by a word of another scheduler ("ntasks", "num_gpus"), in any spelling;
 * or NULL. */
const char *short_known_as(const struct schema *s, const char *word);
