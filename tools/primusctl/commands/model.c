/* SPDX-License-Identifier: Apache-2.0 */
/* primusctl model: checkpoints under a name, and what a job begins from. */
#include "tools/primusctl/commands/model.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/parse.h"
#include "lib/json/get.h"
#include "tools/primusctl/bus/ask.h"
#include "tools/primusctl/cli/commands.h"
#include "tools/primusctl/commands/checkpoints.h"
#include "tools/primusctl/view/table.h"

struct model_options {
        const char *note;
        struct option_list labels;
};

/* "digits@3": the name and 3; "digits": 0. */
static int read_model_name(struct cli *c, const char *text, char **ret_name, uint32_t *ret_version) {
        const char *at = strrchr(text, '@');
        char *name = at ? strndup(text, (size_t)(at - text)) : strdup(text);

        *ret_version = 0;
        if (!name)
                return cli_oom(c);
        if (!at || parse_u32(at + 1, 1, UINT32_MAX, ret_version) >= 0) {
                *ret_name = name;
                return 0;
        }
        free(name);
        return cli_usage(c, "not a version of a model: %s (NAME@3 is one)", text);
}

static int ask_models(struct cli *c, const char *name, json_t **ret) {
        _cleanup_(sd_bus_message_unref_p) sd_bus_message *m = NULL;
        int r = cli_manager_call(c, "ListModels", &m);

        if (!r && sd_bus_message_append(m, "s", name) < 0)
                r = cli_fail(c, "not a model's name: it is not UTF-8");
        return r ? r : ask_list(c, m, NULL, &json_model, ret);
}

/* ---- what a job begins from ---- */

static int find_model(struct cli *c, const char *from, char **ret) {
        _cleanup_(json_decref_p) json_t *models = NULL;
        _cleanup_free_ char *name = NULL;
        const json_t *x, *found = NULL;
        uint32_t version;
        size_t i;
        int r = read_model_name(c, from, &name, &version);

        if (!r)
                r = ask_models(c, name, &models);
        if (r)
                return r;
        json_array_foreach (models, i, x)
                if (version ? json_get_number(x, "version") == version
                            : !json_is_true(json_object_get(x, "archived")) &&
                                      json_get_number(x, "version") > json_get_number(found, "version"))
                        found = x;
        if (!found)
                return cli_fail(c, "there is no model %s; 'primusctl model list' shows yours", from);
        if (json_is_true(json_object_get(found, "gone")))
                return cli_fail(c, "the checkpoint of model %s, version %" PRIu64 ", is gone: %s", name,
                                json_get_number(found, "version"), json_get_text(found, "path"));
        *ret = strdup(json_get_text(found, "path"));
        return *ret ? 0 : cli_oom(c);
}

/* The first behind the number before it. */
static int find_checkpoint(struct cli *c, uint64_t id, char **ret) {
        _cleanup_(json_decref_p) json_t *some = NULL;
        const json_t *x;
        int r = checkpoints_some(c, 0, id - 1, &some);

        if (r)
                return r;
        x = json_array_get(some, 0);
        if (!x || json_get_number(x, "checkpoint") != id)
                return cli_fail(
                        c, "there is no checkpoint %" PRIu64 "; 'primusctl checkpoints list' shows yours",
                        id);
        *ret = strdup(json_get_text(x, "path"));
        return *ret ? 0 : cli_oom(c);
}

static int pin_source(struct cli *c, uint64_t id) {
        int r = checkpoint_pin(c, id, true);

        if (!r)
                fprintf(stderr, "Checkpoint %" PRIu64 " is pinned: a job begins from it\n", id);
        return r;
}

int model_source(struct cli *c, const char *from, bool pin, char **ret) {
        uint64_t id;
        int r;

        if (*from == '/' || strncmp(from, "s3://", 5) == 0) {
                *ret = strdup(from);
                return *ret ? 0 : cli_oom(c);
        }
        if (parse_u64(from, 1, UINT64_MAX, &id) < 0)
                return find_model(c, from, ret);
        r = find_checkpoint(c, id, ret);
        if (!r && pin)
                r = pin_source(c, id);
        if (r) {
                free(*ret);
                *ret = NULL;
        }
        return r;
}

/* ---- list ---- */

static void put_model(struct table *t, const json_t *x) {
        const json_t *value = json_object_get(x, "value");

        table_set(t, 0, COLOR_BOLD, "%s@%" PRIu64, json_get_text(x, "name"), json_get_number(x, "version"));
        table_set(t, 1, COLOR_NONE, "%" PRIu64, json_get_number(x, "checkpoint"));
        table_set(t, 2, COLOR_NONE, "%" PRIu64, json_get_number(x, "step"));
        if (json_is_number(value))
                table_set(t, 3, COLOR_NONE, "%s %.6g", json_get_text(x, "metric"), json_number_value(value));
        table_set_age(t, 4, json_get_number(x, "registered"));
        table_set(t, 5, COLOR_NONE, "%s",
                  json_is_true(json_object_get(x, "gone"))       ? "gone"
                  : json_is_true(json_object_get(x, "archived")) ? "archived"
                                                                 : "");
        table_set(t, 6, COLOR_NONE, "%s", json_get_text(x, "labels"));
        table_set(t, 7, COLOR_NONE, "%s", json_get_text(x, "note"));
        table_set(t, 8, COLOR_NONE, "%s", json_get_text(x, "path"));
}

static int list_models(struct cli *c, const void *options, char **args, size_t n) {
        static const struct table_column columns[] = {
                { "MODEL" },
                { "CHECKPOINT", .right = true },
                { "STEP", .right = true },
                { "METRIC" },
                { "REGISTERED", .right = true },
                { "STATE" },
                { "LABELS" },
                { "NOTE" },
                { "PATH", .fills = true },
        };
        _cleanup_(json_decref_p) json_t *models = NULL;
        _cleanup_(table_free_p) struct table *t = NULL;
        const json_t *x;
        size_t i;
        int r = ask_models(c, n > 0 ? args[0] : "", &models);

        (void)options;
        if (!r && c->json)
                return cli_print_json(c, TAKE_PTR(models));
        if (!r)
                r = table_new(c, columns, ELEMENTSOF(columns), &t);
        if (r)
                return r;
        json_array_foreach (models, i, x)
                if (table_row(t) >= 0)
                        put_model(t, x);
        return table_print_or(c, t, "There is no such model");
}

/* ---- register, edit ---- */

/* The note and the labels, as far as they were said; archived: not negative. */
static int append_words(struct cli *c, sd_bus_message *m, const struct model_options *o, int archived) {
        _cleanup_free_ char *labels = NULL;
        size_t size;
        FILE *f = open_memstream(&labels, &size);

        if (!f)
                return cli_oom(c);
        for (size_t i = 0; i < o->labels.n; i++)
                fprintf(f, "%s ", o->labels.items[i]);
        if (fclose(f) == EOF || sd_bus_message_open_container(m, 'a', "{sv}") < 0)
                return cli_oom(c);
        if ((o->note && sd_bus_message_append(m, "{sv}", "note", "s", o->note) < 0) ||
            (o->labels.n > 0 && sd_bus_message_append(m, "{sv}", "labels", "s", labels) < 0))
                return cli_fail(c, "a note and labels are UTF-8");
        return (archived >= 0 && sd_bus_message_append(m, "{sv}", "archived", "b", archived) < 0) ||
                               sd_bus_message_close_container(m) < 0
                       ? cli_oom(c)
                       : 0;
}

static int register_model(struct cli *c, const void *options, char **args, size_t n) {
        const struct model_options *o = options;
        _cleanup_(sd_bus_message_unref_p) sd_bus_message *m = NULL, *reply = NULL;
        uint32_t version;
        uint64_t id;
        int r = checkpoint_number(c, args[1], &id);

        (void)n;
        if (!r)
                r = cli_manager_call(c, "RegisterModel", &m);
        if (!r && sd_bus_message_append(m, "st", args[0], id) < 0)
                r = cli_fail(c, "not a model's name: it is not UTF-8");
        if (!r)
                r = append_words(c, m, o, -1);
        if (!r)
                r = cli_call(c, m, NULL, &reply);
        if (!r && sd_bus_message_read(reply, "u", &version) < 0)
                r = cli_bad_reply(c, -EBADMSG);
        if (r)
                return r;
        if (c->json)
                return cli_print_json(
                        c, json_pack("{s:s, s:I}", "name", args[0], "version", (json_int_t)version));
        printf("Model %s@%" PRIu32 "; begin from it: primusctl submit --from=%s@%" PRIu32 " FILE\n", args[0],
               version, args[0], version);
        return 0;
}

static int change_model(struct cli *c, const struct model_options *o, const char *text, int archived,
                        const char *says) {
        _cleanup_(sd_bus_message_unref_p) sd_bus_message *m = NULL, *reply = NULL;
        _cleanup_free_ char *name = NULL;
        uint32_t version;
        int r = read_model_name(c, text, &name, &version);

        if (!r)
                r = cli_manager_call(c, "EditModel", &m);
        if (!r && sd_bus_message_append(m, "su", name, version) < 0)
                r = cli_fail(c, "not a model's name: it is not UTF-8");
        if (!r)
                r = append_words(c, m, o, archived);
        if (!r)
                r = cli_call(c, m, NULL, &reply);
        if (!r && !c->json)
                printf("Model %s %s\n", text, says);
        return r;
}

static int edit_model(struct cli *c, const void *options, char **args, size_t n) {
        const struct model_options *o = options;
        (void)n;
        if (!o->note && o->labels.n == 0)
                return cli_usage(c, "edit takes --note or --label");
        return change_model(c, o, args[0], -1, "has other words");
}

static int archive_model(struct cli *c, const void *options, char **args, size_t n) {
        const struct model_options *o = options;
        (void)n;
        return change_model(c, o, args[0], 1, "is archived: it does not keep its checkpoint any more");
}

static int unarchive_model(struct cli *c, const void *options, char **args, size_t n) {
        const struct model_options *o = options;
        (void)n;
        return change_model(c, o, args[0], 0, "keeps its checkpoint");
}

static int model_run(struct cli *c, void *options, char **args, size_t n) {
        static const struct cli_verb verbs[] = {
                { "list", "[MODEL]", 0, 1, list_models },
                { "register", "MODEL CHECKPOINT [--note=TEXT] [--label=WORD...]", 2, 2, register_model },
                { "edit", "MODEL[@VERSION] [--note=TEXT] [--label=WORD...]", 1, 1, edit_model },
                { "archive", "MODEL[@VERSION]", 1, 1, archive_model },
                { "unarchive", "MODEL@VERSION", 1, 1, unarchive_model },
        };
        const struct model_options *o = options;
        const struct cli_verb *verb;
        int r = cli_verb_find(c, "model", verbs, ELEMENTSOF(verbs), args, n, &verb);

        if (r)
                return r;
        if ((o->note || o->labels.n > 0) && verb->run != register_model && verb->run != edit_model)
                return cli_usage(c, "--note and --label go with register and edit");
        return verb->run(c, o, args + 1, n - 1);
}

static const struct cli_option model_options[] = {
        { "note", 0, "TEXT", option_string, offsetof(struct model_options, note),
          "register, edit: one line about it" },
        { "label", 0, "WORD", option_append, offsetof(struct model_options, labels),
          "register, edit: a label; edit: in place of those that were" },
        { 0 },
};

const struct command model_command = {
        .name = "model",
        .arguments =
                "list [MODEL] | register MODEL CHECKPOINT | edit MODEL | archive MODEL | unarchive MODEL",
        .help = "Give checkpoints a name, a version each, from which jobs begin",
        .details =
                "MODEL is NAME, its latest version that is not archived, or NAME@VERSION. A version that is not\n"
                "archived keeps its checkpoint, as a pin does. Jobs begin from it: primusctl submit --from=MODEL.",
        .options = model_options,
        .options_size = sizeof(struct model_options),
        .lists = { offsetof(struct model_options, labels) + 1 },
        .min = 1,
        .max = SIZE_MAX,
        .run = model_run,
};
