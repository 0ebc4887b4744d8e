/* SPDX-License-Identifier: Apache-2.0 */
/* Texts that are made, for what libprimus consists of: lib/base, which has the like, is not in it. */
#pragma once

#include <stddef.h>

/* For free(). NULL: there is no memory. */
char *text_make(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* n bytes as 2 n lower-case hex digits, and a NUL. */
void text_hex(const void *bytes, size_t n, char *ret);
