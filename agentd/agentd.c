/* SPDX-License-Identifier: Apache-2.0 */
/* primus-agentd: arguments, signals, the loop. SIGTERM ends the agent and leaves the executors running. */
#include <getopt.h>
#include <malloc.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <systemd/sd-daemon.h>

#include "agentd/core/settings.h"
#include "agentd/start.h"
#include "lib/base/exit.h"
#include "lib/base/log.h"
#include "lib/base/memory.h"

static const char usage[] =
        "primus-agentd\n"
        "\n"
        "Runs the executors of Primus on this host as units of systemd, on the orders of the cluster's "
        "masterd.\n"
        "Started by systemd; settings are in " PRIMUS_SYSCONFDIR "/agentd.conf, see primus-agentd.conf(5).\n"
        "\n"
        "      --help          this text\n"
        "      --version       the version\n"
        "      --check-config  say what is wrong with the settings, and start nothing; the status is 0,\n"
        "                      1 (something is ignored) or 78 (it would not start)\n"
        "      --show-config   the same, and show the settings that hold and where they come from\n";

/* > 0: go on, else the exit status. */
static int parse_arguments(int argc, char **argv) {
        static const struct option options[] = {
                { "help", no_argument, NULL, 'h' },
                { "version", no_argument, NULL, 'v' },
                { "check-config", no_argument, NULL, 'c' },
                { "show-config", no_argument, NULL, 's' },
                { NULL, 0, NULL, 0 },
        };
        const int c = getopt_long(argc, argv, "", options, NULL);

        switch (c) {
        case -1:
                break;
        case 'h':
                fputs(usage, stdout);
                return -EXIT_SUCCESS;
        case 'v':
                puts("primus-agentd " PRIMUS_VERSION);
                return -EXIT_SUCCESS;
        case 'c':
        case 's':
                log_open_terminal("primus-agentd");
                return -settings_command(c == 's' ? stdout : NULL);
        default:
                return -2;
        }
        if (optind < argc) {
                fprintf(stderr, "primus-agentd: unexpected argument '%s'; it takes none\n", argv[optind]);
                return -2;
        }
        return 1;
}

static int run_daemon(void) {
        _cleanup_(sd_event_unrefp) sd_event *event = NULL;
        _cleanup_(manager_free_p) struct manager *m = NULL;
        sigset_t signals;
        int r;

        sigemptyset(&signals);
        sigaddset(&signals, SIGTERM);
        sigaddset(&signals, SIGINT);
        if (sigprocmask(SIG_BLOCK, &signals, NULL) < 0)
                return log_error_errno(-errno, "Cannot block signals");
        (void)signal(SIGPIPE, SIG_IGN);
        (void)mallopt(M_ARENA_MAX,
                      1); /* the threads allocate little, and an arena for each costs more than waiting */
        umask(0022); /* directories that users have to go through; what is secret is given its mode by name */
        if ((r = sd_event_new(&event)) < 0 ||
            (r = sd_event_add_signal(event, NULL, SIGTERM, NULL, NULL)) < 0 ||
            (r = sd_event_add_signal(event, NULL, SIGINT, NULL, NULL)) < 0)
                return log_error_errno(r, "Cannot make the event loop");
        r = sd_event_set_watchdog(event, true);
        if (r < 0)
                return log_error_errno(r, "Cannot answer the watchdog");
        r = memory_watch(event);
        if (r < 0)
                return log_error_errno(r, "Cannot make the event loop");
        r = manager_new(event, &m);
        if (r < 0)
                return r;
        r = sd_event_loop(event);
        (void)sd_notify(false, "STOPPING=1\nSTATUS=");
        if (r != 0)
                log_error("Ending; systemd starts the agent again and it finds its executors");
        return r;
}

int main(int argc, char **argv) {
        int r = parse_arguments(argc, argv);

        if (r <= 0)
                return -r;
        log_open("primus-agentd");
        r = run_daemon();
        return exit_status(r > 0 ? -EIO : r);
}
