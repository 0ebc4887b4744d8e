/* SPDX-License-Identifier: Apache-2.0 */
/* CSV: lines, but for the quotes. A field that begins with " goes to the next " that is not doubled; a field
 * begins at the start of a line and behind a comma, a semicolon or a tab. A quote within a field that does
 * not begin with one is a letter, as spreadsheets write 3.5" disk. Only quotes decide where a line ends, so
 * which of the separators it is need not be known. */
#include <errno.h>
#include <string.h>

#include "lib/record/formats.h"

static const char open_quote[] = "a quoted field goes over the end of its line: set csvInput.multiline";

static bool separates(uint8_t c) {
        return c == ',' || c == ';' || c == '\t';
}

/* The first quote in [at, end) that begins a field; end: none. */
static size_t field_quote(const uint8_t *buf, size_t at, size_t end) {
        while (at < end) {
                const uint8_t *q = memchr(buf + at, '"', end - at);

                if (!q)
                        return end;
                at = (size_t)(q - buf);
                if (at == 0 || separates(buf[at - 1]))
                        return at;
                at++;
        }
        return end;
}

/* Behind the quote that closes a field whose text begins at at; SIZE_MAX: it is not there (or may be doubled
 * by what comes). */
static size_t close_quote(const uint8_t *buf, size_t at, size_t size, bool last) {
        while (at < size) {
                const uint8_t *q = memchr(buf + at, '"', size - at);

                if (!q)
                        return SIZE_MAX;
                at = (size_t)(q - buf) + 1;
                if (at == size)
                        return last ? at : SIZE_MAX;
                if (buf[at] != '"')
                        return at;
                at++;
        }
        return SIZE_MAX;
}

int csv_next(const uint8_t *buf, size_t size, bool multiline, bool last, struct record *ret,
             const char **ret_why) {
        size_t at = 0;

        for (;;) {
                const uint8_t *newline = at < size ? memchr(buf + at, '\n', size - at) : NULL;
                size_t end = newline ? (size_t)(newline - buf) + 1 : size;
                size_t quote = field_quote(buf, at, end);

                if (quote == end) {
                        if (!newline && !last)
                                return 0;
                        *ret = (struct record){ .data = buf, .size = end, .total = end };
                        return 1;
                }
                at = close_quote(buf, quote + 1, multiline ? size : end, last || (newline && !multiline));
                if (at != SIZE_MAX)
                        continue;
                if (!last && (multiline || !newline))
                        return 0;
                *ret_why = multiline ? "a quoted field is open at the end" : open_quote;
                return -EBADMSG;
        }
}

int csv_last(const uint8_t *buf, size_t size, bool multiline, bool last, size_t *ret_bytes,
             uint64_t *ret_records, const char **ret_why) {
        size_t at = 0;

        /* Most files have not one quote, and then a line is a line. */
        if (!memchr(buf, '"', size)) {
                const uint8_t *newline = last ? buf + size - 1 : memrchr(buf, '\n', size);

                *ret_bytes = newline ? (size_t)(newline - buf) + 1 : 0;
                *ret_records = 0;
                return 0;
        }
        while (at < size) {
                struct record record;
                int r = csv_next(buf + at, size - at, multiline, last, &record, ret_why);

                if (r < 0 && at == 0)
                        return r;
                if (r <= 0)
                        break;
                at += record.total;
        }
        *ret_bytes = at;
        *ret_records = 0;
        return 0;
}
