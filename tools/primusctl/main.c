/* SPDX-License-Identifier: Apache-2.0 */
/* primusctl: the table of commands, and the way from argv to one of them. As primus-submit, upstream's tool
 * of that name. */
#include <signal.h>
#include <string.h>

#include "lib/base/names.h"
#include "tools/primusctl/cli/commands.h"

/* By topic; a title begins one. A line each, because everybody adds to it. */
/* clang-format off */
static const struct {
        const char *title;
        const struct command *command;
} commands[] = {
        { "Run", &submit_command },
        { NULL, &run_command },
        { NULL, &rerun_command },
        { NULL, &validate_command },
        { NULL, &config_command },
        { "Look", &list_command },
        { NULL, &status_command },
        { NULL, &top_command },
        { NULL, &wait_command },
        { NULL, &logs_command },
        { NULL, &get_command },
        { NULL, &events_command },
        { NULL, &why_command },
        { NULL, &web_command },
        { NULL, &login_command },
        { "Steer", &kill_command },
        { NULL, &succeed_command },
        { NULL, &delete_command },
        { NULL, &requeue_command },
        { NULL, &suspend_command },
        { NULL, &resume_command },
        { NULL, &update_command },
        { NULL, &scale_command },
        { NULL, &role_command },
        { NULL, &restart_command },
        { NULL, &replace_command },
        { "Go inside", &exec_command },
        { NULL, &shell_command },
        { NULL, &forward_command },
        { NULL, &notebook_command },
        { NULL, &tensorboard_command },
        { NULL, &stacks_command },
        { NULL, &trace_command },
        { NULL, &actors_command },
        { "Data", &data_command },
        { NULL, &savepoint_command },
        { "Searches and metrics", &search_command },
        { NULL, &metrics_command },
        { NULL, &checkpoints_command },
        { NULL, &model_command },
        { "Queue and shares", &queue_command },
        { NULL, &pools_command },
        { NULL, &usage_command },
        { "Hosts", &nodes_command },
        { NULL, &node_command },
        { NULL, &provider_command },
        { NULL, &token_command },
        { NULL, &join_command },
        { NULL, &doctor_command },
        { NULL, &banner_command },
        { "The master's host", &backup_command },
        { NULL, &restore_command },
};
/* clang-format on */

int cli_version(const struct cli *c) {
        printf("%s %s\n", c->program, PRIMUS_VERSION);
        return CLI_OK;
}

int cli_apply_global(struct cli *c, const struct global_options *g) {
        const char *term = getenv("TERM"), *no_color = getenv("NO_COLOR");

        c->host = g->host;
        c->json = g->json;
        if (!g->color || strcmp(g->color, "auto") == 0)
                c->color = isatty(STDOUT_FILENO) && !(no_color && *no_color) && term &&
                           strcmp(term, "dumb") != 0;
        else if (strcmp(g->color, "always") == 0)
                c->color = true;
        else if (strcmp(g->color, "never") == 0)
                c->color = false;
        else
                return cli_usage(c, "--color: expected auto, always or never, not '%s'", g->color);
        return 0;
}

static const struct command *find_command(const char *name) {
        for (size_t i = 0; i < ELEMENTSOF(commands); i++)
                if (strcmp(commands[i].command->name, name) == 0)
                        return commands[i].command;
        return NULL;
}

/* What a search has in common with every job, so that 'primusctl search fork' is 'primusctl rerun'. NULL:
 * nothing. */
static const struct command *find_of_search(const char *verb) {
        static const struct {
                const char *verb;
                const struct command *command;
        } all[] = {
                { "submit", &submit_command },
                { "fork", &rerun_command },
                { "why", &why_command },
                { "kill", &kill_command },
        };

        for (size_t i = 0; i < ELEMENTSOF(all); i++)
                if (strcmp(all[i].verb, verb) == 0)
                        return all[i].command;
        return NULL;
}

static int help_all(void) {
        puts("primusctl COMMAND [OPTIONS] ...\n\nSubmit, watch and steer jobs of a Primus cluster.");
        for (size_t i = 0; i < ELEMENTSOF(commands); i++) {
                if (commands[i].title)
                        printf("\n%s:\n", commands[i].title);
                printf("  %-10s %s\n", commands[i].command->name, commands[i].command->help);
        }
        puts("\nJOB is a job's number (418[7]: an element of array 418); where it may be left out, the "
             "caller's\n"
             "latest job is meant.\n");
        options_help(global_options);
        puts("\nExit status: 0 good, 1 failed, 2 wrong command line, 3 the job was killed, 4 masterd cannot "
             "be reached,\n"
             "130 detached by Ctrl-C. 'primusctl COMMAND --help' and primusctl(1) say more.");
        return CLI_OK;
}

static int help_one(const struct command *command) {
        printf("primusctl %s%s%s\n\n%s.\n", command->name, *command->arguments ? " " : "", command->arguments,
               command->help);
        if (command->details)
                printf("%s\n", command->details);
        putchar('\n');
        options_help(command->options);
        options_help(global_options);
        return CLI_OK;
}

/* "primusctl --words [COMMAND]": what completion offers, one a line. */
static int words(int argc, char **argv) {
        const struct command *command = argc > 0 ? find_command(argv[0]) : NULL;

        if (argc == 0)
                for (size_t i = 0; i < ELEMENTSOF(commands); i++)
                        puts(commands[i].command->name);
        if (command)
                options_words(command->options);
        options_words(global_options);
        return CLI_OK;
}

/* "primusctl --words-help [COMMAND]": the same with what each is for, behind a tab. */
static int words_help(int argc, char **argv) {
        const struct command *command = argc > 0 ? find_command(argv[0]) : NULL;

        if (argc == 0)
                for (size_t i = 0; i < ELEMENTSOF(commands); i++)
                        printf("%s\t%s\n", commands[i].command->name, commands[i].command->help);
        if (command)
                options_described(command->options);
        options_described(global_options);
        return CLI_OK;
}

static int unknown_command(const struct cli *c, const char *name) {
        const char *nearest = NULL;
        size_t best = 3;

        for (size_t i = 0; i < ELEMENTSOF(commands); i++)
                if (edit_distance(name, commands[i].command->name) < best) {
                        best = edit_distance(name, commands[i].command->name);
                        nearest = commands[i].command->name;
                }
        nearest = command_known_as(name) ?: nearest;
        if (nearest)
                return cli_usage(c, "there is no command %s; did you mean %s?", name, nearest);
        return cli_usage(c, "there is no command %s", name);
}

static int check_arguments(const struct cli *c, const struct command *command, char **args, size_t n) {
        if (n > command->max)
                return cli_usage(c, "%s: unexpected: %s", command->name, args[command->max]);
        if (n < command->min)
                return cli_usage(c, "usage: primusctl %s %s", command->name, command->arguments);
        return 0;
}

static int run_command_line(struct cli *c, const struct command *command, int argc, char **argv,
                            struct global_options *global) {
        _cleanup_free_ char **args = calloc((size_t)argc + 1, sizeof(*args));
        _cleanup_free_ char *options = calloc(1, command->options_size + 1);
        size_t n;
        int r;

        if (!args || !options)
                return cli_oom(c);
        c->command = command->name;
        r = options_parse(c, argc, argv, command->stops, command->options, options, global, args, &n);
        if (!r && global->help)
                return help_one(command);
        if (!r)
                r = cli_apply_global(c, global);
        if (!r)
                r = check_arguments(c, command, args, n);
        if (!r)
                r = command->run(c, options, args, n);
        for (size_t i = 0; i < ELEMENTSOF(command->lists) && command->lists[i]; i++)
                free(((struct option_list *)(options + command->lists[i] - 1))->items);
        return r;
}

/* Global options may stand before the command; what follows them is the command's. */
static int dispatch(struct cli *c, int argc, char **argv) {
        _cleanup_free_ char **args = calloc((size_t)argc + 1, sizeof(*args));
        struct global_options global = { 0 };
        const struct command *command;
        size_t n;
        int r;

        if (!args)
                return cli_oom(c);
        if (argc > 0 && strcmp(argv[0], "--words") == 0)
                return words(argc - 1, argv + 1);
        if (argc > 0 && strcmp(argv[0], "--words-help") == 0)
                return words_help(argc - 1, argv + 1);
        r = options_parse(c, argc, argv, true, NULL, NULL, &global, args, &n);
        if (r)
                return r;
        if (global.version)
                return cli_version(c);
        if (n == 0 || strcmp(args[0], "help") == 0) {
                if (n > 1 && find_command(args[1]))
                        return help_one(find_command(args[1]));
                if (n > 0 || global.help)
                        return help_all();
                return cli_usage(c, "which command?");
        }
        command = find_command(args[0]);
        if (!command)
                return unknown_command(c, args[0]);
        if (command == &search_command && n > 1 && find_of_search(args[1]))
                return run_command_line(c, find_of_search(args[1]), (int)n - 2, args + 2, &global);
        return run_command_line(c, command, (int)n - 1, args + 1, &global);
}

int main(int argc, char **argv) {
        struct cli c = { .program = "primusctl" };
        const char *slash = argc > 0 ? strrchr(argv[0], '/') : NULL;
        const char *name = argc > 0 ? slash ? slash + 1 : argv[0] : "";
        int r;

        /* Whoever reads goes away: die of it, silently, as other tools do. A service hands the signal on
         * ignored. */
        (void)signal(SIGPIPE, SIG_DFL);
        if (strcmp(name, "primus-submit") == 0) {
                c.program = "primus-submit";
                r = primus_submit_main(&c, argc - 1, argv + 1);
        } else
                r = dispatch(&c, argc - (argc > 0), argv + (argc > 0));
        if (fflush(stdout) == EOF && r == CLI_OK)
                r = cli_fail(&c, "cannot write to standard output: %s", strerror(errno));
        sd_event_source_disable_unref(c.rejoin);
        sd_bus_unref(c.bus);
        free(c.login);
        return r;
}
