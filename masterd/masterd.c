/* SPDX-License-Identifier: Apache-2.0 */
/* primus-masterd: argv, signals, the loop. */
#include <getopt.h>
#include <signal.h>
#include <stdio.h>

#include "lib/base/exit.h"
#include "lib/base/log.h"
#include "lib/base/memory.h"
#include "masterd/conf/conf.h"
#include "masterd/core/manager.h"
#include "masterd/start.h"

static int help(const char *name) {
        printf("%s [OPTIONS...]\n\n"
               "Schedules jobs onto the hosts of the cluster. Started by systemd as "
               "primus-masterd.service.\n\n"
               "  -h --help          show this help\n"
               "     --version       show the version\n"
               "     --check-config  say what is wrong with the settings, and start nothing; the status is "
               "0,\n"
               "                     1 (something is ignored) or 78 (it would not start)\n"
               "     --show-config   the same, and show the settings that hold and where they come from\n\n"
               "See primus-masterd(8) and primus-masterd.conf(5).\n",
               name);
        return 0;
}

static int run(void) {
        struct manager *m = NULL;
        sigset_t mask;
        int r;

        sigemptyset(&mask);
        sigaddset(&mask, SIGTERM);
        sigaddset(&mask, SIGINT);
        sigaddset(&mask, SIGHUP);
        if (sigprocmask(SIG_BLOCK, &mask, NULL) < 0)
                return -errno;
        (void)signal(SIGPIPE, SIG_IGN);

        r = start_new(&m);
        if (r < 0)
                return r; /* logged */
        r = start_serving(m);
        if (r >= 0)
                r = memory_watch(m->event);
        if (r >= 0)
                r = sd_event_loop(m->event);
        start_free(m);
        return r;
}

int main(int argc, char *argv[]) {
        enum {
                ARG_VERSION = 0x100,
                ARG_CHECK_CONFIG,
                ARG_SHOW_CONFIG,
        };
        static const struct option options[] = { { "help", no_argument, NULL, 'h' },
                                                 { "version", no_argument, NULL, ARG_VERSION },
                                                 { "check-config", no_argument, NULL, ARG_CHECK_CONFIG },
                                                 { "show-config", no_argument, NULL, ARG_SHOW_CONFIG },
                                                 {} };
        int c;

        while ((c = getopt_long(argc, argv, "h", options, NULL)) >= 0)
                switch (c) {
                case 'h':
                        return help(argv[0]);
                case ARG_VERSION:
                        puts("primus-masterd " PRIMUS_VERSION);
                        return 0;
                case ARG_CHECK_CONFIG:
                case ARG_SHOW_CONFIG:
                        log_open_terminal("primus-masterd");
                        return conf_command(c == ARG_SHOW_CONFIG ? stdout : NULL);
                default:
                        return 2;
                }
        if (optind < argc) {
                fprintf(stderr, "%s takes no arguments; see --help\n", argv[0]);
                return 2;
        }
        log_open("primus-masterd");
        return exit_status(run());
}
