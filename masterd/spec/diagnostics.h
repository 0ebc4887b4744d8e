/* SPDX-License-Identifier: Apache-2.0 */
/* What is wrong, or worth knowing, about a text: where, which key, what to do. Bounded: behind
 * DIAGNOSTICS_MAX entries only the counts go on; an error takes the place of the last warning rather than
 * being lost. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "lib/base/cleanup.h"

#define DIAGNOSTICS_MAX 32u

enum diagnostic_severity {
        DIAGNOSTIC_WARNING,
        DIAGNOSTIC_ERROR,
};

struct diagnostic {
        enum diagnostic_severity severity;
        unsigned line, column; /* from 1, columns in characters; 0: concerns the whole text */
        char *path;            /* "role[0].comand"; "" for the whole text */
        char *message;
};

struct diagnostics {
        struct diagnostic items[DIAGNOSTICS_MAX];
        size_t n;
        size_t n_errors, n_warnings; /* also those beyond the bound */
};

/* Adds one. Returns its place in items, or DIAGNOSTICS_MAX when it was only counted, or -ENOMEM. */
int diagnostics_add(struct diagnostics *d, enum diagnostic_severity severity, unsigned line, unsigned column,
                    const char *path, const char *format, ...) _printf_(6, 7);

/* Orders the entries by line and column; those without a line come last. */
void diagnostics_sort(struct diagnostics *d);
void diagnostics_done(struct diagnostics *d);

/* "LINE:COLUMN: PATH: MESSAGE" in one line of valid UTF-8 without control characters, parts that are not
 * known left out. NULL on ENOMEM. */
char *diagnostic_format(const struct diagnostic *d);

/* The first error, or NULL. */
const struct diagnostic *diagnostics_first_error(const struct diagnostics *d);
