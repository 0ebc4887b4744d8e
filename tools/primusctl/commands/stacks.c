/* SPDX-License-Identifier: Apache-2.0 */
/* primusctl stacks. */
#include <inttypes.h>
#include <jansson.h>
#include <string.h>

#include "tools/primusctl/bus/fields.h"
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
        sd_bus_message **replies;
        char **errors;
};

struct thread {
        uint32_t pid, tid;
        const char *state, *class, *name, *call, *stack;
};

/* What stands behind the threads. program: what becomes of each text that a program wrote. */
struct info {
        uint32_t total;
        char *note;
        int (*program)(uint32_t pid, const char *text, void *userdata);
        void *userdata;
};

static int read_thread(sd_bus_message *m, struct thread *t) {
        return sd_bus_message_read(m, "(uusssss)", &t->pid, &t->tid, &t->state, &t->class, &t->name, &t->call,
                                   &t->stack);
}

/* ---- for people ---- */

static const struct table_column columns[] = {
        { "PID", true, false },    { "TID", true, false },   { "STATE", false, false },
        { "WAITS", false, false }, { "CALL", false, false }, { "NAME", false, false },
        { "KERNEL", false, true },
};

static enum color color_of(const struct thread *t) {
        return *t->state == 'D' || strcmp(t->class, "stopped") == 0 ? COLOR_RED
               : strcmp(t->class, "running") == 0                   ? COLOR_GREEN
                                                                    : COLOR_NONE;
}

/* What stands between systemd and the program says nothing about it. */
static bool is_ours(const struct thread *t) {
        return strncmp(t->name, "primus-", strlen("primus-")) == 0;
}

/* Whether there is anything else; the message is read from its beginning again. */
static int only_ours(sd_bus_message *m, bool *ret) {
        struct thread t;
        int r = sd_bus_message_enter_container(m, 'a', "(uusssss)");

        *ret = true;
        while (r >= 0 && (r = read_thread(m, &t)) > 0)
                *ret &= is_ours(&t);
        return r < 0 ? r : sd_bus_message_rewind(m, true);
}

static int print_threads(const struct stacks *s, sd_bus_message *m, unsigned *ret_n) {
        _cleanup_(table_free_p) struct table *table = NULL;
        struct thread t;
        bool all = false;
        unsigned n = 0;
        int r = table_new(s->cli, columns, ELEMENTSOF(columns), &table);

        if (r)
                return r;
        if ((r = only_ours(m, &all)) < 0)
                return cli_bad_reply(s->cli, r);
        r = sd_bus_message_enter_container(m, 'a', "(uusssss)");
        while (r >= 0 && (r = read_thread(m, &t)) > 0) {
                n++;
                if (!all && is_ours(&t))
                        continue;
                if (table_row(table) < 0)
                        return cli_oom(s->cli);
                table_set(table, 0, COLOR_NONE, "%" PRIu32, t.pid);
                table_set(table, 1, COLOR_NONE, "%" PRIu32, t.tid);
                table_set(table, 2, color_of(&t), "%s", t.state);
                table_set(table, 3, color_of(&t), "%s", t.class);
                table_set(table, 4, COLOR_NONE, "%s", *t.call ? t.call : "-");
                table_set(table, 5, COLOR_NONE, "%s", t.name);
                table_set(table, 6, COLOR_DIM, "%s", *t.stack ? t.stack : "-");
        }
        if (r >= 0)
                r = sd_bus_message_exit_container(m);
        if (r < 0)
                return cli_bad_reply(s->cli, r);
        *ret_n = n;
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

static int read_programs(sd_bus_message *m, void *target) {
        const struct info *i = target;
        const char *text;
        uint32_t pid;
        int r;

        if ((r = sd_bus_message_enter_container(m, 'v', "a(us)")) < 0 ||
            (r = sd_bus_message_enter_container(m, 'a', "(us)")) < 0)
                return r;
        while ((r = sd_bus_message_read(m, "(us)", &pid, &text)) > 0)
                if ((r = i->program(pid, text, i->userdata)) < 0)
                        return r;
        if (r < 0 || (r = sd_bus_message_exit_container(m)) < 0)
                return r;
        return sd_bus_message_exit_container(m);
}

static int read_info(sd_bus_message *m, struct info *i) {
        static const struct field fields[] = {
                { "total", "u", offsetof(struct info, total), NULL },
                { "note", "s", offsetof(struct info, note), NULL },
                { "python", "a(us)", 0, read_programs },
        };

        return read_fields(m, fields, ELEMENTSOF(fields), i);
}

static void info_done(struct info *i) {
        free(i->note);
}

static int print_program(uint32_t pid, const char *text, void *userdata) {
        printf("Process %" PRIu32 " says where it is:\n", pid);
        print_lines(text);
        return 0;
}

static int print_one(const struct stacks *s, size_t i) {
        const struct target *t = s->targets.list + i;
        _cleanup_(info_done) struct info info = { .program = print_program };
        unsigned n = 0;
        int r;

        printf("%s%s/%" PRIu32 " on %s\n", i > 0 ? "\n" : "", t->role, t->index, t->node);
        fflush(stdout);
        if (s->errors[i])
                return cli_fail(s->cli, "%s/%" PRIu32 ": %s", t->role, t->index, s->errors[i]);
        if (!s->replies[i])
                return cli_fail(s->cli, "%s/%" PRIu32 ": no answer", t->role, t->index);
        r = print_threads(s, s->replies[i], &n);
        if (r)
                return r;
        r = read_info(s->replies[i], &info);
        if (r < 0)
                return cli_bad_reply(s->cli, r);
        if (info.total > n)
                printf("%" PRIu32 " of %" PRIu32 " threads are left out.\n", info.total - n, info.total);
        if (info.note && *info.note)
                printf("Note: %s.\n", info.note);
        return 0;
}

/* ---- for programs ---- */

static int json_program(uint32_t pid, const char *text, void *userdata) {
        return json_array_append_new(userdata,
                                     json_pack("{s:I, s:s}", "pid", (json_int_t)pid, "text", text)) < 0
                       ? -ENOMEM
                       : 0;
}

static int json_threads(sd_bus_message *m, json_t *list) {
        struct thread t;
        int r = sd_bus_message_enter_container(m, 'a', "(uusssss)");

        while (r >= 0 && (r = read_thread(m, &t)) > 0)
                if (json_array_append_new(list, json_pack("{s:I, s:I, s:s, s:s, s:s, s:s*, s:s*}", "pid",
                                                          (json_int_t)t.pid, "tid", (json_int_t)t.tid,
                                                          "state", t.state, "waits", t.class, "name", t.name,
                                                          "call", *t.call ? t.call : NULL, "kernel",
                                                          *t.stack ? t.stack : NULL)) < 0)
                        return -ENOMEM;
        return r < 0 ? r : sd_bus_message_exit_container(m);
}

static json_t *json_one(const struct stacks *s, size_t i) {
        const struct target *t = s->targets.list + i;
        json_t *o =
                json_pack("{s:s, s:I, s:s}", "role", t->role, "index", (json_int_t)t->index, "node", t->node);
        json_t *threads = json_array(), *programs = json_array();
        _cleanup_(info_done) struct info info = { .program = json_program, .userdata = programs };

        if (s->errors[i] || !s->replies[i] || json_threads(s->replies[i], threads) < 0 ||
            read_info(s->replies[i], &info) < 0)
                (void)json_object_set_new(o, "error", json_string(s->errors[i] ?: "no usable answer"));
        (void)json_object_set_new(o, "total", json_integer(info.total));
        (void)json_object_set_new(o, "threads", threads);
        (void)json_object_set_new(o, "programs", programs);
        if (info.note && *info.note)
                (void)json_object_set_new(o, "note", json_string(info.note));
        return o;
}

/* ---- the command ---- */

static int append_options(sd_bus_message *m, size_t i, void *userdata) {
        const struct stacks *s = userdata;

        return MIN(s->options->quiet ? sd_bus_message_append(m, "a{sv}", 1, "quiet", "b", 1)
                                     : sd_bus_message_append(m, "a{sv}", 0),
                   0);
}

static void on_answer(size_t i, sd_bus_message *reply, const sd_bus_error *error, void *userdata) {
        struct stacks *s = userdata;

        if (error)
                s->errors[i] = strdup(error->message ?: error->name);
        else
                s->replies[i] = sd_bus_message_ref(reply);
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
                        worst = s->errors[i] ? CLI_FAILED : worst;
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
        struct stacks s = { .cli = c, .options = options };
        int r = targets_find(c, args[0], args + 1, n - 1, &s.targets);

        if (r)
                return r;
        s.replies = calloc(s.targets.n, sizeof(*s.replies));
        s.errors = calloc(s.targets.n, sizeof(*s.errors));
        if (s.replies && s.errors) {
                r = targets_call(c, &s.targets, &call, &s);
                if (r == 0)
                        r = show(&s);
        } else
                r = cli_oom(c);
        for (size_t i = 0; i < s.targets.n && s.replies && s.errors; i++) {
                sd_bus_message_unref(s.replies[i]);
                free(s.errors[i]);
        }
        free(s.replies);
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
                "RANK is a rank, ROLE or ROLE/INDEX; without one, all that run. WAITS says what a thread "
                "waits "
                "for: network,\n"
                "futex (another thread), sleep, disk, pipe (another process of the host), device; or it is "
                "running or\n"
                "stopped. Programs that have a handler for the job's stackSignal get it, and what they write "
                "is shown: Python\n"
                "does after 'import primus'.",
        .options = stacks_options,
        .options_size = sizeof(struct stacks_options),
        .min = 1,
        .max = SIZE_MAX,
        .run = stacks_run,
};
