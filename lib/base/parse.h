/* SPDX-License-Identifier: Apache-2.0 */
/* Parsing of what people type: numbers, sizes, durations, booleans, names. Every function returns 0, or
 * -EINVAL for text that is not of the form, or -ERANGE for a value outside the bounds; outputs are written on
 * success only. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

int parse_u64(const char *s, uint64_t min, uint64_t max, uint64_t *ret);
int parse_u32(const char *s, uint32_t min, uint32_t max, uint32_t *ret);

/* yes/no, true/false, on/off, 1/0. */
int parse_bool(const char *s, bool *ret);

/* "512", "64K", "1.5G", "1 GiB": bytes, suffixes are powers of 1024. */
int parse_size(const char *s, uint64_t *ret);

/* "90", "90s", "500ms", "2h30min", "1d", "infinity", also Slurm's "HH:MM:SS", "D-HH:MM"; bare numbers are
 * seconds. Microseconds. */
int parse_duration(const char *s, uint64_t *ret_usec);

/* "1d 2h", "3min 20s", "450ms": the two largest units, into buf. Returns buf. */
char *format_duration(uint64_t usec, char *buf, size_t size);
#define FORMAT_DURATION_MAX 48

/* "1.5G", "64K", "0": into buf. Returns buf. */
char *format_size(uint64_t bytes, char *buf, size_t size);
#define FORMAT_SIZE_MAX 16

/* RFC 3339 with seconds, UTC ("2026-01-31T12:00:00Z"), into buf; "" for 0. Returns buf. */
char *format_time(uint64_t real_usec, char *buf, size_t size);
#define FORMAT_TIME_MAX 32

/* A node's name: RFC 1123 host name, 1..64 characters, lower case. */
bool node_name_valid(const char *s);

/* A role's name: [A-Za-z_][A-Za-z0-9_]*, 1..32 characters: it becomes part of unit and variable names. */
bool role_name_valid(const char *s);

/* An environment variable's name: [A-Za-z_][A-Za-z0-9_]*, 1..255 characters. */
bool env_name_valid(const char *s);

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

/* Edit distance (Levenshtein, bounded by 64 characters a side) for "did you mean". */
size_t edit_distance(const char *a, const char *b);
