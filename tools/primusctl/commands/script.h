/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs that are scripts: "#PRIMUS" lines in their head are options of run. */
#pragma once

#include "tools/primusctl/commands/submit.h"

/* Something to be executed, not a description: it begins with "#!". */
bool script_is(const char *text, size_t size);

/* Submits the script at path, whose content is text (it is changed): it is sent along and runs in the current
 * directory with arguments (NULL-ended). What options say wins over what the script says. *ret_name: the
 * job's, allocated. An exit status. */
int script_submit(struct cli *c, const char *path, char *text, char *const *arguments,
                  const struct submission *options, struct job_ref *ret, char **ret_name);

/* Splits a line into words at blanks; '...' and "..." keep theirs, nothing is expanded. The words lie in
 * line, which is changed. At most max of them, *n is raised. 0; -EINVAL: a quote without its end; -E2BIG. */
int script_words(char *line, char **words, size_t max, size_t *n);
