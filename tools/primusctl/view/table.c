/* SPDX-License-Identifier: Apache-2.0 */
/* Tables through libsmartcols, loaded on demand: commands that print none do not pay for it. */
#include "tools/primusctl/view/table.h"

#include <libsmartcols.h>
#include <locale.h>
#include <stdarg.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/format.h"
#include "lib/base/library.h"

#define SMARTCOLS_FUNCTIONS(X)                                                                               \
        X(scols_new_table)                                                                                   \
        X(scols_unref_table)                                                                                 \
        X(scols_table_new_column)                                                                            \
        X(scols_table_new_line)                                                                              \
        X(scols_line_get_cell)                                                                               \
        X(scols_line_refer_data)                                                                             \
        X(scols_cell_set_color)                                                                              \
        X(scols_table_enable_colors)                                                                         \
        X(scols_table_set_termforce)                                                                         \
        X(scols_print_table)

struct smartcols {
#define X(name) __typeof__(name) *name;
        SMARTCOLS_FUNCTIONS(X)
#undef X
};

static const struct library_symbol symbols[] = {
#define X(name) { #name, offsetof(struct smartcols, name), false },
        SMARTCOLS_FUNCTIONS(X)
#undef X
};
static const struct library library = {
        .sonames = { "libsmartcols.so.1" },
        .purpose = "libsmartcols, which prints tables",
        .remedy = "install libsmartcols1, or use --json",
        .symbols = symbols,
        .n_symbols = ELEMENTSOF(symbols),
};

struct table {
        struct smartcols sc;
        void *library;
        struct libscols_table *table;
        struct libscols_line *line;
        bool color;
        int error;
};

int table_new(const struct cli *c, const struct table_column *columns, size_t n, struct table **ret) {
        _cleanup_(table_free_p) struct table *t = calloc(1, sizeof(*t));
        char error[LIBRARY_ERROR_MAX];
        int r;

        if (!t)
                return cli_oom(c);
        r = library_load(&library, &t->sc, &t->library, error);
        if (r < 0)
                return cli_fail(c, "%s", error);
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
        library_unload(t->library);
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
        r = t->sc.scols_line_refer_data(t->line, column, text);
        if (r >= 0)
                text = NULL; /* is the table's now */
        if (r >= 0 && t->color && color != COLOR_NONE)
                r = t->sc.scols_cell_set_color(t->sc.scols_line_get_cell(t->line, column),
                                               color_sequence(color));
        if (r < 0)
                t->error = r;
}

void table_set_age(struct table *t, size_t column, uint64_t real) {
        char text[FORMAT_DURATION_MAX];

        table_set(t, column, COLOR_NONE, "%s ago",
                  format_duration(usec_sub(now_real(), real), text, sizeof(text)));
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
