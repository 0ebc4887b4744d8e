/* SPDX-License-Identifier: Apache-2.0 */
/* Raw terminals. */
#include "tools/primusctl/bus/terminal.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

static struct termios saved;
static bool raw;

void terminal_restore(void) {
        if (raw)
                (void)tcsetattr(STDIN_FILENO, TCSADRAIN, &saved);
        raw = false;
}

int terminal_raw(bool lines) {
        struct termios t;

        if (raw)
                return 0;
        if (tcgetattr(STDIN_FILENO, &saved) < 0)
                return -errno;
        t = saved;
        cfmakeraw(&t);
        if (lines)
                t.c_oflag |= OPOST | ONLCR;
        if (atexit(terminal_restore) != 0 || tcsetattr(STDIN_FILENO, TCSADRAIN, &t) < 0)
                return -errno;
        raw = true;
        return 0;
}

void terminal_size(uint16_t *rows, uint16_t *columns) {
        struct winsize w = { 0 };

        if (ioctl(STDIN_FILENO, TIOCGWINSZ, &w) < 0 || w.ws_row == 0 || w.ws_col == 0)
                w = (struct winsize){ .ws_row = 24, .ws_col = 80 };
        *rows = w.ws_row;
        *columns = w.ws_col;
}

int terminal_write(int fd, const void *bytes, size_t size) {
        const char *data = bytes;

        while (size > 0) {
                ssize_t n = write(fd, data, size);

                if (n < 0 && errno == EAGAIN) { /* somebody else's setting of the same terminal */
                        struct pollfd p = { .fd = fd, .events = POLLOUT };
                        (void)poll(&p, 1, -1);
                } else if (n < 0 && errno != EINTR)
                        return -errno;
                else if (n > 0) {
                        data += n;
                        size -= (size_t)n;
                }
        }
        return 0;
}

bool terminal_escape(enum escape *state, const char *in, size_t size, char *out, size_t *ret_size) {
        size_t n = 0;

        for (size_t i = 0; i < size; i++) {
                if (*state == ESCAPE_LINE_START && in[i] == '~') {
                        *state = ESCAPE_TILDE;
                        continue;
                }
                if (*state == ESCAPE_TILDE) {
                        if (in[i] == '.')
                                return true;
                        out[n++] = '~';
                        if (in[i] == '~') {
                                *state = ESCAPE_MIDDLE;
                                continue;
                        }
                }
                out[n++] = in[i];
                *state = in[i] == '\r' || in[i] == '\n' ? ESCAPE_LINE_START : ESCAPE_MIDDLE;
        }
        *ret_size = n;
        return false;
}
