/* SPDX-License-Identifier: Apache-2.0 */
/* A bounded list of findings. Invariant: as long as there was an error, the list holds one. */
#include "masterd/spec/diagnostics.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/utf8.h"

static void diagnostic_done(struct diagnostic *d) {
        free(d->path);
        free(d->message);
        *d = (struct diagnostic){};
}

/* A copy that can go over a bus: what was cut to fit may end in the middle of a character. NULL: no memory.
 */
static char *copy_clean(const char *s) {
        size_t n = strlen(s);
        char *copy = malloc(n + 1);

        return copy ? utf8_clean(s, n, copy, n + 1) : NULL;
}

/* Where the next entry goes: behind the others, or over the last warning for an error that no longer fits. */
static size_t diagnostics_place(struct diagnostics *d, enum diagnostic_severity severity) {
        if (d->n < DIAGNOSTICS_MAX)
                return d->n++;
        if (severity == DIAGNOSTIC_ERROR)
                for (size_t i = d->n; i > 0; i--)
                        if (d->items[i - 1].severity == DIAGNOSTIC_WARNING)
                                return i - 1;
        return DIAGNOSTICS_MAX;
}

int diagnostics_add(struct diagnostics *d, enum diagnostic_severity severity, unsigned line, unsigned column,
                    const char *path, const char *format, ...) {
        struct diagnostic item = { .severity = severity, .line = line, .column = column };
        _cleanup_free_ char *message = NULL;
        va_list ap;
        int r;

        item.path = copy_clean(path);
        va_start(ap, format);
        r = vasprintf(&message, format, ap);
        va_end(ap);
        if (r < 0)
                message = NULL;
        item.message = message ? copy_clean(message) : NULL;
        if (!item.path || !item.message) {
                diagnostic_done(&item);
                return -ENOMEM;
        }
        *(severity == DIAGNOSTIC_ERROR ? &d->n_errors : &d->n_warnings) += 1;

        size_t i = diagnostics_place(d, severity);
        if (i == DIAGNOSTICS_MAX) {
                diagnostic_done(&item);
                return DIAGNOSTICS_MAX;
        }
        diagnostic_done(&d->items[i]);
        d->items[i] = item;
        return (int)i;
}

static int diagnostic_compare(const void *a, const void *b) {
        const struct diagnostic *x = a, *y = b;

        if ((x->line == 0) != (y->line == 0))
                return x->line == 0 ? 1 : -1;
        if (x->line != y->line)
                return x->line < y->line ? -1 : 1;
        if (x->column != y->column)
                return x->column < y->column ? -1 : 1;
        return 0;
}

void diagnostics_sort(struct diagnostics *d) {
        qsort(d->items, d->n, sizeof(d->items[0]), diagnostic_compare);
}

void diagnostics_done(struct diagnostics *d) {
        for (size_t i = 0; i < d->n; i++)
                diagnostic_done(&d->items[i]);
        *d = (struct diagnostics){};
}

char *diagnostic_format(const struct diagnostic *d) {
        char *text = NULL, where[32] = "";
        int r;

        if (d->line > 0)
                snprintf(where, sizeof(where), "%u:%u: ", d->line, d->column);
        r = asprintf(&text, "%s%s%s%s", where, d->path ?: "", d->path && *d->path ? ": " : "", d->message);
        if (r < 0)
                return NULL;
        for (char *p = text; *p; p++)
                if ((unsigned char)*p < ' ' || *p == 0x7f)
                        *p = '?';
        return text;
}

const struct diagnostic *diagnostics_first_error(const struct diagnostics *d) {
        for (size_t i = 0; i < d->n; i++)
                if (d->items[i].severity == DIAGNOSTIC_ERROR)
                        return &d->items[i];
        return NULL;
}
