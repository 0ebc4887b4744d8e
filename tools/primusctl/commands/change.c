/* SPDX-License-Identifier: Apache-2.0 */
/* primusctl update, scale, role and restart: jobs that change while they run. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/file.h"
#include "lib/base/parse.h"
#include "lib/base/utf8.h"
#include "tools/primusctl/cli/commands.h"

#define PART_BYTES_MAX (4u << 20)

struct change_options {
        const char *version;
};

static const struct cli_option change_table[] = {
        { "if-version", 0, "N", option_string, offsetof(struct change_options, version),
          "only if the job is at version N still (primusctl config shows it)" },
        {},
};

/* What has changed, in masterd's words. */
static int print_change(struct cli *c, const struct job_ref *job, uint64_t version) {
        _cleanup_(sd_bus_message_unref_p) sd_bus_message *m = NULL, *reply = NULL;
        const char *text = "";
        int r = sd_bus_message_new_method_call(c->bus, &m, MASTER_NAME, job->path,
                                               "org.freedesktop.DBus.Properties", "Get");

        if (r >= 0)
                r = sd_bus_message_append(m, "ss", MASTER_JOB, "LatestChange");
        if (r < 0)
                return cli_bad_reply(c, r);
        r = cli_call(c, m, job, &reply);
        if (r)
                return r;
        if (sd_bus_message_read(reply, "v", "s", &text) < 0)
                text = "";
        if (c->json)
                return cli_print_json(c, json_pack("{s:I, s:I, s:s}", "job", (json_int_t)job->number,
                                                   "version", (json_int_t)version, "change", text));
        printf("Job %" PRIu32 " is at version %" PRIu64 "%s%s\n", job->number, version, *text ? ": " : "",
               text);
        return CLI_OK;
}

/* Sends it, and says what came of it. */
static int finish(struct cli *c, const struct job_ref *job, sd_bus_message *m) {
        _cleanup_(sd_bus_message_unref_p) sd_bus_message *reply = NULL;
        uint64_t version;
        int r = cli_call(c, m, job, &reply);

        if (r)
                return r;
        r = sd_bus_message_read_basic(reply, 't', &version);
        return r < 0 ? cli_bad_reply(c, r) : print_change(c, job, version);
}

static int begin(struct cli *c, const char *text, const char *method, const void *options,
                 struct job_ref *job, sd_bus_message **ret) {
        const struct change_options *o = options;
        uint64_t version = 0; /* on the bus: none was given */
        int r;

        if (o->version && parse_u64(o->version, 0, UINT64_MAX, &version) < 0)
                return cli_usage(c, "--if-version=%s: not a version, which is a number", o->version);
        r = cli_job(c, text, job);
        if (!r && o->version && version == 0)
                return cli_fail(c,
                                "job %" PRIu32
                                " is not at version 0: versions begin at 1, as it was submitted "
                                "('primusctl config %" PRIu32 "' says which it is at)",
                                job->number, job->number);
        if (!r)
                r = cli_job_call(c, job, method, ret);
        if (r)
                return r;
        return sd_bus_message_append(*ret, "t", version) < 0 ? cli_oom(c) : 0;
}

/* A part of a configuration, as JSON; "-" is standard input. */
static int read_part(struct cli *c, const char *file, char **ret) {
        int r = strcmp(file, "-") == 0 ? read_fd(STDIN_FILENO, PART_BYTES_MAX, ret, NULL)
                                       : read_file(file, PART_BYTES_MAX, ret, NULL);

        if (r < 0)
                return cli_fail(c, "cannot read %s: %s", file, strerror(-r));
        return utf8_valid(*ret, strlen(*ret)) ? 0 : cli_fail(c, "%s is not valid UTF-8", file);
}

/* ---- update ---- */

static int update_run(struct cli *c, void *options, char **args, size_t n) {
        _cleanup_(sd_bus_message_unref_p) sd_bus_message *m = NULL;
        char key[512];
        struct job_ref job;
        const char *value;
        int r;

        for (size_t i = 1; i < n; i++) {
                value = cli_key_value(args[i], key, sizeof(key));
                if (!value)
                        return cli_usage(c,
                                         "'%s': expected KEY=VALUE, such as priority=10 or worker.vcores=2",
                                         args[i]);
                if (!utf8_valid(args[i], strlen(args[i])))
                        return cli_usage(c, "'%s' is not valid UTF-8", args[i]);
        }
        r = begin(c, args[0], "Update", options, &job, &m);
        if (r)
                return r;
        r = sd_bus_message_open_container(m, 'a', "{sv}");
        for (size_t i = 1; r >= 0 && i < n; i++) {
                value = cli_key_value(args[i], key, sizeof(key));
                r = sd_bus_message_append(m, "{sv}", key, "s", value);
        }
        if (r >= 0)
                r = sd_bus_message_close_container(m);
        return r < 0 ? cli_oom(c) : finish(c, &job, m);
}

const struct command update_command = {
        .name = "update",
        .arguments = "JOB KEY=VALUE...",
        .help = "Change the configuration of a job while it runs",
        .details =
                "KEY is a key of the configuration, of a role with its name in front: priority, queue, "
                "timeLimit,\n"
                "env.NAME, worker.vcores, worker.memoryMb, worker.command. VALUE as it would stand in the\n"
                "configuration; null takes the key away. CPUs and memory go to executors that run; commands "
                "and\n"
                "environments to attempts that begin from now on ('primusctl restart' begins them).",
        .options = change_table,
        .options_size = sizeof(struct change_options),
        .min = 2,
        .max = SIZE_MAX,
        .run = update_run,
};

/* ---- scale ---- */

static int scale_run(struct cli *c, void *options, char **args, size_t n) {
        _cleanup_(sd_bus_message_unref_p) sd_bus_message *m = NULL;
        struct job_ref job;
        char role[64], *end;
        const char *value;
        int r;

        for (size_t i = 1; i < n; i++) {
                value = cli_key_value(args[i], role, sizeof(role));
                errno = 0;
                if (!value || !*value || (strtoll(value, &end, 10), *end) || errno != 0)
                        return cli_usage(c, "'%s': expected ROLE=NUMBER", args[i]);
        }
        r = begin(c, args[0], "Scale", options, &job, &m);
        if (r)
                return r;
        r = sd_bus_message_open_container(m, 'a', "{sx}");
        for (size_t i = 1; r >= 0 && i < n; i++) {
                value = cli_key_value(args[i], role, sizeof(role));
                r = sd_bus_message_append(m, "{sx}", role, (int64_t)strtoll(value, NULL, 10));
        }
        if (r >= 0)
                r = sd_bus_message_close_container(m);
        return r < 0 ? cli_oom(c) : finish(c, &job, m);
}

const struct command scale_command = {
        .name = "scale",
        .arguments = "JOB ROLE=N...",
        .help = "Change how many executors roles of a job have",
        .details = "New executors get the next indices. When there are too many, those with the highest "
                   "indices are\n"
                   "stopped, which is neither a failure nor a success; their data goes to others.",
        .options = change_table,
        .options_size = sizeof(struct change_options),
        .min = 2,
        .max = SIZE_MAX,
        .run = scale_run,
};

/* ---- role ---- */

static int role_run(struct cli *c, void *options, char **args, size_t n) {
        _cleanup_(sd_bus_message_unref_p) sd_bus_message *m = NULL;
        bool add = strcmp(args[0], "add") == 0;
        _cleanup_free_ char *text = NULL;
        struct job_ref job;
        int r;

        (void)n;
        if (!add && strcmp(args[0], "remove") != 0)
                return cli_usage(c, "role: add or remove, not '%s'", args[0]);
        if (add) {
                r = read_part(c, args[2], &text);
                if (r)
                        return r;
        }
        r = begin(c, args[1], add ? "AddRole" : "RemoveRole", options, &job, &m);
        if (r)
                return r;
        return sd_bus_message_append(m, "s", add ? text : args[2]) < 0 ? cli_oom(c) : finish(c, &job, m);
}

const struct command role_command = {
        .name = "role",
        .arguments = "add JOB FILE | role remove JOB ROLE",
        .help = "Give a job that runs one more role, or take one away",
        .details = "FILE has one entry of role[] of a configuration, as JSON; - reads standard input. The "
                   "executors of a\n"
                   "role that is removed are stopped, and the job goes on without it.",
        .options = change_table,
        .options_size = sizeof(struct change_options),
        .min = 3,
        .max = 3,
        .run = role_run,
};

/* ---- data add ---- */

int change_add_source(struct cli *c, const char *job_text, const char *file, const char *version) {
        _cleanup_(sd_bus_message_unref_p) sd_bus_message *m = NULL;
        _cleanup_free_ char *text = NULL;
        struct job_ref job;
        int r = read_part(c, file, &text);

        r = r ?: begin(c, job_text, "AddSource", &(struct change_options){ version }, &job, &m);
        if (r)
                return r;
        return sd_bus_message_append(m, "s", text) < 0 ? cli_oom(c) : finish(c, &job, m);
}

/* ---- data replace ---- */

int change_replace_sources(struct cli *c, const char *job_text, const char *file, const char *version) {
        _cleanup_(sd_bus_message_unref_p) sd_bus_message *m = NULL, *reply = NULL;
        _cleanup_free_ char *text = NULL;
        uint32_t added, removed;
        struct job_ref job;
        uint64_t now;
        int r = read_part(c, file, &text);

        r = r ?: begin(c, job_text, "ReplaceSources", &(struct change_options){ version }, &job, &m);
        if (r)
                return r;
        if (sd_bus_message_append(m, "s", text) < 0)
                return cli_oom(c);
        r = cli_call(c, m, &job, &reply);
        if (r)
                return r;
        if (sd_bus_message_read(reply, "tuu", &now, &added, &removed) < 0)
                return cli_oom(c);
        if (c->json)
                return cli_print_json(c, json_pack("{s:I, s:I, s:i, s:i}", "job", (json_int_t)job.number,
                                                   "version", (json_int_t)now, "added", (int)added, "removed",
                                                   (int)removed));
        printf("Job %" PRIu32 " is at version %" PRIu64 ": %" PRIu32 " data source%s added, %" PRIu32
               " removed\n",
               job.number, now, added, added == 1 ? "" : "s", removed);
        return 0;
}

/* ---- restart ---- */

struct restart_options {
        uint32_t batch;
};

static const struct cli_option restart_table[] = {
        { "batch", 0, "N", option_count, offsetof(struct restart_options, batch), "so many at a time (1)" },
        {},
};

static int restart_run(struct cli *c, void *options, char **args, size_t n) {
        _cleanup_(sd_bus_message_unref_p) sd_bus_message *m = NULL, *reply = NULL;
        const struct restart_options *o = options;
        uint32_t executors, index = 0;
        int64_t which = -1;
        struct job_ref job;
        char role[64] = "";
        int r;

        if (n > 1) {
                size_t l = strcspn(args[1], "/");
                if (l == 0 || l >= sizeof(role) ||
                    (args[1][l] && parse_u32(args[1] + l + 1, 0, INT32_MAX, &index) < 0))
                        return cli_usage(c, "'%s': expected ROLE or ROLE/INDEX", args[1]);
                snprintf(role, sizeof(role), "%.*s", (int)l, args[1]);
                if (args[1][l])
                        which = index;
        }
        r = cli_job(c, args[0], &job);
        if (!r)
                r = cli_job_call(c, &job, "RestartRole", &m);
        if (!r && sd_bus_message_append(m, "siu", role, (int32_t)which, o->batch) < 0)
                r = cli_oom(c);
        if (!r)
                r = cli_call(c, m, &job, &reply);
        if (r)
                return r;
        r = sd_bus_message_read_basic(reply, 'u', &executors);
        if (r < 0)
                return cli_bad_reply(c, r);
        if (c->json)
                return cli_print_json(c, json_pack("{s:I, s:I}", "job", (json_int_t)job.number, "executors",
                                                   (json_int_t)executors));
        printf("Job %" PRIu32 ": %" PRIu32 " executor%s start%s again, %" PRIu32 " at a time\n", job.number,
               executors, executors == 1 ? "" : "s", executors == 1 ? "s" : "", MAX(o->batch, 1u));
        return CLI_OK;
}

const struct command restart_command = {
        .name = "restart",
        .arguments = "JOB [ROLE[/INDEX]]",
        .help = "Start executors of a job again, one after the other",
        .details = "Each waits until the one before runs again. These are no failures; the new attempts have "
                   "the command\n"
                   "and environment that 'primusctl update' gave the job meanwhile.",
        .options = restart_table,
        .options_size = sizeof(struct restart_options),
        .min = 1,
        .max = 2,
        .run = restart_run,
};
