/* SPDX-License-Identifier: Apache-2.0 */
/* Content negotiation. Invariant: whatever the header is, one of the two formats follows. */
#include "agentd/metrics/accept.h"

#include <stddef.h>
#include <string.h>
#include <strings.h>

/* "0.75" in thousandths; what is none is 1000, as if it were not there. */
static unsigned quality(const char *s, size_t n) {
        unsigned value = 0, weight = 1000;

        for (size_t i = 0; i < n && weight > 0; i++) {
                if (s[i] == '.' && i == 1)
                        continue;
                if (s[i] < '0' || s[i] > '9')
                        return 1000;
                value += (unsigned)(s[i] - '0') * weight;
                weight /= 10;
        }
        return value > 1000 ? 1000 : value;
}

static bool is(const char *s, size_t n, const char *word) {
        return strlen(word) == n && strncasecmp(s, word, n) == 0;
}

/* The next part before one of stop, without blanks around it. */
static const char *next_part(const char **text, const char *end, char stop, size_t *ret_n) {
        const char *s = *text, *e = memchr(s, stop, (size_t)(end - s));

        *text = e ? e + 1 : end;
        if (!e)
                e = end;
        while (s < e && (*s == ' ' || *s == '\t'))
                s++;
        while (e > s && (e[-1] == ' ' || e[-1] == '\t'))
                e--;
        *ret_n = (size_t)(e - s);
        return s;
}

bool accept_openmetrics(const char *header) {
        unsigned wanted[2] = {}; /* text, OpenMetrics */
        const char *end = header ? header + strlen(header) : NULL;

        while (header < end) {
                size_t n, m;
                const char *range = next_part(&header, end, ',', &n), *range_end = range + n;
                const char *type = next_part(&range, range_end, ';', &m);
                bool open = is(type, m, "application/openmetrics-text"), known = true;
                unsigned q = 1000;

                if (!open && !is(type, m, "text/plain") && !is(type, m, "text/*") && !is(type, m, "*/*"))
                        continue;
                while (range < range_end) {
                        const char *parameter = next_part(&range, range_end, ';', &m);
                        if (m > 2 && strncasecmp(parameter, "q=", 2) == 0)
                                q = quality(parameter + 2, m - 2);
                        else if (open && m > 8 && strncasecmp(parameter, "version=", 8) == 0)
                                known = is(parameter + 8, m - 8, "1.0.0") ||
                                        is(parameter + 8, m - 8, "\"1.0.0\"");
                }
                if (known && q > wanted[open])
                        wanted[open] = q;
        }
        return wanted[1] > 0 && wanted[1] >= wanted[0];
}
