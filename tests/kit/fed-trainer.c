/* SPDX-License-Identifier: Apache-2.0 */
/* A trainer for the tests of the feed: writes each record that libprimus brings as a line of the file named
 * by its argument, before anything of it is acknowledged. What else it does, the environment says. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/file.h"
#include "lib/primus/primus.h"

/* Of the first of several workers: it stops after so many records until the others have ended. */
static int others = -1;

static unsigned number(const char *name) {
        const char *e = getenv(name);

        return e ? (unsigned)strtoul(e, NULL, 10) : 0;
}

static void put(int fd, const void *data, size_t size) {
        char line[4096];

        if (size >= sizeof(line))
                size = sizeof(line) - 1;
        memcpy(line, data, size);
        line[size] = '\n';
        if (write(fd, line, size + 1) != (ssize_t)size + 1)
                _exit(90);
}

/* The checkpoint is the bytes of primus_checkpoint() behind the length of the output that it goes with. */
static void save(struct primus *p, int fd, const char *path) {
        _cleanup_free_ void *state = NULL;
        _cleanup_free_ char *all = NULL;
        struct stat st;
        size_t size;
        uint64_t length;
        int r = primus_checkpoint(p, &state, &size);

        if (r < 0 || fstat(fd, &st) < 0) {
                fprintf(stderr, "fed-trainer: checkpoint: %s\n", primus_error(p));
                _exit(91);
        }
        length = (uint64_t)st.st_size;
        all = malloc(sizeof(length) + size);
        if (!all)
                _exit(92);
        memcpy(all, &length, sizeof(length));
        memcpy(all + sizeof(length), state, size);
        if (write_file_atomic(path, all, sizeof(length) + size, 0600, false) < 0)
                _exit(93);
        if (number("TRAINER_DIE_SAVED") && size > 0 && length > number("TRAINER_DIE_SAVED"))
                (void)raise(SIGKILL); /* between the checkpoint and its commit */
        if (primus_checkpoint_commit(p, state, size) < 0)
                _exit(94);
}

static int train(const char *out) {
        struct primus_options options = { .size = sizeof(options) };
        const char *checkpoint = getenv("TRAINER_CHECKPOINT"), *bad = getenv("TRAINER_FAIL");
        unsigned die = number("TRAINER_DIE"), every = number("TRAINER_EVERY"),
                 slow = number("TRAINER_SLOW_USEC");
        _cleanup_free_ char *saved = NULL;
        struct primus_record record;
        struct primus *p;
        size_t size;
        unsigned n = 0;
        int fd = open(out, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644), r;

        if (fd < 0)
                return 95;
        if (checkpoint && read_file(checkpoint, 1 << 20, &saved, &size) >= 0) {
                uint64_t length;

                memcpy(&length, saved, sizeof(length));
                if (ftruncate(fd, (off_t)length) < 0)
                        return 96;
                options.checkpoint = saved + sizeof(length);
                options.checkpoint_size = size - sizeof(length);
        }
        r = primus_open(&options, &p);
        if (r < 0) {
                fprintf(stderr, "fed-trainer: %s\n", primus_error(NULL));
                return 97;
        }
        while ((r = primus_next(p, &record)) != 0) {
                if (r == -EBADMSG)
                        continue;
                if (r < 0) {
                        fprintf(stderr, "fed-trainer: %s\n", primus_error(p));
                        return 98;
                }
                if (bad && record.size == strlen(bad) && memcmp(record.data, bad, record.size) == 0) {
                        if (primus_fail(p, "is no good") < 0)
                                return 99;
                        if (getenv("TRAINER_FAIL_ONCE"))
                                bad = NULL;
                        continue;
                }
                put(fd, record.data, record.size);
                n++;
                if (others >= 0 && n == number("TRAINER_AWAITS")) {
                        char c;

                        (void)!read(others, &c, 1); /* their end of the pipe goes with them */
                }
                if (slow && n % 64 == 0)
                        (void)usleep(slow);
                if (die && n == die)
                        (void)raise(SIGKILL);
                if (every && n % every == 0) {
                        if (checkpoint)
                                save(p, fd, checkpoint);
                        else if (primus_ack(p) < 0)
                                return 100;
                }
        }
        if (checkpoint)
                save(p, fd, checkpoint);
        else if (every && n > 0 && primus_ack(p) < 0)
                return 101;
        primus_close(p);
        return 0;
}

int main(int argc, char *argv[]) {
        unsigned workers = number("TRAINER_WORKERS");
        int failed = 0, status, alive[2];

        if (pipe2(alive, O_CLOEXEC) < 0)
                return 102;
        for (unsigned i = 0; i < workers; i++) {
                if (fork() > 0)
                        continue;
                if (i > 0) { /* the first alone */
                        unsetenv("TRAINER_DIE");
                        unsetenv("TRAINER_SLOW_USEC");
                } else if (number("TRAINER_AWAITS") > 0)
                        others = alive[0];
                if (i == 0)
                        close(alive[1]);
                _exit(train(argv[1]));
        }
        if (workers == 0)
                return train(argv[1]);
        close(alive[1]);
        while (wait(&status) > 0)
                failed |= WIFEXITED(status) ? WEXITSTATUS(status) : 0;
        return failed;
}
