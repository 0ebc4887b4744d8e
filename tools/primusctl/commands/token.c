/* SPDX-License-Identifier: Apache-2.0 */
/* primusctl token and join. */
#include <inttypes.h>
#include <limits.h>
#include <pwd.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/format.h"
#include "lib/json/get.h"
#include "tools/primusctl/bus/ask.h"
#include "tools/primusctl/cli/commands.h"
#include "tools/primusctl/view/table.h"

struct token_options {
        uint32_t uses;
        uint64_t expires;
        const char *from, *name, *replace;
};

static int add_options(sd_bus_message *m, const struct token_options *o) {
        int r = sd_bus_message_open_container(m, 'a', "{sv}");

        if (r >= 0 && o->uses)
                r = sd_bus_message_append(m, "{sv}", "uses", "u", o->uses);
        if (r >= 0 && o->expires)
                r = sd_bus_message_append(m, "{sv}", "expires", "t", o->expires);
        if (r >= 0 && o->from)
                r = sd_bus_message_append(m, "{sv}", "from", "s", o->from);
        if (r >= 0 && (o->name || o->replace))
                r = sd_bus_message_append(m, "{sv}{sv}", "name", "s", o->name ?: o->replace, "replace", "b",
                                          (int)(o->replace != NULL));
        return r < 0 ? r : sd_bus_message_close_container(m);
}

/* What the master's host is called elsewhere, as far as we know. */
static const char *master_name(const struct cli *c, char *buf, size_t size) {
        const char *at = c->host ? strrchr(c->host, '@') : NULL;

        if (c->host)
                return at ? at + 1 : c->host;
        return gethostname(buf, size) < 0 || !memchr(buf, 0, size) ? "MASTER" : buf;
}

/* On stderr, and for people only: the token stands alone on stdout, so that it can be piped over ssh. */
static void explain(const struct cli *c, const struct token_options *o) {
        char life[FORMAT_DURATION_MAX], name[HOST_NAME_MAX + 1];
        uint32_t uses = o->uses ?: 1;

        if (!isatty(STDERR_FILENO) || c->json)
                return;
        if (o->name || o->replace)
                fprintf(stderr, "Good for the node %s%s", o->name ?: o->replace,
                        o->replace ? ", in place of the one that has the name now" : "");
        else
                fprintf(stderr, "Good for %" PRIu32 " new host%s", uses, uses == 1 ? "" : "s");
        fprintf(stderr, ", for %s%s%s.\n",
                format_duration(o->expires ?: 3600 * USEC_PER_SEC, life, sizeof(life)),
                o->from ? ", from " : "", o->from ?: "");
        if (isatty(STDOUT_FILENO))
                fprintf(stderr, "On the host that is to join, as root: primusctl join %s   (and paste it)\n",
                        master_name(c, name, sizeof(name)));
}

static int create_token(struct cli *c, const struct token_options *o) {
        _cleanup_(sd_bus_message_unref_p) sd_bus_message *m = NULL, *reply = NULL;
        const char *token;
        int r = cli_manager_call(c, "CreateToken", &m);

        if (r)
                return r;
        r = add_options(m, o);
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
        puts(token);
        explain(c, o);
        return 0;
}

static int print_tokens(struct cli *c, const json_t *tokens) {
        static const struct table_column columns[] = {
                { "TOKEN", false, false }, { "HOSTS", true, false }, { "LEFT", true, false },
                { "FOR", false, false },   { "FROM", false, false }, { "MADE BY", false, true },
        };
        _cleanup_(table_free_p) struct table *table = NULL;
        char left[FORMAT_DURATION_MAX];
        const json_t *t;
        size_t i;
        int r = table_new(c, columns, ELEMENTSOF(columns), &table);

        if (r)
                return r;
        json_array_foreach (tokens, i, t) {
                const char *name = json_get_text(t, "name"), *from = json_get_text(t, "from");
                uint32_t creator = (uint32_t)json_get_number(t, "creator");
                const struct passwd *p = getpwuid(creator);

                if (table_row(table) < 0)
                        return cli_oom(c);
                table_set(table, 0, COLOR_NONE, "%s", json_get_text(t, "token"));
                table_set(table, 1, COLOR_NONE, "%" PRIu64, json_get_number(t, "uses"));
                table_set(table, 2, COLOR_NONE, "%s",
                          format_duration(usec_sub(json_get_number(t, "expires"), now_real()), left,
                                          sizeof(left)));
                table_set(table, 3, COLOR_NONE, "%s%s", *name ? name : "new hosts",
                          json_get_flag(t, "replace") ? " (replaced)" : "");
                table_set(table, 4, COLOR_NONE, "%s", *from ? from : "anywhere");
                if (p)
                        table_set(table, 5, COLOR_NONE, "%s", p->pw_name);
                else
                        table_set(table, 5, COLOR_NONE, "uid %" PRIu32, creator);
        }
        if (json_array_size(tokens) > 0)
                return table_print(c, table);
        puts("There is no token that is still good; 'primusctl token create' makes one");
        return 0;
}

static int list_tokens(struct cli *c) {
        _cleanup_(json_decref_p) json_t *tokens = NULL;
        int r = ask_manager_list(c, "ListTokens", &json_token, &tokens);

        if (r)
                return r;
        return c->json ? cli_print_json(c, TAKE_PTR(tokens)) : print_tokens(c, tokens);
}

static int revoke_token(struct cli *c, const char *id) {
        _cleanup_(sd_bus_message_unref_p) sd_bus_message *m = NULL, *reply = NULL;
        int r = cli_manager_call(c, "RevokeToken", &m);

        if (!r && sd_bus_message_append(m, "s", id) < 0)
                return cli_usage(c, "token revoke: not a token's number: it is not UTF-8");
        if (!r)
                r = cli_call(c, m, NULL, &reply);
        if (!r && !c->json)
                printf("Token %s opens nothing any more\n", id);
        return r;
}

static int token_run(struct cli *c, void *options, char **args, size_t n) {
        const struct token_options *o = options;
        bool creates = strcmp(args[0], "create") == 0, lists = strcmp(args[0], "list") == 0;

        if (!creates && (o->uses || o->expires || o->from || o->name || o->replace))
                return cli_usage(c, "token: --uses, --expires, --from, --name and --replace are for 'token "
                                    "create'");
        if (o->name && o->replace)
                return cli_usage(c, "token create: --replace %s is for that node already; leave --name out",
                                 o->replace);
        if ((creates || lists) && n > 1)
                return cli_usage(c, "token %s: unexpected: %s", args[0], args[1]);
        if (creates)
                return create_token(c, o);
        if (lists)
                return list_tokens(c);
        if (strcmp(args[0], "revoke") != 0)
                return cli_usage(c, "there is no 'token %s'; there are create, list and revoke", args[0]);
        if (n < 2)
                return cli_usage(c, "token revoke: which? 'primusctl token list' shows them");
        if (strncmp(args[1], "primus1.", 8) == 0)
                return cli_usage(c,
                                 "token revoke: not the token itself, but as 'primusctl token list' has it");
        return revoke_token(c, args[1]);
}

static const struct cli_option token_options[] = {
        { "uses", 0, "N", option_count, offsetof(struct token_options, uses),
          "so many hosts may join with it (1)" },
        { "expires", 0, "T", option_duration, offsetof(struct token_options, expires),
          "it is good for so long (1h)" },
        { "from", 0, "CIDR", option_string, offsetof(struct token_options, from),
          "only from these addresses, such as 10.0.0.0/8" },
        { "name", 0, "NODE", option_string, offsetof(struct token_options, name),
          "for the node of this name alone; else for any whose name is new" },
        { "replace", 0, "NODE", option_string, offsetof(struct token_options, replace),
          "for this node, which the cluster knows and which was installed anew" },
        { 0 },
};

const struct command token_command = {
        .name = "token",
        .arguments = "create|list|revoke [TOKEN] [OPTIONS]",
        .help = "Make, list and revoke tokens, with which hosts join",
        .details =
                "create prints a token alone on standard output, so that it can be piped to 'primusctl join' "
                "over ssh.\n"
                "list shows those that are still good, by a number that opens nothing; revoke takes that "
                "number.",
        .options = token_options,
        .options_size = sizeof(struct token_options),
        .min = 1,
        .max = 2,
        .run = token_run,
};

struct join_options {
        const char *name, *file;
        bool no_start;
};

static int join_run(struct cli *c, void *options, char **args, size_t n) {
        struct join_options *o = options;
        const char *argv[9] = { PRIMUS_LIBEXECDIR "/primus-join" };
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
        if (o->no_start)
                argv[i++] = "--no-start";
        argv[i++] = "--";
        argv[i++] = args[0];
        execv(argv[0], (char *const *)argv);
        return cli_fail(
                c,
                "cannot run %s: %s; the package primus-agent has it: apt install ./primus-agent_*.deb   "
                "(RPM: dnf install ./primus-agent-*.rpm)",
                argv[0], strerror(errno));
}

static const struct cli_option join_options[] = {
        { "name", 0, "NAME", option_string, offsetof(struct join_options, name),
          "the node's name (the host's, in lower case)" },
        { "token-file", 0, "FILE", option_string, offsetof(struct join_options, file),
          "read the token from FILE" },
        { "no-start", 0, NULL, NULL, offsetof(struct join_options, no_start),
          "leave primus-agentd as it is, for those who build images" },
        { 0 },
};

const struct command join_command = {
        .name = "join",
        .arguments = "[OPTIONS] HOST[:PORT]",
        .help = "Make this host a node of the cluster whose master is HOST",
        .details = "The token of 'primusctl token create' is read from standard input or a file, never from "
                   "the command line.\n"
                   "Then primus-agentd is enabled and started, and has to reach the master: exit status 0 "
                   "means it has.",
        .options = join_options,
        .options_size = sizeof(struct join_options),
        .min = 1,
        .max = 1,
        .run = join_run,
};
