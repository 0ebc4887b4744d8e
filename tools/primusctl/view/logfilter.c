/* SPDX-License-Identifier: Apache-2.0 */
/* Lines around matches. Invariant: a line is shown at most once, and those of an executor in their order. */
#include "tools/primusctl/view/logfilter.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"

int logfilter_new(const char *pattern, bool ignore_case, uint32_t context, struct logfilter **ret,
                  char **ret_error) {
        struct logfilter *f = calloc(1, sizeof(*f));
        char why[256];
        int r;

        if (!f)
                return -ENOMEM;
        f->context = context;
        r = regcomp(&f->regex, pattern, REG_EXTENDED | (ignore_case ? REG_ICASE : 0));
        if (r == 0) {
                *ret = f;
                return 0;
        }
        (void)regerror(r, &f->regex, why, sizeof(why));
        free(f);
        *ret_error = r == REG_ESPACE ? NULL : strdup(why);
        return *ret_error ? -EINVAL : -ENOMEM;
}

struct logfilter *logfilter_free(struct logfilter *f) {
        if (!f)
                return NULL;
        regfree(&f->regex);
        free(f->line);
        free(f);
        return NULL;
}

static void drop_first(struct logaround *a, uint32_t size) {
        free(a->lines[a->first]);
        a->lines[a->first] = NULL;
        a->bytes -= a->sizes[a->first];
        a->first = (a->first + 1) % size;
        a->n--;
}

/* It may have to be shown before a match. */
static int keep(const struct logfilter *f, struct logaround *a, const char *line, size_t n) {
        uint32_t at;

        if (f->context == 0) {
                a->gap = true;
                return 0;
        }
        if (!a->lines) {
                a->lines = calloc(f->context, sizeof(*a->lines));
                a->sizes = calloc(f->context, sizeof(*a->sizes));
                if (!a->lines || !a->sizes)
                        return -ENOMEM;
        }
        while (a->n > 0 && (a->n == f->context || a->bytes + n > LOGFILTER_KEPT_MAX)) {
                drop_first(a, f->context);
                a->gap = true;
        }
        at = (a->first + a->n) % f->context;
        a->lines[at] = malloc(n + 1);
        if (!a->lines[at])
                return -ENOMEM;
        memcpy(a->lines[at], line, n);
        a->sizes[at] = n;
        a->bytes += n;
        a->n++;
        return 0;
}

/* What was kept before the line that matches. */
static int show_kept(const struct logfilter *f, struct logaround *a,
                     int (*put)(void *userdata, const char *line, size_t n, bool match), void *userdata) {
        int r = 0;

        if (a->any && a->gap && f->context > 0)
                r = put(userdata, NULL, 0, false);
        while (a->n > 0 && r >= 0) {
                r = put(userdata, a->lines[a->first], a->sizes[a->first], false);
                drop_first(a, f->context);
        }
        a->any = true;
        a->gap = false;
        return r;
}

int logfilter_line(struct logfilter *f, struct logaround *a, const char *line, size_t n,
                   int (*put)(void *userdata, const char *line, size_t n, bool match), void *userdata) {
        regmatch_t within = { .rm_so = 0, .rm_eo = (regoff_t)n };
        int r;

        /* regexec() may look for the end of a string, REG_STARTEND or not. */
        if (n >= f->line_size) {
                char *larger = realloc(f->line, n + 1);
                if (!larger)
                        return -ENOMEM;
                f->line = larger;
                f->line_size = n + 1;
        }
        memcpy(f->line, line, n);
        f->line[n] = 0;
        if (regexec(&f->regex, f->line, 1, &within, REG_STARTEND) == 0) {
                f->matched++;
                a->behind = f->context;
                r = show_kept(f, a, put, userdata);
                return r < 0 ? r : put(userdata, line, n, true);
        }
        if (a->behind == 0)
                return keep(f, a, line, n);
        a->behind--;
        return put(userdata, line, n, false);
}

void logaround_done(struct logaround *a) {
        for (uint32_t i = 0; a->lines && a->n > 0; i++)
                if (a->lines[i]) {
                        free(a->lines[i]);
                        a->n--;
                }
        free(a->lines);
        free(a->sizes);
        *a = (struct logaround){ 0 };
}
