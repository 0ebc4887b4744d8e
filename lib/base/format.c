/* SPDX-License-Identifier: Apache-2.0 */
/* Writing of numbers for people. Invariant: nothing is written behind buf + size. */
#include "lib/base/format.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"

char *format_duration(uint64_t usec, char *buf, size_t size) {
        static const struct {
                const char *suffix;
                uint64_t usec;
        } units[] = { { "d", 86400 * USEC_PER_SEC }, { "h", 3600 * USEC_PER_SEC },
                      { "min", 60 * USEC_PER_SEC },  { "s", USEC_PER_SEC },
                      { "ms", USEC_PER_MSEC },       { "us", 1 } };

        if (usec == USEC_INFINITY) {
                snprintf(buf, size, "infinity");
                return buf;
        }
        if (usec == 0) {
                snprintf(buf, size, "0s");
                return buf;
        }
        for (size_t i = 0; i < ELEMENTSOF(units); i++) {
                uint64_t n = usec / units[i].usec, rest = usec % units[i].usec;
                if (n == 0)
                        continue;
                uint64_t m = i + 1 < ELEMENTSOF(units) ? rest / units[i + 1].usec : 0;
                /* Below ten seconds people want "1.5s", above it whole seconds. */
                if (units[i].usec == USEC_PER_SEC) {
                        if (n < 10 && m > 0)
                                snprintf(buf, size, "%" PRIu64 ".%" PRIu64 "s", n, m / 100);
                        else
                                snprintf(buf, size, "%" PRIu64 "s", n);
                } else if (m > 0 && units[i].usec > USEC_PER_SEC)
                        snprintf(buf, size, "%" PRIu64 "%s %" PRIu64 "%s", n, units[i].suffix, m,
                                 units[i + 1].suffix);
                else
                        snprintf(buf, size, "%" PRIu64 "%s", n, units[i].suffix);
                return buf;
        }
        return buf;
}

char *format_size(uint64_t bytes, char *buf, size_t size) {
        static const char suffixes[] = "BKMGTPE";
        double v = (double)bytes;
        size_t i = 0;

        while (v >= 1024 && i + 2 < sizeof(suffixes)) {
                v /= 1024;
                i++;
        }
        if (i == 0)
                snprintf(buf, size, "%" PRIu64, bytes);
        else
                snprintf(buf, size, v < 10 && v != (double)(uint64_t)v ? "%.1f%c" : "%.0f%c", v, suffixes[i]);
        return buf;
}

char *format_hex(const void *bytes, size_t n, char *buf) {
        const uint8_t *p = bytes;

        *buf = 0;
        for (size_t i = 0; i < n; i++)
                snprintf(buf + 2 * i, 3, "%02x", p[i]);
        return buf;
}

char *format_time(uint64_t real_usec, char *buf, size_t size) {
        time_t t = (time_t)(real_usec / USEC_PER_SEC);
        struct tm tm;

        *buf = 0;
        if (real_usec > 0 && gmtime_r(&t, &tm))
                strftime(buf, size, "%Y-%m-%dT%H:%M:%SZ", &tm);
        return buf;
}
