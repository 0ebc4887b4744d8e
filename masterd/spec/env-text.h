/* SPDX-License-Identifier: Apache-2.0 */
/* Variables whose values are written as numbers or truth values: {"LR": 1e-3, "AMP": true}. A program gets
 * text, and the text is what stands in the document: jansson would make 0.001 of it, and 3.1 of 3.10. */
#pragma once

#include <jansson.h>
#include <stddef.h>

/* Makes texts of the numbers and truth values that are directly in an object called "env", wherever one is.
 * text: the JSON that root was read from, without duplicate keys, in one pass. 0, or -ENOMEM. */
int env_texts(const char *text, size_t size, json_t *root);
/* The same where the text is an env itself. */
int env_texts_of_env(const char *text, size_t size, json_t *env);
