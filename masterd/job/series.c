/* SPDX-License-Identifier: Apache-2.0 */
/* Histories of roles. Invariants: a point is written once, when its time is over; what a history holds does
 * not depend on how many executors there are, nor on how long the job runs. */
#include "masterd/job/series.h"

#include <math.h>
#include <string.h>

#include "lib/base/cleanup.h"

#define PLANE ((size_t)_SERIES_MAX * SERIES_POINTS) /* floats of one range: the means, or the highest */

static const struct {
        const char *name;
        bool adds;
} kinds[_SERIES_MAX] = {
#define X(name, text, adds) [SERIES_##name] = { text, adds },
        SERIES(X)
#undef X
};

static const uint64_t intervals[_SERIES_RANGE_MAX] = {
        [SERIES_FINE] = 5 * USEC_PER_SEC,
        [SERIES_COARSE] = 120 * USEC_PER_SEC,
};

/* The point that is being gathered. */
struct gathering {
        uint64_t number; /* of its interval since the clock began; 0: none yet */
        uint64_t first;  /* of the history */
        double sum[_SERIES_MAX];
        uint32_t n[_SERIES_MAX];
        float max[_SERIES_MAX];
};

struct series {
        struct series_budget *budget;
        bool wide;
        struct gathering gathering[_SERIES_RANGE_MAX];
        float *points[_SERIES_RANGE_MAX]; /* a plane of means and, wide, one of the highest; by series, then
                                             slot */
};

const char *series_name(enum series_kind k) {
        return k < _SERIES_MAX ? kinds[k].name : NULL;
}

bool series_adds(enum series_kind k) {
        return kinds[k].adds;
}

uint64_t series_interval(enum series_range r) {
        return intervals[r];
}

/* ---- what follows from two samples ---- */

static float gauge(const struct series_input *in, enum telemetry_field f) {
        return in->now[f] == TELEMETRY_UNKNOWN ? NAN : (float)in->now[f];
}

/* What came to a counter, per microsecond. A fall is a new count. */
static float rate(const struct series_input *in, enum telemetry_field f) {
        uint64_t before, now = in->now[f];

        if (in->before_usec == 0 || in->now_usec <= in->before_usec)
                return NAN;
        before = in->before[f];
        if (before == TELEMETRY_UNKNOWN || now == TELEMETRY_UNKNOWN)
                return NAN;
        return (float)((double)(now >= before ? now - before : now) /
                       (double)(in->now_usec - in->before_usec));
}

/* x of a whole; NAN where there is none. */
static float share_of(float x, double whole) {
        return whole > 0 ? (float)(x / whole) : NAN;
}

static float highest(float a, float b) {
        return isnan(a) || b > a ? b : a;
}

void series_derive(const struct series_input *in, float ret[static _SERIES_MAX]) {
        uint64_t cpu_limit = in->now[TELEMETRY_CPU_LIMIT_USEC],
                 memory_limit = in->now[TELEMETRY_MEMORY_LIMIT_BYTES];
        float pressure = highest(
                rate(in, TELEMETRY_PRESSURE_CPU_USEC),
                highest(rate(in, TELEMETRY_PRESSURE_MEMORY_USEC), rate(in, TELEMETRY_PRESSURE_IO_USEC)));

        ret[SERIES_CPU] = rate(in, TELEMETRY_CPU_USEC);
        ret[SERIES_CPU_SHARE] = share_of(
                ret[SERIES_CPU], cpu_limit != TELEMETRY_UNKNOWN ? (double)cpu_limit / USEC_PER_SEC : in->cpu);
        ret[SERIES_MEMORY] = gauge(in, TELEMETRY_MEMORY_BYTES);
        ret[SERIES_MEMORY_SHARE] =
                share_of(ret[SERIES_MEMORY],
                         memory_limit != TELEMETRY_UNKNOWN ? (double)memory_limit : (double)in->memory);
        ret[SERIES_READ] = rate(in, TELEMETRY_READ_BYTES) * USEC_PER_SEC;
        ret[SERIES_WRITE] = rate(in, TELEMETRY_WRITE_BYTES) * USEC_PER_SEC;
        ret[SERIES_NET_RX] = rate(in, TELEMETRY_NET_RX_BYTES) * USEC_PER_SEC;
        ret[SERIES_NET_TX] = rate(in, TELEMETRY_NET_TX_BYTES) * USEC_PER_SEC;
        ret[SERIES_GPU] = gauge(in, TELEMETRY_GPU_UTILIZATION) / 1000;
        ret[SERIES_GPU_MEMORY] = gauge(in, TELEMETRY_GPU_MEMORY_BYTES);
        ret[SERIES_DATA_WAIT] = rate(in, TELEMETRY_DATA_WAIT_USEC);
        ret[SERIES_PRESSURE] = pressure;
        /* A count that begins again (another epoch, a trainer that goes on from a checkpoint) is no speed. */
        ret[SERIES_STEPS] =
                in->before_usec > 0 && in->now[TELEMETRY_PROGRESS_STEP] < in->before[TELEMETRY_PROGRESS_STEP]
                        ? NAN
                        : rate(in, TELEMETRY_PROGRESS_STEP) * USEC_PER_SEC;
}

/* ---- histories ---- */

static size_t plane_bytes(bool wide) {
        return PLANE * sizeof(float) * (wide ? 2 : 1);
}

static bool spend(struct series_budget *b, size_t bytes) {
        if (bytes > b->max - MIN(b->bytes, b->max))
                return false;
        b->bytes += bytes;
        return true;
}

static void clear(struct gathering *g) {
        for (size_t k = 0; k < _SERIES_MAX; k++) {
                g->sum[k] = 0;
                g->n[k] = 0;
                g->max[k] = NAN;
        }
}

int series_new(struct series_budget *budget, bool wide, struct series **ret) {
        size_t bytes = sizeof(struct series) + plane_bytes(wide);
        struct series *s;

        if (!spend(budget, bytes))
                return -ENOBUFS;
        s = calloc(1, sizeof(*s));
        if (s)
                s->points[SERIES_FINE] = malloc(plane_bytes(wide));
        if (!s || !s->points[SERIES_FINE]) {
                free(s);
                budget->bytes -= bytes;
                return -ENOMEM;
        }
        s->budget = budget;
        s->wide = wide;
        for (size_t r = 0; r < _SERIES_RANGE_MAX; r++)
                clear(s->gathering + r);
        *ret = s;
        return 0;
}

void series_free(struct series *s) {
        if (!s)
                return;
        s->budget->bytes -= sizeof(*s);
        for (size_t r = 0; r < _SERIES_RANGE_MAX; r++) {
                if (s->points[r])
                        s->budget->bytes -= plane_bytes(s->wide);
                free(s->points[r]);
        }
        free(s);
}

void series_widen(struct series *s) {
        float *wider[_SERIES_RANGE_MAX] = {};
        size_t bytes = 0;

        if (s->wide)
                return;
        for (size_t r = 0; r < _SERIES_RANGE_MAX; r++)
                bytes += s->points[r] ? PLANE * sizeof(float) : 0;
        if (!spend(s->budget, bytes))
                return;
        for (size_t r = 0; r < _SERIES_RANGE_MAX; r++) {
                if (!s->points[r])
                        continue;
                wider[r] = malloc(plane_bytes(true));
                if (!wider[r]) {
                        for (size_t k = 0; k < r; k++)
                                free(wider[k]);
                        s->budget->bytes -= bytes;
                        return;
                }
                memcpy(wider[r], s->points[r], PLANE * sizeof(float));
                memcpy(wider[r] + PLANE, s->points[r], PLANE * sizeof(float)); /* one is the highest of one */
        }
        for (size_t r = 0; r < _SERIES_RANGE_MAX; r++)
                if (wider[r]) {
                        free(s->points[r]);
                        s->points[r] = wider[r];
                }
        s->wide = true;
}

static void write_point(struct series *s, enum series_range r, uint64_t number, const struct gathering *g) {
        size_t slot = number % SERIES_POINTS;

        for (size_t k = 0; k < _SERIES_MAX; k++) {
                size_t at = k * SERIES_POINTS + slot;
                s->points[r][at] = g && g->n[k] > 0 ? (float)(g->sum[k] / g->n[k]) : NAN;
                if (s->wide)
                        s->points[r][PLANE + at] = g ? g->max[k] : NAN;
        }
}

/* Writes what is over at that time; nothing was heard in what lies between. */
static void advance_series(struct series *s, enum series_range r, uint64_t now_usec) {
        struct gathering *g = s->gathering + r;
        uint64_t number = now_usec / intervals[r];

        if (g->number == 0 || number <= g->number)
                return;
        if (!s->points[r]) { /* the coarse one, once there is a point of it; else that history begins later */
                if (spend(s->budget, plane_bytes(s->wide)) && !(s->points[r] = malloc(plane_bytes(s->wide))))
                        s->budget->bytes -= plane_bytes(s->wide);
                g->first = g->number;
        }
        if (s->points[r]) {
                write_point(s, r, g->number, g);
                for (uint64_t n = g->number + 1; n < number && n <= g->number + SERIES_POINTS; n++)
                        write_point(s, r, n, NULL);
        }
        clear(g);
        g->number = number;
}

void series_add(struct series *s, uint64_t now_usec, const float values[static _SERIES_MAX]) {
        for (enum series_range r = 0; r < _SERIES_RANGE_MAX; r++) {
                struct gathering *g = s->gathering + r;
                if (g->number == 0)
                        g->number = g->first = MAX(now_usec / intervals[r], UINT64_C(1));
                advance_series(s, r, now_usec);
                for (size_t k = 0; k < _SERIES_MAX; k++) {
                        if (isnan(values[k]))
                                continue;
                        g->sum[k] += values[k];
                        g->n[k]++;
                        g->max[k] = highest(g->max[k], values[k]);
                }
        }
}

size_t series_read(struct series *s, enum series_range range, enum series_kind k, uint64_t now_usec,
                   float ret_mean[static SERIES_POINTS], float *ret_max) {
        const struct gathering *g = s->gathering + range;
        uint64_t from, n;

        advance_series(s, range, now_usec);
        if (!s->points[range] || g->number <= g->first)
                return 0;
        n = MIN(g->number - g->first, (uint64_t)SERIES_POINTS);
        from = g->number - n;
        for (size_t i = 0; i < n; i++) {
                const float *at = s->points[range] + k * SERIES_POINTS + (from + i) % SERIES_POINTS;
                ret_mean[i] = *at;
                if (ret_max)
                        ret_max[i] = at[s->wide ? PLANE : 0];
        }
        return (size_t)n;
}
