/* SPDX-License-Identifier: Apache-2.0 */
/* Job files in YAML (1.2, the core schema: "no" and "on" are texts) as the JSON that the master reads. Each
 * value is put into the line that it has in the YAML, and into its column where there is room, so that what
 * is said of one is true of the other. Anchors, aliases, tags, merge keys and further documents are refused:
 * none is needed, and some make a large file of a small one. No bus in here. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define YAML_DEPTH_MAX 64u
#define YAML_JSON_MAX (8u << 20)

struct yaml_error {
        size_t line, column; /* from 1; 0: of the whole */
        char text[160];
};

/* By its name: .yaml or .yml. */
bool yaml_is(const char *path);

/* *ret: allocated, NUL-ended. 0; -EINVAL with ret_error; -ENOMEM. */
int yaml_to_json(const char *text, size_t size, char **ret, size_t *ret_size, struct yaml_error *ret_error);
