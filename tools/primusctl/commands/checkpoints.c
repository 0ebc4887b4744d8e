/* SPDX-License-Identifier: Apache-2.0 */
/* primusctl checkpoints: those that trainers have told of; which of them stay. */
#include "tools/primusctl/commands/checkpoints.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/format.h"
#include "lib/base/parse.h"
#include "lib/json/get.h"
#include "tools/primusctl/bus/ask.h"
#include "tools/primusctl/cli/commands.h"
#include "tools/primusctl/view/table.h"

struct checkpoints_options {
        uint64_t best, trial_best, trial_latest; /* one more than was said; 0: nothing was */
        bool dry_run;
};

/* ---- list ---- */

int checkpoints_some(struct cli *c, uint32_t job, uint64_t after, json_t **ret) {
        _cleanup_(sd_bus_message_unref_p) sd_bus_message *m = NULL;
        int r = cli_manager_call(c, "ListCheckpoints", &m);

        if (!r && sd_bus_message_append(m, "ut", job, after) < 0)
                r = cli_oom(c);
        return r ? r : ask_list(c, m, NULL, &json_checkpoint, ret);
}

/* All of that job; 0: of all jobs. */
static int ask_checkpoints(struct cli *c, uint32_t job, json_t **ret) {
        _cleanup_(json_decref_p) json_t *all = json_array();
        uint64_t after = 0;
        size_t n;

        do { /* 1000 at most in an answer */
                _cleanup_(json_decref_p) json_t *some = NULL;
                int r = checkpoints_some(c, job, after, &some);

                if (r)
                        return r;
                n = json_array_size(some);
                if (!all || json_array_extend(all, some) < 0)
                        return cli_oom(c);
                after = json_get_number(json_array_get(some, n - 1), "checkpoint");
        } while (n > 0);
        *ret = TAKE_PTR(all);
        return 0;
}

static void put_checkpoint(struct table *t, const json_t *x) {
        char bytes[FORMAT_SIZE_MAX];
        const json_t *trial = json_object_get(x, "trial"), *value = json_object_get(x, "value");

        table_set(t, 0, COLOR_BOLD, "%" PRIu64, json_get_number(x, "checkpoint"));
        if (json_is_integer(trial))
                table_set(t, 1, COLOR_NONE, "%" PRIu64 "[%" PRIu64 "]", json_get_number(x, "job"),
                          json_get_number(x, "trial"));
        else
                table_set(t, 1, COLOR_NONE, "%" PRIu64, json_get_number(x, "job"));
        table_set(t, 2, COLOR_NONE, "%" PRIu64, json_get_number(x, "step"));
        if (json_is_number(value))
                table_set(t, 3, COLOR_NONE, "%s %.6g", json_get_text(x, "metric"), json_number_value(value));
        table_set(t, 4, COLOR_NONE, "%s", format_size(json_get_number(x, "bytes"), bytes, sizeof(bytes)));
        table_set_age(t, 5, json_get_number(x, "saved"));
        table_set(t, 6, COLOR_NONE, "%s",
                  json_is_true(json_object_get(x, "marked"))   ? "to be removed"
                  : json_is_true(json_object_get(x, "pinned")) ? "pinned"
                                                               : "");
        table_set(t, 7, COLOR_NONE, "%s", json_get_text(x, "host"));
        table_set(t, 8, COLOR_NONE, "%s", json_get_text(x, "path"));
}

static int show_checkpoints(struct cli *c, json_t *checkpoints, const char *none) {
        static const struct table_column columns[] = {
                { "CHECKPOINT", .right = true },
                { "JOB", .right = true },
                { "STEP", .right = true },
                { "METRIC" },
                { "SIZE", .right = true },
                { "SAVED", .right = true },
                { "STATE" },
                { "HOST" },
                { "PATH", .fills = true },
        };
        _cleanup_(table_free_p) struct table *t = NULL;
        const json_t *x;
        size_t i;
        int r;

        if (c->json)
                return cli_print_json(c, json_incref(checkpoints));
        r = table_new(c, columns, ELEMENTSOF(columns), &t);
        if (r)
                return r;
        json_array_foreach (checkpoints, i, x)
                if (table_row(t) >= 0)
                        put_checkpoint(t, x);
        return table_print_or(c, t, none);
}

static int list_checkpoints(struct cli *c, const void *options, char **args, size_t n) {
        _cleanup_(json_decref_p) json_t *checkpoints = NULL;
        struct job_ref job = {};
        int r = n > 0 ? cli_job(c, args[0], &job) : 0;

        (void)options;
        if (!r)
                r = ask_checkpoints(c, job.number, &checkpoints);
        return r ? r : show_checkpoints(c, checkpoints, "No trainer has told of a checkpoint");
}

/* ---- gc ---- */

static int by_id(const void *a, const void *b) {
        const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

        return (x > y) - (x < y);
}

static bool is_said(const json_t *x, const uint64_t *sorted, size_t n) {
        const uint64_t id = json_get_number(x, "checkpoint");

        return n > 0 && bsearch(&id, sorted, n, sizeof(id), by_id);
}

/* dry: those that would be marked; else all that are. */
static int pick_checkpoints(struct cli *c, const json_t *all, bool dry, const uint64_t *ids, size_t n,
                            json_t **ret) {
        _cleanup_free_ uint64_t *sorted = calloc(n + 1, sizeof(*sorted));
        json_t *picked = json_array(), *x;
        size_t i;

        if (!sorted || !picked) {
                json_decref(picked);
                return cli_oom(c);
        }
        for (i = 0; i < n; i++)
                sorted[i] = ids[i];
        qsort(sorted, n, sizeof(*sorted), by_id);
        json_array_foreach ((json_t *)(uintptr_t)all, i, x)
                if (dry ? is_said(x, sorted, n) : json_is_true(json_object_get(x, "marked")))
                        (void)json_array_append(picked, x);
        *ret = picked;
        return 0;
}

static int collect_call(struct cli *c, const struct checkpoints_options *o, uint32_t job,
                        sd_bus_message **ret) {
        const struct {
                const char *key;
                uint64_t value;
        } counts[] = { { "best", o->best },
                       { "trialBest", o->trial_best },
                       { "trialLatest", o->trial_latest } };
        sd_bus_message *m = NULL;
        int r = cli_manager_call(c, "CollectCheckpoints", &m);

        if (r)
                return r;
        *ret = m;
        if (sd_bus_message_append(m, "u", job) < 0 || sd_bus_message_open_container(m, 'a', "{sv}") < 0)
                return cli_oom(c);
        for (size_t i = 0; i < ELEMENTSOF(counts); i++)
                if (counts[i].value > 0 &&
                    sd_bus_message_append(m, "{sv}", counts[i].key, "u", (uint32_t)(counts[i].value - 1)) < 0)
                        return cli_oom(c);
        return sd_bus_message_append(m, "{sv}", "dryRun", "b", (int)o->dry_run) < 0 ||
                               sd_bus_message_close_container(m) < 0
                       ? cli_oom(c)
                       : 0;
}

static int collect_checkpoints(struct cli *c, const void *options, char **args, size_t n) {
        const struct checkpoints_options *o = options;
        _cleanup_(sd_bus_message_unref_p) sd_bus_message *m = NULL, *reply = NULL;
        _cleanup_(json_decref_p) json_t *all = NULL, *picked = NULL;
        const void *ids, *jobs;
        size_t size, n_jobs;
        struct job_ref job;
        int r = cli_job(c, args[0], &job);

        (void)n;
        if (!r)
                r = collect_call(c, o, job.number, &m);
        if (!r)
                r = cli_call(c, m, NULL, &reply);
        if (!r && (sd_bus_message_read_array(reply, 't', &ids, &size) < 0 ||
                   sd_bus_message_read_array(reply, 'u', &jobs, &n_jobs) < 0))
                r = cli_bad_reply(c, -EBADMSG);
        if (!r)
                r = ask_checkpoints(c, job.number, &all);
        if (!r)
                r = pick_checkpoints(c, all, o->dry_run, ids, size / sizeof(uint64_t), &picked);
        if (!r)
                r = show_checkpoints(c, picked, "Nothing is to be removed");
        for (size_t i = 0; !r && !c->json && i < n_jobs / sizeof(uint32_t); i++)
                printf("Job %" PRIu32 " removes them, as you\n", ((const uint32_t *)jobs)[i]);
        return r;
}

/* ---- one of them ---- */

int checkpoint_number(const struct cli *c, const char *text, uint64_t *ret) {
        return parse_u64(text, 1, UINT64_MAX, ret) < 0
                       ? cli_usage(c, "not a checkpoint's number: %s ('primusctl checkpoints list' has them)",
                                   text)
                       : 0;
}

int checkpoint_pin(struct cli *c, uint64_t id, bool pin) {
        _cleanup_(sd_bus_message_unref_p) sd_bus_message *m = NULL, *reply = NULL;
        int r = cli_manager_call(c, "PinCheckpoint", &m);

        if (!r && sd_bus_message_append(m, "tb", id, (int)pin) < 0)
                r = cli_oom(c);
        return r ? r : cli_call(c, m, NULL, &reply);
}

static int pin_one(struct cli *c, uint64_t id) {
        return checkpoint_pin(c, id, true);
}

static int unpin_one(struct cli *c, uint64_t id) {
        return checkpoint_pin(c, id, false);
}

static int forget_one(struct cli *c, uint64_t id) {
        _cleanup_(sd_bus_message_unref_p) sd_bus_message *m = NULL, *reply = NULL;
        int r = cli_manager_call(c, "ForgetCheckpoint", &m);

        if (!r && sd_bus_message_append(m, "t", id) < 0)
                r = cli_oom(c);
        return r ? r : cli_call(c, m, NULL, &reply);
}

/* One that is refused does not keep the others from it. */
static int call_each(struct cli *c, int (*call)(struct cli *c, uint64_t id), const char *says, char **args,
                     size_t n) {
        int worst = 0;

        for (size_t i = 0; i < n; i++) {
                uint64_t id;
                int r = checkpoint_number(c, args[i], &id);

                if (!r)
                        r = call(c, id);
                if (!r && !c->json)
                        printf("Checkpoint %s %s\n", args[i], says);
                worst = worst ?: r;
        }
        return worst;
}

static int pin_each(struct cli *c, const void *options, char **args, size_t n) {
        (void)options;
        return call_each(c, pin_one, "stays, whatever gc is told to keep", args, n);
}

static int unpin_each(struct cli *c, const void *options, char **args, size_t n) {
        (void)options;
        return call_each(c, unpin_one, "is one as others are", args, n);
}

static int forget_each(struct cli *c, const void *options, char **args, size_t n) {
        (void)options;
        return call_each(c, forget_one, "is forgotten; its files stay as they are", args, n);
}

static int checkpoints_run(struct cli *c, void *options, char **args, size_t n) {
        static const struct cli_verb verbs[] = {
                { "list", "[JOB]", 0, 1, list_checkpoints },
                { "gc", "JOB [--best=N] [--trial-best=N] [--trial-latest=N] [--dry-run]", 1, 1,
                  collect_checkpoints },
                { "pin", "CHECKPOINT...", 1, SIZE_MAX, pin_each },
                { "unpin", "CHECKPOINT...", 1, SIZE_MAX, unpin_each },
                { "forget", "CHECKPOINT...", 1, SIZE_MAX, forget_each },
        };
        struct checkpoints_options *o = options;
        const struct cli_verb *verb;
        int r = cli_verb_find(c, "checkpoints", verbs, ELEMENTSOF(verbs), args, n, &verb);

        if (r)
                return r;
        if (verb->run != collect_checkpoints && (o->best || o->trial_best || o->trial_latest || o->dry_run))
                return cli_usage(c, "options go with gc");
        return verb->run(c, o, args + 1, n - 1);
}

static int option_keep(const char *value, void *target, const char **ret_why) {
        uint32_t n;

        if (option_number(value, &n, ret_why) < 0)
                return -EINVAL;
        *(uint64_t *)target = (uint64_t)n + 1;
        return 0;
}

static const struct cli_option checkpoints_options[] = {
        { "best", 0, "N", option_keep, offsetof(struct checkpoints_options, best),
          "gc: the best N of the job stay (0)" },
        { "trial-best", 0, "N", option_keep, offsetof(struct checkpoints_options, trial_best),
          "gc: the best N of each trial stay (1)" },
        { "trial-latest", 0, "N", option_keep, offsetof(struct checkpoints_options, trial_latest),
          "gc: the latest N of each trial stay (1)" },
        { "dry-run", 'n', NULL, NULL, offsetof(struct checkpoints_options, dry_run),
          "gc: say which would be removed, and leave it at that" },
        { 0 },
};

const struct command checkpoints_command = {
        .name = "checkpoints",
        .arguments = "list [JOB] | gc JOB | pin CHECKPOINT... | unpin CHECKPOINT... | forget CHECKPOINT...",
        .help = "List checkpoints that trainers told of, and remove those that nobody needs",
        .details =
                "gc: what is in none of the three groups is removed by a job of yours on the host that it was\n"
                "saved on; what runs, or is pinned, keeps all. Of a job without trials all are one trial's.\n"
                "forget: the list is shorter, nothing else.",
        .options = checkpoints_options,
        .options_size = sizeof(struct checkpoints_options),
        .min = 1,
        .max = SIZE_MAX,
        .run = checkpoints_run,
};
