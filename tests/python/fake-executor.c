/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a trainer against the executor's end of tests/kit/fake-feed.h:
 *
 *   fake-executor MODE ACK FORMAT[:RECORD_SIZE] TASK_SIZE LOG FILE... -- COMMAND...
 *
 * LOG gets a line for each packet. Exits as the command does. */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "lib/base/cleanup.h"
#include "tests/kit/fake-feed.h"

extern char **environ;

static const char *const words[][8] = {
        { "stdin", "ring", "descriptor" },
        { "lag", "exit", "read", "release", "explicit", "checkpoint" },
        { "text", "raw", "fixed", "tfrecord", "tar", "csv", "message" },
};

static unsigned word(size_t table, const char *s) {
        for (unsigned i = 0; i < 8; i++)
                if (words[table][i] && strcmp(words[table][i], s) == 0)
                        return i;
        fprintf(stderr, "fake-executor: what is '%s'?\n", s);
        exit(2);
}

int main(int argc, char **argv) {
        struct fake_feed f = { .slots = 8, .slot_size = 256 << 10, .max_record = 16 << 20, .pipe_fd = -1 };
        int fds[2] = { -1, -1 }, status, command = 6;
        char *colon;
        pid_t pid;

        while (command < argc && strcmp(argv[command], "--") != 0)
                command++;
        if (command + 1 >= argc) {
                fprintf(stderr,
                        "usage: fake-executor MODE ACK FORMAT[:SIZE] TASK_SIZE LOG FILE... -- COMMAND...\n");
                return 2;
        }
        f.mode = (enum input_delivery)word(0, argv[1]);
        f.ack = (enum ack_mode)word(1, argv[2]);
        colon = strchr(argv[3], ':');
        if (colon) {
                *colon = 0;
                f.format.record_size = strtoull(colon + 1, NULL, 10);
        }
        f.format.kind = (enum record_kind)word(2, argv[3]);
        f.task_size = strtoull(argv[4], NULL, 10);
        f.log = fopen(argv[5], "we");
        f.files = argv + 6;
        f.n_files = (size_t)(command - 6);
        if (!f.log || (f.mode == DELIVERY_STDIN && pipe2(fds, O_CLOEXEC) < 0) || fake_feed_start(&f) < 0) {
                perror("fake-executor");
                return 2;
        }
        f.pipe_fd = fds[1];
        setenv("PRIMUS_FEED", f.name, 1);
        setenv("PRIMUS_JOB", "1", 1);
        setenv("PRIMUS_JOB_UID", "0123456789abcdef0123456789abcdef", 1);
        pid = fork();
        if (pid == 0) {
                if (fds[0] >= 0)
                        (void)dup2(fds[0], 0);
                execvp(argv[command + 1], argv + command + 1);
                perror(argv[command + 1]);
                _exit(127);
        }
        close_fd(fds[0]);
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
                ;
        fake_feed_stop(&f);
        fclose(f.log);
        return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
