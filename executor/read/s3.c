/* SPDX-License-Identifier: Apache-2.0 */
/* S3's addresses and listings. The XML of a listing is read for the few elements that matter, whatever else
 * is in it; invariant: no byte behind xml + size is read, and no text is longer than its place. */
#include "executor/read/s3.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/parse.h"
#include "lib/base/utf8.h"

#define DEPTH_MAX 16u
#define NAME_MAX_BYTES 64u

const char *s3_region(const struct input_source *source) {
        static const char *const names[] = { "AWS_REGION", "AWS_DEFAULT_REGION" };

        if (source->s3_region && *source->s3_region)
                return source->s3_region;
        for (size_t i = 0; i < ELEMENTSOF(names); i++) {
                const char *v = getenv(names[i]);

                if (v && *v)
                        return v;
        }
        return "us-east-1";
}

char *s3_encode(const char *text, bool slash) {
        static const char digits[] = "0123456789ABCDEF";
        char *encoded = malloc(strlen(text) * 3 + 1), *to = encoded;

        if (!encoded)
                return NULL;
        for (; *text; text++) {
                unsigned char c = (unsigned char)*text;

                if ((c < 128 && isalnum(c)) || strchr("-_.~", c) || (c == '/' && slash))
                        *to++ = (char)c;
                else {
                        *to++ = '%';
                        *to++ = digits[c >> 4];
                        *to++ = digits[c & 15];
                }
        }
        *to = 0;
        return encoded;
}

int s3_url(const struct input_source *source, const char *path, const char *query, char **ret) {
        const char *endpoint = source->s3_endpoint && *source->s3_endpoint ? source->s3_endpoint : NULL;
        _cleanup_free_ char *encoded = NULL, *own = NULL;
        size_t n;
        char *url;

        if (strncmp(path, "s3://", 5) != 0 || path[5] == 0 || path[5] == '/')
                return -EINVAL;
        encoded = s3_encode(path + 5, true);
        if (!encoded)
                return -ENOMEM;
        if (!endpoint) {
                if (asprintf(&own, "https://s3.%s.amazonaws.com", s3_region(source)) < 0) {
                        own = NULL;
                        return -ENOMEM;
                }
                endpoint = own;
        }
        for (n = strlen(endpoint); n > 0 && endpoint[n - 1] == '/';)
                n--;
        if (asprintf(&url, "%.*s/%s%s%s", (int)n, endpoint, encoded, query ? "?" : "", query ? query : "") <
            0)
                return -ENOMEM;
        *ret = url;
        return 0;
}

/* ---- XML ---- */

struct xml {
        const char *at, *end;
};

enum xml_kind {
        XML_END,   /* of the text */
        XML_OPEN,  /* name */
        XML_CLOSE, /* name */
        XML_TEXT   /* raw: entities are not resolved */
};

struct xml_token {
        enum xml_kind kind;
        const char *text;
        size_t size;
        bool empty; /* <name/> */
};

/* Behind the first what from x->at on; -EBADMSG: there is none. */
static int skip_behind(struct xml *x, const char *what) {
        const char *found = memmem(x->at, (size_t)(x->end - x->at), what, strlen(what));

        if (!found)
                return -EBADMSG;
        x->at = found + strlen(what);
        return 0;
}

static bool begins_with(const struct xml *x, const char *what) {
        return (size_t)(x->end - x->at) >= strlen(what) && memcmp(x->at, what, strlen(what)) == 0;
}

static int next_token(struct xml *x, struct xml_token *ret) {
        struct xml_token t = { .kind = XML_TEXT };
        const char *close;

        for (;;) {
                int r = 0;

                if (x->at == x->end) {
                        *ret = (struct xml_token){ .kind = XML_END };
                        return 0;
                }
                if (*x->at != '<')
                        break;
                if (begins_with(x, "<?"))
                        r = skip_behind(x, "?>");
                else if (begins_with(x, "<!--"))
                        r = skip_behind(x, "-->");
                else if (begins_with(x, "<!"))
                        return -EBADMSG; /* no declarations, no CDATA */
                else
                        goto element;
                if (r < 0)
                        return r;
        }
        t.text = x->at;
        close = memchr(x->at, '<', (size_t)(x->end - x->at));
        x->at = close ? close : x->end;
        t.size = (size_t)(x->at - t.text);
        *ret = t;
        return 0;
element:
        x->at++;
        t.kind = XML_OPEN;
        if (x->at < x->end && *x->at == '/') {
                t.kind = XML_CLOSE;
                x->at++;
        }
        close = memchr(x->at, '>', (size_t)(x->end - x->at));
        if (!close)
                return -EBADMSG;
        t.text = x->at;
        while (x->at < close && !isspace((unsigned char)*x->at) && *x->at != '/')
                x->at++;
        t.size = (size_t)(x->at - t.text);
        t.empty = t.kind == XML_OPEN && close[-1] == '/';
        x->at = close + 1;
        if (t.size == 0 || t.size > NAME_MAX_BYTES)
                return -EBADMSG;
        *ret = t;
        return 0;
}

/* One of the five entities, or a number below 128; what is behind it, or NULL. */
static const char *entity_at(const char *s, const char *end, char *ret) {
        static const struct {
                const char *name;
                char c;
        } named[] = {
                { "&amp;", '&' }, { "&lt;", '<' }, { "&gt;", '>' }, { "&quot;", '"' }, { "&apos;", '\'' }
        };
        char digits[8];
        const char *semicolon;
        unsigned long v;

        for (size_t i = 0; i < ELEMENTSOF(named); i++) {
                size_t n = strlen(named[i].name);

                if ((size_t)(end - s) >= n && memcmp(s, named[i].name, n) == 0) {
                        *ret = named[i].c;
                        return s + n;
                }
        }
        semicolon = memchr(s, ';', (size_t)MIN(end - s, (ptrdiff_t)sizeof(digits)));
        if (end - s < 4 || s[1] != '#' || !semicolon)
                return NULL;
        snprintf(digits, sizeof(digits), "%.*s", (int)(semicolon - s - 2), s + 2);
        v = digits[0] == 'x' ? strtoul(digits + 1, NULL, 16) : strtoul(digits, NULL, 10);
        if (v == 0 || v >= 128)
                return NULL;
        *ret = (char)v;
        return semicolon + 1;
}

/* Text with its entities resolved. -EBADMSG: too long, NUL in it, or an entity that we do not know. */
static int unescape(const char *text, size_t size, char *buf, size_t buf_size) {
        const char *end = text + size;
        size_t n = 0;

        while (text < end) {
                char c = *text;

                if (n + 1 >= buf_size || c == 0)
                        return -EBADMSG;
                if (c == '&') {
                        text = entity_at(text, end, &c);
                        if (!text)
                                return -EBADMSG;
                } else
                        text++;
                buf[n++] = c;
        }
        buf[n] = 0;
        return 0;
}

static int hex_digit(char c) {
        return c >= '0' && c <= '9'   ? c - '0'
               : c >= 'A' && c <= 'F' ? c - 'A' + 10
               : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                      : -1;
}

/* In place: what encoding-type=url did; '+' is a space. */
static int decode(char *text) {
        char *to = text;

        for (; *text; text++) {
                if (*text == '%') {
                        int high = hex_digit(text[1]), low = high < 0 ? -1 : hex_digit(text[2]);

                        if (low < 0 || (high == 0 && low == 0))
                                return -EBADMSG;
                        *to++ = (char)(high << 4 | low);
                        text += 2;
                } else
                        *to++ = *text == '+' ? ' ' : *text;
        }
        *to = 0;
        return 0;
}

struct listing {
        s3_on_object on_object;
        void *userdata;
        char *token;
        size_t token_size;
        bool root, truncated;
        struct s3_object object;
        char number[24], flag[8];
};

/* Where the text of an element goes that stands at this depth below its parents. */
static char *place_of(struct listing *l, const char *name, size_t n, const char *parent, unsigned depth,
                      size_t *ret_size) {
        const struct {
                const char *name, *parent;
                unsigned depth;
                char *place;
                size_t size;
        } places[] = {
                { "Key", "Contents", 3, l->object.key, sizeof(l->object.key) },
                { "ETag", "Contents", 3, l->object.tag, sizeof(l->object.tag) },
                { "Size", "Contents", 3, l->number, sizeof(l->number) },
                { "IsTruncated", "ListBucketResult", 2, l->flag, sizeof(l->flag) },
                { "NextContinuationToken", "ListBucketResult", 2, l->token, l->token_size },
        };

        for (size_t i = 0; i < ELEMENTSOF(places); i++)
                if (depth == places[i].depth && strlen(places[i].name) == n &&
                    memcmp(places[i].name, name, n) == 0 && strcmp(places[i].parent, parent) == 0) {
                        *ret_size = places[i].size;
                        return places[i].place;
                }
        return NULL;
}

static int finish_object(struct listing *l) {
        int r = decode(l->object.key);

        if (r < 0 || l->object.key[0] == 0 || strlen(l->object.key) > S3_KEY_MAX ||
            parse_u64(l->number, 0, UINT64_MAX - 1, &l->object.size) < 0)
                return -EBADMSG;
        return l->on_object(l->userdata, &l->object);
}

static int on_close(struct listing *l, const char *name, unsigned depth) {
        if (depth == 2 && strcmp(name, "Contents") == 0)
                return finish_object(l);
        return 0;
}

static int on_open(struct listing *l, const char *name, unsigned depth) {
        if (depth == 1 && strcmp(name, "ListBucketResult") != 0)
                return -EBADMSG;
        l->root = true;
        if (depth == 2 && strcmp(name, "Contents") == 0) {
                l->object.key[0] = l->object.tag[0] = 0;
                l->number[0] = 0;
        }
        return 0;
}

static int read_listing(struct listing *l, struct xml *x) {
        char names[DEPTH_MAX][NAME_MAX_BYTES + 1];
        unsigned depth = 0;

        for (;;) {
                struct xml_token t;
                size_t size = 0;
                char *place;
                int r = next_token(x, &t);

                if (r < 0)
                        return r;
                switch (t.kind) {
                case XML_END:
                        return depth == 0 && l->root ? 0 : -EBADMSG;
                case XML_OPEN:
                        if (depth >= DEPTH_MAX || (depth == 0 && l->root))
                                return -EBADMSG;
                        snprintf(names[depth], sizeof(names[0]), "%.*s", (int)t.size, t.text);
                        depth++;
                        r = on_open(l, names[depth - 1], depth);
                        if (t.empty) {
                                if (r >= 0)
                                        r = on_close(l, names[depth - 1], depth);
                                depth--;
                        }
                        break;
                case XML_CLOSE:
                        if (depth == 0 || strlen(names[depth - 1]) != t.size ||
                            memcmp(names[depth - 1], t.text, t.size) != 0)
                                return -EBADMSG;
                        r = on_close(l, names[depth - 1], depth);
                        depth--;
                        break;
                case XML_TEXT:
                        place = depth >= 2 ? place_of(l, names[depth - 1], strlen(names[depth - 1]),
                                                      names[depth - 2], depth, &size)
                                           : NULL;
                        r = place ? unescape(t.text, t.size, place, size) : 0;
                        break;
                }
                if (r < 0)
                        return r;
        }
}

int s3_list_read(const char *xml, size_t size, s3_on_object on_object, void *userdata, char *ret_token,
                 size_t token_size) {
        _cleanup_free_ char *token = calloc(1, token_size);
        struct listing l = {
                .on_object = on_object, .userdata = userdata, .token = token, .token_size = token_size
        };
        struct xml x = { .at = xml, .end = xml + size };
        int r;

        if (!token)
                return -ENOMEM;
        r = read_listing(&l, &x);
        if (r < 0)
                return r;
        if (strcmp(l.flag, "true") != 0)
                token[0] = 0;
        else if (token[0] == 0)
                return -EBADMSG;
        memcpy(ret_token, token, token_size);
        return 0;
}

void s3_error_code(const char *xml, char *buf, size_t size) {
        const char *code = strstr(xml, "<Code>");
        size_t n = code ? strcspn(code + 6, "<") : 0;

        buf[0] = 0;
        if (n > 0 && n < size)
                utf8_clean(code + 6, n, buf, size);
}
