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

char *format_time(uint64_t real_usec, char *buf, size_t size) {
        time_t t = (time_t)(real_usec / USEC_PER_SEC);
        struct tm tm;

        *buf = 0;
        if (real_usec > 0 && gmtime_r(&t, &tm))
                strftime(buf, size, "%Y-%m-%dT%H:%M:%SZ", &tm);
        return buf;
}

bool node_name_valid(const char *s) {
        size_t n = s ? strlen(s) : 0;

        if (n < 1 || n > 64 || s[0] == '-' || s[0] == '.' || s[n - 1] == '-' || s[n - 1] == '.')
                return false;
        for (size_t i = 0; i < n; i++)
                if (!((s[i] >= 'a' && s[i] <= 'z') || isdigit((unsigned char)s[i]) || s[i] == '-' ||
                      (s[i] == '.' && s[i - 1] != '.')))
                        return false;
        return true;
}

static bool identifier_valid(const char *s, size_t max) {
        size_t n = s ? strlen(s) : 0;

        if (n < 1 || n > max || isdigit((unsigned char)s[0]))
                return false;
        for (size_t i = 0; i < n; i++)
                if (!((s[i] >= 'a' && s[i] <= 'z') || (s[i] >= 'A' && s[i] <= 'Z') ||
                      isdigit((unsigned char)s[i]) || s[i] == '_'))
                        return false;
        return true;
}

bool role_name_valid(const char *s) {
        return identifier_valid(s, 32);
}

bool env_name_valid(const char *s) {
        return identifier_valid(s, 255);
}

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

size_t edit_distance(const char *a, const char *b) {
        size_t la = MIN(strlen(a), (size_t)64), lb = MIN(strlen(b), (size_t)64), row[65];

        for (size_t j = 0; j <= lb; j++)
                row[j] = j;
        for (size_t i = 1; i <= la; i++) {
                size_t diagonal = row[0];
                row[0] = i;
                for (size_t j = 1; j <= lb; j++) {
                        size_t above = row[j], best = diagonal + (a[i - 1] != b[j - 1]);
                        best = MIN(best, above + 1);
                        best = MIN(best, row[j - 1] + 1);
                        diagonal = above;
                        row[j] = best;
                }
        }
        return row[lb];
}
