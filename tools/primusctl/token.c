/* SPDX-License-Identifier: Apache-2.0 */
/* primusctl token and join. */
#include <jansson.h>
#include <string.h>

#include "tools/primusctl/commands.h"

struct token_options {
        uint32_t uses;
        uint64_t expires;
        const char *from;
};

static int token_run(struct cli *c, void *options, char **args, size_t n) {
        struct token_options *o = options;
        _cleanup_(sd_bus_message_unref_p) sd_bus_message *m = NULL, *reply = NULL;
        const char *token;
        int r;

        (void)n;
        if (strcmp(args[0], "create") != 0)
                return cli_usage(c, "there is no 'token %s'; there is create", args[0]);
        r = cli_manager_call(c, "CreateToken", &m);
        if (r)
                return r;
        r = sd_bus_message_open_container(m, 'a', "{sv}");
        if (r >= 0 && o->uses)
                r = sd_bus_message_append(m, "{sv}", "uses", "u", o->uses);
        if (r >= 0 && o->expires)
                r = sd_bus_message_append(m, "{sv}", "expires", "t", o->expires);
        if (r >= 0 && o->from)
                r = sd_bus_message_append(m, "{sv}", "from", "s", o->from);
        if (r >= 0)
                r = sd_bus_message_close_container(m);
        if (r < 0)
                return cli_fail(c, "cannot make a call: %s", strerror(-r));
        r = cli_call(c, m, NULL, &reply);
        if (r)
                return r;
        r = sd_bus_message_read(reply, "s", &token);
        if (r < 0)
                return cli_bad_reply(c, r);
        if (c->json)
                return cli_print_json(c, json_pack("{s:s}", "token", token));
        puts(token); /* alone, so that it can be piped to 'primusctl join' over ssh */
        if (isatty(STDOUT_FILENO))
                fputs("On the new host, as root: primusctl join MASTER   (and paste this token)\n", stderr);
        return 0;
}

static const struct cli_option token_options[] = {
        { "uses", 0, "N", option_count, offsetof(struct token_options, uses),
          "so many hosts may join with it (1)" },
        { "expires", 0, "T", option_duration, offsetof(struct token_options, expires),
          "it is good for so long (1h)" },
        { "from", 0, "CIDR", option_string, offsetof(struct token_options, from),
          "only from these addresses, such as 10.0.0.0/8" },
        { 0 },
};

const struct command token_command = {
        .name = "token",
        .arguments = "create [OPTIONS]",
        .help = "Make a token with which a host joins the cluster",
        .options = token_options,
        .options_size = sizeof(struct token_options),
        .min = 1,
        .max = 1,
        .run = token_run,
};

struct join_options {
        const char *name, *file;
};

static int join_run(struct cli *c, void *options, char **args, size_t n) {
        struct join_options *o = options;
        const char *argv[8] = { PRIMUS_LIBEXECDIR "/primus-join" };
        size_t i = 1;

        (void)n;
        if (c->host)
                return cli_usage(c,
                                 "join works on the host that joins; run it there: ssh %s primusctl join %s",
                                 c->host, args[0]);
        if (o->name) {
                argv[i++] = "--name";
                argv[i++] = o->name;
        }
        if (o->file) {
                argv[i++] = "--token-file";
                argv[i++] = o->file;
        }
        argv[i++] = "--";
        argv[i++] = args[0];
        execv(argv[0], (char *const *)argv);
        return cli_fail(c, "cannot run %s: %s; is the package primus-agent installed?", argv[0],
                        strerror(errno));
}

static const struct cli_option join_options[] = {
        { "name", 0, "NAME", option_string, offsetof(struct join_options, name),
          "the node's name (the host's, in lower case)" },
        { "token-file", 0, "FILE", option_string, offsetof(struct join_options, file),
          "read the token from FILE" },
        { 0 },
};

const struct command join_command = {
        .name = "join",
        .arguments = "[OPTIONS] HOST[:PORT]",
        .help = "Make this host a node of the cluster whose master is HOST",
        .details = "The token of 'primusctl token create' is read from standard input or a file, never from "
                   "the command line.",
        .options = join_options,
        .options_size = sizeof(struct join_options),
        .min = 1,
        .max = 1,
        .run = join_run,
};
