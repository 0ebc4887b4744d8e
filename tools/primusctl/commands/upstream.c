/* SPDX-License-Identifier: Apache-2.0 */
/* primus-submit: the command line of ByteDance Primus, as far as it had one. */
#include <string.h>

#include "lib/base/parse.h"
#include "tools/primusctl/cli/commands.h"
#include "tools/primusctl/commands/progress.h"
#include "tools/primusctl/commands/submit.h"

struct upstream_options {
        const char *conf, *wait, *command;
};

static const struct cli_option upstream_options[] = {
        { "primus_conf", 0, "FILE", option_string, offsetof(struct upstream_options, conf),
          "the job's configuration" },
        { "wait_app_completion", 0, "BOOL", option_string, offsetof(struct upstream_options, wait),
          "true: show progress until the job ends and return its status" },
        { "command", 0, "submit", option_string, offsetof(struct upstream_options, command),
          "only submit, the default" },
        { 0 },
};

static int help(void) {
        puts("primus-submit --primus_conf FILE [--wait_app_completion true]\n\n"
             "Submit a job as ByteDance Primus' tool of this name does. More: primusctl submit --help.\n");
        options_help(upstream_options);
        options_help(global_options);
        return CLI_OK;
}

int primus_submit_main(struct cli *c, int argc, char **argv) {
        struct upstream_options o = { 0 };
        struct global_options global = { 0 };
        _cleanup_free_ char **args = calloc((size_t)argc + 1, sizeof(*args));
        _cleanup_free_ char *name = NULL;
        struct job_ref job;
        bool wait = false;
        size_t n;
        int r;

        if (!args)
                return cli_oom(c);
        r = options_parse(c, argc, argv, false, upstream_options, &o, &global, args, &n);
        if (!r)
                r = cli_apply_global(c, &global);
        if (r)
                return r;
        if (global.help)
                return help();
        if (global.version)
                return cli_version(c);
        if (n > 0)
                return cli_usage(c, "unexpected: %s", args[0]);
        if (!o.conf)
                return cli_usage(c, "--primus_conf FILE is missing");
        if (o.command && strcmp(o.command, "submit") != 0)
                return cli_usage(
                        c, "--command: only submit is there, not '%s'; the others are commands of primusctl",
                        o.command);
        if (o.wait && parse_bool(o.wait, &wait) < 0)
                return cli_usage(c, "--wait_app_completion: expected true or false, not '%s'", o.wait);
        r = submit_file(c, o.conf, &(struct submission){ 0 }, &job, &name);
        if (!r)
                r = submit_announce(c, &job, name, false);
        if (r || !wait)
                return r;
        return progress_wait(c, &job, &(struct progress_options){ 0 });
}
