/* SPDX-License-Identifier: Apache-2.0 */
/* Data in primusctl status. */
#include "tools/primusctl/commands/status-data.h"

#include <inttypes.h>
#include <jansson.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/parse.h"
#include "tools/primusctl/view/live.h"
#include "tools/primusctl/view/table.h"

#define COUNT_MAX 24

/* "950", "12.3k", "4.1M": what is only to be compared. */
static char *format_count(double n, char buf[static COUNT_MAX]) {
        static const char units[] = { 0, 'k', 'M', 'G', 'T' };
        size_t unit = 0;

        while (n >= 999.5 && unit + 1 < ELEMENTSOF(units)) {
                n /= 1000;
                unit++;
        }
        if (unit == 0)
                snprintf(buf, COUNT_MAX, n < 9.95 && n != (double)(uint64_t)n ? "%.1f" : "%.0f", n);
        else
                snprintf(buf, COUNT_MAX, n < 9.95 ? "%.1f%c" : "%.0f%c", n, units[unit]);
        return buf;
}

/* Tasks that nobody has taken yet. */
static uint64_t unclaimed(const struct source_status *s) {
        uint64_t taken = s->done + s->failed + s->leased;

        return s->tasks > taken ? s->tasks - taken : 0;
}

static bool over(const struct source_status *s) {
        return s->scanned && s->done + s->failed >= s->tasks;
}

/* What a source waits for, in words. Nothing, once the job is over. */
static const char *source_note(const struct data_status *d, const struct source_status *s, bool ended,
                               char *buf, size_t size) {
        if (ended)
                return "";
        if (s->waiting_for && *s->waiting_for) {
                snprintf(buf, size, "waiting for %s", s->waiting_for);
                return buf;
        }
        if (!s->scanned && s->tasks == 0)
                return "is being listed";
        if (over(s))
                return s->tasks == 0 ? "is empty" : "";
        return unclaimed(s) > 0 && d->waiting == 0 ? "waits for executors" : "";
}

static int print_sources(const struct cli *c, const struct data_status *d, bool ended) {
        static const struct table_column columns[] = {
                { "SOURCE", .fills = true }, { "KIND" },
                { "TASKS", .right = true },  { "FAILED", .right = true },
                { "BYTES", .right = true },  { "RECORDS", .right = true },
                { "RATE", .right = true },   { "RECORDS/S", .right = true },
                { "LEFT", .right = true },   { "", .fills = true },
        };
        _cleanup_(table_free_p) struct table *t = NULL;
        int r = table_new(c, columns, ELEMENTSOF(columns), &t);

        if (r)
                return r;
        for (size_t i = 0; i < d->n_sources && table_row(t) >= 0; i++) {
                const struct source_status *s = &d->sources[i];
                char a[FORMAT_SIZE_MAX], b[FORMAT_SIZE_MAX], n[COUNT_MAX], left[FORMAT_DURATION_MAX],
                        note[256];

                table_set(t, 0, COLOR_BOLD, "%s", s->name ? s->name : "?");
                table_set(t, 1, COLOR_NONE, "%s", s->kind ? s->kind : "?");
                table_set(t, 2, COLOR_NONE, "%" PRIu64 "/%" PRIu64 "%s", s->done, s->tasks,
                          s->scanned ? "" : "+");
                table_set(t, 3, s->failed ? COLOR_RED : COLOR_DIM, "%" PRIu64, s->failed);
                if (s->bytes > 0)
                        table_set(t, 4, COLOR_NONE, "%s/%s%s", format_size(s->acked, a, sizeof(a)),
                                  format_size(s->bytes, b, sizeof(b)), s->scanned ? "" : "+");
                else
                        table_set(t, 4, COLOR_DIM, "-");
                table_set(t, 5, s->records ? COLOR_NONE : COLOR_DIM, "%s",
                          s->records ? format_count((double)s->records, n) : "-");
                table_set(t, 6, s->rate > 0 ? COLOR_NONE : COLOR_DIM, s->rate > 0 ? "%s/s" : "-",
                          format_size((uint64_t)s->rate, a, sizeof(a)));
                table_set(t, 7, s->record_rate > 0 ? COLOR_NONE : COLOR_DIM, s->record_rate > 0 ? "%s" : "-",
                          format_count(s->record_rate, n));
                table_set(t, 8, COLOR_NONE, "%s",
                          over(s)                ? "0s"
                          : s->eta == UINT64_MAX ? "-"
                                                 : format_duration(s->eta / USEC_PER_SEC * USEC_PER_SEC, left,
                                                                   sizeof(left)));
                table_set(t, 9, !ended && s->waiting_for && *s->waiting_for ? COLOR_YELLOW : COLOR_DIM, "%s",
                          source_note(d, s, ended, note, sizeof(note)));
        }
        return table_print(c, t);
}

/* Which of the two sides an executor mostly waits on. */
enum bound {
        BOUND_IDLE,    /* it has no task and wants one */
        BOUND_DATA,    /* its trainer waits for data */
        BOUND_TRAINER, /* its trainer is busy with data */
        BOUND_EVEN,
        _BOUND_MAX
};

static const struct {
        const char *word;
        enum color color;
} bounds[_BOUND_MAX] = {
        [BOUND_IDLE] = { "no task", COLOR_YELLOW },
        [BOUND_DATA] = { "data-bound", COLOR_YELLOW },
        [BOUND_TRAINER] = { "trainer-bound", COLOR_NONE },
        [BOUND_EVEN] = { "", COLOR_NONE },
};

static enum bound bound_of(const struct executor *e) {
        if (e->data_idle)
                return BOUND_IDLE;
        if (e->data_wait / 2 > e->trainer_wait)
                return BOUND_DATA;
        return e->trainer_wait / 2 > e->data_wait ? BOUND_TRAINER : BOUND_EVEN;
}

static bool is_fed(const struct executor *e) {
        return e->has_data && !state_is_end(e->state);
}

static const char *waited(uint64_t usec, char *buf, size_t size) {
        if (usec < USEC_PER_SEC)
                return usec < USEC_PER_MSEC
                               ? "0s"
                               : format_duration(usec / USEC_PER_MSEC * USEC_PER_MSEC, buf, size);
        return format_duration(usec / USEC_PER_SEC * USEC_PER_SEC, buf, size);
}

static int print_executors(const struct cli *c, const struct executor *e, size_t n, size_t shown) {
        static const struct table_column columns[] = {
                { "EXECUTOR" },
                { "TASKS", .right = true },
                { "WAITED FOR DATA", .right = true },
                { "BUSY WITH IT", .right = true },
                { "" },
        };
        _cleanup_(table_free_p) struct table *t = NULL;
        int r = table_new(c, columns, ELEMENTSOF(columns), &t);

        if (r)
                return r;
        for (size_t i = 0; i < n && shown > 0; i++) {
                char a[FORMAT_DURATION_MAX];
                enum bound b = bound_of(&e[i]);

                if (!is_fed(&e[i]))
                        continue;
                if (table_row(t) < 0)
                        break;
                shown--;
                table_set(t, 0, COLOR_BOLD, "%s/%" PRIu32, e[i].role, e[i].index);
                table_set(t, 1, e[i].data_tasks ? COLOR_NONE : COLOR_DIM, "%" PRIu32, e[i].data_tasks);
                table_set(t, 2, COLOR_NONE, "%s", waited(e[i].data_wait, a, sizeof(a)));
                table_set(t, 3, COLOR_NONE, "%s", waited(e[i].trainer_wait, a, sizeof(a)));
                table_set(t, 4, bounds[b].color, "%s", bounds[b].word);
        }
        return table_print(c, t);
}

/* "8 executors are fed: 2 have no task, 1 data-bound, 5 trainer-bound" */
static void print_sum(const struct executor *e, size_t n, size_t fed) {
        static const char *const words[_BOUND_MAX] = { [BOUND_IDLE] = "without a task",
                                                       [BOUND_DATA] = "data-bound (the trainer waits)",
                                                       [BOUND_TRAINER] =
                                                               "trainer-bound (the trainer is busy)",
                                                       [BOUND_EVEN] = "balanced" };
        size_t counts[_BOUND_MAX] = { 0 };
        const char *comma = ": ";

        for (size_t i = 0; i < n; i++)
                if (is_fed(&e[i]) && (e[i].data_tasks > 0 || e[i].data_idle))
                        counts[bound_of(&e[i])]++;
        printf("%zu executor%s fed", fed, fed == 1 ? "" : "s");
        for (size_t b = 0; b < _BOUND_MAX; b++)
                if (counts[b] > 0) {
                        printf("%s%zu %s", comma, counts[b], words[b]);
                        comma = ", ";
                }
        putchar('\n');
}

int status_data_print(const struct cli *c, const struct data_status *d, const struct executor *e, size_t n,
                      bool all, bool ended) {
        struct live live = { .rate = 0 };
        size_t fed = 0;
        char text[256];
        int r = 0;

        for (size_t i = 0; i < d->n_sources; i++)
                live.rate += d->bytes > 0 ? d->sources[i].rate : 0;
        printf("%s\n", live_data_text(&live, d, text, sizeof(text)));
        if (d->n_sources > 0) {
                putchar('\n');
                r = print_sources(c, d, ended);
        }
        for (size_t i = 0; i < n; i++)
                fed += is_fed(&e[i]);
        if (r || fed == 0)
                return r;
        putchar('\n');
        r = print_executors(c, e, n, all ? fed : DATA_EXECUTORS_SHOWN);
        if (r)
                return r;
        if (fed > DATA_EXECUTORS_SHOWN && !all)
                printf("... and %zu more (status -a)\n", fed - DATA_EXECUTORS_SHOWN);
        print_sum(e, n, fed);
        return 0;
}

static json_t *source_json(const struct source_status *s) {
        json_t *o = json_pack(
                "{s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:f, s:f, s:b, s:s}", "name",
                s->name ? s->name : "", "kind", s->kind ? s->kind : "", "files", (json_int_t)s->files,
                "tasks", (json_int_t)s->tasks, "done", (json_int_t)s->done, "failed", (json_int_t)s->failed,
                "leased", (json_int_t)s->leased, "bytes", (json_int_t)s->bytes, "acked", (json_int_t)s->acked,
                "records", (json_int_t)s->records, "rate", s->rate, "recordRate", s->record_rate, "scanned",
                (int)s->scanned, "waitingFor", s->waiting_for ? s->waiting_for : "");

        if (o)
                (void)json_object_set_new(
                        o, "etaUsec", s->eta == UINT64_MAX ? json_null() : json_integer((json_int_t)s->eta));
        return o;
}

json_t *status_data_json(const struct data_status *d) {
        json_t *sources = json_array();

        for (size_t i = 0; i < d->n_sources; i++)
                (void)json_array_append_new(sources, source_json(&d->sources[i]));
        return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:b, s:I, s:o}", "tasks",
                         (json_int_t)d->tasks, "done", (json_int_t)d->done, "failed", (json_int_t)d->failed,
                         "leased", (json_int_t)d->leased, "bytes", (json_int_t)d->bytes, "read",
                         (json_int_t)d->read, "acked", (json_int_t)d->acked, "records",
                         (json_int_t)d->records, "scanned", (int)d->scanned, "waiting",
                         (json_int_t)d->waiting, "sources", sources);
}

void status_data_executor_json(const struct executor *e, json_t *object) {
        if (!e->has_data)
                return;
        (void)json_object_set_new(object, "dataTasks", json_integer(e->data_tasks));
        (void)json_object_set_new(object, "dataWaitUsec", json_integer((json_int_t)e->data_wait));
        (void)json_object_set_new(object, "trainerWaitUsec", json_integer((json_int_t)e->trainer_wait));
        (void)json_object_set_new(object, "dataIdle", json_boolean(e->data_idle));
}
