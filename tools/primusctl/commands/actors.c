/* SPDX-License-Identifier: Apache-2.0 */
/* primusctl actors. */
#include <inttypes.h>
#include <jansson.h>
#include <string.h>

#include "lib/base/format.h"
#include "lib/json/get.h"
#include "tools/primusctl/bus/actor-list.h"
#include "tools/primusctl/cli/commands.h"
#include "tools/primusctl/view/table.h"

struct actors_options {
        const char *kill; /* the actor's name, or NULL */
};

static const struct table_column columns[] = {
        { "ACTOR", false, true },  { "EXECUTOR", false, false }, { "HOST", false, false },
        { "PID", true, false },    { "STATE", false, false },    { "CPU", true, false },
        { "MEMORY", true, false }, { "MADE", false, false },
};

static int add_row(struct table *t, const struct target *target, const json_t *actor) {
        char cpu[64], memory[FORMAT_SIZE_MAX], most[FORMAT_SIZE_MAX];
        uint64_t limit = json_get_number(actor, "limit");

        if (table_row(t) < 0)
                return -ENOMEM;
        table_set(t, 0, COLOR_BOLD, "%s", json_get_text(actor, "actor"));
        table_set(t, 1, COLOR_NONE, "%s/%" PRIu32, target->role, target->index);
        table_set(t, 2, COLOR_NONE, "%s", target->node);
        table_set(t, 3, COLOR_NONE, "%" PRIu64, json_get_number(actor, "pid"));
        table_set(t, 4, COLOR_NONE, "%s", json_get_text(actor, "state"));
        table_set(t, 5, COLOR_NONE, "%s", format_duration(json_get_number(actor, "cpu"), cpu, sizeof(cpu)));
        table_set(t, 6, COLOR_NONE, "%s%s%s",
                  format_size(json_get_number(actor, "memory"), memory, sizeof(memory)), limit > 0 ? "/" : "",
                  limit > 0 ? format_size(limit, most, sizeof(most)) : "");
        table_set_age(t, 7, json_get_number(actor, "began"));
        return 0;
}

static int show_table(const struct cli *c, const struct actor_list *l, bool killed) {
        _cleanup_(table_free_p) struct table *t = NULL;
        const json_t *actor;
        size_t k;
        int r = table_new(c, columns, ELEMENTSOF(columns), &t);

        if (r)
                return r;
        for (size_t i = 0; i < l->targets.n; i++)
                json_array_foreach (l->answers[i].actors, k, actor)
                        if (add_row(t, l->targets.list + i, actor) < 0)
                                return cli_oom(c);
        return table_print_or(c, t,
                              killed ? "No executor of the job has such an actor (any more)."
                                     : "No executor of the job has an actor.");
}

static int show_json(const struct cli *c, const struct actor_list *l) {
        json_t *list = json_array(), *actor;
        size_t k;

        for (size_t i = 0; i < l->targets.n; i++)
                json_array_foreach (l->answers[i].actors, k, actor) {
                        const struct target *t = l->targets.list + i;

                        if (!json_is_object(actor))
                                continue;
                        if (json_object_set_new(actor, "role", json_string(t->role)) < 0 ||
                            json_object_set_new(actor, "index", json_integer(t->index)) < 0 ||
                            json_object_set_new(actor, "node", json_string(t->node)) < 0 ||
                            json_array_append(list, actor) < 0) {
                                json_decref(list);
                                return cli_oom(c);
                        }
                }
        return cli_print_json(c, list);
}

static int show_answers(const struct cli *c, const struct actor_list *l, bool killed) {
        int r = c->json ? show_json(c, l) : show_table(c, l, killed);

        for (size_t i = 0; i < l->targets.n; i++)
                if (!l->answers[i].actors)
                        r = cli_fail(c, "%s/%" PRIu32 " on %s: %s", l->targets.list[i].role,
                                     l->targets.list[i].index, l->targets.list[i].node,
                                     l->answers[i].error ?: "no answer");
        return r;
}

static size_t n_actors(const struct actor_list *l) {
        size_t n = 0;

        for (size_t i = 0; i < l->targets.n; i++)
                n += json_array_size(l->answers[i].actors);
        return n;
}

static int actors_run(struct cli *c, void *options, char **args, size_t n) {
        _cleanup_(actor_list_done) struct actor_list l = {};
        const struct actors_options *o = options;
        int r = actor_list_ask(c, args[0], args + 1, n - 1, o->kill, &l);

        r = r ?: show_answers(c, &l, o->kill != NULL);
        return r == 0 && o->kill && n_actors(&l) == 0 ? CLI_FAILED : r;
}

static const struct cli_option actors_options[] = {
        { "kill", 0, "ACTOR", option_string, offsetof(struct actors_options, kill),
          "end the actor of this name at once, and show what it was" },
        { 0 },
};

const struct command actors_command = {
        .name = "actors",
        .arguments = "[OPTIONS] JOB [RANK...]",
        .help = "List the actors of a job, or end one",
        .details =
                "RANK is a rank, ROLE or ROLE/INDEX; without one, all executors that run are asked, as by 'exec': that\n"
                "is for the job's owner. The name of an actor stands for a RANK in 'stacks', 'exec' and 'shell'. What an\n"
                "actor waits for, and its calls, its own program knows: pool.why(), pool.actors().",
        .options = actors_options,
        .options_size = sizeof(struct actors_options),
        .min = 1,
        .max = SIZE_MAX,
        .run = actors_run,
};
