/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/primusctl/cli/remote.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/try.h"
#include "tools/primusctl/cli/ssh-host.h"

static _Noreturn void run_ssh(int fd, pid_t parent, const char *name, const char *port) {
        const char *argv[8] = { "ssh", "-xT" };
        size_t n = 2;
        sigset_t none;

        if (port) {
                argv[n++] = "-p";
                argv[n++] = port;
        }
        argv[n++] = "--";
        argv[n++] = name;
        argv[n++] = "systemd-stdio-bridge";
        sigemptyset(&none);
        if (prctl(PR_SET_PDEATHSIG, SIGTERM) < 0 || getppid() != parent ||
            signal(SIGINT, SIG_IGN) == SIG_ERR || sigprocmask(SIG_SETMASK, &none, NULL) < 0 ||
            dup2(fd, STDIN_FILENO) < 0 || dup2(fd, STDOUT_FILENO) < 0)
                _exit(EXIT_FAILURE);
        execvp("ssh", (char *const *)argv);
        dprintf(STDERR_FILENO, "cannot run ssh: %s\n", strerror(errno));
        _exit(EXIT_FAILURE);
}

int remote_open(const char *host, sd_bus **ret) {
        _cleanup_(sd_bus_unrefp) sd_bus *bus = NULL;
        _cleanup_close_ int ours = -EBADF, its = -EBADF;
        _cleanup_free_ char *name = NULL;
        const char *port;
        int fds[2], r;
        pid_t parent = getpid(), pid;

        TRY(ssh_host_split(host, &name, &port));
        TRY(sd_bus_new(&bus));
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
                return -errno;
        ours = fds[0];
        its = fds[1];
        TRY(sd_bus_set_fd(bus, ours, ours));
        TAKE_FD(ours);
        /* Descriptors end at ssh. */
        TRY(sd_bus_negotiate_fds(bus, false));
        TRY(sd_bus_set_bus_client(bus, true));
        pid = fork();
        if (pid < 0)
                return -errno;
        if (pid == 0)
                run_ssh(its, parent, name, port);
        r = sd_bus_start(bus);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(bus);
        return 0;
}
