/* SPDX-License-Identifier: Apache-2.0 */
/* One pass over the text. Invariant: what comes out has the size and the line breaks of what went in. */
#include "masterd/spec/text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/utf8.h"

size_t text_character(const char *p, size_t n) {
        for (size_t l = 1; l <= 4 && l <= n; l++)
                if (utf8_valid(p, l))
                        return l;
        return 0;
}

void text_position(const char *text, size_t offset, unsigned *ret_line, unsigned *ret_column) {
        unsigned line = 1, column = 1;

        for (size_t i = 0; i < offset; i++)
                if (text[i] == '\n') {
                        line++;
                        column = 1;
                } else if (((unsigned char)text[i] & 0xc0) != 0x80) /* not a continuation byte */
                        column++;
        *ret_line = line;
        *ret_column = column;
}

static int text_error(struct diagnostics *d, const char *text, size_t offset, const char *message) {
        unsigned line, column;
        int r;

        text_position(text, offset, &line, &column);
        r = diagnostics_add(d, DIAGNOSTIC_ERROR, line, column, "", "%s", message);
        return r < 0 ? r : -EBADMSG;
}

/* The first byte that is not part of well-formed UTF-8, or size. ASCII, which is nearly all, goes by quickly.
 */
static size_t text_bad_byte(const char *text, size_t size) {
        for (size_t i = 0, l; i < size; i += l) {
                l = (unsigned char)text[i] - 1u < 0x7f ? 1 : text_character(text + i, size - i);
                if (l == 0)
                        return i;
        }
        return size;
}

/* Length of the comment at p, 0 when there is none; SIZE_MAX for one without end. */
static size_t text_comment(const char *p, size_t n) {
        const char *end;

        if (n < 2 || p[0] != '/' || (p[1] != '/' && p[1] != '*'))
                return 0;
        if (p[1] == '/') {
                end = memchr(p, '\n', n);
                return end ? (size_t)(end - p) : n;
        }
        for (size_t i = 3; i < n; i++)
                if (p[i] == '/' && p[i - 1] == '*')
                        return i + 1;
        return SIZE_MAX;
}

/* Length of the string literal at p (which is its opening quote), SIZE_MAX for one without end in its line.
 */
static size_t text_string(const char *p, size_t n) {
        for (size_t i = 1; i < n && p[i] != '\n'; i++)
                if (p[i] == '\\')
                        i++;
                else if (p[i] == '"')
                        return i + 1;
        return SIZE_MAX;
}

static void text_blank(char *p, size_t n) {
        for (size_t i = 0; i < n; i++)
                if (p[i] != '\n')
                        p[i] = ' ';
}

static int text_scan(char *clean, const char *text, size_t size, const struct text_bounds *bounds,
                     struct diagnostics *d) {
        size_t values = 0, l;
        unsigned depth = 0;

        for (size_t i = 0; i < size; i += l) {
                l = 1;
                switch (text[i]) {
                case '"':
                        l = text_string(text + i, size - i);
                        if (l == SIZE_MAX)
                                return text_error(d, text, i,
                                                  "the text in quotes that begins here has no end");
                        break;
                case '/':
                        l = text_comment(text + i, size - i);
                        if (l == SIZE_MAX)
                                return text_error(d, text, i, "the comment that begins here has no end");
                        if (l == 0)
                                return text_error(d, text, i, "a single '/' means nothing here");
                        text_blank(clean + i, l);
                        break;
                case '[':
                case '{':
                        if (++depth > bounds->depth)
                                return text_error(d, text, i, "nested too deeply");
                        values++;
                        break;
                case ']':
                case '}':
                        depth -= depth > 0;
                        break;
                case ',':
                        values++;
                        break;
                }
                if (values > bounds->values)
                        return text_error(d, text, i, "too many values");
        }
        return 0;
}

int text_prepare(const char *text, size_t size, const struct text_bounds *bounds, struct diagnostics *d,
                 char **ret) {
        _cleanup_free_ char *clean = NULL;
        size_t bad;
        int r;

        if (size > bounds->size) {
                r = diagnostics_add(d, DIAGNOSTIC_ERROR, 0, 0, "",
                                    "the configuration has %zu bytes; at most %zu are accepted", size,
                                    bounds->size);
                return r < 0 ? r : -EBADMSG;
        }
        bad = text_bad_byte(text, size);
        if (bad < size)
                return text_error(d, text, bad,
                                  text[bad] ? "not UTF-8: save the file as UTF-8" : "a NUL byte");

        clean = malloc(size + 1);
        if (!clean)
                return -ENOMEM;
        memcpy(clean, text, size);
        clean[size] = 0;
        if (size >= 3 && memcmp(clean, "\xef\xbb\xbf", 3) == 0) { /* the byte order mark of some editors */
                text_blank(clean, 3);
        }
        r = text_scan(clean, text, size, bounds, d);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(clean);
        return 0;
}
