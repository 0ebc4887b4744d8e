/* SPDX-License-Identifier: Apache-2.0 */
/* primusctl actors: what the processes say that have them (primus.actors.listing), in sessions of their
 * executors; some at a time. What is killed is killed there, by who has seen that the process is still it. */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/format.h"
#include "lib/json/get.h"
#include "tools/primusctl/bus/stream.h"
#include "tools/primusctl/bus/targets.h"
#include "tools/primusctl/bus/watch.h"
#include "tools/primusctl/cli/commands.h"
#include "tools/primusctl/view/table.h"

#define AT_A_TIME 16u
/* Of one executor: some tens of thousands of actors. */
#define ANSWER_MAX (8u << 20)

struct actors_options {
        const char *kill; /* the actor's name, or NULL */
};

struct asking {
        struct cli *cli;
        const char *kill;
        sd_event *event;
        struct targets targets;
        struct answer *answers; /* one for each target */
        size_t next, under_way;
};

struct answer {
        struct asking *asking;
        struct stream_target target;
        struct stream *stream;
        char *text;
        size_t size;
        json_t *actors; /* NULL: error says why */
        char *error;
};

static void set_error(struct answer *a, const char *text) {
        if (!a->error)
                a->error = strdup(text);
}

/* ---- asking ---- */

static void ask_more(struct asking *s);

static void on_data(struct stream *stream, enum stream_kind kind, const void *data, size_t size,
                    void *userdata) {
        struct answer *a = userdata;
        char *larger;

        if (kind != STREAM_OUTPUT || size == 0)
                return;
        larger = a->size + size <= ANSWER_MAX ? realloc(a->text, a->size + size) : NULL;
        if (!larger) {
                set_error(a, "its answer is too long");
                return;
        }
        memcpy(larger + a->size, data, size);
        a->text = larger;
        a->size += size;
}

static void on_ended(struct stream *stream, int status, const char *why, void *userdata) {
        struct answer *a = userdata;

        if (*why)
                set_error(a, why);
        else if (status != 0)
                set_error(a, "there is no python3 with the module primus.actors, of this version");
        if (!a->error)
                a->actors = json_loadb(a->text ?: "", a->size, 0, NULL);
        if (!json_is_array(a->actors)) {
                json_decref(a->actors);
                a->actors = NULL;
                set_error(a, "its answer is none");
        }
        a->asking->under_way--;
        ask_more(a->asking);
}

/* It reads nothing. */
static void on_opened(struct stream *stream, void *userdata) {
        (void)stream_write(stream, NULL, 0, true);
}

static void on_room(struct stream *stream, void *userdata) {
}

static int open_session(struct answer *a) {
        static const struct stream_handlers handlers = {
                .opened = on_opened, .data = on_data, .room = on_room, .ended = on_ended
        };
        char *kill = (char *)a->asking->kill;
        char *arguments[] = { (char *)"python3",
                              (char *)"-m",
                              (char *)"primus.actors.listing",
                              kill ? (char *)"--kill" : NULL,
                              kill,
                              NULL };
        const struct stream_options o = { .arguments = arguments };

        return stream_new(a->asking->cli, &a->target, &o, &handlers, a, &a->stream);
}

static void ask_more(struct asking *s) {
        while (s->next < s->targets.n && s->under_way < AT_A_TIME) {
                struct answer *a = s->answers + s->next++;
                int r = open_session(a);

                if (r < 0)
                        set_error(a, strerror(-r));
                else
                        s->under_way++;
        }
        if (s->under_way == 0)
                (void)sd_event_exit(s->event, 0);
}

static int ask_all(struct asking *s) {
        int r = watch_loop_new(s->cli, &s->event);

        if (r)
                return r;
        ask_more(s);
        r = sd_event_loop(s->event);
        for (size_t i = 0; i < s->targets.n; i++) {
                stream_free(s->answers[i].stream);
                s->answers[i].stream = NULL;
        }
        (void)sd_bus_detach_event(s->cli->bus);
        sd_event_unref(s->event);
        return r < 0 ? cli_fail(s->cli, "%s", strerror(-r)) : 0;
}

/* ---- showing ---- */

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

static int show_table(const struct asking *s) {
        _cleanup_(table_free_p) struct table *t = NULL;
        const json_t *actor;
        size_t k;
        int r = table_new(s->cli, columns, ELEMENTSOF(columns), &t);

        if (r)
                return r;
        for (size_t i = 0; i < s->targets.n; i++)
                json_array_foreach (s->answers[i].actors, k, actor)
                        if (add_row(t, s->targets.list + i, actor) < 0)
                                return cli_oom(s->cli);
        return table_print_or(s->cli, t,
                              s->kill ? "No executor of the job has such an actor (any more)."
                                      : "No executor of the job has an actor.");
}

static int show_json(const struct asking *s) {
        json_t *list = json_array(), *actor;
        size_t k;

        for (size_t i = 0; i < s->targets.n; i++)
                json_array_foreach (s->answers[i].actors, k, actor) {
                        const struct target *t = s->targets.list + i;

                        if (!json_is_object(actor))
                                continue;
                        if (json_object_set_new(actor, "role", json_string(t->role)) < 0 ||
                            json_object_set_new(actor, "index", json_integer(t->index)) < 0 ||
                            json_object_set_new(actor, "node", json_string(t->node)) < 0 ||
                            json_array_append(list, actor) < 0) {
                                json_decref(list);
                                return cli_oom(s->cli);
                        }
                }
        return cli_print_json(s->cli, list);
}

static int show_answers(const struct asking *s) {
        int r = s->cli->json ? show_json(s) : show_table(s);

        for (size_t i = 0; i < s->targets.n; i++)
                if (!s->answers[i].actors)
                        r = cli_fail(s->cli, "%s/%" PRIu32 " on %s: %s", s->targets.list[i].role,
                                     s->targets.list[i].index, s->targets.list[i].node,
                                     s->answers[i].error ?: "no answer");
        return r;
}

/* ---- the command ---- */

static int answers_new(struct asking *s) {
        s->answers = calloc(s->targets.n, sizeof(*s->answers));
        if (!s->answers)
                return cli_oom(s->cli);
        for (size_t i = 0; i < s->targets.n; i++) {
                s->answers[i].asking = s;
                s->answers[i].target = (struct stream_target){ .job = s->targets.job,
                                                               .role = s->targets.list[i].role,
                                                               .index = s->targets.list[i].index };
        }
        return 0;
}

static void asking_done(struct asking *s) {
        for (size_t i = 0; i < s->targets.n && s->answers; i++) {
                json_decref(s->answers[i].actors);
                free(s->answers[i].text);
                free(s->answers[i].error);
        }
        free(s->answers);
        targets_done(&s->targets);
}

static size_t n_actors(const struct asking *s) {
        size_t n = 0;

        for (size_t i = 0; i < s->targets.n; i++)
                n += json_array_size(s->answers[i].actors);
        return n;
}

static int actors_run(struct cli *c, void *options, char **args, size_t n) {
        const struct actors_options *o = options;
        struct asking s = { .cli = c, .kill = o->kill };
        int r = targets_find(c, args[0], args + 1, n - 1, &s.targets);

        if (r)
                return r;
        r = answers_new(&s);
        if (r == 0)
                r = ask_all(&s);
        if (r == 0)
                r = show_answers(&s);
        if (r == 0 && s.kill && n_actors(&s) == 0)
                r = CLI_FAILED;
        asking_done(&s);
        return r;
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
                "RANK is a rank, ROLE or ROLE/INDEX; without one, all executors that run are asked, as by 'exec': that is for\n"
                "the job's owner. What an actor waits for, and its calls, its own program knows: pool.why(), pool.actors().",
        .options = actors_options,
        .options_size = sizeof(struct actors_options),
        .min = 1,
        .max = SIZE_MAX,
        .run = actors_run,
};
