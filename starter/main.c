/* SPDX-License-Identifier: Apache-2.0 */
/* primus-starter: arguments, signals, the loop. It is what is root of Primus on a host: primus-agentd, which
 * speaks to the network, asks it for what only root may do, and this program decides by the host's own
 * policy. It may end at any time: it keeps nothing but connections. */
#include <getopt.h>
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <systemd/sd-daemon.h>

#include "lib/base/exit.h"
#include "lib/base/log.h"
#include "starter/calls/server.h"
#include "starter/files/ports.h"
#include "starter/files/prepare.h"
#include "starter/files/private.h"
#include "starter/systemd/slices.h"

#define AGENT_USER "primus-agent"
#define METRICS_GROUP "primus-metrics"

static const char usage[] = "primus-starter\n"
                            "\n"
                            "Makes, changes and stops units and their files for primus-agentd, as root, by "
                            "this host's own policy.\n"
                            "Started by systemd (primus-starter.socket); settings are in " PRIMUS_SYSCONFDIR
                            "/agentd.conf, see primus-agentd.conf(5).\n"
                            "\n"
                            "      --prepare  make the directories of the host's daemons, and end\n"
                            "      --help     this text\n"
                            "      --version  the version\n";

enum mode {
        MODE_SERVE,
        MODE_PREPARE
};

/* > 0: go on, else the exit status. */
static int parse_arguments(int argc, char **argv, enum mode *ret) {
        static const struct option options[] = {
                { "help", no_argument, NULL, 'h' },
                { "version", no_argument, NULL, 'v' },
                { "prepare", no_argument, NULL, 'p' },
                { NULL, 0, NULL, 0 },
        };
        const int c = getopt_long(argc, argv, "", options, NULL);

        *ret = c == 'p' ? MODE_PREPARE : MODE_SERVE;
        switch (c) {
        case -1:
        case 'p':
                break;
        case 'h':
                fputs(usage, stdout);
                return -EXIT_SUCCESS;
        case 'v':
                puts("primus-starter " PRIMUS_VERSION);
                return -EXIT_SUCCESS;
        default:
                return -2;
        }
        if (optind < argc) {
                fprintf(stderr, "primus-starter: unexpected argument '%s'\n", argv[optind]);
                return -2;
        }
        return 1;
}

static int find_agent(uid_t *ret_uid, gid_t *ret_gid) {
        const struct passwd *pw = getpwnam(AGENT_USER);

        if (!pw) {
                log_error("There is no user " AGENT_USER " on this host: systemd-sysusers makes it");
                return -EPERSON;
        }
        *ret_uid = pw->pw_uid;
        *ret_gid = pw->pw_gid;
        return 0;
}

/* A host without the group has such sockets for agentd's own. */
static gid_t find_metrics(gid_t agent) {
        const struct group *group = getgrnam(METRICS_GROUP);

        return group ? group->gr_gid : agent;
}

static int serve(uid_t agent) {
        _cleanup_(sd_event_unrefp) sd_event *event = NULL;
        _cleanup_(sd_bus_close_unrefp) sd_bus *bus = NULL;
        _cleanup_(remover_free_p) struct remover *remover = NULL;
        _cleanup_(relay_free_p) struct relay *relay = NULL;
        _cleanup_(lookup_free_p) struct lookup *lookup = NULL;
        _cleanup_(server_free_p) struct server *server = NULL;
        struct starter s = { .root = "", .agent_uid = agent };
        sigset_t signals;
        int r;

        sigemptyset(&signals);
        sigaddset(&signals, SIGTERM);
        sigaddset(&signals, SIGINT);
        sigaddset(&signals, SIGCHLD);
        if (sigprocmask(SIG_BLOCK, &signals, NULL) < 0)
                return log_error_errno(-errno, "Cannot block signals");
        (void)signal(SIGPIPE, SIG_IGN);
        umask(0022);
        if (sd_listen_fds(true) != 1 ||
            sd_is_socket_unix(SD_LISTEN_FDS_START, SOCK_STREAM, 1, NULL, 0) <= 0) {
                log_error("Expected the socket of primus-starter.socket");
                return -EPERSON;
        }
        if ((r = policy_load(&s.policy)) < 0)
                return r;
        if ((r = lookup_new(&s.policy.serve, &lookup)) < 0)
                return log_oom();
        s.lookup = lookup;
        if ((r = sd_event_new(&event)) < 0 ||
            (r = sd_event_add_signal(event, NULL, SIGTERM, NULL, NULL)) < 0 ||
            (r = sd_event_add_signal(event, NULL, SIGINT, NULL, NULL)) < 0 ||
            (r = sd_event_set_watchdog(event, true)) < 0 || (r = remover_new(event, &remover)) < 0)
                return log_error_errno(r, "Cannot make the event loop");
        if ((r = sd_bus_open_system_with_description(&bus, "starter")) < 0 ||
            (r = sd_bus_set_exit_on_disconnect(bus, true)) < 0 ||
            (r = sd_bus_attach_event(bus, event, SD_EVENT_PRIORITY_NORMAL)) < 0)
                return log_error_errno(r, "Cannot connect to the system bus");
        s.event = event;
        s.systemd = bus;
        if ((r = relay_new(bus, NULL, NULL, &relay)) < 0)
                return log_error_errno(r, "Cannot follow systemd on the system bus");
        s.relay = relay;
        s.remover = remover;
        if ((r = open_files_ask(bus, s.policy.open_files, &s.open_files)) < 0)
                log_warning_errno(r, "Cannot ask systemd for its limits on open files: executors have those, "
                                     "and OpenFiles= does nothing");
        ports_reserve(&s.policy);
        extra_fields_sweep("");
        ports_sweep_stale();
        slices_sweep(bus, "");
        if ((r = server_new(&s, SD_LISTEN_FDS_START, &server)) < 0)
                return log_error_errno(r, "Cannot listen");
        (void)sd_notify(false, "READY=1\nSTATUS=Serving primus-agentd");
        r = sd_event_loop(event);
        (void)sd_notify(false, "STOPPING=1\nSTATUS=");
        return r;
}

int main(int argc, char **argv) {
        enum mode mode;
        uid_t uid;
        gid_t gid;
        int r = parse_arguments(argc, argv, &mode);

        if (r <= 0)
                return -r;
        log_open("primus-starter");
        r = find_agent(&uid, &gid);
        if (r >= 0)
                r = mode == MODE_PREPARE ? prepare("", uid, gid, find_metrics(gid)) : serve(uid);
        return exit_status(r > 0 ? -EIO : r);
}
