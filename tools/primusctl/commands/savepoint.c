/* SPDX-License-Identifier: Apache-2.0 */
/* primusctl savepoint: where the data of a job stood, and jobs that go on from there. */
#include <inttypes.h>
#include <jansson.h>
#include <pwd.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/format.h"
#include "lib/json/get.h"
#include "tools/primusctl/bus/ask.h"
#include "tools/primusctl/cli/commands.h"
#include "tools/primusctl/commands/progress.h"
#include "tools/primusctl/commands/submit.h"
#include "tools/primusctl/view/table.h"

struct savepoint_options {
        bool kill, wait;
        const char *name;
        struct option_list env, secrets;
};

/* ---- create ---- */

static int create(struct cli *c, const void *options, char **args, size_t n) {
        const struct savepoint_options *o = options;
        _cleanup_(sd_bus_message_unref_p) sd_bus_message *m = NULL, *reply = NULL;
        const char *name;
        struct job_ref job;
        int r = cli_job(c, args[0], &job);

        if (!r)
                r = cli_job_call(c, &job, "CreateSavepoint", &m);
        if (!r && (sd_bus_message_append(m, "s", n > 1 ? args[1] : "") < 0 ||
                   sd_bus_message_append(m, "a{sv}", 1, "kill", "b", (int)o->kill) < 0))
                r = cli_fail(c, "not a savepoint's name: it is not UTF-8");
        if (!r)
                r = cli_call(c, m, &job, &reply);
        if (!r && sd_bus_message_read(reply, "s", &name) < 0)
                r = cli_bad_reply(c, -EBADMSG);
        if (r)
                return r;
        if (c->json)
                return cli_print_json(
                        c, json_pack("{s:s, s:I}", "savepoint", name, "job", (json_int_t)job.number));
        printf("Savepoint %s of job %" PRIu32 "%s\nGo on from it: primusctl savepoint restore %s\n", name,
               job.number, o->kill ? ", which is being killed" : "", name);
        return 0;
}

/* ---- list ---- */

static void show_savepoint(struct table *t, const json_t *s) {
        uint64_t partial = json_get_number(s, "partial"), failed = json_get_number(s, "failed");
        char time[TEXT_TIME_MAX], bytes[FORMAT_SIZE_MAX];
        struct passwd *pw = getpwuid((uint32_t)json_get_number(s, "owner"));

        table_set(t, 0, COLOR_BOLD, "%s", json_get_text(s, "name"));
        table_set(t, 1, COLOR_NONE, "%" PRIu64, json_get_number(s, "job"));
        table_set(t, 2, COLOR_NONE, "%s", json_get_text(s, "jobName"));
        table_set(t, 3, COLOR_NONE, "%s", pw ? pw->pw_name : "?");
        table_set(t, 4, COLOR_NONE, "%s",
                  text_time(json_get_number(s, "created"), now_real(), time, sizeof(time)));
        table_set(t, 5, COLOR_NONE, "%" PRIu64, json_get_number(s, "done"));
        table_set(t, 6, partial ? COLOR_NONE : COLOR_DIM, "%" PRIu64, partial);
        table_set(t, 7, failed ? COLOR_RED : COLOR_DIM, "%" PRIu64, failed);
        table_set(t, 8, COLOR_NONE, "%s", format_size(json_get_number(s, "acked"), bytes, sizeof(bytes)));
        table_set(t, 9, COLOR_NONE, "%" PRIu64, json_get_number(s, "records"));
}

static int list(struct cli *c, const void *options, char **args, size_t n) {
        static const struct table_column columns[] = {
                { "SAVEPOINT" },
                { "JOB", .right = true },
                { "NAME", .fills = true },
                { "OWNER" },
                { "CREATED" },
                { "TASKS DONE", .right = true },
                { "BEGUN", .right = true },
                { "FAILED", .right = true },
                { "BYTES", .right = true },
                { "RECORDS", .right = true },
        };
        _cleanup_(json_decref_p) json_t *savepoints = NULL;
        _cleanup_(table_free_p) struct table *t = NULL;
        const json_t *s;
        size_t i;
        int r = ask_manager_list(c, "ListSavepoints", &json_savepoint, &savepoints);

        (void)options;
        (void)args;
        (void)n;
        if (!r && c->json)
                return cli_print_json(c, TAKE_PTR(savepoints));
        if (!r)
                r = table_new(c, columns, ELEMENTSOF(columns), &t);
        if (r)
                return r;
        json_array_foreach (savepoints, i, s)
                if (table_row(t) >= 0)
                        show_savepoint(t, s);
        return table_print_or(c, t, "There is no savepoint");
}

/* ---- show ---- */

static json_t *read_manifest(sd_bus_message *m) {
        const void *text;
        size_t size;

        return sd_bus_message_read_array(m, 'y', &text, &size) < 0 ? NULL : json_loadb(text, size, 0, NULL);
}

static void print_clean(const char *label, const char *text) {
        _cleanup_free_ char *clean = strdup(text ? text : "");

        if (clean)
                text_clean(clean);
        printf("%s%s", label, clean ? clean : "");
}

static int show_text(struct cli *c, const char *name, const json_t *manifest) {
        _cleanup_(json_decref_p) json_t *savepoints = NULL;
        const json_t *sources = json_object_get(manifest, "sources"), *s = NULL;
        char time[TEXT_TIME_MAX], bytes[FORMAT_SIZE_MAX];
        int r = ask_manager_list(c, "ListSavepoints", &json_savepoint, &savepoints);

        if (r)
                return r;
        for (size_t i = 0; i < json_array_size(savepoints) && !s; i++)
                if (strcmp(json_get_text(json_array_get(savepoints, i), "name"), name) == 0)
                        s = json_array_get(savepoints, i);
        if (!s)
                return cli_fail(c, "there is no savepoint %s any more", name);
        print_clean("Savepoint ", name);
        printf(" of job %" PRIu64, json_get_number(s, "job"));
        print_clean(" (", json_get_text(s, "jobName"));
        printf("), created %s\n", text_time(json_get_number(s, "created"), now_real(), time, sizeof(time)));
        if (json_is_false(json_object_get(manifest, "complete")))
                puts("  some feeders did not answer in time: what they had acknowledged last is read again");
        printf("  %" PRIu64 " tasks done, %" PRIu64 " begun, %" PRIu64 " failed; %s acknowledged",
               json_get_number(s, "done"), json_get_number(s, "partial"), json_get_number(s, "failed"),
               format_size(json_get_number(s, "acked"), bytes, sizeof(bytes)));
        if (json_get_number(s, "records") > 0)
                printf(", %" PRIu64 " records", json_get_number(s, "records"));
        putchar('\n');
        for (size_t i = 0; i < json_array_size(sources); i++)
                print_clean(i == 0 ? "  sources: " : ", ", json_string_value(json_array_get(sources, i)));
        printf("%s\nGo on from it: primusctl savepoint restore %s\nAll of it: primusctl savepoint show "
               "--json %s\n",
               json_array_size(sources) > 0 ? "\n" : "", name, name);
        return 0;
}

static int show(struct cli *c, const void *options, char **args, size_t n) {
        _cleanup_(sd_bus_message_unref_p) sd_bus_message *m = NULL, *reply = NULL;
        json_t *manifest;
        int r = cli_manager_call(c, "GetSavepoint", &m);

        (void)options;
        (void)n;
        if (!r && sd_bus_message_append(m, "s", args[0]) < 0)
                r = cli_fail(c, "not a savepoint's name: it is not UTF-8");
        if (!r)
                r = cli_call(c, m, NULL, &reply);
        if (r)
                return r;
        manifest = read_manifest(reply);
        if (!manifest)
                return cli_bad_reply(c, -EBADMSG);
        if (c->json)
                return cli_print_json(c, manifest);
        r = show_text(c, args[0], manifest);
        json_decref(manifest);
        return r;
}

/* ---- restore, delete ---- */

static int restore(struct cli *c, const void *options, char **args, size_t n) {
        const struct savepoint_options *o = options;
        struct submission s = { .savepoint = args[0], .name = o->name, .env = o->env, .secrets = o->secrets };
        _cleanup_free_ char *name = NULL;
        struct job_ref job;
        int r;

        if (n > 1)
                r = submit_file(c, args[1], &s, &job, &name);
        else {
                s.config = "";
                r = submission_send(c, &s, &job);
        }
        if (!r)
                r = submit_announce(c, &job, name ?: o->name ?: "", false);
        return r || !o->wait ? r : progress_wait(c, &job, &(struct progress_options){ 0 });
}

static int delete (struct cli *c, const void *options, char **args, size_t n) {
        int worst = CLI_OK;

        (void)options;
        for (size_t i = 0; i < n; i++) {
                _cleanup_(sd_bus_message_unref_p) sd_bus_message *m = NULL, *reply = NULL;
                int r = cli_manager_call(c, "DeleteSavepoint", &m);

                if (!r && sd_bus_message_append(m, "s", args[i]) < 0)
                        r = cli_fail(c, "not a savepoint's name: it is not UTF-8");
                if (!r)
                        r = cli_call(c, m, NULL, &reply);
                if (r == CLI_UNREACHABLE || r == CLI_USAGE)
                        return r;
                if (r)
                        worst = r;
                else if (!c->json)
                        printf("Savepoint %s is deleted\n", args[i]);
        }
        return worst;
}

static int savepoint_run(struct cli *c, void *options, char **args, size_t n) {
        static const struct cli_verb verbs[] = {
                { "create", "JOB [NAME] [--kill]", 1, 2, create },
                { "list", "", 0, 0, list },
                { "show", "NAME", 1, 1, show },
                { "restore", "NAME [CONFIG] [--name=X] [--env=...] [--secret=...] [--wait]", 1, 2, restore },
                { "delete", "NAME...", 1, SIZE_MAX, delete },
        };
        const struct savepoint_options *o = options;
        const struct cli_verb *verb;
        int r = cli_verb_find(c, "savepoint", verbs, ELEMENTSOF(verbs), args, n, &verb);

        if (r)
                return r;
        if (o->kill && verb->run != create)
                return cli_usage(c, "--kill goes with create");
        if ((o->name || o->wait || o->env.n > 0 || o->secrets.n > 0) && verb->run != restore)
                return cli_usage(c, "--name, --env, --secret and --wait go with restore");
        return verb->run(c, o, args + 1, n - 1);
}

static const struct cli_option savepoint_options[] = {
        { "kill", 0, NULL, NULL, offsetof(struct savepoint_options, kill),
          "create: end the job with it; nothing counts behind it" },
        { "name", 0, "NAME", option_string, offsetof(struct savepoint_options, name),
          "restore: the new job's name" },
        { "env", 0, "NAME[=VALUE]", option_append, offsetof(struct savepoint_options, env),
          "restore: a variable for every executor, as of submit" },
        { "secret", 0, "NAME=FILE", option_append, offsetof(struct savepoint_options, secrets),
          "restore: a private file for every executor, as of submit" },
        { "wait", 'w', NULL, NULL, offsetof(struct savepoint_options, wait),
          "restore: show progress until the job ends, and return its status" },
        { 0 },
};

const struct command savepoint_command = {
        .name = "savepoint",
        .arguments = "create JOB [NAME] | list | show NAME | restore NAME [CONFIG] | delete NAME...",
        .help = "Keep where a job's data stands, and start jobs that go on from there",
        .details = "create: the job runs on, unless with --kill. Without a NAME it is called JOB-COUNT.\n"
                   "restore: a new job, of CONFIG or of the savepoint's own configuration, that reads what "
                   "the other\n"
                   "had not acknowledged. CONFIG must read the same data.",
        .options = savepoint_options,
        .options_size = sizeof(struct savepoint_options),
        .lists = { offsetof(struct savepoint_options, env) + 1,
                   offsetof(struct savepoint_options, secrets) + 1 },
        .min = 1,
        .max = SIZE_MAX,
        .run = savepoint_run,
};
