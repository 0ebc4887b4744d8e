/* SPDX-License-Identifier: Apache-2.0 */
/* Rules for single texts of a configuration. Each returns true, or false with *ret_why (static: what is
 * expected). */
#pragma once

#include <stdbool.h>

bool valid_role_name(const char *s, const char **ret_why);
bool valid_env_name(const char *s, const char **ret_why);
bool valid_label(const char *s, const char **ret_why); /* names of jobs and inputs */
bool valid_queue(const char *s, const char **ret_why);
bool valid_file(const char *s, const char **ret_why);         /* files[] */
bool valid_directory(const char *s, const char **ret_why);    /* cwd */
bool valid_output(const char *s, const char **ret_why);       /* pattern with %j %r %i %a %n %% */
bool valid_data_path(const char *s, const char **ret_why);    /* pathPattern */
bool valid_name_pattern(const char *s, const char **ret_why); /* namePattern */
