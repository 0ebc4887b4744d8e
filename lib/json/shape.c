/* SPDX-License-Identifier: Apache-2.0 */
/* Invariants: members stand in the order of the table, whatever the order of the message; a key that the
 * table lacks, or whose value has another type, is passed over. */
#include "lib/json/shape.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <string.h>

#include "lib/base/utf8.h"
#include "lib/wire/skip.h"

/* What a container is read with. */
struct context {
        const struct json_shape *parts; /* of the objects in it; NULL: as the message has it */
        bool people;
};

static int read_next(sd_bus_message *m, struct context x, json_t **ret);

static json_t *bytes_text(const char *p, size_t n) {
        _cleanup_free_ char *text = NULL;

        n = n > 0 ? strnlen(p, n) : 0;
        if (utf8_valid(p, n))
                return json_stringn_nocheck(n > 0 ? p : "", n);
        text = malloc(n + 1);
        return text ? json_string_nocheck(utf8_clean(p, n, text, n + 1)) : NULL;
}

/* D-Bus has UTF-8 alone in its texts, and sd-bus looks. ret NULL: it is passed over. */
static int read_basic(sd_bus_message *m, char type, json_t **ret) {
        union {
                const char *s;
                uint64_t t;
                int64_t x;
                uint32_t u;
                int32_t i;
                uint16_t q;
                int16_t n;
                uint8_t y;
                int b;
                double d;
        } v;
        int r = sd_bus_message_read_basic(m, type, &v);

        if (r <= 0)
                return r < 0 ? r : -EBADMSG;
        if (!ret)
                return 0;
        switch (type) {
        case 's':
        case 'o':
        case 'g':
                *ret = json_string_nocheck(v.s);
                break;
        case 'b':
                *ret = json_boolean(v.b);
                break;
        case 'd':
                *ret = isfinite(v.d) ? json_real(v.d) : json_null();
                break;
        case 't':
                *ret = json_integer((json_int_t)v.t);
                break;
        case 'x':
                *ret = json_integer(v.x);
                break;
        case 'u':
                *ret = json_integer(v.u);
                break;
        case 'i':
                *ret = json_integer(v.i);
                break;
        case 'q':
                *ret = json_integer(v.q);
                break;
        case 'n':
                *ret = json_integer(v.n);
                break;
        case 'y':
                *ret = json_integer(v.y);
                break;
        default:
                return -EBADMSG;
        }
        return *ret ? 0 : -ENOMEM;
}

static int read_bytes(sd_bus_message *m, json_t **ret) {
        const void *p;
        size_t n;
        int r = sd_bus_message_read_array(m, 'y', &p, &n);

        if (r < 0)
                return r;
        *ret = bytes_text(p, n);
        return *ret ? 0 : -ENOMEM;
}

/* ret NULL: it is passed over. */
static int read_variant(sd_bus_message *m, const char *contents, struct context x, json_t **ret) {
        _cleanup_(json_decref_p) json_t *value = NULL;
        int r = sd_bus_message_enter_container(m, 'v', contents);

        if (r >= 0)
                r = contents[0] && !contents[1] ? read_basic(m, contents[0], ret ? &value : NULL)
                                                : read_next(m, x, &value);
        if (r >= 0)
                r = sd_bus_message_exit_container(m);
        if (r >= 0 && ret)
                *ret = TAKE_PTR(value);
        return r < 0 ? r : 0;
}

/* An array, or a struct without a shape. */
static int read_list(sd_bus_message *m, char type, const char *contents, struct context x, json_t **ret) {
        _cleanup_(json_decref_p) json_t *list = json_array();
        int r = list ? sd_bus_message_enter_container(m, type, contents) : -ENOMEM;

        while (r >= 0 && (r = sd_bus_message_at_end(m, false)) == 0) {
                json_t *value = NULL;

                r = read_next(m, x, &value);
                if (r >= 0 && json_array_append_new(list, value) < 0)
                        r = -ENOMEM;
        }
        if (r >= 0)
                r = sd_bus_message_exit_container(m);
        if (r >= 0)
                *ret = TAKE_PTR(list);
        return r < 0 ? r : 0;
}

/* A dictionary without a shape. Its keys are texts. */
static int read_dictionary(sd_bus_message *m, const char *contents, json_t **ret) {
        _cleanup_(json_decref_p) json_t *o = json_object();
        _cleanup_free_ char *entry = strndup(contents + 1, strlen(contents) - 2); /* without { and } */
        int r = o && entry ? sd_bus_message_enter_container(m, 'a', contents) : -ENOMEM;

        while (r >= 0 && (r = sd_bus_message_enter_container(m, 'e', entry)) > 0) {
                json_t *value = NULL;
                const char *key;

                r = sd_bus_message_read_basic(m, 's', &key);
                if (r >= 0)
                        r = read_next(m, (struct context){}, &value);
                if (r >= 0 && json_object_set_new_nocheck(o, key, value) < 0)
                        r = -ENOMEM;
                if (r >= 0)
                        r = sd_bus_message_exit_container(m);
        }
        if (r >= 0)
                r = sd_bus_message_exit_container(m);
        if (r >= 0)
                *ret = TAKE_PTR(o);
        return r < 0 ? r : 0;
}

/* ---- along a shape ---- */

/* The values of one object, by the place of their members in the table. */
struct values {
        json_t *of[JSON_MEMBERS_MAX];
        json_t *others; /* of an open shape: what the table lacks */
};

static void values_done(struct values *v) {
        for (size_t i = 0; i < ELEMENTSOF(v->of); i++)
                json_decref(v->of[i]);
        json_decref(v->others);
}

static size_t member_at(const struct json_shape *s, unsigned at) {
        size_t i = 0;

        while (i < s->n && s->members[i].at != at)
                i++;
        return i;
}

static size_t member_of(const struct json_shape *s, const char *key, const char *type) {
        size_t i = 0;

        for (; i < s->n; i++) {
                const struct json_member *p = s->members + i;
                if (p->at == 0 && !p->make && strcmp(p->key ?: p->name, key) == 0 &&
                    strcmp(p->type, type) == 0)
                        break;
        }
        return i;
}

static int read_other(sd_bus_message *m, const struct json_shape *s, const char *key, const char *contents,
                      json_t **others) {
        json_t *value = NULL;
        int r;

        if (!s->open || contents[1] || !strchr("sbdtu", contents[0]))
                return message_skip(m, "v");
        if (!*others && !(*others = json_object()))
                return -ENOMEM;
        r = read_variant(m, contents, (struct context){}, &value);
        return r < 0 ? r : json_object_set_new_nocheck(*others, key, value) < 0 ? -ENOMEM : 0;
}

static int read_keys(sd_bus_message *m, const struct json_shape *s, bool people, struct values *v) {
        int r = sd_bus_message_enter_container(m, 'a', "{sv}");

        while (r >= 0 && (r = sd_bus_message_enter_container(m, 'e', "sv")) > 0) {
                const char *key, *contents;
                size_t i;

                r = sd_bus_message_read_basic(m, 's', &key);
                if (r >= 0)
                        r = sd_bus_message_peek_type(m, NULL, &contents);
                if (r < 0)
                        return r;
                i = member_of(s, key, contents);
                if (i == s->n)
                        r = read_other(m, s, key, contents, &v->others);
                else {
                        json_decref(TAKE_PTR(v->of[i]));
                        r = read_variant(m, contents, (struct context){ s->members[i].parts, people },
                                         people && s->members[i].unseen ? NULL : &v->of[i]);
                }
                if (r >= 0)
                        r = sd_bus_message_exit_container(m);
        }
        return r < 0 ? r : sd_bus_message_exit_container(m);
}

/* The struct's values by their places, and the keys behind them. */
static int read_places(sd_bus_message *m, const struct json_shape *s, bool people, struct values *v) {
        const char *contents;
        size_t n = strlen(s->type);
        int r = sd_bus_message_peek_type(m, NULL, &contents);

        if (r >= 0 && (!contents || strlen(contents) != n - 2 || strncmp(contents, s->type + 1, n - 2) != 0))
                return -EBADMSG;
        if (r >= 0)
                r = sd_bus_message_enter_container(m, 'r', contents);
        for (unsigned at = 1; r >= 0 && (r = sd_bus_message_at_end(m, false)) == 0; at++) {
                size_t i = member_at(s, at);

                if (i == s->n)
                        r = read_keys(m, s, people, v);
                else if (!s->members[i].type[1])
                        r = read_basic(m, s->members[i].type[0],
                                       people && s->members[i].unseen ? NULL : &v->of[i]);
                else
                        r = read_next(m, (struct context){ s->members[i].parts, people }, &v->of[i]);
        }
        return r < 0 ? r : sd_bus_message_exit_container(m);
}

static json_t *complete(const struct json_shape *s, bool people, struct values *v);

static json_t *empty(const struct json_member *p, bool people) {
        struct values nothing = {};

        switch (p->type[0]) {
        case 's':
        case 'o':
                return json_string("");
        case 'b':
                return json_false();
        case 'd':
                return json_real(0);
        case '(':
                return p->parts ? complete(p->parts, people, &nothing) : json_array();
        case 'a':
                if (p->type[1] == 'y')
                        return json_string("");
                if (p->type[1] != '{')
                        return json_array();
                return p->parts ? complete(p->parts, people, &nothing) : json_object();
        default:
                return json_integer(0);
        }
}

static bool is_most(const struct json_member *p, const json_t *value) {
        return json_integer_value(value) == (p->type[0] == 'u' ? (json_int_t)UINT32_MAX : -1);
}

/* What stands in JSON for a value (taken; NULL: the message lacks it). NULL: no member. */
static json_t *settle(const struct json_member *p, bool people, json_t *value) {
        switch (p->absent) {
        case JSON_OR_NONE:
                return value;
        case JSON_OR_NULL:
                return value ?: json_null();
        case JSON_ZERO_NULL:
        case JSON_ZERO_NONE:
                if (json_is_string(value) ? json_string_length(value) > 0 : json_number_value(value) != 0)
                        return value;
                break;
        case JSON_MOST_NULL:
        case JSON_MOST_NONE:
                if (value && is_most(p, value))
                        break;
                return value ?: empty(p, people);
        default:
                return value ?: empty(p, people);
        }
        json_decref(value);
        return p->absent == JSON_ZERO_NULL || p->absent == JSON_MOST_NULL ? json_null() : NULL;
}

/* Takes the values. A member that is made keeps its place with null until all the others are there. NULL: out
 * of memory. */
static json_t *complete(const struct json_shape *s, bool people, struct values *v) {
        _cleanup_(json_decref_p) json_t *o = json_object();
        json_t *value;

        assert(s->n <= JSON_MEMBERS_MAX);
        if (!o)
                return NULL;
        for (size_t i = 0; i < s->n; i++) {
                if (people && s->members[i].unseen)
                        continue;
                value = s->members[i].make ? json_null() : settle(s->members + i, people, TAKE_PTR(v->of[i]));
                if (value && json_object_set_new_nocheck(o, s->members[i].name, value) < 0)
                        return NULL;
        }
        for (size_t i = 0; i < s->n; i++) {
                if (!s->members[i].make)
                        continue;
                value = s->members[i].make(o);
                if (value)
                        (void)json_object_set_new_nocheck(o, s->members[i].name, value);
                else
                        (void)json_object_del(o, s->members[i].name);
        }
        for (size_t i = 0; !people && i < s->n; i++)
                if (s->members[i].hidden)
                        (void)json_object_del(o, s->members[i].name);
        if (v->others && json_object_update(o, v->others) < 0)
                return NULL;
        return TAKE_PTR(o);
}

static int read_shape(sd_bus_message *m, const struct json_shape *s, bool people, json_t **ret) {
        _cleanup_(values_done) struct values v = {};
        int r = s->type[0] == '(' ? read_places(m, s, people, &v) : read_keys(m, s, people, &v);

        if (r < 0)
                return r;
        *ret = complete(s, people, &v);
        return *ret ? 0 : -ENOMEM;
}

/* ---- what stands next ---- */

static int read_next(sd_bus_message *m, struct context x, json_t **ret) {
        const char *contents;
        char type;
        int r = sd_bus_message_peek_type(m, &type, &contents);

        if (r <= 0)
                return r < 0 ? r : -EBADMSG;
        switch (type) {
        case 'v':
                return read_variant(m, contents, x, ret);
        case 'r':
                return x.parts ? read_shape(m, x.parts, x.people, ret) : read_list(m, 'r', contents, x, ret);
        case 'a':
                if (strcmp(contents, "y") == 0)
                        return read_bytes(m, ret);
                if (contents[0] != '{')
                        return read_list(m, 'a', contents, x, ret);
                return x.parts && strcmp(contents, "{sv}") == 0 ? read_shape(m, x.parts, x.people, ret)
                                                                : read_dictionary(m, contents, ret);
        default:
                return read_basic(m, type, ret);
        }
}

int json_read_object(sd_bus_message *m, const struct json_shape *s, bool people, json_t **ret) {
        return read_shape(m, s, people, ret);
}

int json_read_list(sd_bus_message *m, const struct json_shape *s, bool people, json_t **ret) {
        return read_list(m, 'a', s->type, (struct context){ s, people }, ret);
}

int json_read_any(sd_bus_message *m, json_t **ret) {
        return read_next(m, (struct context){}, ret);
}

json_t *json_comes_later(const json_t *o) {
        return json_null();
}
