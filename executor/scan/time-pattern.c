/* SPDX-License-Identifier: Apache-2.0 */
/* Time patterns. Invariant: no text that comes of a pattern is longer than PATTERN_BYTES_MAX, and no pattern
 * makes more than PATTERN_WORDS_MAX words, whatever is in it. */
#include "executor/scan/time-pattern.h"

#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/strv.h"

#define NUMBER_DIGITS_MAX 9u
#define WORDS_BYTES_MAX (32u << 20)

enum part {
        PART_YEAR,
        PART_MONTH,
        PART_DAY,
        PART_HOUR,
        _PART_MAX
};

static const char *const part_names[_PART_MAX] = {
        [PART_YEAR] = "{{YYYY}}",
        [PART_MONTH] = "{{MM}}",
        [PART_DAY] = "{{DD}}",
        [PART_HOUR] = "{{HH}}",
};

/* Which name s begins with; _PART_MAX: none. */
static enum part part_at(const char *s) {
        enum part p = 0;

        while (p < _PART_MAX && strncmp(s, part_names[p], strlen(part_names[p])) != 0)
                p++;
        return p;
}

int time_pattern_step(const char *pattern, enum time_step *ret) {
        enum time_step step = TIME_STEP_NONE;

        for (const char *s = pattern; (s = strstr(s, "{{"));) {
                enum part p = part_at(s);

                if (p == _PART_MAX)
                        return -EINVAL;
                if (p == PART_HOUR)
                        step = TIME_STEP_HOUR;
                else if (step == TIME_STEP_NONE)
                        step = TIME_STEP_DAY;
                s += strlen(part_names[p]);
        }
        *ret = step;
        return 0;
}

static int days_of(int year, int month) {
        static const int days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
        bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;

        return days[month - 1] + (month == 2 && leap);
}

bool time_point_valid(const struct time_point *t) {
        return t->year >= 1 && t->year <= 9999 && t->month >= 1 && t->month <= 12 && t->day >= 1 &&
               t->day <= days_of(t->year, t->month) && t->hour >= -1 && t->hour <= 23;
}

int time_pattern_expand(const char *pattern, const struct time_point *t, char **ret) {
        char text[PATTERN_BYTES_MAX + sizeof("9999")], *copy;
        size_t n = 0;

        if (!time_point_valid(t))
                return -EINVAL;
        for (const char *s = pattern; *s;) {
                enum part p = strncmp(s, "{{", 2) == 0 ? part_at(s) : _PART_MAX;
                int value = p == PART_YEAR    ? t->year
                            : p == PART_MONTH ? t->month
                            : p == PART_DAY   ? t->day
                                              : MAX(t->hour, 0);

                if (p != _PART_MAX) {
                        n += (size_t)snprintf(text + n, sizeof(text) - n, "%0*d", p == PART_YEAR ? 4 : 2,
                                              value);
                        s += strlen(part_names[p]);
                } else if (strncmp(s, "{{", 2) == 0)
                        return -EINVAL;
                else
                        text[n++] = *s++;
                if (n > PATTERN_BYTES_MAX)
                        return -ENAMETOOLONG;
        }
        text[n] = 0;
        copy = strdup(text);
        if (!copy)
                return -ENOMEM;
        *ret = copy;
        return 0;
}

bool time_point_next(struct time_point *t, enum time_step step) {
        struct time_point n = *t;

        if (step == TIME_STEP_HOUR && n.hour < 23) {
                t->hour++;
                return true;
        }
        n.hour = step == TIME_STEP_HOUR ? 0 : -1;
        if (++n.day > days_of(n.year, n.month)) {
                n.day = 1;
                if (++n.month > 12) {
                        n.month = 1;
                        n.year++;
                }
        }
        if (n.year > 9999)
                return false;
        *t = n;
        return true;
}

struct time_point time_range_first(const struct time_point *from, enum time_step step) {
        struct time_point t = *from;

        t.hour = step == TIME_STEP_HOUR ? MAX(t.hour, 0) : -1;
        return t;
}

struct time_point time_range_last(const struct time_point *to, enum time_step step) {
        struct time_point t = *to;

        t.hour = step != TIME_STEP_HOUR ? -1 : t.hour < 0 ? 23 : t.hour;
        return t;
}

/* ---- words in braces ---- */

struct words {
        char **list;
        size_t n, allocated, bytes;
};

struct range {
        uint32_t first, last;
        int width; /* 0: not padded */
};

char **words_free(char **words) {
        strings_free(words);
        return NULL;
}

static int words_add(struct words *w, char *word) {
        w->bytes += strlen(word) + 1;
        if (w->n >= PATTERN_WORDS_MAX || w->bytes > WORDS_BYTES_MAX)
                return -E2BIG;
        if (w->n + 1 >= w->allocated) {
                size_t bigger = w->allocated ? w->allocated * 2 : 16;
                char **list = reallocarray(w->list, bigger, sizeof(char *));

                if (!list)
                        return -ENOMEM;
                w->list = list;
                w->allocated = bigger;
        }
        w->list[w->n++] = word;
        w->list[w->n] = NULL;
        return 0;
}

static const char *number_at(const char *s, uint32_t *ret) {
        uint32_t v = 0;
        size_t n = 0;

        while (s[n] >= '0' && s[n] <= '9') {
                if (n >= NUMBER_DIGITS_MAX)
                        return NULL;
                v = v * 10 + (uint32_t)(s[n++] - '0');
        }
        *ret = v;
        return n > 0 ? s + n : NULL;
}

/* "00..15}" behind the opening brace. */
static bool range_at(const char *s, struct range *ret) {
        const char *dots, *end;
        struct range r;

        dots = number_at(s, &r.first);
        if (!dots || strncmp(dots, "..", 2) != 0)
                return false;
        end = number_at(dots + 2, &r.last);
        if (!end || *end != '}' || r.last < r.first)
                return false;
        r.width = (*s == '0' && dots - s > 1) || (dots[2] == '0' && end - dots > 3)
                          ? (int)MAX(dots - s, end - dots - 2)
                          : 0;
        *ret = r;
        return true;
}

/* The closing brace of the one at s; *ret_comma: its first own comma. NULL: it stands for itself. */
static const char *closing(const char *s, bool *ret_comma) {
        unsigned depth = 0;
        bool comma = false;

        for (; *s; s++) {
                if (*s == '\\' && s[1])
                        s++;
                else if (*s == '{')
                        depth++;
                else if (*s == ',' && depth == 1)
                        comma = true;
                else if (*s == '}' && --depth == 0) {
                        *ret_comma = comma;
                        return s;
                }
        }
        return NULL;
}

static int join_texts(const char *before, size_t n_before, const char *middle, size_t n_middle,
                      const char *after, char **ret) {
        size_t n = n_before + n_middle + strlen(after);
        char *word;

        if (n > PATTERN_BYTES_MAX)
                return -ENAMETOOLONG;
        word = malloc(n + 1);
        if (!word)
                return -ENOMEM;
        memcpy(word, before, n_before);
        memcpy(word + n_before, middle, n_middle);
        strcpy(word + n_before + n_middle, after);
        *ret = word;
        return 0;
}

/* What a pattern with one pair of braces less stands for. */
struct expansion {
        struct words *words;
        const char *pattern;
        const char *open, *close;
};

static int expand(struct words *w, const char *pattern, size_t from);

static int expand_one(const struct expansion *e, const char *middle, size_t n) {
        _cleanup_free_ char *next = NULL;
        size_t before = (size_t)(e->open - e->pattern);
        int r = join_texts(e->pattern, before, middle, n, e->close + 1, &next);

        return r < 0 ? r : expand(e->words, next, before);
}

static int expand_range(const struct expansion *e, const struct range *range) {
        if (range->last - range->first >= PATTERN_WORDS_MAX)
                return -E2BIG;
        for (uint32_t v = range->first; v <= range->last; v++) {
                char text[NUMBER_DIGITS_MAX + 3];
                int n = snprintf(text, sizeof(text), "%0*u", range->width, v), r;

                r = expand_one(e, text, (size_t)n);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int expand_list(const struct expansion *e) {
        const char *start = e->open + 1;
        unsigned depth = 0;

        for (const char *s = start;; s++) {
                if (*s == '\\' && s + 1 < e->close) {
                        s++;
                        continue;
                }
                if ((*s == ',' && depth == 0) || s == e->close) {
                        int r = expand_one(e, start, (size_t)(s - start));

                        if (r < 0 || s == e->close)
                                return r;
                        start = s + 1;
                } else if (*s == '{')
                        depth++;
                else if (*s == '}')
                        depth--;
        }
}

/* Before from there is nothing left to expand. Each turn has a pair of braces less than the one before. */
static int expand(struct words *w, const char *pattern, size_t from) {
        _cleanup_free_ char *word = NULL;
        int r;

        for (const char *s = pattern + from; *s; s++) {
                struct expansion e = { .words = w, .pattern = pattern, .open = s };
                struct range range;
                bool comma = false;

                if (*s == '\\' && s[1]) {
                        s++;
                        continue;
                }
                if (*s != '{')
                        continue;
                e.close = closing(s, &comma);
                if (e.close && comma)
                        return expand_list(&e);
                if (e.close && range_at(s + 1, &range))
                        return expand_range(&e, &range);
        }
        word = strdup(pattern);
        if (!word)
                return -ENOMEM;
        r = words_add(w, word);
        if (r >= 0)
                word = NULL;
        return r;
}

int words_expand(const char *pattern, char ***ret, size_t *ret_n) {
        struct words w = { 0 };
        int r = strlen(pattern) > PATTERN_BYTES_MAX ? -ENAMETOOLONG : expand(&w, pattern, 0);

        if (r < 0) {
                words_free(w.list);
                return r;
        }
        *ret = w.list;
        *ret_n = w.n;
        return 0;
}
