/* SPDX-License-Identifier: Apache-2.0 */
/* Lists, maps and messages, and where in them the reader is. Invariant: a target is written only with a list
 * whose every text is good. */
#include "masterd/spec/read.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/hostlist.h"
#include "lib/base/names.h"
#include "masterd/spec/short.h"
#include "masterd/spec/text.h"
#include "masterd/spec/value.h"

#define GROUPS_MAX 11u
#define READ_TEXT_MAX (64u << 10) /* bytes of one text of a list or map */

/* Where it is in what the user wrote. */
static struct place written_place(const struct reader *r, const struct place *place) {
        struct place p = *place;

        if (r->flat && p.n >= 2 && p.steps[0].key && strcmp(p.steps[0].key, "role") == 0) {
                p.n -= 2;
                memmove(p.steps, p.steps + 2, p.n * sizeof(p.steps[0]));
        }
        return p;
}

int reader_report(struct reader *r, enum diagnostic_severity severity, const struct place *place,
                  const char *format, ...) {
        struct place written = written_place(r, place);
        _cleanup_free_ char *path = place_format(&written), *message = NULL;
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
                r->places[i] = written;
                r->placed[i] = true;
        }
        return 0;
}

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
                q = value_check_text(r, k, item, 0, READ_TEXT_MAX);
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
                } else if (k->scale > 0 && json_is_integer(item)) {
                        if (asprintf(&texts[i++], "%s=%" JSON_INTEGER_FORMAT, name,
                                     json_integer_value(item)) < 0) {
                                texts[--i] = NULL;
                                q = -ENOMEM;
                        }
                } else if (!json_is_null(item)) {
                        q = value_check_text(r, k, item, 0, READ_TEXT_MAX);
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
        default:
                return value_read(r, k, v, target);
        }
}

/* What its status says about a key that is given. Returns 1 when its value is to be read. */
static int apply_status(struct reader *r, const struct key *k, json_t *v) {
        struct place key = r->here;
        int q;

        key.at_key = true;
        if (k->status == STATUS_UNBUILT) {
                /* Of messages that exclude each other, even an empty one says which is meant. */
                if (value_is_zero(v) && !(k->type == KEY_MESSAGE && k->group > 0))
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

/* The nearest name of the table, if it is near enough to be meant. */
static const char *nearest_key(const struct schema *s, const char *name, size_t *best) {
        const char *nearest = NULL;

        for (size_t i = 0; i < s->n; i++) {
                size_t d = edit_distance(name, s->keys[i].name);
                size_t most = strlen(s->keys[i].name) > 3 ? MAX(strlen(s->keys[i].name) / 3, (size_t)2) : 1;
                if (d < *best && d <= most) {
                        *best = d;
                        nearest = s->keys[i].name;
                }
        }
        return nearest;
}

static int report_unknown(struct reader *r, const struct schema *s, const char *name) {
        const struct schema *tables[] = { s, s == r->root && r->flat ? &role_schema : NULL };
        const char *meant = NULL, *nearest = NULL, *found;
        struct place key = r->here, elsewhere = {};
        size_t best = SIZE_MAX;

        place_push(&key, name, 0);
        key.at_key = true;
        for (size_t i = 0; i < ELEMENTSOF(tables) && tables[i]; i++) {
                meant = meant ?: short_known_as(tables[i], name);
                found = nearest_key(tables[i], name, &best);
                nearest = found ?: nearest;
        }
        nearest = meant ?: nearest; /* "cmd" is one letter from "cwd", and the command */
        if (nearest)
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

/* A number that is 0 says nothing that could contradict another key; but a short key has only one meaning. */
static bool given_for_group(const struct key *k, const json_t *v) {
        return k->type == KEY_MESSAGE || !value_is_zero(v) || (k->unwritten && !k->zero_is_preset);
}

/* Whether one of the other keys that say the same is given. */
static bool given_otherwise(const struct schema *s, const struct key *k, json_t *const *given) {
        for (size_t i = 0; k->group > 0 && i < s->n; i++)
                if (s->keys[i].group == k->group && given[i] && !json_is_null(given[i]))
                        return true;
        return false;
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
                        if (k->required && !given_otherwise(s, k, given))
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
