/* SPDX-License-Identifier: Apache-2.0 */
/* The grammar of labels and of conditions on them. */
#include "lib/base/labels.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "lib/base/cleanup.h"

#define KEY_RULE "a key begins with a letter or digit and has only these and - . _ /"
#define VALUE_RULE "a value is printable and has no spaces, commas, parentheses, equals or exclamation marks"
#define FORMS                                                                                                \
        "write KEY, !KEY, KEY=VALUE, KEY!=VALUE, KEY in (A,B) or KEY notin (A,B), such as gpu.model=H100"

static size_t key_length(const char *text) {
        size_t n = 0;

        if (!isalnum((unsigned char)text[0]))
                return 0;
        while (isalnum((unsigned char)text[n]) || (text[n] && strchr("-._/", text[n])))
                n++;
        return n;
}

/* Up to what cannot be in a value. */
static size_t value_length(const char *text) {
        size_t n = 0;

        while (text[n] > ' ' && text[n] < 0x7f && !strchr(",()=!", text[n]))
                n++;
        return n;
}

static int refuse_label(const char **ret_why, const char *why) {
        if (ret_why)
                *ret_why = why;
        return -EINVAL;
}

int label_key_check(const char *text, const char **ret_why) {
        size_t n = key_length(text);

        if (n == 0 || text[n])
                return refuse_label(ret_why, KEY_RULE);
        return n > LABEL_MAX ? refuse_label(ret_why, "at most 255 bytes") : 0;
}

int label_check(const char *text, const char **ret_why) {
        size_t n = key_length(text);

        if (n == 0 || (text[n] && text[n] != '='))
                return refuse_label(ret_why, "KEY=VALUE is expected; " KEY_RULE);
        if (text[n] && text[n + 1 + value_length(text + n + 1)])
                return refuse_label(ret_why, VALUE_RULE);
        return strlen(text) > LABEL_MAX ? refuse_label(ret_why, "at most 255 bytes") : 0;
}

const char *label_value(const char *label, const char *key) {
        size_t n = strlen(key);

        if (strncmp(label, key, n) != 0)
                return NULL;
        return label[n] == '=' ? label + n + 1 : label[n] ? NULL : label + n;
}

struct constraint *constraint_free(struct constraint *c) {
        if (!c)
                return NULL;
        for (size_t i = 0; i < c->n_values; i++)
                free(c->values[i]);
        free(c->values);
        free(c->key);
        free(c->text);
        free(c);
        return NULL;
}

static const char *skip_blanks(const char *p) {
        return p + strspn(p, " \t");
}

static int add_value(struct constraint *c, const char *text, size_t n) {
        c->values[c->n_values] = strndup(text, n);
        if (!c->values[c->n_values])
                return -ENOMEM;
        c->n_values++;
        return 0;
}

/* "(A,B)" up to the end of the text. */
static int parse_list(struct constraint *c, const char *p, const char **ret_why) {
        p = skip_blanks(p);
        if (*p++ != '(')
                return refuse_label(ret_why, FORMS);
        for (;;) {
                size_t n;
                int r;
                p = skip_blanks(p);
                n = value_length(p);
                if (n == 0)
                        return refuse_label(ret_why,
                                            "a list of values is expected in the parentheses; " VALUE_RULE);
                if (c->n_values == CONSTRAINT_VALUES_MAX)
                        return refuse_label(ret_why, "at most 64 values are accepted");
                r = add_value(c, p, n);
                if (r < 0)
                        return r;
                p = skip_blanks(p + n);
                if (*p == ')')
                        return *skip_blanks(p + 1) ? refuse_label(ret_why, "something is behind the list")
                                                   : 0;
                if (*p++ != ',')
                        return refuse_label(ret_why, "a comma or ) is expected behind a value");
        }
}

static int parse_value(struct constraint *c, const char *p, const char **ret_why) {
        size_t n;

        p = skip_blanks(p);
        n = value_length(p);
        if (*skip_blanks(p + n))
                return refuse_label(ret_why, VALUE_RULE);
        return add_value(c, p, n);
}

static bool begins_word(const char *p, const char *word) {
        size_t n = strlen(word);

        return strncmp(p, word, n) == 0 && (p[n] == ' ' || p[n] == '\t' || p[n] == '(');
}

/* What is behind the key. */
static int parse_rest(struct constraint *c, const char *p, const char **ret_why) {
        bool apart = *p == ' ' || *p == '\t';

        p = skip_blanks(p);
        if (!*p) {
                c->op = CONSTRAINT_HAS;
                return 0;
        }
        if (p[0] == '=') {
                c->op = CONSTRAINT_IN;
                return parse_value(c, p + (p[1] == '=' ? 2 : 1), ret_why);
        }
        if (p[0] == '!' && p[1] == '=') {
                c->op = CONSTRAINT_NOT_IN;
                return parse_value(c, p + 2, ret_why);
        }
        if (apart && begins_word(p, "in")) {
                c->op = CONSTRAINT_IN;
                return parse_list(c, p + 2, ret_why);
        }
        if (apart && begins_word(p, "notin")) {
                c->op = CONSTRAINT_NOT_IN;
                return parse_list(c, p + 5, ret_why);
        }
        return refuse_label(ret_why, FORMS);
}

/* The canonical form. */
static int write_text(struct constraint *c) {
        static const char *const words[_CONSTRAINT_OP_MAX][2] = {
                [CONSTRAINT_IN] = { "=", " in (" }, [CONSTRAINT_NOT_IN] = { "!=", " notin (" }
        };
        size_t size;
        FILE *f = open_memstream(&c->text, &size);

        if (!f)
                return -ENOMEM;
        fprintf(f, "%s%s", c->op == CONSTRAINT_HAS_NO ? "!" : "", c->key);
        for (size_t i = 0; i < c->n_values; i++)
                fprintf(f, "%s%s", i > 0 ? "," : words[c->op][c->n_values > 1], c->values[i]);
        if (c->n_values > 1)
                fputc(')', f);
        return fclose(f) == 0 ? 0 : -ENOMEM;
}

int constraint_parse(const char *text, struct constraint **ret, const char **ret_why) {
        _cleanup_(constraint_free_p) struct constraint *c = NULL;
        const char *p = skip_blanks(text);
        bool no = *p == '!';
        size_t n;
        int r;

        if (strlen(text) > CONSTRAINT_MAX)
                return refuse_label(ret_why, "at most 4096 bytes are accepted");
        p = no ? skip_blanks(p + 1) : p;
        n = key_length(p);
        if (n == 0 || n > LABEL_MAX)
                return refuse_label(ret_why, FORMS);
        c = calloc(1, sizeof(*c));
        if (!c || !(c->key = strndup(p, n)) ||
            !(c->values = calloc(CONSTRAINT_VALUES_MAX + 1, sizeof(*c->values))))
                return -ENOMEM;
        r = parse_rest(c, p + n, ret_why);
        if (r < 0)
                return r;
        if (no && c->op != CONSTRAINT_HAS)
                return refuse_label(ret_why, "behind ! a key alone is expected; " FORMS);
        if (no)
                c->op = CONSTRAINT_HAS_NO;
        r = write_text(c);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(c);
        return 0;
}

bool constraint_met(const struct constraint *c, const char *const *labels, size_t n_labels) {
        const char *value = NULL;
        bool in = false;

        for (size_t i = 0; i < n_labels && !value; i++)
                value = label_value(labels[i], c->key);
        for (size_t i = 0; value && i < c->n_values && !in; i++)
                in = strcmp(value, c->values[i]) == 0;
        switch (c->op) {
        case CONSTRAINT_HAS:
                return value;
        case CONSTRAINT_HAS_NO:
                return !value;
        case CONSTRAINT_IN:
                return in;
        default:
                return !in;
        }
}
