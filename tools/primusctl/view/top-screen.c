/* SPDX-License-Identifier: Apache-2.0 */
/* A terminal's whole screen. */
#include "tools/primusctl/view/top-screen.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "lib/base/cleanup.h"

struct screen {
        struct termios before;
};

struct screen *screen_enter(void) {
        struct screen *s = calloc(1, sizeof(*s));
        struct termios raw;

        if (!s || tcgetattr(STDIN_FILENO, &s->before) < 0) {
                free(s);
                return NULL;
        }
        raw = s->before;
        raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
        raw.c_cc[VMIN] = 0;
        raw.c_cc[VTIME] = 0;
        raw.c_cc[VSUSP] = _POSIX_VDISABLE; /* Ctrl-Z would leave the shell on this screen */
        if (tcsetattr(STDIN_FILENO, TCSANOW, &raw) < 0) {
                free(s);
                return NULL;
        }
        fputs("\033[?1049h\033[?25l\033[2J", stdout);
        fflush(stdout);
        return s;
}

void screen_leave(struct screen *s) {
        if (!s)
                return;
        fputs("\033[?25h\033[?1049l", stdout);
        fflush(stdout);
        (void)tcsetattr(STDIN_FILENO, TCSANOW, &s->before);
        free(s);
}

void screen_size(unsigned *ret_columns, unsigned *ret_rows) {
        struct winsize ws;
        bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &ws) >= 0 && ws.ws_col > 0 && ws.ws_row > 0;

        *ret_columns = known ? ws.ws_col : 80;
        *ret_rows = known ? ws.ws_row : 24;
}

int screen_next_key(const char *text, size_t n, size_t *at) {
        static const struct {
                const char *sequence;
                enum screen_key key;
        } keys[] = {
                { "[A", SCREEN_KEY_UP },   { "[B", SCREEN_KEY_DOWN },     { "OA", SCREEN_KEY_UP },
                { "OB", SCREEN_KEY_DOWN }, { "[5~", SCREEN_KEY_PAGE_UP }, { "[6~", SCREEN_KEY_PAGE_DOWN },
                { "[H", SCREEN_KEY_HOME }, { "[F", SCREEN_KEY_END },      { "OH", SCREEN_KEY_HOME },
                { "OF", SCREEN_KEY_END },  { "[1~", SCREEN_KEY_HOME },    { "[4~", SCREEN_KEY_END },
        };

        while (*at < n) {
                unsigned char c = (unsigned char)text[(*at)++];
                if (c != '\033')
                        return c;
                for (size_t i = 0; i < ELEMENTSOF(keys); i++) {
                        size_t l = strlen(keys[i].sequence);
                        if (n - *at >= l && memcmp(text + *at, keys[i].sequence, l) == 0) {
                                *at += l;
                                return (int)keys[i].key;
                        }
                }
                /* Another sequence: passed over, so that its letters are no keys. */
                if (*at < n && (text[*at] == '[' || text[*at] == 'O'))
                        for ((*at)++; *at < n && (uint8_t)text[*at] < 0x40;)
                                (*at)++;
                *at += *at < n;
        }
        return 0;
}

bool screen_is_unicode(void) {
        static const char *const variables[] = { "LC_ALL", "LC_CTYPE", "LANG" };

        for (size_t i = 0; i < ELEMENTSOF(variables); i++) {
                const char *value = getenv(variables[i]);
                if (value && *value)
                        return strcasestr(value, "utf-8") || strcasestr(value, "utf8");
        }
        return false;
}
