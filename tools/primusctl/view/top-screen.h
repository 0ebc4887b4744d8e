/* SPDX-License-Identifier: Apache-2.0 */
/* The terminal while something fills all of it: its own screen, keys as they are typed, and everything as it
 * was afterwards. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum screen_key {
        SCREEN_KEY_UP = 256,
        SCREEN_KEY_DOWN,
        SCREEN_KEY_PAGE_UP,
        SCREEN_KEY_PAGE_DOWN,
        SCREEN_KEY_HOME,
        SCREEN_KEY_END
};

struct screen;

/* Standard input and output are terminals. NULL: no memory, or the terminal does not take it. */
struct screen *screen_enter(void);
void screen_leave(struct screen *s);

void screen_size(unsigned *ret_columns, unsigned *ret_rows);

/* The next key in what was read from a terminal: a byte or an enum screen_key; 0: none is left. *at begins as
 * 0. */
int screen_next_key(const char *text, size_t n, size_t *at);

/* Whether it shows Unicode, by the locale's variables. */
bool screen_is_unicode(void);
