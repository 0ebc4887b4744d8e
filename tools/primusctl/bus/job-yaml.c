/* SPDX-License-Identifier: Apache-2.0 */
/* Invariant: what is written ahead of a value is blanks, line ends and punctuation alone, so nothing of the
 * text can become structure. */
#include "tools/primusctl/bus/job-yaml.h"

#include <ctype.h>
#include <errno.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "lib/base/cleanup.h"

struct writer {
        char *text;
        size_t n, allocated;
        size_t line, column; /* where the next byte goes, from 0 */
        int error;
};

struct level {
        bool mapping, any, value; /* value: a key stands there, its value is next */
        bool at_env, env;         /* that key is "env"; the mapping is the value of one */
};

struct converter {
        struct writer w;
        struct level levels[YAML_DEPTH_MAX];
        unsigned depth;
        struct yaml_error *error;
};

bool yaml_is(const char *path) {
        const char *dot = strrchr(path, '.');

        return dot && (strcmp(dot, ".yaml") == 0 || strcmp(dot, ".yml") == 0);
}

static int _printf_(3, 4) fail(struct yaml_error *e, const yaml_mark_t *at, const char *format, ...) {
        va_list ap;

        *e = (struct yaml_error){ .line = at ? at->line + 1 : 0, .column = at ? at->column + 1 : 0 };
        va_start(ap, format);
        (void)vsnprintf(e->text, sizeof(e->text), format, ap);
        va_end(ap);
        return -EINVAL;
}

/* ---- what is written ---- */

static void put(struct writer *w, const char *s, size_t n) {
        if (w->error)
                return;
        if (n > YAML_JSON_MAX - w->n) {
                w->error = -E2BIG;
                return;
        }
        if (w->n + n + 1 > w->allocated) {
                size_t more = MAX(w->allocated * 2, w->n + n + 4096);
                char *bigger = realloc(w->text, more);

                if (!bigger) {
                        w->error = -ENOMEM;
                        return;
                }
                w->text = bigger;
                w->allocated = more;
        }
        memcpy(w->text + w->n, s, n);
        w->n += n;
        w->text[w->n] = 0;
        for (size_t i = 0; i < n; i++)
                if (s[i] == '\n') {
                        w->line++;
                        w->column = 0;
                } else
                        w->column += ((unsigned char)s[i] & 0xc0) != 0x80;
}

/* Goes to a place, where it is ahead. */
static void go_to(struct writer *w, const yaml_mark_t *at) {
        while (!w->error && w->line < at->line)
                put(w, "\n", 1);
        while (!w->error && w->line == at->line && w->column < at->column)
                put(w, " ", 1);
}

/* ---- scalars ---- */

static bool is_word(const char *s, const char *lower) {
        char upper[8], title[8];
        size_t n = strlen(lower);

        for (size_t i = 0; i <= n; i++) {
                upper[i] = (char)toupper((unsigned char)lower[i]);
                title[i] = i == 0 ? upper[0] : lower[i];
        }
        return strcmp(s, lower) == 0 || strcmp(s, upper) == 0 || strcmp(s, title) == 0;
}

static size_t digits(const char *s) {
        return strspn(s, "0123456789");
}

/* [-+]? [0-9]+ | 0o[0-7]+ | 0x[0-9a-fA-F]+ */
static json_t *read_integer(const char *s) {
        const char *number = s + (*s == '-' || *s == '+');
        bool octal = s[0] == '0' && s[1] == 'o', hexadecimal = s[0] == '0' && s[1] == 'x';
        const char *from = octal || hexadecimal ? s + 2 : number;
        char *end;
        long long v;

        if (!*from || from[octal         ? strspn(from, "01234567")
                           : hexadecimal ? strspn(from, "0123456789abcdefABCDEF")
                                         : digits(from)])
                return NULL;
        errno = 0;
        v = strtoll(octal || hexadecimal ? from : s, &end, octal ? 8 : hexadecimal ? 16 : 10);
        return errno == 0 && !*end ? json_integer(v) : NULL;
}

/* [-+]? ( \. [0-9]+ | [0-9]+ ( \. [0-9]* )? ) ( [eE] [-+]? [0-9]+ )? */
static json_t *read_real(const char *s) {
        const char *p = s + (*s == '-' || *s == '+');
        size_t whole = digits(p), part = 0;

        p += whole;
        if (*p == '.') {
                part = digits(p + 1);
                p += 1 + part;
        }
        if (whole + part == 0)
                return NULL;
        if (*p == 'e' || *p == 'E') {
                p += 1 + (p[1] == '-' || p[1] == '+');
                if (digits(p) == 0)
                        return NULL;
                p += digits(p);
        }
        return *p ? NULL : json_real(strtod(s, NULL)); /* NULL too for what is infinite */
}

static bool is_null(const char *s) {
        return !*s || strcmp(s, "~") == 0 || is_word(s, "null");
}

static json_t *read_plain(const char *s) {
        json_t *v;

        if (is_null(s))
                return json_null();
        if (is_word(s, "true") || is_word(s, "false"))
                return json_boolean(tolower((unsigned char)*s) == 't');
        v = read_integer(s);
        if (!v)
                v = read_real(s);
        return v ?: json_string(s);
}

static int write_value(struct converter *c, json_t *value, const yaml_mark_t *at) {
        _cleanup_free_ char *text =
                value ? json_dumps(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(15)) : NULL;

        json_decref(value);
        if (!text)
                return fail(c->error, at, "is not valid UTF-8, or not a value that a job may have");
        put(&c->w, text, strlen(text));
        return 0;
}

/* ---- structure ---- */

/* Before a key, an item or a value. */
static void separate(struct converter *c, const yaml_mark_t *at) {
        struct level *l = c->depth > 0 ? c->levels + c->depth - 1 : NULL;

        if (!l)
                ;
        else if (l->mapping && l->value)
                put(&c->w, ":", 1);
        else if (l->any)
                put(&c->w, ",", 1);
        go_to(&c->w, at);
        if (l) {
                l->any = true;
                l->value = l->mapping && !l->value;
        }
}

static bool is_key(const struct converter *c) {
        const struct level *l = c->depth > 0 ? c->levels + c->depth - 1 : NULL;

        return l && l->mapping && !l->value;
}

static int on_scalar(struct converter *c, const yaml_event_t *e) {
        const char *s = (const char *)e->data.scalar.value;
        bool plain = e->data.scalar.style == YAML_PLAIN_SCALAR_STYLE, key = is_key(c);
        struct level *l = c->depth > 0 ? c->levels + c->depth - 1 : NULL;

        if (e->data.scalar.anchor || e->data.scalar.tag)
                return fail(c->error, &e->start_mark, "anchors and tags (& and !) are not for job files");
        if (strlen(s) != e->data.scalar.length)
                return fail(c->error, &e->start_mark, "has a NUL byte in it");
        if (key && plain && strcmp(s, "<<") == 0)
                return fail(c->error, &e->start_mark, "merge keys (<<) are not for job files");
        separate(c, &e->start_mark);
        if (key)
                l->at_env = strcmp(s, "env") == 0;
        /* Variables are texts, as they stand: 3.10 is no 3.1, and 0x10 no 16. */
        else if (plain && l && l->env && !is_null(s))
                plain = false;
        return write_value(c, plain && !key ? read_plain(s) : json_string(s), &e->start_mark);
}

static int begin(struct converter *c, const yaml_event_t *e, bool mapping, const void *anchor,
                 const void *tag) {
        if (anchor || tag)
                return fail(c->error, &e->start_mark, "anchors and tags (& and !) are not for job files");
        if (is_key(c))
                return fail(c->error, &e->start_mark, "a key has to be a text");
        if (c->depth >= YAML_DEPTH_MAX)
                return fail(c->error, &e->start_mark, "is nested too deeply (%u levels)", YAML_DEPTH_MAX);
        separate(c, &e->start_mark);
        c->levels[c->depth] = (struct level){
                .mapping = mapping,
                .env = mapping && c->depth > 0 && c->levels[c->depth - 1].mapping &&
                       c->levels[c->depth - 1].at_env,
        };
        c->depth++;
        put(&c->w, mapping ? "{" : "[", 1);
        return 0;
}

static int on_event(struct converter *c, const yaml_event_t *e, unsigned *n_documents) {
        switch (e->type) {
        case YAML_SCALAR_EVENT:
                return on_scalar(c, e);
        case YAML_MAPPING_START_EVENT:
                return begin(c, e, true, e->data.mapping_start.anchor, e->data.mapping_start.tag);
        case YAML_SEQUENCE_START_EVENT:
                return begin(c, e, false, e->data.sequence_start.anchor, e->data.sequence_start.tag);
        case YAML_MAPPING_END_EVENT:
        case YAML_SEQUENCE_END_EVENT:
                put(&c->w, e->type == YAML_MAPPING_END_EVENT ? "}" : "]", 1);
                c->depth--;
                return 0;
        case YAML_ALIAS_EVENT:
                return fail(c->error, &e->start_mark, "aliases (*) are not for job files");
        case YAML_DOCUMENT_START_EVENT:
                return ++*n_documents > 1 ? fail(c->error, &e->start_mark,
                                                 "a second document begins here; a "
                                                 "job file is one")
                                          : 0;
        default:
                return 0;
        }
}

int yaml_to_json(const char *text, size_t size, char **ret, size_t *ret_size, struct yaml_error *ret_error) {
        struct converter c = { .error = ret_error };
        unsigned n_documents = 0;
        yaml_parser_t parser;
        bool over = false;
        int r = 0;

        if (!yaml_parser_initialize(&parser))
                return -ENOMEM;
        yaml_parser_set_input_string(&parser, (const unsigned char *)text, size);
        while (r >= 0 && !over) {
                yaml_event_t e;

                if (!yaml_parser_parse(&parser, &e)) {
                        r = parser.error == YAML_MEMORY_ERROR
                                    ? -ENOMEM
                                    : fail(ret_error,
                                           parser.error == YAML_READER_ERROR ? NULL : &parser.problem_mark,
                                           "%s", parser.problem ?: "not YAML");
                        break;
                }
                over = e.type == YAML_STREAM_END_EVENT;
                r = on_event(&c, &e, &n_documents);
                yaml_event_delete(&e);
                if (r >= 0 && c.w.error == -E2BIG)
                        r = fail(ret_error, NULL, "is too large");
                else if (r >= 0)
                        r = c.w.error;
        }
        yaml_parser_delete(&parser);
        if (r >= 0 && c.w.n == 0)
                r = fail(ret_error, NULL, "is empty");
        if (r < 0) {
                free(c.w.text);
                return r;
        }
        *ret = c.w.text;
        *ret_size = c.w.n;
        return 0;
}
