/* SPDX-License-Identifier: Apache-2.0 */
/* primusctl login. */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/file.h"
#include "tools/primusctl/cli/commands.h"
#include "tools/primusctl/cli/login.h"

struct login_options {
        bool forget;
};

static int forget_host(struct cli *c, const char *path) {
        if (unlink(path) < 0 && errno != ENOENT)
                return cli_fail(c, "cannot remove %s: %s", path, strerror(errno));
        return CLI_OK;
}

static int say_host(struct cli *c) {
        _cleanup_free_ char *host = login_host();

        if (c->json)
                return cli_print_json(c, json_pack("{s:s?}", "host", host));
        if (!host)
                return cli_fail(c, "there is no login; primusctl login HOST, where ssh HOST works");
        puts(host);
        return CLI_OK;
}

/* It is kept only where the way there was found. */
static int keep_host(struct cli *c, const char *path, const char *host) {
        _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
        _cleanup_free_ char *line = NULL, *version = NULL, *directory = NULL;
        int r;

        c->host = host;
        r = cli_connect(c);
        if (r)
                return r;
        r = sd_bus_get_property_string(c->bus, MASTER_NAME, MASTER_PATH, MASTER_MANAGER, "Version", &error,
                                       &version);
        if (r < 0)
                return cli_call_failed(c, &error, r, NULL, NULL);
        if (asprintf(&line, "%s\n", host) < 0)
                return cli_oom(c);
        directory = strndup(path, (size_t)(strrchr(path, '/') - path));
        r = directory ? make_directories(directory, 0700) : -ENOMEM;
        r = r < 0 ? r : write_file_atomic(path, line, strlen(line), 0600, true);
        if (r < 0)
                return cli_fail(c, "cannot write %s: %s", path, strerror(-r));
        if (c->json)
                return cli_print_json(c, json_pack("{s:s}", "host", host));
        printf("From here primusctl goes to the master on %s (version %s) by ssh from now on\n", host,
               version);
        return CLI_OK;
}

static int login_run(struct cli *c, void *options, char **args, size_t n) {
        const struct login_options *o = options;
        _cleanup_free_ char *path = login_path();

        if (!path)
                return cli_fail(c, "neither XDG_CONFIG_HOME nor HOME says where to keep it");
        if (o->forget && n > 0)
                return cli_usage(c, "--forget takes no host");
        if (o->forget)
                return forget_host(c, path);
        return n > 0 ? keep_host(c, path, args[0]) : say_host(c);
}

static const struct cli_option login_options[] = {
        { "forget", 0, NULL, NULL, offsetof(struct login_options, forget), "as before the first login" },
        { 0 },
};

const struct command login_command = {
        .name = "login",
        .arguments = "[--forget] [[USER@]HOST[:PORT]]",
        .help = "Go to that host's master from here, by ssh",
        .details =
                "For a machine that is of no cluster: what -H says once, this says for good, to every command\n"
                "without -H. Nothing secret is kept: who may is ssh's to say, each time. Without a HOST it prints\n"
                "the one that is kept. On hosts of a cluster, and in jobs, it is not looked at.",
        .options = login_options,
        .options_size = sizeof(struct login_options),
        .max = 1,
        .run = login_run,
};
