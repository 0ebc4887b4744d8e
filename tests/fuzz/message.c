/* SPDX-License-Identifier: Apache-2.0 */
/* Invariant: every message that is made is one that sd-bus takes; whatever is not UTF-8 is replaced before.
 */
#include "tests/fuzz/message.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/utf8.h"

#define DEPTH_MAX 8u
#define ITEMS_MAX 4096u /* of all arrays of a message: one byte may ask for hundreds */

static sd_bus *bus(void) {
        static sd_bus *one;
        int fds[2];

        if (one)
                return one;
        MUST(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) == 0);
        MUST(sd_bus_new(&one) >= 0 && sd_bus_set_fd(one, fds[0], fds[0]) >= 0 && sd_bus_start(one) >= 0);
        return one;
}

sd_bus_message *fuzz_message_new(void) {
        sd_bus_message *m = NULL;

        MUST(sd_bus_message_new_method_call(bus(), &m, NULL, "/a", "a.b", "C") >= 0);
        return m;
}

/* ---- signatures ---- */

/* The length of the first complete type. */
static size_t one_type(const char *s) {
        size_t n = 0, depth = 0;

        do {
                while (s[n] == 'a')
                        n++;
                MUST(s[n]);
                depth += s[n] == '(' || s[n] == '{';
                depth -= s[n] == ')' || s[n] == '}';
                n++;
        } while (depth > 0);
        return n;
}

static void part(const char *s, size_t n, char buf[static 256]) {
        MUST(n < 256);
        memcpy(buf, s, n);
        buf[n] = 0;
}

/* ---- values ---- */

struct maker {
        sd_bus_message *m;
        struct fuzz_input *in;
        const char *const *keys, *const *words;
        unsigned items;
};

/* One that is known, or NULL: something else is wanted. Takes nothing of the input where there are none. */
static const char *known(struct maker *k, const char *const *list) {
        size_t n = 0;
        uint8_t choice;

        while (list && list[n])
                n++;
        choice = n > 0 ? fuzz_byte(k->in) : 255;
        return choice < 128 ? list[choice % n] : NULL;
}

/* Texts repeat themselves beyond what the input has, so that few bytes reach every bound. */
static size_t length(struct fuzz_input *in) {
        static const uint16_t bounds[] = { 16,  32,  33,   64,   65,   127,  128,  255,
                                           256, 257, 1024, 1025, 4095, 4096, 8192, 8193 };
        uint8_t how = fuzz_byte(in);

        return how < 192 ? how % 24 : bounds[how % ELEMENTSOF(bounds)];
}

static char *text(struct fuzz_input *in) {
        size_t n = length(in);
        char *raw = malloc(n + 1), *clean;

        MUST(raw);
        for (size_t i = 0; i < n; i++)
                raw[i] = in->size > 0 ? (char)fuzz_byte(in) : (char)('a' + i % 26);
        clean = malloc(n + 1);
        MUST(clean);
        utf8_clean(raw, n, clean, n + 1);
        free(raw);
        return clean;
}

static void make(struct maker *k, const char *signature, unsigned depth);

static void make_key(struct maker *k, char type) {
        const char one[] = { type, 0 }, *key = type == 's' ? known(k, k->keys) : NULL;

        if (key)
                MUST(sd_bus_message_append_basic(k->m, 's', key) >= 0);
        else
                make(k, one, 1);
}

static void make_bytes(struct maker *k) {
        static const uint8_t usual[16] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16 };
        const char *word = known(k, k->words);
        uint8_t *p;
        size_t n;

        if (word) {
                MUST(sd_bus_message_append_array(k->m, 'y', word, strlen(word)) >= 0);
                return;
        }
        n = length(k->in);
        p = malloc(n + 1);
        MUST(p);
        if (n == 0) { /* an id, which is most of what bytes are */
                MUST(sd_bus_message_append_array(k->m, 'y', usual, sizeof(usual)) >= 0);
                free(p);
                return;
        }
        for (size_t i = 0; i < n; i++)
                p[i] = fuzz_byte(k->in);
        MUST(sd_bus_message_append_array(k->m, 'y', p, n) >= 0);
        free(p);
}

static void make_array(struct maker *k, const char *contents, unsigned depth) {
        uint8_t how = fuzz_byte(k->in);
        unsigned n = how < 224 ? how % 5 : how == 255 ? 300 : how % 70;

        if (strcmp(contents, "y") == 0) {
                make_bytes(k);
                return;
        }
        MUST(sd_bus_message_open_container(k->m, 'a', contents) >= 0);
        for (unsigned i = 0; i < n && k->items < ITEMS_MAX && (i < 5 || depth < 3); i++) {
                k->items++;
                make(k, contents, depth + 1);
        }
        MUST(sd_bus_message_close_container(k->m) >= 0);
}

static void make_variant(struct maker *k, unsigned depth) {
        static const char *const kinds[] = { "s",     "u",  "t",     "b",         "as",       "au",
                                             "at",    "ay", "aay",   "y",         "q",        "i",
                                             "x",     "d",  "a(us)", "a(sttuuu)", "a(ssust)", "a(sayyq)",
                                             "a(st)", "v",  "a{sv}", "(ss)",      "aau" };
        const char *kind = kinds[fuzz_byte(k->in) % ELEMENTSOF(kinds)];

        MUST(sd_bus_message_open_container(k->m, 'v', kind) >= 0);
        if (depth + 1 < DEPTH_MAX || (kind[0] != 'v' && kind[0] != 'a'))
                make(k, kind, depth + 1);
        else if (kind[0] == 'a') {
                MUST(sd_bus_message_open_container(k->m, 'a', kind + 1) >= 0);
                MUST(sd_bus_message_close_container(k->m) >= 0);
        } else
                MUST(sd_bus_message_append(k->m, "v", "u", 0) >= 0);
        MUST(sd_bus_message_close_container(k->m) >= 0);
}

static void make_descriptor(struct maker *k) {
        int fds[2] = { -1, -1 };

        switch (fuzz_byte(k->in) % 3) {
        case 0:
                fds[0] = open("/dev/null", O_RDWR | O_CLOEXEC);
                break;
        case 1:
                fds[0] = memfd_create("fuzz", MFD_CLOEXEC);
                break;
        case 2:
                MUST(pipe2(fds, O_CLOEXEC) == 0);
        }
        MUST(fds[0] >= 0 && sd_bus_message_append_basic(k->m, 'h', fds) >= 0); /* a copy */
        close_fd(fds[0]);
        close_fd(fds[1]);
}

static void make_text(struct maker *k) {
        const char *word = known(k, k->words);
        char *s = word ? NULL : text(k->in);

        MUST(sd_bus_message_append_basic(k->m, 's', word ? word : s) >= 0);
        free(s);
}

static void make_basic(struct maker *k, char type) {
        union {
                uint8_t y;
                uint16_t q;
                uint32_t u;
                uint64_t t;
                int b;
                double d;
        } v;

        switch (type) {
        case 's':
                make_text(k);
                return;
        case 'h':
                make_descriptor(k);
                return;
        case 'b':
                v.b = fuzz_byte(k->in) & 1;
                break;
        case 'y':
                v.y = (uint8_t)fuzz_number(k->in);
                break;
        case 'q':
        case 'n':
                v.q = (uint16_t)fuzz_number(k->in);
                break;
        case 'u':
        case 'i':
                v.u = (uint32_t)fuzz_number(k->in);
                break;
        default:
                MUST(type == 't' || type == 'x' || type == 'd');
                v.t = fuzz_number(k->in);
        }
        MUST(sd_bus_message_append_basic(k->m, type, &v) >= 0);
}

static void make(struct maker *k, const char *signature, unsigned depth) {
        char inside[256];

        for (size_t n; *signature; signature += n) {
                n = one_type(signature);
                switch (*signature) {
                case 'a':
                        part(signature + 1, n - 1, inside);
                        make_array(k, inside, depth);
                        break;
                case 'v':
                        make_variant(k, depth);
                        break;
                case '(':
                case '{':
                        part(signature + 1, n - 2, inside);
                        MUST(sd_bus_message_open_container(k->m, *signature == '(' ? 'r' : 'e', inside) >= 0);
                        if (*signature == '{')
                                make_key(k, *inside);
                        make(k, *signature == '{' ? inside + 1 : inside, depth + 1);
                        MUST(sd_bus_message_close_container(k->m) >= 0);
                        break;
                default:
                        make_basic(k, *signature);
                }
        }
}

void fuzz_message_append_words(sd_bus_message *m, const char *signature, struct fuzz_input *in,
                               const char *const *keys, const char *const *words) {
        struct maker k = { .m = m, .in = in, .keys = keys, .words = words };

        make(&k, signature, 0);
}

void fuzz_message_append(sd_bus_message *m, const char *signature, struct fuzz_input *in,
                         const char *const *keys) {
        fuzz_message_append_words(m, signature, in, keys, NULL);
}

static void seal(sd_bus_message *m) {
        MUST(sd_bus_message_seal(m, 1, 0) >= 0);
        MUST(sd_bus_message_rewind(m, true) >= 0);
}

void fuzz_message_targets(const struct message_target *targets, size_t n, const char *const *keys,
                          const uint8_t *data, size_t size) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *first = NULL, *second = NULL, *third = NULL;
        struct fuzz_input in = { data, size };
        const struct message_target *t = targets + fuzz_byte(&in) % n;
        uint8_t other = fuzz_byte(&in);
        int r;

        first = fuzz_message_new();
        fuzz_message_append(first, other >= 240 ? targets[other % n].signature : t->signature, &in, keys);
        seal(first);
        second = fuzz_message_new();
        r = t->read(first, second);
        MUST(r == 1 || r == 0 || r == -EBADMSG || r == -E2BIG || r == -EINVAL);
        if (r != 1)
                return;
        seal(second);
        third = fuzz_message_new();
        r = t->read(second, third);
        if (r != 1)
                fprintf(stderr, "%s: what was written is not read: %d\n", t->signature, r);
        MUST(r == 1);
}
