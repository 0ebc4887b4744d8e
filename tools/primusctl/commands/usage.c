/* SPDX-License-Identifier: Apache-2.0 */
/* primusctl usage. */
#include <inttypes.h>
#include <pwd.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/parse.h"
#include "lib/base/when.h"
#include "lib/json/get.h"
#include "tools/primusctl/bus/ask.h"
#include "tools/primusctl/cli/commands.h"
#include "tools/primusctl/view/table.h"

#define USEC_PER_HOUR 3600e6

struct usage_options {
        const char *by, *since, *until, *user;
        bool csv;
};

enum {
        BY_DAY,
        BY_POOL,
        BY_USER,
        BY_JOB,
        BY_ROLE,
        _BY_MAX
};
static const char *const by_words[_BY_MAX] = { "day", "pool", "user", "job", "role" };

static int read_by(const struct cli *c, const char *text, bool by[static _BY_MAX]) {
        _cleanup_free_ char *copy = strdup(text);
        char *rest = copy, *word;

        if (!copy)
                return cli_oom(c);
        while ((word = strsep(&rest, ","))) {
                size_t i = 0;
                while (i < _BY_MAX && strcmp(by_words[i], word) != 0)
                        i++;
                if (i == _BY_MAX)
                        return cli_usage(c, "--by: expected user, pool, job, day or role, not '%s'", word);
                by[i] = true;
        }
        return 0;
}

/* A time, or a duration: so long ago. */
static int read_time(const struct cli *c, const char *option, const char *text, uint64_t *ret) {
        uint64_t now = now_real(), ago;

        if (parse_duration(text, &ago) >= 0 && !strchr(text, ':') && ago != USEC_INFINITY)
                *ret = usec_sub(now, ago);
        else if (when_parse(text, now, ret) < 0)
                return cli_usage(c, "--%s: expected a time such as 7d (ago) or 2026-01-31, not '%s'", option,
                                 text);
        return 0;
}

static int ask(struct cli *c, const struct usage_options *o, const bool by[static _BY_MAX], json_t **ret) {
        _cleanup_(sd_bus_message_unref_p) sd_bus_message *m = NULL;
        uint64_t since = 0, until = 0;
        struct passwd *pw;
        uint32_t uid = 0;
        int r = cli_manager_call(c, "Usage", &m), k;

        if (!r && o->since)
                r = read_time(c, "since", o->since, &since);
        if (!r && o->until)
                r = read_time(c, "until", o->until, &until);
        if (!r && o->user) {
                pw = getpwnam(o->user);
                if (pw)
                        uid = pw->pw_uid;
                else if (parse_u32(o->user, 0, UINT32_MAX - 1, &uid) < 0)
                        r = cli_usage(c, "--user: there is no user %s here", o->user);
        }
        if (r)
                return r;
        k = sd_bus_message_open_container(m, 'a', "s");
        for (size_t i = 0; k >= 0 && i < _BY_MAX; i++)
                if (by[i])
                        k = sd_bus_message_append_basic(m, 's', by_words[i]);
        if (k >= 0)
                k = sd_bus_message_close_container(m);
        if (k >= 0)
                k = sd_bus_message_open_container(m, 'a', "{sv}");
        if (k >= 0 && o->since)
                k = sd_bus_message_append(m, "{sv}", "since", "t", since);
        if (k >= 0 && o->until)
                k = sd_bus_message_append(m, "{sv}", "until", "t", until);
        if (k >= 0 && o->user)
                k = sd_bus_message_append(m, "{sv}", "uid", "u", uid);
        if (k >= 0)
                k = sd_bus_message_close_container(m);
        return k < 0 ? cli_oom(c) : ask_list(c, m, NULL, &json_usage, ret);
}

/* What it is of. The rows of jobs that were deleted have been added up. */
static const char *key_text(const json_t *row, size_t key, char *buf, size_t size) {
        uint64_t job = json_get_number(row, "job");

        if (key == BY_JOB && job > 0)
                snprintf(buf, size, "%" PRIu64, job);
        else
                snprintf(buf, size, "%s", key == BY_JOB ? "deleted" : json_get_text(row, by_words[key]));
        return buf;
}

static double hours(const json_t *row, const char *name) {
        return (double)json_get_number(row, name) / USEC_PER_HOUR;
}

static double gib_hours(const json_t *row) {
        return (double)json_get_number(row, "memoryHeldMibMsec") / 1024 / 3600e3;
}

/* Only what was asked for is told apart: of the rest a row says nothing. */
static int print_json(const struct cli *c, json_t *rows, const bool by[static _BY_MAX]) {
        json_t *row;
        size_t i;

        json_array_foreach (rows, i, row) {
                for (size_t k = 0; k < _BY_MAX; k++)
                        if (!by[k])
                                (void)json_object_del(row, by_words[k]);
                if (!by[BY_USER])
                        (void)json_object_del(row, "uid");
        }
        return cli_print_json(c, json_incref(rows));
}

/* A text is quoted where RFC 4180 wants it. */
static void print_field(const char *text) {
        if (!strpbrk(text, ",\"\n\r")) {
                fputs(text, stdout);
                return;
        }
        putchar('"');
        for (; *text; text++) {
                if (*text == '"')
                        putchar('"');
                putchar(*text);
        }
        putchar('"');
}

static int print_csv(const struct cli *c, const json_t *rows, const bool by[static _BY_MAX]) {
        char text[256];
        const json_t *row;
        size_t n;

        for (size_t i = 0; i < _BY_MAX; i++)
                if (by[i])
                        printf("%s,", by_words[i]);
        puts("cpu_held_hours,cpu_used_hours,memory_held_gib_hours,gpu_held_hours,attempts,unmeasured,"
             "gpu_used_hours,gpu_measured,running");
        json_array_foreach (rows, n, row) {
                for (size_t i = 0; i < _BY_MAX; i++)
                        if (by[i]) {
                                print_field(key_text(row, i, text, sizeof(text)));
                                putchar(',');
                        }
                printf("%.6f,%.6f,%.6f,%.6f,%" PRIu64 ",%" PRIu64 ",%.6f,%" PRIu64 ",%" PRIu64 "\n",
                       hours(row, "cpuHeldUsec"), hours(row, "cpuUsedUsec"), gib_hours(row),
                       hours(row, "gpuHeldUsec"), json_get_number(row, "attempts"),
                       json_get_number(row, "unmeasured"), hours(row, "gpuBusyUsec"),
                       json_get_number(row, "gpuMeasured"), json_get_number(row, "running"));
        }
        return fflush(stdout) == EOF ? cli_fail(c, "cannot write to standard output: %s", strerror(errno))
                                     : 0;
}

static void set_hours(struct table *t, size_t column, double hours) {
        table_set(t, column, COLOR_NONE, "%.*f", hours < 10 ? 4 : 1, hours);
}

static void show_row(struct table *t, const json_t *row, const bool by[static _BY_MAX]) {
        uint64_t running = json_get_number(row, "running");
        char text[256];
        size_t k = 0;

        for (size_t i = 0; i < _BY_MAX; i++)
                if (by[i])
                        table_set(t, k++, COLOR_NONE, "%s", key_text(row, i, text, sizeof(text)));
        set_hours(t, k++, hours(row, "cpuHeldUsec"));
        set_hours(t, k++, hours(row, "cpuUsedUsec"));
        set_hours(t, k++, gib_hours(row));
        set_hours(t, k++, hours(row, "gpuHeldUsec"));
        if (json_is_null(json_object_get(row, "gpuUsedUsec")))
                table_set(t, k++, COLOR_DIM, "-");
        else
                set_hours(t, k++, hours(row, "gpuUsedUsec"));
        table_set(t, k++, running ? COLOR_NONE : COLOR_DIM, "%" PRIu64, running);
}

static int print_table(const struct cli *c, const json_t *rows, const bool by[static _BY_MAX]) {
        static const char *const titles[_BY_MAX] = { "DAY", "POOL", "USER", "JOB", "ROLE" };
        struct table_column columns[_BY_MAX + 6];
        _cleanup_(table_free_p) struct table *t = NULL;
        const json_t *row;
        size_t n = 0, i;
        int r;

        for (i = 0; i < _BY_MAX; i++)
                if (by[i])
                        columns[n++] = (struct table_column){ titles[i], .right = i == BY_JOB };
        columns[n++] = (struct table_column){ "CPU HELD", .right = true };
        columns[n++] = (struct table_column){ "CPU USED", .right = true };
        columns[n++] = (struct table_column){ "GIB HELD", .right = true };
        columns[n++] = (struct table_column){ "GPU HELD", .right = true };
        columns[n++] = (struct table_column){ "GPU USED", .right = true };
        columns[n++] = (struct table_column){ "RUNNING", .right = true };
        r = table_new(c, columns, n, &t);
        if (r)
                return r;
        json_array_foreach (rows, i, row)
                if (table_row(t) >= 0)
                        show_row(t, row, by);
        return table_print_or(c, t, "Nothing was used in that time");
}

static int usage_run(struct cli *c, void *options, char **args, size_t n) {
        _cleanup_(json_decref_p) json_t *rows = NULL;
        struct usage_options *o = options;
        bool by[_BY_MAX] = {};
        int r = read_by(c, o->by ? o->by : "user,pool", by);

        (void)args;
        (void)n;
        if (!r && o->csv && c->json)
                r = cli_usage(c, "--csv or --json, not both");
        if (!r)
                r = ask(c, o, by, &rows);
        if (r)
                return r;
        return c->json ? print_json(c, rows, by) : o->csv ? print_csv(c, rows, by) : print_table(c, rows, by);
}

static const struct cli_option usage_options[] = {
        { "by", 0, "KEYS", option_string, offsetof(struct usage_options, by),
          "some of user,pool,job,day,role (user,pool)" },
        { "since", 0, "TIME", option_string, offsetof(struct usage_options, since),
          "from that day on: 7d (ago), 2026-01-31; else all" },
        { "until", 0, "TIME", option_string, offsetof(struct usage_options, until), "up to that day" },
        { "user", 'u', "USER", option_string, offsetof(struct usage_options, user), "only that user's" },
        { "csv", 0, NULL, NULL, offsetof(struct usage_options, csv), "print CSV" },
        { 0 },
};

const struct command usage_command = {
        .name = "usage",
        .arguments = "[OPTIONS]",
        .help = "Show what users and pools held and used, in hours",
        .details = "Held is what was reserved, from the placing of an executor to its end; those that run "
                   "count up to "
                   "now.\n"
                   "Used is the processor time, and how long GPUs were busy, of executors that have ended, "
                   "on the day of\n"
                   "their end; memory has no such figure. Days are UTC, and whole.",
        .options = usage_options,
        .options_size = sizeof(struct usage_options),
        .run = usage_run,
};
