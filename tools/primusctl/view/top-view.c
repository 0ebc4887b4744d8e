/* SPDX-License-Identifier: Apache-2.0 */
/* The screen of top. Invariant: no line is wider than the screen and there are no more of them than it has
 * rows, or it would scroll. */
#include "tools/primusctl/view/top-view-internal.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/format.h"

#define COLUMNS_MAX 400u
#define BAR_WIDTH 20u
#define LIST_MIN 4u /* rows of the list, with its head, that roles leave over */

/* ---- a line ---- */

/* As much of the text as fits. */
void top_put_text(struct line *l, const char *sgr, const char *text) {
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

void top_put(struct line *l, enum color color, const char *format, ...) {
        char text[COLUMNS_MAX * 4];
        va_list ap;

        va_start(ap, format);
        vsnprintf(text, sizeof(text), format, ap);
        va_end(ap);
        text_clean(text);
        top_put_text(l, color_sequence(color), text);
}

void top_pad_to(struct line *l, unsigned column) {
        column = MIN(column, l->limit);
        if (l->used < column)
                fprintf(l->out, "%*s", (int)(column - l->used), "");
        l->used = MAX(l->used, column);
}

struct line top_line(const struct top_view *v, FILE *out) {
        return (struct line){ .view = v, .out = out, .limit = MIN(v->columns, COLUMNS_MAX) };
}

void top_line_end(const struct top_view *v, FILE *out) {
        fputs(v->terminal ? "\033[K\n" : "\n", out);
}

/* How good it is: for a GPU much, for the others little. */
enum color top_color_of(enum top_number k, double value) {
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
        top_pad_to(l, from);
        top_put(l, COLOR_CYAN, "%s",
                top_sparkline(added, r->n_points, MIN(width, 120u), m->share ? 1 : 0, l->view->unicode, text,
                              sizeof(text)));
}

static unsigned bar_width(const struct top_view *v) {
        return v->columns < 70 ? 10 : BAR_WIDTH;
}

/* Behind the label, the value, the bar and what is said. */
static unsigned history_column(const struct top_view *v) {
        return 18 + bar_width(v) + 2 + 29;
}

static void draw_meter(const struct top_view *v, const struct top_role *r, const struct meter *m, FILE *out) {
        struct line l = top_line(v, out);
        double share = m->shown < _TOP_NUMBER_MAX ? share_of(&r->total, m->shown) : NAN;
        char text[128] = "", value[32], drawn[BAR_WIDTH * 3 + 3];

        top_put(&l, COLOR_DIM, "  %-9s ", m->label);
        m->say(r, text, sizeof(text));
        if (m->shown < _TOP_NUMBER_MAX) {
                top_put(&l, COLOR_NONE, "%5s ", top_number_text(m->shown, share, value, sizeof(value)));
                top_put(&l, top_color_of(m->shown, share), "%s",
                        top_bar(share, bar_width(v), v->unicode, drawn, sizeof(drawn)));
        }
        top_put(&l, COLOR_NONE, "  %s", text);
        put_history(&l, r, m, MAX(history_column(v), l.used + 1));
        top_line_end(v, out);
}

static void draw_role_title(const struct top_view *v, const struct top_role *r, uint64_t interval,
                            FILE *out) {
        struct line l = top_line(v, out);
        char span[FORMAT_DURATION_MAX];
        const struct top_total *t = &r->total;

        top_put(&l, COLOR_BOLD, "%s", r->name);
        top_put(&l, COLOR_NONE, "  %" PRIu32 " of %" PRIu32 " executor%s", t->running, r->executors,
                r->executors == 1 ? "" : "s");
        if (t->measured < t->running)
                top_put(&l, COLOR_DIM, ", %" PRIu32 " measured", t->measured);
        if (r->n_points > 0 && l.limit >= 90) {
                top_pad_to(&l, history_column(v));
                top_put(&l, COLOR_DIM, "last %s",
                        format_duration(interval * r->n_points, span, sizeof(span)));
        }
        top_line_end(v, out);
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
        struct line l = top_line(v, out);
        char text[64];

        top_put(&l, COLOR_BOLD, "%-12s", r->name);
        top_put(&l, COLOR_NONE, " %5" PRIu32 "/%-5" PRIu32, r->total.running, r->executors);
        for (size_t i = 0; i < ELEMENTSOF(parts); i++) {
                double value = share_of(&r->total, parts[i].k);
                if (isnan(value))
                        continue;
                top_put(&l, COLOR_DIM, "  %s ", parts[i].label);
                top_put(&l, top_color_of(parts[i].k, value), "%s",
                        top_number_text(parts[i].k, value, text, sizeof(text)));
                if (i < 3)
                        top_put(&l, top_color_of(parts[i].k, value), " %s",
                                top_bar(value, 8, v->unicode, text, sizeof(text)));
        }
        top_line_end(v, out);
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
        struct line l = top_line(v, out);
        char clock[TEXT_TIME_MAX], since[FORMAT_DURATION_MAX];
        uint32_t running = 0;

        if (t->job.number) {
                for (size_t i = 0; i < t->n_roles; i++)
                        running += t->roles[i].total.running;
                top_put(&l, COLOR_BOLD, "Job %" PRIu32, t->job.number);
                top_put(&l, COLOR_NONE, " (%s)  ", t->job.name);
                top_put(&l, color_of_state(t->job.state), "%s", t->job.state);
                if (t->job.since > 0)
                        top_put(&l, COLOR_NONE, "  %s",
                                format_duration(usec_sub(v->now_real, t->job.since) / USEC_PER_SEC *
                                                        USEC_PER_SEC,
                                                since, sizeof(since)));
        } else {
                for (size_t i = 0; i < t->n_jobs; i++)
                        running += t->jobs[i].total.running;
                top_put(&l, COLOR_BOLD, "%zu job%s", t->n_jobs, t->n_jobs == 1 ? "" : "s");
        }
        top_put(&l, COLOR_NONE, "  %" PRIu32 " executor%s", running, running == 1 ? "" : "s");
        text_time(v->now_real, v->now_real, clock, sizeof(clock));
        if (l.limit > l.used + strlen(clock) + 2) {
                top_pad_to(&l, l.limit - (unsigned)strlen(clock));
                top_put(&l, COLOR_DIM, "%s", clock);
        }
        top_line_end(v, out);
}

static void draw_keys(const struct top_view *v, const struct top_model *t, FILE *out) {
        static const struct {
                const char *key, *what;
        } keys[] = { { "q", "quit" },     { "c", "CPU" },     { "m", "memory" }, { "i", "I/O" },
                     { "n", "network" },  { "g", "GPU" },     { "d", "data" },   { "p", "pressure" },
                     { "e", "executor" }, { "t", "10min/4h" } };
        struct line l = top_line(v, out);

        if (v->message)
                top_put(&l, COLOR_YELLOW, "%s", v->message);
        for (size_t i = 0; !v->message && i < ELEMENTSOF(keys); i++) {
                bool time = keys[i].key[0] == 't';
                if (time && t->job.number == 0)
                        continue;
                top_put(&l, COLOR_BOLD, "%s%s", i ? "  " : "", keys[i].key);
                top_put(&l, top_sort_of_key(keys[i].key[0]) == v->sort ? COLOR_CYAN : COLOR_DIM, " %s",
                        keys[i].key[0] == 'e' && t->job.number == 0 ? "job" : keys[i].what);
        }
        if (v->terminal)
                fputs("\033[K", out);
}

static void draw_all(const struct top_view *v, const struct top_model *t, FILE *out) {
        struct arrangement a = t->job.number ? arrange(v, t) : (struct arrangement){};
        size_t room = top_list_room(v, t);

        draw_head(v, t, out);
        for (size_t i = 0; i < a.n_roles; i++) {
                if (a.whole && i > 0)
                        top_line_end(v, out);
                if (a.whole)
                        draw_role(v, t->roles + i, t->interval, out);
                else
                        draw_role_line(v, t->roles + i, out);
        }
        if (t->job.number)
                top_line_end(v, out);
        top_draw_list(v, t, room, out);
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
