/* SPDX-License-Identifier: Apache-2.0 */
/* Labels of hosts, and conditions on them.
 *
 * A label is "KEY=VALUE", or "KEY" alone, which is the same as "KEY=". Keys are made of letters, digits and
 * "-._/" and begin with a letter or digit; values are printable and have no spaces, commas, parentheses or
 * equals signs. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LABEL_MAX 255u       /* bytes of KEY=VALUE */
#define CONSTRAINT_MAX 4096u /* bytes of a condition */
#define CONSTRAINT_VALUES_MAX 64u

/* Hosts that have RDMA devices say so by this label, which their agents add; "rdma": true asks for it. */
#define RDMA_LABEL "rdma"

/* -EINVAL for what is no label; *ret_why (may be NULL) says what is expected. */
int label_check(const char *text, const char **ret_why);
/* The same of a key alone. */
int label_key_check(const char *text, const char **ret_why);

/* The value of the label with that key, within the label; "" of one without; NULL if this label has another
 * key. */
const char *label_value(const char *label, const char *key);

enum constraint_op {
        CONSTRAINT_HAS,    /* "KEY" */
        CONSTRAINT_HAS_NO, /* "!KEY" */
        CONSTRAINT_IN,     /* "KEY=VALUE", "KEY in (A,B)": has it, with one of these values */
        CONSTRAINT_NOT_IN, /* "KEY!=VALUE", "KEY notin (A,B)": none of them; also met without KEY */
        _CONSTRAINT_OP_MAX
};

struct constraint {
        enum constraint_op op;
        char *text; /* as it is written canonically: the same for equal conditions but for the order of values
                     */
        char *key;
        char **values; /* NULL-ended; empty for HAS and HAS_NO */
        size_t n_values;
};

/* -EINVAL: *ret_why (may be NULL) says what is expected. -ENOMEM. */
int constraint_parse(const char *text, struct constraint **ret, const char **ret_why);
struct constraint *constraint_free(struct constraint *c); /* NULL is fine; returns NULL */
static inline void constraint_free_p(struct constraint **c) {
        constraint_free(*c);
}

/* Whether a host with these labels meets it. */
bool constraint_met(const struct constraint *c, const char *const *labels, size_t n_labels);
