/* SPDX-License-Identifier: Apache-2.0 */
/* primusctl submit. Invariant: standard output says "Submitted job N" only when the master has the job on
 * disk. */
#include "tools/primusctl/commands/submit.h"

#include <inttypes.h>
#include <jansson.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/file.h"
#include "lib/base/format.h"
#include "lib/base/names.h"
#include "lib/base/when.h"
#include "lib/json/replies.h"
#include "masterd/spec/spec.h"
#include "tools/primusctl/bus/pack.h"
#include "tools/primusctl/bus/source.h"
#include "tools/primusctl/cli/commands.h"
#include "tools/primusctl/cli/text.h"
#include "tools/primusctl/commands/model.h"
#include "tools/primusctl/commands/progress.h"
#include "tools/primusctl/commands/script.h"
#include "tools/primusctl/commands/why.h"

#define SECRET_MAX (64u << 10)

static int append_string_option(sd_bus_message *m, const char *key, const char *value) {
        return value ? sd_bus_message_append(m, "{sv}", key, "s", value) : 0;
}

static int append_bytes(sd_bus_message *m, const char *s) {
        return sd_bus_message_append_array(m, 'y', s, strlen(s));
}

static int append_cwd(sd_bus_message *m, const char *cwd) {
        int r;

        if (!cwd)
                return 0;
        r = sd_bus_message_open_container(m, 'e', "sv");
        if (r >= 0)
                r = sd_bus_message_append(m, "s", "cwd");
        if (r >= 0)
                r = sd_bus_message_open_container(m, 'v', "ay");
        if (r >= 0)
                r = append_bytes(m, cwd);
        if (r >= 0)
                r = sd_bus_message_close_container(m);
        return r < 0 ? r : sd_bus_message_close_container(m);
}

static int append_env(sd_bus_message *m, const struct option_list *env) {
        int r;

        if (env->n == 0)
                return 0;
        r = sd_bus_message_open_container(m, 'e', "sv");
        if (r >= 0)
                r = sd_bus_message_append(m, "s", "env");
        if (r >= 0)
                r = sd_bus_message_open_container(m, 'v', "aay");
        if (r >= 0)
                r = sd_bus_message_open_container(m, 'a', "ay");
        for (size_t i = 0; r >= 0 && i < env->n; i++) {
                _cleanup_free_ char *own = NULL;
                const char *value;

                if (strchr(env->items[i], '=')) {
                        r = append_bytes(m, env->items[i]);
                        continue;
                }
                value = getenv(env->items[i]); /* unset here: unset there */
                if (!value)
                        continue;
                if (asprintf(&own, "%s=%s", env->items[i], value) < 0) {
                        own = NULL;
                        r = -ENOMEM;
                } else
                        r = append_bytes(m, own);
        }
        for (int i = 0; r >= 0 && i < 3; i++)
                r = sd_bus_message_close_container(m);
        return r;
}

static int check_env(const struct cli *c, const struct option_list *env) {
        for (size_t i = 0; i < env->n; i++) {
                _cleanup_free_ char *name = strndup(env->items[i], strcspn(env->items[i], "="));

                if (!name)
                        return cli_oom(c);
                if (!env_name_valid(name))
                        return cli_usage(c, "--env: not a variable's name: %s", name);
        }
        return 0;
}

/* NAME=FILE of each secret, checked and read here, so that a missing file is found before anything is sent.
 */
static int append_secrets(const struct cli *c, sd_bus_message *m, const struct option_list *secrets) {
        int r, status = 0;

        if (secrets->n == 0)
                return 0;
        r = sd_bus_message_open_container(m, 'e', "sv");
        if (r >= 0)
                r = sd_bus_message_append(m, "s", "secrets");
        if (r >= 0)
                r = sd_bus_message_open_container(m, 'v', "a(say)");
        if (r >= 0)
                r = sd_bus_message_open_container(m, 'a', "(say)");
        for (size_t i = 0; r >= 0 && !status && i < secrets->n; i++) {
                const char *equals = strchr(secrets->items[i], '=');
                _cleanup_free_ char *name = NULL, *content = NULL;
                size_t size = 0;

                if (!equals || equals == secrets->items[i] || !equals[1])
                        return cli_usage(c, "--secret: expected NAME=FILE, not '%s'", secrets->items[i]);
                name = strndup(secrets->items[i], (size_t)(equals - secrets->items[i]));
                if (!name)
                        return cli_oom(c);
                if (!env_name_valid(name))
                        return cli_usage(c, "--secret: not a name (letters, digits, _): %s", name);
                r = read_file(equals + 1, SECRET_MAX, &content, &size);
                if (r < 0)
                        return cli_fail(c, "--secret %s: %s: %s", name, equals + 1,
                                        r == -EFBIG ? "larger than 64 KiB" : strerror(-r));
                r = sd_bus_message_open_container(m, 'r', "say");
                if (r >= 0)
                        r = sd_bus_message_append(m, "s", name);
                if (r >= 0)
                        r = sd_bus_message_append_array(m, 'y', content, size);
                if (r >= 0)
                        r = sd_bus_message_close_container(m);
                explicit_bzero(content, size);
        }
        for (int i = 0; r >= 0 && i < 3; i++)
                r = sd_bus_message_close_container(m);
        return r < 0 ? cli_fail(c, "cannot make a call: %s", strerror(-r)) : status;
}

int submission_append_private(struct cli *c, sd_bus_message *m, const struct option_list *env,
                              const struct option_list *secrets) {
        int r, status = check_env(c, env);

        if (status)
                return status;
        r = append_env(m, env);
        return r < 0 ? cli_fail(c, "cannot make a call: %s", strerror(-r)) : append_secrets(c, m, secrets);
}

/* "12,13:any" of each --after is two entries. */
static int append_after(sd_bus_message *m, const struct option_list *after) {
        int r;

        if (after->n == 0)
                return 0;
        r = sd_bus_message_open_container(m, 'e', "sv");
        if (r >= 0)
                r = sd_bus_message_append(m, "s", "after");
        if (r >= 0)
                r = sd_bus_message_open_container(m, 'v', "as");
        if (r >= 0)
                r = sd_bus_message_open_container(m, 'a', "s");
        for (size_t i = 0; r >= 0 && i < after->n; i++) {
                _cleanup_free_ char *copy = strdup(after->items[i]);
                char *rest = copy, *entry;

                if (!copy)
                        return -ENOMEM;
                while (r >= 0 && (entry = strsep(&rest, ",")))
                        r = sd_bus_message_append_basic(m, 's', entry);
        }
        for (int i = 0; r >= 0 && i < 3; i++)
                r = sd_bus_message_close_container(m);
        return r;
}

/* masterd may be started again before it has answered: under the same key it gives the same job then. */
static int append_key(sd_bus_message *m, const char *key) {
        char own[SD_ID128_STRING_MAX];
        sd_id128_t id;
        int r = 0;

        if (!key)
                r = sd_id128_randomize(&id);
        return r < 0 ? r : append_string_option(m, "key", key ?: sd_id128_to_string(id, own));
}

static int append_start(const struct cli *c, sd_bus_message *m, const struct submission *s) {
        char text[FORMAT_TIME_MAX];
        uint64_t begin;
        int r = append_after(m, &s->after);

        if (r >= 0)
                r = turn_append(m, &s->turn);

        if (r >= 0)
                r = append_string_option(m, "array", s->array);
        if (r >= 0 && s->begin) {
                if (when_parse(s->begin, now_real(), &begin) < 0)
                        return cli_usage(c,
                                         "--begin: expected a time such as 08:00, \"tomorrow 08:00\", +2h or "
                                         "2026-01-31T08:00:00Z, not '%s'",
                                         s->begin);
                if (begin < usec_sub(now_real(), 60 * USEC_PER_SEC))
                        return cli_usage(c, "--begin: %s is over", format_time(begin, text, sizeof(text)));
                r = append_string_option(m, "begin", format_time(begin, text, sizeof(text)));
        }
        return r < 0 ? cli_fail(c, "cannot make a call: %s", strerror(-r)) : 0;
}

static int build(struct cli *c, const struct submission *s, sd_bus_message **ret) {
        _cleanup_(sd_bus_message_unref_p) sd_bus_message *m = NULL;
        int r, status;

        status = cli_manager_call(c, s->trial ? "TrySubmit" : "Submit", &m);
        if (status)
                return status;
        r = sd_bus_message_append_array(m, 'y', s->config, s->config_size);
        if (r >= 0)
                r = sd_bus_message_open_container(m, 'a', "{sv}");
        if (r >= 0)
                r = append_string_option(m, "name", s->name);
        if (r >= 0)
                r = append_string_option(m, "bundle", s->bundle);
        if (r >= 0)
                r = append_string_option(m, "savepoint", s->savepoint);
        r = r < 0 || s->trial ? r : append_key(m, s->key);
        if (r >= 0)
                r = append_cwd(m, s->cwd);
        if (r >= 0) {
                status = append_start(c, m, s);
                if (!status)
                        status = submission_append_private(c, m, &s->env, &s->secrets);
                if (status)
                        return status;
                r = sd_bus_message_close_container(m);
        }
        if (r < 0)
                return cli_fail(c, "cannot make a call: %s", strerror(-r));
        sd_bus_message_sensitive(m);
        *ret = TAKE_PTR(m);
        return 0;
}

int submission_answer(struct cli *c, sd_bus_message *reply, const char *label, struct job_ref *ret) {
        const char *path, *warning;
        uint32_t number;
        int r;

        r = sd_bus_message_read(reply, "uo", &number, &path);
        if (r >= 0)
                r = sd_bus_message_enter_container(reply, 'a', "s");
        if (r < 0 || strlen(path) >= sizeof(ret->path))
                return cli_bad_reply(c, r < 0 ? r : -EBADMSG);
        while ((r = sd_bus_message_read(reply, "s", &warning)) > 0)
                source_warning(label ? label : c->program, warning);
        if (r < 0)
                return cli_bad_reply(c, r);
        ret->number = number;
        strcpy(ret->path, path);
        return 0;
}

/* masterd says one error, the one that it judges by; here are all, of which it is one where the versions are
 * the same. */
static int say_all(const struct submission *s, const char *message) {
        _cleanup_free_ char *first = diagnostic_format(diagnostics_first_error(s->diagnostics));

        if (first && message && strcmp(first, message) != 0)
                cli_complain("%s:%s", s->label, message);
        source_diagnostics(s->label, s->diagnostics);
        return CLI_FAILED;
}

static int trial_answer(struct cli *c, sd_bus_message *reply, const char *label) {
        _cleanup_(json_decref_p) json_t *trial = NULL, *warnings = NULL;
        json_t *x;
        size_t i;
        int r = json_read_any(reply, &warnings);

        r = r < 0 ? r : json_read_object(reply, &json_trial, !c->json, &trial);
        if (r < 0)
                return r == -ENOMEM ? cli_oom(c) : cli_bad_reply(c, r);
        if (c->json)
                return json_object_set(trial, "warnings", warnings) < 0 ? cli_oom(c)
                                                                        : cli_print_json(c, TAKE_PTR(trial));
        json_array_foreach (warnings, i, x)
                source_warning(label ? label : c->program, json_string_value(x));
        trial_print(trial);
        return fflush(stdout) == EOF ? cli_fail(c, "cannot write to standard output: %s", strerror(errno))
                                     : 0;
}

int submission_send(struct cli *c, const struct submission *s, struct job_ref *ret) {
        _cleanup_(sd_bus_message_unref_p) sd_bus_message *m = NULL, *reply = NULL;
        _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
        int r, status;

        status = build(c, s, &m);
        if (status)
                return status;
        r = cli_send(c, m, &error, &reply);
        if (r < 0 && sd_bus_error_has_name(&error, SD_BUS_ERROR_NO_REPLY)) {
                cli_fail(c, "masterd was stopped or started again before it answered; 'primusctl list' shows "
                            "whether it has the "
                            "job");
                return CLI_UNREACHABLE;
        }
        if (r < 0 && s->diagnostics && s->diagnostics->n_errors > 0 &&
            sd_bus_error_has_name(&error, MASTER_ERROR_BAD_CONFIG))
                return say_all(s, error.message);
        if (r < 0)
                return cli_call_failed(c, &error, r, s->label, NULL);
        return s->trial ? trial_answer(c, reply, s->label) : submission_answer(c, reply, s->label, ret);
}

int submit_file(struct cli *c, const char *file, const struct submission *options, struct job_ref *ret,
                char **ret_name) {
        _cleanup_free_ char *text = NULL, *directory = NULL, *label = NULL;
        _cleanup_(diagnostics_done) struct diagnostics d = { 0 };
        _cleanup_(spec_free_p) struct job_spec *spec = NULL;
        _cleanup_(bundle_done) struct bundle bundle = { .fd = -EBADF };
        struct submission s = *options;
        const char *name;
        size_t size;
        int r;

        r = source_read(c, file, &text, &size);
        if (r)
                return r;
        if (options->arguments && script_is(text, size))
                return script_submit(c, file, text, options->arguments, options, ret, ret_name);
        if (options->arguments && options->arguments[0])
                return cli_usage(c, "arguments are for scripts, which begin with '#!'; %s describes a job",
                                 file);
        /* The master judges; what is read here is the list of files to send, and the name for the answer. */
        if (spec_parse(text, size, &spec, &d) == -ENOMEM)
                return cli_oom(c);
        if (spec && spec->n_files > 0) {
                directory = source_directory(file);
                if (!directory || asprintf(&label, "%s: files[]", file) < 0) {
                        label = NULL;
                        return cli_oom(c);
                }
                r = bundle_pack(c, label, directory, (const char *const *)spec->files, s.send_max, &bundle);
                if (!r && !s.trial)
                        r = bundle_upload(c, &bundle);
                if (r)
                        return r;
                s.bundle = s.trial ? NULL : bundle.sha256;
        }
        s.label = file;
        s.config = text;
        s.config_size = size;
        s.diagnostics = &d;
        r = submission_send(c, &s, ret);
        if (r)
                return r;
        name = s.name ? s.name : spec ? spec->name : "";
        *ret_name = strdup(name);
        return *ret_name ? 0 : cli_oom(c);
}

int submit_announce(const struct cli *c, const struct job_ref *job, const char *name, bool parsable) {
        _cleanup_free_ char *clean = strdup(name);

        if (c->json)
                return cli_print_json(c, json_pack("{s:I, s:s, s:s}", "job", (json_int_t)job->number, "name",
                                                   name, "path", job->path));
        if (!clean)
                return cli_oom(c);
        text_clean(clean);
        if (parsable)
                printf("%" PRIu32 "\n", job->number);
        else if (*clean)
                printf("Submitted job %" PRIu32 " (%s)\n", job->number, clean);
        else
                printf("Submitted job %" PRIu32 "\n", job->number);
        return fflush(stdout) == EOF ? cli_fail(c, "cannot write to standard output: %s", strerror(errno))
                                     : 0;
}

struct submit_options {
        bool wait, logs, parsable, trial;
        const char *name, *follow, *array, *begin, *key, *from;
        uint64_t send_max;
        struct option_list env, secrets, after;
        struct turn_options turn;
};

/* Adds where the job begins to its variables; *ret is what they point to. */
static int begin_from(struct cli *c, const char *from, bool pin, struct option_list *env, char **ret) {
        _cleanup_free_ char *path = NULL;
        const char *why;
        int r = model_source(c, from, pin, &path);

        if (r)
                return r;
        if (asprintf(ret, "PRIMUS_FROM=%s", path) < 0) {
                *ret = NULL;
                return cli_oom(c);
        }
        return option_append(*ret, env, &why) < 0 ? cli_oom(c) : 0;
}

static int submit_run(struct cli *c, void *options, char **args, size_t n) {
        struct submit_options *o = options;
        struct submission s = { .name = o->name,
                                .after = o->after,
                                .array = o->array,
                                .arguments = args + 1,
                                .begin = o->begin,
                                .key = o->key,
                                .trial = o->trial,
                                .send_max = o->send_max,
                                .turn = o->turn,
                                .env = o->env,
                                .secrets = o->secrets };
        _cleanup_free_ char *name = NULL, *from = NULL;
        struct job_ref job;
        int r;

        (void)n;
        if ((o->follow || o->logs) && !o->wait)
                return cli_usage(c, "--follow and --logs go with --wait");
        if (o->parsable && c->json)
                return cli_usage(c, "--parsable and --json exclude each other");
        if (o->trial && (o->wait || o->parsable || o->key))
                return cli_usage(c,
                                 "--dry-run submits nothing: --wait, --parsable and --key do not go with it");
        r = o->from ? begin_from(c, o->from, !o->trial, &s.env, &from) : 0;
        o->env = s.env; /* who frees it */
        if (!r)
                r = submit_file(c, args[0], &s, &job, &name);
        if (r || o->trial)
                return r;
        r = submit_announce(c, &job, name, o->parsable);
        if (r || !o->wait)
                return r;
        return progress_wait(c, &job, &(struct progress_options){ .role = o->follow, .logs = o->logs });
}

static const struct cli_option submit_options[] = {
        { "wait", 'w', NULL, NULL, offsetof(struct submit_options, wait),
          "show progress until the job ends and return its status" },
        { "follow", 0, "ROLE[/INDEX]", option_string, offsetof(struct submit_options, follow),
          "with --wait: show this role's output above the progress" },
        { "logs", 0, NULL, NULL, offsetof(struct submit_options, logs),
          "with --wait: show everyone's output" },
        { "name", 0, "NAME", option_string, offsetof(struct submit_options, name),
          "instead of the configuration's name" },
        { "time", 't', "T", option_string, offsetof(struct submit_options, turn.time),
          "stop the job after T, such as 2h or 01:30:00" },
        TURN_OPTIONS(submit_options, turn),
        { "after", 0, "JOB[:ok|fail|any]", option_append, offsetof(struct submit_options, after),
          "start when that job has ended: well (ok), not well (fail), in any way" },
        { "begin", 0, "TIME", option_string, offsetof(struct submit_options, begin),
          "not before, such as 08:00, \"tomorrow 08:00\", +2h" },
        { "array", 0, "RANGE[%N]", option_string, offsetof(struct submit_options, array),
          "once for each index, such as 0-99%8 (8 at a time) or 1,3,7-9" },
        { "from", 0, "MODEL|CHECKPOINT|PATH", option_string, offsetof(struct submit_options, from),
          "begin from that checkpoint, which the program finds in PRIMUS_FROM" },
        { "env", 0, "NAME[=VALUE]", option_append, offsetof(struct submit_options, env),
          "a variable for every executor; without a value, the caller's" },
        { "secret", 0, "NAME=FILE", option_append, offsetof(struct submit_options, secrets),
          "a private file $PRIMUS_SECRETS_DIR/NAME for every executor" },
        { "send-max", 0, "SIZE", option_size, offsetof(struct submit_options, send_max),
          "send files of up to so many bytes (512M)" },
        { "dry-run", 'n', NULL, NULL, offsetof(struct submit_options, trial),
          "submit nothing: say whether it would start now, or what it would wait for" },
        { "key", 0, "KEY", option_string, offsetof(struct submit_options, key),
          "the same again under the same KEY within a day is the same job" },
        { "parsable", 0, NULL, NULL, offsetof(struct submit_options, parsable),
          "print the job's number alone" },
        { 0 },
};

const struct command submit_command = {
        .name = "submit",
        .arguments = "[OPTIONS] FILE [ARGUMENT...]",
        .help = "Submit the job that FILE describes",
        .details = "FILE is JSON, or YAML where its name ends so, see primus-job(5); '-' reads JSON from "
                   "standard input.\n"
                   "Files that it lists in files[] are sent along. Or FILE is a script, with lines in its "
                   "head such as\n"
                   "'#PRIMUS --ntasks=4 --time=1h' (the options of run): it is sent along and runs here with "
                   "the\n"
                   "arguments, '--' before its own options. With --wait the exit status is the job's: 0 "
                   "succeeded,\n"
                   "1 failed, 3 killed.",
        .options = submit_options,
        .options_size = sizeof(struct submit_options),
        .lists = { offsetof(struct submit_options, env) + 1, offsetof(struct submit_options, secrets) + 1,
                   offsetof(struct submit_options, after) + 1 },
        .min = 1,
        .max = SIZE_MAX,
        .run = submit_run,
};
