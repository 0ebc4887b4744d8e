/* SPDX-License-Identifier: Apache-2.0 */
/* Tables for people, through libsmartcols, which is loaded when the first table is made. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "tools/primusctl/cli/cli.h"
#include "tools/primusctl/cli/text.h"

struct table_column {
        const char *name;
        bool right; /* aligned right */
        bool fills; /* is cut when the terminal is too narrow */
};

struct table;

/* Returns 0 or CLI_FAILED. columns is borrowed. */
int table_new(const struct cli *c, const struct table_column *columns, size_t n, struct table **ret);
void table_free(struct table *t);
DEFINE_CLEANUP(struct table *, table_free)

/* Begins a row; 0 or -ENOMEM. Cells of the row that are not set stay empty. */
int table_row(struct table *t);
/* Sets a cell of the current row; control characters are shown as '?'. Failures are kept and reported by
 * table_print(). */
void table_set(struct table *t, size_t column, enum color color, const char *format, ...) _printf_(4, 5);
/* How long that moment (CLOCK_REALTIME) is past: "2h 3min ago". */
void table_set_age(struct table *t, size_t column, uint64_t real);
/* Prints it to standard output. */
int table_print(const struct cli *c, struct table *t);

/* The same; where there is no row, what is said of that to standard error. */
int table_print_or(const struct cli *c, struct table *t, const char *empty);
