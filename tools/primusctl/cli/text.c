/* SPDX-License-Identifier: Apache-2.0 */
/* Text for terminals. Invariant: nothing that a job's author wrote can move the cursor, retitle the window or
 * make the terminal answer. */
#include "tools/primusctl/cli/text.h"

#include <string.h>
#include <sys/ioctl.h>
#include <time.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"

static const char *const sequences[_COLOR_MAX] = {
        [COLOR_NONE] = "",           [COLOR_RED] = "\033[31m",  [COLOR_GREEN] = "\033[32m",
        [COLOR_YELLOW] = "\033[33m", [COLOR_CYAN] = "\033[36m", [COLOR_BOLD] = "\033[1m",
        [COLOR_DIM] = "\033[2m",
};

const char *color_sequence(enum color c) {
        return sequences[c];
}

const char *color_of_rank(size_t n) {
        static const char *const palette[] = { "\033[36m", "\033[33m", "\033[32m", "\033[35m", "\033[34m",
                                               "\033[96m", "\033[93m", "\033[92m", "\033[95m", "\033[94m" };

        return palette[n % ELEMENTSOF(palette)];
}

enum color color_of_state(const char *state) {
        static const struct {
                const char *state;
                enum color color;
        } colors[] = {
                { "RUNNING", COLOR_GREEN },    { "SUCCEEDED", COLOR_GREEN }, { "READY", COLOR_GREEN },
                { "FAILED", COLOR_RED },       { "LOST", COLOR_RED },        { "KILLED", COLOR_YELLOW },
                { "SUSPECT", COLOR_YELLOW },   { "QUEUED", COLOR_YELLOW },   { "DRAINING", COLOR_YELLOW },
                { "SUSPENDED", COLOR_YELLOW }, { "STOPPING", COLOR_YELLOW }, { "STARTING", COLOR_CYAN },
                { "CORDONED", COLOR_YELLOW },  { "DRAINED", COLOR_YELLOW },
        };

        for (size_t i = 0; i < ELEMENTSOF(colors); i++)
                if (strcmp(colors[i].state, state) == 0)
                        return colors[i].color;
        return COLOR_NONE;
}

/* The length of the well-formed UTF-8 character at s (1..4), or 0. */
static size_t utf8_length(const unsigned char *s, size_t n) {
        uint32_t c;
        size_t length;

        if (s[0] < 0x80)
                return 1;
        length = s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : s[0] >= 0xc2 ? 2 : 0;
        if (length == 0 || length > n || s[0] > 0xf4)
                return 0;
        c = s[0] & (0x7fu >> length);
        for (size_t i = 1; i < length; i++) {
                if ((s[i] & 0xc0) != 0x80)
                        return 0;
                c = c << 6 | (s[i] & 0x3f);
        }
        if ((length == 3 && (c < 0x800 || (c >= 0xd800 && c < 0xe000))) ||
            (length == 4 && (c < 0x10000 || c > 0x10ffff)))
                return 0;
        return length;
}

static bool is_c1(const unsigned char *s, size_t length) {
        return length == 2 && s[0] == 0xc2 && s[1] < 0xa0;
}

void text_clean(char *s) {
        unsigned char *p = (unsigned char *)s;
        size_t n = strlen(s);

        while (n > 0) {
                size_t length = utf8_length(p, n);

                if (length == 1 && (*p < 0x20 || *p == 0x7f))
                        *p = *p == '\n' || *p == '\t' || *p == '\r' ? ' ' : '?';
                else if (length == 0 || is_c1(p, length)) {
                        length = length ? length : 1;
                        memset(p, '?', length);
                }
                p += length;
                n -= length;
        }
}

/* Length of the escape sequence at s (s[0] is ESC), at least 1; *ret_sgr: is it a colour? */
static size_t escape_length(const char *s, size_t n, bool *ret_sgr) {
        size_t i = 2;

        *ret_sgr = false;
        if (n < 2)
                return n;
        if (s[1] == '[') {
                while (i < n && s[i] >= 0x20 && s[i] < 0x40)
                        i++;
                if (i >= n)
                        return n;
                *ret_sgr = s[i] == 'm' && i < 40;
                return i + 1;
        }
        if (strchr("]P_^X", s[1])) { /* strings: to BEL or ST */
                for (; i < n && s[i] != '\n'; i++) {
                        if (s[i] == '\a')
                                return i + 1;
                        if (s[i] == '\033' && i + 1 < n && s[i + 1] == '\\')
                                return i + 2;
                }
                return i;
        }
        while (i < n && s[i - 1] >= 0x20 && s[i - 1] < 0x30) /* nF sequences: ESC ( B */
                i++;
        return i;
}

void text_filter_terminal(const char *s, size_t n, FILE *f) {
        while (n > 0) {
                size_t length = utf8_length((const unsigned char *)s, n);
                unsigned char ch = (unsigned char)*s;

                if (ch == 0x1b) {
                        bool sgr;
                        length = escape_length(s, n, &sgr);
                        if (sgr)
                                fwrite(s, 1, length, f);
                } else if (length == 0) {
                        length = 1;
                        putc('?', f);
                } else if (is_c1((const unsigned char *)s, length) ||
                           ((ch < 0x20 || ch == 0x7f) && ch != '\t' && ch != '\r' && ch != '\n'))
                        ; /* dropped */
                else
                        fwrite(s, 1, length, f);
                s += length;
                n -= length;
        }
}

char *text_fit(const char *s, size_t columns) {
        size_t n = strlen(s), used = 0, i = 0, last = 0;
        char *out;

        while (i < n) {
                bool sgr;

                if (s[i] == '\033') {
                        i += escape_length(s + i, n - i, &sgr);
                        continue;
                }
                if (used + 1 == columns)
                        last = i;
                if (used == columns) {
                        if (asprintf(&out, "%.*s…" COLOR_RESET, (int)last, s) < 0)
                                return NULL;
                        return out;
                }
                used++;
                i += MAX(utf8_length((const unsigned char *)s + i, n - i), (size_t)1);
        }
        return strdup(s);
}

char *text_bar(uint64_t done, uint64_t total, unsigned width, char *buf, size_t size) {
        unsigned inner = width < 3 ? 1 : width - 2, filled;
        size_t n = 0;

        filled = total == 0 ? 0 : (unsigned)((double)MIN(done, total) / (double)total * inner);
        for (unsigned i = 0; i < inner + 2 && n + 1 < size; i++)
                buf[n++] = i == 0 ? '[' : i == inner + 1 ? ']' : i <= filled ? '#' : '-';
        buf[n] = 0;
        return buf;
}

char *text_time(uint64_t real_usec, uint64_t now_usec, char *buf, size_t size) {
        time_t t = (time_t)(real_usec / USEC_PER_SEC), now = (time_t)(now_usec / USEC_PER_SEC);
        struct tm tm, today;

        if (real_usec == 0 || !localtime_r(&t, &tm) || !localtime_r(&now, &today)) {
                snprintf(buf, size, "-");
                return buf;
        }
        if (strftime(buf, size,
                     tm.tm_year == today.tm_year && tm.tm_yday == today.tm_yday ? "%H:%M:%S"
                                                                                : "%Y-%m-%d %H:%M",
                     &tm) == 0)
                buf[0] = 0;
        return buf;
}

unsigned text_columns(int fd) {
        struct winsize ws;

        return ioctl(fd, TIOCGWINSZ, &ws) >= 0 && ws.ws_col > 0 ? ws.ws_col : 80;
}
