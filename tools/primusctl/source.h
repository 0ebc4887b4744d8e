/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration file that a person names. */
#pragma once

#include <stddef.h>

#include "tools/primusctl/cli.h"

#define CONFIG_MAX (4u << 20)

/* Reads path ("-": standard input), at most CONFIG_MAX bytes, whatever they are. Reports "FILE: what is
 * wrong". Returns 0 or CLI_FAILED. */
int source_read(const struct cli *c, const char *path, char **ret, size_t *ret_size);

/* The directory that files[] of the configuration at path are relative to; allocated, NULL on ENOMEM. */
char *source_directory(const char *path);

/* Prints masterd's warnings "LINE:COLUMN: TEXT" as "FILE:LINE:COLUMN: warning: TEXT" to standard error. */
void source_warning(const char *path, const char *warning);
