/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a program inside a container host as one of its users and ends as it did: for the many thousands of
 * commands of the cluster tests. A shell, nsenter and setpriv do the same, but four times a program is begun
 * then where once is enough; linked statically, as half of what a start costs is its libraries.
 *
 *   enter PID DIRECTORY UID GID[,GROUP…] N PROCS… PROGRAM ARGUMENT…
 *
 * PID is the host's first process, PROCS are the N files that put it into cgroups. It forwards no signal: who
 * kills it kills its child. */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define GROUPS_MAX 64

static void fail(const char *what) {
        fprintf(stderr, "enter: %s: %s\n", what, strerror(errno));
        _exit(125);
}

static void join(const char *procs) {
        int fd = open(procs, O_WRONLY | O_CLOEXEC);
        if (fd < 0 || write(fd, "0", 1) != 1)
                fail(procs);
        close(fd);
}

static void become(uid_t uid, char *groups) {
        gid_t list[GROUPS_MAX];
        size_t n = 0;
        for (char *save = NULL, *p = strtok_r(groups, ",", &save); p && n < GROUPS_MAX;
             p = strtok_r(NULL, ",", &save))
                list[n++] = (gid_t)strtoul(p, NULL, 10);
        if (n == 0)
                errno = EINVAL;
        if (n == 0 || setgroups(n, list) < 0 || setresgid(list[0], list[0], list[0]) < 0 ||
            setresuid(uid, uid, uid) < 0)
                fail("its user");
}

int main(int argc, char **argv) {
        if (argc < 7 || argc < 7 + atoi(argv[5])) {
                fprintf(stderr,
                        "usage: enter PID DIRECTORY UID GID[,GROUP...] N PROCS... PROGRAM [ARGUMENT...]\n");
                return 2;
        }
        int joins = atoi(argv[5]);
        char **program = argv + 6 + joins;
        for (int i = 0; i < joins; i++)
                join(argv[6 + i]);
        int host = (int)syscall(SYS_pidfd_open, (pid_t)atoi(argv[1]), 0);
        if (host < 0 || setns(host, CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC |
                                            CLONE_NEWPID | CLONE_NEWNET) < 0)
                fail("the host");
        close(host);
        pid_t child = fork();
        if (child < 0)
                fail("fork");
        if (child == 0) {
                become((uid_t)strtoul(argv[3], NULL, 10), argv[4]);
                prctl(PR_SET_PDEATHSIG, SIGKILL);
                if (chdir(argv[2]) < 0)
                        fail(argv[2]);
                execvp(program[0], program);
                int error = errno;
                fprintf(stderr, "enter: %s: %s\n", program[0], strerror(error));
                _exit(error == ENOENT ? 127 : 126);
        }
        int status;
        while (waitpid(child, &status, 0) < 0)
                if (errno != EINTR)
                        fail("wait");
        return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}
