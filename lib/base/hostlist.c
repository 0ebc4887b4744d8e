/* SPDX-License-Identifier: Apache-2.0 */
/* Host lists. Invariant: the work done for a list is bounded by the caller's max, however its brackets
 * multiply. */
#include "lib/base/hostlist.h"

#include <ctype.h>
#include <string.h>

#include <uthash.h>

#include "lib/base/cleanup.h"
#include "lib/base/names.h"
#include "lib/base/strv.h"

#define NAME_MAX_LENGTH 64
#define DIGITS_MAX 9

struct name {
        UT_hash_handle hh;
        char text[NAME_MAX_LENGTH + 1];
};

struct expansion {
        struct name *seen; /* in the order in which they were added */
        size_t n, max;
        size_t steps; /* left; names that repeat are work too */
};

static void expansion_done(struct expansion *x) {
        struct name *e, *next;

        HASH_ITER (hh, x->seen, e, next) {
                HASH_DEL(x->seen, e);
                free(e);
        }
}

static int add_name(struct expansion *x, const char *text) {
        struct name *e;

        if (!node_name_valid(text))
                return -EINVAL;
        HASH_FIND_STR(x->seen, text, e);
        if (e)
                return 0;
        if (x->n >= x->max)
                return -E2BIG;
        e = calloc(1, sizeof(*e));
        if (!e)
                return -ENOMEM;
        strcpy(e->text, text);
        HASH_ADD_STR(x->seen, text, e);
        x->n++;
        return 0;
}

/* Digits from p, at most DIGITS_MAX of them. */
static int parse_digits(const char *p, const char **ret_end, uint32_t *ret) {
        uint32_t v = 0;
        const char *q = p;

        for (; isdigit((unsigned char)*q) && q - p < DIGITS_MAX; q++)
                v = v * 10 + (uint32_t)(*q - '0');
        if (q == p || isdigit((unsigned char)*q))
                return -EINVAL;
        *ret_end = q;
        *ret = v;
        return 0;
}

/* Expands one item, from rest to end, behind the n characters that are already in name. */
static int expand_item(struct expansion *x, char name[static NAME_MAX_LENGTH + 1], size_t n, const char *rest,
                       const char *end) {
        const char *p, *close;
        int r;

        for (p = rest; p < end && *p != '['; p++) {
                if (*p == ']' || n >= NAME_MAX_LENGTH)
                        return -EINVAL;
                name[n++] = *p;
        }
        if (p == end) {
                if (x->steps-- == 0)
                        return -E2BIG;
                name[n] = 0;
                return add_name(x, name);
        }
        close = memchr(p, ']', (size_t)(end - p));
        if (!close)
                return -EINVAL;
        do {
                uint32_t low, high;
                const char *begin = ++p;
                int width, w;

                r = parse_digits(p, &p, &low);
                if (r < 0)
                        return r;
                width = (int)(p - begin);
                high = low;
                if (*p == '-') {
                        r = parse_digits(p + 1, &p, &high);
                        if (r < 0)
                                return r;
                }
                if (high < low)
                        return -EINVAL;
                for (uint32_t v = low; v <= high; v++) {
                        w = snprintf(name + n, NAME_MAX_LENGTH + 1 - n, "%0*u", width, v);
                        if ((size_t)w > NAME_MAX_LENGTH - n)
                                return -EINVAL;
                        r = expand_item(x, name, n + (size_t)w, close + 1, end);
                        if (r < 0)
                                return r;
                }
        } while (*p == ',');
        return p == close ? 0 : -EINVAL;
}

/* The end of the item at p: the next comma outside brackets, or the end of the text. */
static const char *item_end(const char *p) {
        bool inside = false;

        for (; *p && (inside || *p != ','); p++)
                if (*p == '[' || *p == ']')
                        inside = *p == '[';
        return p;
}

int hostlist_expand(const char *s, size_t max, char ***ret, size_t *ret_n) {
        _cleanup_(expansion_done) struct expansion x = { .max = max, .steps = 2 * max + 16 };
        char name[NAME_MAX_LENGTH + 1], **names;
        struct name *e, *next;
        const char *p, *end;
        size_t n = 0;
        int r;

        if (!s)
                return -EINVAL;
        for (p = s;; p = end + 1) {
                end = item_end(p);
                r = expand_item(&x, name, 0, p, end);
                if (r < 0)
                        return r;
                if (!*end)
                        break;
        }
        names = calloc(x.n + 1, sizeof(*names));
        if (!names)
                return -ENOMEM;
        HASH_ITER (hh, x.seen, e, next) {
                names[n] = strdup(e->text);
                if (!names[n++]) {
                        hostlist_free(names);
                        return -ENOMEM;
                }
        }
        *ret = names;
        if (ret_n)
                *ret_n = n;
        return 0;
}

void hostlist_free(char **names) {
        strings_free(names);
}

/* A name cut before its last digits. */
struct cut {
        const char *name;
        size_t prefix;
        int width; /* of the digits; 0: it has none */
        uint32_t value;
};

static struct cut cut_name(const char *name) {
        size_t n = strlen(name), p = n;
        struct cut c = { .name = name };

        while (p > 0 && n - p < DIGITS_MAX && isdigit((unsigned char)name[p - 1]))
                p--;
        c.prefix = p;
        c.width = (int)(n - p);
        for (; p < n; p++)
                c.value = c.value * 10 + (uint32_t)(name[p] - '0');
        return c;
}

static int compare_cuts(const void *va, const void *vb) {
        const struct cut *a = va, *b = vb;
        int r = memcmp(a->name, b->name, MIN(a->prefix, b->prefix));

        if (r != 0)
                return r;
        if (a->prefix != b->prefix)
                return a->prefix < b->prefix ? -1 : 1;
        if (a->value != b->value)
                return a->value < b->value ? -1 : 1;
        return a->width - b->width;
}

static bool same_prefix(const struct cut *a, const struct cut *b) {
        return a->width > 0 && b->width > 0 && a->prefix == b->prefix &&
               memcmp(a->name, b->name, a->prefix) == 0;
}

/* Whether b is what "first-..." counts to behind a: one more, written with the width of first. */
static bool continues(const struct cut *first, const struct cut *a, const struct cut *b) {
        char digits[16];

        return b->value == a->value + 1 &&
               snprintf(digits, sizeof(digits), "%0*u", first->width, b->value) == b->width;
}

static void print_group(FILE *f, const struct cut *c, size_t n) {
        if (n == 1) {
                fputs(c->name, f);
                return;
        }
        fprintf(f, "%.*s[", (int)c->prefix, c->name);
        for (size_t i = 0, last; i < n; i = last + 1) {
                for (last = i; last + 1 < n && continues(&c[i], &c[last], &c[last + 1]); last++)
                        ;
                fprintf(f, "%s%s", i > 0 ? "," : "", c[i].name + c[i].prefix);
                if (last > i)
                        fprintf(f, "%c%s", last == i + 1 ? ',' : '-', c[last].name + c[last].prefix);
        }
        fputc(']', f);
}

char *hostlist_compress(const char *const *names, size_t n) {
        _cleanup_free_ struct cut *cuts = calloc(n ?: 1, sizeof(*cuts));
        char *text = NULL;
        size_t size = 0;
        FILE *f;

        if (!cuts)
                return NULL;
        for (size_t i = 0; i < n; i++)
                cuts[i] = cut_name(names[i]);
        qsort(cuts, n, sizeof(*cuts), compare_cuts);
        f = open_memstream(&text, &size);
        if (!f)
                return NULL;
        for (size_t i = 0, next; i < n; i = next) {
                for (next = i + 1; next < n && same_prefix(&cuts[i], &cuts[next]); next++)
                        ;
                if (i > 0)
                        fputc(',', f);
                print_group(f, cuts + i, next - i);
        }
        if (fclose(f) != 0) {
                free(text);
                return NULL;
        }
        return text;
}
