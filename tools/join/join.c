/* SPDX-License-Identifier: Apache-2.0 */
/* primus-join: makes this host a node of a cluster. Run by 'primusctl join', apart from it because it links
 * GnuTLS. Invariant: the identity under PRIMUS_SYSCONFDIR/node is replaced as a whole or not at all. */
#include <ctype.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>
#include <termios.h>

#include "lib/base/cleanup.h"
#include "lib/base/conf.h"
#include "lib/base/file.h"
#include "lib/base/log.h"
#include "lib/base/parse.h"
#include "lib/wire/join.h"

#define DEFAULT_PORT 7747
#define NODE_DIRECTORY PRIMUS_SYSCONFDIR "/node"
#define NODE_DIRECTORY_NEW PRIMUS_SYSCONFDIR "/.node.new"
#define MASTER_DROP_IN PRIMUS_SYSCONFDIR "/agentd.conf.d/10-join.conf"

struct settings {
        char *master;
};

static int fail(int status, const char *format, ...) _printf_(2, 3);
static int fail(int status, const char *format, ...) {
        va_list ap;

        fputs("primus-join: ", stderr);
        va_start(ap, format);
        vfprintf(stderr, format, ap);
        va_end(ap);
        fputc('\n', stderr);
        return status;
}

static void usage(FILE *f) {
        fputs("primus-join [--name NAME] [--token-file FILE] HOST[:PORT]\n\n"
              "Makes this host a node of the cluster whose master is HOST. The token of 'primusctl token "
              "create' is read from\n"
              "standard input, or from FILE. See primusctl(1).\n",
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
                r = read_file(file ? file : "/dev/stdin", 4096, ret, NULL);
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

static int write_identity(const char *ca_pem, const struct certificate *certificate) {
        const struct {
                const char *name, *text;
                mode_t mode;
        } files[] = {
                { "node.key", certificate->key_pem, 0600 },
                { "node.crt", certificate->cert_pem, 0644 },
                { "ca.crt", ca_pem, 0644 },
        };
        int r;

        r = make_directories(PRIMUS_SYSCONFDIR, 0755);
        if (r >= 0)
                r = remove_tree(NODE_DIRECTORY_NEW);
        if (r >= 0 && mkdir(NODE_DIRECTORY_NEW, 0755) < 0)
                r = -errno;
        for (size_t i = 0; r >= 0 && i < ELEMENTSOF(files); i++) {
                char path[256];

                snprintf(path, sizeof(path), NODE_DIRECTORY_NEW "/%s", files[i].name);
                r = write_file_atomic(path, files[i].text, strlen(files[i].text), files[i].mode, true);
        }
        if (r >= 0 && chmod(NODE_DIRECTORY_NEW, 0755) < 0)
                r = -errno;
        if (r >= 0 && renameat2(AT_FDCWD, NODE_DIRECTORY_NEW, AT_FDCWD, NODE_DIRECTORY, RENAME_EXCHANGE) < 0)
                r = errno == ENOENT && rename(NODE_DIRECTORY_NEW, NODE_DIRECTORY) >= 0 ? 0 : -errno;
        if (r >= 0)
                r = remove_tree(NODE_DIRECTORY_NEW); /* the old identity, if there was one */
        else
                (void)remove_tree(NODE_DIRECTORY_NEW);
        return r < 0 ? fail(1, "cannot write %s: %s", NODE_DIRECTORY, strerror(-r)) : 0;
}

/* Tells agentd where the master is, unless somebody has already; *ret_set: what is set then (allocated) or
 * NULL. */
static int write_master(const char *host, char **ret_set) {
        static const struct conf_key keys[] = {
                { "Agent", "Master", conf_parse_string, offsetof(struct settings, master), false },
                { 0 },
        };
        _cleanup_free_ char *text = NULL;
        struct settings s = { 0 };
        int r;

        /* Looks for one key in files that have others: what it says about those is agentd's to say. */
        log_set_level(LOG_CRIT);
        (void)conf_load(NULL, "agentd.conf", keys, &s);
        if (s.master && *s.master && access(MASTER_DROP_IN, F_OK) < 0) {
                *ret_set = s.master;
                return 0;
        }
        free(s.master);
        if (asprintf(&text, "# Written by 'primusctl join'.\n[Agent]\nMaster=%s\n", host) < 0) {
                text = NULL;
                return fail(1, "out of memory");
        }
        r = make_directories(PRIMUS_SYSCONFDIR "/agentd.conf.d", 0755);
        if (r >= 0)
                r = write_file_atomic(MASTER_DROP_IN, text, strlen(text), 0644, true);
        return r < 0 ? fail(1, "cannot write %s: %s", MASTER_DROP_IN, strerror(-r)) : 0;
}

static int join(const char *target, const char *name, const char *token_file) {
        _cleanup_free_ char *host = NULL, *ca = NULL, *why = NULL, *set = NULL;
        char own_name[HOST_NAME_MAX + 1];
        struct certificate certificate = { 0 };
        struct join_token token;
        uint16_t port;
        int r;

        if (addr_split(target, DEFAULT_PORT, &host, &port) < 0 || strpbrk(target, "\n\r\t "))
                return fail(2, "not a host: %s", target);
        if (name && !node_name_valid(name))
                return fail(2,
                            "--name: '%s' cannot be a node's name: lower case letters, digits, '-' and '.', "
                            "at most 64",
                            name);
        if (!name) {
                r = default_name(own_name, sizeof(own_name));
                if (r)
                        return r;
                name = own_name;
        }
        /* Found out before the token is spent. */
        if (make_directories(PRIMUS_SYSCONFDIR, 0755) < 0 || access(PRIMUS_SYSCONFDIR, W_OK) < 0)
                return fail(1, "cannot write to %s: %s; run this as root", PRIMUS_SYSCONFDIR,
                            strerror(errno));
        r = read_token(token_file, &token);
        if (r)
                return r;
        r = join_cluster(host, port, &token, name, &ca, &certificate, &why);
        explicit_bzero(&token, sizeof(token));
        if (r < 0)
                return fail(1, "%s", why ? why : strerror(-r));
        r = write_identity(ca, &certificate);
        certificate_done(&certificate);
        if (!r)
                r = write_master(target, &set);
        if (r)
                return r;
        printf("This host is node %s of the cluster. Its identity is in %s.\n", name, NODE_DIRECTORY);
        if (set)
                printf("agentd is configured for master %s already; that stays.\n", set);
        puts("Next: systemctl enable --now primus-agentd   (or restart it, if it runs)");
        return 0;
}

int main(int argc, char **argv) {
        static const struct option options[] = {
                { "name", required_argument, NULL, 'n' },
                { "token-file", required_argument, NULL, 't' },
                { "help", no_argument, NULL, 'h' },
                { "version", no_argument, NULL, 'V' },
                { 0 },
        };
        const char *name = NULL, *token_file = NULL;
        int o;

        while ((o = getopt_long(argc, argv, "h", options, NULL)) >= 0)
                switch (o) {
                case 'n':
                        name = optarg;
                        break;
                case 't':
                        token_file = strcmp(optarg, "-") == 0 ? NULL : optarg;
                        break;
                case 'h':
                        usage(stdout);
                        return 0;
                case 'V':
                        puts("primus-join " PRIMUS_VERSION);
                        return 0;
                default:
                        return 2;
                }
        if (optind + 1 != argc) {
                usage(stderr);
                return 2;
        }
        return join(argv[optind], name, token_file);
}
