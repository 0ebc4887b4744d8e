/* SPDX-License-Identifier: Apache-2.0 */
/* Regular expressions that end. Invariant: nothing is compiled that could be as large, or nested as deep, as
 * its author likes. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "lib/base/pattern.h"

#include <errno.h>
#include <pcre2.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NEST_MAX 16u
/* Of pcre2_set_match_limit(): some 20 ns each. Lines that a person would write an expression for take less
 * than a hundredth of it. */
#define STEPS_MAX 20000u
#define HEAP_KIB_MAX 1024u

struct pattern {
        pcre2_code *code;
        pcre2_match_data *data;
        pcre2_match_context *limits;
};

static int compile_bounded(const char *text, pcre2_code **ret, int *ret_error, size_t *ret_at) {
        pcre2_compile_context *context = pcre2_compile_context_create(NULL);

        if (!context)
                return -ENOMEM;
        (void)pcre2_set_parens_nest_limit(context, NEST_MAX);
        (void)pcre2_set_max_pattern_length(context, PATTERN_MAX);
        /* On bytes: what programs print need not be UTF-8, and classes by Unicode are slow. */
        *ret = pcre2_compile((PCRE2_SPTR)text, PCRE2_ZERO_TERMINATED,
                             PCRE2_NEVER_UTF | PCRE2_NEVER_UCP | PCRE2_NEVER_BACKSLASH_C |
                                     PCRE2_DOLLAR_ENDONLY,
                             ret_error, ret_at, context);
        pcre2_compile_context_free(context);
        return *ret ? 0 : -EINVAL;
}

bool pattern_valid(const char *text, const char **ret_why) {
        static _Thread_local char why[256];
        PCRE2_UCHAR message[160] = "out of memory";
        pcre2_code *code;
        size_t at = 0;
        int error = 0, r = compile_bounded(text, &code, &error, &at);

        if (r >= 0) {
                pcre2_code_free(code);
                return true;
        }
        if (r == -EINVAL)
                (void)pcre2_get_error_message(error, message, sizeof(message));
        snprintf(why, sizeof(why), "is no regular expression (pcre2pattern(3)): %s, at its byte %zu",
                 (const char *)message, at + 1);
        *ret_why = why;
        return false;
}

int pattern_new(const char *text, struct pattern **ret) {
        _cleanup_(pattern_free_p) struct pattern *p = calloc(1, sizeof(*p));
        size_t at;
        int error, r;

        if (!p)
                return -ENOMEM;
        r = compile_bounded(text, &p->code, &error, &at);
        if (r < 0)
                return r;
        p->data = pcre2_match_data_create(1, NULL);
        p->limits = pcre2_match_context_create(NULL);
        if (!p->data || !p->limits)
                return -ENOMEM;
        (void)pcre2_set_match_limit(p->limits, STEPS_MAX);
        (void)pcre2_set_heap_limit(p->limits, HEAP_KIB_MAX);
        *ret = TAKE_PTR(p);
        return 0;
}

struct pattern *pattern_free(struct pattern *p) {
        if (!p)
                return NULL;
        pcre2_match_context_free(p->limits);
        pcre2_match_data_free(p->data);
        pcre2_code_free(p->code);
        free(p);
        return NULL;
}

bool pattern_match(struct pattern *p, const char *line, size_t size) {
        size_t n = MIN(size, (size_t)PATTERN_LINE_MAX);

        return pcre2_match(p->code, (PCRE2_SPTR)line, n, 0, 0, p->data, p->limits) >= 0;
}
