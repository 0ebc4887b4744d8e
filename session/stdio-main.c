/* SPDX-License-Identifier: Apache-2.0 */
/* primus-stdio: the standard input or the terminal of an executor's command, for primusctl run. Runs as the
 * job's user in the executor, and gives nobody anything that they do not have: sessions are masterd's to
 * allow. */
#include <stdio.h>
#include <sys/socket.h>

#include "lib/base/cleanup.h"
#include "session/stdio-parts.h"

int stdio_address(struct sockaddr_un *ret) {
        const char *key = getenv(STDIO_VARIABLE), *work = getenv("PRIMUS_WORK"),
                   *attempt = getenv("PRIMUS_ATTEMPT");
        int n;

        if (!key || strlen(key) != STDIO_KEY_SIZE || strspn(key, "0123456789abcdef") != STDIO_KEY_SIZE)
                return -EINVAL;
        *ret = (struct sockaddr_un){ .sun_family = AF_UNIX };
        if (!work || !attempt)
                return -ENOENT;
        n = snprintf(ret->sun_path, sizeof(ret->sun_path), "%s/tmp/.stdio-%s.%s", work, key, attempt);
        return n < 0 || (size_t)n >= sizeof(ret->sun_path) ? -ENAMETOOLONG : 0;
}

bool stdio_is_ours(int fd) {
        struct ucred peer;
        socklen_t size = sizeof(peer);

        return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) >= 0 && peer.uid == getuid();
}

int stdio_fail(const char *what, int error) {
        fprintf(stderr, "primus-stdio: %s: %s\n", what, strerror(-error));
        return STDIO_STATUS;
}

int main(int argc, char **argv) {
        struct stdio_options o = { 0 };
        const char *rank = NULL, *own = getenv("PRIMUS_RANK");
        char **a = argv + 1;
        int error;

        if (argc == 2 && strcmp(argv[1], "--help") == 0) {
                puts("primus-stdio hold [--pty] [--may-leave] [--rank N] -- COMMAND [ARGUMENT...]\n"
                     "primus-stdio join\n\n"
                     "Standard input, or a terminal, of a command in an executor, brought by a session; used "
                     "by "
                     "'primusctl run'.");
                return EXIT_SUCCESS;
        }
        if (argc == 2 && strcmp(argv[1], "--version") == 0) {
                puts("primus-stdio " PRIMUS_VERSION);
                return EXIT_SUCCESS;
        }
        if (argc == 2 && strcmp(argv[1], "join") == 0)
                return stdio_join();
        if (!*a || strcmp(*a++, "hold") != 0)
                goto usage;
        for (; *a && strcmp(*a, "--") != 0; a++)
                if (strcmp(*a, "--pty") == 0)
                        o.pty = true;
                else if (strcmp(*a, "--may-leave") == 0)
                        o.may_leave = true;
                else if (strcmp(*a, "--rank") == 0 && a[1])
                        rank = *++a;
                else
                        goto usage;
        if (!*a || !*++a)
                goto usage;
        o.command = a;
        if (!rank || !own || strcmp(rank, own) == 0)
                return stdio_hold(&o);
        (void)unsetenv(STDIO_VARIABLE);
        execvp(*a, a);
        error = errno;
        (void)stdio_fail(*a, -error);
        return error == ENOENT ? 127 : 126;
usage:
        fprintf(stderr, "primus-stdio: expected hold ... -- COMMAND, or join\n");
        return 2;
}
