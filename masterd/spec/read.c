/* SPDX-License-Identifier: Apache-2.0 */
/* One function per kind of value. Invariant: a target is written only with a value that is within its key's
 * bounds. */
#include "masterd/spec/read.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/hostlist.h"
#include "lib/base/parse.h"
#include "masterd/spec/text.h"

#define GROUPS_MAX 4u
#define READ_TEXT_MAX (64u << 10) /* bytes of one text of a list or map */
#define WORD_SHOWN_MAX 40u

int reader_report(struct reader *r, enum diagnostic_severity severity, const struct place *place,
                  const char *format, ...) {
        _cleanup_free_ char *path = place_format(place), *message = NULL;
        va_list ap;
        int i;

        va_start(ap, format);
        i = vasprintf(&message, format, ap);
        va_end(ap);
        if (i < 0)
                message = NULL;
        if (!path || !message)
                return -ENOMEM;
        i = diagnostics_add(r->diagnostics, severity, 0, 0, path, "%s", message);
        if (i < 0)
                return i;
        if (i < (int)DIAGNOSTICS_MAX) {
                r->places[i] = *place;
                r->placed[i] = true;
        }
        return 0;
}

#define report_error(r, ...) reader_report(r, DIAGNOSTIC_ERROR, &(r)->here, __VA_ARGS__)

void reader_locate(struct reader *r, const char *clean, const char *text, size_t size) {
        const struct place *places[DIAGNOSTICS_MAX] = {};
        size_t which[DIAGNOSTICS_MAX], offsets[DIAGNOSTICS_MAX], n = 0;

        for (size_t i = 0; i < r->diagnostics->n; i++)
                if (r->placed[i]) {
                        places[n] = &r->places[i];
                        which[n++] = i;
                }
        locate_places(clean, size, places, n, offsets);
        for (size_t i = 0; i < n; i++) {
                struct diagnostic *d = &r->diagnostics->items[which[i]];
                text_position(text, offsets[i], &d->line, &d->column);
                r->placed[which[i]] = false;
        }
}

/* ---- values ---- */

/* A value for a message: short, in one line. */
static const char *show(const json_t *v, char *buf, size_t size) {
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

#define SHOW(v) show(v, (char[WORD_SHOWN_MAX + 16]){ 0 }, WORD_SHOWN_MAX + 16)

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

static bool value_is_zero(const json_t *v) {
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
                stored = k->type == KEY_SCALED ? (uint64_t)n * k->scale : (uint64_t)n;
        if (!target)
                return 0;
        if (k->type == KEY_SCALED)
                *(uint64_t *)target = stored;
        else
                *(uint32_t *)target = (uint32_t)stored;
        return 0;
}

static int read_milli(struct reader *r, const struct key *k, json_t *v, void *target) {
        uint64_t milli;
        double d;

        if (!number_of(v, &d))
                return report_error(r, "must be a number, not %s", SHOW(v));
        if (d < (double)k->min || d > (double)k->max)
                return report_error(r, "must be %" PRIu64 " to %" PRIu64 ", not %s", k->min, k->max, SHOW(v));
        milli = (uint64_t)llround(d * 1000);
        if (fabs(d * 1000 - (double)milli) > 1e-6)
                return report_error(r, "must have at most three decimals, not %s", SHOW(v));
        *(uint32_t *)target = milli == 0 && k->zero_is_preset ? (uint32_t)k->preset : (uint32_t)milli;
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

/* The rules that hold for a text by itself. Returns 1 when they hold, 0 with an error reported, or -ENOMEM.
 */
static int check_text(struct reader *r, const struct key *k, json_t *v, size_t min, size_t max) {
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
        int q = check_text(r, k, v, k->min, k->max ?: SIZE_MAX);
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

/* ---- lists ---- */

static void texts_replace(char ***target, size_t *count, char **texts, size_t n) {
        hostlist_free(*target); /* any NULL-ended array of texts */
        *target = texts;
        *count = n;
}

/* True when the number of elements is within the bounds; otherwise the error is reported (*ret_error). */
static bool count_fits(struct reader *r, const struct key *k, size_t n, int *ret_error) {
        *ret_error = 0;
        if (n < k->min)
                *ret_error = report_error(r, "must not be empty");
        else if (n > (k->max ?: SIZE_MAX))
                *ret_error = report_error(r, "has %zu entries; at most %" PRIu64 " are accepted", n, k->max);
        else
                return true;
        return false;
}

static int read_texts(struct reader *r, const struct key *k, json_t *v, void *target, size_t *count) {
        size_t n = json_array_size(v), i, before = r->diagnostics->n_errors;
        char **texts;
        json_t *item;
        int q;

        if (!json_is_array(v))
                return report_error(r, "must be an array of texts, not %s", SHOW(v));
        if (!count_fits(r, k, n, &q))
                return q;
        texts = calloc(n + 1, sizeof(char *));
        if (!texts)
                return -ENOMEM;
        json_array_foreach (v, i, item) {
                place_push(&r->here, NULL, i);
                q = check_text(r, k, item, 0, READ_TEXT_MAX);
                r->here.n--;
                if (q > 0 && !(texts[i] = strdup(json_string_value(item))))
                        q = -ENOMEM;
                if (q < 0)
                        break;
        }
        if (q < 0 || !target || r->diagnostics->n_errors > before) {
                for (i = 0; i < n; i++)
                        free(texts[i]);
                free(texts);
                return MIN(q, 0);
        }
        texts_replace(target, count, texts, n);
        return 0;
}

static int compare_texts(const void *a, const void *b) {
        return strcmp(*(char *const *)a, *(char *const *)b);
}

/* A repeated name in a host list given as an array, or NULL. */
static const char *repeated(char *const *texts, size_t n) {
        _cleanup_free_ char **sorted = calloc(n ?: 1, sizeof(char *));

        if (!sorted)
                return NULL;
        memcpy(sorted, texts, n * sizeof(char *));
        qsort(sorted, n, sizeof(char *), compare_texts);
        for (size_t i = 1; i < n; i++)
                if (strcmp(sorted[i - 1], sorted[i]) == 0)
                        return sorted[i];
        return NULL;
}

static int read_nodes(struct reader *r, const struct key *k, json_t *v, void *target, size_t *count) {
        const char *twice;
        char **names;
        size_t n;
        int q;

        if (json_is_array(v)) {
                q = read_texts(r, k, v, target, count);
                if (q < 0)
                        return q;
                for (size_t i = 0; i < *count; i++) {
                        const char *name = (*(char ***)target)[i];
                        if (node_name_valid(name))
                                continue;
                        place_push(&r->here, NULL, i);
                        q = report_error(r, "not a host's name: %s", SHOW(json_array_get(v, i)));
                        r->here.n--;
                        return q;
                }
                twice = repeated(*(char ***)target, *count);
                return twice ? report_error(r, "%s is given twice", twice) : 0;
        }
        if (!json_is_string(v))
                return report_error(r, "must be a host list (\"n[1-3]\") or an array of names, not %s",
                                    SHOW(v));
        q = json_string_length(v) == 0 ? -EINVAL : hostlist_expand(json_string_value(v), k->max, &names, &n);
        if (q == -E2BIG)
                return report_error(r, "names more than %" PRIu64 " hosts", k->max);
        if (q == -ENOMEM)
                return q;
        if (q < 0)
                return report_error(r, "not a host list: %s; write \"n1,n[4-7]\" or an array of names",
                                    SHOW(v));
        texts_replace(target, count, names, n);
        return 0;
}

static int read_map(struct reader *r, const struct key *k, json_t *v, void *target, size_t *count) {
        size_t n = json_object_size(v), i = 0, before = r->diagnostics->n_errors;
        const char *name, *why;
        char **texts;
        json_t *item;
        int q = 0;

        if (!json_is_object(v))
                return report_error(r, "must be an object of texts, not %s", SHOW(v));
        if (!count_fits(r, k, n, &q))
                return q;
        texts = calloc(n + 1, sizeof(char *));
        if (!texts)
                return -ENOMEM;
        json_object_foreach (v, name, item) {
                place_push(&r->here, name, 0);
                if (k->valid && !k->valid(name, &why)) {
                        r->here.at_key = true;
                        q = report_error(r, "the name %s", why);
                        r->here.at_key = false;
                } else if (!json_is_null(item)) {
                        q = check_text(r, k, item, 0, READ_TEXT_MAX);
                        if (q > 0 && asprintf(&texts[i++], "%s=%s", name, json_string_value(item)) < 0) {
                                texts[--i] = NULL;
                                q = -ENOMEM;
                        }
                }
                r->here.n--;
                if (q < 0)
                        break;
        }
        if (q < 0 || !target || r->diagnostics->n_errors > before) {
                while (i > 0)
                        free(texts[--i]);
                free(texts);
                return MIN(q, 0);
        }
        qsort(texts, i, sizeof(char *), compare_texts);
        texts_replace(target, count, texts, i);
        return 0;
}

static int read_list(struct reader *r, const struct key *k, json_t *v, void *target, size_t *count) {
        size_t n = json_array_size(v), i, size = MAX(k->item_size, (size_t)1);
        _cleanup_free_ char *scratch = NULL;
        json_t *item;
        char *items;
        int q = 0;

        if (!json_is_array(v))
                return report_error(r, "must be an array of objects, not %s", SHOW(v));
        if (!count_fits(r, k, n, &q))
                return q;
        if (n == 0)
                return 0;
        items = calloc(n, size);
        if (!items)
                return -ENOMEM;
        if (target) {
                schema_done(&(const struct schema){ .keys = k, .n = 1 }, (char *)target - k->offset);
                *(char **)target = items;
                *count = n; /* zeroed items may be freed */
        } else
                scratch = items;
        json_array_foreach (v, i, item) {
                place_push(&r->here, NULL, i);
                if (!json_is_object(item))
                        q = report_error(r, "must be an object, not %s", SHOW(item));
                else {
                        q = schema_preset(k->message, items + i * size);
                        if (q >= 0)
                                q = read_message(r, k->message, item, items + i * size);
                }
                r->here.n--;
                if (q < 0)
                        return q;
        }
        return 0;
}

/* ---- messages ---- */

static int read_value(struct reader *r, const struct key *k, json_t *v, void *message) {
        void *target = key_target(k, message);
        size_t *count = target ? (size_t *)((char *)message + k->count) : NULL;

        switch (k->type) {
        case KEY_BOOL:
                return read_bool(r, k, v, target);
        case KEY_U32:
        case KEY_SCALED:
                return read_whole(r, k, v, target);
        case KEY_MILLI:
                return read_milli(r, k, v, target);
        case KEY_NUMBER:
                return read_number(r, k, v, target);
        case KEY_DURATION:
                return read_duration(r, k, v, target);
        case KEY_SIZE:
                return read_size(r, k, v, target);
        case KEY_ENUM:
                return read_enum(r, k, v, target);
        case KEY_TEXT:
                return read_text(r, k, v, target);
        case KEY_TEXTS:
                return read_texts(r, k, v, target, count);
        case KEY_NODES:
                return read_nodes(r, k, v, target, count);
        case KEY_MAP:
                return read_map(r, k, v, target, count);
        case KEY_LIST:
                return read_list(r, k, v, target, count);
        case KEY_MESSAGE:
                if (!json_is_object(v))
                        return report_error(r, "must be an object, not %s", SHOW(v));
                return read_message(r, k->message, v, target ?: message);
        }
        return -EINVAL;
}

/* What its status says about a key that is given. Returns 1 when its value is to be read. */
static int apply_status(struct reader *r, const struct key *k, json_t *v) {
        struct place key = r->here;
        int q;

        key.at_key = true;
        if (k->status == STATUS_UNBUILT) {
                if (value_is_zero(v))
                        return 0;
                q = reader_report(r, DIAGNOSTIC_ERROR, &key, "%s", k->hint);
                return MIN(q, 0);
        }
        if (k->status == STATUS_SLIP || (k->status == STATUS_WARN && !r->quiet)) {
                q = reader_report(r, DIAGNOSTIC_WARNING, &key, "%s", k->hint);
                if (q < 0)
                        return q;
        }
        return 1;
}

/* Where in the schema a key of that name is taken; the tables nest less deeply than a place can. */
static bool find_elsewhere(const struct schema *s, const char *name, struct place *at) {
        for (size_t i = 0; i < s->n; i++) {
                const struct key *k = &s->keys[i];
                place_push(at, k->name, 0);
                if (k->status == STATUS_LIVE && strcmp(k->name, name) == 0)
                        return true;
                if (k->status == STATUS_LIVE && k->message && find_elsewhere(k->message, name, at))
                        return true;
                at->n--;
        }
        return false;
}

static int report_unknown(struct reader *r, const struct schema *s, const char *name) {
        const char *nearest = NULL;
        size_t best = SIZE_MAX;
        struct place key = r->here, elsewhere = {};

        place_push(&key, name, 0);
        key.at_key = true;
        for (size_t i = 0; i < s->n; i++) {
                size_t d = edit_distance(name, s->keys[i].name);
                if (d < best) {
                        best = d;
                        nearest = s->keys[i].name;
                }
        }
        if (nearest && best <= MAX(strlen(nearest) / 3, strlen(nearest) > 3 ? (size_t)2 : 1))
                return reader_report(r, DIAGNOSTIC_ERROR, &key, "unknown key; did you mean \"%s\"?", nearest);
        if (r->root && find_elsewhere(r->root, name, &elsewhere)) {
                _cleanup_free_ char *path = place_format(&elsewhere);
                return path ? reader_report(r, DIAGNOSTIC_ERROR, &key,
                                            "unknown key; it belongs in the job's %s", path)
                            : -ENOMEM;
        }
        return reader_report(r, DIAGNOSTIC_ERROR, &key, "unknown key");
}

/* Sorts the members by the table's rows; a key of upstream may come under either of its spellings, but once.
 */
static int collect_members(struct reader *r, const struct schema *s, json_t *object, json_t **given) {
        const char *name;
        json_t *v;
        int q;

        json_object_foreach (object, name, v) {
                const struct key *k = schema_find(s, name);
                if (!k)
                        q = report_unknown(r, s, name);
                else if (given[k - s->keys]) {
                        struct place key = r->here;
                        place_push(&key, name, 0);
                        key.at_key = true;
                        q = reader_report(r, DIAGNOSTIC_ERROR, &key, "given twice, in two spellings");
                } else {
                        given[k - s->keys] = v;
                        q = 0;
                }
                if (q < 0)
                        return q;
        }
        return 0;
}

/* A number that is 0 says nothing that could contradict another key. */
static bool given_for_group(const struct key *k, const json_t *v) {
        return k->type == KEY_MESSAGE || !value_is_zero(v);
}

int read_message(struct reader *r, const struct schema *s, json_t *object, void *message) {
        _cleanup_free_ json_t **given = calloc(s->n ?: 1, sizeof(json_t *)); /* borrowed */
        const char *of_group[GROUPS_MAX] = {};
        int q;

        if (!given)
                return -ENOMEM;
        q = collect_members(r, s, object, given);
        for (size_t i = 0; i < s->n && q >= 0; i++) {
                const struct key *k = &s->keys[i];
                bool quiet = r->quiet;

                place_push(&r->here, k->name, 0);
                if (!given[i] || json_is_null(given[i])) {
                        if (k->required)
                                q = report_error(r, "missing%s%s", k->hint ? ": " : "", k->hint ?: "");
                } else if (k->group > 0 && of_group[k->group] && given_for_group(k, given[i]))
                        q = report_error(r, "cannot be given together with %s", of_group[k->group]);
                else {
                        q = apply_status(r, k, given[i]);
                        r->quiet |= k->status == STATUS_WARN;
                        if (q > 0) {
                                if (k->group > 0 && given_for_group(k, given[i]))
                                        of_group[k->group] = k->name;
                                if (k->choosing)
                                        *(uint32_t *)((char *)message + k->choice_at) = k->choice;
                                q = read_value(r, k, given[i], message);
                        }
                        r->quiet = quiet;
                }
                r->here.n--;
        }
        return MIN(q, 0);
}
