/* SPDX-License-Identifier: Apache-2.0 */
/* The list of top: executors, or jobs, a line each, in the order of what is most. What is not known of any
 * has no column, and neither has what there is no room for. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/format.h"
#include "tools/primusctl/view/top-view-internal.h"

#define SILENT_USEC (20 * USEC_PER_SEC)
#define REVERSE "\033[7m"

struct column {
        const char *title;
        unsigned width;
        enum top_number k;
        enum top_sort sort;
        unsigned rank; /* the higher, the sooner it is left out */
};

static const struct column columns[] = {
        { "CPU", 6, TOP_CPU, TOP_BY_CPU, 0 },
        { "MEMORY", 7, TOP_MEMORY, TOP_BY_MEMORY, 1 },
        { "MEM%", 5, TOP_MEMORY_SHARE, _TOP_SORT_MAX, 8 },
        { "READ/s", 7, TOP_READ, TOP_BY_IO, 4 },
        { "WRITE/s", 7, TOP_WRITE, _TOP_SORT_MAX, 5 },
        { "IN/s", 7, TOP_NET_RX, TOP_BY_NETWORK, 6 },
        { "OUT/s", 7, TOP_NET_TX, _TOP_SORT_MAX, 7 },
        { "GPU", 5, TOP_GPU, TOP_BY_GPU, 2 },
        { "WAIT", 5, TOP_DATA_WAIT, TOP_BY_DATA_WAIT, 3 },
        { "PRESS", 5, TOP_PRESSURE, TOP_BY_PRESSURE, 9 },
        { "STEPS/s", 7, TOP_STEPS, _TOP_SORT_MAX, 10 },
};
#define NOTE_WIDTH 10u /* that is left over for what is to be said of an executor */

double top_total_number(const struct top_total *t, enum top_number k) {
        return isnan(t->sum[k]) ? t->mean[k] : t->sum[k];
}

bool top_list_knows(const struct top_model *t, enum top_number k) {
        if (k == TOP_CPU || k == TOP_MEMORY)
                return true;
        for (size_t i = 0; i < t->n_executors; i++)
                if (!isnan(t->executors[i].rates[k]))
                        return true;
        for (size_t i = 0; i < t->n_jobs; i++)
                if (!isnan(top_total_number(&t->jobs[i].total, k)))
                        return true;
        return false;
}

struct layout {
        bool shown[ELEMENTSOF(columns)];
        unsigned name, place; /* widths of the first two columns */
};

static unsigned longest(unsigned most, unsigned length, unsigned limit) {
        return MIN(MAX(most, length), limit);
}

char *top_executor_name(const struct top_executor *e, char *buf, size_t size) {
        if (e->element != UINT32_MAX)
                snprintf(buf, size, "[%" PRIu32 "] %s/%" PRIu32, e->element, e->role, e->index);
        else
                snprintf(buf, size, "%s/%" PRIu32, e->role, e->index);
        return buf;
}

static struct layout lay_out(const struct top_view *v, const struct top_model *t) {
        struct layout y = { .name = 8, .place = 4 };
        char text[TOP_NAME_MAX];
        unsigned used;

        for (size_t i = 0; i < t->n_executors; i++) {
                y.name = longest(y.name,
                                 (unsigned)strlen(top_executor_name(t->executors + i, text, sizeof(text))),
                                 24);
                y.place = longest(y.place, (unsigned)strlen(t->executors[i].node), 20);
        }
        for (size_t i = 0; i < t->n_jobs; i++) {
                y.name = longest(y.name, 9 + (unsigned)strlen(t->jobs[i].name), 30);
                y.place = longest(y.place, (unsigned)strlen(t->jobs[i].state), 10);
        }
        used = y.name + 2 + y.place + NOTE_WIDTH;
        for (size_t i = 0; i < ELEMENTSOF(columns); i++) {
                y.shown[i] = top_list_knows(t, columns[i].k);
                used += y.shown[i] ? columns[i].width + 1 : 0;
        }
        while (used > MAX(v->columns, 40u)) {
                size_t worst = ELEMENTSOF(columns);
                for (size_t i = 0; i < ELEMENTSOF(columns); i++)
                        if (y.shown[i] &&
                            (worst == ELEMENTSOF(columns) || columns[i].rank > columns[worst].rank))
                                worst = i;
                if (worst == ELEMENTSOF(columns) || columns[worst].rank == 0)
                        break;
                y.shown[worst] = false;
                used -= columns[worst].width + 1;
        }
        return y;
}

static void draw_list_head(const struct top_view *v, const struct top_model *t, const struct layout *y,
                           size_t n, size_t room, FILE *out) {
        struct line l = top_line(v, out);
        char text[64], place[48];

        top_put_text(&l, REVERSE, t->job.number ? "EXECUTOR" : "     JOB");
        if (t->job.number == 0)
                top_put_text(&l, REVERSE, " NAME");
        snprintf(text, sizeof(text), "%*s", (int)(y->name > l.used ? y->name - l.used : 0), "");
        top_put_text(&l, REVERSE, text);
        snprintf(text, sizeof(text), " %-*s", (int)y->place, t->job.number ? "HOST" : "STATE");
        top_put_text(&l, REVERSE, text);
        for (size_t i = 0; i < ELEMENTSOF(columns); i++) {
                if (!y->shown[i])
                        continue;
                snprintf(text, sizeof(text), " %*s", (int)columns[i].width, columns[i].title);
                top_put_text(&l, columns[i].sort == v->sort ? REVERSE "\033[1m" : REVERSE, text);
        }
        if (n > room)
                snprintf(place, sizeof(place), "%zu-%zu of %zu", v->offset + 1, MIN(v->offset + room, n), n);
        else
                snprintf(place, sizeof(place), "%s", t->job.number ? "" : "EXECUTORS");
        snprintf(text, sizeof(text), "  %-*s", (int)NOTE_WIDTH, place);
        top_put_text(&l, REVERSE, text);
        top_line_end(v, out);
}

static void put_numbers(struct line *l, const struct layout *y,
                        double (*number)(const void *row, enum top_number k), const void *row) {
        char text[32];

        for (size_t i = 0; i < ELEMENTSOF(columns); i++) {
                enum top_number k = columns[i].k;
                double value = number(row, k);
                enum color color = isnan(value) || value == 0 ? COLOR_DIM : top_color_of(k, value);
                if (!y->shown[i])
                        continue;
                top_put(l, color == COLOR_GREEN ? COLOR_NONE : color, " %*s", (int)columns[i].width,
                        top_number_text(k, value, text, sizeof(text)));
        }
}

static double executor_number(const void *row, enum top_number k) {
        return ((const struct top_executor *)row)->rates[k];
}

static double job_number(const void *row, enum top_number k) {
        return top_total_number(&((const struct top_job *)row)->total, k);
}

static void draw_executor(const struct top_view *v, const struct top_executor *e, const struct layout *y,
                          FILE *out) {
        struct line l = top_line(v, out);
        char text[TOP_NAME_MAX], age[FORMAT_DURATION_MAX];

        top_put(&l, COLOR_BOLD, "%-*.*s", (int)y->name, (int)y->name,
                top_executor_name(e, text, sizeof(text)));
        top_put(&l, COLOR_NONE, " %-*.*s", (int)y->place, (int)y->place, e->node);
        put_numbers(&l, y, executor_number, e);
        if (e->verdicts)
                top_put(&l, COLOR_RED, "  %s", e->verdicts);
        else if (strcmp(e->state, "RUNNING") != 0)
                top_put(&l, color_of_state(e->state), "  %s", e->state);
        if (e->age != UINT64_MAX && e->age > SILENT_USEC)
                top_put(&l, COLOR_YELLOW, "  silent for %s",
                        format_duration(e->age / USEC_PER_SEC * USEC_PER_SEC, age, sizeof(age)));
        top_line_end(v, out);
}

static void draw_job(const struct top_view *v, const struct top_job *j, const struct layout *y, FILE *out) {
        struct line l = top_line(v, out);

        top_put(&l, COLOR_BOLD, "%8" PRIu32, j->number);
        top_put(&l, COLOR_NONE, " %-*.*s", (int)(y->name - MIN(y->name, 9u)),
                (int)(y->name - MIN(y->name, 9u)), j->name);
        top_put(&l, color_of_state(j->state), " %-*.*s", (int)y->place, (int)y->place, j->state);
        put_numbers(&l, y, job_number, j);
        top_put(&l, COLOR_NONE, "  %" PRIu32 "/%" PRIu32, j->total.running, j->executors);
        top_line_end(v, out);
}

void top_draw_list(const struct top_view *v, const struct top_model *t, size_t room, FILE *out) {
        size_t n = t->job.number ? t->n_executors : t->n_jobs, drawn = 0;
        struct layout y = lay_out(v, t);

        draw_list_head(v, t, &y, n, room, out);
        for (size_t i = v->offset; i < n && drawn < room; i++, drawn++)
                if (t->job.number)
                        draw_executor(v, t->executors + i, &y, out);
                else
                        draw_job(v, t->jobs + i, &y, out);
        for (; drawn < room; drawn++)
                top_line_end(v, out);
}

/* ---- order ---- */

enum top_sort top_sort_of_key(char key) {
        static const char keys[_TOP_SORT_MAX] = {
                [TOP_BY_ORDER] = 'e',   [TOP_BY_CPU] = 'c', [TOP_BY_MEMORY] = 'm',    [TOP_BY_IO] = 'i',
                [TOP_BY_NETWORK] = 'n', [TOP_BY_GPU] = 'g', [TOP_BY_DATA_WAIT] = 'd', [TOP_BY_PRESSURE] = 'p',
        };

        for (enum top_sort s = 0; s < _TOP_SORT_MAX; s++)
                if (keys[s] == key)
                        return s;
        return _TOP_SORT_MAX;
}

static double added(double a, double b) {
        return isnan(a) ? b : isnan(b) ? a : a + b;
}

static double sorted_by(enum top_sort sort, double (*number)(const void *row, enum top_number k),
                        const void *row) {
        switch (sort) {
        case TOP_BY_CPU:
                return number(row, TOP_CPU);
        case TOP_BY_MEMORY:
                return number(row, TOP_MEMORY);
        case TOP_BY_IO:
                return added(number(row, TOP_READ), number(row, TOP_WRITE));
        case TOP_BY_NETWORK:
                return added(number(row, TOP_NET_RX), number(row, TOP_NET_TX));
        case TOP_BY_GPU:
                return number(row, TOP_GPU);
        case TOP_BY_DATA_WAIT:
                return number(row, TOP_DATA_WAIT);
        case TOP_BY_PRESSURE:
                return number(row, TOP_PRESSURE);
        default:
                return NAN;
        }
}

static int compare_numbers(double a, double b) {
        if (isnan(a) || isnan(b))
                return isnan(a) - isnan(b);
        return a > b ? -1 : a < b;
}

static int compare_executors(const void *a, const void *b, void *sort) {
        const struct top_executor *x = a, *y = b;
        int r = compare_numbers(sorted_by(*(enum top_sort *)sort, executor_number, x),
                                sorted_by(*(enum top_sort *)sort, executor_number, y));

        return r != 0 ? r : x->order < y->order ? -1 : x->order > y->order;
}

static int compare_jobs(const void *a, const void *b, void *sort) {
        const struct top_job *x = a, *y = b;
        int r = compare_numbers(sorted_by(*(enum top_sort *)sort, job_number, x),
                                sorted_by(*(enum top_sort *)sort, job_number, y));

        return r != 0 ? r : x->number < y->number ? -1 : x->number > y->number;
}

void top_model_sort(struct top_model *t, enum top_sort sort) {
        if (t->n_executors > 1)
                qsort_r(t->executors, t->n_executors, sizeof(*t->executors), compare_executors, &sort);
        if (t->n_jobs > 1)
                qsort_r(t->jobs, t->n_jobs, sizeof(*t->jobs), compare_jobs, &sort);
}
