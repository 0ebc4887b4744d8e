/* SPDX-License-Identifier: Apache-2.0 */
/* Data in primusctl status. */
#include "tools/primusctl/commands/status-data.h"

#include <inttypes.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/format.h"
#include "lib/json/ends.h"
#include "lib/json/get.h"
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
static uint64_t unclaimed(const json_t *source) {
        uint64_t taken = json_get_number(source, "done") + json_get_number(source, "failed") +
                         json_get_number(source, "leased");

        return usec_sub(json_get_number(source, "tasks"), taken);
}

static bool over(const json_t *source) {
        return json_get_flag(source, "scanned") &&
               json_get_number(source, "done") + json_get_number(source, "failed") >=
                       json_get_number(source, "tasks");
}

/* What a source waits for, in words. Nothing, once the job is over. */
static const char *source_note(const json_t *data, const json_t *source, bool ended, char *buf, size_t size) {
        const char *waiting_for = json_get_text(source, "waitingFor");
        uint64_t tasks = json_get_number(source, "tasks");

        if (ended)
                return "";
        if (json_get_flag(source, "removed"))
                return "removed";
        if (json_get_flag(source, "paused"))
                return "paused";
        if (json_get_flag(source, "ended"))
                return "ended";
        if (*waiting_for) {
                snprintf(buf, size, "waiting for %s", waiting_for);
                return buf;
        }
        if (!json_get_flag(source, "scanned") && tasks == 0)
                return "is being listed";
        if (over(source))
                return tasks == 0 ? "is empty" : "";
        if (unclaimed(source) > 0 && json_get_number(data, "waiting") == 0)
                return "waits for executors";
        if (!*json_get_text(source, "timePoint"))
                return "";
        snprintf(buf, size, "at %s", json_get_text(source, "timePoint"));
        return buf;
}

static void show_source(struct table *t, const json_t *data, const json_t *s, bool ended) {
        const char *name = json_get_text(s, "name"), *kind = json_get_text(s, "kind"),
                   *more = json_get_flag(s, "scanned") ? "" : "+";
        uint64_t failed = json_get_number(s, "failed"), bytes = json_get_number(s, "bytes"),
                 records = json_get_number(s, "records");
        double rate = json_get_real(s, "rate"), record_rate = json_get_real(s, "recordRate");
        char a[FORMAT_SIZE_MAX], b[FORMAT_SIZE_MAX], n[COUNT_MAX], left[FORMAT_DURATION_MAX], note[256];

        table_set(t, 0, COLOR_BOLD, "%s", *name ? name : "?");
        table_set(t, 1, COLOR_NONE, "%s", *kind ? kind : "?");
        table_set(t, 2, COLOR_NONE, "%" PRIu64 "/%" PRIu64 "%s", json_get_number(s, "done"),
                  json_get_number(s, "tasks"), more);
        table_set(t, 3, failed ? COLOR_RED : COLOR_DIM, "%" PRIu64, failed);
        if (bytes > 0)
                table_set(t, 4, COLOR_NONE, "%s/%s%s", format_size(json_get_number(s, "acked"), a, sizeof(a)),
                          format_size(bytes, b, sizeof(b)), more);
        else
                table_set(t, 4, COLOR_DIM, "-");
        table_set(t, 5, records ? COLOR_NONE : COLOR_DIM, "%s",
                  records ? format_count((double)records, n) : "-");
        table_set(t, 6, rate > 0 ? COLOR_NONE : COLOR_DIM, rate > 0 ? "%s/s" : "-",
                  format_size((uint64_t)rate, a, sizeof(a)));
        table_set(t, 7, record_rate > 0 ? COLOR_NONE : COLOR_DIM, record_rate > 0 ? "%s" : "-",
                  format_count(record_rate, n));
        table_set(t, 8, COLOR_NONE, "%s",
                  over(s) ? "0s"
                  : json_is_null(json_object_get(s, "etaUsec"))
                          ? "-"
                          : format_duration(json_get_number(s, "etaUsec") / USEC_PER_SEC * USEC_PER_SEC, left,
                                            sizeof(left)));
        table_set(t, 9,
                  !ended && (*json_get_text(s, "waitingFor") || json_get_flag(s, "paused")) ? COLOR_YELLOW
                                                                                            : COLOR_DIM,
                  "%s", source_note(data, s, ended, note, sizeof(note)));
}

static int print_sources(const struct cli *c, const json_t *data, bool ended) {
        static const struct table_column columns[] = {
                { "SOURCE", .fills = true }, { "KIND" },
                { "TASKS", .right = true },  { "FAILED", .right = true },
                { "BYTES", .right = true },  { "RECORDS", .right = true },
                { "RATE", .right = true },   { "RECORDS/S", .right = true },
                { "LEFT", .right = true },   { "", .fills = true },
        };
        _cleanup_(table_free_p) struct table *t = NULL;
        const json_t *source;
        size_t i;
        int r = table_new(c, columns, ELEMENTSOF(columns), &t);

        if (r)
                return r;
        json_array_foreach (json_object_get(data, "sources"), i, source)
                if (table_row(t) >= 0)
                        show_source(t, data, source, ended);
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

static enum bound bound_of(const json_t *executor) {
        uint64_t data = json_get_number(executor, "dataWaitUsec"),
                 trainer = json_get_number(executor, "trainerWaitUsec");

        if (json_get_flag(executor, "dataIdle"))
                return BOUND_IDLE;
        if (data / 2 > trainer)
                return BOUND_DATA;
        return trainer / 2 > data ? BOUND_TRAINER : BOUND_EVEN;
}

static bool is_fed(const json_t *executor) {
        return json_object_get(executor, "dataTasks") && !state_is_end(json_get_text(executor, "state"));
}

static const char *waited(uint64_t usec, char *buf, size_t size) {
        if (usec < USEC_PER_SEC)
                return usec < USEC_PER_MSEC
                               ? "0s"
                               : format_duration(usec / USEC_PER_MSEC * USEC_PER_MSEC, buf, size);
        return format_duration(usec / USEC_PER_SEC * USEC_PER_SEC, buf, size);
}

static int print_executors(const struct cli *c, const json_t *executors, size_t shown) {
        static const struct table_column columns[] = {
                { "EXECUTOR" },
                { "TASKS", .right = true },
                { "WAITED FOR DATA", .right = true },
                { "BUSY WITH IT", .right = true },
                { "" },
        };
        _cleanup_(table_free_p) struct table *t = NULL;
        const json_t *e;
        size_t i;
        int r = table_new(c, columns, ELEMENTSOF(columns), &t);

        if (r)
                return r;
        json_array_foreach (executors, i, e) {
                uint64_t tasks = json_get_number(e, "dataTasks");
                char a[FORMAT_DURATION_MAX];
                enum bound b = bound_of(e);

                if (!is_fed(e))
                        continue;
                if (shown-- == 0 || table_row(t) < 0)
                        break;
                table_set(t, 0, COLOR_BOLD, "%s/%" PRIu64, json_get_text(e, "role"),
                          json_get_number(e, "index"));
                table_set(t, 1, tasks ? COLOR_NONE : COLOR_DIM, "%" PRIu64, tasks);
                table_set(t, 2, COLOR_NONE, "%s", waited(json_get_number(e, "dataWaitUsec"), a, sizeof(a)));
                table_set(t, 3, COLOR_NONE, "%s",
                          waited(json_get_number(e, "trainerWaitUsec"), a, sizeof(a)));
                table_set(t, 4, bounds[b].color, "%s", bounds[b].word);
        }
        return table_print(c, t);
}

/* "8 executors are fed: 2 have no task, 1 data-bound, 5 trainer-bound" */
static void print_sum(const json_t *executors, size_t fed) {
        static const char *const words[_BOUND_MAX] = { [BOUND_IDLE] = "without a task",
                                                       [BOUND_DATA] = "data-bound (the trainer waits)",
                                                       [BOUND_TRAINER] =
                                                               "trainer-bound (the trainer is busy)",
                                                       [BOUND_EVEN] = "balanced" };
        size_t counts[_BOUND_MAX] = { 0 }, i;
        const char *comma = ": ";
        const json_t *e;

        json_array_foreach (executors, i, e)
                if (is_fed(e) && (json_get_number(e, "dataTasks") > 0 || json_get_flag(e, "dataIdle")))
                        counts[bound_of(e)]++;
        printf("%zu executor%s fed", fed, fed == 1 ? "" : "s");
        for (size_t b = 0; b < _BOUND_MAX; b++)
                if (counts[b] > 0) {
                        printf("%s%zu %s", comma, counts[b], words[b]);
                        comma = ", ";
                }
        putchar('\n');
}

/* The line that a job which is followed has, too. */
static void print_totals(const json_t *data) {
        const struct data_status d = {
                .present = true,
                .scanned = json_get_flag(data, "scanned"),
                .tasks = json_get_number(data, "tasks"),
                .done = json_get_number(data, "done"),
                .failed = json_get_number(data, "failed"),
                .bytes = json_get_number(data, "bytes"),
                .acked = json_get_number(data, "acked"),
                .records = json_get_number(data, "records"),
        };
        struct live live = { .rate = 0 };
        const json_t *source;
        char text[256];
        size_t i;

        json_array_foreach (json_object_get(data, "sources"), i, source)
                live.rate += d.bytes > 0 ? json_get_real(source, "rate") : 0;
        printf("%s\n", live_data_text(&live, &d, text, sizeof(text)));
}

int status_data_print(const struct cli *c, const json_t *data, const json_t *executors, bool all,
                      bool ended) {
        const json_t *e;
        size_t fed = 0, i;
        int r = 0;

        print_totals(data);
        if (json_array_size(json_object_get(data, "sources")) > 0) {
                putchar('\n');
                r = print_sources(c, data, ended);
        }
        json_array_foreach (executors, i, e)
                fed += is_fed(e);
        if (r || fed == 0)
                return r;
        putchar('\n');
        r = print_executors(c, executors, all ? fed : DATA_EXECUTORS_SHOWN);
        if (r)
                return r;
        if (fed > DATA_EXECUTORS_SHOWN && !all)
                printf("... and %zu more (status -a)\n", fed - DATA_EXECUTORS_SHOWN);
        print_sum(executors, fed);
        return 0;
}
