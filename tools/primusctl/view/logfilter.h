/* SPDX-License-Identifier: Apache-2.0 */
/* Which lines of many executors' output are shown: those that a pattern matches, with some lines around each.
 * No bus in here. */
#pragma once

#include <regex.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LOGFILTER_CONTEXT_MAX 10000u
#define LOGFILTER_KEPT_MAX (16u << 20) /* bytes of an executor's lines that wait for a match */

struct logfilter {
        regex_t regex;
        uint32_t context; /* lines before and behind a match */
        uint64_t matched; /* lines, of all executors */
        char *line;       /* the one that is looked at */
        size_t line_size;
};

/* An extended regular expression (regex(7)). -EINVAL: *ret_error says why, for the caller to free. -ENOMEM.
 */
int logfilter_new(const char *pattern, bool ignore_case, uint32_t context, struct logfilter **ret,
                  char **ret_error);
struct logfilter *logfilter_free(struct logfilter *f); /* NULL is fine; returns NULL */
static inline void logfilter_free_p(struct logfilter **f) {
        (void)logfilter_free(*f);
}

/* What is kept of an executor's lines. All zero to begin with. */
struct logaround {
        char **lines; /* a ring of those that may stand before a match */
        size_t *sizes;
        size_t bytes;
        uint32_t first, n;
        uint32_t behind; /* so many more are shown behind a match */
        bool any, gap;   /* something was shown; something was left out since */
};

/* Calls put() for what is to be shown now that this line has come, in order: line NULL stands for lines that
 * were left out between two that are shown. 0, -ENOMEM, or what put() has returned. */
int logfilter_line(struct logfilter *f, struct logaround *a, const char *line, size_t n,
                   int (*put)(void *userdata, const char *line, size_t n, bool match), void *userdata);
void logaround_done(struct logaround *a);
