/* SPDX-License-Identifier: Apache-2.0 */
/* primus-join: makes this host a node of a cluster. Run by 'primusctl join', apart from it because it links
 * GnuTLS, by primus-first-contact.service, and at boot by primus-join.service. */
#include <ctype.h>
#include <getopt.h>
#include <limits.h>
#include <string.h>
#include <termios.h>

#include "lib/base/cleanup.h"
#include "lib/base/file.h"
#include "lib/base/names.h"
#include "lib/wire/join.h"
#include "tools/join/credential.h"
#include "tools/join/local.h"
#include "tools/join/place.h"
#include "tools/join/start.h"

static void usage(FILE *f) {
        fputs("primus-join [--name NAME] [--token-file FILE] [--no-start] HOST[:PORT]\n"
              "primus-join --local [--name NAME]\n"
              "primus-join --credential FILE [--no-start]\n"
              "primus-join --check\n\n"
              "Makes this host a node of the cluster whose master is HOST. The token of 'primusctl token "
              "create' is read from\n"
              "standard input, or from FILE. See primusctl(1).\n\n"
              "--local: of the master that runs on this host, which is asked for a token itself.\n"
              "--credential: FILE has the line 'HOST[:PORT] NAME TOKEN'; done where this host is node NAME "
              "already.\n"
              "--check: has this host joined a cluster?\n",
              f);
}

/* The token's text; a terminal is asked without echo. */
static int read_token_text(const char *file, char **ret) {
        struct termios saved, quiet;
        bool asked = false;
        int r;

        if (!file && isatty(STDIN_FILENO) && tcgetattr(STDIN_FILENO, &saved) >= 0) {
                fputs("Token: ", stderr);
                quiet = saved;
                quiet.c_lflag &= ~(tcflag_t)ECHO;
                asked = tcsetattr(STDIN_FILENO, TCSAFLUSH, &quiet) >= 0;
        }
        if (asked) {
                size_t size = 0;
                *ret = NULL;
                r = getline(ret, &size, stdin) < 0 ? -EIO : 0;
                (void)tcsetattr(STDIN_FILENO, TCSAFLUSH, &saved);
                fputc('\n', stderr);
        } else
                /* Standard input as it is: a pipe that nothing has come through yet is waited for. */
                r = file ? read_file(file, 4096, ret, NULL) : read_fd(STDIN_FILENO, 4096, ret, NULL);
        if (r < 0)
                return fail(1, "cannot read the token%s%s: %s", file ? " from " : "", file ? file : "",
                            strerror(-r));
        return 0;
}

static int read_token(const char *file, struct join_token *ret) {
        char *text = NULL;
        int r = read_token_text(file, &text);

        if (!r && join_token_parse(text, ret) < 0)
                r = fail(1, "that is no token; 'primusctl token create' on the master makes one");
        if (text)
                explicit_bzero(text, strlen(text));
        free(text);
        return r;
}

/* The host's own name, in lower case. */
static int default_name(char *buf, size_t size) {
        if (gethostname(buf, size) < 0 || !memchr(buf, 0, size))
                return fail(1, "cannot read the host's name; give --name");
        for (char *p = buf; *p; p++)
                *p = (char)tolower((unsigned char)*p);
        if (!node_name_valid(buf))
                return fail(1, "the host's name '%s' cannot be a node's name; give --name", buf);
        return 0;
}

struct options {
        const char *name, *token_file, *credential;
        bool local, check, no_start;
};

/* Everything of a join but the token. Invariant: what is known to be wrong is said before a token is spent,
 * and Master= is on disk before the identity, so that a host with an identity has all it needs. */
static int become_node(const char *target, const char *name, struct join_token *token, bool set_master,
                       bool stop) {
        _cleanup_free_ char *host = NULL, *ca = NULL, *why = NULL;
        struct certificate certificate = { 0 };
        uint16_t port;
        int r;

        r = addr_split(target, MASTER_PORT, &host, &port);
        if (r >= 0)
                r = join_cluster(host, port, token, name, &ca, &certificate, &why);
        explicit_bzero(token, sizeof(*token));
        if (r < 0)
                return fail(JOIN_FAILED, "%s", why ? why : strerror(-r));
        if (stop)
                agent_stop();
        r = set_master ? master_write(target) : JOIN_OK;
        if (!r)
                r = identity_write(ca, &certificate);
        certificate_done(&certificate);
        return r;
}

static int choose_name(const struct options *o, char *buf, size_t size) {
        if (!o->name)
                return default_name(buf, size);
        if (!node_name_valid(o->name))
                return fail(JOIN_USAGE,
                            "--name: '%s' cannot be a node's name: lower case letters, digits, '-' and '.', "
                            "at most 64",
                            o->name);
        snprintf(buf, size, "%s", o->name);
        return 0;
}

/* The master runs on this host. */
static int join_local(const struct options *o) {
        _cleanup_free_ char *set = NULL;
        char name[HOST_NAME_MAX + 1], target[ADDR_TEXT_MAX];
        struct join_token token;
        struct addr address;
        int r;

        if (identity_there()) {
                puts("This host has joined a cluster already.");
                return JOIN_OK;
        }
        set = master_set_by_others();
        if (set && !is_this_host(set))
                return fail(JOIN_CONFIG,
                            "Master=%s in agentd.conf is another host, though primus-masterd is enabled on "
                            "this one; join that host's cluster (primusctl join %s), or take the line out",
                            set, set);
        r = choose_name(o, name, sizeof(name));
        if (r)
                return JOIN_CONFIG;
        r = identity_writable();
        if (r)
                return r;
        local_target(&address);
        addr_format(&address, target);
        r = local_token(&address, name, &token);
        if (!r)
                r = become_node(target, name, &token, !set, false);
        if (!r)
                printf("This host has joined the cluster of its own master, as node %s.\n", name);
        return r;
}

/* Of that master, from where nobody is asked any more. */
static int join_target(const char *target, const char *name, struct join_token *token,
                       const struct options *o) {
        _cleanup_free_ char *host = NULL, *set = master_set_by_others();
        uint16_t port;
        int r;

        if (addr_split(target, MASTER_PORT, &host, &port) < 0)
                return fail(JOIN_USAGE, "not a host: %s", target);
        r = become_node(target, name, token, !set, !o->no_start);
        if (r)
                return r;
        if (set && strcmp(set, target) != 0)
                fprintf(stderr, "agentd.conf names master %s already; that stays.\n", set);
        if (!o->no_start)
                return agent_start(name, set ? set : host);
        printf("This host has joined as node %s. Next: systemctl enable --now primus-agentd   (or restart "
               "it)\n",
               name);
        return JOIN_OK;
}

/* At boot, of a host that was made by demand. */
static int join_credential(const struct options *o) {
        struct join_credential c;
        int r = credential_read(o->credential, &c);

        if (!r && identity_named(c.name)) {
                printf("This host is node %s already.\n", c.name);
                return JOIN_OK;
        }
        if (!r)
                r = identity_writable();
        return r ? r : join_target(c.target, c.name, &c.token, o);
}

static int join(const char *target, const struct options *o) {
        _cleanup_free_ char *host = NULL;
        char name[HOST_NAME_MAX + 1];
        struct join_token token;
        uint16_t port;
        int r;

        if (addr_split(target, MASTER_PORT, &host, &port) < 0 || strpbrk(target, "\n\r\t "))
                return fail(JOIN_USAGE, "not a host: %s", target);
        r = choose_name(o, name, sizeof(name));
        if (!r)
                r = identity_writable();
        if (!r)
                r = read_token(o->token_file, &token);
        return r ? r : join_target(target, name, &token, o);
}

/* For primus-agentd.service: what a person is told by 'systemctl status' of it. */
static int check(void) {
        if (identity_there())
                return JOIN_OK;
        if (access("/etc/systemd/system/dbus-org.primus.Master1.service", F_OK) >= 0)
                return fail(JOIN_FAILED, "This host has not joined its own master's cluster yet: "
                                         "systemctl status primus-first-contact says why.");
        return fail(JOIN_FAILED,
                    "This host is not a node of a cluster yet. On the host of the master: primusctl token "
                    "create. Here, as root: primusctl join MASTER");
}

static int run(const struct options *o, int argc, char **argv) {
        int modes = o->local + o->check + !!o->credential;

        if (modes > 1 || argc != !modes || (o->credential && (o->name || o->token_file))) {
                usage(stderr);
                return JOIN_USAGE;
        }
        return o->check        ? check()
               : o->local      ? join_local(o)
               : o->credential ? join_credential(o)
                               : join(argv[0], o);
}

int main(int argc, char **argv) {
        static const struct option options[] = {
                { "name", required_argument, NULL, 'n' },
                { "token-file", required_argument, NULL, 't' },
                { "local", no_argument, NULL, 'l' },
                { "check", no_argument, NULL, 'c' },
                { "credential", required_argument, NULL, 'C' },
                { "no-start", no_argument, NULL, 'N' },
                { "help", no_argument, NULL, 'h' },
                { "version", no_argument, NULL, 'V' },
                { 0 },
        };
        struct options o = { 0 };
        int c;

        while ((c = getopt_long(argc, argv, "h", options, NULL)) >= 0)
                switch (c) {
                case 'n':
                        o.name = optarg;
                        break;
                case 't':
                        o.token_file = strcmp(optarg, "-") == 0 ? NULL : optarg;
                        break;
                case 'l':
                        o.local = true;
                        break;
                case 'c':
                        o.check = true;
                        break;
                case 'C':
                        o.credential = optarg;
                        break;
                case 'N':
                        o.no_start = true;
                        break;
                case 'h':
                        usage(stdout);
                        return JOIN_OK;
                case 'V':
                        puts("primus-join " PRIMUS_VERSION);
                        return JOIN_OK;
                default:
                        return JOIN_USAGE;
                }
        return run(&o, argc - optind, argv + optind);
}
