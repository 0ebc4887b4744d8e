/* SPDX-License-Identifier: Apache-2.0 */
/* Walks JSON text for positions. Invariant: never reads past size, whatever the text is; recursion is bounded
 * by PLACE_DEPTH_MAX, since only what is on the way to a wanted place is descended into. */
#include "masterd/spec/locate.h"

#include <ctype.h>
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "masterd/spec/text.h"

#define NAME_SHOWN_MAX 48u

void place_push(struct place *p, const char *key, size_t index) {
        if (p->n < PLACE_DEPTH_MAX)
                p->steps[p->n++] = (struct place_step){ .key = key, .index = index };
}

static bool name_is_plain(const char *s) {
        if (!*s || strlen(s) > NAME_SHOWN_MAX)
                return false;
        for (; *s; s++)
                if (!isalnum((unsigned char)*s) && *s != '_' && *s != '-')
                        return false;
        return true;
}

/* The name in quotes, without control characters, cut at a whole character. */
static void name_print(FILE *f, const char *s) {
        size_t n = strlen(s), done = 0, l;

        fputs("[\"", f);
        for (; done < n && (l = text_character(s + done, n - done)) > 0 && done + l <= NAME_SHOWN_MAX;
             done += l)
                if (l == 1 && (iscntrl((unsigned char)s[done])))
                        fputc('?', f);
                else
                        fwrite(s + done, 1, l, f);
        fputs(done < n ? "...\"]" : "\"]", f);
}

char *place_format(const struct place *p) {
        char *text = NULL;
        size_t size;
        FILE *f = open_memstream(&text, &size);
        bool failed;

        if (!f)
                return NULL;
        for (size_t i = 0; i < p->n; i++) {
                const struct place_step *s = &p->steps[i];
                if (!s->key)
                        fprintf(f, "[%zu]", s->index);
                else if (name_is_plain(s->key))
                        fprintf(f, "%s%s", i > 0 ? "." : "", s->key);
                else
                        name_print(f, s->key);
        }
        failed = ferror(f);
        if (fclose(f) != 0 || failed) {
                free(text);
                return NULL;
        }
        return text;
}

bool member_is_called(const char *text, size_t n, const char *name) {
        size_t i = 0;

        if (strlen(name) == n && memcmp(text, name, n) == 0)
                return true;
        for (; i < n && *name; i++, name++)
                if (text[i] == '_' && i > 0 && i + 1 < n && islower((unsigned char)text[i + 1])) {
                        i++;
                        if (*name != toupper((unsigned char)text[i]))
                                return false;
                } else if (text[i] != *name)
                        return false;
        return i == n && !*name;
}

struct walk {
        const char *text;
        size_t size;
        const struct place *const *places;
        size_t *offsets;
};

static size_t skip_blanks(const struct walk *w, size_t i) {
        while (i < w->size && strchr(" \t\r\n", w->text[i]) && w->text[i])
                i++;
        return i;
}

/* Behind the string that begins at i. */
static size_t skip_string(const struct walk *w, size_t i) {
        for (i++; i < w->size && w->text[i] != '"'; i++)
                if (w->text[i] == '\\')
                        i++;
        return i < w->size ? i + 1 : w->size;
}

/* Behind the value that begins at i. */
static size_t skip_value(const struct walk *w, size_t i) {
        size_t depth = 0;

        while (i < w->size) {
                char c = w->text[i];
                if (c == '"') {
                        i = skip_string(w, i);
                        if (depth == 0)
                                return i;
                        continue;
                }
                if (c == '{' || c == '[')
                        depth++;
                else if (c == '}' || c == ']') {
                        if (depth == 0)
                                return i;
                        if (--depth == 0)
                                return i + 1;
                } else if (c == ',' && depth == 0)
                        return i;
                i++;
        }
        return i;
}

/* The same for a literal with its quotes, which may have escapes. */
static bool literal_is_called(const char *literal, size_t n, const char *name) {
        json_t *v;
        bool same;

        if (n < 2 || !memchr(literal, '\\', n))
                return n >= 2 && member_is_called(literal + 1, n - 2, name);
        v = json_loadb(literal, n, JSON_DECODE_ANY, NULL);
        same = json_is_string(v) && member_is_called(json_string_value(v), json_string_length(v), name);
        json_decref(v);
        return same;
}

/* The wanted places are those whose first depth steps lead to the value at i. Returns what is behind the
 * value. */
static size_t walk_value(const struct walk *w, size_t i, size_t depth, const size_t *wanted, size_t n) {
        _cleanup_free_ size_t *below = NULL;
        size_t index = 0, n_deeper = 0;
        char open;

        i = skip_blanks(w, i);
        for (size_t k = 0; k < n; k++) {
                const struct place *p = w->places[wanted[k]];
                if (!(p->n == depth && p->at_key && depth > 0))
                        w->offsets[wanted[k]] = i;
                n_deeper += p->n > depth;
        }
        open = i < w->size ? w->text[i] : 0;
        if (n_deeper == 0 || (open != '{' && open != '['))
                return skip_value(w, i);
        below = calloc(n, sizeof(*below)); /* without memory, the place is the container's */
        if (!below)
                return skip_value(w, i);

        for (i = skip_blanks(w, i + 1); i < w->size && w->text[i] != '}' && w->text[i] != ']'; index++) {
                size_t name = i, name_end = i, n_below = 0;
                if (open == '{') {
                        if (w->text[i] != '"')
                                return i;
                        name_end = skip_string(w, i);
                        i = skip_blanks(w, name_end);
                        if (i >= w->size || w->text[i] != ':')
                                return i;
                        i++;
                }
                for (size_t k = 0; k < n; k++) {
                        const struct place *p = w->places[wanted[k]];
                        const struct place_step *s = &p->steps[depth];
                        if (p->n <= depth)
                                continue;
                        if (open == '{' ? s->key && literal_is_called(w->text + name, name_end - name, s->key)
                                        : !s->key && s->index == index) {
                                w->offsets[wanted[k]] = name;
                                below[n_below++] = wanted[k];
                        }
                }
                i = n_below > 0 ? walk_value(w, i, depth + 1, below, n_below)
                                : skip_value(w, skip_blanks(w, i));
                i = skip_blanks(w, i);
                if (i < w->size && w->text[i] == ',')
                        i = skip_blanks(w, i + 1);
                else if (i < w->size && w->text[i] != '}' && w->text[i] != ']')
                        return i;
        }
        return i < w->size ? i + 1 : i;
}

void locate_places(const char *text, size_t size, const struct place *const places[], size_t n,
                   size_t ret_offsets[]) {
        struct walk w = { .text = text, .size = size, .places = places, .offsets = ret_offsets };
        _cleanup_free_ size_t *all = calloc(n ?: 1, sizeof(*all));

        for (size_t i = 0; i < n; i++)
                ret_offsets[i] = 0;
        if (!all)
                return;
        for (size_t i = 0; i < n; i++)
                all[i] = i;
        (void)walk_value(&w, 0, 0, all, n);
}

int locate_offset(const char *text, size_t size, size_t offset, struct place *ret, char **ret_names) {
        struct {
                bool object, value; /* value: behind the colon of a member */
                size_t name, name_size, index;
        } stack[PLACE_DEPTH_MAX];
        struct walk w = { .text = text, .size = MIN(offset, size) };
        _cleanup_free_ char *names = NULL;
        struct place place = {};
        size_t depth = 0, room = 0, next;

        for (size_t i = 0; i < w.size; i = next) {
                next = i + 1;
                switch (text[i]) {
                case '"':
                        next = skip_string(&w, i);
                        if (depth > 0 && stack[depth - 1].object && !stack[depth - 1].value &&
                            next - i >= 2) {
                                stack[depth - 1].name = i + 1;
                                stack[depth - 1].name_size = next - i - 2;
                        }
                        break;
                case ':':
                        if (depth > 0)
                                stack[depth - 1].value = true;
                        break;
                case ',':
                        if (depth > 0) {
                                stack[depth - 1].index++;
                                stack[depth - 1].value = false;
                                stack[depth - 1].name_size = 0;
                        }
                        break;
                case '{':
                case '[':
                        if (depth == PLACE_DEPTH_MAX)
                                return -EINVAL;
                        memset(&stack[depth], 0, sizeof(stack[depth]));
                        stack[depth++].object = text[i] == '{';
                        break;
                case '}':
                case ']':
                        depth -= depth > 0;
                        break;
                }
        }
        for (size_t i = 0; i < depth; i++)
                room += stack[i].name_size + 1;
        names = malloc(room + 1);
        if (!names)
                return -ENOMEM;
        for (size_t i = 0, used = 0; i < depth; i++) {
                if (!stack[i].object) {
                        place_push(&place, NULL, stack[i].index);
                        continue;
                }
                if (stack[i].name_size == 0)
                        break;
                memcpy(names + used, text + stack[i].name, stack[i].name_size);
                names[used + stack[i].name_size] = 0;
                place_push(&place, names + used, 0);
                used += stack[i].name_size + 1;
        }
        *ret = place;
        *ret_names = TAKE_PTR(names);
        return 0;
}
