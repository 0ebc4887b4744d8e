/* SPDX-License-Identifier: Apache-2.0 */
/* Values of a request become arguments of a call. Invariant: what is appended has the type that the table
 * says; what cannot have it is refused by its name, and so is what nothing takes. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/parse.h"
#include "lib/base/try.h"
#include "lib/base/utf8.h"
#include "webd/route/route.h"

#define LIST_MAX 1024u
#define VALUE_MAX 96u /* of a header */

/* The value of one argument: JSON, or a text of the query or the table, of which the type makes something. */
struct value {
        const json_t *json; /* NULL: text */
        const char *text;
};

static int refuse_value(char **ret_why, const char *name, const char *expected) {
        if (asprintf(ret_why, "%s: expected %s", name, expected) < 0)
                *ret_why = NULL;
        return -EINVAL;
}

/* ---- numbers ---- */

static const struct integer {
        char type;
        bool is_signed;
        uint64_t max;
        const char *expected;
} integers[] = {
        { 'u', false, UINT32_MAX, "a number from 0 to 4294967295" },
        { 't', false, UINT64_MAX, "a number that is not negative" },
        { 'i', true, INT32_MAX, "a number from -2147483647 to 2147483647" },
        { 'x', true, INT64_MAX, "a number" },
};

static const struct integer *integer_find(char type) {
        for (size_t i = 0; i < ELEMENTSOF(integers); i++)
                if (integers[i].type == type)
                        return &integers[i];
        return NULL;
}

/* Beyond what JSON's numbers hold it may stand as a text. */
static bool integer_text(const struct value *v, char buf[static 32], const char **ret) {
        if (json_is_integer(v->json)) {
                snprintf(buf, 32, "%" JSON_INTEGER_FORMAT, json_integer_value(v->json));
                *ret = buf;
        } else
                *ret = v->json ? json_string_value(v->json) : v->text;
        return *ret;
}

static int append_integer(sd_bus_message *m, const struct integer *t, const char *name, const struct value *v,
                          char **ret_why) {
        uint64_t number = 0;
        bool negative;
        const char *text;
        char buf[32];
        int64_t x;

        if (!integer_text(v, buf, &text))
                return refuse_value(ret_why, name, t->expected);
        negative = *text == '-';
        if ((negative && !t->is_signed) || parse_u64(text + negative, 0, t->max, &number) < 0)
                return refuse_value(ret_why, name, t->expected);
        x = negative ? -(int64_t)number : (int64_t)number;
        switch (t->type) {
        case 'u':
                return sd_bus_message_append(m, "u", (uint32_t)number);
        case 't':
                return sd_bus_message_append(m, "t", number);
        case 'i':
                return sd_bus_message_append(m, "i", (int32_t)x);
        default:
                return sd_bus_message_append(m, "x", x);
        }
}

static int append_real(sd_bus_message *m, const char *name, const struct value *v, char **ret_why) {
        const char *text = v->json ? json_string_value(v->json) : v->text;
        char *end = NULL;
        double d = json_is_number(v->json) ? json_number_value(v->json)
                   : text && *text         ? strtod(text, &end)
                                           : 0;

        if (!json_is_number(v->json) && (!end || *end))
                return refuse_value(ret_why, name, "a number");
        return sd_bus_message_append(m, "d", d);
}

/* ---- texts and truth ---- */

/* Noncharacters are texts to JSON, and none to D-Bus. */
static int append_string(sd_bus_message *m, const char *name, const char *text, char **ret_why) {
        return utf8_valid(text, strlen(text)) ? sd_bus_message_append(m, "s", text)
                                              : refuse_value(ret_why, name, "texts without noncharacters");
}

static int append_text(sd_bus_message *m, const char *name, const struct value *v, char **ret_why) {
        const char *text = v->json ? json_string_value(v->json) : v->text;

        return text ? append_string(m, name, text, ret_why) : refuse_value(ret_why, name, "a text");
}

static int append_bool(sd_bus_message *m, const char *name, const struct value *v, char **ret_why) {
        bool b = json_is_true(v->json);

        if (v->json ? !json_is_boolean(v->json) : parse_bool(v->text, &b) < 0)
                return refuse_value(ret_why, name, "true or false");
        return sd_bus_message_append(m, "b", b);
}

/* As PART_HEX tells them. */
static int append_hex(sd_bus_message *m, const char *name, const struct value *v, char **ret_why) {
        const char *text = v->json ? json_string_value(v->json) : v->text;
        size_t n = text ? strlen(text) : 1;
        _cleanup_free_ uint8_t *bytes = NULL;

        if (n % 2 || n > 4096 || strspn(text, "0123456789abcdef") != n)
                return refuse_value(ret_why, name, "what an answer had as its next");
        bytes = malloc(n / 2 + 1);
        if (!bytes)
                return -ENOMEM;
        for (size_t i = 0; i < n / 2; i++) {
                unsigned byte = 0;
                (void)sscanf(text + 2 * i, "%2x", &byte);
                bytes[i] = (uint8_t)byte;
        }
        return sd_bus_message_append_array(m, 'y', bytes, n / 2);
}

/* A path, whose bytes need not be a text for D-Bus. */
static int append_bytes(sd_bus_message *m, const char *name, const struct value *v, char **ret_why) {
        const char *text = v->json ? json_string_value(v->json) : v->text;

        return text ? sd_bus_message_append_array(m, 'y', text, strlen(text))
                    : refuse_value(ret_why, name, "a text");
}

/* ---- lists and objects ---- */

/* In the query with commas between them. */
static int append_words(sd_bus_message *m, const char *name, const char *text, char **ret_why) {
        while (*text) {
                size_t n = strcspn(text, ",");
                _cleanup_free_ char *word = strndup(text, n);

                if (!word)
                        return -ENOMEM;
                TRY(n > 0 ? append_string(m, name, word, ret_why) : 0);
                text += n + (text[n] == ',');
        }
        return 0;
}

static int append_texts(sd_bus_message *m, const char *name, const struct value *v, char **ret_why) {
        const json_t *x;
        size_t i;

        if (v->json && (!json_is_array(v->json) || json_array_size(v->json) > LIST_MAX))
                return refuse_value(ret_why, name, "a list of texts");
        TRY(sd_bus_message_open_container(m, 'a', "s"));
        json_array_foreach (v->json, i, x)
                TRY(append_text(m, name, &(struct value){ .json = x }, ret_why));
        TRY(v->json ? 0 : append_words(m, name, v->text, ret_why));
        return sd_bus_message_close_container(m);
}

static int append_numbers(sd_bus_message *m, const char *name, const struct value *v, char **ret_why) {
        json_t *o = (json_t *)(uintptr_t)v->json, *x;
        const char *key;

        if (!json_is_object(o) || json_object_size(o) > LIST_MAX)
                return refuse_value(ret_why, name, "an object of numbers");
        TRY(sd_bus_message_open_container(m, 'a', "{sx}"));
        json_object_foreach (o, key, x) {
                TRY(sd_bus_message_open_container(m, 'e', "sx"));
                TRY(append_string(m, name, key, ret_why));
                TRY(append_integer(m, integer_find('x'), key, &(struct value){ .json = x }, ret_why));
                TRY(sd_bus_message_close_container(m));
        }
        return sd_bus_message_close_container(m);
}

static int append_json(sd_bus_message *m, const char *name, const struct value *v, char **ret_why) {
        _cleanup_free_ char *text =
                v->json ? json_dumps(v->json, JSON_COMPACT | JSON_ENCODE_ANY | JSON_ENSURE_ASCII)
                        : strdup(v->text);

        return text ? sd_bus_message_append(m, "s", text) : -ENOMEM;
}

static const struct type {
        const char *type, *signature;
        int (*append)(sd_bus_message *m, const char *name, const struct value *v, char **ret_why);
} types[] = {
        { "s", "s", append_text },
        { "b", "b", append_bool },
        { "d", "d", append_real },
        { "as", "as", append_texts },
        { "ay", "ay", append_hex },
        { "json", "s", append_json },
        { "a{sx}", "a{sx}", append_numbers },
        { "path", "ay", append_bytes },
};

static const char *signature_of(const char *type) {
        for (size_t i = 0; i < ELEMENTSOF(types); i++)
                if (strcmp(types[i].type, type) == 0)
                        return types[i].signature;
        return type;
}

static int append_value(sd_bus_message *m, const struct given *g, const struct value *v, char **ret_why) {
        const struct integer *t = integer_find(*g->type);

        for (size_t i = 0; i < ELEMENTSOF(types); i++)
                if (strcmp(types[i].type, g->type) == 0)
                        return types[i].append(m, g->name, v, ret_why);
        return t && !g->type[1] ? append_integer(m, t, g->name, v, ret_why) : -EBADMSG;
}

/* ---- where values come from ---- */

/* An entity tag is a version in quotes. */
static int match_value(const struct brought *b, char buf[static VALUE_MAX], struct value *v, char **ret_why) {
        size_t n = b->if_match ? strlen(b->if_match) : 0;

        if (n == 0)
                return 0;
        if (n < 3 || n > 22 || b->if_match[0] != '"' || b->if_match[n - 1] != '"')
                return refuse_value(ret_why, "If-Match", "a version in quotes, such as \"7\"");
        snprintf(buf, VALUE_MAX, "%.*s", (int)(n - 2), b->if_match + 1);
        v->text = buf;
        return 0;
}

/* The draft has it in quotes, most clients have not. */
static int key_value(const struct brought *b, char buf[static VALUE_MAX], struct value *v, char **ret_why) {
        size_t n = b->key ? strlen(b->key) : 0;
        bool quoted = n >= 2 && b->key[0] == '"' && b->key[n - 1] == '"';

        if (!b->key)
                return 0;
        n -= quoted ? 2 : 0;
        if (n == 0 || n >= VALUE_MAX)
                return refuse_value(ret_why, "Idempotency-Key", "1 to 64 letters, digits and -_.:@+=/");
        snprintf(buf, VALUE_MAX, "%.*s", (int)n, b->key + quoted);
        v->text = buf;
        return 0;
}

static bool value_there(const struct value *v) {
        return v->json || v->text;
}

static int find_value(const struct given *g, const struct brought *b, char buf[static VALUE_MAX],
                      struct value *v, char **ret_why) {
        *v = (struct value){ 0 };
        if (given_in_query(g, b->get))
                v->text = json_string_value(json_object_get(b->query, g->name));
        else if (g->from == FROM_REQUEST)
                v->json = json_object_get(b->body, g->name);
        else if (g->from == FROM_IF_MATCH)
                TRY(match_value(b, buf, v, ret_why));
        else if (g->from == FROM_KEY)
                TRY(key_value(b, buf, v, ret_why));
        if (!value_there(v))
                v->text = g->otherwise;
        return 0;
}

/* ---- what the request has besides ---- */

static bool call_takes(const struct call *c, const char *name) {
        FOREACH_GIVEN (c, g)
                if (strcmp(g->name, name) == 0)
                        return true;
        return false;
}

static int append_entry(sd_bus_message *m, const char *name, const char *signature, const struct given *g,
                        const struct value *v, char **ret_why) {
        TRY(sd_bus_message_open_container(m, 'e', "sv"));
        TRY(append_string(m, "a name", name, ret_why));
        TRY(sd_bus_message_open_container(m, 'v', signature));
        TRY(append_value(m, g, v, ret_why));
        TRY(sd_bus_message_close_container(m));
        return sd_bus_message_close_container(m);
}

/* A value of a configuration: "null" stands for none. */
static int append_member(sd_bus_message *m, const char *name, const json_t *x, char **ret_why) {
        const char *type = json_is_string(x)    ? "s"
                           : json_is_boolean(x) ? "b"
                           : json_is_integer(x) ? "x"
                                                : "d";
        struct value v = { .json = x };

        if (json_is_null(x)) {
                v = (struct value){ .text = "null" };
                type = "s";
        } else if (json_is_object(x) || json_is_array(x))
                return refuse_value(ret_why, name, "a text, a number, true, false or null");
        return append_entry(m, name, type, &(struct given){ .name = name, .type = type }, &v, ret_why);
}

static int append_rest(const struct call *c, const struct brought *b, sd_bus_message *m, char **ret_why) {
        json_t *o = (json_t *)(uintptr_t)b->body, *x;
        const char *key;

        if (json_object_size(o) > LIST_MAX)
                return refuse_value(ret_why, "the body", "fewer members");
        json_object_foreach (o, key, x)
                if (!call_takes(c, key))
                        TRY(append_member(m, key, x, ret_why));
        return 0;
}

static int append_argument(const struct given *g, const struct brought *b, sd_bus_message *m,
                           char **ret_why) {
        struct value v;
        char buf[VALUE_MAX];

        if (g->from == FROM_BODY)
                return sd_bus_message_append_array(m, 'y', b->raw, b->raw_size);
        TRY(find_value(g, b, buf, &v, ret_why));
        if (!value_there(&v))
                return refuse_value(ret_why, g->name, "a value, and there is none");
        return append_value(m, g, &v, ret_why);
}

static int append_options(const struct call *c, const struct brought *b, sd_bus_message *m, char **ret_why) {
        TRY(sd_bus_message_open_container(m, 'a', "{sv}"));
        FOREACH_GIVEN (c, g) {
                struct value v;
                char buf[VALUE_MAX];

                if (g->from == FROM_REST) {
                        TRY(append_rest(c, b, m, ret_why));
                        continue;
                }
                if (!g->option)
                        continue;
                TRY(find_value(g, b, buf, &v, ret_why));
                if (value_there(&v))
                        TRY(append_entry(m, g->name, signature_of(g->type), g, &v, ret_why));
        }
        return sd_bus_message_close_container(m);
}

int given_append(const struct call *c, const struct brought *b, sd_bus_message *m, char **ret_why) {
        FOREACH_GIVEN (c, g)
                if (!g->option && g->from != FROM_REST)
                        TRY(append_argument(g, b, m, ret_why));
        return c->has_options ? append_options(c, b, m, ret_why) : 0;
}

static bool route_takes(const struct route *r, const char *name, bool query, const struct brought *b) {
        FOREACH_CALL (r, c)
                FOREACH_GIVEN (c, g) {
                        if (!query && (g->from == FROM_REST || g->from == FROM_BODY))
                                return true;
                        if (strcmp(g->name, name) == 0 && given_in_query(g, b->get) == query &&
                            (query || g->from == FROM_REQUEST))
                                return true;
                }
        return false;
}

bool given_known(const struct route *r, const struct brought *b, char **ret_why) {
        const json_t *of[] = { b->query, b->body };

        for (size_t i = 0; i < ELEMENTSOF(of); i++) {
                json_t *o = (json_t *)(uintptr_t)of[i], *x;
                const char *key;

                json_object_foreach (o, key, x) {
                        const char *wrong = !route_takes(r, key, i == 0, b) ? "is not known here"
                                            : i == 0 && !json_is_string(x)  ? "stands there twice"
                                                                            : NULL;
                        if (!wrong)
                                continue;
                        if (asprintf(ret_why, "%s %s", key, wrong) < 0)
                                *ret_why = NULL;
                        return false;
                }
        }
        return true;
}
