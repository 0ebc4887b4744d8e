/* SPDX-License-Identifier: Apache-2.0 */
/* The text of a configuration before a JSON parser sees it: comments taken out, and everything refused that a
 * parser would be slow, vague or greedy about. */
#pragma once

#include <stddef.h>

#include "masterd/spec/diagnostics.h"

struct text_bounds {
        size_t size;    /* bytes */
        unsigned depth; /* nested objects and arrays */
        size_t values;  /* members and elements, roughly: commas and brackets */
};

/* Copies the text with comments (// to the end of the line, and C's) turned into blanks, so that every
 * offset, line and column stays what it was (NUL behind the last byte). -EBADMSG: d has the error (too large,
 * not UTF-8, NUL byte, nested too deeply, too many values, comment or string without end). */
int text_prepare(const char *text, size_t size, const struct text_bounds *bounds, struct diagnostics *d,
                 char **ret);

/* Line (from 1) and column (from 1, in characters) of a byte. */
void text_position(const char *text, size_t offset, unsigned *ret_line, unsigned *ret_column);

/* Length of the well-formed UTF-8 sequence (NUL excluded) at p, or 0. */
size_t text_character(const char *p, size_t n);
