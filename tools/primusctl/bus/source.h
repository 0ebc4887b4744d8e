/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration file that a person names. */
#pragma once

#include <stddef.h>

#include "masterd/spec/diagnostics.h"
#include "tools/primusctl/cli/cli.h"

#define CONFIG_MAX (4u << 20)

/* Reads path ("-": standard input), at most CONFIG_MAX bytes, whatever they are; of YAML (see job-yaml.h) the
 * JSON in its place. Reports "FILE: what is wrong". Returns 0 or CLI_FAILED. */
int source_read(const struct cli *c, const char *path, char **ret, size_t *ret_size);

/* The directory that files[] of the configuration at path are relative to; allocated, NULL on ENOMEM. */
char *source_directory(const char *path);

/* Prints "FILE:LINE:COLUMN: error: PATH: MESSAGE" of each, warnings alike, to standard error. */
void source_diagnostics(const char *path, const struct diagnostics *d);

/* Prints masterd's warnings "LINE:COLUMN: TEXT" as "FILE:LINE:COLUMN: warning: TEXT" to standard error. */
void source_warning(const char *path, const char *warning);
