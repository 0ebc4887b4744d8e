/* SPDX-License-Identifier: Apache-2.0 */
/* primusctl usage. */
#include <inttypes.h>
#include <jansson.h>
#include <pwd.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/parse.h"
#include "lib/base/when.h"
#include "tools/primusctl/cli/commands.h"
#include "tools/primusctl/view/table.h"

#define DAY_USEC (UINT64_C(86400) * USEC_PER_SEC)
#define USEC_PER_HOUR 3600e6

struct usage_options {
        const char *by, *since, *until, *user;
        bool csv;
};

struct row {
        uint32_t day, uid, job;
        const char *pool, *role; /* in the message */
        uint64_t cpu_held, cpu_used, memory_held, gpu_held, attempts, unmeasured, gpu_used, gpu_measured,
                running;
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

static int ask(struct cli *c, const struct usage_options *o, const bool by[static _BY_MAX],
               sd_bus_message **ret) {
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
        return k < 0 ? cli_oom(c) : cli_call(c, m, NULL, ret);
}

/* 1: a row, 0: no more. */
static int next_row(sd_bus_message *m, struct row *r) {
        return sd_bus_message_read(m, "(uususttttttttt)", &r->day, &r->uid, &r->pool, &r->job, &r->role,
                                   &r->cpu_held, &r->cpu_used, &r->memory_held, &r->gpu_held, &r->attempts,
                                   &r->unmeasured, &r->gpu_used, &r->gpu_measured, &r->running);
}

static const char *key_text(const struct row *r, size_t key, char *buf, size_t size) {
        struct passwd *pw;

        switch (key) {
        case BY_DAY:
                (void)format_time((uint64_t)r->day * DAY_USEC, buf, size);
                buf[strcspn(buf, "T")] = 0;
                break;
        case BY_USER:
                pw = getpwuid(r->uid);
                if (pw)
                        snprintf(buf, size, "%s", pw->pw_name);
                else
                        snprintf(buf, size, "%" PRIu32, r->uid);
                break;
        case BY_JOB:
                if (r->job > 0)
                        snprintf(buf, size, "%" PRIu32, r->job);
                else
                        snprintf(buf, size, "deleted");
                break;
        case BY_POOL:
                snprintf(buf, size, "%s", r->pool);
                break;
        default:
                snprintf(buf, size, "%s", *r->role ? r->role : "deleted");
        }
        return buf;
}

static double gib_hours(uint64_t mib_msec) {
        return (double)mib_msec / 1024 / 3600e3;
}

static json_t *row_json(const struct row *r, const bool by[static _BY_MAX]) {
        json_t *o = json_object();
        char text[256];

        for (size_t i = 0; i < _BY_MAX; i++)
                if (by[i])
                        (void)json_object_set_new(o, by_words[i],
                                                  i == BY_JOB
                                                          ? json_integer(r->job)
                                                          : json_string(key_text(r, i, text, sizeof(text))));
        if (by[BY_USER])
                (void)json_object_set_new(o, "uid", json_integer(r->uid));
        (void)json_object_set_new(o, "cpuHeldUsec", json_integer((json_int_t)r->cpu_held));
        (void)json_object_set_new(o, "cpuUsedUsec", json_integer((json_int_t)r->cpu_used));
        (void)json_object_set_new(o, "memoryHeldMibMsec", json_integer((json_int_t)r->memory_held));
        (void)json_object_set_new(o, "gpuHeldUsec", json_integer((json_int_t)r->gpu_held));
        (void)json_object_set_new(o, "gpuUsedUsec",
                                  r->gpu_measured > 0 ? json_integer((json_int_t)r->gpu_used) : json_null());
        (void)json_object_set_new(o, "attempts", json_integer((json_int_t)r->attempts));
        (void)json_object_set_new(o, "unmeasured", json_integer((json_int_t)r->unmeasured));
        (void)json_object_set_new(o, "gpuMeasured", json_integer((json_int_t)r->gpu_measured));
        (void)json_object_set_new(o, "running", json_integer((json_int_t)r->running));
        return o;
}

static int print_json(const struct cli *c, sd_bus_message *m, const bool by[static _BY_MAX]) {
        json_t *array = json_array();
        struct row row;
        int r;

        while ((r = next_row(m, &row)) > 0)
                (void)json_array_append_new(array, row_json(&row, by));
        if (r < 0) {
                json_decref(array);
                return cli_bad_reply(c, r);
        }
        return cli_print_json(c, array);
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

static int print_csv(const struct cli *c, sd_bus_message *m, const bool by[static _BY_MAX]) {
        char text[256];
        struct row row;
        int r;

        for (size_t i = 0; i < _BY_MAX; i++)
                if (by[i])
                        printf("%s,", by_words[i]);
        puts("cpu_held_hours,cpu_used_hours,memory_held_gib_hours,gpu_held_hours,attempts,unmeasured,"
             "gpu_used_hours,gpu_measured,running");
        while ((r = next_row(m, &row)) > 0) {
                for (size_t i = 0; i < _BY_MAX; i++)
                        if (by[i]) {
                                print_field(key_text(&row, i, text, sizeof(text)));
                                putchar(',');
                        }
                printf("%.6f,%.6f,%.6f,%.6f,%" PRIu64 ",%" PRIu64 ",%.6f,%" PRIu64 ",%" PRIu64 "\n",
                       (double)row.cpu_held / USEC_PER_HOUR, (double)row.cpu_used / USEC_PER_HOUR,
                       gib_hours(row.memory_held), (double)row.gpu_held / USEC_PER_HOUR, row.attempts,
                       row.unmeasured, (double)row.gpu_used / USEC_PER_HOUR, row.gpu_measured, row.running);
        }
        if (r < 0)
                return cli_bad_reply(c, r);
        return fflush(stdout) == EOF ? cli_fail(c, "cannot write to standard output: %s", strerror(errno))
                                     : 0;
}

static void set_hours(struct table *t, size_t column, double hours) {
        table_set(t, column, COLOR_NONE, "%.*f", hours < 10 ? 4 : 1, hours);
}

static int print_table(const struct cli *c, sd_bus_message *m, const bool by[static _BY_MAX]) {
        static const char *const titles[_BY_MAX] = { "DAY", "POOL", "USER", "JOB", "ROLE" };
        struct table_column columns[_BY_MAX + 6];
        _cleanup_(table_free_p) struct table *t = NULL;
        size_t n = 0, k;
        char text[256];
        struct row row;
        int r;

        for (size_t i = 0; i < _BY_MAX; i++)
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
        while ((r = next_row(m, &row)) > 0 && table_row(t) >= 0) {
                k = 0;
                for (size_t i = 0; i < _BY_MAX; i++)
                        if (by[i])
                                table_set(t, k++, COLOR_NONE, "%s", key_text(&row, i, text, sizeof(text)));
                set_hours(t, k++, (double)row.cpu_held / USEC_PER_HOUR);
                set_hours(t, k++, (double)row.cpu_used / USEC_PER_HOUR);
                set_hours(t, k++, gib_hours(row.memory_held));
                set_hours(t, k++, (double)row.gpu_held / USEC_PER_HOUR);
                if (row.gpu_measured > 0)
                        set_hours(t, k++, (double)row.gpu_used / USEC_PER_HOUR);
                else
                        table_set(t, k++, COLOR_DIM, "-");
                table_set(t, k++, row.running ? COLOR_NONE : COLOR_DIM, "%" PRIu64, row.running);
        }
        return r < 0 ? cli_bad_reply(c, r) : table_print_or(c, t, "Nothing was used in that time");
}

static int usage_run(struct cli *c, void *options, char **args, size_t n) {
        _cleanup_(sd_bus_message_unref_p) sd_bus_message *reply = NULL;
        struct usage_options *o = options;
        bool by[_BY_MAX] = {};
        int r = read_by(c, o->by ? o->by : "user,pool", by);

        (void)args;
        (void)n;
        if (!r && o->csv && c->json)
                r = cli_usage(c, "--csv or --json, not both");
        if (!r)
                r = ask(c, o, by, &reply);
        if (r)
                return r;
        r = sd_bus_message_enter_container(reply, 'a', "(uususttttttttt)");
        if (r < 0)
                return cli_bad_reply(c, r);
        return c->json  ? print_json(c, reply, by)
               : o->csv ? print_csv(c, reply, by)
                        : print_table(c, reply, by);
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
