/* SPDX-License-Identifier: Apache-2.0 */
/* The terminal that a session is shown on. Invariant: however the tool ends, the terminal is as it was found.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Of standard input; until terminal_restore(), which is called at exit too. lines: what others print to it
 * still begins at the left. Negative errno. */
int terminal_raw(bool lines);
void terminal_restore(void);
/* 24 by 80 where nobody knows. */
void terminal_size(uint16_t *rows, uint16_t *columns);

/* All of it, also where somebody has made the descriptor nonblocking. */
int terminal_write(int fd, const void *data, size_t size);

/* Where "~." stands: behind a newline. */
enum escape {
        ESCAPE_MIDDLE,
        ESCAPE_LINE_START,
        ESCAPE_TILDE
};
/* Takes the escape out of what was typed: "~." at the start of a line ends the session, "~~" is a tilde. out:
 * twice as large as in. True: it ends. */
bool terminal_escape(enum escape *state, const char *in, size_t size, char *out, size_t *ret_size);
