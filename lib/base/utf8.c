/* SPDX-License-Identifier: Apache-2.0 */
/* UTF-8 (RFC 3629), and which text may stand on a line. Invariant: no byte behind the size given is read. */
#include "lib/base/utf8.h"

#include <stdint.h>
#include <string.h>

size_t utf8_sequence(const void *bytes, size_t n) {
        const unsigned char *p = bytes;
        static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
        size_t l = p[0] < 0x80             ? 1
                   : (p[0] & 0xe0) == 0xc0 ? 2
                   : (p[0] & 0xf0) == 0xe0 ? 3
                   : (p[0] & 0xf8) == 0xf0 ? 4
                                           : 0;
        uint32_t c;

        if (l == 0 || l > n || p[0] == 0)
                return 0;
        if (l == 1)
                return 1;
        c = p[0] & (0xffu >> (l + 1));
        for (size_t i = 1; i < l; i++) {
                if ((p[i] & 0xc0) != 0x80)
                        return 0;
                c = c << 6 | (p[i] & 0x3f);
        }
        if (c < least[l] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
                return 0;
        /* Noncharacters, which systemd and sd-bus take for no UTF-8: a message with one cannot be sent. */
        return (c >= 0xfdd0 && c <= 0xfdef) || (c & 0xfffe) == 0xfffe ? 0 : l;
}

bool utf8_valid(const void *bytes, size_t n) {
        const unsigned char *p = bytes;

        for (size_t i = 0, l; i < n; i += l)
                if ((l = utf8_sequence(p + i, n - i)) == 0)
                        return false;
        return true;
}

char *utf8_clean(const char *s, size_t n, char *buf, size_t size) {
        size_t o = 0;

        for (size_t i = 0, l; i < n; i += l ? l : 1) {
                l = utf8_sequence(s + i, n - i);
                if (o + (l ? l : 1) >= size)
                        break;
                if (l)
                        memcpy(buf + o, s + i, l);
                else
                        buf[o] = '?';
                o += l ? l : 1;
        }
        buf[o] = 0;
        return buf;
}

char *text_one_line(char *s) {
        for (char *p = s; *p; p++)
                if ((unsigned char)*p < ' ' || *p == 0x7f)
                        *p = '?';
        return s;
}

bool text_is_line(const char *s) {
        const unsigned char *p = (const unsigned char *)s;
        size_t n = strlen(s), l;

        for (; n > 0; p += l, n -= l) {
                l = utf8_sequence(p, n);
                if (l == 0 || *p < ' ' || *p == 0x7f)
                        return false;
                if (p[0] == 0xc2 && p[1] < 0xa0) /* C1: U+0080 ... U+009F */
                        return false;
                if (p[0] == 0xe2 && p[1] == 0x80 && (p[2] == 0xa8 || p[2] == 0xa9))
                        return false;
        }
        return true;
}

bool text_is_setting(const char *s) {
        size_t n = strlen(s);

        return text_is_line(s) && (n == 0 || (s[0] != ' ' && s[n - 1] != ' ' && s[n - 1] != '\\'));
}

int utf8_fit(const char *s, size_t max) {
        size_t n = strnlen(s, max + 1);

        if (n > max)
                for (n = max; n > 0 && ((unsigned char)s[n] & 0xc0) == 0x80;)
                        n--;
        return (int)n;
}
