/* SPDX-License-Identifier: Apache-2.0 */
/* Tables through libsmartcols, loaded on demand: commands that print none do not pay for it. */
#include "tools/primusctl/view/table.h"

#include <dlfcn.h>
#include <libsmartcols.h>
#include <locale.h>
#include <stdarg.h>
#include <string.h>

#define SMARTCOLS_FUNCTIONS(X)                                                                               \
        X(scols_new_table)                                                                                   \
        X(scols_unref_table)                                                                                 \
        X(scols_table_new_column)                                                                            \
        X(scols_table_new_line)                                                                              \
        X(scols_line_get_cell)                                                                               \
        X(scols_line_set_data)                                                                               \
        X(scols_cell_set_color)                                                                              \
        X(scols_table_enable_colors)                                                                         \
        X(scols_table_set_termforce)                                                                         \
        X(scols_print_table)

struct smartcols {
        void *library;
#define X(name) __typeof__(name) *name;
        SMARTCOLS_FUNCTIONS(X)
#undef X
};

struct table {
        struct smartcols sc;
        struct libscols_table *table;
        struct libscols_line *line;
        bool color;
        int error;
};

static int load(const struct cli *c, struct smartcols *sc) {
        const struct {
                const char *name;
                void **target;
        } functions[] = {
#define X(name) { #name, (void **)&sc->name },
                SMARTCOLS_FUNCTIONS(X)
#undef X
        };

        sc->library = dlopen("libsmartcols.so.1", RTLD_NOW | RTLD_LOCAL);
        if (!sc->library)
                return cli_fail(c, "tables need libsmartcols (Debian: libsmartcols1), or use --json: %s",
                                dlerror());
        for (size_t i = 0; i < ELEMENTSOF(functions); i++) {
                *functions[i].target = dlsym(sc->library, functions[i].name);
                if (!*functions[i].target)
                        return cli_fail(c, "libsmartcols is too old, use --json: %s", dlerror());
        }
        return 0;
}

int table_new(const struct cli *c, const struct table_column *columns, size_t n, struct table **ret) {
        _cleanup_(table_free_p) struct table *t = calloc(1, sizeof(*t));
        int r;

        if (!t)
                return cli_oom(c);
        r = load(c, &t->sc);
        if (r)
                return r;
        (void)setlocale(LC_CTYPE, ""); /* widths of characters */
        t->table = t->sc.scols_new_table();
        if (!t->table)
                return cli_oom(c);
        t->color = c->color;
        if (c->color)
                t->sc.scols_table_enable_colors(t->table, 1);
        for (size_t i = 0; i < n; i++) {
                int flags = (columns[i].right ? SCOLS_FL_RIGHT : 0) | (columns[i].fills ? SCOLS_FL_TRUNC : 0);
                if (!t->sc.scols_table_new_column(t->table, columns[i].name, columns[i].fills ? 0.3 : 0,
                                                  flags))
                        return cli_oom(c);
        }
        *ret = TAKE_PTR(t);
        return 0;
}

void table_free(struct table *t) {
        if (!t)
                return;
        if (t->table)
                t->sc.scols_unref_table(t->table);
        if (t->sc.library)
                dlclose(t->sc.library);
        free(t);
}

int table_row(struct table *t) {
        t->line = t->sc.scols_table_new_line(t->table, NULL);
        if (!t->line)
                t->error = -ENOMEM;
        return t->line ? 0 : -ENOMEM;
}

void table_set(struct table *t, size_t column, enum color color, const char *format, ...) {
        _cleanup_free_ char *text = NULL;
        va_list ap;
        int r;

        if (!t->line)
                return;
        va_start(ap, format);
        r = vasprintf(&text, format, ap);
        va_end(ap);
        if (r < 0) {
                text = NULL;
                t->error = -ENOMEM;
                return;
        }
        text_clean(text);
        r = t->sc.scols_line_set_data(t->line, column, text);
        if (r >= 0 && t->color && color != COLOR_NONE)
                r = t->sc.scols_cell_set_color(t->sc.scols_line_get_cell(t->line, column),
                                               color_sequence(color));
        if (r < 0)
                t->error = r;
}

int table_print_or(const struct cli *c, struct table *t, const char *empty) {
        if (t->line || t->error < 0)
                return table_print(c, t);
        cli_note("%s", empty);
        return CLI_OK;
}

int table_print(const struct cli *c, struct table *t) {
        int r = t->error;

        if (r >= 0)
                r = t->sc.scols_print_table(t->table);
        if (r < 0)
                return cli_fail(c, "cannot print the table: %s", strerror(-r));
        return CLI_OK;
}
