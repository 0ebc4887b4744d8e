/* SPDX-License-Identifier: Apache-2.0 */
/* Text as bytes: UTF-8, and what may stand on one line. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Length of the well-formed character (RFC 3629: no overlong forms, no surrogates, <= U+10FFFF; and none of
 * the noncharacters, such as U+FFFE) that the n bytes begin with; 0: none, or NUL. */
size_t utf8_sequence(const void *bytes, size_t n);

/* True when the bytes are well-formed UTF-8 without NUL (what a D-Bus string may carry). */
bool utf8_valid(const void *bytes, size_t n);

/* Writes s into buf with every byte that is not valid UTF-8 replaced by '?', cut at size - 1. Returns buf. */
char *utf8_clean(const char *s, size_t n, char *buf, size_t size);

/* Control characters, line ends first of all, become '?', in place: for what a peer says and systemd is told,
 * where a line of its own would be another message. Returns s. */
char *text_one_line(char *s);

/* True when nothing in s ends a line or begins one, wherever it is written: UTF-8 without control characters
 * (C0, DEL, C1) and without the line and paragraph separators U+2028 and U+2029. */
bool text_is_line(const char *s);

/* And when it can stand behind "NAME=" on a line of a file that knows neither quotes nor escapes, as some of
 * systemd's do: no backslash at its end, which would draw in the next line, no blank at either end. */
bool text_is_setting(const char *s);

/* For "%.*s": how many bytes of s fit into max without a character being cut in two, which D-Bus does not
 * take. */
int utf8_fit(const char *s, size_t max);
