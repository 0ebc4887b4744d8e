/* SPDX-License-Identifier: Apache-2.0 */
/* Text for terminals: cleaning, colours, bars. Pure functions. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum color {
        COLOR_NONE,
        COLOR_RED,
        COLOR_GREEN,
        COLOR_YELLOW,
        COLOR_CYAN,
        COLOR_BOLD,
        COLOR_DIM,
        _COLOR_MAX
};

/* The SGR sequence (for smartcols, its name is the same sequence); "" for NONE. */
const char *color_sequence(enum color c);
#define COLOR_RESET "\033[0m"

/* The colour of the n-th executor's prefix. */
const char *color_of_rank(size_t n);

/* The colour of a state of a job, an executor or a node. */
enum color color_of_state(const char *state);

/* In place: bytes below 0x20, 0x7f, C1 controls and what is not UTF-8 become '?'; newlines and tabs become
 * blanks. */
void text_clean(char *s);

/* Writes n bytes of a log for a terminal to f: ESC sequences other than colours (SGR) are dropped, as are
 * control characters except \t, \r and \n; what is not UTF-8 becomes '?'. */
void text_filter_terminal(const char *s, size_t n, FILE *f);

/* Cuts s to at most columns columns (one per character; SGR sequences take none), ending in "…" when
 * something was cut and resetting colours. Returns an allocated string or NULL. */
char *text_fit(const char *s, size_t columns);

/* "[######----]" of width columns for done of total, into buf (size >= width + 1). */
char *text_bar(uint64_t done, uint64_t total, unsigned width, char *buf, size_t size);

/* "12:03:04" on the same day as now, else "2026-01-31 12:03"; "-" for 0. Local time. */
char *text_time(uint64_t real_usec, uint64_t now_real, char *buf, size_t size);
#define TEXT_TIME_MAX 32

/* Columns of the terminal behind fd; 80 where it cannot be known. */
unsigned text_columns(int fd);
