/* SPDX-License-Identifier: Apache-2.0 */
/* Rules for single texts of a configuration. Each returns true, or false with *ret_why (static: what is
 * expected). */
#pragma once

#include <stdbool.h>

/* What valid_directory() says of a path whose characters it does not take; Submit's cwd has the same rule. */
#define DIRECTORY_RULE                                                                                       \
        "must not have control characters or line breaks, a blank at its end or a backslash there"

bool valid_role_name(const char *s, const char **ret_why);
bool valid_env_name(const char *s, const char **ret_why);
bool valid_label(const char *s, const char **ret_why); /* names of jobs and inputs */
bool valid_line(const char *s, const char **ret_why);
bool valid_queue(const char *s, const char **ret_why);
bool valid_stack_signal(const char *s, const char **ret_why); /* "USR2", "42", "none" */
bool valid_plain_signal(const char *s, const char **ret_why); /* "USR1" */
bool valid_signal(const char *s, const char **ret_why);       /* "USR1@60s" */
bool valid_file(const char *s, const char **ret_why);         /* files[] */
bool valid_directory(const char *s, const char **ret_why);    /* cwd */
bool valid_output(const char *s, const char **ret_why);       /* pattern with %j %r %i %a %n %% */
/* Of placement: */
bool valid_constraint(const char *s, const char **ret_why);
bool valid_label_key(const char *s, const char **ret_why);
bool valid_label_value(const char *s, const char **ret_why);
/* When a job starts, and as how many (valid-array.c): */
bool valid_after(const char *s, const char **ret_why);
bool valid_array(const char *s, const char **ret_why);
bool valid_begin(const char *s, const char **ret_why);
/* Of data: */
bool valid_data_path(const char *s, const char **ret_why);    /* pathPattern */
bool valid_name_pattern(const char *s, const char **ret_why); /* namePattern */
bool valid_marker(const char *s, const char **ret_why);       /* successMarkerPatterns[] */
bool valid_endpoints(const char *s, const char **ret_why);    /* hdfs.endpoint */
bool valid_reader_class(const char *s, const char **ret_why); /* customizedInput.className */
bool valid_endpoint(const char *s, const char **ret_why);     /* s3.endpoint */
bool valid_topic(const char *s, const char **ret_why);
bool valid_property(const char *s, const char **ret_why); /* a NAME of a topic's config */

/* Whether the text has a place for a part of a date: {{YYYY}}, {{MM}}, {{DD}}, {{HH}}. */
bool valid_has_date(const char *s);
