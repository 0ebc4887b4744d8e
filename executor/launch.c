/* SPDX-License-Identifier: Apache-2.0 */
/* The launcher. It exists because systemd opens append:FILE as root and looks for commands along its own path, not the
 * user's: here both happen with the user's rights and environment. */
#include "executor/launch.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/base/cleanup.h"

#define EXIT_EXEC 203
#define EXIT_STDOUT 209

static int redirect(const char *output) {
        _cleanup_close_ int fd = open(output, O_WRONLY | O_APPEND | O_CREAT | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0644);
        struct stat st;

        if (fd < 0)
                return -errno;
        if (fstat(fd, &st) < 0)
                return -errno;
        if (!S_ISREG(st.st_mode))
                return -ENOTSUP;
        (void) fcntl(fd, F_SETFL, O_APPEND);
        if (dup2(fd, STDOUT_FILENO) < 0 || dup2(fd, STDERR_FILENO) < 0)
                return -errno;
        return 0;
}

int launch_run(const char *output, char *const argv[]) {
        int r = output ? redirect(output) : 0;

        if (r < 0) {
                fprintf(stderr, "primus-executor: cannot write the output to %s: %s\n", output,
                        r == -ENOTSUP ? "it is not an ordinary file" : strerror(-r));
                return EXIT_STDOUT;
        }
        execvp(argv[0], argv);
        fprintf(stderr, "primus-executor: cannot run %s: %s\n", argv[0], strerror(errno));
        return EXIT_EXEC;
}
