/* SPDX-License-Identifier: Apache-2.0 */
/* Parsing of what people type. Invariant: an output is written only when the whole text was understood. */
#include "lib/base/parse.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"

int parse_u64(const char *s, uint64_t min, uint64_t max, uint64_t *ret) {
        char *end;
        unsigned long long v;

        if (!s || !isdigit((unsigned char)*s)) /* strtoull takes signs and blanks; we do not */
                return -EINVAL;
        errno = 0;
        v = strtoull(s, &end, 10);
        if (*end)
                return -EINVAL;
        if (errno == ERANGE || v < min || v > max)
                return -ERANGE;
        *ret = v;
        return 0;
}

int parse_u32(const char *s, uint32_t min, uint32_t max, uint32_t *ret) {
        uint64_t v;
        int r = parse_u64(s, min, max, &v);

        if (r < 0)
                return r;
        *ret = (uint32_t)v;
        return 0;
}

int parse_bool(const char *s, bool *ret) {
        static const char *const yes[] = { "1", "yes", "true", "on" }, *const no[] = { "0", "no", "false",
                                                                                       "off" };

        if (!s)
                return -EINVAL;
        for (size_t i = 0; i < ELEMENTSOF(yes); i++)
                if (strcasecmp(s, yes[i]) == 0 || strcasecmp(s, no[i]) == 0) {
                        *ret = strcasecmp(s, yes[i]) == 0;
                        return 0;
                }
        return -EINVAL;
}

/* A non-negative decimal with an optional fraction, no sign, no exponent; *end is behind it. */
static int parse_decimal(const char *s, const char **end, double *ret) {
        const char *p = s;
        double v = 0, scale = 1;

        if (!isdigit((unsigned char)*p))
                return -EINVAL;
        for (; isdigit((unsigned char)*p); p++)
                v = v * 10 + (*p - '0');
        if (*p == '.') {
                if (!isdigit((unsigned char)*++p))
                        return -EINVAL;
                for (; isdigit((unsigned char)*p); p++)
                        v += (*p - '0') * (scale /= 10);
        }
        *end = p;
        *ret = v;
        return 0;
}

int parse_size(const char *s, uint64_t *ret) {
        static const char suffixes[] = "BKMGTPE";
        const char *p, *f;
        double v;
        int r;

        if (!s)
                return -EINVAL;
        r = parse_decimal(s, &p, &v);
        if (r < 0)
                return r;
        while (*p == ' ')
                p++;
        if (*p) {
                f = strchr(suffixes, toupper((unsigned char)*p));
                if (!f)
                        return -EINVAL;
                for (ptrdiff_t i = f - suffixes; i > 0; i--)
                        v *= 1024;
                p++;
                if (f != suffixes && strcasecmp(p, "iB") != 0 && strcasecmp(p, "B") != 0 && *p)
                        return -EINVAL;
                if (f == suffixes && *p)
                        return -EINVAL;
        }
        if (v >= 18446744073709551615.0)
                return -ERANGE;
        *ret = (uint64_t)llround(v);
        return 0;
}

/* Slurm's forms: [D-]HH:MM[:SS] and MM:SS; the part before '-' is days, and then hours come first. */
static int parse_clock_duration(const char *s, uint64_t *ret) {
        unsigned days = 0, a, b, c = 0;
        int n = 0, fields;
        const char *rest = s;
        bool has_days = false;

        if (sscanf(s, "%u-%n", &days, &n) == 1 && n > 0) {
                rest = s + n;
                has_days = true;
        } else
                days = 0; /* "%u" matched the hours */
        n = 0;
        fields = sscanf(rest, "%u:%u%n:%u%n", &a, &b, &n, &c, &n);
        if (fields < 2 || rest[n])
                return -EINVAL;
        for (const char *p = s; *p; p++)
                if (!isdigit((unsigned char)*p) && *p != ':' && *p != '-')
                        return -EINVAL;
        if (days > 100000 || a > 1000000 || b > 1000000 || c > 1000000)
                return -ERANGE;
        if (fields == 3 || has_days)
                *ret = (((uint64_t)days * 24 + a) * 60 + b) * 60 * USEC_PER_SEC + c * USEC_PER_SEC;
        else
                *ret = ((uint64_t)a * 60 + b) * USEC_PER_SEC;
        return 0;
}

int parse_duration(const char *s, uint64_t *ret_usec) {
        static const struct {
                const char *suffix;
                uint64_t usec;
        } units[] = {
                { "seconds", USEC_PER_SEC },
                { "second", USEC_PER_SEC },
                { "sec", USEC_PER_SEC },
                { "s", USEC_PER_SEC },
                { "minutes", 60 * USEC_PER_SEC },
                { "minute", 60 * USEC_PER_SEC },
                { "min", 60 * USEC_PER_SEC },
                { "msec", USEC_PER_MSEC },
                { "ms", USEC_PER_MSEC },
                { "m", 60 * USEC_PER_SEC },
                { "hours", 3600 * USEC_PER_SEC },
                { "hour", 3600 * USEC_PER_SEC },
                { "hr", 3600 * USEC_PER_SEC },
                { "h", 3600 * USEC_PER_SEC },
                { "days", 86400 * USEC_PER_SEC },
                { "day", 86400 * USEC_PER_SEC },
                { "d", 86400 * USEC_PER_SEC },
                { "weeks", 604800 * USEC_PER_SEC },
                { "week", 604800 * USEC_PER_SEC },
                { "w", 604800 * USEC_PER_SEC },
                { "usec", 1 },
                { "us", 1 },
        };
        double total = 0;
        const char *p = s;

        if (!s || !*s)
                return -EINVAL;
        if (strcmp(s, "infinity") == 0) {
                *ret_usec = USEC_INFINITY;
                return 0;
        }
        if (strchr(s, ':'))
                return parse_clock_duration(s, ret_usec);
        for (bool first = true; *p; first = false) {
                double v;
                size_t i;
                int r = parse_decimal(p, &p, &v);
                if (r < 0)
                        return r;
                while (*p == ' ')
                        p++;
                if (!*p) {
                        if (!first)
                                return -EINVAL; /* "2h 30" is ambiguous */
                        total += v * USEC_PER_SEC;
                        break;
                }
                for (i = 0; i < ELEMENTSOF(units); i++)
                        if (strncmp(p, units[i].suffix, strlen(units[i].suffix)) == 0 &&
                            !isalpha((unsigned char)p[strlen(units[i].suffix)]))
                                break;
                if (i == ELEMENTSOF(units))
                        return -EINVAL;
                total += v * (double)units[i].usec;
                p += strlen(units[i].suffix);
                while (*p == ' ')
                        p++;
        }
        if (total >= 9e18)
                return -ERANGE;
        *ret_usec = (uint64_t)llround(total);
        return 0;
}
