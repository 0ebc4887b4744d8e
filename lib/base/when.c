/* SPDX-License-Identifier: Apache-2.0 */
/* Points in time. Invariant: only dates that the calendar has are taken, so that what is read is what was
 * written. */
#include "lib/base/when.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

#include "lib/base/clock.h"
#include "lib/base/parse.h"

#define YEAR_MIN 1970

/* Exactly n digits. */
static bool digits(const char **p, int n, int *ret) {
        int v = 0;

        for (int i = 0; i < n; i++) {
                if ((*p)[i] < '0' || (*p)[i] > '9')
                        return false;
                v = v * 10 + ((*p)[i] - '0');
        }
        *p += n;
        *ret = v;
        return true;
}

static bool skip(const char **p, char c) {
        if (**p != c)
                return false;
        (*p)++;
        return true;
}

static int days_of(int year, int month) {
        static const int days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
        bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;

        return days[month - 1] + (month == 2 && leap);
}

/* "YYYY-MM-DD" */
static int read_date(const char **p, struct tm *tm) {
        int year, month, day;

        if (!digits(p, 4, &year) || !skip(p, '-') || !digits(p, 2, &month) || !skip(p, '-') ||
            !digits(p, 2, &day))
                return -EINVAL;
        if (year < YEAR_MIN || month < 1 || month > 12 || day < 1 || day > days_of(year, month))
                return -ERANGE;
        tm->tm_year = year - 1900;
        tm->tm_mon = month - 1;
        tm->tm_mday = day;
        return 0;
}

/* "HH:MM", "HH:MM:SS"; seconds: they must be there. */
static int read_clock(const char **p, bool seconds, struct tm *tm) {
        int hour, minute, second = 0;

        if (!digits(p, 2, &hour) || !skip(p, ':') || !digits(p, 2, &minute))
                return -EINVAL;
        if (**p == ':' ? !skip(p, ':') || !digits(p, 2, &second) : seconds)
                return -EINVAL;
        if (hour > 23 || minute > 59 || second > 59)
                return -ERANGE;
        tm->tm_hour = hour;
        tm->tm_min = minute;
        tm->tm_sec = second;
        return 0;
}

static int read_offset(const char **p, int64_t *ret_seconds) {
        int hours, minutes, sign = **p == '-' ? -1 : 1;

        if (skip(p, 'Z') || skip(p, 'z')) {
                *ret_seconds = 0;
                return 0;
        }
        if (!skip(p, sign < 0 ? '-' : '+') || !digits(p, 2, &hours) || !skip(p, ':') ||
            !digits(p, 2, &minutes))
                return -EINVAL;
        if (hours > 23 || minutes > 59)
                return -ERANGE;
        *ret_seconds = sign * (hours * 3600 + minutes * 60);
        return 0;
}

static uint64_t read_fraction(const char **p) {
        uint64_t usec = 0, unit = USEC_PER_SEC / 10;

        if (**p != '.' || (*p)[1] < '0' || (*p)[1] > '9')
                return 0;
        for ((*p)++; **p >= '0' && **p <= '9'; (*p)++, unit /= 10)
                usec += unit * (uint64_t)(**p - '0');
        return usec;
}

int when_parse_absolute(const char *s, uint64_t *ret_real) {
        struct tm tm = { 0 };
        uint64_t fraction;
        int64_t offset, t;
        int r = read_date(&s, &tm);

        if (r < 0)
                return r;
        if (!skip(&s, 'T') && !skip(&s, 't') && !skip(&s, ' '))
                return -EINVAL;
        r = read_clock(&s, true, &tm);
        if (r < 0)
                return r;
        fraction = read_fraction(&s);
        r = read_offset(&s, &offset);
        if (r < 0)
                return r;
        if (*s)
                return -EINVAL;
        t = (int64_t)timegm(&tm) - offset;
        if (t < 0)
                return -ERANGE;
        *ret_real = (uint64_t)t * USEC_PER_SEC + fraction;
        return 0;
}

/* Noon stands for the day, so that an hour that a change of the clock skips does not change it. */
static int day_of(uint64_t real, int ahead, struct tm *ret) {
        time_t t = (time_t)(real / USEC_PER_SEC);

        if (!localtime_r(&t, ret))
                return -ERANGE;
        ret->tm_mday += ahead;
        ret->tm_hour = 12;
        ret->tm_min = ret->tm_sec = 0;
        ret->tm_isdst = -1;
        return mktime(ret) < 0 ? -ERANGE : 0;
}

/* The time of day behind what says the day, and nothing behind it. */
static int read_rest(const char *s, bool optional, struct tm *tm, uint64_t *ret_real) {
        time_t t;
        int r;

        tm->tm_hour = tm->tm_min = tm->tm_sec = 0;
        tm->tm_isdst = -1;
        if (*s || !optional) {
                r = read_clock(&s, false, tm);
                if (r < 0)
                        return r;
        }
        if (*s)
                return -EINVAL;
        t = mktime(tm);
        if (t < 0)
                return -ERANGE;
        *ret_real = (uint64_t)t * USEC_PER_SEC;
        return 0;
}

/* "word" and a space, or the end, behind it. */
static bool skip_word(const char **s, const char *word) {
        size_t n = strlen(word);

        if (strncmp(*s, word, n) != 0 || ((*s)[n] != 0 && (*s)[n] != ' '))
                return false;
        *s += n + ((*s)[n] == ' ');
        return true;
}

static int parse_next(const char *s, uint64_t now_real, uint64_t *ret_real) {
        struct tm tm;
        int r;

        for (int ahead = 0; ahead < 2; ahead++) {
                r = day_of(now_real, ahead, &tm);
                if (r >= 0)
                        r = read_rest(s, false, &tm, ret_real);
                if (r < 0 || *ret_real > now_real)
                        return r;
        }
        return r;
}

int when_parse(const char *s, uint64_t now_real, uint64_t *ret_real) {
        struct tm tm = { 0 };
        uint64_t real;
        int r;

        if (when_parse_absolute(s, ret_real) >= 0)
                return 0;
        if (strcmp(s, "now") == 0) {
                *ret_real = now_real;
                return 0;
        }
        if (*s == '+') {
                r = parse_duration(s + 1, &real);
                if (r < 0)
                        return r;
                if (real > UINT64_C(36525) * 86400 * USEC_PER_SEC)
                        return -ERANGE;
                *ret_real = now_real + real;
                return 0;
        }
        if (skip_word(&s, "today"))
                r = day_of(now_real, 0, &tm) < 0 ? -ERANGE : read_rest(s, false, &tm, &real);
        else if (skip_word(&s, "tomorrow"))
                r = day_of(now_real, 1, &tm) < 0 ? -ERANGE : read_rest(s, true, &tm, &real);
        else if (strlen(s) >= 10 && s[4] == '-') {
                bool day;
                r = read_date(&s, &tm);
                day = !*s; /* alone: its first moment */
                if (r >= 0 && !day && !skip(&s, ' ') && !skip(&s, 'T'))
                        r = -EINVAL;
                if (r >= 0)
                        r = read_rest(s, day, &tm, &real);
        } else
                r = parse_next(s, now_real, &real);
        if (r >= 0)
                *ret_real = real;
        return r;
}
