/* SPDX-License-Identifier: Apache-2.0 */
/* The screen of top. Invariant: no line is wider than the screen and there are no more of them than it has
 * rows, or it would scroll. */
#include "tools/primusctl/top-view.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/parse.h"
#include "tools/primusctl/text.h"

#define COLUMNS_MAX 400u
#define BAR_WIDTH 20u
#define LIST_MIN 4u /* rows of the list, with its head, that roles leave over */
#define SILENT_USEC (20 * USEC_PER_SEC)
#define REVERSE "\033[7m"

/* ---- a line ---- */

struct line {
        const struct top_view *view;
        FILE *out;
        unsigned used, limit;
};

/* As much of the text as fits. */
static void put_text(struct line *l, const char *sgr, const char *text) {
        size_t n = 0;

        while (text[n] && l->used < l->limit) {
                n++;
                while (((unsigned char)text[n] & 0xc0) == 0x80)
                        n++;
                l->used++;
        }
        if (n > 0)
                fprintf(l->out, "%s%.*s%s", l->view->color ? sgr : "", (int)n, text,
                        l->view->color && *sgr ? COLOR_RESET : "");
}

static void put(struct line *l, enum color color, const char *format, ...) _printf_(3, 4);
static void put(struct line *l, enum color color, const char *format, ...) {
        char text[COLUMNS_MAX * 4];
        va_list ap;

        va_start(ap, format);
        vsnprintf(text, sizeof(text), format, ap);
        va_end(ap);
        text_clean(text);
        put_text(l, color_sequence(color), text);
}

static void pad_to(struct line *l, unsigned column) {
        column = MIN(column, l->limit);
        if (l->used < column)
                fprintf(l->out, "%*s", (int)(column - l->used), "");
        l->used = MAX(l->used, column);
}

static struct line begin(const struct top_view *v, FILE *out) {
        return (struct line){ .view = v, .out = out, .limit = MIN(v->columns, COLUMNS_MAX) };
}

static void end_line(const struct top_view *v, FILE *out) {
        fputs(v->terminal ? "\033[K\n" : "\n", out);
}

/* ---- parts ---- */

static size_t append(char *buf, size_t size, size_t n, const char *text) {
        size_t l = strlen(text);

        if (n + l + 1 > size)
                return n;
        memcpy(buf + n, text, l + 1);
        return n + l;
}

char *top_bar(double share, unsigned width, bool unicode, char *buf, size_t size) {
        static const char *const eighths[] = { "", "▏", "▎", "▍", "▌", "▋", "▊", "▉" };
        unsigned inner = unicode ? width : width - MIN(width, 2u), full, eighth;
        double filled = isnan(share) ? 0 : MIN(MAX(share, 0.0), 1.0) * inner;
        size_t n = 0;

        full = (unsigned)filled;
        eighth = unicode && full < inner ? (unsigned)((filled - full) * 8) : 0;
        buf[0] = 0;
        if (!unicode)
                n = append(buf, size, n, "[");
        for (unsigned i = 0; i < inner; i++)
                n = append(buf, size, n,
                           i < full                  ? unicode ? "█" : "#"
                           : i == full && eighth > 0 ? eighths[eighth]
                           : unicode                 ? "░"
                                                     : "-");
        if (!unicode)
                (void)append(buf, size, n, "]");
        return buf;
}

static float level_of(const float *points, uint32_t n, uint32_t step, unsigned at) {
        double sum = 0;
        unsigned known = 0;

        for (uint32_t i = at * step; i < (at + 1) * step && i < n; i++)
                if (!isnan(points[i])) {
                        sum += (double)points[i];
                        known++;
                }
        return known > 0 ? (float)(sum / known) : NAN;
}

char *top_sparkline(const float *points, uint32_t n, unsigned width, double ceiling, bool unicode, char *buf,
                    size_t size) {
        static const char *const levels[2][8] = { { "_", ".", ":", "-", "=", "+", "*", "#" },
                                                  { "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█" } };
        uint32_t step = width > 0 ? (n + width - 1) / width : 0;
        unsigned shown = step > 0 ? (n + step - 1) / step : 0;
        double top = ceiling;
        size_t l = 0;

        buf[0] = 0;
        for (unsigned i = 0; ceiling <= 0 && i < shown; i++) {
                float level = level_of(points, n, step, i);
                if (!isnan(level))
                        top = MAX(top, (double)level);
        }
        for (unsigned i = 0; i < shown; i++) {
                float level = level_of(points, n, step, i);
                unsigned k = top > 0 && level > 0 ? (unsigned)((double)level / top * 8) : 0;
                l = append(buf, size, l, isnan(level) ? " " : levels[unicode][MIN(k, 7u)]);
        }
        return buf;
}

static char *size_text(double value, char *buf, size_t size) {
        return format_size(value > 0 ? (uint64_t)value : 0, buf, size);
}

char *top_number_text(enum top_number k, double value, char *buf, size_t size) {
        if (isnan(value)) {
                snprintf(buf, size, "-");
                return buf;
        }
        switch (k) {
        case TOP_CPU: /* as top(1): of one core */
        case TOP_CPU_SHARE:
        case TOP_MEMORY_SHARE:
        case TOP_GPU:
        case TOP_DATA_WAIT:
        case TOP_PRESSURE:
                snprintf(buf, size, "%.0f%%", value * 100);
                return buf;
        case TOP_STEPS:
                snprintf(buf, size, "%.*f", value < 10 ? 2 : value < 100 ? 1 : 0, value);
                return buf;
        default:
                return size_text(value, buf, size);
        }
}

/* How good it is: for a GPU much, for the others little. */
static enum color color_of(enum top_number k, double value) {
        if (isnan(value))
                return COLOR_DIM;
        switch (k) {
        case TOP_GPU:
                return value < 0.1 ? COLOR_RED : value < 0.5 ? COLOR_YELLOW : COLOR_GREEN;
        case TOP_MEMORY_SHARE:
                return value > 0.95 ? COLOR_RED : value > 0.85 ? COLOR_YELLOW : COLOR_GREEN;
        case TOP_DATA_WAIT:
        case TOP_PRESSURE:
                return value > 0.5 ? COLOR_RED : value > 0.2 ? COLOR_YELLOW : COLOR_GREEN;
        default:
                return COLOR_GREEN;
        }
}

/* ---- roles ---- */

/* A line of a role's block: a share with a bar, or a text, and its history. */
struct meter {
        const char *label;
        enum top_number shown;         /* _TOP_NUMBER_MAX: the text alone */
        enum top_number first, second; /* whose history; second _TOP_NUMBER_MAX: one */
        bool share;                    /* the history's ceiling is 1 */
        void (*say)(const struct top_role *r, char *buf, size_t size);
};

static bool has(const struct top_role *r, enum top_number k) {
        return !isnan(r->total.mean[k]) || (k < _TOP_NUMBER_MAX && r->points[k]);
}

static double share_of(const struct top_total *t, enum top_number k) {
        if (k == TOP_CPU_SHARE && t->cpu > 0 && t->measured == t->running)
                return t->sum[TOP_CPU] / t->cpu;
        if (k == TOP_MEMORY_SHARE && t->memory > 0 && t->measured == t->running)
                return t->sum[TOP_MEMORY] / (double)t->memory;
        return t->mean[k];
}

/* "  most 98%", where there are several to have the most. */
static void say_most(const struct top_role *r, enum top_number k, char *buf, size_t size) {
        char text[32];
        size_t l = strlen(buf);

        if (r->total.measured > 1 && !isnan(r->total.max[k]))
                snprintf(buf + l, size - l, "%smost %s", l ? ", " : "",
                         top_number_text(k, r->total.max[k], text, sizeof(text)));
}

static void say_cpu(const struct top_role *r, char *buf, size_t size) {
        char used[16] = "-";

        if (!isnan(r->total.sum[TOP_CPU]))
                snprintf(used, sizeof(used), "%.1f", r->total.sum[TOP_CPU]);
        if (r->total.cpu > 0)
                snprintf(buf, size, "%s of %.4g cores", used, r->total.cpu);
        else
                snprintf(buf, size, "%s cores", used);
        say_most(r, TOP_CPU_SHARE, buf, size);
}

static void say_memory(const struct top_role *r, char *buf, size_t size) {
        char a[FORMAT_SIZE_MAX], b[FORMAT_SIZE_MAX];

        top_number_text(TOP_MEMORY, r->total.sum[TOP_MEMORY], a, sizeof(a));
        if (r->total.memory > 0)
                snprintf(buf, size, "%s of %s", a, format_size(r->total.memory, b, sizeof(b)));
        else
                snprintf(buf, size, "%s", a);
        say_most(r, TOP_MEMORY_SHARE, buf, size);
}

/* "3M/s", or "-". */
static char *rate_text(double value, char *buf, size_t size) {
        char text[FORMAT_SIZE_MAX];

        if (isnan(value))
                snprintf(buf, size, "-");
        else
                snprintf(buf, size, "%s/s", size_text(value, text, sizeof(text)));
        return buf;
}

static void say_two(const struct top_role *r, enum top_number x, const char *a, enum top_number y,
                    const char *b, char *buf, size_t size) {
        char left[32], right[32];

        snprintf(buf, size, "%s %s  %s %s", a, rate_text(r->total.sum[x], left, sizeof(left)), b,
                 rate_text(r->total.sum[y], right, sizeof(right)));
}

static void say_io(const struct top_role *r, char *buf, size_t size) {
        say_two(r, TOP_READ, "read", TOP_WRITE, "write", buf, size);
}

static void say_network(const struct top_role *r, char *buf, size_t size) {
        say_two(r, TOP_NET_RX, "in", TOP_NET_TX, "out", buf, size);
}

static void say_gpu(const struct top_role *r, char *buf, size_t size) {
        char memory[FORMAT_SIZE_MAX];
        size_t l;

        snprintf(buf, size, "%" PRIu32 " GPU%s", r->total.gpus, r->total.gpus == 1 ? "" : "s");
        l = strlen(buf);
        if (!isnan(r->total.sum[TOP_GPU_MEMORY]))
                snprintf(buf + l, size - l, ", %s",
                         size_text(r->total.sum[TOP_GPU_MEMORY], memory, sizeof(memory)));
}

static void say_wait(const struct top_role *r, char *buf, size_t size) {
        say_most(r, TOP_DATA_WAIT, buf, size);
}

static void say_pressure(const struct top_role *r, char *buf, size_t size) {
        say_most(r, TOP_PRESSURE, buf, size);
}

static void say_steps(const struct top_role *r, char *buf, size_t size) {
        char text[32];

        snprintf(buf, size, "%s/s each",
                 top_number_text(TOP_STEPS, r->total.mean[TOP_STEPS], text, sizeof(text)));
}

static const struct meter meters[] = {
        { "CPU", TOP_CPU_SHARE, TOP_CPU_SHARE, _TOP_NUMBER_MAX, true, say_cpu },
        { "memory", TOP_MEMORY_SHARE, TOP_MEMORY_SHARE, _TOP_NUMBER_MAX, true, say_memory },
        { "I/O", _TOP_NUMBER_MAX, TOP_READ, TOP_WRITE, false, say_io },
        { "network", _TOP_NUMBER_MAX, TOP_NET_RX, TOP_NET_TX, false, say_network },
        { "GPU", TOP_GPU, TOP_GPU, _TOP_NUMBER_MAX, true, say_gpu },
        { "data wait", TOP_DATA_WAIT, TOP_DATA_WAIT, _TOP_NUMBER_MAX, true, say_wait },
        { "pressure", TOP_PRESSURE, TOP_PRESSURE, _TOP_NUMBER_MAX, true, say_pressure },
        { "steps", _TOP_NUMBER_MAX, TOP_STEPS, _TOP_NUMBER_MAX, false, say_steps },
};

/* Whether there is anything to say in that line. The first, of CPU, is always worth one. */
static bool is_shown(const struct top_role *r, const struct meter *m) {
        return has(r, m->first) || (m->second < _TOP_NUMBER_MAX && has(r, m->second)) ||
               (m->shown == TOP_MEMORY_SHARE && has(r, TOP_MEMORY)) || m == meters;
}

static unsigned block_rows(const struct top_role *r) {
        unsigned n = 1;

        for (size_t i = 0; r->total.measured > 0 && i < ELEMENTSOF(meters); i++)
                n += is_shown(r, meters + i);
        return n;
}

static void put_history(struct line *l, const struct top_role *r, const struct meter *m, unsigned from) {
        unsigned width = l->limit > from ? l->limit - from : 0;
        float added[TOP_POINTS_MAX];
        char text[TOP_POINTS_MAX * 4];
        const float *points = r->points[m->first],
                    *more = m->second < _TOP_NUMBER_MAX ? r->points[m->second] : NULL;

        if (width < 10 || (!points && !more))
                return;
        for (uint32_t i = 0; i < r->n_points; i++) {
                float a = points ? points[i] : NAN, b = more ? more[i] : NAN;
                added[i] = isnan(a) ? b : isnan(b) ? a : a + b;
        }
        pad_to(l, from);
        put(l, COLOR_CYAN, "%s",
            top_sparkline(added, r->n_points, MIN(width, 120u), m->share ? 1 : 0, l->view->unicode, text,
                          sizeof(text)));
}

static void draw_meter(const struct top_view *v, const struct top_role *r, const struct meter *m, FILE *out) {
        struct line l = begin(v, out);
        double share = m->shown < _TOP_NUMBER_MAX ? share_of(&r->total, m->shown) : NAN;
        unsigned bar = v->columns < 70 ? 10 : BAR_WIDTH, history;
        char text[128] = "", value[32], drawn[BAR_WIDTH * 3 + 3];

        put(&l, COLOR_DIM, "  %-9s ", m->label);
        m->say(r, text, sizeof(text));
        if (m->shown < _TOP_NUMBER_MAX) {
                put(&l, COLOR_NONE, "%5s ", top_number_text(m->shown, share, value, sizeof(value)));
                put(&l, color_of(m->shown, share), "%s",
                    top_bar(share, bar, v->unicode, drawn, sizeof(drawn)));
                put(&l, COLOR_NONE, "  %s", text);
        } else
                put(&l, COLOR_NONE, "  %s", text);
        history = 18 + bar + 2 + 29;
        put_history(&l, r, m, MAX(history, l.used + 1));
        end_line(v, out);
}

static void draw_role_title(const struct top_view *v, const struct top_role *r, uint64_t interval,
                            FILE *out) {
        struct line l = begin(v, out);
        char span[FORMAT_DURATION_MAX];
        const struct top_total *t = &r->total;

        put(&l, COLOR_BOLD, "%s", r->name);
        put(&l, COLOR_NONE, "  %" PRIu32 " of %" PRIu32 " executor%s", t->running, r->executors,
            r->executors == 1 ? "" : "s");
        if (t->measured < t->running)
                put(&l, COLOR_DIM, ", %" PRIu32 " measured", t->measured);
        if (r->n_points > 0 && l.limit >= 90) {
                pad_to(&l, 18 + BAR_WIDTH + 2 + 29);
                put(&l, COLOR_DIM, "last %s", format_duration(interval * r->n_points, span, sizeof(span)));
        }
        end_line(v, out);
}

static void draw_role(const struct top_view *v, const struct top_role *r, uint64_t interval, FILE *out) {
        draw_role_title(v, r, interval, out);
        for (size_t i = 0; r->total.measured > 0 && i < ELEMENTSOF(meters); i++)
                if (is_shown(r, meters + i))
                        draw_meter(v, r, meters + i, out);
}

/* All of a role in one line, where there are many. */
static void draw_role_line(const struct top_view *v, const struct top_role *r, FILE *out) {
        static const struct {
                const char *label;
                enum top_number k;
        } parts[] = { { "CPU", TOP_CPU_SHARE },  { "mem", TOP_MEMORY_SHARE }, { "GPU", TOP_GPU },
                      { "wait", TOP_DATA_WAIT }, { "press", TOP_PRESSURE },   { "steps/s", TOP_STEPS } };
        struct line l = begin(v, out);
        char text[64];

        put(&l, COLOR_BOLD, "%-12s", r->name);
        put(&l, COLOR_NONE, " %5" PRIu32 "/%-5" PRIu32, r->total.running, r->executors);
        for (size_t i = 0; i < ELEMENTSOF(parts); i++) {
                double value = share_of(&r->total, parts[i].k);
                if (isnan(value))
                        continue;
                put(&l, COLOR_DIM, "  %s ", parts[i].label);
                put(&l, color_of(parts[i].k, value), "%s",
                    top_number_text(parts[i].k, value, text, sizeof(text)));
                if (i < 3)
                        put(&l, color_of(parts[i].k, value), " %s",
                            top_bar(value, 8, v->unicode, text, sizeof(text)));
        }
        end_line(v, out);
}

/* ---- the list ---- */

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

static double job_number(const struct top_job *j, enum top_number k) {
        return isnan(j->total.sum[k]) ? j->total.mean[k] : j->total.sum[k];
}

static bool list_knows(const struct top_model *t, enum top_number k) {
        if (k == TOP_CPU || k == TOP_MEMORY)
                return true;
        for (size_t i = 0; i < t->n_executors; i++)
                if (!isnan(t->executors[i].rates[k]))
                        return true;
        for (size_t i = 0; i < t->n_jobs; i++)
                if (!isnan(job_number(t->jobs + i, k)))
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

static char *executor_name(const struct top_executor *e, char *buf, size_t size) {
        if (e->element != UINT32_MAX)
                snprintf(buf, size, "[%" PRIu32 "] %s/%" PRIu32, e->element, e->role, e->index);
        else
                snprintf(buf, size, "%s/%" PRIu32, e->role, e->index);
        return buf;
}

static struct layout lay_out(const struct top_view *v, const struct top_model *t) {
        struct layout y = { .name = 8, .place = 4 };
        char text[64];
        unsigned used;

        for (size_t i = 0; i < t->n_executors; i++) {
                y.name = longest(y.name,
                                 (unsigned)strlen(executor_name(t->executors + i, text, sizeof(text))), 24);
                y.place = longest(y.place, (unsigned)strlen(t->executors[i].node), 20);
        }
        for (size_t i = 0; i < t->n_jobs; i++) {
                y.name = longest(y.name, 9 + (unsigned)strlen(t->jobs[i].name), 30);
                y.place = longest(y.place, (unsigned)strlen(t->jobs[i].state), 10);
        }
        used = y.name + 2 + y.place + NOTE_WIDTH;
        for (size_t i = 0; i < ELEMENTSOF(columns); i++) {
                y.shown[i] = list_knows(t, columns[i].k);
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
        struct line l = begin(v, out);
        char text[64], place[48];

        put_text(&l, REVERSE, t->job.number ? "EXECUTOR" : "     JOB");
        if (t->job.number == 0)
                put_text(&l, REVERSE, " NAME");
        snprintf(text, sizeof(text), "%*s", (int)(y->name > l.used ? y->name - l.used : 0), "");
        put_text(&l, REVERSE, text);
        snprintf(text, sizeof(text), " %-*s", (int)y->place, t->job.number ? "HOST" : "STATE");
        put_text(&l, REVERSE, text);
        for (size_t i = 0; i < ELEMENTSOF(columns); i++) {
                if (!y->shown[i])
                        continue;
                snprintf(text, sizeof(text), " %*s", (int)columns[i].width, columns[i].title);
                put_text(&l, columns[i].sort == v->sort ? REVERSE "\033[1m" : REVERSE, text);
        }
        if (n > room)
                snprintf(place, sizeof(place), "%zu-%zu of %zu", v->offset + 1, MIN(v->offset + room, n), n);
        else
                snprintf(place, sizeof(place), "%s", t->job.number ? "" : "EXECUTORS");
        snprintf(text, sizeof(text), "  %-*s", (int)NOTE_WIDTH, place);
        put_text(&l, REVERSE, text);
        end_line(v, out);
}

static void put_numbers(struct line *l, const struct layout *y,
                        double (*number)(const void *row, enum top_number k), const void *row) {
        char text[32];

        for (size_t i = 0; i < ELEMENTSOF(columns); i++) {
                enum top_number k = columns[i].k;
                double value = number(row, k);
                enum color color = isnan(value) || value == 0 ? COLOR_DIM : color_of(k, value);
                if (!y->shown[i])
                        continue;
                put(l, color == COLOR_GREEN ? COLOR_NONE : color, " %*s", (int)columns[i].width,
                    top_number_text(k, value, text, sizeof(text)));
        }
}

static double executor_number(const void *row, enum top_number k) {
        return ((const struct top_executor *)row)->rates[k];
}

static double row_job_number(const void *row, enum top_number k) {
        return job_number(row, k);
}

static void draw_executor(const struct top_view *v, const struct top_executor *e, const struct layout *y,
                          FILE *out) {
        struct line l = begin(v, out);
        char text[64], age[FORMAT_DURATION_MAX];

        put(&l, COLOR_BOLD, "%-*.*s", (int)y->name, (int)y->name, executor_name(e, text, sizeof(text)));
        put(&l, COLOR_NONE, " %-*.*s", (int)y->place, (int)y->place, e->node);
        put_numbers(&l, y, executor_number, e);
        if (e->verdicts)
                put(&l, COLOR_RED, "  %s", e->verdicts);
        else if (strcmp(e->state, "RUNNING") != 0)
                put(&l, color_of_state(e->state), "  %s", e->state);
        if (e->age != UINT64_MAX && e->age > SILENT_USEC)
                put(&l, COLOR_YELLOW, "  silent for %s",
                    format_duration(e->age / USEC_PER_SEC * USEC_PER_SEC, age, sizeof(age)));
        end_line(v, out);
}

static void draw_job(const struct top_view *v, const struct top_job *j, const struct layout *y, FILE *out) {
        struct line l = begin(v, out);

        put(&l, COLOR_BOLD, "%8" PRIu32, j->number);
        put(&l, COLOR_NONE, " %-*.*s", (int)(y->name - MIN(y->name, 9u)), (int)(y->name - MIN(y->name, 9u)),
            j->name);
        put(&l, color_of_state(j->state), " %-*.*s", (int)y->place, (int)y->place, j->state);
        put_numbers(&l, y, row_job_number, j);
        put(&l, COLOR_NONE, "  %" PRIu32 "/%" PRIu32, j->total.running, j->executors);
        end_line(v, out);
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
        int r = compare_numbers(sorted_by(*(enum top_sort *)sort, row_job_number, x),
                                sorted_by(*(enum top_sort *)sort, row_job_number, y));

        return r != 0 ? r : x->number < y->number ? -1 : x->number > y->number;
}

void top_model_sort(struct top_model *t, enum top_sort sort) {
        if (t->n_executors > 1)
                qsort_r(t->executors, t->n_executors, sizeof(*t->executors), compare_executors, &sort);
        if (t->n_jobs > 1)
                qsort_r(t->jobs, t->n_jobs, sizeof(*t->jobs), compare_jobs, &sort);
}

/* ---- the screen ---- */

/* How the roles are shown: whole, or in one line each and how many of those. */
struct arrangement {
        bool whole;
        size_t n_roles;
        unsigned rows;
};

static struct arrangement arrange(const struct top_view *v, const struct top_model *t) {
        struct arrangement a = { .whole = true, .n_roles = t->n_roles };
        unsigned room = v->rows > LIST_MIN + 3 ? v->rows - LIST_MIN - 3 : 1; /* head, blank, keys */

        for (size_t i = 0; i < t->n_roles; i++)
                a.rows += block_rows(t->roles + i) + (i > 0);
        if (a.rows <= room)
                return a;
        a.whole = false;
        a.n_roles = MIN(t->n_roles, (size_t)room);
        a.rows = (unsigned)a.n_roles;
        return a;
}

size_t top_list_room(const struct top_view *v, const struct top_model *t) {
        unsigned above = 3 + (t->job.number ? arrange(v, t).rows + 1 : 0);

        return v->rows > above ? v->rows - above : 0;
}

static void draw_head(const struct top_view *v, const struct top_model *t, FILE *out) {
        struct line l = begin(v, out);
        char clock[TEXT_TIME_MAX], since[FORMAT_DURATION_MAX];
        uint32_t running = 0;

        if (t->job.number) {
                for (size_t i = 0; i < t->n_roles; i++)
                        running += t->roles[i].total.running;
                put(&l, COLOR_BOLD, "Job %" PRIu32, t->job.number);
                put(&l, COLOR_NONE, " (%s)  ", t->job.name);
                put(&l, color_of_state(t->job.state), "%s", t->job.state);
                if (t->job.since > 0)
                        put(&l, COLOR_NONE, "  %s",
                            format_duration(usec_sub(v->now_real, t->job.since) / USEC_PER_SEC * USEC_PER_SEC,
                                            since, sizeof(since)));
        } else {
                for (size_t i = 0; i < t->n_jobs; i++)
                        running += t->jobs[i].total.running;
                put(&l, COLOR_BOLD, "%zu job%s", t->n_jobs, t->n_jobs == 1 ? "" : "s");
        }
        put(&l, COLOR_NONE, "  %" PRIu32 " executor%s", running, running == 1 ? "" : "s");
        text_time(v->now_real, v->now_real, clock, sizeof(clock));
        if (l.limit > l.used + strlen(clock) + 2) {
                pad_to(&l, l.limit - (unsigned)strlen(clock));
                put(&l, COLOR_DIM, "%s", clock);
        }
        end_line(v, out);
}

static void draw_keys(const struct top_view *v, const struct top_model *t, FILE *out) {
        static const struct {
                const char *key, *what;
        } keys[] = { { "q", "quit" },     { "c", "CPU" },     { "m", "memory" }, { "i", "I/O" },
                     { "n", "network" },  { "g", "GPU" },     { "d", "data" },   { "p", "pressure" },
                     { "e", "executor" }, { "t", "10min/4h" } };
        struct line l = begin(v, out);

        if (v->message)
                put(&l, COLOR_YELLOW, "%s", v->message);
        for (size_t i = 0; !v->message && i < ELEMENTSOF(keys); i++) {
                bool time = keys[i].key[0] == 't';
                if (time && t->job.number == 0)
                        continue;
                put(&l, COLOR_BOLD, "%s%s", i ? "  " : "", keys[i].key);
                put(&l, top_sort_of_key(keys[i].key[0]) == v->sort ? COLOR_CYAN : COLOR_DIM, " %s",
                    keys[i].key[0] == 'e' && t->job.number == 0 ? "job" : keys[i].what);
        }
        if (v->terminal)
                fputs("\033[K", out);
}

static void draw_all(const struct top_view *v, const struct top_model *t, FILE *out) {
        struct arrangement a = t->job.number ? arrange(v, t) : (struct arrangement){};
        size_t room = top_list_room(v, t), n = t->job.number ? t->n_executors : t->n_jobs, i;
        struct layout y = lay_out(v, t);

        draw_head(v, t, out);
        for (i = 0; i < a.n_roles; i++) {
                if (a.whole && i > 0)
                        end_line(v, out);
                if (a.whole)
                        draw_role(v, t->roles + i, t->interval, out);
                else
                        draw_role_line(v, t->roles + i, out);
        }
        if (t->job.number)
                end_line(v, out);
        draw_list_head(v, t, &y, n, room, out);
        for (i = v->offset; i < n && i < v->offset + room; i++)
                if (t->job.number)
                        draw_executor(v, t->executors + i, &y, out);
                else
                        draw_job(v, t->jobs + i, &y, out);
        for (i = MIN(n - MIN(n, v->offset), room); i < room; i++)
                end_line(v, out);
        draw_keys(v, t, out);
}

void top_draw(const struct top_view *v, const struct top_model *t, FILE *out) {
        _cleanup_free_ char *text = NULL;
        unsigned lines = 0;
        size_t size, n = 0;
        FILE *f = open_memstream(&text, &size);

        if (!f)
                return;
        draw_all(v, t, f);
        if (fclose(f) != 0)
                return;
        /* A screen of a few rows has no room for all its parts. */
        for (; n < size; n++)
                if (text[n] == '\n' && ++lines >= v->rows)
                        break;
        fwrite(text, 1, n, out);
}
