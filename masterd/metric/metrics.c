/* SPDX-License-Identifier: Apache-2.0 */
/* Invariant: what every budget counts is what is allocated under it, and no series has more points than the
 * job's cap. */
#include "masterd/metric/metrics.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <uthash.h>

#include "lib/base/cleanup.h"
#include "lib/base/heap.h"
#include "masterd/metric/internal.h"

#define ROOM_FIRST 8u

/* ---- what it takes ---- */

static bool charge_budgets(struct metrics *m, size_t bytes) {
        if (m->bytes + bytes > METRIC_JOB_BYTES + METRIC_JOB_BYTES / 4)
                return false;
        for (const struct metric_budget *b = m->budget; b; b = b->above)
                if (b->bytes + bytes > b->max)
                        return false;
        for (struct metric_budget *b = m->budget; b; b = b->above)
                b->bytes += bytes;
        m->bytes += bytes;
        return true;
}

static void discharge_budgets(struct metrics *m, size_t bytes) {
        for (struct metric_budget *b = m->budget; b; b = b->above)
                b->bytes -= bytes;
        m->bytes -= bytes;
}

static int resize_series(struct metrics *m, struct metric_series *s, uint32_t room) {
        size_t before = heap_of(s->room * sizeof(*s->points)), after = heap_of(room * sizeof(*s->points));
        struct metric_point *points;

        if (after > before && !charge_budgets(m, after - before))
                return -ENOBUFS;
        points = reallocarray(s->points, room, sizeof(*s->points));
        if (!points) {
                if (after > before)
                        discharge_budgets(m, after - before);
                return -ENOMEM;
        }
        if (before > after)
                discharge_budgets(m, before - after);
        s->points = points;
        s->room = room;
        return 0;
}

/* ---- points ---- */

/* What was said of steps from this one on is of a past that has not happened. */
static void go_back(struct metric_series *s, uint64_t step) {
        uint32_t n = s->n;

        while (n > 0 && s->points[n - 1].step >= step)
                n--;
        if (n == s->n)
                return;
        s->n = n;
        s->filled = s->width;
}

int metric_series_put(struct metrics *m, struct metric_series *s, const struct metric_point *p) {
        int r;

        if (s->n > 0 && s->filled < s->width) {
                s->points[s->n - 1] = metric_join(s->points + s->n - 1, p);
                s->filled++;
                return 1;
        }
        if (s->n == s->room && s->room < m->cap) {
                r = resize_series(m, s, s->room == 0 ? ROOM_FIRST : MIN(2 * s->room, m->cap));
                if (r == -ENOMEM || (r < 0 && s->n < METRIC_CAP_MIN))
                        return r;
        }
        if (s->n == s->room) {
                if (s->width > UINT32_MAX / 4)
                        return -ENOBUFS; /* 2^30 points of it were said */
                s->n = metric_halve(s->points, s->n, &s->width, &s->filled);
                return metric_series_put(m, s, p);
        }
        s->points[s->n++] = *p;
        s->filled = 1;
        return 1;
}

static void fit_into_cap(struct metrics *m, struct metric_series *s) {
        while (s->n > m->cap)
                s->n = metric_halve(s->points, s->n, &s->width, &s->filled);
        if (s->room > m->cap)
                (void)resize_series(m, s, m->cap);
}

/* One series more: with twice as many of them, each has half the points. */
static bool lower_cap(struct metrics *m) {
        uint32_t cap = METRIC_CAP_MAX;
        struct metric_source *s;

        while (cap > METRIC_CAP_MIN &&
               (uint64_t)m->n_series * cap * sizeof(struct metric_point) > METRIC_JOB_BYTES)
                cap /= 2;
        if ((uint64_t)m->n_series * cap * sizeof(struct metric_point) > METRIC_JOB_BYTES)
                return false;
        if (cap == m->cap)
                return true;
        m->cap = cap;
        for (s = m->sources; s; s = s->hh.next)
                for (uint32_t i = 0; i < s->n; i++)
                        fit_into_cap(m, s->series + i);
        return true;
}

/* ---- names, processes, series ---- */

/* One of the job's words; they are few and short. */
static const char *intern_word(char **words, uint32_t *n, uint32_t max, const char *word, uint32_t *ret) {
        for (*ret = 0; *ret < *n; (*ret)++)
                if (strcmp(words[*ret], word) == 0)
                        return words[*ret];
        if (*n == max)
                return NULL;
        words[*n] = strdup(word);
        return words[*n] ? words[(*n)++] : NULL;
}

static int make_series(struct metrics *m, struct metric_source *s, uint8_t name, struct metric_series **ret) {
        size_t before = heap_of(s->n * sizeof(*s->series)), after = heap_of((s->n + 1) * sizeof(*s->series));
        struct metric_series *more;

        if (s->n == METRIC_NAMES_MAX)
                return -ENOBUFS;
        m->n_series++;
        if (!lower_cap(m) || !charge_budgets(m, after - before)) {
                m->n_series--;
                return -ENOBUFS;
        }
        more = reallocarray(s->series, s->n + 1, sizeof(*more));
        if (!more) {
                discharge_budgets(m, after - before);
                m->n_series--;
                return -ENOMEM;
        }
        s->series = more;
        *ret = more + s->n++;
        **ret = (struct metric_series){ .width = 1, .name = name };
        s->at[name] = (uint8_t)s->n;
        return 0;
}

int metric_series_find(struct metrics *m, struct metric_source *s, const char *name,
                       struct metric_series **ret) {
        uint32_t n;

        if (!intern_word(m->names, &m->n_names, METRIC_JOB_NAMES_MAX, name, &n))
                return -ENOBUFS;
        if (s->at[n] == 0)
                return make_series(m, s, (uint8_t)n, ret);
        *ret = s->series + s->at[n] - 1;
        return 0;
}

int metrics_source(struct metrics *m, const char *role, uint32_t index, uint32_t local,
                   struct metric_source **ret) {
        struct metric_key key = { .index = index, .local = local };
        struct metric_source *s;
        const char *word = intern_word(m->roles, &m->n_roles, METRIC_ROLES_MAX, role, &key.role);

        if (!word)
                return -ENOBUFS;
        HASH_FIND(hh, m->sources, &key, sizeof(key), s);
        if (s) {
                *ret = s;
                return 0;
        }
        if (!charge_budgets(m, heap_of(sizeof(*s))))
                return -ENOBUFS;
        s = calloc(1, sizeof(*s));
        if (!s) {
                discharge_budgets(m, heap_of(sizeof(*s)));
                return -ENOMEM;
        }
        s->metrics = m;
        s->key = key;
        s->role = word;
        HASH_ADD(hh, m->sources, key, sizeof(key), s);
        free(m->sorted);
        m->sorted = NULL;
        *ret = s;
        return 0;
}

int metrics_add(struct metrics *m, struct metric_source *s, uint32_t attempt, const char *name,
                const struct metric_point *p) {
        const struct metric_point *last;
        struct metric_series *x;
        int r = metric_series_find(m, s, name, &x);

        if (r < 0)
                return r;
        last = x->n > 0 ? x->points + x->n - 1 : NULL;
        if (attempt < x->attempt || (attempt == x->attempt && last && p->usec <= last->usec))
                return 0;
        if (last && (p->step < last->step || (attempt > x->attempt && p->step == last->step)))
                go_back(x, p->step);
        x->attempt = attempt;
        return metric_series_put(m, x, p);
}

/* ---- reading ---- */

static int by_place(const void *a, const void *b) {
        const struct metric_source *x = *(struct metric_source *const *)a,
                                   *y = *(struct metric_source *const *)b;

        if (x->role != y->role)
                return strcmp(x->role, y->role);
        if (x->key.index != y->key.index)
                return x->key.index < y->key.index ? -1 : 1;
        return (x->key.local > y->key.local) - (x->key.local < y->key.local);
}

struct metric_source *metrics_next(const struct metrics *m, const struct metric_source *s) {
        return s ? s->hh.next : m->sources;
}

int metrics_sorted(struct metrics *m, struct metric_source *const **ret, size_t *ret_n) {
        size_t n = 0;

        if (!m->sorted) {
                m->sorted = calloc(MAX(HASH_COUNT(m->sources), 1u), sizeof(struct metric_source *));
                if (!m->sorted)
                        return -ENOMEM;
                for (struct metric_source *s = m->sources; s; s = s->hh.next)
                        m->sorted[n++] = s;
                if (n > 0)
                        qsort(m->sorted, n, sizeof(struct metric_source *), by_place);
        }
        *ret = m->sorted;
        *ret_n = HASH_COUNT(m->sources);
        return 0;
}

const char *metrics_name(const struct metrics *m, uint8_t name) {
        return m->names[name];
}

const struct metric_series *metric_series_of(const struct metrics *m, const struct metric_source *s,
                                             const char *name) {
        for (uint32_t n = 0; n < m->n_names; n++)
                if (strcmp(m->names[n], name) == 0)
                        return s->at[n] > 0 ? s->series + s->at[n] - 1 : NULL;
        return NULL;
}

size_t metric_series_read(const struct metric_series *s, size_t max, struct metric_point *ret) {
        size_t together = (s->n + max - 1) / max, n = 0;

        for (size_t i = 0; i < s->n; n++) {
                ret[n] = s->points[i++];
                for (size_t k = 1; k < together && i < s->n; k++)
                        ret[n] = metric_join(ret + n, s->points + i++);
        }
        return n;
}

/* ---- the whole ---- */

int metrics_new(struct metric_budget *budget, void *owner, struct metrics **ret) {
        struct metrics *m = calloc(1, sizeof(*m));

        if (!m)
                return -ENOMEM;
        m->budget = budget;
        m->owner = owner;
        m->cap = METRIC_CAP_MAX;
        if (!charge_budgets(m, heap_of(sizeof(*m)))) {
                free(m);
                return -ENOBUFS;
        }
        *ret = m;
        return 0;
}

void metrics_free(struct metrics *m) {
        struct metric_source *s, *next;

        if (!m)
                return;
        HASH_ITER (hh, m->sources, s, next) {
                HASH_DEL(m->sources, s);
                for (uint32_t i = 0; i < s->n; i++)
                        free(s->series[i].points);
                free(s->series);
                free(s);
        }
        for (uint32_t i = 0; i < m->n_names; i++)
                free(m->names[i]);
        for (uint32_t i = 0; i < m->n_roles; i++)
                free(m->roles[i]);
        free(m->sorted);
        discharge_budgets(m, m->bytes);
        free(m);
}

void *metrics_owner(const struct metrics *m) {
        return m->owner;
}
