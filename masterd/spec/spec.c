/* SPDX-License-Identifier: Apache-2.0 */
/* Text -> JSON -> struct -> rules, each step only when the one before found no error. */
#include "masterd/spec/spec.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/heap.h"
#include "masterd/spec/check.h"
#include "masterd/spec/env-text.h"
#include "masterd/spec/layers.h"
#include "masterd/spec/read.h"
#include "masterd/spec/schema.h"
#include "masterd/spec/short.h"
#include "masterd/spec/text.h"

/* What a person may hand us. Of values (commas and brackets) jansson needs some 100 bytes each. */
static const struct text_bounds submitted = { .size = SPEC_TEXT_MAX,
                                              .depth = SPEC_DEPTH_MAX,
                                              .values = 131072 };

/* What spec_effective() makes of that: defaults written out, lines indented, host lists spelled out
 * (SPEC_NODES_TOTAL_MAX names of at most 64 bytes). */
static const struct text_bounds effective = { .size = 8 * SPEC_TEXT_MAX,
                                              .depth = SPEC_DEPTH_MAX,
                                              .values = 524288 };

static void json_unref_p(json_t **v) {
        json_decref(*v);
}

/* The byte at which the token ended that jansson did not like, back to where it began. */
static size_t token_begin(const char *text, size_t size, size_t end) {
        size_t i = MIN(end, size);

        if (i == 0)
                return 0;
        i--;
        if (text[i] == '"') {
                while (i > 0 && (text[i - 1] != '"' || (i > 1 && text[i - 2] == '\\')) && text[i - 1] != '\n')
                        i--;
                return i > 0 && text[i - 1] == '"' ? i - 1 : i;
        }
        while (i > 0 && !strchr(" \t\r\n,:[]{}\"", text[i]) && !strchr(" \t\r\n,:[]{}\"", text[i - 1]))
                i--;
        return i;
}

/* jansson's errors in the words of a person who wrote the text; by code and, where that is not enough, by how
 * jansson's own words begin. around: the place is that of the object or array, not of the last member before
 * the error. */
static const struct syntax_words {
        enum json_error_code code;
        const char *begins, *words;
        bool around;
} syntax_words[] = {
        { json_error_duplicate_key, "", "the key is given twice", false },
        { json_error_premature_end_of_input, "", "the text ends here, but a bracket is still open", true },
        { json_error_null_character, "", "\\u0000 is not allowed in text", false },
        { json_error_null_byte_in_key, "", "\\u0000 is not allowed in text", false },
        { json_error_numeric_overflow, "", "the number is too large", false },
        { json_error_invalid_syntax, "'}' expected", "',' or '}' expected", true },
        { json_error_invalid_syntax, "']' expected", "',' or ']' expected", true },
};

static const struct syntax_words trailing_comma = { .words =
                                                            "a comma before a closing bracket is not allowed",
                                                    .around = true };

static const struct syntax_words *find_words(const char *text, size_t at, const json_error_t *error) {
        while (at > 0 && strchr(" \t\r\n", text[at - 1]) && strchr(" \t\r\n}]", text[at]))
                at--;
        if (at > 0 && text[at - 1] == ',' && strspn(text + at, " \t\r\n") == strcspn(text + at, "}]"))
                return &trailing_comma;
        for (size_t i = 0; i < ELEMENTSOF(syntax_words); i++)
                if (syntax_words[i].code == json_error_code(error) &&
                    strncmp(error->text, syntax_words[i].begins, strlen(syntax_words[i].begins)) == 0)
                        return &syntax_words[i];
        return NULL;
}

static int report_syntax(const char *text, const char *clean, size_t size, const json_error_t *error,
                         struct diagnostics *d) {
        _cleanup_free_ char *names = NULL, *path = NULL;
        bool duplicate = json_error_code(error) == json_error_duplicate_key;
        size_t end = error->position > 0 ? (size_t)error->position : 0;
        size_t at = token_begin(clean, size, end);
        const struct syntax_words *words = find_words(clean, at, error);
        unsigned line, column;
        struct place place;
        int r;

        if (*clean == 0 || strspn(clean, " \t\r\n") == size) {
                r = diagnostics_add(d, DIAGNOSTIC_ERROR, 0, 0, "", "the configuration is empty");
                return MIN(r, 0);
        }
        r = locate_offset(clean, size, duplicate ? end : at, &place, &names);
        if (r < 0)
                return r;
        if (words && words->around && place.n > 0)
                place.n--;
        path = place_format(&place);
        if (!path)
                return -ENOMEM;
        text_position(text, at, &line, &column);
        r = diagnostics_add(d, DIAGNOSTIC_ERROR, line, column, path, "%s",
                            words ? words->words : error->text);
        return MIN(r, 0);
}

/* The document, or NULL with errors in d (or *ret_error = -ENOMEM). */
static json_t *parse_json(const char *text, const char *clean, size_t size, struct diagnostics *d,
                          int *ret_error) {
        json_error_t error = {};
        json_t *root = json_loadb(clean, size, JSON_REJECT_DUPLICATES, &error);

        *ret_error = 0;
        if (!root) {
                *ret_error = json_error_code(&error) == json_error_out_of_memory
                                     ? -ENOMEM
                                     : report_syntax(text, clean, size, &error, d);
                return NULL;
        }
        if (json_is_object(root))
                return root;
        json_decref(root);
        *ret_error = diagnostics_add(d, DIAGNOSTIC_ERROR, 1, 1, "", "must be an object: { ... }");
        *ret_error = MIN(*ret_error, 0);
        return NULL;
}

static int parse_within(const struct text_bounds *bounds, const char *text, size_t size,
                        const struct layers *layers, const char *pool, struct job_spec **ret,
                        struct diagnostics *d) {
        _cleanup_(spec_free_p) struct job_spec *s = NULL;
        _cleanup_(json_unref_p) json_t *root = NULL;
        _cleanup_free_ struct reader *reader = NULL;
        _cleanup_free_ char *clean = NULL;
        size_t errors = d->n_errors;
        int r;

        r = text_prepare(text, size, bounds, d, &clean);
        if (r < 0)
                return r;
        root = parse_json(text, clean, size, d, &r);
        if (!root)
                return r < 0 ? r : -EBADMSG;

        r = env_texts(clean, size, root);
        if (r >= 0)
                r = short_form(root);
        if (r < 0)
                return r;
        s = calloc(1, sizeof(*s));
        reader = calloc(1, sizeof(*reader));
        if (!s || !reader)
                return -ENOMEM;
        reader->diagnostics = d;
        reader->root = &job_schema;
        reader->flat = r > 0;
        r = layers_apply(layers, pool, root, NULL);
        if (r < 0)
                return r;
        r = schema_preset(&job_schema, s);
        if (r >= 0)
                r = read_message(reader, &job_schema, root, s);
        if (r >= 0 && d->n_errors == errors)
                r = check_job(reader, s);
        if (r >= 0 && d->n_errors == errors && bounds == &submitted)
                r = check_idle(reader, s); /* for those who write it; what is kept was told them */
        reader_locate(reader, clean, text, size);
        diagnostics_sort(d);
        if (r < 0)
                return r;
        if (d->n_errors > errors)
                return -EBADMSG;
        *ret = TAKE_PTR(s);
        return 0;
}

int spec_parse(const char *text, size_t size, struct job_spec **ret, struct diagnostics *d) {
        return parse_within(&submitted, text, size, NULL, NULL, ret, d);
}

int spec_parse_layered(const char *text, size_t size, const struct layers *layers, const char *pool,
                       struct job_spec **ret, struct diagnostics *d) {
        return parse_within(&submitted, text, size, layers, pool, ret, d);
}

int spec_load(const char *text, size_t size, struct job_spec **ret, struct diagnostics *d) {
        return parse_within(&effective, text, size, NULL, NULL, ret, d);
}

struct job_spec *spec_ref(struct job_spec *s) {
        s->refs++;
        return s;
}

struct job_spec *spec_free(struct job_spec *s) {
        if (!s || s->refs-- > 0)
                return NULL;
        schema_done(&job_schema, s);
        free(s);
        return NULL;
}

size_t spec_bytes(const struct job_spec *s) {
        return heap_of(sizeof(*s)) + schema_bytes(&job_schema, s);
}

size_t spec_n_sources(const struct job_spec *s) {
        return s->n_inputs + s->n_topics;
}

void spec_source(const struct job_spec *s, size_t i, struct spec_source *ret) {
        if (i < s->n_inputs) {
                const struct input_spec *in = &s->inputs[i];
                *ret = (struct spec_source){ .name = in->name,
                                             .kind = input_source_kind(in->path_pattern, in->command),
                                             .pattern = in->path_pattern ?: in->command,
                                             .weight = in->weight };
        } else {
                const struct topic_spec *t = &s->topics[i - s->n_inputs];
                *ret = (struct spec_source){
                        .name = t->topic, .kind = SOURCE_KAFKA, .pattern = t->topic, .weight = t->weight
                };
        }
}

const struct role_spec *spec_role(const struct job_spec *s, const char *name) {
        for (size_t i = 0; i < s->n_roles; i++)
                if (strcmp(s->roles[i].name, name) == 0)
                        return &s->roles[i];
        return NULL;
}

uint32_t spec_executors(const struct job_spec *s) {
        uint32_t n = 0;

        for (size_t i = 0; i < s->n_roles; i++)
                n += s->roles[i].num; /* within SPEC_EXECUTORS_MAX, so no overflow */
        return n;
}
