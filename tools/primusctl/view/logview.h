/* SPDX-License-Identifier: Apache-2.0 */
/* Shows the output of many executors on one screen or pipe: whole lines, a prefix for each executor, progress
 * bars that overwrite themselves with \r, nothing that harms the terminal. No bus in here. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "tools/primusctl/view/logfilter.h"

struct logview {
        FILE *out; /* fully buffered; logview_flush() empties it */
        bool tty;  /* control characters are filtered, \r redraws the line */
        bool color;
        bool prefixed;
        bool silent;                       /* shows nothing any more */
        bool json;                         /* an object a line */
        struct logfilter *filter;          /* not all lines are shown, or NULL */
        const struct logsource *open_line; /* whose unfinished bar stands in the terminal's last line */
        void (*before)(
                void *userdata); /* called before bytes are written, or NULL: a live display hides then ... */
        void (*after)(void *userdata); /* ... and comes back when they are flushed */
        void *userdata;
};

struct logsource {
        char *prefix;      /* "[3] " or "worker/3 | "; "" without */
        const char *color; /* SGR sequence */
        const char *role;
        uint32_t index, attempt, element;
        bool has_element; /* it is of that element of an array */
        FILE *file;       /* instead of the view, or NULL */
        char *partial;    /* a line whose end has not come */
        size_t n_partial;
        struct logaround around; /* with a filter */
};

void logsource_done(struct logsource *s);

/* Adds bytes of one executor. 0 or -ENOMEM. */
int logview_data(struct logview *v, struct logsource *s, const void *data, size_t n);

/* The executor has ended: its last line may lack the newline. */
int logview_end(struct logview *v, struct logsource *s);

/* Writes what is buffered; negative errno when standard output is gone (-EPIPE). */
int logview_flush(struct logview *v);
