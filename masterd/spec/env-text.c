/* SPDX-License-Identifier: Apache-2.0 */
/* Walks the text and the tree that was made of it beside each other. Invariant: the text is read once, never
 * past size; a value is replaced only where the text has a number or a truth value for it. */
#include "masterd/spec/env-text.h"

#include <errno.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "masterd/spec/locate.h"

/* One that is open at this place in the text. */
struct level {
        json_t *node; /* NULL: below something that is not looked at */
        size_t index; /* of the element */
        const char *key;
        size_t key_size; /* of the member: with its quotes, as written; 0: none yet */
        bool env;
};

struct walk {
        const char *text;
        size_t size;
        struct level levels[PLACE_DEPTH_MAX];
        size_t depth;
};

/* Behind the string that begins at i. */
static size_t behind_string(const struct walk *w, size_t i) {
        for (i++; i < w->size && w->text[i] != '"'; i++)
                if (w->text[i] == '\\')
                        i++;
        return i < w->size ? i + 1 : w->size;
}

/* The member's name with its escapes resolved, allocated; NULL: there is none, or no memory. */
static char *name_of(const struct level *l) {
        json_t *name = l->key_size > 0 ? json_loadb(l->key, l->key_size, JSON_DECODE_ANY, NULL) : NULL;
        char *copy = name ? strdup(json_string_value(name)) : NULL;

        json_decref(name);
        return copy;
}

static json_t *child_of(const struct level *l, bool *ret_env) {
        _cleanup_free_ char *name = NULL;

        *ret_env = false;
        if (!json_is_object(l->node))
                return json_array_get(l->node, l->index);
        name = name_of(l);
        *ret_env = name && strcmp(name, "env") == 0;
        return name ? json_object_get(l->node, name) : NULL;
}

static int open(struct walk *w) {
        struct level *above = w->depth > 0 ? w->levels + w->depth - 1 : NULL, l = {};

        if (w->depth == PLACE_DEPTH_MAX)
                return -E2BIG;
        if (!above)
                l = w->levels[0];
        else
                l.node = child_of(above, &l.env);
        w->levels[w->depth++] = l;
        return 0;
}

/* A number or a word that is a member's value. */
static int take_token(const struct level *l, const char *token, size_t n) {
        _cleanup_free_ char *name = NULL;
        json_t *v;

        if (!l->env || !json_is_object(l->node) || l->key_size == 0)
                return 0;
        name = name_of(l);
        if (!name)
                return -ENOMEM;
        v = json_object_get(l->node, name);
        if (!json_is_number(v) && !json_is_boolean(v))
                return 0;
        return json_object_set_new(l->node, name, json_stringn(token, n)) < 0 ? -ENOMEM : 0;
}

static int step_token(struct walk *w, size_t i, size_t *ret_next) {
        struct level *l = w->depth > 0 ? w->levels + w->depth - 1 : NULL;
        char c = w->text[i];

        *ret_next = i + 1;
        if (c == '{' || c == '[')
                return open(w);
        if (!l)
                return 0;
        if (c == '"') {
                *ret_next = behind_string(w, i);
                if (l->key_size == 0 && json_is_object(l->node)) {
                        l->key = w->text + i;
                        l->key_size = *ret_next - i;
                }
        } else if (c == ',') {
                l->index++;
                l->key_size = 0;
        } else if (c == '}' || c == ']')
                w->depth--;
        else if (strchr("-0123456789tf", c)) {
                size_t n = strspn(w->text + i, "+-.0123456789eEtrufals"); /* it ends with a NUL */

                *ret_next = i + n;
                return take_token(l, w->text + i, n);
        }
        return 0;
}

static int walk_all(const char *text, size_t size, json_t *root, bool env) {
        struct walk w = { .text = text, .size = size, .levels = { { .node = root, .env = env } } };
        size_t next;
        int r = 0;

        for (size_t i = 0; r >= 0 && i < size; i = next)
                r = step_token(&w, i, &next);
        return r == -E2BIG ? 0 : r;
}

int env_texts(const char *text, size_t size, json_t *root) {
        return walk_all(text, size, root, false);
}

int env_texts_of_env(const char *text, size_t size, json_t *env) {
        return walk_all(text, size, env, true);
}
