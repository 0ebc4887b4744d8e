/* SPDX-License-Identifier: Apache-2.0 */
/* primusctl validate and config: what a configuration says, without a master; or that of a job which is
 * there. */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <string.h>
#include <unistd.h>

#include "masterd/spec/layers.h"
#include "masterd/spec/spec.h"
#include "tools/primusctl/bus/pack.h"
#include "tools/primusctl/bus/site.h"
#include "tools/primusctl/bus/source.h"
#include "tools/primusctl/cli/commands.h"
#include "tools/primusctl/view/table.h"

static json_t *diagnostic_json(const struct diagnostic *d) {
        return json_pack("{s:s, s:I, s:I, s:s, s:s}", "severity",
                         d->severity == DIAGNOSTIC_ERROR ? "error" : "warning", "line", (json_int_t)d->line,
                         "column", (json_int_t)d->column, "path", d->path ? d->path : "", "message",
                         d->message);
}

/* Reads and parses; prints the diagnostics unless JSON is wanted. 0, CLI_FAILED. */
static int parse(const struct cli *c, const char *file, bool print, struct job_spec **ret,
                 struct diagnostics *d) {
        _cleanup_free_ char *text = NULL;
        size_t size;
        int r;

        r = source_read(c, file, &text, &size);
        if (r)
                return r;
        r = spec_parse(text, size, ret, d);
        if (r == -ENOMEM)
                return cli_oom(c);
        if (print)
                source_diagnostics(file, d);
        return r < 0 ? CLI_FAILED : 0;
}

/* What submit would have against its files[]; with list, as diagnostics there. */
static int check_files(const struct cli *c, const char *file, const struct job_spec *spec, json_t *list) {
        _cleanup_free_ char *directory = source_directory(file), *label = NULL;
        json_t *texts = list ? json_array() : NULL, *text;
        size_t i;
        int r;

        if (!directory ||
            (list ? asprintf(&label, "files[]") : asprintf(&label, "%s: error: files[]", file)) < 0) {
                label = NULL;
                json_decref(texts);
                return cli_oom(c);
        }
        cli_complaints_to(texts);
        r = bundle_check(c, label, directory, (const char *const *)spec->files, 0);
        cli_complaints_to(NULL);
        json_array_foreach (texts, i, text) {
                const char *message = json_string_value(text);

                (void)json_array_append_new(list, json_pack("{s:s, s:i, s:i, s:s, s:s}", "severity", "error",
                                                            "line", 0, "column", 0, "path", "files",
                                                            "message", message + strcspn(message, " ") + 1));
        }
        json_decref(texts);
        return r;
}

static int validate_run(struct cli *c, void *options, char **args, size_t n) {
        int worst = CLI_OK;
        json_t *all = c->json ? json_array() : NULL;

        (void)options;
        for (size_t i = 0; i < n; i++) {
                _cleanup_(spec_free_p) struct job_spec *spec = NULL;
                _cleanup_(diagnostics_done) struct diagnostics d = { 0 };
                json_t *list = c->json ? json_array() : NULL;
                int r = parse(c, args[i], !c->json, &spec, &d);

                if (!r && spec->n_files > 0)
                        r = check_files(c, args[i], spec, list);
                if (r)
                        worst = r;
                if (c->json) {
                        for (size_t k = 0; k < d.n; k++)
                                (void)json_array_append_new(list, diagnostic_json(&d.items[k]));
                        (void)json_array_append_new(all, json_pack("{s:s, s:b, s:o}", "file", args[i],
                                                                   "valid", r == 0, "diagnostics", list));
                } else if (!r)
                        printf("%s: good: %s, %zu role%s, %" PRIu32 " executor%s\n", args[i], spec->name,
                               spec->n_roles, spec->n_roles == 1 ? "" : "s", spec_executors(spec),
                               spec_executors(spec) == 1 ? "" : "s");
        }
        if (c->json && cli_print_json(c, all))
                return CLI_FAILED;
        return worst;
}

const struct command validate_command = {
        .name = "validate",
        .arguments = "FILE...",
        .help = "Check configurations without submitting them",
        .details = "Prints FILE:LINE:COLUMN: error|warning: KEY: what it is, for everything that is found, "
                   "also with "
                   "the files\nthat would be sent along. Needs no master.",
        .min = 1,
        .max = SIZE_MAX,
        .run = validate_run,
};

static int print_text(const struct cli *c, const char *text, size_t n) {
        if (fwrite(text, 1, n, stdout) != n || (n > 0 && text[n - 1] != '\n' && putchar('\n') == EOF) ||
            fflush(stdout) == EOF)
                return cli_fail(c, "cannot write to standard output: %s", strerror(errno));
        return CLI_OK;
}

/* Beside the configuration, which may be piped on. */
static void say_version(struct cli *c, const struct job_ref *job) {
        _cleanup_(sd_bus_message_unref_p) sd_bus_message *reply = NULL;
        uint64_t version;

        if (sd_bus_get_property(c->bus, MASTER_NAME, job->path, MASTER_JOB, "Version", NULL, &reply, "t") >=
                    0 &&
            sd_bus_message_read_basic(reply, 't', &version) >= 0)
                cli_note("Job %" PRIu32 " is at version %" PRIu64, job->number, version);
}

/* One that is piped on would set variables to this. */
static void say_masked(struct cli *c, const struct job_ref *job, const void *config, size_t n) {
        static const char mask[] = "\"" SPEC_MASK "\"";
        _cleanup_(sd_bus_message_unref_p) sd_bus_message *reply = NULL;
        uint32_t owner;

        if (getuid() != 0 && memmem(config, n, mask, sizeof(mask) - 1) &&
            sd_bus_get_property(c->bus, MASTER_NAME, job->path, MASTER_JOB, "Owner", NULL, &reply, "u") >=
                    0 &&
            sd_bus_message_read_basic(reply, 'u', &owner) >= 0 && owner != getuid())
                cli_note("Values of variables are its owner's to see, and " SPEC_MASK " here");
}

static int config_of_job(struct cli *c, const char *text) {
        _cleanup_(sd_bus_message_unref_p) sd_bus_message *m = NULL, *reply = NULL;
        struct job_ref job;
        const void *config;
        json_t *json;
        size_t n;
        int r = cli_job(c, text, &job);

        if (!r)
                r = cli_job_call(c, &job, "GetConfig", &m);
        if (!r)
                r = cli_call(c, m, &job, &reply);
        if (r)
                return r;
        r = sd_bus_message_read_array(reply, 'y', &config, &n);
        if (r < 0)
                return cli_bad_reply(c, r);
        say_version(c, &job);
        say_masked(c, &job, config, n);
        json = json_loadb(config, n, 0, NULL);
        return json ? cli_print_json(c, json) : print_text(c, config, n);
}

/* ---- where values come from ---- */

struct config_options {
        bool origin;
};

struct origins {
        struct cli *cli;
        const char *file;
        struct table *table;
        json_t *list;
};

static int tell_origin(const char *path, const char *value, const char *from, void *userdata) {
        struct origins *o = userdata;
        _cleanup_free_ char *site = NULL;
        const char *text = !from ? o->file : "built in";

        if (from && *from) {
                if (asprintf(&site, "job-defaults.d/%s", from) < 0) {
                        site = NULL;
                        return -ENOMEM;
                }
                text = site;
        }
        if (o->list)
                return json_array_append_new(o->list,
                                             json_pack("{s:s, s:o, s:s, s:s*}", "key", path, "value",
                                                       json_loads(value, JSON_DECODE_ANY, NULL), "from",
                                                       !from   ? "file"
                                                       : *from ? "site"
                                                               : "built in",
                                                       "file", !from || *from ? text : NULL)) < 0
                               ? -ENOMEM
                               : 0;
        if (table_row(o->table) < 0)
                return -ENOMEM;
        table_set(o->table, 0, COLOR_NONE, "%s", path);
        table_set(o->table, 1, from && !*from ? COLOR_DIM : COLOR_NONE, "%s", value);
        table_set(o->table, 2, from && !*from ? COLOR_DIM : from ? COLOR_YELLOW : COLOR_NONE, "%s", text);
        return 0;
}

static int show_origins(struct cli *c, const char *file, const char *text, size_t size,
                        const struct layers *l, const struct job_spec *spec) {
        static const struct table_column columns[] = { { "KEY", false, false },
                                                       { "VALUE", false, true },
                                                       { "FROM", false, false } };
        _cleanup_(table_free_p) struct table *table = NULL;
        struct origins o = { c, file };
        int r;

        if (c->json)
                o.list = json_array();
        else if ((r = table_new(c, columns, ELEMENTSOF(columns), &table)))
                return r;
        o.table = table;
        if (layers_origins(l, NULL, text, size, spec, tell_origin, &o) < 0) {
                json_decref(o.list);
                return cli_oom(c);
        }
        return c->json ? cli_print_json(c, o.list) : table_print(c, table);
}

static int origin_run(struct cli *c, const char *file) {
        _cleanup_(spec_free_p) struct job_spec *spec = NULL;
        _cleanup_(diagnostics_done) struct diagnostics d = { 0 };
        _cleanup_(layers_free_p) struct layers *l = NULL;
        _cleanup_free_ char *text = NULL, *why = NULL;
        size_t size;
        int r;

        r = source_read(c, file, &text, &size);
        if (!r)
                r = site_layers(c, &l);
        if (r)
                return r;
        r = spec_parse_layered(text, size, l, NULL, &spec, &d);
        if (r == -ENOMEM)
                return cli_oom(c);
        source_diagnostics(file, &d);
        if (r < 0)
                return CLI_FAILED;
        r = layers_check(l, spec, &why);
        if (r == -EBADMSG && why)
                return cli_complain("%s: error: %s", file, why);
        return r < 0 ? cli_oom(c) : show_origins(c, file, text, size, l, spec);
}

static int config_run(struct cli *c, void *options, char **args, size_t n) {
        const struct config_options *o = options;
        _cleanup_(spec_free_p) struct job_spec *spec = NULL;
        _cleanup_(diagnostics_done) struct diagnostics d = { 0 };
        _cleanup_free_ char *text = NULL;
        uint32_t number, index;
        int r;

        (void)n;
        if (o->origin)
                return origin_run(c, args[0]);
        if ((job_number_parse(args[0], &number) || element_parse(args[0], &number, &index)) &&
            access(args[0], F_OK) < 0)
                return config_of_job(c, args[0]);
        r = parse(c, args[0], true, &spec, &d);
        if (r)
                return r;
        if (spec_effective(spec, &text) < 0)
                return cli_oom(c);
        return print_text(c, text, strlen(text));
}

static const struct cli_option config_options[] = {
        { "origin", 0, NULL, NULL, offsetof(struct config_options, origin),
          "of a file: where each value comes from, with the master's job-defaults.d" },
        { 0 },
};

const struct command config_command = {
        .name = "config",
        .arguments = "[--origin] FILE|JOB",
        .help = "Show the effective configuration of a file or a job, every default written out",
        .options = config_options,
        .options_size = sizeof(struct config_options),
        .min = 1,
        .max = 1,
        .run = config_run,
};
