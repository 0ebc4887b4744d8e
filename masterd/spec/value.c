/* SPDX-License-Identifier: Apache-2.0 */
/* One function per type of a single value. Invariant: a target is written only with a value that is within
 * its key's bounds. */
#include "masterd/spec/value.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/format.h"
#include "lib/base/parse.h"
#include "masterd/spec/spec.h"
#include "masterd/spec/text.h"

const char *value_show(const json_t *v, char *buf, size_t size) {
        switch (json_typeof(v)) {
        case JSON_STRING: {
                const char *s = json_string_value(v);
                size_t n = 0, l;
                while (s[n] && n < WORD_SHOWN_MAX && (l = text_character(s + n, strlen(s + n))) > 0)
                        n += l;
                snprintf(buf, size, "\"%.*s%s\"", (int)n, s, s[n] ? "..." : "");
                break;
        }
        case JSON_INTEGER:
                snprintf(buf, size, "%" JSON_INTEGER_FORMAT, json_integer_value(v));
                break;
        case JSON_REAL:
                snprintf(buf, size, "%.10g", json_real_value(v));
                break;
        case JSON_TRUE:
        case JSON_FALSE:
                snprintf(buf, size, "%s", json_is_true(v) ? "true" : "false");
                break;
        case JSON_NULL:
                snprintf(buf, size, "null");
                break;
        case JSON_ARRAY:
                snprintf(buf, size, "an array");
                break;
        case JSON_OBJECT:
                snprintf(buf, size, "an object");
                break;
        }
        return buf;
}

/* What protobuf's JSON takes for a number: 3, 3.5, "3", "3.5". */
static bool number_of(const json_t *v, double *ret) {
        const char *s = json_string_value(v);
        char *end;
        double d;

        if (json_is_number(v)) {
                *ret = json_number_value(v);
                return true;
        }
        if (!s || !*s || strspn(s, "+-.0123456789eE") != strlen(s))
                return false;
        d = strtod(s, &end);
        if (*end || !isfinite(d))
                return false;
        *ret = d;
        return true;
}

/* The same for whole numbers. */
static bool whole_number_of(const json_t *v, int64_t *ret) {
        double d;

        if (json_is_integer(v)) {
                *ret = json_integer_value(v);
                return true;
        }
        if (!number_of(v, &d) || d != trunc(d) || fabs(d) >= 9e15) /* beyond, a double is not exact */
                return false;
        *ret = (int64_t)d;
        return true;
}

bool value_is_zero(const json_t *v) {
        const char *s = json_string_value(v);
        double d;

        return json_is_null(v) || json_is_false(v) || (number_of(v, &d) && d == 0) ||
               (s && (!*s || strcmp(s, "false") == 0)) || (json_is_array(v) && json_array_size(v) == 0) ||
               (json_is_object(v) && json_object_size(v) == 0);
}

static int read_bool(struct reader *r, const struct key *k, json_t *v, void *target) {
        const char *s = json_string_value(v);
        bool value = json_is_true(v) || (s && strcmp(s, "true") == 0);

        if (!value && !json_is_false(v) && !(s && strcmp(s, "false") == 0))
                return report_error(r, "must be true or false, not %s", SHOW(v));
        if (target)
                *(bool *)target = value;
        if (s && !r->quiet)
                return reader_report(r, DIAGNOSTIC_WARNING, &r->here,
                                     "a text where a truth value belongs; write %s without quotes",
                                     value ? "true" : "false");
        return 0;
}

static int read_whole(struct reader *r, const struct key *k, json_t *v, void *target) {
        uint64_t stored;
        int64_t n;

        if (!whole_number_of(v, &n))
                return report_error(r, "must be a whole number, not %s", SHOW(v));
        if (n == 0 && k->zero_is_preset)
                stored = k->preset;
        else if (n < 0 || (uint64_t)n < k->min || (uint64_t)n > k->max)
                return report_error(r, "must be %" PRIu64 " to %" PRIu64 ", not %" PRId64, k->min, k->max, n);
        else
                stored = k->type == KEY_SCALED ? (uint64_t)n * k->scale : (uint64_t)n + k->plus;
        if (!target)
                return 0;
        if (k->type == KEY_SCALED)
                *(uint64_t *)target = stored;
        else
                *(uint32_t *)target = (uint32_t)stored;
        return 0;
}

static int read_signed(struct reader *r, const struct key *k, json_t *v, void *target) {
        int64_t n, min = (int64_t)k->min, max = (int64_t)k->max;

        if (!whole_number_of(v, &n))
                return report_error(r, "must be a whole number, not %s", SHOW(v));
        if (n < min || n > max)
                return report_error(r, "must be %" PRId64 " to %" PRId64 ", not %" PRId64, min, max, n);
        if (target)
                *(int32_t *)target = (int32_t)n;
        return 0;
}

static int read_milli(struct reader *r, const struct key *k, json_t *v, void *target) {
        uint64_t unit = k->scale ?: 1000, parts;
        double d;

        if (!number_of(v, &d))
                return report_error(r, "must be a number, not %s", SHOW(v));
        if (d < (double)k->min || d > (double)k->max)
                return report_error(r, "must be %" PRIu64 " to %" PRIu64 ", not %s", k->min, k->max, SHOW(v));
        parts = (uint64_t)llround(d * (double)unit);
        if (fabs(d * (double)unit - (double)parts) > 1e-6)
                return report_error(r, "must have at most %s decimals, not %s",
                                    unit == 1000 ? "three" : "six", SHOW(v));
        *(uint32_t *)target = parts == 0 && k->zero_is_preset ? (uint32_t)k->preset : (uint32_t)parts;
        return 0;
}

/* A member of an object, under either spelling of its name. */
static json_t *member_of(json_t *object, const char *name, const char *snake) {
        return json_object_get(object, name) ?: json_object_get(object, snake);
}

/* Upstream's {"date": 20260131}, with "hour" for hours. */
static bool day_of(json_t *object, bool hourly, struct spec_time *ret) {
        json_t *date = json_object_get(object, "date"), *at = json_object_get(object, "hour");
        int64_t day, hour = 0;
        char text[32];

        if (!date || !whole_number_of(date, &day) || day < 0 || day > 99991231 ||
            json_object_size(object) != 1 + (size_t)(at != NULL) ||
            (at && (!hourly || !whole_number_of(at, &hour) || hour < 0 || hour > 23)))
                return false;
        snprintf(text, sizeof(text), hourly ? "%04u-%02u-%02uT%02u" : "%04u-%02u-%02u",
                 (unsigned)(day / 10000), (unsigned)(day / 100 % 100), (unsigned)(day % 100), (unsigned)hour);
        return time_point_parse(text, &ret->at) == 0;
}

static int read_time(struct reader *r, const struct key *k, json_t *v, void *target) {
        json_t *date = json_object_get(v, "date"), *hour = member_of(v, "dateHour", "date_hour");
        struct spec_time t = { .given = true };
        bool good;

        if (json_is_string(v)) {
                t.now = strcmp(json_string_value(v), "now") == 0;
                good = t.now || time_point_parse(json_string_value(v), &t.at) == 0;
        } else if (json_object_size(v) == 1 && date)
                good = day_of(date, false, &t);
        else if (json_object_size(v) == 1 && hour)
                good = day_of(hour, true, &t);
        else
                good = t.now = json_object_size(v) == 1 && json_is_object(json_object_get(v, "now"));
        if (!good)
                return report_error(
                        r, "must be a day (\"2026-01-31\", {\"date\": {\"date\": 20260131}}), an hour "
                           "(\"2026-01-31T05\", {\"dateHour\": {\"date\": 20260131, \"hour\": 5}}) or "
                           "\"now\"");
        *(struct spec_time *)target = t;
        return 0;
}

static int read_index(struct reader *r, const struct key *k, json_t *v, void *target) {
        int64_t n = 0;

        if (json_is_false(v))
                n = -1;
        else if (!json_is_true(v) && !whole_number_of(v, &n))
                return report_error(r, "must be a whole number, or true for the first, not %s", SHOW(v));
        else if (n < 0 || (uint64_t)n > k->max)
                return report_error(r, "must be %" PRIu64 " to %" PRIu64 ", not %" PRId64, k->min, k->max, n);
        *(uint32_t *)target = (uint32_t)(n + 1);
        return 0;
}

static int read_number(struct reader *r, const struct key *k, json_t *v, void *target) {
        double d;

        return number_of(v, &d) ? 0 : report_error(r, "must be a number, not %s", SHOW(v));
}

static int read_duration(struct reader *r, const struct key *k, json_t *v, void *target) {
        char low[FORMAT_DURATION_MAX], high[FORMAT_DURATION_MAX];
        uint64_t usec;
        double d;

        if (json_is_number(v)) {
                d = json_number_value(v);
                if (d < 0 || d > (double)k->max / USEC_PER_SEC)
                        usec = USEC_INFINITY - 1; /* outside the bounds, but not "infinity" */
                else
                        usec = (uint64_t)llround(d * USEC_PER_SEC);
        } else if (!json_is_string(v) || parse_duration(json_string_value(v), &usec) < 0)
                return report_error(r, "must be a duration (90, \"90s\", \"2h 30min\"), not %s", SHOW(v));
        if (usec == USEC_INFINITY && k->preset == USEC_INFINITY)
                *(uint64_t *)target = usec;
        else if (usec < k->min || usec > k->max)
                return report_error(r, "must be %s to %s, not %s", format_duration(k->min, low, sizeof(low)),
                                    format_duration(k->max, high, sizeof(high)), SHOW(v));
        else
                *(uint64_t *)target = usec;
        return 0;
}

static int read_size(struct reader *r, const struct key *k, json_t *v, void *target) {
        char low[FORMAT_SIZE_MAX], high[FORMAT_SIZE_MAX];
        uint64_t bytes;

        if (json_is_integer(v))
                bytes = json_integer_value(v) < 0 ? UINT64_MAX : (uint64_t)json_integer_value(v);
        else if (!json_is_string(v) || parse_size(json_string_value(v), &bytes) < 0)
                return report_error(r, "must be a size (65536, \"64K\", \"1M\"), not %s", SHOW(v));
        if (bytes < k->min || bytes > k->max)
                return report_error(r, "must be %s to %s, not %s", format_size(k->min, low, sizeof(low)),
                                    format_size(k->max, high, sizeof(high)), SHOW(v));
        *(uint64_t *)target = bytes;
        return 0;
}

static int read_enum(struct reader *r, const struct key *k, json_t *v, void *target) {
        const char *s = json_string_value(v);
        _cleanup_free_ char *words = NULL;
        uint64_t value = k->max + 1;
        size_t size;
        FILE *f;

        if (json_is_integer(v) && json_integer_value(v) >= 0 && (uint64_t)json_integer_value(v) <= k->max)
                value = (uint64_t)json_integer_value(v);
        for (uint64_t i = 0; s && i <= k->max; i++)
                if (strcmp(s, k->names[i]) == 0)
                        value = i;
        if (value <= k->max) {
                if (target)
                        *(uint32_t *)target = (uint32_t)value;
                return 0;
        }
        f = open_memstream(&words, &size);
        if (!f)
                return -ENOMEM;
        for (uint64_t i = 0; i <= k->max; i++)
                fprintf(f, "%s\"%s\"", i == 0 ? "" : i == k->max ? " or " : ", ", k->names[i]);
        if (fclose(f) != 0)
                return -ENOMEM;
        return report_error(r, "must be %s, not %s", words, SHOW(v));
}

int value_check_text(struct reader *r, const struct key *k, json_t *v, size_t min, size_t max) {
        const char *why;
        size_t n;
        int q = 0;

        if (!json_is_string(v)) {
                q = json_is_number(v) || json_is_boolean(v)
                            ? report_error(r, "must be text in quotes: \"%s\"", SHOW(v))
                            : report_error(r, "must be text, not %s", SHOW(v));
                return q < 0 ? q : 0;
        }
        n = json_string_length(v);
        if (n < min)
                q = report_error(r, "must not be empty");
        else if (n > max)
                q = report_error(r, "has %zu bytes; at most %zu are accepted", n, max);
        else if (k->type != KEY_MAP && k->valid && !k->valid(json_string_value(v), &why))
                q = report_error(r, "%s %s", SHOW(v), why);
        else
                return 1;
        return q < 0 ? q : 0;
}

static int read_text(struct reader *r, const struct key *k, json_t *v, void *target) {
        int q = value_check_text(r, k, v, k->min, k->max ?: SIZE_MAX);
        char *s;

        if (q <= 0 || !target)
                return MIN(q, 0);
        s = strdup(json_string_value(v));
        if (!s)
                return -ENOMEM;
        free(*(char **)target);
        *(char **)target = s;
        return 0;
}

/* Numbers as spec_effective() writes them, so that what is written reads back as the same text. */
static int read_json(struct reader *r, const struct key *k, json_t *v, void *target) {
        char *s;

        if (!json_is_object(v) && !json_is_array(v))
                return report_error(r, "must be an object or an array, not %s", SHOW(v));
        s = json_dumps(v, JSON_COMPACT | JSON_SORT_KEYS | JSON_REAL_PRECISION(12));
        if (!s)
                return -ENOMEM;
        if (strlen(s) > k->max) {
                int q = report_error(r, "has %zu bytes; at most %" PRIu64 " are accepted", strlen(s), k->max);

                free(s);
                return q;
        }
        free(*(char **)target);
        *(char **)target = s;
        return 0;
}

int value_read(struct reader *r, const struct key *k, json_t *v, void *target) {
        static int (*const readers[])(struct reader * r, const struct key *k, json_t *v, void *target) = {
                [KEY_INDEX] = read_index, [KEY_BOOL] = read_bool,     [KEY_U32] = read_whole,
                [KEY_MILLI] = read_milli, [KEY_SCALED] = read_whole,  [KEY_DURATION] = read_duration,
                [KEY_SIZE] = read_size,   [KEY_NUMBER] = read_number, [KEY_ENUM] = read_enum,
                [KEY_TEXT] = read_text,   [KEY_TIME] = read_time,     [KEY_I32] = read_signed,
                [KEY_JSON] = read_json,
        };

        return readers[k->type](r, k, v, target);
}
