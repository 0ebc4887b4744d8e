/* SPDX-License-Identifier: Apache-2.0 */
/* What the screen of top (top-view.c) and its list (top-list.c) share. Not for others. */
#pragma once

#include "lib/base/cleanup.h"
#include "tools/primusctl/cli/text.h"
#include "tools/primusctl/view/top-view.h"

/* One line of the screen, never wider than it. */
struct line {
        const struct top_view *view;
        FILE *out;
        unsigned used, limit;
};

struct line top_line(const struct top_view *v, FILE *out);
/* As much of the text as fits. */
void top_put_text(struct line *l, const char *sgr, const char *text);
/* The same, made of what control characters cannot be in. */
void top_put(struct line *l, enum color color, const char *format, ...) _printf_(3, 4);
void top_pad_to(struct line *l, unsigned column);
void top_line_end(const struct top_view *v, FILE *out);

/* How good a number is: of a GPU much, of the others little. */
enum color top_color_of(enum top_number k, double value);

/* The list of executors or jobs with its head: room rows below that. */
void top_draw_list(const struct top_view *v, const struct top_model *t, size_t room, FILE *out);
