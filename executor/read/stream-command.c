/* SPDX-License-Identifier: Apache-2.0 */
/* What a command prints, as the bytes of a task: run by bash as the job's user, in a process group of its own
 * that is killed when the task is over, one way or the other. Invariant: the end of what it printed is the
 * end of the data only when it ended with status 0. */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "executor/read/kind.h"
#include "lib/base/cleanup.h"
#include "lib/base/try.h"

#define PIPE_SIZE (1 << 20)
#define STEP_MS 100
#define END_STEP_USEC 10000u

struct stream_command {
        struct stream s;
        pid_t pid; /* 0: reaped */
        int fd;
        uint64_t printed;
        char **environment;
        size_t n_environment; /* the last ones are ours */
        size_t n_inherited;
};

/* ---- its environment ---- */

static const char *const names[] = { "PRIMUS_FILE", "PRIMUS_SEED", "PRIMUS_TASK", "PRIMUS_SOURCE" };

static bool is_ours(const char *variable) {
        for (size_t i = 0; i < ELEMENTSOF(names); i++) {
                size_t n = strlen(names[i]);

                if (strncmp(variable, names[i], n) == 0 && variable[n] == '=')
                        return true;
        }
        return false;
}

static int add_text(struct stream_command *c, const char *name, const char *value) {
        char *line;

        if (asprintf(&line, "%s=%s", name, value) < 0)
                return -ENOMEM;
        c->environment[c->n_environment++] = line;
        return 0;
}

static int add_number(struct stream_command *c, const char *name, uint64_t value) {
        char text[24];

        snprintf(text, sizeof(text), "%llu", (unsigned long long)value);
        return add_text(c, name, text);
}

static int make_environment(struct stream_command *c, const struct reader_request *q) {
        size_t n = 0;

        while (environ[n])
                n++;
        c->environment = calloc(n + ELEMENTSOF(names) + 1, sizeof(char *));
        if (!c->environment)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++)
                if (!is_ours(environ[i]))
                        c->environment[c->n_environment++] = environ[i];
        c->n_inherited = c->n_environment;
        if (q->source->path_pattern)
                TRY(add_text(c, "PRIMUS_FILE", q->task->path));
        TRY(add_number(c, "PRIMUS_SEED", q->task->seed));
        TRY(add_number(c, "PRIMUS_TASK", q->task->task));
        return add_text(c, "PRIMUS_SOURCE", q->source->name);
}

/* ---- its life ---- */

/* The feeder blocks signals and ignores SIGPIPE; the command is to know nothing of that. */
static int set_attributes(posix_spawnattr_t *attributes) {
        sigset_t none, all;
        int r;

        sigemptyset(&none);
        sigfillset(&all);
        r = posix_spawnattr_setflags(attributes,
                                     POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
        if (r == 0)
                r = posix_spawnattr_setpgroup(attributes, 0);
        if (r == 0)
                r = posix_spawnattr_setsigmask(attributes, &none);
        if (r == 0)
                r = posix_spawnattr_setsigdefault(attributes, &all);
        return -r;
}

static int start_command(struct stream_command *c, const char *command) {
        char *argv[] = { (char *)"bash", (char *)"-c", (char *)command, NULL };
        _cleanup_close_ int read_end = -EBADF, write_end = -EBADF;
        posix_spawn_file_actions_t actions;
        posix_spawnattr_t attributes;
        int fds[2], r;

        if (pipe2(fds, O_CLOEXEC) < 0)
                return -errno;
        read_end = fds[0];
        write_end = fds[1];
        (void)fcntl(read_end, F_SETPIPE_SZ, PIPE_SIZE);
        if (fcntl(read_end, F_SETFL, O_NONBLOCK) < 0)
                return -errno;
        r = posix_spawn_file_actions_init(&actions);
        if (r != 0)
                return -r;
        r = posix_spawnattr_init(&attributes);
        if (r != 0) {
                (void)posix_spawn_file_actions_destroy(&actions);
                return -r;
        }
        r = -posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
        if (r == 0)
                r = -posix_spawn_file_actions_adddup2(&actions, write_end, STDOUT_FILENO);
        if (r == 0)
                r = set_attributes(&attributes);
        if (r == 0)
                r = -posix_spawn(&c->pid, "/bin/bash", &actions, &attributes, argv, c->environment);
        (void)posix_spawnattr_destroy(&attributes);
        (void)posix_spawn_file_actions_destroy(&actions);
        if (r < 0) {
                c->pid = 0;
                return r;
        }
        c->fd = TAKE_FD(read_end);
        return 0;
}

static bool cancelled(const struct stream_command *c) {
        return c->s.cancel && atomic_load_explicit(c->s.cancel, memory_order_relaxed);
}

/* The group goes before its leader is reaped: until then nobody else can have its number. */
static int reap(struct stream_command *c) {
        int status = 0;

        (void)kill(-c->pid, SIGKILL);
        while (waitpid(c->pid, &status, 0) < 0)
                if (errno != EINTR)
                        break;
        c->pid = 0;
        return status;
}

/* It has closed its output: its end says whether that was all. */
static int finish_command(struct stream_command *c, char error[static READ_ERROR_MAX]) {
        siginfo_t info = { 0 };
        int status;

        if (c->pid == 0)
                return 0;
        for (;;) {
                if (waitid(P_PID, (id_t)c->pid, &info, WEXITED | WNOHANG | WNOWAIT) < 0 && errno != EINTR)
                        return read_error(error, -errno, c->s.path, "the command is lost: %s",
                                          strerror(errno));
                if (info.si_pid == c->pid)
                        break;
                if (cancelled(c))
                        return -ECANCELED;
                (void)usleep(END_STEP_USEC);
        }
        status = reap(c);
        if (WIFSIGNALED(status))
                return read_error(error, -EIO, c->s.path,
                                  "the command was ended by signal %d, behind %llu bytes", WTERMSIG(status),
                                  (unsigned long long)c->printed);
        if (WEXITSTATUS(status) != 0)
                return read_error(error, -EIO, c->s.path,
                                  "the command ended with status %d, behind %llu bytes", WEXITSTATUS(status),
                                  (unsigned long long)c->printed);
        return 0;
}

static ssize_t on_read(struct stream *s, uint8_t *buf, size_t size, char error[static READ_ERROR_MAX]) {
        struct stream_command *c = (struct stream_command *)s;

        for (;;) {
                struct pollfd pfd = { .fd = c->fd, .events = POLLIN };
                ssize_t l;

                if (cancelled(c))
                        return -ECANCELED;
                l = read(c->fd, buf, size);
                if (l > 0)
                        c->printed += (uint64_t)l;
                if (l == 0)
                        return finish_command(c, error);
                if (l > 0)
                        return l;
                if (errno != EAGAIN && errno != EINTR)
                        return read_error(error, -errno, s->path, "%s", strerror(errno));
                (void)poll(&pfd, 1, STEP_MS);
        }
}

static void on_close(struct stream *s) {
        struct stream_command *c = (struct stream_command *)s;

        if (c->pid > 0)
                (void)reap(c);
        c->fd = close_fd(c->fd);
        for (size_t i = c->n_inherited; i < c->n_environment; i++)
                free(c->environment[i]);
        free(c->environment);
        free(c);
}

int stream_open_command(const struct reader_request *q, struct stream **ret,
                        char error[static READ_ERROR_MAX]) {
        static const struct stream_ops ops = { .read = on_read, .close = on_close };
        struct stream_command *c = calloc(1, sizeof(*c));
        int r;

        if (!c)
                return read_error(error, -ENOMEM, q->task->path, "no memory");
        c->s = (struct stream){
                .ops = &ops, .path = q->task->path, .cancel = q->cancel, .size = TASK_UNKNOWN, .fd = -EBADF
        };
        c->fd = -EBADF;
        r = make_environment(c, q);
        if (r >= 0)
                r = start_command(c, q->source->command);
        if (r < 0) {
                on_close(&c->s);
                return read_error(error, r, q->task->path, "the command cannot be started: %s", strerror(-r));
        }
        *ret = &c->s;
        return 0;
}
