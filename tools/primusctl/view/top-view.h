/* SPDX-License-Identifier: Apache-2.0 */
/* What `primusctl top` puts on a terminal: a model in, text out. No bus, no terminal, no clock in here. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "tools/primusctl/view/top-model.h"

enum top_sort {
        TOP_BY_ORDER, /* as the job's configuration has them */
        TOP_BY_CPU,
        TOP_BY_MEMORY,
        TOP_BY_IO,
        TOP_BY_NETWORK,
        TOP_BY_GPU,
        TOP_BY_DATA_WAIT,
        TOP_BY_PRESSURE,
        _TOP_SORT_MAX
};
/* The sort that a key stands for; _TOP_SORT_MAX: none. */
enum top_sort top_sort_of_key(char key);

struct top_view {
        unsigned columns, rows;
        bool terminal; /* what was on the screen is erased */
        bool color, unicode;
        enum top_sort sort;
        size_t offset;       /* rows of the list that are above */
        const char *message; /* in the place of the keys; NULL: none */
        uint64_t now_real;
};

/* Puts executors or jobs in order: most first, what is not known last. */
void top_model_sort(struct top_model *t, enum top_sort sort);

/* The sum, or the mean of what cannot be added up. */
double top_total_number(const struct top_total *t, enum top_number k);

/* Whether the list has a column for it: something is known of it, or it is one that is always there. */
bool top_list_knows(const struct top_model *t, enum top_number k);

/* "worker/3", of an array's element "[2] worker/3": into buf, which is returned. */
#define TOP_NAME_MAX 64
char *top_executor_name(const struct top_executor *e, char *buf, size_t size);

/* How many rows of the list fit below the roles. */
size_t top_list_room(const struct top_view *v, const struct top_model *t);

/* The whole screen, from its upper left corner: at most v->rows lines of at most v->columns, the last without
 * a line break. */
void top_draw(const struct top_view *v, const struct top_model *t, FILE *out);

/* Parts, for tests: into buf, which is returned. A bar of width characters; a line of as many of the points
 * as there are columns for (several in one), the highest at ceiling (0: of those that are shown). */
char *top_bar(double share, unsigned width, bool unicode, char *buf, size_t size);
char *top_sparkline(const float *points, uint32_t n, unsigned width, double ceiling, bool unicode, char *buf,
                    size_t size);

/* "63%", "3.9G", "1.2M", "412%": a number for people; "-" for NAN. */
char *top_number_text(enum top_number k, double value, char *buf, size_t size);
