/* SPDX-License-Identifier: Apache-2.0 */
/* The picture: a row for each host, as high as it is large; a box for each run of an executor, as high as its
 * part of the host, in the colour of its pool. Where there is room the job's name stands in it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/format.h"
#include "sim/report.h"

#define WIDTH 1200.0
#define LEFT 70.0
#define RIGHT 20.0
#define TOP 54.0
#define GAP 4.0

/* Colour-blind-safe; hue by pool. */
static const char *const colours[] = { "#4477aa", "#ee6677", "#228833", "#ccbb44",
                                       "#66ccee", "#aa3377", "#ee8866", "#999933" };

/* A box as it lies in its host's row: from bottom to top, in parts of the host. */
struct box {
        const struct segment *s;
        double low, high;
};

static int by_start(const void *a, const void *b) {
        const struct segment *x = ((const struct box *)a)->s, *y = ((const struct box *)b)->s;

        if (x->host != y->host)
                return x->host < y->host ? -1 : 1;
        if (x->from != y->from)
                return x->from < y->from ? -1 : 1;
        return x->job != y->job ? (x->job < y->job ? -1 : 1) : (x < y ? -1 : x > y);
}

static double height_of(const struct trace *t, const struct segment *s) {
        const struct sched_capacity *c = t->hosts + s->host;
        double cpu = c->cpu_milli ? (double)s->cpu_milli / c->cpu_milli : 0,
               gpus = c->gpus ? (double)s->gpus / c->gpus : 0;

        return MAX(MAX(cpu, gpus), 0.01);
}

/* Puts box i where none of the same host that is still there lies: as low as possible. */
static void lower_box(struct box *boxes, size_t first, size_t i, double height) {
        double low = 0;
        bool moved = true;

        while (moved) {
                moved = false;
                for (size_t k = i; k-- > first;) {
                        const struct box *b = boxes + k;
                        if (b->s->to > boxes[i].s->from && b->low < low + height - 1e-9 &&
                            b->high > low + 1e-9) {
                                low = b->high;
                                moved = true;
                        }
                }
        }
        boxes[i].low = low;
        boxes[i].high = low + height;
}

/* XML's special characters in a name. */
static void print_name(FILE *f, const char *s) {
        for (; *s; s++)
                if (*s == '<' || *s == '>' || *s == '&' || *s == '"' || (unsigned char)*s < 0x20)
                        fprintf(f, "&#%u;", (unsigned char)*s < 0x20 ? '?' : (unsigned char)*s);
                else
                        fputc(*s, f);
}

/* 1, 2 or 5 times a power of ten of seconds, minutes, hours or days. */
static uint64_t tick_of(uint64_t span) {
        static const uint64_t steps[] = { 1,     2,     5,      10,     15,     30,     60,    120,
                                          300,   600,   900,    1800,   3600,   7200,   10800, 21600,
                                          43200, 86400, 172800, 432000, 864000, 2592000 };
        uint64_t seconds = span / 1000000;

        for (size_t i = 0; i < ELEMENTSOF(steps); i++)
                if (seconds / steps[i] <= 12)
                        return steps[i] * 1000000;
        return MAX(seconds / 10, UINT64_C(1)) * 1000000;
}

static void print_head(FILE *f, const struct trace *t, const struct world *w, double height) {
        double x = LEFT;

        fprintf(f,
                "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" viewBox=\"0 0 %.0f "
                "%.0f\" "
                "font-family=\"sans-serif\" font-size=\"11\">\n<rect width=\"100%%\" height=\"100%%\" "
                "fill=\"#ffffff\"/>\n",
                WIDTH, height, WIDTH, height);
        fprintf(f, "<defs><pattern id=\"down\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\" "
                   "patternTransform=\"rotate(45)\"><rect width=\"6\" height=\"6\" fill=\"#eeeeee\"/><rect "
                   "width=\"2\" "
                   "height=\"6\" fill=\"#bbbbbb\"/></pattern></defs>\n");
        for (size_t i = 0; i < t->n_pools; i++) {
                bool used = false;
                for (size_t k = 0; k < w->n_jobs && !used; k++)
                        used = w->jobs[k].pool == i;
                if (!used || x > WIDTH - 150)
                        continue;
                fprintf(f,
                        "<rect x=\"%.1f\" y=\"12\" width=\"12\" height=\"12\" fill=\"%s\"/><text x=\"%.1f\" "
                        "y=\"22\">",
                        x, colours[i % ELEMENTSOF(colours)], x + 17);
                print_name(f, t->pools[i].name);
                fprintf(f, "</text>\n");
                x += 40 + 7 * (double)strlen(t->pools[i].name);
        }
}

static void print_axis(FILE *f, uint64_t span, double scale, double bottom) {
        uint64_t tick = tick_of(span);
        char buf[FORMAT_DURATION_MAX];

        for (uint64_t at = 0; at <= span; at += tick) {
                double x = LEFT + (double)at * scale;
                fprintf(f,
                        "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"#cccccc\"/><text "
                        "x=\"%.1f\" "
                        "y=\"%.1f\" text-anchor=\"middle\" fill=\"#555555\">%s</text>\n",
                        x, TOP - 4, x, bottom, x, TOP - 10,
                        at == 0 ? "0" : format_duration(at, buf, sizeof(buf)));
        }
}

static void print_box(FILE *f, const struct trace *t, const struct world *w, const struct box *b, double y,
                      double unit, double scale) {
        const struct world_job *j = w->jobs + b->s->job;
        char name[TRACE_NAME_MAX + 16];
        double x = LEFT + (double)b->s->from * scale,
               width = MAX((double)(b->s->to - b->s->from) * scale, 0.5), height = (b->high - b->low) * unit,
               top = y - b->high * unit;

        trace_name(t, j, name);
        fprintf(f,
                "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" fill=\"%s\" fill-opacity=\"%s\" "
                "stroke=\"#ffffff\" stroke-width=\"0.6\"><title>",
                x, top, width, height, colours[j->pool % ELEMENTSOF(colours)], j->backfilled ? "0.6" : "1");
        print_name(f, name);
        fprintf(f, "</title></rect>\n");
        if (width < 7 * (double)strlen(name) + 4 || height < 9)
                return;
        fprintf(f,
                "<text x=\"%.2f\" y=\"%.2f\" text-anchor=\"middle\" fill=\"%s\" font-size=\"%.0f\" "
                "pointer-events=\"none\">",
                x + width / 2, top + height / 2 + 3.5, j->backfilled ? "#000000" : "#ffffff",
                height < 12 ? 8.0 : 10.0);
        print_name(f, name);
        fprintf(f, "</text>\n");
}

int report_svg(FILE *f, const struct trace *t, const struct world *w, const struct recorder *r) {
        _cleanup_free_ struct box *boxes = calloc(r->n + 1, sizeof(*boxes));
        _cleanup_free_ double *rows = calloc(w->n_hosts + 1, sizeof(*rows));
        double unit = w->n_hosts <= 8     ? 64
                      : w->n_hosts <= 24  ? 28
                      : w->n_hosts <= 100 ? 9
                                          : 3,
               y = TOP, scale;
        uint64_t span = MAX(w->last_end, UINT64_C(1000000));
        size_t first = 0, next = 0;

        if (!boxes || !rows)
                return -ENOMEM;
        for (uint32_t i = 0; i < w->n_hosts; i++)
                rows[i] = 1;
        for (size_t i = 0; i < r->n; i++)
                boxes[i].s = r->list + i;
        qsort(boxes, r->n, sizeof(*boxes), by_start);
        for (size_t i = 0; i < r->n; i++) {
                uint32_t host = boxes[i].s->host;
                if (i > 0 && boxes[i - 1].s->host != host)
                        first = i;
                lower_box(boxes, first, i, height_of(t, boxes[i].s));
                rows[host] = MAX(rows[host], boxes[i].high);
        }
        for (uint32_t i = 0; i < w->n_hosts; i++)
                y += rows[i] * unit + GAP;
        scale = (WIDTH - LEFT - RIGHT) / (double)span;
        print_head(f, t, w, y + 24);
        print_axis(f, span, scale, y);
        fprintf(f,
                "<text x=\"%.0f\" y=\"%.1f\" fill=\"#555555\">Light boxes were backfilled; hatched: the host "
                "was down.</text>\n",
                LEFT, y + 14);
        y = TOP;
        for (uint32_t i = 0; i < w->n_hosts; i++) {
                double height = rows[i] * unit;
                fprintf(f,
                        "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"none\" "
                        "stroke=\"#dddddd\"/>\n",
                        LEFT, y, WIDTH - LEFT - RIGHT, height);
                if (height >= 9)
                        fprintf(f, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"end\">host %u</text>\n",
                                LEFT - 6, y + height / 2 + 4, i);
                for (size_t k = 0; k < t->n_failures; k++) {
                        const struct trace_failure *d = t->failures + k;
                        uint64_t to = MIN(d->to, span);
                        if (d->host == i && d->from < to)
                                fprintf(f,
                                        "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" "
                                        "fill=\"url(#down)\"/>\n",
                                        LEFT + (double)d->from * scale, y, (double)(to - d->from) * scale,
                                        height);
                }
                y += height;
                for (; next < r->n && boxes[next].s->host == i; next++)
                        print_box(f, t, w, boxes + next, y, unit, scale);
                y += GAP;
        }
        fprintf(f, "</svg>\n");
        return ferror(f) ? -EIO : 0;
}
