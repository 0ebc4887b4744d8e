/* SPDX-License-Identifier: Apache-2.0 */
/* primusctl stacks. */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <string.h>

#include "lib/base/try.h"
#include "lib/json/get.h"
#include "lib/json/replies.h"
#include "tools/primusctl/bus/actor-list.h"
#include "tools/primusctl/bus/targets.h"
#include "tools/primusctl/cli/commands.h"
#include "tools/primusctl/view/table.h"

struct stacks_options {
        bool quiet;
};

struct stacks {
        struct cli *cli;
        const struct stacks_options *options;
        struct targets targets;
        uint32_t pid;      /* of the actor that is meant; 0: all of the executors */
        json_t **captures; /* NULL: no usable answer, and errors has why, if it is known */
        char **errors;
};

/* ---- for people ---- */

static const struct table_column columns[] = {
        { "PID", true, false },    { "TID", true, false },   { "STATE", false, false },
        { "WAITS", false, false }, { "CALL", false, false }, { "NAME", false, false },
        { "KERNEL", false, true },
};

static enum color color_of(const json_t *thread) {
        const char *waits = json_get_text(thread, "waits");

        return *json_get_text(thread, "state") == 'D' || strcmp(waits, "stopped") == 0 ? COLOR_RED
               : strcmp(waits, "running") == 0                                         ? COLOR_GREEN
                                                                                       : COLOR_NONE;
}

/* What stands between systemd and the program says nothing about it. */
static bool is_ours(const json_t *thread) {
        return strncmp(json_get_text(thread, "name"), "primus-", strlen("primus-")) == 0;
}

static bool only_ours(const json_t *threads) {
        const json_t *thread;
        size_t i;

        json_array_foreach (threads, i, thread)
                if (!is_ours(thread))
                        return false;
        return true;
}

static void set_text(struct table *table, unsigned column, enum color color, const json_t *thread,
                     const char *name) {
        const char *text = json_get_text(thread, name);

        table_set(table, column, color, "%s", *text ? text : "-");
}

static int print_threads(const struct stacks *s, const json_t *threads) {
        _cleanup_(table_free_p) struct table *table = NULL;
        bool all = only_ours(threads);
        const json_t *thread;
        size_t i;
        int r = table_new(s->cli, columns, ELEMENTSOF(columns), &table);

        if (r)
                return r;
        json_array_foreach (threads, i, thread) {
                if (!all && is_ours(thread))
                        continue;
                if (table_row(table) < 0)
                        return cli_oom(s->cli);
                table_set(table, 0, COLOR_NONE, "%" PRIu64, json_get_number(thread, "pid"));
                table_set(table, 1, COLOR_NONE, "%" PRIu64, json_get_number(thread, "tid"));
                set_text(table, 2, color_of(thread), thread, "state");
                set_text(table, 3, color_of(thread), thread, "waits");
                set_text(table, 4, COLOR_NONE, thread, "call");
                set_text(table, 5, COLOR_NONE, thread, "name");
                set_text(table, 6, COLOR_DIM, thread, "kernel");
        }
        return table_print(s->cli, table);
}

static void print_lines(const char *text) {
        _cleanup_free_ char *copy = strdup(text);
        char *save = NULL;

        for (char *line = copy ? strtok_r(copy, "\n", &save) : NULL; line;
             line = strtok_r(NULL, "\n", &save)) {
                text_clean(line);
                printf("  %s\n", line);
        }
}

static int print_one(const struct stacks *s, size_t i) {
        const struct target *t = s->targets.list + i;
        const json_t *capture = s->captures[i], *threads = json_object_get(capture, "threads"), *program;
        uint64_t n = json_array_size(threads), total = json_get_number(capture, "total");
        const char *note = json_get_text(capture, "note");
        size_t k;
        int r;

        printf("%s%s/%" PRIu32 " on %s\n", i > 0 ? "\n" : "", t->role, t->index, t->node);
        fflush(stdout);
        if (!capture)
                return cli_fail(s->cli, "%s/%" PRIu32 ": %s", t->role, t->index,
                                s->errors[i] ? s->errors[i] : "no answer");
        r = print_threads(s, threads);
        if (r)
                return r;
        json_array_foreach (json_object_get(capture, "programs"), k, program) {
                printf("Process %" PRIu64 " says where it is:\n", json_get_number(program, "pid"));
                print_lines(json_get_text(program, "text"));
        }
        if (total > n)
                printf("%" PRIu64 " of %" PRIu64 " threads are left out.\n", total - n, total);
        if (*note)
                printf("Note: %s.\n", note);
        return 0;
}

/* ---- for programs ---- */

/* NULL: out of memory. */
static json_t *json_one(const struct stacks *s, size_t i) {
        const struct target *t = s->targets.list + i;
        json_t *o = s->captures[i]
                            ? json_incref(s->captures[i])
                            : json_pack("{s:n, s:n, s:n, s:s, s:i, s:[], s:[]}", "role", "index", "node",
                                        "error", s->errors[i] ? s->errors[i] : "no usable answer", "total", 0,
                                        "threads", "programs");

        if (!o || json_object_set_new(o, "role", json_string(t->role)) < 0 ||
            json_object_set_new(o, "index", json_integer(t->index)) < 0 ||
            json_object_set_new(o, "node", json_string(t->node)) < 0) {
                json_decref(o);
                return NULL;
        }
        return o;
}

/* ---- the command ---- */

/* What is not of that process is left out. */
static void keep_process(json_t *capture, const char *name, uint32_t pid) {
        json_t *list = json_object_get(capture, name);

        for (size_t i = json_array_size(list); i-- > 0;)
                if (json_get_number(json_array_get(list, i), "pid") != pid)
                        (void)json_array_remove(list, i);
}

static int append_options(sd_bus_message *m, size_t i, void *userdata) {
        const struct stacks *s = userdata;

        return MIN(s->options->quiet ? sd_bus_message_append(m, "a{sv}", 1, "quiet", "b", 1)
                                     : sd_bus_message_append(m, "a{sv}", 0),
                   0);
}

/* One object of both: the list stands in what is behind it. */
static int read_capture(sd_bus_message *reply, json_t **ret) {
        _cleanup_(json_decref_p) json_t *threads = NULL, *capture = NULL;

        TRY(json_read_list(reply, &json_thread, false, &threads));
        TRY(json_read_object(reply, &json_capture, false, &capture));
        if (json_object_set(capture, "threads", threads) < 0)
                return -ENOMEM;
        *ret = TAKE_PTR(capture);
        return 0;
}

static void on_answer(size_t i, sd_bus_message *reply, const sd_bus_error *error, void *userdata) {
        struct stacks *s = userdata;

        if (error)
                s->errors[i] = strdup(error->message ?: error->name);
        else if (read_capture(reply, s->captures + i) >= 0 && s->pid > 0) {
                keep_process(s->captures[i], "threads", s->pid);
                keep_process(s->captures[i], "programs", s->pid);
                (void)json_object_set_new(s->captures[i], "total",
                                          json_integer((json_int_t)json_array_size(
                                                  json_object_get(s->captures[i], "threads"))));
        }
}

static int show(const struct stacks *s) {
        json_t *list = s->cli->json ? json_array() : NULL;
        int worst = 0;

        for (size_t i = 0; i < s->targets.n; i++)
                if (s->cli->json) {
                        if (json_array_append_new(list, json_one(s, i)) < 0) {
                                json_decref(list);
                                return cli_oom(s->cli);
                        }
                        worst = s->captures[i] ? worst : CLI_FAILED;
                } else
                        worst = MAX(worst, print_one(s, i));
        if (s->cli->json) {
                int r = cli_print_json(s->cli, list);
                return r ?: worst;
        }
        return worst;
}

static int stacks_run(struct cli *c, void *options, char **args, size_t n) {
        static const struct target_call call = { .method = "Capture",
                                                 .append = append_options,
                                                 .answered = on_answer };
        _cleanup_(actor_place_done) struct actor_place actor = {};
        struct stacks s = { .cli = c, .options = options };
        int r = n == 2 && is_actor_name(args[1]) ? actor_find(c, args[0], args[1], &actor) : 0;

        s.pid = actor.pid;
        r = r ?: targets_find(c, args[0], actor.rank ? &actor.rank : args + 1, n - 1, &s.targets);
        if (r)
                return r;
        s.captures = calloc(s.targets.n, sizeof(json_t *));
        s.errors = calloc(s.targets.n, sizeof(*s.errors));
        if (s.captures && s.errors) {
                r = targets_call(c, &s.targets, &call, &s);
                if (r == 0)
                        r = show(&s);
        } else
                r = cli_oom(c);
        for (size_t i = 0; i < s.targets.n && s.captures && s.errors; i++) {
                json_decref(s.captures[i]);
                free(s.errors[i]);
        }
        free(s.captures);
        free(s.errors);
        targets_done(&s.targets);
        return r;
}

static const struct cli_option stacks_options[] = {
        { "quiet", 'q', NULL, NULL, offsetof(struct stacks_options, quiet),
          "send no signal: only what the kernel knows" },
        { 0 },
};

const struct command stacks_command = {
        .name = "stacks",
        .arguments = "[OPTIONS] JOB [RANK...]",
        .help = "Show what the threads of executors are doing",
        .details =
                "RANK is a rank, ROLE or ROLE/INDEX, or one actor's name (\"Counter 3\"); without one, all that run.\n"
                "WAITS says what a thread waits for: network, futex (another thread), sleep, disk, pipe (another\n"
                "process of the host), device; or it is running or stopped. Programs that have a handler for the\n"
                "job's stackSignal get it, and what they write is shown: Python does after 'import primus'.",
        .options = stacks_options,
        .options_size = sizeof(struct stacks_options),
        .min = 1,
        .max = SIZE_MAX,
        .run = stacks_run,
};
