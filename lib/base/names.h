/* SPDX-License-Identifier: Apache-2.0 */
/* Names that people give: which are valid, and which was meant. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* A node's name: RFC 1123 host name, 1..64 characters, lower case. */
bool node_name_valid(const char *s);

/* A role's name: [A-Za-z_][A-Za-z0-9_]*, 1..32 characters: it becomes part of unit and variable names. */
bool role_name_valid(const char *s);

/* An environment variable's name: [A-Za-z_][A-Za-z0-9_]*, 1..255 characters. */
bool env_name_valid(const char *s);

/* Edit distance (Levenshtein, bounded by 64 characters a side) for "did you mean". */
size_t edit_distance(const char *a, const char *b);
