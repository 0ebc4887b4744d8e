/* SPDX-License-Identifier: Apache-2.0 */
/* after and array. Invariant: an index is in a range once, and there are at most ARRAY_ELEMENTS_MAX. */
#include "masterd/spec/array.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/parse.h"

static const char *const condition_names[_AFTER_CONDITION_MAX] = { "ok", "fail", "any" };

const char *after_condition_to_string(enum after_condition c) {
        return c < _AFTER_CONDITION_MAX ? condition_names[c] : NULL;
}

char *after_name(const struct after_entry *e, char buf[static AFTER_NAME_MAX]) {
        if (e->index == AFTER_WHOLE)
                snprintf(buf, AFTER_NAME_MAX, "%u", e->job);
        else
                snprintf(buf, AFTER_NAME_MAX, "%u[%u]", e->job, e->index);
        return buf;
}

int after_parse(const char *text, struct after_entry *ret) {
        const char *colon = strchrnul(text, ':');
        struct after_entry entry = { .index = AFTER_WHOLE, .condition = AFTER_OK };
        char number[AFTER_NAME_MAX], *bracket;
        size_t n = (size_t)(colon - text), c;

        if (n >= sizeof(number))
                return -EINVAL;
        memcpy(number, text, n);
        number[n] = 0;
        bracket = strchr(number, '[');
        if (bracket) {
                if (number[n - 1] != ']')
                        return -EINVAL;
                number[n - 1] = *bracket = 0;
                if (parse_u32(bracket + 1, 0, ARRAY_INDEX_MAX, &entry.index) < 0)
                        return -EINVAL;
        }
        if (parse_u32(number, 1, UINT32_MAX, &entry.job) < 0)
                return -EINVAL;
        if (*colon) {
                for (c = 0; c < _AFTER_CONDITION_MAX; c++)
                        if (strcmp(colon + 1, condition_names[c]) == 0)
                                break;
                if (c == _AFTER_CONDITION_MAX)
                        return -EINVAL;
                entry.condition = (enum after_condition)c;
        }
        *ret = entry;
        return 0;
}

/* ---- ranges ---- */

static bool read_number(const char **p, uint32_t *ret) {
        uint64_t v = 0;
        const char *s = *p;

        for (; *s >= '0' && *s <= '9' && v <= ARRAY_INDEX_MAX; s++)
                v = v * 10 + (uint64_t)(*s - '0');
        if (s == *p || v > ARRAY_INDEX_MAX)
                return false;
        *ret = (uint32_t)v;
        *p = s;
        return true;
}

#define WHY_FORM                                                                                             \
        "must be indices from 0 to 999999999 such as \"0-99\", \"0-99:10\" (every tenth) or \"1,3,7-9\", "   \
        "with \"%8\" behind them for 8 at a time"
#define WHY_MANY "must name at most 100000 elements"

static int refuse_range(const char *why, const char **ret_why) {
        *ret_why = why;
        return -EINVAL;
}

static int add_range(struct array_range *a, uint32_t first, uint32_t last, uint32_t step,
                     const char **ret_why) {
        uint64_t n = (uint64_t)(last - first) / step + 1;
        uint32_t *bigger;

        if (a->n + n > ARRAY_ELEMENTS_MAX)
                return refuse_range(WHY_MANY, ret_why);
        bigger = reallocarray(a->indices, a->n + (size_t)n, sizeof(*bigger));
        if (!bigger)
                return -ENOMEM;
        a->indices = bigger;
        for (uint64_t i = 0; i < n; i++)
                a->indices[a->n++] = first + (uint32_t)i * step;
        return 0;
}

static int read_part(const char **p, struct array_range *a, const char **ret_why) {
        uint32_t first, last, step = 1;

        if (!read_number(p, &first))
                return refuse_range(WHY_FORM, ret_why);
        last = first;
        if (**p == '-') {
                (*p)++;
                if (!read_number(p, &last))
                        return refuse_range(WHY_FORM, ret_why);
                if (last < first)
                        return refuse_range("must have the smaller index first in each range", ret_why);
                if (**p == ':') {
                        (*p)++;
                        if (!read_number(p, &step))
                                return refuse_range(WHY_FORM, ret_why);
                        if (step == 0)
                                return refuse_range("must have a step of at least 1", ret_why);
                }
        }
        return add_range(a, first, last, step, ret_why);
}

static int by_number(const void *x, const void *y) {
        uint32_t a = *(const uint32_t *)x, b = *(const uint32_t *)y;

        return (a > b) - (a < b);
}

static int put_in_order(struct array_range *a, const char **ret_why) {
        qsort(a->indices, a->n, sizeof(*a->indices), by_number);
        for (uint32_t i = 1; i < a->n; i++)
                if (a->indices[i] == a->indices[i - 1])
                        return refuse_range("must name each index once", ret_why);
        return 0;
}

int array_range_parse(const char *text, struct array_range *ret, const char **ret_why) {
        struct array_range a = {};
        const char *p = text;
        int r;

        do
                r = read_part(&p, &a, ret_why);
        while (r >= 0 && *p == ',' && p++);
        if (r >= 0 && *p == '%') {
                p++;
                if (!read_number(&p, &a.limit))
                        r = refuse_range(WHY_FORM, ret_why);
                else if (a.limit == 0 || a.limit > ARRAY_ELEMENTS_MAX)
                        r = refuse_range("must allow 1 to 100000 elements at a time behind '%'", ret_why);
        }
        if (r >= 0 && *p)
                r = refuse_range(WHY_FORM, ret_why);
        if (r >= 0)
                r = put_in_order(&a, ret_why);
        if (r < 0) {
                free(a.indices);
                return r;
        }
        *ret = a;
        return 0;
}

void array_range_done(struct array_range *a) {
        free(a->indices);
        *a = (struct array_range){};
}
