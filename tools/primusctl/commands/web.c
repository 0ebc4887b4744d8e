/* SPDX-License-Identifier: Apache-2.0 */
/* primusctl web. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tools/primusctl/cli/commands.h"
#include "tools/primusctl/cli/ssh-host.h"

struct web_options {
        uint32_t port;
};

/* The gateway runs here, as the person who wants to look, and reaches masterd as any command does. */
static int web_run(struct cli *c, void *options, char **args, size_t n) {
        const struct web_options *o = options;
        const char *argv[8] = { PRIMUS_LIBEXECDIR "/primus-webd", "--browse" }, *ssh_port;
        _cleanup_free_ char *name = NULL;
        char port[16];
        size_t i = 2;

        (void)args;
        (void)n;
        cli_choose_host(c);
        if (c->host) {
                if (ssh_host_split(c->host, &name, &ssh_port) < 0)
                        return cli_usage(c, "--host: not a host's name: %s", c->host);
                argv[i++] = "--host";
                argv[i++] = c->host;
        }
        if (o->port > 0) {
                snprintf(port, sizeof(port), "%" PRIu32, o->port);
                argv[i++] = "--port";
                argv[i++] = port;
        }
        /* For people alone: a program that begins it (primus.client) takes what stands there for why it has
         * ended. */
        if (isatty(STDERR_FILENO))
                fputs("Open this address in a browser here; it opens once. Ctrl-C ends the page.\n", stderr);
        execv(argv[0], (char *const *)argv);
        return cli_fail(c,
                        "cannot run %s: %s; the package primus-web has it: apt install ./primus-web_*.deb   "
                        "(RPM: dnf install ./primus-web-*.rpm)",
                        argv[0], strerror(errno));
}

static const struct cli_option web_options[] = {
        { "port", 0, "PORT", option_count, offsetof(struct web_options, port),
          "listen on this port of the loopback, not on any that is free" },
        { 0 },
};

const struct command web_command = {
        .name = "web",
        .arguments = "[OPTIONS]",
        .help = "Show all of it in a browser, as yourself",
        .details =
                "Serves the page on this machine's loopback until Ctrl-C, and prints the address to open. With\n"
                "--host masterd is reached over ssh, as with every command; nothing listens there.",
        .options = web_options,
        .options_size = sizeof(struct web_options),
        .run = web_run,
};
