/* SPDX-License-Identifier: Apache-2.0 */
/* primus-launch: becomes a command, in its user's environment: in the directory that $PRIMUS_DIRECTORY names,
 * with its PATH, and with its output in a file. It exists because systemd opens append:FILE as root, looks
 * for commands along its own path, and enters a directory before it runs anything of a unit, also what is
 * root's; here all of it happens with the user's rights. Linked statically and without anything but libc: it
 * stands before every start. */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* systemd.exec(5), "Process Exit Codes". */
#define EXIT_CHDIR 200
#define EXIT_EXEC 203
#define EXIT_STDOUT 209

static int redirect(const char *output) {
        int fd = open(output, O_WRONLY | O_APPEND | O_CREAT | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0644);
        struct stat st;

        if (fd < 0 || fstat(fd, &st) < 0)
                return -errno;
        if (!S_ISREG(st.st_mode))
                return -ENOTSUP;
        (void)fcntl(fd, F_SETFL, O_APPEND);
        return dup2(fd, STDOUT_FILENO) < 0 || dup2(fd, STDERR_FILENO) < 0 ? -errno : 0;
}

/* It is for us alone, as systemd's WorkingDirectory= would be. */
static bool enter_directory(void) {
        const char *directory = getenv("PRIMUS_DIRECTORY");

        if (!directory || !*directory)
                return true;
        if (chdir(directory) < 0) {
                fprintf(stderr, "primus-launch: cannot enter the working directory %s: %s\n", directory,
                        strerror(errno));
                return false;
        }
        (void)unsetenv("PRIMUS_DIRECTORY");
        return true;
}

/* What is put there is kept when the job has ended. The directory above it is the user's own already. */
static void make_artifacts(void) {
        const char *directory = getenv("PRIMUS_ARTIFACTS");

        if (directory && *directory && mkdir(directory, 0700) < 0 && errno != EEXIST)
                fprintf(stderr, "primus-launch: cannot make $PRIMUS_ARTIFACTS, %s: %s\n", directory,
                        strerror(errno));
}

int main(int argc, char **argv) {
        const char *output = NULL;
        char **command = argv + 1;

        if (argc == 2 && strcmp(argv[1], "--help") == 0) {
                puts("primus-launch [--output FILE] -- COMMAND [ARGUMENT...]\n\n"
                     "Becomes COMMAND, found along $PATH, in the directory $PRIMUS_DIRECTORY, its output "
                     "appended to "
                     "FILE; run by systemd in an executor's unit.");
                return EXIT_SUCCESS;
        }
        if (argc == 2 && strcmp(argv[1], "--version") == 0) {
                puts("primus-launch " PRIMUS_VERSION);
                return EXIT_SUCCESS;
        }
        if (argc > 3 && strcmp(argv[1], "--output") == 0) {
                output = argv[2];
                command += 2;
        }
        if (!*command || strcmp(*command, "--") != 0 || !*++command) {
                fprintf(stderr, "primus-launch: expected [--output FILE] -- COMMAND [ARGUMENT...]\n");
                return 2;
        }
        make_artifacts();
        if (!enter_directory())
                return EXIT_CHDIR;
        if (output) {
                int r = redirect(output);
                if (r < 0) {
                        fprintf(stderr, "primus-launch: cannot write the output to %s: %s\n", output,
                                r == -ENOTSUP ? "it is not an ordinary file" : strerror(-r));
                        return EXIT_STDOUT;
                }
        }
        execvp(*command, command);
        fprintf(stderr, "primus-launch: cannot run %s: %s\n", *command, strerror(errno));
        return EXIT_EXEC;
}
