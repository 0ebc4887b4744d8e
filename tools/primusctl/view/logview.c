/* SPDX-License-Identifier: Apache-2.0 */
/* Shows many executors' output. Invariant: a line of one executor is never broken by another's, and a bar
 * that a newline has not ended is wiped before anything else is written. */
#include "tools/primusctl/view/logview.h"

#include <jansson.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/element.h"
#include "lib/base/utf8.h"
#include "tools/primusctl/cli/text.h"

#define LINE_MAX_BYTES (64u << 10) /* a longer one is shown in pieces */

void logsource_done(struct logsource *s) {
        free(s->prefix);
        free(s->partial);
        logaround_done(&s->around);
        if (s->file)
                fclose(s->file);
        *s = (struct logsource){ 0 };
}

static void put_prefix(const struct logview *v, const struct logsource *s) {
        if (!v->prefixed)
                return;
        if (v->color && s->color)
                fprintf(v->out, "%s%s" COLOR_RESET, s->color, s->prefix);
        else
                fputs(s->prefix, v->out);
}

static void put_text(const struct logview *v, const char *s, size_t n) {
        if (v->tty)
                text_filter_terminal(s, n, v->out);
        else
                fwrite(s, 1, n, v->out);
        /* A colour that the line left on must not spill into the next prefix. */
        if (v->tty && v->prefixed && memchr(s, '\033', n))
                fputs(COLOR_RESET, v->out);
}

static int put_json(const struct logview *v, const struct logsource *s, const char *line, size_t n,
                    bool match) {
        _cleanup_free_ char *clean = malloc(n + 1);
        json_t *o;
        int r;

        if (!clean)
                return -ENOMEM;
        if (utf8_valid(line, n)) {
                memcpy(clean, line, n);
                clean[n] = 0;
        } else
                utf8_clean(line, n, clean, n + 1);
        o = json_pack("{s:s, s:I, s:I, s:s}", "role", s->role, "index", (json_int_t)s->index, "attempt",
                      (json_int_t)s->attempt, "line", clean);
        if (o && s->has_element && s->element != ELEMENT_SEARCHER)
                (void)json_object_set_new(o, "element", json_integer(s->element));
        if (o && v->filter)
                (void)json_object_set_new(o, "match", json_boolean(match));
        if (!o)
                return -ENOMEM;
        r = json_dumpf(o, v->out, JSON_COMPACT);
        json_decref(o);
        putc('\n', v->out);
        return r < 0 ? -EIO : 0;
}

/* The part of a line behind its last \r: what a terminal would be showing in the end. */
static const char *last_segment(const char *s, size_t n, size_t *ret_n) {
        const char *start = s;

        while (n > 0 && s[n - 1] == '\r')
                n--;
        for (const char *p = s; p < s + n; p++)
                if (*p == '\r')
                        start = p + 1;
        *ret_n = (size_t)(s + n - start);
        return start;
}

static int show_line(struct logview *v, struct logsource *s, const char *line, size_t n, bool match) {
        if (v->json)
                return put_json(v, s, line, n, match);
        if (v->open_line) {
                fputs("\r\033[K", v->out);
                v->open_line = NULL;
        }
        if (v->tty)
                line = last_segment(line, n, &n);
        put_prefix(v, s);
        put_text(v, line, n);
        putc('\n', v->out);
        return 0;
}

struct filtered {
        struct logview *view;
        struct logsource *source;
};

/* NULL: lines were left out. */
static int show_filtered(void *userdata, const char *line, size_t n, bool match) {
        struct filtered *to = userdata;

        if (!line)
                return to->view->json ? 0 : show_line(to->view, to->source, "--", 2, false);
        return show_line(to->view, to->source, line, n, match);
}

/* A whole line without its newline. */
static int put_line(struct logview *v, struct logsource *s, const char *line, size_t n) {
        struct filtered to = { v, s };

        return v->filter ? logfilter_line(v->filter, &s->around, line, n, show_filtered, &to)
                         : show_line(v, s, line, n, false);
}

/* An unfinished line that has a \r in it: a progress bar on its way. */
static void put_bar(struct logview *v, struct logsource *s) {
        size_t n;
        const char *bar = last_segment(s->partial, s->n_partial, &n);

        if (v->before) /* the last line of the screen belongs to the live display */
                return;
        fputs("\r\033[K", v->out);
        put_prefix(v, s);
        put_text(v, bar, n);
        v->open_line = s;
}

static int keep(struct logsource *s, const char *data, size_t n) {
        char *bigger;

        if (n == 0)
                return 0;
        bigger = realloc(s->partial, s->n_partial + n);
        if (!bigger)
                return -ENOMEM;
        memcpy(bigger + s->n_partial, data, n);
        s->partial = bigger;
        s->n_partial += n;
        return 0;
}

int logview_data(struct logview *v, struct logsource *s, const void *data, size_t n) {
        const char *p = data;
        int r;

        if (n == 0 || v->silent)
                return 0;
        if (s->file)
                return fwrite(data, 1, n, s->file) == n ? 0 : -EIO;
        if (v->before)
                v->before(v->userdata);
        if (!v->prefixed && !v->json && !v->filter) {
                put_text(v, p, n); /* one executor alone: as it wrote it */
                return 0;
        }
        while (n > 0) {
                const char *end = memchr(p, '\n', n);
                size_t length = end ? (size_t)(end - p) : n;

                if (!end && s->n_partial + length <= LINE_MAX_BYTES) {
                        r = keep(s, p, length);
                        if (r < 0)
                                return r;
                        if (v->tty && !v->json && !v->filter && memchr(s->partial, '\r', s->n_partial))
                                put_bar(v, s);
                        return 0;
                }
                if (s->n_partial > 0) {
                        r = keep(s, p, length);
                        if (r >= 0)
                                r = put_line(v, s, s->partial, s->n_partial);
                        s->n_partial = 0;
                } else
                        r = put_line(v, s, p, length);
                if (r < 0)
                        return r;
                p += length + (end != NULL);
                n -= length + (end != NULL);
        }
        return 0;
}

int logview_end(struct logview *v, struct logsource *s) {
        int r = 0;

        if (s->file) {
                r = fclose(s->file) == 0 ? 0 : -errno;
                s->file = NULL;
        } else if (s->n_partial > 0 && !v->silent)
                r = put_line(v, s, s->partial, s->n_partial);
        s->n_partial = 0;
        if (v->open_line == s)
                v->open_line = NULL;
        return r;
}

int logview_flush(struct logview *v) {
        if (v->after)
                v->after(v->userdata);
        return fflush(v->out) == EOF ? -errno : 0;
}
