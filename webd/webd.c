/* SPDX-License-Identifier: Apache-2.0 */
/* primus-webd: arguments, the socket, the loop. It runs as the person whose rights it uses. */
#include <getopt.h>
#include <netinet/in.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <systemd/sd-daemon.h>

#include "lib/base/clock.h"
#include "lib/base/exit.h"
#include "lib/base/log.h"
#include "lib/base/memory.h"
#include "lib/base/parse.h"
#include "webd/route/session.h"
#include "webd/serve/serve.h"
#include "webd/serve/stdio.h"

static const char usage[] =
        "primus-webd [--browse | --stdio | --read-only]\n"
        "\n"
        "Serves Primus's page and its REST API to the person that it runs as, see primus-webd(8).\n"
        "Started by systemd with a socket of that person's: systemctl --user start primus-web.socket.\n"
        "\n"
        "      --browse       listen on a port of the loopback instead, and print the address to open in a\n"
        "                     browser; what \"primusctl web\" does\n"
        "      --port PORT    with --browse: this port, not any\n"
        "      --stdio        speak HTTP on standard input and output, one connection: ssh n1\n"
        "                     /usr/lib/primus/primus-webd --stdio\n"
        "      --read-only    the socket is everybody's: show what everybody may see, change nothing\n"
        "      --name NAME    with --read-only: a name by which browsers reach it, beside localhost; repeatable\n"
        "      --embed ORIGIN with --read-only: pages from there may show it in a frame, such as\n"
        "                     https://grafana.example\n"
        "  -H, --host HOST    masterd runs there; reached over ssh\n"
        "      --page DIR     the files of the page\n"
        "      --idle SEC     end after so long without a connection; 0: never (60; with --browse: never)\n"
        "      --help         this text\n"
        "      --version      the version\n";

#define NAMES_MAX 16u

struct options {
        bool browse, stdio, reads_only;
        uint32_t port, idle_sec;
        const char *host, *page, *embed, *names[NAMES_MAX + 1];
        size_t n_names;
};

static int number(const char *name, const char *text, uint32_t max, uint32_t *ret) {
        if (parse_u32(text, 0, max, ret) >= 0)
                return 1;
        fprintf(stderr, "primus-webd: --%s: expected a number up to %u, not '%s'\n", name, max, text);
        return -2;
}

/* As a browser has it in Host, without a port. */
static int take_name(struct options *o, const char *name) {
        if (o->n_names < NAMES_MAX && *name && strlen(name) <= 255 &&
            strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-.[]:") ==
                    strlen(name)) {
                o->names[o->n_names++] = name;
                return 1;
        }
        fprintf(stderr,
                "primus-webd: --name: expected a host's name or address without a port, up to %u of them\n",
                NAMES_MAX);
        return -2;
}

static int take_option(struct options *o, int c) {
        switch (c) {
        case 'r':
                o->reads_only = true;
                return 1;
        case 'n':
                return take_name(o, optarg);
        case 'e':
                o->embed = optarg;
                return 1;
        case 'b':
                o->browse = true;
                return 1;
        case 's':
                o->stdio = true;
                return 1;
        case 'p':
                return number("port", optarg, 65535, &o->port);
        case 'H':
                o->host = optarg;
                return 1;
        case 'd':
                o->page = optarg;
                return 1;
        case 'i':
                return number("idle", optarg, 86400, &o->idle_sec);
        case 'h':
                fputs(usage, stdout);
                return -EXIT_SUCCESS;
        case 'v':
                puts("primus-webd " PRIMUS_VERSION);
                return -EXIT_SUCCESS;
        default:
                return -2;
        }
}

/* > 0: go on, else the exit status. */
static int parse_arguments(int argc, char **argv, struct options *o) {
        static const struct option options[] = {
                { "browse", no_argument, NULL, 'b' },      { "stdio", no_argument, NULL, 's' },
                { "port", required_argument, NULL, 'p' },  { "host", required_argument, NULL, 'H' },
                { "page", required_argument, NULL, 'd' },  { "idle", required_argument, NULL, 'i' },
                { "help", no_argument, NULL, 'h' },        { "version", no_argument, NULL, 'v' },
                { "read-only", no_argument, NULL, 'r' },   { "name", required_argument, NULL, 'n' },
                { "embed", required_argument, NULL, 'e' }, { NULL, 0, NULL, 0 },
        };
        int c;

        while ((c = getopt_long(argc, argv, "H:", options, NULL)) != -1) {
                int r = take_option(o, c);
                if (r <= 0)
                        return r;
        }
        if (optind < argc) {
                fprintf(stderr, "primus-webd: unexpected argument '%s'\n", argv[optind]);
                return -2;
        }
        if (!o->browse && o->port > 0)
                fprintf(stderr, "primus-webd: --port goes with --browse\n");
        else if (!o->reads_only && (o->n_names > 0 || o->embed))
                fprintf(stderr, "primus-webd: --name and --embed go with --read-only\n");
        else if (o->reads_only + o->browse + o->stdio > 1)
                fprintf(stderr, "primus-webd: --browse, --stdio and --read-only exclude each other\n");
        else
                return 1;
        return -2;
}

/* Everybody's may be one of the network. */
static int passed_socket(bool any) {
        int n = sd_listen_fds(true);

        if (n == 1 && sd_is_socket(SD_LISTEN_FDS_START, any ? AF_UNSPEC : AF_UNIX, SOCK_STREAM, 1) > 0)
                return SD_LISTEN_FDS_START;
        log_error("No socket was passed; start primus-web.socket instead, or use --browse or --stdio");
        return -EINVAL;
}

static int listen_loopback(const struct options *o) {
        struct sockaddr_in sa = { .sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)o->port),
                                  .sin_addr = { htonl(INADDR_LOOPBACK) } };
        _cleanup_close_ int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

        if (fd < 0 || bind(fd, (struct sockaddr *)&sa, sizeof(sa)) < 0 || listen(fd, SOMAXCONN) < 0)
                return log_error_errno(-errno, "Cannot listen on port %u of the loopback", o->port);
        return TAKE_FD(fd);
}

static int make_socket(const struct options *o) {
        int fd;

        if (o->browse)
                return listen_loopback(o);
        if (!o->stdio)
                return passed_socket(o->reads_only);
        fd = stdio_listen();
        return fd < 0 ? log_error_errno(fd, "Cannot make a socket") : fd;
}

/* 0: it has none. */
static unsigned port_of(int fd) {
        struct sockaddr_in sa;
        socklen_t size = sizeof(sa);

        return getsockname(fd, (struct sockaddr *)&sa, &size) < 0 ? 0 : ntohs(sa.sin_port);
}

/* The token stands behind '#', which a browser sends to nobody. */
static void print_address(unsigned port, const char *token) {
        printf("http://127.0.0.1:%u/#token=%s\n", port, token);
        fflush(stdout);
}

static int prepare(sd_event **ret) {
        sigset_t signals;
        int r;

        sigemptyset(&signals);
        sigaddset(&signals, SIGTERM);
        sigaddset(&signals, SIGINT);
        if (sigprocmask(SIG_BLOCK, &signals, NULL) < 0)
                return log_error_errno(-errno, "Cannot block signals");
        (void)signal(SIGPIPE, SIG_IGN);
        if ((r = sd_event_new(ret)) < 0 || (r = sd_event_add_signal(*ret, NULL, SIGTERM, NULL, NULL)) < 0 ||
            (r = sd_event_add_signal(*ret, NULL, SIGINT, NULL, NULL)) < 0 || (r = memory_watch(*ret)) < 0)
                return log_error_errno(r, "Cannot make the event loop");
        return 0;
}

static int serve_person(const struct options *o) {
        _cleanup_(sd_event_unrefp) sd_event *event = NULL;
        _cleanup_(serve_free_p) struct serve *s = NULL;
        _cleanup_(stdio_free_p) struct stdio *carrier = NULL;
        char token[SESSION_SECRET_MAX] = "";
        struct serve_options options = { .page = o->page,
                                         .host = o->host,
                                         .idle_usec = o->idle_sec * USEC_PER_SEC,
                                         .reads_only = o->reads_only,
                                         .names = o->names,
                                         .embed = o->embed };
        int fd = make_socket(o), r;

        if (fd < 0)
                return fd;
        if (o->stdio)
                options.idle_usec = 0;
        if (o->browse) {
                session_secret(token);
                options.token = token;
                options.port = port_of(fd);
                options.idle_usec = 0;
        }
        r = prepare(&event);
        if (r < 0) {
                (void)close_fd(fd);
                return r;
        }
        r = serve_new(event, fd, &options, &s);
        if (r < 0)
                return log_error_errno(r, "Cannot serve");
        r = o->stdio ? stdio_new(event, fd, &carrier) : 0;
        if (r < 0)
                return log_error_errno(r, "Standard input and output have to be pipes or sockets");
        if (o->browse)
                print_address(options.port, token);
        (void)sd_notify(false, "READY=1");
        return sd_event_loop(event);
}

int main(int argc, char **argv) {
        struct options o = { .idle_sec = 60, .page = PRIMUS_PAGEDIR };
        int r = parse_arguments(argc, argv, &o);

        if (r <= 0)
                return -r;
        if (o.browse || o.stdio)
                log_open_terminal("primus-webd");
        else
                log_open("primus-webd");
        return exit_status(serve_person(&o));
}
